"""Karat's own servers on 127.0.0.1 under clients that do not behave: 1,000 at once, half-sent requests, idle
connections, bodies without end, foreign pages, a dashboard with a token."""

import contextlib
import json
import os
import pathlib
import selectors
import socket
import subprocess
import time

from common import BM25, descriptors, environment, retrieval, rss_mb, scratch, write

CLIENTS = 1000
# Karat's time-out of a request that does not come, and some more.
PATIENCE = 45


def post(path, body, kind="application/json", more=""):
    head = f"POST {path} HTTP/1.1\r\nHost: localhost:{{port}}\r\nContent-Type: {kind}\r\nAccept: application/json, text/event-stream\r\n{more}"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}"


PING = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"})
SPANS = json.dumps({"resourceSpans": []})
GET = "GET /{path} HTTP/1.1\r\nHost: localhost:{{port}}\r\n{more}Connection: close\r\n\r\n"

# By name: the command, the request that is answered with 200, and the head of one that is not finished.
SERVERS = {
    "serve": (["serve", "report.json", "--port", "0"], GET.format(path="", more="")),
    "demo-server": (["demo-server", "--http", "127.0.0.1:0"], post("/mcp", PING)),
    "corpus serve": (["corpus", "serve", "bundled:tools/v1", "--http", "127.0.0.1:0", "--json"], post("/github/mcp", PING)),
    "agent listen": (["agent", "listen", "--port", "0"], post("/v1/traces", SPANS)),
}


