#!/usr/bin/env python3
"""Measures what can be learnt about the labels of threats v3 without, and with, its words.

    scripts/threats-v3/check.py datasets/threats/v3/entries

needs scikit-learn. Trains on dev, reports ROC AUC on test: boosted trees on counts, lengths and the
presence of fields; logistic regression on words; and both on attacks against their own twins. Also prints
the figures of the schemas, and pairs whose lengths differ by more than 10 %.
"""

import collections
import json
import re
import sys
from pathlib import Path

import numpy as np
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score

SEEN = ["server", "tool", "peers", "before", "result", "instructions"]


def seen(entry):
    return {key: entry[key] for key in SEEN if key in entry}


def texts(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield key
            yield from texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from texts(inner)


def counts(text):
    kinds = [r"\w+", r"[.!?。]", r"[,;:]", r"\d", r"\n", r"`", r"https?://", r"@", r"[/~\\]", r"[\"'«»„“”]", r"[()\[\]{}]", r"[A-Z]", r"[^\x00-\x7f]",
             "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\U000e0000-\U000e01ef]", r"\s", r"[-–—]", r"#", r"[_*]", r"[<>]", r"[%$€=+]"]
    return [len(text)] + [len(re.findall(kind, text)) for kind in kinds]


def features(entry):
    tool = entry["tool"]
    schema = tool.get("input_schema", {})
    properties = schema.get("properties", {})
    described = [inner.get("description", "") for inner in properties.values()]
    hints = tool.get("annotations") or {}
    dumped = json.dumps(schema, ensure_ascii=False)
    row = counts(tool.get("description", "")) + counts(entry.get("result", "")) + counts(entry.get("instructions", ""))
    row += counts(" ".join(described)) + counts(json.dumps(seen(entry), ensure_ascii=False))
    row += [len(properties), len(schema.get("required", [])), len(dumped), dumped.count('"enum"'), dumped.count('"default"'), dumped.count('"format"'),
            sum(map(bool, described)), max(map(len, described), default=0), len(hints), len(entry.get("peers", [])), "before" in entry,
            "result" in entry, "instructions" in entry, len(entry["server"]), entry["server"].count("-"), len(tool["name"]), tool["name"].count("_"),
            len(entry.get("before", {}).get("description", "")), len(tool["description"]) - len(entry.get("before", {}).get("description", ""))]
    row += [{None: 0, False: 1, True: 2}[hints.get(name)] for name in ("readOnlyHint", "idempotentHint", "openWorldHint", "destructiveHint")]
    return row + [bool(hints), "title" in hints, "additionalProperties" in schema]


def interval(y, scores, groups, draws=400):
    """By theme, since entries of one theme are alike."""
    random, named = np.random.default_rng(7), sorted(set(groups))
    rows = {name: np.flatnonzero(np.array(groups) == name) for name in named}
    found = []
    for _ in range(draws):
        at = np.concatenate([rows[name] for name in random.choice(named, len(named))])
        if len(set(y[at])) == 2:
            found.append(roc_auc_score(y[at], scores[at]))
    return np.percentile(found, [2.5, 97.5])


def main():
    entries = [json.loads(line) for path in sorted(Path(sys.argv[1]).glob("*.jsonl")) for line in open(path, encoding="utf-8")]
    X = np.array([features(entry) for entry in entries], dtype=float)
    y = np.array([entry["label"] == "malicious" for entry in entries], dtype=int)
    dev = np.array([entry["split"] == "dev" for entry in entries])
    plain = np.array([entry["category"] == "benign" for entry in entries])
    kind = np.array([entry.get("resembles") or entry["category"] for entry in entries])
    theme = np.array([(entry.get("provenance") or {}).get("theme", entry["server"]) for entry in entries])
    texts_ = [" ".join(texts(seen(entry))) for entry in entries]

    def report(name, scores, mask):
        low, high = interval(y[mask], scores[mask], theme[mask])
        print(f"  {name:34} {roc_auc_score(y[mask], scores[mask]):.3f} [{low:.3f}–{high:.3f}] n={mask.sum()} ({y[mask].sum()} attacks)")

    for name, population in [("attacks, twins and plain entries", np.ones(len(y), bool)), ("attacks and twins", ~plain)]:
        train, test = dev & population, ~dev & population
        trees = {"wordless, boosted trees": GradientBoostingClassifier(n_estimators=150, max_depth=3, subsample=0.5, random_state=0),
                 "wordless, boosted stumps": GradientBoostingClassifier(n_estimators=200, max_depth=1, subsample=0.5, random_state=0)}
        print(name)
        for label, model in trees.items():
            scores = np.zeros(len(y))
            scores[test] = model.fit(X[train], y[train]).predict_proba(X[test])[:, 1]
            report(label, scores, test)
            if label == "wordless, boosted trees":
                kept, importances = scores, model.feature_importances_
        words = TfidfVectorizer(ngram_range=(1, 2), min_df=2, sublinear_tf=True)
        model = LogisticRegression(C=10, max_iter=2000).fit(words.fit_transform([texts_[at] for at in np.flatnonzero(train)]), y[train])
        scores = np.zeros(len(y))
        scores[test] = model.predict_proba(words.transform([texts_[at] for at in np.flatnonzero(test)]))[:, 1]
        report("words 1–2, logistic regression", scores, test)
        for category in sorted(set(kind[~plain])):
            mask = test & (kind == category)
            print(f"    {category:26} wordless {roc_auc_score(y[mask], kept[mask]):.3f}  words {roc_auc_score(y[mask], scores[mask]):.3f}  n={mask.sum()}")
        print("    strongest wordless features:", np.argsort(-importances)[:5])

    # The harder question: given both twins, which one is the attack?
    pairs = collections.defaultdict(dict)
    for at, entry in enumerate(entries):
        if not plain[at]:
            pairs[entry["id"][:-1]][y[at]] = at
    long = sum(len(json.dumps(seen(entries[p[1]]), ensure_ascii=False)) > len(json.dumps(seen(entries[p[0]]), ensure_ascii=False)) for p in pairs.values())
    print(f"{len(pairs)} pairs; the attack is the longer one in {long}")
    rows = [(X[p[1]] - X[p[0]], dev[p[1]]) for p in pairs.values()]
    D, is_dev = np.array([row for row, _ in rows]), np.array([flag for _, flag in rows])
    both = lambda part: (np.concatenate([part, -part]), np.r_[np.ones(len(part)), np.zeros(len(part))])
    model = GradientBoostingClassifier(n_estimators=100, subsample=0.5, random_state=0).fit(*both(D[is_dev]))
    print(f"given both twins, wordless trees name the attack in {model.score(*both(D[~is_dev])):.3f} of test pairs")
    for p in pairs.values():
        a, b = (len(json.dumps(seen(entries[p[label]]), ensure_ascii=False)) for label in (1, 0))
        if abs(a - b) > 0.1 * min(a, b):
            print("  differs by more than 10 %:", entries[p[1]]["id"], a, b)
    for name, mask in [("all", np.ones(len(y), bool)), ("plain", plain)]:
        sizes = np.array([len(json.dumps(entries[at]["tool"]["input_schema"], ensure_ascii=False).encode()) for at in np.flatnonzero(mask)])
        count = [len(entries[at]["tool"]["input_schema"].get("properties", {})) for at in np.flatnonzero(mask)]
        hints = np.mean(["annotations" in entries[at]["tool"] for at in np.flatnonzero(mask)])
        print(f"schema bytes, {name}: median {np.median(sizes):.0f}, p95 {np.percentile(sizes, 95):.0f}, max {sizes.max()}; most parameters {max(count)}; annotations {hints:.3f}")


main()
