"""The deterministic part of TDQS against the package of that name: every signal of every tool."""

import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest

from tdqs import CostedTool, compute_context_signals, evaluate_hard_gates, find_shadow_candidates
from tdqs.tool_definition import ToolDefinition

KARAT = os.environ["KARAT"]
ROOT = pathlib.Path(os.environ["KARAT_ROOT"])
SAME = [
    "param_count",
    "params_with_descriptions",
    "params_with_enums",
    "required_param_count",
    "schema_description_coverage",
    "has_nested_objects",
    "has_annotations",
    "has_output_schema",
    "title_is_meaningful",
    "required_field_count",
    "schema_depth",
    "union_choice_count",
    "invocation_cost",
]


def upstream(tools):
    """The signals of the tools of one server, as the package computes them."""
    parsed = [ToolDefinition.model_validate(tool) for tool in tools]
    signals = [compute_context_signals(tool) for tool in parsed]
    costs = [CostedTool(one.invocation_cost, tool.name) for one, tool in zip(signals, parsed)]
    shadows = {one.tool: one.cheaper_sibling for one in find_shadow_candidates(costs)}
    for tool, one in zip(parsed, signals):
        flags = list(evaluate_hard_gates(tool).flags)
        found = {name: getattr(one, name) for name in SAME}
        yield {"tool": tool.name, "flags": flags, **found, "shadowed_by": shadows.get(tool.name)}


def karat(tools):
    """The same by `karat server lint`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "tools.json"
        path.write_text(json.dumps({"tools": tools}))
        ran = subprocess.run(
            [KARAT, "server", "lint", "--tools", path, "--json", "--fail-on", "never"],
            capture_output=True,
            check=True,
        )
    return json.loads(ran.stdout)["tdqs"]


def schema(dice, depth):
    """A schema with everything that the rules look at, well formed or not."""
    kind = dice.randrange(9)
    if kind == 0:
        return {"$ref": dice.choice(["#/$defs/a", "#/definitions/b", "#/$defs/none", "#/$defs/a%20b"])}
    if kind == 1 and depth:
        return {dice.choice(["oneOf", "anyOf"]): [schema(dice, depth - 1) for _ in range(dice.randrange(4))]}
    if kind == 2 and depth:
        return {"allOf": [schema(dice, depth - 1) for _ in range(dice.randrange(3))]}
    if kind == 3 and depth:
        return {"type": "array", "items": schema(dice, depth - 1)}
    if kind == 4:
        return {"type": dice.choice(["null", "string", ["string", "null"]]), "enum": dice.choice([[1], [], "no"])}
    if kind == 5 and depth:
        return {"not": schema(dice, depth - 1), "description": dice.choice(["", " ", "said"])}
    if kind == 6:
        return dice.choice([True, False, None, 3, "text", []])
    if depth:
        names = dice.sample(["a", "b", "c", "d", "e"], dice.randrange(6))
        properties = {name: schema(dice, depth - 1) for name in names}
        required = [dice.choice(["a", "b", "c", "x", 3]) for _ in range(dice.randrange(4))]
        return {"type": "object", "properties": properties, "required": required, "description": "it"}
    return {"type": "string", "description": dice.choice(["", "a text"])}


def tool(dice, number):
    """A definition."""
    name = dice.choice(["read", "Read file", "\u00e9t\u00e9", "\U0001f600"]) + str(number)
    made = schema(dice, 4)
    whole = made if isinstance(made, dict) else {"type": "object"}
    whole["$defs"] = {"a": schema(dice, 3), "a b": schema(dice, 2)}
    whole["definitions"] = {"b": schema(dice, 3)}
    found = {"name": name, "inputSchema": whole}
    found["description"] = dice.choice(["", "  ", name, name.upper() + " ", "Reads a file", "\ufeff" + name])
    if dice.random() < 0.5:
        found["title"] = dice.choice([name, name + "!", "T", "  " + name])
    if dice.random() < 0.5:
        found["annotations"] = dice.choice([{}, {"readOnlyHint": True}])
    if dice.random() < 0.3:
        found["outputSchema"] = dice.choice([{}, {"type": "object"}])
    return found


class Tdqs(unittest.TestCase):
    maxDiff = None

    def same(self, tools):
        ours = [{key: one.get(key) for key in ["tool", "flags", *SAME, "shadowed_by"]} for one in karat(tools)]
        self.assertEqual(ours, list(upstream(tools)))

    def test_the_bundled_tools(self):
        files = sorted((ROOT / "datasets/tools/v1/tools").glob("*.json"))
        self.assertGreater(len(files), 50)
        for file in files:
            tools = json.loads(file.read_text())["tools"]
            self.same(
                [
                    {
                        "name": one["tool"],
                        "description": one["description"],
                        "inputSchema": one["input_schema"],
                        "annotations": one.get("annotations"),
                    }
                    for one in tools
                ]
            )

    def test_generated_definitions(self):
        dice = random.Random(20261117)
        for _ in range(60):
            self.same([tool(dice, number) for number in range(dice.randrange(1, 25))])


if __name__ == "__main__":
    unittest.main()
