"""Rewrites tool descriptions with GEPA, with `karat retrieval serve-fitness` as the metric.

The model that reflects is a function of twenty lines: it adds the query words that the feedback calls
missing. So the run needs no network and gives the same result every time; a real model goes in its
place. Prints one JSON document with the scores on the train and the test split, before and after.

usage: gepa_descriptions.py KARAT DATASET METRIC_CALLS
"""

import json
import pathlib
import re
import socket
import subprocess
import sys

import gepa
from gepa.core.adapter import EvaluationBatch

COMPONENTS = 10
WORDS = 3


def no_network(*_):
    raise OSError("this run must not reach for the network")


socket.socket.connect = no_network


class Fitness:
    """The running `serve-fitness`."""

    def __init__(self, karat, dataset):
        self.process = subprocess.Popen(
            [karat, "retrieval", "serve-fitness", "--dataset", dataset],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.hello = json.loads(self.process.stdout.readline())

    def ask(self, overrides, **which):
        self.process.stdin.write(json.dumps({"overrides": overrides, **which}) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def close(self):
        self.process.stdin.close()
        return self.process.wait()


class Adapter:
    """What GEPA asks for: scores of a batch, and the feedback for each description."""

    propose_new_texts = None

    def __init__(self, fitness, relevant):
        self.fitness = fitness
        self.relevant = relevant
        self.calls = 0

    def evaluate(self, batch, candidate, capture_traces=False):
        self.calls += len(batch)
        results = self.fitness.ask(candidate, queries=batch)["results"]
        return EvaluationBatch(
            outputs=[result["ranking"] for result in results],
            scores=[result["score"] for result in results],
            trajectories=results if capture_traces else None,
        )

    def make_reflective_dataset(self, candidate, eval_batch, components_to_update):
        return {
            component: [
                {"query": result["id"], "ranking": result["ranking"], "feedback": result["feedback"]}
                for result in eval_batch.trajectories
                if self.relevant[result["id"]] == component and result["score"] < 1.0
            ]
            for component in components_to_update
        }


def reflect(prompt):
    """Adds the first missing words to the description."""
    current = prompt.split("```")[1].strip()
    found = re.findall(r"query words missing from its description: ([^\n]+)", prompt)
    words = [word for words in found for word in words.split(", ")][:WORDS]
    return f"```\n{current} {' '.join(words)}\n```"


def main():
    karat, dataset, budget = sys.argv[1], sys.argv[2], int(sys.argv[3])
    descriptions, labels = {}, {}
    for path in sorted(pathlib.Path(dataset).glob("tools/*.json")):
        corpus = json.loads(path.read_text())
        for tool in corpus["tools"]:
            server = tool.get("server") or corpus["server"]["name"]
            name = tool.get("tool") or tool["name"]
            descriptions[f"{server}:{name}"] = tool["description"]
    for path in sorted(pathlib.Path(dataset).glob("golden/*.jsonl")):
        for line in path.read_text().splitlines():
            query = json.loads(line)
            labels[query["id"]] = [l["tool_id"] for l in query["labels"] if l["relevance"] > 0]

    fitness = Fitness(karat, dataset)
    train_before = fitness.ask({}, split="train")
    test_before = fitness.ask({}, split="test")
    # Queries with one right tool that search does not find first yet.
    hard = [q for q, s in sorted(train_before["scores"].items()) if s < 1.0 and len(labels[q]) == 1]
    relevant = {}
    for query in hard:
        if labels[query][0] not in relevant.values():
            relevant[query] = labels[query][0]
        if len(relevant) == COMPONENTS:
            break
    seed = {component: descriptions[component] for component in relevant.values()}
    adapter = Adapter(fitness, relevant)
    found = gepa.optimize(
        seed_candidate=seed,
        trainset=sorted(relevant),
        valset=sorted(relevant),
        adapter=adapter,
        reflection_lm=reflect,
        module_selector="all",
        max_metric_calls=budget,
        seed=0,
        logger=type("Silent", (), {"log": lambda self, *_: None})(),
        display_progress_bar=False,
    )
    best = found.best_candidate
    document = {
        "digest": fitness.hello["dataset"]["digest"],
        "metric": fitness.hello["metric"],
        "metric_calls": adapter.calls,
        "candidates": found.num_candidates,
        "chosen": {
            "before": fitness.ask(seed, queries=sorted(relevant))["mean"],
            "after": fitness.ask(best, queries=sorted(relevant))["mean"],
        },
        "train": {"before": train_before["mean"], "after": fitness.ask(best, split="train")["mean"]},
        "test": {"before": test_before["mean"], "after": fitness.ask(best, split="test")["mean"]},
        "descriptions": best,
    }
    if fitness.close() != 0:
        raise SystemExit("serve-fitness did not end well")
    print(json.dumps(document, indent=1))


main()
