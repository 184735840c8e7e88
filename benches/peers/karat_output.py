"""The one place that knows what karat's --json looks like."""

import json


def means(output):
    """The mean of every metric, by its id.

    `karat retrieval trec` has them under `means`, over the evaluated queries and over all judged ones;
    a report has a list of `metrics`.
    """
    document = json.loads(output)
    if "metrics" in document:
        return {metric["id"]: metric["value"] for metric in document["metrics"]}
    found = document["means"]
    return found.get("evaluated", found)
