"""The server of one case: `bridge.py SOCKET --case ID --state FILE [--text TEXT]`, see suites.py."""

import json
import os
import socket
import sys
import threading

connection = socket.socket(socket.AF_UNIX)
connection.connect(sys.argv[1])
given = dict(zip(sys.argv[2::2], sys.argv[3::2]))
case = {"case": given["--case"], "state": given["--state"], "text": given.get("--text")}
connection.sendall(json.dumps(case).encode() + b"\n")


def back():
    while data := connection.recv(1 << 16):
        os.write(1, data)
    os._exit(0)


threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 1 << 16):
    connection.sendall(data)
connection.shutdown(socket.SHUT_WR)
