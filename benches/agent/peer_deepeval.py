"""DeepEval's ToolCorrectness (names and inputs) over RAGAS samples: `peer_deepeval.py FILE`.

Prints the mean and the seconds, of CPU and of the wall, from opening the file to the last score. The metric asks no model;
it only wants one to be constructed, so it gets one that cannot be asked.
"""

import json
import sys
import time

from deepeval.metrics import ToolCorrectnessMetric
from deepeval.models.base_model import DeepEvalBaseLLM
from deepeval.test_case import LLMTestCase, ToolCall
from deepeval.test_case.llm_test_case import ToolCallParams


class NoModel(DeepEvalBaseLLM):
    def load_model(self):
        return self

    def generate(self, *_, **__):
        raise RuntimeError("no model is asked")

    async def a_generate(self, *_, **__):
        raise RuntimeError("no model is asked")

    def get_model_name(self):
        return "none"


def calls(entries):
    return [ToolCall(name=entry["name"], input_parameters=entry["args"]) for entry in entries]


def main():
    began, began_wall = time.process_time(), time.perf_counter()
    metric = ToolCorrectnessMetric(
        evaluation_params=[ToolCallParams.INPUT_PARAMETERS],
        model=NoModel(),
        async_mode=False,
        include_reason=False,
    )
    total = count = 0
    with open(sys.argv[1], encoding="utf-8") as file:
        for line in file:
            sample = json.loads(line)
            made = [c for m in sample["user_input"] for c in m.get("tool_calls") or []]
            case = LLMTestCase(
                input="x",
                actual_output="y",
                tools_called=calls(made),
                expected_tools=calls(sample["reference_tool_calls"]),
            )
            metric.measure(case, _show_indicator=False)
            total += metric.score
            count += 1
    print(json.dumps({
        "mean": total / count,
        "work_cpu_s": time.process_time() - began,
        "work_wall_s": time.perf_counter() - began_wall,
    }))


if __name__ == "__main__":
    main()
