"""What several tests need: vectors of peers, and rows."""

import json
import os
import pathlib
import random

ROOT = pathlib.Path(os.environ.get("KARAT_ROOT", pathlib.Path(__file__).parents[2]))


def vectors(name):
    """The cases of a peer: what it was given and what it answered."""
    cases = json.loads((ROOT / "crates/karat-metrics/tests/vectors" / f"{name}.json").read_text())["cases"]
    assert len(cases) > 100
    return cases


def near(found, expected, tolerance=1e-12):
    return found == expected or abs(found - expected) <= tolerance * max(1.0, abs(expected))


def rankings(rows=200, seed=1, groups=7):
    """Rankings as dictionaries; most have the best id near the top."""
    draw = random.Random(seed)
    found = []
    for number in range(rows):
        ranked = draw.sample([f"tool-{n}" for n in range(40)], 10)
        judged = draw.sample([f"tool-{n}" for n in range(40)], 3)
        if judged[0] not in ranked and draw.random() < 0.7:
            ranked[draw.randrange(5)] = judged[0]
        found.append(
            {
                "id": f"q-{number:05}",
                "group": f"server-{draw.randrange(groups)}",
                "ranked": ranked,
                "relevant": {judged[0]: 2, judged[1]: 1, judged[2]: 0},
            }
        )
    return found


def traces(rows=100, seed=2):
    """Traces as dictionaries; some make the expected calls, some do not."""
    draw = random.Random(seed)
    found = []
    for number in range(rows):
        expected = [{"name": f"tool-{n}", "arguments": {"x": n, "y": "text"}} for n in range(1 + number % 3)]
        made = expected if draw.random() < 0.7 else expected[1:] + [{"name": "other", "arguments": {}}]
        found.append({"id": f"t-{number:05}", "calls": made, "expect": {"calls": expected}})
    return found


def verdicts(rows=300, seed=3):
    """Verdicts as dictionaries, with scores."""
    draw = random.Random(seed)
    found = []
    for number in range(rows):
        malicious = draw.random() < 0.4
        score = min(1.0, max(0.0, draw.gauss(0.7 if malicious else 0.3, 0.2)))
        found.append(
            {
                "id": f"e-{number:05}",
                "group": f"server-{draw.randrange(20)}",
                "label": "malicious" if malicious else "benign",
                "verdict": "flag" if score > 0.5 else "pass",
                "score": score,
            }
        )
    return found


def ranking_table(rows):
    """Rankings as a table of pyarrow."""
    import pyarrow

    relevant = pyarrow.list_(pyarrow.struct([("id", pyarrow.string()), ("grade", pyarrow.int64())]))
    return pyarrow.table(
        {
            "id": [row["id"] for row in rows],
            "group": [row["group"] for row in rows],
            "ranked": [row["ranked"] for row in rows],
            "relevant": pyarrow.array(
                [[{"id": id, "grade": grade} for id, grade in row["relevant"].items()] for row in rows], relevant
            ),
        }
    )


def without_environment(report):
    document = report.to_dict()
    document.pop("environment")
    return json.dumps(document)
