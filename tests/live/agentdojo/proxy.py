"""A proxy over stdio: `proxy.py TOOL COMMAND…` passes lines on, and refuses calls of one tool."""

import json
import subprocess
import sys
import threading

blocked, command = sys.argv[1], sys.argv[2:]
server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)


def back():
    for line in server.stdout:
        sys.stdout.buffer.write(line)
        sys.stdout.flush()


reader = threading.Thread(target=back, daemon=True)
reader.start()
for line in sys.stdin:
    message = json.loads(line)
    if message.get("method") == "tools/call" and message["params"]["name"] == blocked:
        result = {"content": [{"type": "text", "text": "blocked"}], "isError": True}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
        continue
    server.stdin.write(line.encode())
    server.stdin.flush()
server.stdin.close()
server.wait(5)
