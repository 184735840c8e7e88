"""Scores the same RAGAS samples with karat, ragas and deepeval, each in a process of its own.

Memory must be flat: the peak at the large size may exceed that at the small one by a tenth at most.
Peers are given a number of samples that they finish; their throughput is what counts. Rates are
samples per CPU second without interpreter start and imports, which favours the peers.
"""

import json
import os
import resource
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FOLDER = ROOT / "target" / "agent-bench"
PACKAGES = ["ragas==0.4.3", "langchain-community<0.4.1", "deepeval==4.3.1"]
sys.path.insert(0, str(HERE.parent / "peers"))
import data  # noqa: E402  the peers' bench makes the same samples


def usage(arguments, **options):
    """CPU seconds, peak MB and output of a command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True, **options)
    output = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{arguments[0]} ended with {status}")
    del before
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024, output


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


def main():
    karat, quick = sys.argv[1], "--quick" in sys.argv
    FOLDER.mkdir(parents=True, exist_ok=True)
    small, large = (1_000, 100_000) if quick else (10_000, 1_000_000)
    sample = small if quick else 10_000
    files = {}
    for count in {small, large, sample}:
        data.conversations(str(FOLDER), count)
        files[count] = str(FOLDER / f"conversations-{count}.jsonl")
    command = [karat, "agent", "score", "--format", "ragas", "--means", "--json"]
    metrics = ["-m", "ragas.tool_call_accuracy", "-m", "ragas.tool_call_f1"]
    peaks, rate = {}, 0.0
    for count in (small, large):
        cpu, peak, output = usage([*command, *metrics, files[count]])
        assert json.loads(output)["traces"] == count
        peaks[count], rate = peak, count / cpu
        print(f"karat: {count:,} traces, {cpu:.2f} CPU s, {rate:,.0f} per CPU s, peak {peak:.1f} MB")
    cpu, _, output = usage([*command, "-m", "deepeval.tool_correctness|default|name+input", files[large]])
    deepeval_rate = large / cpu
    print(f"karat, deepeval's metric: {deepeval_rate:,.0f} per CPU s")
    ok = peaks[large] <= peaks[small] * 1.1 + 8
    print(f"memory {'is flat' if ok else 'GROWS'}: {peaks[small]:.1f} MB to {peaks[large]:.1f} MB")
    python = peers()
    quiet = os.environ | {"RAGAS_DO_NOT_TRACK": "true", "DEEPEVAL_TELEMETRY_OPT_OUT": "YES"}
    programs = [
        ("ragas", HERE.parent / "peers" / "peer_ragas.py", rate, 20),
        ("deepeval", HERE / "peer_deepeval.py", deepeval_rate, 200),
    ]
    for name, program, ours, least in programs:
        _, _, output = usage([python, program, files[sample]], env=quiet)
        theirs = sample / json.loads(output.splitlines()[-1])["work_cpu_s"]
        ratio = ours / theirs
        good = ratio >= least
        ok = ok and good
        print(f"{name}: {theirs:,.0f} per CPU s; karat is {ratio:,.0f} times as fast "
              f"(at least {least}: {'yes' if good else 'NO'})")
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
