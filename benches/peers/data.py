"""Makes the files that karat and its peers read.

The same seed and size give the same bytes with every Python from 3.11 on: only `Random.random()`
is used, the one method whose sequence Python promises to keep. Files are written next to their
place and moved there when complete; a file that fits its description is not made again. Nothing here
is a real judgement or a real trace.
"""

import hashlib
import json
import math
import os
import random
import struct
import sys

SEED = 20250815

# A share of queries has judgements but no relevant tool: trec_eval counts those 0 and keeps them.
SHARE_WITHOUT_RELEVANT = 0.005


class Source:
    """Random choices built on `random()` alone."""

    def __init__(self, seed):
        self.random = random.Random(seed).random

    def below(self, limit):
        return int(self.random() * limit)

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def pick(self, items):
        return items[self.below(len(items))]

    def chance(self, share):
        return self.random() < share


# ---------------------------------------------------------------- rankings


def write_rankings(qrels_path, run_path, queries, results):
    """Writes TREC judgements and a run: `queries` x `results`, sorted by query, then by rank.

    Each query has its own tools out of some 40,000. No two scores of a query are equal, not even
    as 32-bit floats, so the peers (which rank by such floats) and karat see the same order.
    Returns some means over all queries, known here without a reader or a sorter: every program that
    scores these files must find them again.
    """
    source = Source(SEED)
    reciprocal_ranks, relevant_in_10, found_in_5 = [], 0, 0
    width = max(5, len(str(queries)))
    with open(qrels_path, "w", encoding="ascii") as qrels, open(run_path, "w", encoding="ascii") as run:
        for number in range(1, queries + 1):
            query = f"q{number:0{width}d}"
            tools = distinct_tools(source, results)
            scores = falling_scores(source, results)
            run.write(
                "".join(
                    f"{query} Q0 {tool} {rank} {score} bench\n"
                    for rank, (tool, score) in enumerate(zip(tools, scores, strict=True), 1)
                )
            )
            judged = judgements(source, tools)
            qrels.write("".join(f"{query} 0 {tool} {relevance}\n" for tool, relevance in judged.items()))
            ranks = [rank for rank, tool in enumerate(tools, 1) if judged.get(tool, 0) > 0]
            reciprocal_ranks.append(1 / ranks[0] if ranks else 0)
            relevant_in_10 += sum(rank <= 10 for rank in ranks)
            found_in_5 += any(rank <= 5 for rank in ranks)
    return {
        "mrr": math.fsum(reciprocal_ranks) / queries,
        "p@10": relevant_in_10 / 10 / queries,
        "success@5": found_in_5 / queries,
    }


def distinct_tools(source, count):
    """`count` different ids such as `server12:tool_345`, in no order."""
    # A step without a common factor with the size of the catalogue meets no id twice: 40,000 has
    # the factors 2 and 5, and the step ends in 1.
    catalogue, step = 40 * 1000, 70 * source.between(1, 400) + 1
    at = source.below(catalogue)
    tools = []
    for _ in range(count):
        at = (at + step) % catalogue
        tools.append(f"server{at // 1000}:tool_{at % 1000}")
    return tools


