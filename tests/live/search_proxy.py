"""FastMCP as a tool-search proxy: every server of an mcp.json behind one search tool.

usage: search_proxy.py MCP_JSON PORT

The search (BM25) and the cache of definitions are FastMCP's own; this only puts them together.
Without the cache it would ask every server for its tools at each search. The cache sits on the inner
server: on the outer one it would mix up the list of all tools with the list that clients see.
"""

import json
import sys

from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.middleware.caching import ResponseCachingMiddleware
from fastmcp.server.transforms.search import BM25SearchTransform

with open(sys.argv[1]) as file:
    servers = create_proxy(json.load(file), name="servers")
servers.add_middleware(
    ResponseCachingMiddleware(
        list_tools_settings={"ttl": 3600}, call_tool_settings={"enabled": False}
    )
)
proxy = FastMCP("search proxy")
proxy.mount(servers)
proxy.add_transform(BM25SearchTransform(max_results=20))
proxy.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[2]),
    stateless_http=True,
    json_response=True,
    show_banner=False,
)
