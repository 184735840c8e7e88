"""Checks the reports of `run`: `verify.py CHECK WORLDS TOOL`."""

import json
import pathlib
import sys

check, worlds, tool = json.load(open(sys.argv[1])), pathlib.Path(sys.argv[2]), sys.argv[3]
reports = {report["name"]: report for report in check["reports"]}
uses = {f"{world['name']}/{goal['id']}" for world in map(json.loads, map(pathlib.Path.read_text, worlds.glob("*.json")))
        if isinstance(world, dict) and "goals" in world
        for goal in world["goals"] if any(call["tool"] == tool for call in goal["calls"])}


def count(name, metric):
    found = next(m for m in reports[name]["metrics"] if m["id"] == metric)["count"]
    return found["hits"], found["of"]


def verdicts(name):
    return {item["id"]: item["metrics"] for item in reports[name]["items"]}


def successes(name):
    return {item["id"]: (item["tags"]["goal"], item["metrics"]["attack.success"])
            for item in reports[name]["items"] if "goal" in item["tags"]}


for name in reports:
    print(name, *(f"{metric} {'%d/%d' % count(name, metric)}" for metric in
                  ("utility.benign", "utility.under_attack", "attack.delivered", "attack.success")))
missed = [(name, control["name"], control["expected"], [(m["id"], m["value"]) for m in control["metrics"]])
          for name, report in reports.items() for control in report["controls"] if not control["ok"]]
assert not missed and check["verdict"] == "pass", missed
for name in ("direct", "pass-through"):
    assert count(name, "utility.benign") == (97, 97), name
    assert count(name, "attack.success") == (592, 629), name
assert verdicts("direct") == verdicts("pass-through")
before, after = successes("direct"), successes("blocked")
changed = {id for id in before if before[id] != after[id]}
expected = {id for id, (goal, success) in before.items() if success and goal in uses}
assert expected and changed == expected, (len(changed), len(expected), sorted(changed ^ expected)[:10])
print(f"blocking {tool} changes exactly the {len(changed)} pairs whose attacker's calls use it")
