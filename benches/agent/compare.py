"""Scores the same samples with karat, ragas and deepeval, each in a process of its own.

Throughput and peak memory of karat come from a small and a large file; memory must be flat: the peak
at the large size may exceed that at the small one by a tenth and 8 MB at most. Ratios come from the
same file, of a size that the peers finish, without start-up (of the peers what they count themselves, of
karat what is left beyond a file with one sample). Throughput is what counts: samples in a second of wall
time, each program as it ships, which karat does on all processors and the peers on one. Also shown are
the ratio of CPU seconds, user and system together, and that of the whole processes.
"""

import json
import os
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "target" / "agent-bench"
PACKAGES = ["ragas==0.4.3", "langchain-community<0.4.1", "deepeval==4.3.1"]
# The traces of the largest report, and the rate of scoring own traces with all scores.
REPORTED = 200_000
LEAST_RATE = 100_000
MOST_MEMORY_MB, MOST_JSON_MB = 1_500, 200
RAGAS = ["-m", "ragas.tool_call_accuracy", "-m", "ragas.tool_call_f1"]
DEEPEVAL = ["-m", "deepeval.tool_correctness|default|name+input"]
sys.path.insert(0, str(HERE.parent / "peers"))
import data  # noqa: E402  the peers' bench makes the same samples
import measure  # noqa: E402  and measures in the same way


def usage(arguments):
    """What a command used, and its output."""
    try:
        return measure.run_once([str(argument) for argument in arguments], FOLDER / "run")
    except measure.Failed as failure:
        sys.exit(str(failure))


def peers():
    """A Python with the peers."""
    python = FOLDER / "venv" / "bin" / "python"
    stamp = FOLDER / "installed"
    if not stamp.exists() or stamp.read_text() != "\n".join(PACKAGES):
        print("installing the peers from PyPI (some minutes, once)", file=sys.stderr)
        venv.create(FOLDER / "venv", with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
        stamp.write_text("\n".join(PACKAGES))
    return python


def native(path):
    """The same conversations as traces of karat's own format, with every score that needs no task."""
    path = Path(path)
    made = path.with_name(f"traces-{path.stem}.jsonl")
    if made.exists():
        return made
    beside = made.with_suffix(".part")
    with open(path, encoding="utf-8") as file, open(beside, "w", encoding="utf-8") as out:
        for number, line in enumerate(file):
            sample = json.loads(line)
            calls = [c for m in sample["user_input"] for c in m.get("tool_calls") or []]
            as_ours = [{"name": c["name"], "arguments": c["args"]} for c in calls]
            wanted = [{"name": c["name"], "arguments": c["args"]} for c in sample["reference_tool_calls"]]
            trace = {"id": f"t{number}", "calls": as_ours, "expect": {"calls": wanted}}
            out.write(json.dumps(trace) + "\n")
    beside.rename(made)
    return made


def flat(label, command, files, counts, least=0):
    """Prints rate and peak at both sizes; whether memory is flat and the larger one is fast enough."""
    peaks, rate = {}, 0
    for count in counts:
        used, output = usage([*command, files(count)])
        assert json.loads(output)["traces"] == count
        peaks[count], rate = used.peak_mb, count / used.elapsed_s
        print(f"karat, {label}: {count:,} traces, {used.elapsed_s:.2f} s, "
              f"{count / used.elapsed_s:,.0f} a second, {used.cpu_s:.2f} CPU s, "
              f"peak {used.peak_mb:.1f} MB", flush=True)
    small, large = (peaks[count] for count in counts)
    good = large <= small * 1.1 + 8
    print(f"memory {'is flat' if good else 'GROWS'}: {small:.1f} MB to {large:.1f} MB", flush=True)
    if least:
        fast = rate >= least
        print(f"{rate:,.0f} a second (at least {least:,}: {'yes' if fast else 'NO'})", flush=True)
        good &= fast
    return good


def report(karat, path, count):
    """Prints what one report with every trace takes, and comparing it with itself; whether it is little."""
    out = FOLDER / "report"
    used, _ = usage([karat, "agent", "score", path, "--out", out, "-q"])
    size = (out / "report.json").stat().st_size / 1e6
    good = count < REPORTED or (used.peak_mb <= MOST_MEMORY_MB and size <= MOST_JSON_MB)
    print(f"karat, one report: {count:,} traces, {used.elapsed_s:.1f} s, peak {used.peak_mb:,.0f} MB, "
          f"{size:,.0f} MB of JSON (at {REPORTED:,} at most {MOST_MEMORY_MB:,} and {MOST_JSON_MB}: "
          f"{'yes' if good else 'NO'})", flush=True)
    compared, text = usage([karat, "compare", out / "report.json", out / "report.json", "--json"])
    deltas = json.loads(text)["comparisons"][0]["deltas"]
    same = bool(deltas) and not any(one["delta"] or one.get("lost") for one in deltas)
    print(f"karat compare reads it twice: {compared.elapsed_s:.1f} s, peak {compared.peak_mb:,.0f} MB, "
          f"{len(deltas)} metrics, {'no difference' if same else 'A DIFFERENCE'}", flush=True)
    return good and same


def ratio(name, program, metrics, least, command, path, python):
    """Prints how many times as fast karat is on the same samples; whether that is enough."""
    one = FOLDER / "one.jsonl"
    with open(path, encoding="utf-8") as file:
        one.write_text(file.readline(), encoding="utf-8")

    # The least of five: karat's runs are so short that the machine's noise shows.
    def least_of(file):
        runs = [usage([*command, *metrics, file])[0] for _ in range(5)]
        return min(run.elapsed_s for run in runs), min(run.cpu_s for run in runs)

    (ours, ours_cpu), (start, start_cpu) = least_of(path), least_of(one)
    whole, output = usage([python, program, path])
    told = json.loads(output.splitlines()[-1])
    wall, cpu = told["work_wall_s"], told["work_cpu_s"]
    times = wall / (ours - start)
    good = times >= least
    print(f"{name}: {wall:.2f} s (CPU {cpu:.2f}), karat {ours - start:.3f} s "
          f"(CPU {ours_cpu - start_cpu:.3f}): {times:,.0f} times the throughput (at least {least}: "
          f"{'yes' if good else 'NO'}), {cpu / (ours_cpu - start_cpu):,.0f} times in CPU time, "
          f"{whole.elapsed_s / ours:,.0f} times with start-up", flush=True)
    return good


def main():
    karat, quick = str(Path(sys.argv[1]).resolve()), "--quick" in sys.argv
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    counts = (1_000, 100_000) if quick else (10_000, 1_000_000)
    sample = counts[1] // 10

    def samples(count):
        data.conversations(str(FOLDER), count)
        return str(FOLDER / f"conversations-{count}.jsonl")

    score = [karat, "agent", "score", "--means", "--json"]
    ragas = [*score, "--format", "ragas"]
    ok = flat("ragas samples", [*ragas, *RAGAS], samples, counts)
    ok &= flat("own traces, all scores", score, lambda count: native(samples(count)), counts, LEAST_RATE)
    reported = REPORTED // 10 if quick else REPORTED
    ok &= report(karat, native(samples(reported)), reported)
    python = peers()
    path = samples(sample)
    ok &= ratio("ragas", HERE.parent / "peers" / "peer_ragas.py", RAGAS, 30, ragas, path, python)
    ok &= ratio("deepeval", HERE / "peer_deepeval.py", DEEPEVAL, 200, ragas, path, python)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
