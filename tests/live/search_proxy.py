"""FastMCP as a tool-search proxy: every server of an mcp.json behind one search tool.

usage: search_proxy.py MCP_JSON PORT

The search (BM25) and the proxied tools are FastMCP's own; this only puts them together. The tools are
listed once, before the port is opened: mounted as they are, FastMCP would ask every server for its tools
at each search, and its cache of lists ends at 1 MB.
"""

import asyncio
import json
import sys

from fastmcp import FastMCP
from fastmcp.server import create_proxy
from fastmcp.server.transforms.search import BM25SearchTransform

with open(sys.argv[1]) as file:
    servers = create_proxy(json.load(file), name="servers")
proxy = FastMCP("search proxy")
for tool in asyncio.run(servers.list_tools()):
    proxy.add_tool(tool)
proxy.add_transform(BM25SearchTransform(max_results=20))
proxy.run(
    transport="http",
    host="127.0.0.1",
    port=int(sys.argv[2]),
    stateless_http=True,
    json_response=True,
    show_banner=False,
)
