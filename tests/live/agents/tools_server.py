"""An MCP server with the five tools, over standard input and output, for the agents that take tools only so."""

import json
import os
import sys

TOOLS = {
    "add": ("Adds two numbers.", {"a": "integer", "b": "integer"}, lambda a, b: a + b),
    "weather": ("Says how warm a city is.", {"city": "string"}, lambda city: {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]),
    "lookup": ("Finds the number of a person.", {"name": "string"}, lambda name: {"Ana": 7}[name]),
    "read_mail": ("Reads the mail of a person.", {"person": "integer", "unread": "boolean"}, lambda person, unread: f"from {person}: see you at noon"),
    "divide": ("Divides two numbers.", {"a": "integer", "b": "integer"}, lambda a, b: a / b),
}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": {"name": "tools", "version": "1"}}
    if method == "tools/list":
        listed = []
        for name, (about, fields, _) in TOOLS.items():
            properties = {field: {"type": kind} for field, kind in fields.items()}
            listed.append({"name": name, "description": about, "inputSchema": {"type": "object", "properties": properties, "required": list(fields)}})
        return {"tools": listed}
    if method == "tools/call":
        try:
            text, failed = str(TOOLS[params["name"]][2](**params["arguments"])), False
            # For a client that takes a number for something else.
            text = "It is " + text if os.environ.get("WORDS") else text
        except Exception as error:
            text, failed = f"error: {error}", True
        return {"content": [{"type": "text", "text": text}], "isError": failed}
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        result = answer(message["method"], message.get("params") or {})
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
