"""Scores the same samples with karat, ragas and deepeval, each in a process of its own.

Throughput and peak memory of karat come from a small and a large file; memory must be flat: the peak
at the large size may exceed that at the small one by a tenth and 8 MB at most. Ratios come from the
same file, of a size that the peers finish: once without start-up (of the peers what they count
themselves, of karat what is left beyond a file with one sample), and once with everything that a user
waits for. Times are CPU seconds of user and system together.
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
RAGAS = ["-m", "ragas.tool_call_accuracy", "-m", "ragas.tool_call_f1"]
DEEPEVAL = ["-m", "deepeval.tool_correctness|default|name+input"]
sys.path.insert(0, str(HERE.parent / "peers"))
import data  # noqa: E402  the peers' bench makes the same samples
import measure  # noqa: E402  and measures in the same way


def usage(arguments):
    """CPU seconds, peak MB and output of a command."""
    try:
        used, output = measure.run_once([str(argument) for argument in arguments], FOLDER / "run")
    except measure.Failed as failure:
        sys.exit(str(failure))
    return used.cpu_s, used.peak_mb, output


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


def flat(label, command, files, counts):
    """Prints rate and peak at both sizes; whether memory is flat."""
    peaks = {}
    for count in counts:
        cpu, peaks[count], output = usage([*command, files(count)])
        assert json.loads(output)["traces"] == count
        print(f"karat, {label}: {count:,} traces, {cpu:.2f} CPU s, {count / cpu:,.0f} per CPU s, "
              f"peak {peaks[count]:.1f} MB", flush=True)
    small, large = (peaks[count] for count in counts)
    good = large <= small * 1.1 + 8
    print(f"memory {'is flat' if good else 'GROWS'}: {small:.1f} MB to {large:.1f} MB", flush=True)
    return good


def ratio(name, program, metrics, least, command, path, python):
    """Prints how many times as fast karat is on the same samples; whether that is enough."""
    one = FOLDER / "one.jsonl"
    with open(path, encoding="utf-8") as file:
        one.write_text(file.readline(), encoding="utf-8")
    # The least of five: karat's runs are so short that the machine's noise shows.
    least_of = lambda file: min(usage([*command, *metrics, file])[0] for _ in range(5))  # noqa: E731
    ours, start = least_of(path), least_of(one)
    whole, _, output = usage([python, program, path])
    work = json.loads(output.splitlines()[-1])["work_cpu_s"]
    times = work / (ours - start)
    good = times >= least
    print(f"{name}: {work:.2f} CPU s and {whole - work:.2f} to start, karat {ours - start:.3f} and "
          f"{start:.3f}: {times:,.0f} times as fast without start-up (at least {least}: "
          f"{'yes' if good else 'NO'}), {whole / ours:,.0f} times with it", flush=True)
    return good


def main():
    karat, quick = str(Path(sys.argv[1]).resolve()), "--quick" in sys.argv
    FOLDER.mkdir(parents=True, exist_ok=True)
    os.environ["DEEPEVAL_TELEMETRY_OPT_OUT"] = "YES"
    counts = (1_000, 100_000) if quick else (10_000, 1_000_000)
    sample = counts[0]

    def samples(count):
        data.conversations(str(FOLDER), count)
        return str(FOLDER / f"conversations-{count}.jsonl")

    score = [karat, "agent", "score", "--means", "--json"]
    ragas = [*score, "--format", "ragas"]
    ok = flat("ragas samples", [*ragas, *RAGAS], samples, counts)
    ok &= flat("own traces, all scores", score, lambda count: native(samples(count)), counts)
    python = peers()
    path = samples(sample)
    ok &= ratio("ragas", HERE.parent / "peers" / "peer_ragas.py", RAGAS, 20, ragas, path, python)
    ok &= ratio("deepeval", HERE / "peer_deepeval.py", DEEPEVAL, 200, ragas, path, python)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
