"""The official Python SDK as a load generator: N calls, several at a time, over one session."""

import asyncio
import json
import sys
import time

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client


async def load(session, tool, arguments, calls, at_once):
    left = iter(range(calls))

    async def place():
        for _ in left:
            await session.call_tool(tool, arguments)

    await asyncio.gather(*(place() for _ in range(at_once)))


async def main():
    tool, arguments, calls, at_once, *target = sys.argv[1:]
    if target[0].startswith("http"):
        connected = streamable_http_client(target[0])
    else:
        connected = stdio_client(StdioServerParameters(command=target[0], args=target[1:]))
    async with connected as streams, ClientSession(streams[0], streams[1]) as session:
        await session.initialize()
        job = (session, tool, json.loads(arguments))
        await load(*job, 50, int(at_once))
        cpu, wall = time.process_time(), time.perf_counter()
        await load(*job, int(calls), int(at_once))
        cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    print(json.dumps({"throughput": int(calls) / wall, "cpu_us": cpu * 1e6 / int(calls)}))


asyncio.run(main())
