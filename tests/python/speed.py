"""Karat from Python against its peers, on the same data in one run: `speed.py [RANKINGS] [SAMPLES]`.

Rankings come from Arrow and are scored against pytrec_eval, which is given the dictionaries that it wants;
making them is not counted. Samples of tool calls are scored against RAGAS, whose fastest public way we use.
Every value is compared. Needs pytrec-eval-terrier and ragas; fails below 10 and 20 times their speed.
"""

import asyncio
import json
import random
import sys
import time
import warnings

import pyarrow

import karat
import karat.arrow

MEASURES = {"recall_5": "recall@5", "ndcg_cut_10": "ndcg@10", "recip_rank": "mrr", "map": "map"}


def timed(work):
    began = time.perf_counter()
    found = work()
    return found, time.perf_counter() - began


def rankings(rows):
    import pytrec_eval

    draw = random.Random(1)
    names = [f"tool-{n}" for n in range(200)]
    known = [(draw.sample(names, 10), draw.sample(names, 3)) for _ in range(2_000)]
    for ranked, judged in known:
        # Half of the judged tools is found.
        judged[0] = ranked[draw.randrange(10)]
    chosen = [known[(n * 7919) % len(known)] for n in range(rows)]
    ids = [f"q{n:07}" for n in range(rows)]
    table = pyarrow.table(
        {
            "id": ids,
            "ranked": [ranked for ranked, _ in chosen],
            "relevant": pyarrow.array(
                [[{"id": id, "grade": 2 - place} for place, id in enumerate(dict.fromkeys(judged))] for _, judged in chosen],
                pyarrow.list_(pyarrow.struct([("id", pyarrow.string()), ("grade", pyarrow.int64())])),
            ),
        }
    )
    ours, seconds = timed(lambda: karat.arrow.score(table, kind="rankings", metrics=list(MEASURES.values())))
    seconds_again = timed(lambda: karat.arrow.score(table, kind="rankings", metrics=list(MEASURES.values())))[1]
    qrels = {id: {tool: 2 - place for place, tool in enumerate(dict.fromkeys(judged))} for id, (_, judged) in zip(ids, chosen)}
    run = {id: {tool: float(10 - place) for place, tool in enumerate(ranked)} for id, (ranked, _) in zip(ids, chosen)}
    evaluator, built = timed(lambda: pytrec_eval.RelevanceEvaluator(qrels, set(MEASURES)))
    theirs, evaluated = timed(lambda: evaluator.evaluate(run))
    for peer, name in MEASURES.items():
        for id, value in zip(ids, ours[name].to_pylist()):
            assert value is None or abs(value - theirs[id][peer]) < 1e-12, (id, name, value, theirs[id][peer])
    ratio = (built + evaluated) / min(seconds, seconds_again)
    print(
        f"{rows:,} rankings: karat {min(seconds, seconds_again):.2f} s, pytrec_eval {built + evaluated:.2f} s "
        f"(of which {built:.2f} s for the judgements): {ratio:.1f} times; {evaluated / min(seconds, seconds_again):.1f} "
        "without the judgements"
    )
    return ratio


def calls(samples):
    warnings.simplefilter("ignore")
    from ragas.messages import AIMessage, HumanMessage, ToolCall
    from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1

    draw = random.Random(2)
    rows = []
    for _ in range(samples):
        expected = [(f"tool-{draw.randrange(50)}", {"x": draw.randrange(9), "y": "text"}) for _ in range(draw.randrange(1, 4))]
        made = list(expected) if draw.random() < 0.7 else [*expected[1:], ("other", {})]
        rows.append((made, expected))
    call = pyarrow.struct([("name", pyarrow.string()), ("arguments", pyarrow.string())])
    listed = lambda place: pyarrow.array(
        [[{"name": name, "arguments": json.dumps(given)} for name, given in row[place]] for row in rows], pyarrow.list_(call)
    )
    table = pyarrow.table({"id": [str(n) for n in range(samples)], "calls": listed(0), "expected_calls": listed(1)})
    metrics = ["ragas.tool_call_accuracy", "ragas.tool_call_f1"]
    ours, seconds = timed(lambda: karat.arrow.score(table, kind="traces", metrics=metrics))
    one_by_one, by_function = timed(
        lambda: [(karat.ragas_tool_call_accuracy(made, expected), karat.ragas_tool_call_f1(made, expected)) for made, expected in rows]
    )
    given = [
        (
            [HumanMessage(content="x"), AIMessage(content="", tool_calls=[ToolCall(name=n, args=a) for n, a in made])],
            [ToolCall(name=n, args=a) for n, a in expected],
        )
        for made, expected in rows
    ]

    async def score():
        peers = [ToolCallAccuracy(strict_order=True), ToolCallF1()]
        return [
            [(await peer.ascore(user_input=messages, reference_tool_calls=reference)).value for peer in peers]
            for messages, reference in given
        ]

    theirs, peer_seconds = timed(lambda: asyncio.run(score()))
    for place, name in enumerate(metrics):
        for value, pair, peer in zip(ours[name].to_pylist(), one_by_one, theirs):
            assert abs(value - peer[place]) < 1e-12 and abs(pair[place] - peer[place]) < 1e-12, (name, value, pair, peer)
    ratio = peer_seconds / seconds
    print(
        f"{samples:,} samples of tool calls: karat {seconds:.3f} s from Arrow, {by_function:.3f} s by function calls, "
        f"ragas {peer_seconds:.2f} s: {ratio:.1f} and {peer_seconds / by_function:.1f} times"
    )
    return ratio


def main():
    rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    samples = int(sys.argv[2]) if len(sys.argv) > 2 else 50_000
    slow = [name for name, ratio, wanted in [("rankings", rankings(rows), 10), ("calls", calls(samples), 20)] if ratio < wanted]
    sys.exit(f"not fast enough: {', '.join(slow)}" if slow else 0)


if __name__ == "__main__":
    main()
