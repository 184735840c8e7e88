"""Runs that are cut short: `kill -9` at random points, damaged journals, full disks. A resumed run reports
the same bytes as one that was never interrupted, or is refused."""

import json
import pathlib
import shutil
import subprocess
import time

from common import BM25, environment, processes_with, retrieval, scratch, write

SLOW = """
import json, sys, time
asked = open("asked.log", "a")
for line in sys.stdin:
    question = json.loads(line)
    asked.write(question["id"] + "\\n")
    asked.flush()
    time.sleep(0.004)
    number = int(question["id"][1:])
    ranked = [{"tool_id": f"s:t{(number + step) % 7}"} for step in range(number % 5)]
    print(json.dumps({"id": question["id"], "ranked": ranked}), flush=True)
"""
ITEMS = 400
JOURNAL = "karat-report/journal/retrieval-r.jsonl"
REPORTS = ("karat-report/report.json", "karat-report/report.html")


def outcome(team, folder, *more):
    """How a check ends and what it reports."""
    ran = team.run(["check", *more], folder)
    found = [pathlib.Path(folder, name) for name in REPORTS]
    return ran, [path.read_bytes() if path.exists() else None for path in found]


def server_project():
    cases = "".join(
        f"  - {{id: c{n:04}, tool: add, input: {{a: {n}, b: 1}}, expect: {{json: $.sum, equals: {n + n % 5 // 4 + 1}}}}}\n"
        for n in range(ITEMS * 4)
    )
    project = '[[server]]\nname = "r"\nsuite = "suite.yaml"\nbuiltin = "demo"\n'
    return {"karat.toml": project, "suite.yaml": f"test_cases:\n{cases}"}


def killed(team):
    area = team.area("kill -9 at random points, then --resume")
    mark = f"slow-{team.seed}.py"
    slow = {**retrieval(ITEMS, f'{{ command = ["python3", "{mark}"] }}', "concurrency = 4\n"), mark: SLOW}
    for name, files, kills in (
        ("retrieval", slow, team.times(70, 700)),
        ("server", server_project(), team.times(30, 300)),
    ):
        with scratch() as whole, scratch() as folder:
            write(whole, files)
            reference, expected = outcome(team, whole)
            area.attempt(reference.code in (0, 1) and all(expected), f"{name}: an undisturbed run fails: {reference}")
            longest = reference.seconds
            write(folder, files)
            left, rounds = kills, 0
            while left:
                process = subprocess.Popen(
                    [team.karat, "check", "--resume"], cwd=folder, env=environment(),
                    stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                )  # fmt: skip
                try:
                    process.wait(area.random.uniform(0.01, longest * 0.9))
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
                    left -= 1
                    area.attempt(torn(folder) is None, f"{name}: {torn(folder)}")
                    if left:
                        continue
                # It has come to its end between two kills, or the last kill is done.
                rounds += 1
                ran, found = outcome(team, folder, "--resume")
                good = ran.code == reference.code and found == expected
                area.attempt(good, f"{name}: the resumed report is another one: {ran}")
                area.attempt(not temporary(folder), f"{name}: a whole run leaves {temporary(folder)}")
                shutil.rmtree(pathlib.Path(folder, "karat-report"))
            area.figure(f"{name}: {kills} kills, {rounds} reports compared")
    deadline = time.monotonic() + 10
    while processes_with(mark) and time.monotonic() < deadline:
        time.sleep(0.05)
    area.attempt(not processes_with(mark), f"programs are left over: {processes_with(mark)}")


def torn(folder):
    """What is wrong with the reports in a folder, if anything."""
    for name in REPORTS:
        path = pathlib.Path(folder, name)
        if path.exists() and name.endswith(".json"):
            try:
                json.loads(path.read_bytes())
            except ValueError as error:
                return f"{name} is torn: {error}"
    # A killed process leaves what it was writing; the next one that writes there removes it.
    left = temporary(folder)
    return f"left over: {left}" if len(left) > 1 else None


def temporary(folder):
    return [path.name for path in pathlib.Path(folder, "karat-report").glob("**/.karat-*")]


