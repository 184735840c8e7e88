"""An MCP server whose tools try what an isolated server must not be able to do.

They open files and sockets and take memory as their arguments say, which the scripted server cannot do."""

import json
import os
import socket
import subprocess
import sys


def read(arguments):
    with open(arguments["path"], encoding="utf-8", errors="replace") as file:
        return file.read(1000)


def write(arguments):
    with open(arguments["path"], "wb") as file:
        file.write(b"x" * arguments.get("bytes", 1))
    return "written"


def listing(arguments):
    return " ".join(sorted(os.listdir(os.path.expanduser(arguments["path"]))))


def connect(arguments):
    with socket.create_connection(("127.0.0.1", arguments["port"]), timeout=5):
        return "connected"


def environment(_):
    return " ".join(sorted(os.environ))


def fork(_):
    children = []
    try:
        for _ in range(5000):
            child = os.fork()
            if child == 0:
                os.execvp("sleep", ["sleep", "600"])
            children.append(child)
    finally:
        for child in children:
            os.kill(child, 9)
            os.waitpid(child, 0)
    return f"{len(children)} processes"


def hog(_):
    held = []
    for _ in range(10_000):
        held.append(b"\x01" * (1 << 20))
    return f"{len(held)} MiB"


def spin(_):
    while True:
        pass


def grandchild(arguments):
    subprocess.Popen(["sleep", arguments["marker"]], start_new_session=True)
    return "started"


TOOLS = [read, write, listing, connect, environment, fork, hog, spin, grandchild]


def answer(request):
    method, params = request["method"], request.get("params", {})
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "probe", "version": "1"},
        }
    if method == "tools/list":
        schema = {"type": "object"}
        tools = [{"name": tool.__name__, "inputSchema": schema} for tool in TOOLS]
        return {"tools": tools}
    tool = {tool.__name__: tool for tool in TOOLS}[params["name"]]
    try:
        text, failed = tool(params.get("arguments", {})), False
    except (OSError, MemoryError) as error:
        text, failed = f"{type(error).__name__}: {error}", True
    return {"content": [{"type": "text", "text": text}], "isError": failed}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        reply = {"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}
        print(json.dumps(reply), flush=True)