@contextlib.contextmanager
def started(team, folder, words):
    """A server with the usual number of descriptors; gives its process, its port, and what it printed."""
    process = subprocess.Popen(
        ["prlimit", "--nofile=1024", team.karat, *words], cwd=folder, env=environment(),
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        printed = process.stdout.readline()
        port = int(printed.split("127.0.0.1:")[1].split("/")[0].split('"')[0].strip())
        yield process, port, printed
    finally:
        process.kill()
        process.wait()


def connect(port):
    one = socket.socket()
    # A busy machine takes its time to accept.
    one.settimeout(60)
    one.connect(("127.0.0.1", port))
    return one


def ask(port, text, seconds=40):
    """The status of one request; 0 if none comes."""
    try:
        with connect(port) as one:
            one.settimeout(seconds)
            one.sendall(text.replace("{port}", str(port)).encode())
            return int(one.recv(64).split(b" ")[1])
    except (OSError, IndexError, ValueError):
        return 0


def at_once(port, text, count, seconds=60):
    """Opens all connections, sends on all, and counts the answers by their status."""
    request = text.replace("{port}", str(port)).encode()
    select, open_ones, statuses = selectors.DefaultSelector(), {}, {}
    for _ in range(count):
        one = socket.socket()
        one.setblocking(False)
        one.connect_ex(("127.0.0.1", port))
        select.register(one, selectors.EVENT_WRITE)
        open_ones[one] = b""
    deadline = time.monotonic() + seconds

    def ended(one, status):
        statuses[status] = statuses.get(status, 0) + 1
        select.unregister(one)
        one.close()
        del open_ones[one]

    while open_ones and time.monotonic() < deadline:
        for key, events in select.select(1):
            one = key.fileobj
            try:
                if events & selectors.EVENT_WRITE:
                    one.send(request)
                    select.modify(one, selectors.EVENT_READ)
                    continue
                part = one.recv(65536)
                open_ones[one] += part[: 64 if not open_ones[one] else 0]
                if not part:
                    ended(one, int((open_ones[one].split(b" ") + [b"0", b"0"])[1] or 0))
            except BlockingIOError:
                continue
            except (OSError, ValueError) as error:
                ended(one, type(error).__name__)
    for one in list(open_ones):
        ended(one, "no answer")
    return statuses


def clients(team, folder):
    area = team.area("1,000 clients at once")
    for name, (words, request) in SERVERS.items():
        with started(team, folder, words) as (process, port, _):
            for _ in range(team.times(1, 10)):
                began = time.monotonic()
                statuses = at_once(port, request, CLIENTS)
                area.tried += CLIENTS - 1
                area.attempt(statuses == {200: CLIENTS}, f"{name}: {statuses}")
                taken = time.monotonic() - began
            time.sleep(1.5)
            area.attempt(descriptors(process.pid) < 40, f"{name}: {descriptors(process.pid)} descriptors are left open")
            area.attempt(rss_mb(process.pid) < 200, f"{name}: {rss_mb(process.pid):.0f} MB")
            area.figure(f"{name}: {CLIENTS} answers in {taken:.1f} s, {rss_mb(process.pid):.0f} MB, {descriptors(process.pid)} descriptors afterwards")


def slow(team, folder):
    area = team.area("half-sent requests and idle connections")
    with contextlib.ExitStack() as all_of_them:
        running = {}
        for name, (words, request) in SERVERS.items():
            process, port, _ = all_of_them.enter_context(started(team, folder, words))
            whole = request.replace("{port}", str(port))
            head, body = whole.split("\r\n\r\n", 1)
            kinds = {
                "nothing": b"",
                "half a line": whole[:9].encode(),
                "half a head": head[:40].encode(),
                "half a body": (head.replace(f"Content-Length: {len(body)}", "Content-Length: 5000") + "\r\n\r\nabc").encode(),
                "an answer, then nothing": whole.replace("Connection: close\r\n", "").encode(),
            }
            if not body:
                del kinds["half a body"]
            held = {}
            for kind, text in kinds.items():
                held[kind] = [connect(port) for _ in range(1100 // len(kinds) if team.long else 150)]
                for one in held[kind]:
                    one.sendall(text)
            running[name] = (process, port, request, held)
        for name, (process, port, request, held) in running.items():
            # More than the server takes at a time, and still the next client is answered.
            area.attempt(ask(port, request) == 200, f"{name}: no answer while connections are held")
        began = time.monotonic()
        for name, (process, port, _, held) in running.items():
            for kind, ones in held.items():
                closed = sum(is_closed(one, began + PATIENCE) for one in ones)
                area.tried += len(ones) - 1
                area.attempt(closed == len(ones), f"{name}, {kind}: {len(ones) - closed} of {len(ones)} are still held")
            time.sleep(0.3)
            area.attempt(descriptors(process.pid) < 40, f"{name}: {descriptors(process.pid)} descriptors are left open")


def is_closed(one, deadline):
    """Whether the server closes a connection until then."""
    with one:
        while (left := deadline - time.monotonic()) > 0:
            one.settimeout(left)
            try:
                if not one.recv(65536):
                    return True
            except TimeoutError:
                return False
            except OSError:
                return True
    return False


def refused(team, folder):
    area = team.area("foreign pages, large bodies, tokens")
    for name, (words, request) in SERVERS.items():
        with started(team, folder, words) as (process, port, _):
            foreign = request.replace("\r\n", "\r\nOrigin: http://evil.example\r\n", 1)
            rebound = request.replace("localhost:{port}", "evil.example:{port}")
            area.attempt(ask(port, rebound) == 403, f"{name}: answers a foreign Host")
            if request.startswith("POST"):
                area.attempt(ask(port, foreign) == 403, f"{name}: answers a foreign Origin")
                plain = request.replace("application/json\r\n", "text/plain\r\n", 1)
                area.attempt(ask(port, plain) in (403, 415), f"{name}: takes text/plain of any page")
                large = request.split("Content-Length")[0] + "Content-Length: 4000000000\r\n\r\n"
                area.attempt(ask(port, large) in (413, 400), f"{name}: a body of 4 GB is waited for")
            for bad in ("\x00\x01\x02\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET / HTTP/1.1\r\n" + "a: b\r\n" * 5000 + "\r\n", "GET /" + "a" * 500_000 + " HTTP/1.1\r\n\r\n",
                        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nabcde", "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n"):
                ask(port, bad, 5)
            area.attempt(ask(port, request) == 200, f"{name}: no answer after malformed requests")
            area.attempt(process.poll() is None and rss_mb(process.pid) < 200, f"{name}: {process.poll()}")
    with started(team, folder, ["serve", "report.json", "--port", "0", "--token"]) as (_, port, printed):
        token = printed.strip().split("token=")[1]
        get = lambda path="", more="": ask(port, GET.format(path=path, more=more))  # noqa: E731
        for path in ("", "runs", "runs/1", "runs/1/report", "runs/1/report.json", "style.css", "compare", "none"):
            area.attempt(get(path) == 401, f"/{path} without the token: {get(path)}")
        for more in (f"Authorization: Bearer {token[:-1]}x\r\n", "Authorization: Bearer \r\n", f"Cookie: karat-1={token}\r\n", f"Authorization: Basic {token}\r\n"):
            area.attempt(get("", more) == 401, f"with {more!r}")
        area.attempt(get("runs?token=" + token) == 401, "the token in the address of another page")
        area.attempt(get("?token=" + token) == 303, "the printed address is refused")
        area.attempt(get("runs", f"Authorization: Bearer {token}\r\n") == 200, "the token in a header is refused")
        area.attempt(get("runs", f"Cookie: karat-{port}={token}\r\n") == 200, "the token in a cookie is refused")
        words = ["serve", "report.json", "--port", str(port), "--token"]
        area.attempt(team.run(words, folder, seconds=10).code == 2, "a taken port is not refused")


def run(team):
    with scratch() as folder:
        write(folder, retrieval(8, BM25))
        ran = team.run(["check"], folder)
        if ran.code != 0:
            raise SystemExit(f"redteam: the project for servers is wrong: {ran}")
        os.rename(pathlib.Path(folder, "karat-report/report.json"), pathlib.Path(folder, "report.json"))
        clients(team, folder)
        refused(team, folder)
        slow(team, folder)
