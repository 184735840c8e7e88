"""The most calls that a server answers over streamable HTTP, to any client.

Prepared bytes on open connections; of an answer only its end is looked for. Nothing is checked, timed or
counted by class, so this is not a peer: it shows where a ratio between clients ends because the server is busy.
"""

import http.client
import json
import selectors
import socket
import sys
import time
import urllib.parse

REVISION = "2025-11-25"
HEADERS = {"content-type": "application/json", "accept": "application/json, text/event-stream"}


def open_session(place):
    """Says hello as any client does; the headers of the calls that follow."""
    connection = http.client.HTTPConnection(place.netloc)
    hello = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": REVISION, "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}}}
    connection.request("POST", place.path, json.dumps(hello), HEADERS)
    answer = connection.getresponse()
    answer.read()
    if answer.status != 200:
        raise SystemExit(f"initialize is answered with {answer.status}")
    headers = {**HEADERS, "mcp-protocol-version": REVISION}
    if session := answer.headers.get("mcp-session-id"):
        headers["mcp-session-id"] = session
    ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    connection.request("POST", place.path, json.dumps(ready), headers)
    connection.getresponse().read()
    return headers


def request(place, headers, number, tool, arguments):
    body = json.dumps({"jsonrpc": "2.0", "id": number, "method": "tools/call",
                       "params": {"name": tool, "arguments": arguments}})
    lines = [f"POST {place.path} HTTP/1.1", f"host: {place.netloc}", f"content-length: {len(body)}",
             *(f"{name}: {value}" for name, value in headers.items()), "", body]
    return "\r\n".join(lines).encode()


def is_whole(answer):
    head, found, body = answer.partition(b"\r\n\r\n")
    if not found:
        return False
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"a call is answered with {head[:40]!r}")
    head = head.lower()
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(head.split(b"content-length:")[1].split(b"\r\n")[0])


def main():
    url, tool, arguments, calls, at_once = sys.argv[1:]
    place, calls = urllib.parse.urlsplit(url), int(calls)
    headers = open_session(place)
    prepared = [request(place, headers, number, tool, json.loads(arguments)) for number in range(1, calls + 1)]
    waiting = selectors.DefaultSelector()
    started = time.perf_counter()
    for _ in range(int(at_once)):
        connection = socket.create_connection((place.hostname, place.port))
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        waiting.register(connection, selectors.EVENT_READ, bytearray())
        connection.sendall(prepared.pop())
    answered = 0
    while answered < calls:
        for key, _ in waiting.select():
            got = key.fileobj.recv(65536)
            if not got:
                raise SystemExit("the server closed a connection")
            key.data.extend(got)
            if not is_whole(bytes(key.data)):
                continue
            key.data.clear()
            answered += 1
            if prepared:
                key.fileobj.sendall(prepared.pop())
    print(json.dumps({"throughput": calls / (time.perf_counter() - started)}))


main()
