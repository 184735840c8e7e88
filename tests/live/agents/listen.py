"""Real exporters send to `karat agent listen`, which is killed and stopped while they do.

listen.py KARAT FOLDER NAME COMMAND…: runs COMMAND with OTLP=URL and writes FOLDER/listen+NAME.plain.spans.jsonl
"""

import os
import signal
import socket
import subprocess
import sys
import time

KARAT, FOLDER, NAME, *COMMAND = sys.argv[1:]
FILE = os.path.join(FOLDER, f"listen+{NAME}.plain.spans.jsonl")
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    PORT = free.getsockname()[1]


def start():
    receiver = subprocess.Popen([KARAT, "agent", "listen", "--port", str(PORT), "-o", FILE, "-q"])
    for _ in range(100):
        if receiver.poll() is not None:
            sys.exit(f"the receiver ended with {receiver.returncode}")
        try:
            socket.create_connection(("127.0.0.1", PORT), 1).close()
            return receiver
        except OSError:
            time.sleep(0.1)
    sys.exit("the receiver does not answer")


def lines():
    with open(FILE, "rb") as file:
        return file.read().count(b"\n")


receiver = start()
try:
    sender = subprocess.Popen(COMMAND, env={**os.environ, "OTLP": f"http://127.0.0.1:{PORT}"})
    for how in (signal.SIGKILL, signal.SIGTERM):
        before = lines()
        while lines() < before + 2 and sender.poll() is None:
            time.sleep(0.02)
        if sender.poll() is not None:
            sys.exit("the sender ended before the receiver was restarted")
        receiver.send_signal(how)
        receiver.wait()
        if how == signal.SIGKILL:
            # What a killed program may leave behind.
            with open(FILE, "ab") as file:
                file.write(b'{"resourceSpans":[{"scopeSp')
        time.sleep(0.5)
        receiver = start()
    if sender.wait(timeout=120):
        sys.exit(f"the sender ended with {sender.returncode}")
finally:
    receiver.send_signal(signal.SIGTERM)
    receiver.wait()
