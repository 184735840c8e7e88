"""The comparison: what is run on what, and what is printed.

Exit codes: 0 measured, 1 the numbers do not agree, 2 bad usage or something could not be run.
"""

import argparse
import json
import os
import platform
import sys
from dataclasses import asdict

import agreement
import environment
import karat_output
import measure
from measure import Command

# karat, pytrec_eval and ir_measures, each in its own words.
MEASURES = [
    ("recall@5", "recall_5", "R@5"),
    ("recall@10", "recall_10", "R@10"),
    ("ndcg@10", "ndcg_cut_10", "nDCG@10"),
    ("map", "map", "AP"),
    ("mrr", "recip_rank", "RR"),
    ("p@10", "P_10", "P@10"),
    ("success@5", "success_5", "Success@5"),
]
CALL_METRICS = ["ragas.tool_call_accuracy", "ragas.tool_call_f1"]

QUERIES, RESULTS, SAMPLES = 10_000, 100, 100_000
SCALE_QUERIES, SCALE_RESULTS = (10_000, 100_000, 1_000_000), 10


def main():
    options = arguments()
    try:
        page = options.page and parted(options.page)
        report = scale(options) if options.scale else compare(options)
    except agreement.Disagreement as error:
        print(f"benches/peers/run: {error}", file=sys.stderr)
        return 1
    except measure.Failed as error:
        print(f"benches/peers/run: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(report, file, indent=2)
            file.write("\n")
    if page:
        with open(options.page, "w", encoding="utf-8") as file:
            file.write(markdown(report).join(page))
    return 0


def arguments():
    parser = argparse.ArgumentParser(
        prog="benches/peers/run",
        description="Compare karat with pytrec_eval, ir_measures and ragas: numbers, CPU time, memory.",
    )
    parser.add_argument("--quick", action="store_true", help="a tenth of the data")
    parser.add_argument("--scale", action="store_true", help="karat alone, at three sizes, each ten times the last")
    parser.add_argument("--peers-only", action="store_true", help="only the peers, without ratios")
    parser.add_argument("--rounds", type=positive, default=3, help="complete runs of each, the best counts (3)")
    parser.add_argument("--karat", metavar="PATH", help="measure this binary instead of building one")
    parser.add_argument("--json", metavar="FILE", help="write everything measured to FILE")
    parser.add_argument("--page", metavar="FILE", help="put the tables between the marks of this Markdown page")
    options = parser.parse_args()
    if options.page and (options.scale or options.peers_only or options.quick):
        parser.error("--page is for a whole comparison")
    if options.peers_only and (options.scale or options.karat):
        parser.error("--peers-only leaves karat out, --scale and --karat ask for it")
    if options.json and not os.access(os.path.dirname(os.path.abspath(options.json)), os.W_OK):
        parser.error(f"cannot write {options.json}")
    return options


def positive(text):
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


# ---------------------------------------------------------------- what is run


def compare(options):
    """karat against the peers, on rankings and on tool calls."""
    tenth = 10 if options.quick else 1
    programs = environment.peers(say)
    binary = None if options.peers_only else karat(options)
    report = about(options, binary) | {"peers": environment.peer_versions(programs), "comparisons": []}
    for prepare in (rankings, conversations):
        title, made, commands, metrics = prepare(programs, binary, tenth)
        measure.interleave(commands, options.rounds, environment.FOLDER, say)
        agreement.require(commands, metrics)
        agreement.require_known(commands, made["means"])
        rows = table_rows(commands, binary is not None)
        print_table(title, rows, report["smallest_measurable_mb"])
        if len(commands) > 1:
            print(f"The means agree to {agreement.TOLERANCE:g}.", flush=True)
        report["comparisons"].append(
            {
                "title": title,
                "files": named(made["files"]),
                "means": {metric: commands[-1].means[0][metric] for metric in metrics},
                "rows": rows,
                "rounds": {one.name: [asdict(usage) for usage in one.usages] for one in commands},
            }
        )
    return report


def rankings(programs, binary, tenth):
    say("making the rankings")
    made = environment.data("rankings", QUERIES // tenth, RESULTS)
    qrels, run = (file["path"] for file in made["files"])
    ours, pytrec, irm = zip(*MEASURES, strict=True)
    commands = [
        Command(
            "pytrec_eval",
            [programs / "python", "-I", environment.HERE / "peer_pytrec_eval.py", qrels, run, *pytrec],
            lambda output: (renamed(json.loads(output)["means"], pytrec, ours), json.loads(output)["work_cpu_s"]),
        ),
        Command(
            "ir_measures command line",
            [programs / "ir_measures", qrels, run, *irm, "--output_format", "jsonl"],
            lambda output: (renamed(ir_measures_means(output), irm, ours), None),
        ),
    ]
    if binary:
        commands.insert(0, karat_on_rankings(binary, qrels, run))
    title = f"Rankings: {QUERIES // tenth:,} queries x {RESULTS} results, {len(MEASURES)} measures"
    return title, made, commands, ours


def karat_on_rankings(binary, qrels, run):
    asked = [word for ours, _, _ in MEASURES for word in ("-m", ours)]
    return Command(
        "karat retrieval trec",
        [binary, "retrieval", "trec", "--qrels", qrels, "--run", run, *asked, "--json"],
        lambda output: (karat_output.means(output), None),
    )


def conversations(programs, binary, tenth):
    say("making the tool calls")
    made = environment.data("conversations", SAMPLES // tenth)
    path = made["files"][0]["path"]
    commands = [
        Command(
            "ragas",
            [programs / "python", "-I", environment.HERE / "peer_ragas.py", path],
            lambda output: (
                {f"ragas.{name}": mean for name, mean in json.loads(output)["means"].items()},
                json.loads(output)["work_cpu_s"],
            ),
        )
    ]
    if binary:
        karat_command = Command(
            "karat agent score",
            # The two metrics that ragas is asked for, and no others.
            [binary, "agent", "score", "--format", "ragas", path, "--means", "--json"]
            + ["-m", "ragas.tool_call_accuracy", "-m", "ragas.tool_call_f1"],
            lambda output: (karat_output.means(output), None),
        )
        commands.insert(0, karat_command)
    title = f"Tool calls: {SAMPLES // tenth:,} RAGAS samples x 3 calls, accuracy and F1"
    return title, made, commands, CALL_METRICS


def ir_measures_means(output):
    lines = map(json.loads, output.splitlines())
    return {line["measure"]: line["value"] for line in lines}


def renamed(means, theirs, ours):
    return {our: means[their] for our, their in zip(ours, theirs, strict=True)}


def scale(options):
    """karat alone on ever larger rankings: does time grow in line, does memory stay?

    There is no peer here, so the means are checked against those that the maker of the data knows.
    """
    tenth = 10 if options.quick else 1
    binary = karat(options)
    report = about(options, binary) | {"scale": []}
    commands, data = [], []
    sizes = [size // tenth for size in SCALE_QUERIES]
    for queries in sizes:
        say(f"making rankings of {queries:,} queries")
        data.append(environment.data("rankings", queries, SCALE_RESULTS))
        command = karat_on_rankings(binary, *(file["path"] for file in data[-1]["files"]))
        command.name = f"karat retrieval trec, {queries:,} queries"
        commands.append(command)
    measure.interleave(commands, options.rounds, environment.FOLDER, say)
    for command, made in zip(commands, data, strict=True):
        agreement.require_known([command], made["means"])
    print(f"\nkarat retrieval trec, {SCALE_RESULTS} results a query, sorted by query")
    print(f"{'queries':>12}{'lines':>14}{'CPU s':>10}{'CPU s / million lines':>24}{'peak MB':>10}")
    for queries, command, made in zip(sizes, commands, data, strict=True):
        lines = sum(file["lines"] for file in made["files"])
        cpu, peak = command.best("cpu_s"), command.best("peak_mb")
        per_million = cpu / lines * 1e6
        shown = peak_text(peak, report["smallest_measurable_mb"])
        print(f"{queries:>12,}{lines:>14,}{cpu:>10.3f}{per_million:>24.3f}{shown:>10}")
        report["scale"].append(
            {
                "queries": queries,
                "lines": lines,
                "cpu_s": cpu,
                "cpu_s_per_million_lines": per_million,
                "peak_mb": peak,
                "files": named(made["files"]),
                "rounds": [asdict(usage) for usage in command.usages],
            }
        )
    print("Lines: run and judgements together. The means are those the maker of the data knows.")
    return report


def karat(options):
    if options.karat:
        return os.path.abspath(options.karat)
    return environment.karat(say)


# ---------------------------------------------------------------- the report


def table_rows(commands, with_karat):
    """A row for each program; two where its work can be separated from its start-up."""
    rows = []
    for command in commands:
        work, whole, peak = (command.best(what) for what in ("work_cpu_s", "cpu_s", "peak_mb"))
        if work is not None:
            rows.append({"tool": f"{command.name}, work alone", "cpu_s": work, "peak_mb": peak})
            rows.append({"tool": f"{command.name}, whole process", "cpu_s": whole, "peak_mb": peak})
        else:
            rows.append({"tool": command.name, "cpu_s": whole, "peak_mb": peak})
    for row in rows:
        row["ratio"] = row["cpu_s"] / rows[0]["cpu_s"] if with_karat else None
    return rows


def print_table(title, rows, smallest_mb):
    print(f"\n{title}")
    print(f"{'tool':<32}{'CPU s':>10}{'peak MB':>10}{'x karat':>10}")
    for row in rows:
        ratio = "-" if row["ratio"] is None else f"{row['ratio']:.1f}"
        peak = peak_text(row["peak_mb"], smallest_mb)
        print(f"{row['tool']:<32}{row['cpu_s']:>10.3f}{peak:>10}{ratio:>10}")


def parted(path):
    """The page before and behind its figures."""
    begin, end = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"
    with open(path, encoding="utf-8") as file:
        page = file.read()
    if page.count(begin) != 1 or page.count(end) != 1:
        raise measure.Failed(f"{path} must have the lines {begin.strip()} and {end.strip()} once each")
    before, rest = page.split(begin)
    return before + begin, end + rest.split(end)[1]


def markdown(report):
    machine = report["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report["peers"].items()))
    lines = [
        f"{report['karat']}, {versions}; Python {report['python']}; "
        f"{machine['cores']} cores; best of {report['rounds']} runs each."
    ]
    for one in report["comparisons"]:
        lines += ["", f"**{one['title']}**", "", "| | CPU s | peak MB | × Karat |", "| --- | ---: | ---: | ---: |"]
        for row in one["rows"]:
            peak = peak_text(row["peak_mb"], report["smallest_measurable_mb"]).replace("<=", "≤")
            lines.append(f"| {row['tool']} | {row['cpu_s']:.2f} | {peak} | {row['ratio']:.1f} |")
    return "\n" + "\n".join(lines) + "\n\n"


def peak_text(peak, smallest_mb):
    """A peak, or the smallest that could be measured if it is no larger."""
    return f"<= {peak:.0f}" if peak <= smallest_mb * 1.02 else f"{peak:.0f}"


def about(options, binary):
    """Where and how this was measured."""
    return {
        "schema": "karat.peers/1",
        "karat": environment.karat_version(binary) if binary else None,
        "rounds": options.rounds,
        "quick": options.quick,
        "python": platform.python_version(),
        "machine": {
            "system": f"{platform.system()} {platform.release()} {platform.machine()}",
            "processor": processor(),
            "cores": os.cpu_count(),
            "load_before": os.getloadavg()[0],
        },
        "smallest_measurable_mb": measure.smallest_measurable_mb(environment.FOLDER),
    }


def named(files):
    """The files by their names, without this machine's folders."""
    return [file | {"path": os.path.basename(file["path"])} for file in files]


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.split(":", 1)[1].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def say(text):
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
