"""The built-in detectors and Cisco's YARA analyzer on the same definitions, in turns.

Two comparisons in one run. Throughput: how many definitions a process of each reads in a second of wall
time on this machine, the detectors on all its processors, the analyzer in its process as it ships, which
uses one. That is what a user waits for; it depends on the number of processors and on what else runs.
And CPU time of one thread each, which a busy machine disturbs little: what the work costs. The definitions
are those of the bundled corpora (datasets/tools/v1 and datasets/threats/v1), again from the start until
there are enough. The best round of each counts. Start-up is left out for both.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "target" / "live" / "scanners"


def write_definitions(path):
    """Every definition of the bundled corpora, one line each; says how many."""
    lines = []
    for file in sorted((ROOT / "datasets/tools/v1/tools").glob("*.json")):
        document = json.loads(file.read_text(encoding="utf-8"))
        server = document["server"]["name"]
        for entry in document["tools"]:
            tool = {"name": entry["tool"], "description": entry["description"]}
            for key in ("title", "input_schema", "output_schema", "annotations"):
                if entry.get(key) is not None:
                    tool[key] = entry[key]
            if entry.get("schema") is not None:
                tool["input_schema"] = entry["schema"]
            lines.append({"id": f"{server}:{entry['tool']}", "server": server, "tool": tool})
    for file in sorted((ROOT / "datasets/threats/v1/entries").glob("*.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines():
            entry = json.loads(line)
            lines.append({"id": entry["id"], "server": entry.get("server", ""), "tool": entry["tool"]})
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return len(lines), len(text.encode()) / len(lines)


class Worker:
    """A program that does a round for every line that it is sent."""

    def __init__(self, command):
        self.process = subprocess.Popen(
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def round(self, how):
        self.process.stdin.write(how + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"{self.process.args[0]} ended with {self.process.wait()}")
        return json.loads(line)

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def table(title, key, chosen, rounds, names):
    """Prints the best round of each by one measure; returns the seconds."""
    print(f"{title:<34}{'µs each':>9}{'per second':>12}{'peak MB':>9}{'flagged':>9}")
    best = {name: min(rounds[name], key=lambda one: one[key]) for name in chosen}
    for name, one in best.items():
        each = one[key] / one["definitions"]
        peak = one["peak_kib"] * 1024 / 1e6
        print(f"{names[name]:<34}{each * 1e6:>9.2f}{1 / each:>12.0f}{peak:>9.1f}{one['flagged']:>9}")
    return {name: one[key] for name, one in best.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a tenth of the definitions")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--at-least", type=float, default=0, help="end with 1 if the ratio of throughputs is smaller")
    parser.add_argument("--json", metavar="FILE", help="every round")
    arguments = parser.parse_args()
    count = 10_000 if arguments.quick else 100_000

    subprocess.run([HERE / "install"], check=True)
    build = ["cargo", "build", "--release", "--quiet", "-p", "karat-detectors", "--example", "throughput"]
    target = Path(os.environ.get("CARGO_TARGET_DIR") or ROOT / "target")
    subprocess.run([*build, "--target-dir", target], cwd=ROOT, check=True)
    file = FOLDER / "definitions.jsonl"
    distinct, size = write_definitions(file)
    print(f"{count} definitions ({distinct} distinct, {size:.0f} bytes of JSON each on average)")

    throughput = [target / "release/examples/throughput", file, count]
    workers = {
        "karat": (Worker(throughput), "one"),
        "cisco": (Worker([FOLDER / "cisco/bin/python", HERE / "cisco.py", file, count]), "one"),
        # A process of its own, so that its memory is its own.
        "karat on all": (Worker(throughput), "all"),
    }
    rounds = {name: [] for name in workers}
    load = [os.getloadavg()[0]]
    for _ in range(arguments.rounds):
        for name, (worker, how) in workers.items():
            rounds[name].append(worker.round(how))
        load.append(os.getloadavg()[0])
    for worker, _ in workers.values():
        worker.end()

    processors = len(os.sched_getaffinity(0))
    names = {
        "karat": "karat, 8 detectors, one thread",
        "cisco": "cisco-ai-mcp-scanner, YARA",
        "karat on all": f"karat, 8 detectors, {processors} processors",
    }
    wall = table("throughput (wall time)", "wall_seconds", ["karat on all", "cisco"], rounds, names)
    wall_ratio = wall["cisco"] / wall["karat on all"]
    print(f"karat reads {wall_ratio:.1f} times as many definitions in the same time on {processors} processors\n")
    cpu = table("CPU time", "cpu_seconds", ["karat", "cisco"], rounds, names)
    ratio = cpu["cisco"] / cpu["karat"]
    print(f"karat reads {ratio:.1f} times as many definitions in the same CPU time, one thread each")
    print(f"load of the machine (one-minute average): {min(load):.1f} to {max(load):.1f}")
    if arguments.json:
        document = {"ratio": ratio, "wall_ratio": wall_ratio, "processors": processors, "load": load, "rounds": rounds}
        Path(arguments.json).write_text(json.dumps(document, indent=1) + "\n")
    if wall_ratio < arguments.at_least:
        sys.exit(f"that is less than {arguments.at_least:g}")


main()