def falling_scores(source, count):
    """Scores as engines print them: below 28 with 4 or 5 decimals, or below 4 with 6."""
    decimals, top = source.pick(((4, 28), (5, 28), (6, 4)))
    unit = 10**decimals
    at = int(top * unit * (0.7 + 0.3 * source.random()))
    largest_step = max(1, at * 18 // (count * 10))
    scores, previous = [], None
    for _ in range(count):
        at = max(1, at - 1 - source.below(min(largest_step, max(1, at // 4))))
        score = f"{at // unit}.{at % unit:0{decimals}d}"
        as_float32 = struct.pack("f", float(score))
        if as_float32 == previous:
            raise ValueError(f"two equal scores in a query: {score}")
        previous = as_float32
        scores.append(score)
    return scores


def judgements(source, tools):
    """About five relevant tools (grades 1 and 2), four in five of them retrieved, and some zeros."""
    judged = {}
    relevant = 0 if source.chance(SHARE_WITHOUT_RELEVANT) else source.between(3, 7)
    for place in range(relevant):
        grade = 2 if source.chance(0.3) else 1
        if source.chance(0.8):
            # The square of a random number draws the relevant ones towards the top.
            judged[tools[int(source.random() ** 2 * len(tools))]] = grade
        else:
            judged[f"server{40 + place}:tool_{source.below(1000)}"] = grade
    for _ in range(source.between(1, 5)):
        judged.setdefault(tools[source.below(len(tools))], 0)
    return judged


# ---------------------------------------------------------------- tool calls

WORDS = "invoice refund order parcel report branch ticket meeting contract budget release camera".split()
PLACES = ["Paris", "São Paulo", "Zürich", "Kraków", "New York", "東京", "Reykjavík", "L'Aquila"]
PEOPLE = ["ana", "bo", "chidi", "dora", "o'neil", "fatima", "günter", "hana"]


def text(source):
    return " ".join(source.pick(WORDS) for _ in range(source.between(1, 4)))


def date(source):
    return f"2025-{source.between(1, 12):02d}-{source.between(1, 28):02d}"


def price(source):
    return source.between(1, 99999) / 100


def names(source):
    return [source.pick(PEOPLE) for _ in range(source.between(1, 3))]


def span(source):
    return {"from": date(source), "to": date(source)}


def point(source):
    return {"lat": source.between(-8999, 8999) / 100, "lon": source.between(-17999, 17999) / 100}


TOOLS = [
    ("weather:get_forecast", {"location": lambda s: s.pick(PLACES), "days": lambda s: s.between(1, 14), "units": lambda s: s.pick(["metric", "imperial"])}),
    ("weather:get_air_quality", {"point": point}),
    ("mail:send", {"to": names, "subject": text, "body": text, "urgent": lambda s: s.chance(0.2)}),
    ("mail:search", {"query": text, "limit": lambda s: s.between(1, 100), "unread": lambda s: s.pick([True, False, None])}),
    ("calendar:create_event", {"title": text, "date": date, "attendees": names, "minutes": lambda s: s.between(1, 12) * 15}),
    ("calendar:free_slots", {"span": span, "people": names}),
    ("git:create_branch", {"repository": lambda s: f"{s.pick(PEOPLE)}/{s.pick(WORDS)}", "name": lambda s: f"fix-{s.below(10000)}"}),
    ("git:list_commits", {"repository": lambda s: f"{s.pick(PEOPLE)}/{s.pick(WORDS)}", "since": date, "limit": lambda s: s.between(1, 50)}),
    ("git:status", {}),
    ("shop:refund", {"order": lambda s: s.between(100000, 999999), "amount": price, "reason": text}),
    ("shop:find_product", {"query": text, "max_price": price, "tags": lambda s: [s.pick(WORDS), s.pick(PEOPLE)]}),
    ("shop:set_stock", {"sku": lambda s: f"SKU-{s.below(100000):05d}", "count": lambda s: s.below(1000)}),
    ("files:read", {"path": lambda s: f"/srv/{s.pick(WORDS)}/{s.pick(WORDS)}.txt"}),
    ("files:write", {"path": lambda s: f"/srv/{s.pick(WORDS)}.txt", "content": text, "append": lambda s: s.chance(0.5)}),
    ("db:query", {"table": lambda s: s.pick(WORDS), "where": lambda s: {"id": s.below(100000), "state": s.pick(["open", "closed", None])}, "limit": lambda s: s.between(1, 500)}),
    ("maps:route", {"from": point, "to": point, "mode": lambda s: s.pick(["car", "bike", "foot"]), "tolerance": lambda s: s.pick([0.5, 1.0, 0.00001, 1e16])}),
]  # fmt: skip


def write_conversations(path, samples):
    """Writes RAGAS multi-turn samples: a question, three calls, and the three calls expected.

    Returns no means: what a call is worth is for RAGAS to say.
    """
    source = Source(SEED + 1)
    with open(path, "w", encoding="utf-8") as file:
        for number in range(1, samples + 1):
            expected = [call(source) for _ in range(3)]
            sample = {
                "id": f"s-{number:06d}",
                "user_input": [
                    {"type": "human", "content": f"Please handle the {text(source)} for {source.pick(PEOPLE)}."},
                    {"type": "ai", "content": "", "tool_calls": made(source, expected)},
                ],
                "reference_tool_calls": expected,
            }
            file.write(json.dumps(sample, ensure_ascii=False))
            file.write("\n")
    return {}


def call(source):
    name, arguments = source.pick(TOOLS)
    return {"name": name, "args": {key: value(source) for key, value in arguments.items()}}


def made(source, expected):
    """The calls the agent made: 60 % equal, 20 % a wrong argument, 10 % reordered, 10 % one missing."""
    calls = [{"name": one["name"], "args": dict(one["args"])} for one in expected]
    kind = source.random()
    if kind < 0.6:
        return calls
    if kind < 0.8:
        spoil(source, calls[source.below(len(calls))]["args"])
        return calls
    at = source.below(len(calls))
    if kind < 0.9:
        calls.insert(source.below(len(calls) - 1), calls.pop(at))
        return calls
    del calls[at]
    return calls


def spoil(source, arguments):
    """Changes one argument in one of the ways models get them wrong."""
    if not arguments:
        arguments["verbose"] = True
        return
    key = source.pick(list(arguments))
    way = source.below(4)
    if way == 0:
        del arguments[key]
    elif way == 1:
        arguments["note"] = text(source)
    elif way == 2:
        # A number in quotes is an equal argument to one RAGAS metric and a wrong one to the other.
        arguments[key] = str(arguments[key])
    else:
        arguments[key] = f"{arguments[key]}?"


# ---------------------------------------------------------------- keeping


def rankings(folder, queries, results):
    """The judgements and the run of this size, made if they are not there."""
    stem = os.path.join(folder, f"rankings-{queries}x{results}")
    paths = [f"{stem}.qrels", f"{stem}.run"]
    return keep(paths, lambda temporary: write_rankings(*temporary, queries, results))


def conversations(folder, samples):
    """The samples, made if they are not there."""
    paths = [os.path.join(folder, f"conversations-{samples}.jsonl")]
    return keep(paths, lambda temporary: write_conversations(*temporary, samples))


def keep(paths, write):
    """Runs `write` unless the files are already there, made by this very program, and whole.

    Returns `files`, a description of each (path, lines, bytes, sha256), and the `means` that
    `write` gave.
    """
    with open(__file__, "rb") as program:
        made_by = hashlib.sha256(program.read()).hexdigest()
    note = f"{paths[0]}.made.json"
    try:
        with open(note, encoding="utf-8") as file:
            known = json.load(file)
        if known["made_by"] == made_by and all(
            os.path.getsize(path) == one["bytes"] for path, one in zip(paths, known["files"], strict=True)
        ):
            return placed(paths, known)
    except (OSError, ValueError, KeyError):
        pass
    os.makedirs(os.path.dirname(paths[0]), exist_ok=True)
    if os.path.exists(note):
        os.remove(note)
    temporary = [f"{path}.part" for path in paths]
    try:
        means = write(temporary)
        known = {"made_by": made_by, "means": means, "files": [describe(path) for path in temporary]}
        for old, new in zip(temporary, paths, strict=True):
            os.replace(old, new)
    finally:
        # A full disk must not stay full of halves.
        for path in temporary:
            if os.path.exists(path):
                os.remove(path)
    with open(f"{note}.part", "w", encoding="utf-8") as file:
        json.dump(known, file)
    os.replace(f"{note}.part", note)
    return placed(paths, known)


def placed(paths, known):
    files = [{"path": path, **one} for path, one in zip(paths, known["files"], strict=True)]
    return {"files": files, "means": known["means"]}


def describe(path):
    digest, lines, size = hashlib.sha256(), 0, 0
    with open(path, "rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
            lines += block.count(b"\n")
            size += len(block)
    return {"lines": lines, "bytes": size, "sha256": digest.hexdigest()}


def main():
    """`data.py FOLDER rankings QUERIES RESULTS` or `data.py FOLDER conversations SAMPLES`.

    A process of its own, so that the memory it takes is never counted against what is measured.
    """
    folder, kind, *sizes = sys.argv[1:]
    make = {"rankings": rankings, "conversations": conversations}[kind]
    print(json.dumps(make(folder, *map(int, sizes))))


if __name__ == "__main__":
    main()
