"""The RAGAS `collections` metrics for tool calls over a JSONL file, in one event loop.

`peer_ragas.py FILE` prints the means of ToolCallAccuracy (strict order, its default) and ToolCallF1,
and the seconds, of CPU and of the wall, from opening the file to the last mean, without interpreter start and imports.
Of the public ways to build the samples and to await the scores, these are the fastest we found:
`model_validate_json` line by line, and `ascore` awaited in turn (`abatch_score` makes a task of
each). Warnings, which a metric gives for every missing call, are turned off.
"""

import asyncio
import json
import math
import sys
import time
import warnings

from ragas.dataset_schema import MultiTurnSample
from ragas.metrics.collections import ToolCallAccuracy, ToolCallF1


async def score(path):
    metrics = [ToolCallAccuracy(strict_order=True), ToolCallF1()]
    values = {metric.name: [] for metric in metrics}
    with open(path, encoding="utf-8") as file:
        for line in file:
            sample = MultiTurnSample.model_validate_json(line)
            for metric in metrics:
                result = await metric.ascore(
                    user_input=sample.user_input, reference_tool_calls=sample.reference_tool_calls
                )
                values[metric.name].append(result.value)
    return {name: math.fsum(scores) / len(scores) for name, scores in values.items()}


def main():
    warnings.simplefilter("ignore")
    began, began_wall = time.process_time(), time.perf_counter()
    means = asyncio.run(score(sys.argv[1]))
    done, done_wall = time.process_time(), time.perf_counter()
    print(json.dumps({"means": means, "work_cpu_s": done - began, "work_wall_s": done_wall - began_wall}))


if __name__ == "__main__":
    main()