def damaged(team):
    area = team.area("damaged journals")
    with scratch() as folder:
        write(folder, retrieval(30, BM25))
        reference, expected = outcome(team, folder)
        journal = pathlib.Path(folder, JOURNAL)
        whole = journal.read_bytes()
        area.attempt(all(expected) and whole.count(b"\n") == 31, f"an undisturbed run fails: {reference}")

        def resumed(what, content, may_refuse=True):
            shutil.rmtree(pathlib.Path(folder, "karat-report"))
            write(folder, {JOURNAL: content})
            ran, found = outcome(team, folder, "--resume")
            same = ran.code == reference.code and found == expected
            refused = may_refuse and ran.code == 2 and b"jsonl" in ran.err and found == [None, None]
            area.attempt(ran.wrong() is None and (same or refused), f"{what}: {ran.wrong() or 'another report'}: {ran}")
            return refused

        for _ in range(team.times(40, 400)):
            cut = area.random.randrange(len(whole))
            # Within the first line there is nothing to go on from.
            resumed(f"cut at {cut}", whole[:cut], may_refuse=False)
        flips, refused = team.times(120, 1200), 0
        for _ in range(flips):
            content = bytearray(whole)
            for _ in range(area.random.randint(1, 3)):
                content[area.random.randrange(len(content))] ^= 1 << area.random.randrange(8)
            refused += resumed("flipped bits", bytes(content))
        area.figure(f"{refused} of {flips} with flipped bits refused, the others gave the same report")
        first, rest = whole.split(b"\n", 1)
        for what, content in {
            "zeros at the end": whole + bytes(512),
            "zeros within": whole[:1000] + bytes(64) + whole[1064:],
            "CRLF": whole.replace(b"\n", b"\r\n"),
            "a byte order mark": b"\xef\xbb\xbf" + whole,
            "doubled": whole + whole,
            "lines in another order": first + b"\n" + b"\n".join(reversed(rest.strip().split(b"\n"))) + b"\n",
            "a line twice": whole + rest.split(b"\n")[3] + b"\n",
            "a blank line": whole.replace(b"\n", b"\n\n", 3),
            "empty": b"",
            "of another kind": b'{"schema": "karat.journal/3", "kind": "agent"}\n',
            "of a later version": whole.replace(b"karat.journal/3", b"karat.journal/9", 1),
            "without its first line": rest,
            "a line of 4 MB": whole + b"x" * (4 << 20) + b"\n",
        }.items():
            resumed(what, content)


def disk_full(team):
    area = team.area("full disk, then --resume")
    with scratch() as whole, scratch() as folder:
        items = retrieval(200, BM25)
        write(whole, items)
        reference, expected = outcome(team, whole)
        size = sum(path.stat().st_size for path in pathlib.Path(whole, "karat-report").rglob("*") if path.is_file())
        write(folder, items)
        pathlib.Path(folder, "karat-report").mkdir()
        kept = pathlib.Path(folder, "kept")
        full = 0
        for step in range(team.times(10, 40)):
            room = max(4096, int(size * area.random.uniform(0.0, 1.0)))
            shutil.rmtree(kept, ignore_errors=True)
            # A small file system of its own; what is in it is copied out before it is gone.
            script = f"{team.karat} check; code=$?; cp -r karat-report kept; exit $code"
            bwrap = ["bwrap", "--dev-bind", "/", "/", "--size", str(room), "--tmpfs", f"{folder}/karat-report", "sh", "-c"]
            ran = team.run([script], folder, program=bwrap)
            reports = [kept / pathlib.Path(name).name for name in REPORTS]
            if not kept.exists():
                area.attempt(False, f"no small file system: {ran}")
                continue
            full += ran.code == 2
            area.attempt(ran.wrong() is None and ran.code in (reference.code, 2), f"{room} bytes: {ran}")
            whole_or_none = all(not path.exists() or path.read_bytes() == same for path, same in zip(reports, expected))
            area.attempt(whole_or_none, f"{room} bytes: a torn report")
            area.attempt(ran.code != 2 or b"o space" in ran.err, f"{room} bytes: the message does not say why: {ran}")
            shutil.rmtree(pathlib.Path(folder, "karat-report"))
            kept.rename(pathlib.Path(folder, "karat-report"))
            ran, found = outcome(team, folder, "--resume")
            area.attempt(ran.code == reference.code and found == expected, f"{room} bytes, then room: another report: {ran}")
            shutil.rmtree(pathlib.Path(folder, "karat-report"))
            pathlib.Path(folder, "karat-report").mkdir()
        area.attempt(full > 0, "the disk was never full")
        area.figure(f"full {full} times, up to {size >> 10} KB needed")


def run(team):
    killed(team)
    damaged(team)
    disk_full(team)
