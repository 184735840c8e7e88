#!/usr/bin/env python3
"""Writes answers to every single-turn item of bfcl-eval, right and wrong in many ways, as result files,
and the verdicts of its own checker as score files. `karat import bfcl` must give the same verdicts. Models
called `model-N` call through an interface, `text-N` write their calls.

usage: oracle.py SITE_PACKAGES OUT [MODELS [MODELS_THAT_WRITE]]
"""

import copy
import json
import random
import sys
import types
from pathlib import Path

site, out = Path(sys.argv[1]), Path(sys.argv[2])
models = int(sys.argv[3]) if len(sys.argv) > 3 else 3
writers = int(sys.argv[4]) if len(sys.argv) > 4 else 1
sys.path.insert(0, str(site))
# The table of models imports every vendor's library; the checker asks it one question.
table = types.ModuleType("bfcl_eval.constants.model_config")
table.MODEL_CONFIG_MAPPING = {
    "underscores": types.SimpleNamespace(underscore_to_dot=True),
    "dots": types.SimpleNamespace(underscore_to_dot=False),
}
sys.modules["bfcl_eval.constants.model_config"] = table

# The decoder of written calls is in a file that imports more than it needs.
for library, names in {
    "tenacity": ["retry", "retry_if_exception_message", "retry_if_exception_type", "wait_random_exponential"],
    "filelock": ["FileLock"],
}.items():
    empty = types.ModuleType(library)
    for one in names:
        setattr(empty, one, None)
    sys.modules.setdefault(library, empty)

from bfcl_eval.constants.enums import Language, ReturnFormat  # noqa: E402
from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker  # noqa: E402
from bfcl_eval.model_handler.utils import default_decode_ast_prompting  # noqa: E402

AST = [
    "simple_python", "simple_java", "simple_javascript", "multiple", "parallel", "parallel_multiple",
    "live_simple", "live_multiple", "live_parallel", "live_parallel_multiple",
]
OTHER = ["irrelevance", "live_irrelevance", "live_relevance"]
LANGUAGE = {"simple_java": Language.JAVA, "simple_javascript": Language.JAVASCRIPT}
FORMAT = {"simple_java": ReturnFormat.JAVA, "simple_javascript": ReturnFormat.JAVASCRIPT}
data = site / "bfcl_eval" / "data"
draw = random.Random(7)
# A parameter that is left out, which differs from one that is null.
OMIT = object()
# Possible answers that the checker refuses however they are written: parameters that the function lacks
# (862, 964), parameters without an acceptable value (106, 112), lists of values that Java's reader makes
# strings of (36, 65), and an object whose value is a string where a list of alternatives belongs (64).
REFUSED = {
    "live_multiple_862-181-3", "live_multiple_964-207-0", "live_simple_106-63-0", "live_simple_112-68-0",
    "simple_java_36", "simple_java_64", "simple_java_65",
}


def lines(path):
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def chosen(values):
    """One acceptable value of a parameter, or OMIT."""
    real = [value for value in values if value != ""]
    if not real or ("" in values and draw.random() < 0.3):
        return OMIT
    return draw.choice(real)


def plain(value):
    """A value without the lists of alternatives in objects."""
    if isinstance(value, dict):
        found = {}
        for key, values in value.items():
            one = chosen(values) if isinstance(values, list) else values
            if one is not OMIT:
                found[key] = plain(one)
            elif "" not in values:
                found[key] = None
        return found
    if isinstance(value, list):
        return [plain(one) for one in value]
    return value


def java(value, kind, items):
    if kind == "boolean" or isinstance(value, bool):
        return str(value).lower()
    if kind in ("String", "any", "char") or isinstance(value, str):
        return str(value)
    if kind == "long":
        return f"{value}L"
    if kind == "float":
        return f"{value}f"
    if kind == "Array":
        return "new T[]{" + ", ".join(java(one, items, None) for one in value) + "}"
    if kind == "ArrayList":
        quoted = [json.dumps(one) if isinstance(one, str) else java(one, items, None) for one in value]
        return "new ArrayList<T>(Arrays.asList(" + ", ".join(quoted) + "))" if value else "new ArrayList<>()"
    if kind == "HashMap":
        puts = " ".join(f'put("{key}", {json.dumps(one)});' for key, one in value.items())
        return "new HashMap<String, Object>() {{ " + puts + " }}"
    return str(value)


def javascript(value, kind, items):
    if kind == "String" and isinstance(value, str):
        return draw.choice(['"%s"', "'%s'", "%s"]) % value
    if isinstance(value, str):
        return value
    if kind == "Boolean" or isinstance(value, bool):
        return str(value).lower()
    if kind == "Bigint":
        return f"{value}n"
    return json.dumps(value)


def truth(item, answer, category):
    """The calls of a possible answer."""
    calls = []
    for one in answer["ground_truth"]:
        (name, arguments), = one.items()
        function = next(known for known in item["function"] if known["name"] == name)
        properties = function["parameters"]["properties"]
        given = {}
        for key, values in arguments.items():
            value = chosen(values)
            if value is OMIT and key in function["parameters"]["required"]:
                value = next((one for one in values if one != ""), "")
            if value is OMIT:
                continue
            detail = properties.get(key, {})
            kind, items = detail.get("type"), (detail.get("items") or {}).get("type")
            value = plain(value)
            if category == "simple_java":
                value = java(value, kind, items)
            if category == "simple_javascript":
                value = javascript(value, kind, items)
            given[key] = value
        calls.append((name, given))
    return calls


def broken(value):
    """A value that is another one, or another spelling of the same."""
    if isinstance(value, bool):
        return draw.choice([not value, int(value), str(value)])
    if isinstance(value, int):
        return draw.choice([value + 1, float(value), str(value), -value, value * 10**20])
    if isinstance(value, float):
        return draw.choice([value + 0.5, int(value), str(value), round(value, 1)])
    if isinstance(value, str):
        return draw.choice([
            value.upper(), value.replace(" ", ""), value + ".", value + "x", value.replace(",", " -"),
            "", value[::-1], f'"{value}"', [value], value.replace("'", '"'), value + "\n", f" {value} ",
            value.replace("{{", "{ {"), value.replace(")", ""), value.replace("new ", "new  "),
            value.replace("L", "l"), value.rstrip("Lf"), value.replace("true", "false"), f"[{value}]",
            value.replace(",", ";"), value.replace('"', "'"), "ä" + value, value + "_", value.replace("[", "[["),
        ])
    if isinstance(value, list):
        other = copy.deepcopy(value)
        way = draw.randrange(5)
        if way == 0 or not other:
            return other + ["more"]
        if way == 1:
            return other[::-1]
        if way == 2:
            return other[:-1]
        at = draw.randrange(len(other))
        other[at] = broken(other[at])
        return other
    if isinstance(value, dict):
        other = copy.deepcopy(value)
        if not other or draw.random() < 0.2:
            other["more"] = 1
            return other
        key = draw.choice(list(other))
        if draw.random() < 0.3:
            del other[key]
        else:
            other[key] = broken(other[key])
        return other
    return draw.choice([0, "", None])


def changed(calls):
    """The calls with one thing different."""
    calls = copy.deepcopy(calls)
    way = draw.randrange(10)
    if way == 0:
        return calls + calls[:1]
    if way == 1:
        return calls[1:]
    if way == 2:
        return calls[::-1]
    at = draw.randrange(len(calls))
    name, given = calls[at]
    if way == 3:
        calls[at] = (name + "x", given)
    elif way == 4:
        given["unknown"] = 1
    elif way == 5 and given:
        del given[draw.choice(list(given))]
    elif given:
        key = draw.choice(list(given))
        given[key] = broken(given[key])
    return calls


def written(calls, dotted):
    """The calls as a result file has them; now and then not as calls at all."""
    name = (lambda name: name) if dotted else (lambda name: name.replace(".", "_"))
    return [{name(one): json.dumps(given)} for one, given in calls]


def literal(value):
    """A value as Python source, in one of many spellings; now and then another value."""
    way = draw.random()
    if isinstance(value, str):
        if way < 0.1 and value.isidentifier():
            return value
        if way < 0.15:
            return f"{value[:1]!r} {value[1:]!r}"
        if way < 0.2:
            return f"{value[:1]!r} + {value[1:]!r}"
        if way < 0.23:
            return f"str({value!r})"
        if way < 0.26:
            return f'"""{value}"""'
        if way < 0.29:
            return "r" + repr(value)
        return json.dumps(value) if way < 0.5 else repr(value)
    if isinstance(value, bool):
        return draw.choice(["true", "not True", str(value), str(value), str(value)])
    if isinstance(value, int) and way < 0.3:
        return draw.choice([
            f"{value - 7} + 7", f"{value:_}", f"+{value}", hex(value), f"{value * 3} // 3", f"{value}.0",
            f"-{value}", f"({value})", f"{value} - 0", f"{value} / 1", f"2 ** {value % 9}", f"int({value})",
            f"0{value}", f"{value}km", f"x[{value}]", f"x[{value}:]", f"{value} if x else 0", f"~{value}",
        ])
    if isinstance(value, float) and way < 0.3:
        return draw.choice([f"{value} * 1", f"{value:e}", f"-{value}", f"{value}j", f"float({value})", f"math.floor({value})"])
    if isinstance(value, list):
        inner = ",".join(literal(one) for one in value)
        if way < 0.15:
            return f"({inner},)"
        return f"[{inner},]" if way < 0.25 and value else f"[ {inner} ]"
    if isinstance(value, dict):
        if way < 0.1 and value:
            return "dict(" + ", ".join(f"{key}={literal(one)}" for key, one in value.items()) + ")"
        return "{" + ", ".join(f"{key!r}: {literal(one)}" for key, one in value.items()) + "}"
    return repr(value)


def source(value, kind):
    """A value of a Java or JavaScript function, which is source already, with quotes around a text."""
    if not isinstance(value, str):
        return json.dumps(value)
    if kind in ("String", "char", "any") and not value.startswith(('"', "'")):
        quote = draw.choice(['"', '"', "'"])
        return quote + value.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote
    return value


def as_text(calls, item, category):
    """The calls as a model writes them."""
    kinds = {}
    for function in item["function"]:
        for key, detail in function["parameters"].get("properties", {}).items():
            kinds[function["name"], key] = detail.get("type")
    texts = []
    for name, given in calls:
        if category in LANGUAGE:
            values = [f"{key}={source(value, kinds.get((name, key)))}" for key, value in given.items()]
        else:
            values = [f"{key}{draw.choice(['=', ' = '])}{literal(value)}" for key, value in given.items()]
        if draw.random() < 0.05:
            values.insert(0, draw.choice(["5", "x", '"x"', "[1, 2]", "true", "g(1)", "a == 1"] + (["*x", "**x"] if category not in LANGUAGE else [])))
        if draw.random() < 0.03:
            odd = ["", "x", "a=1, a=2"] + (["from=1", "=", "**x", "lambda: 1"] if category not in LANGUAGE else [])
            values.append(draw.choice(odd))
        texts.append(f"{name}({draw.choice([', ', ',', ', '])}".rstrip(", ") + draw.choice([", ", ",", ",\n  "]).join(values) + ")")
    text = draw.choice([", ", ",", ",\n"]).join(texts)
    return draw.choice([
        f"[{text}]", f"[{text}]", f"[{text}]", text, f"```\n[{text}]\n```", f"\n [{text}]  ", f"[{text},]",
        f"[{text}", f"{text}]", f"Call: [{text}]", f"[{text}].", f"[{text}] # done]", f"[{text}];", f"[[{text}]]",
        f"{text};", f"'[{text}]'", f"```python\n[{text}]\n```", f"{text}\n{text}",
    ])


PROSE = [
    "I cannot do that.", "", "[]", "None", "Sorry", "[1, 2]", "some_tool(a=1)", "[some_tool(a=1)]", "`f(x=1)`",
    "[f(x)]", "f(a=1) is what I would call", "{'f': 1}", '[{"f": {"a": 1}}]', "[f(a=1), 5]", "f(a=1)\ng(b=2)",
    "Error during inference: 500", "a.b.c()", "[f(a=b'x')]", "[f(a=lambda: 1)]", "[f(a={1, 2})]", "x[0].f(a=1)",
    "(f)(a=1)", "f(a=1)(b=2)", "[f() for f in x]", "[f(a=1)][0]", "f(a=x.y)", "f(a=...)", "f(a=f'x')", "f(a=1j)",
    "[f(a=[1, (2, 3)], b={1: 2})]", "f(a={**x})", "f(a=x[0:1], b=g(1, y))", "f(class=1)", "f(a=1 b=2)", "f(a=-x)",
    "The function `f(a=1)` needs b.", "[f(a=1)", "f(a='x", "print(f(a=1))", "f(a=g(b=1))", "f(a=(yield))", "not f(a=1)",
    "f(\na=1,\n)", "f(a=1) if x else g(b=2)", "f (a=1)", "[ ]", "[f(a:=1)]", "f(a=[i for i in x])", "f(a='\\d')",
]


def decoded(result):
    if not isinstance(result, list):
        raise ValueError("text")
    return [{next(iter(call)): json.loads(call[next(iter(call))])} for call in result]


def is_calls(found):
    return all(isinstance(next(iter(call.values())), dict) for call in found)


def verdict(category, item, answer, result, dotted, writes):
    try:
        found = decoded(result) if not writes else default_decode_ast_prompting(
            result, FORMAT.get(category, ReturnFormat.PYTHON))
    except Exception:
        found = None
    if not isinstance(found, list):
        found = None
    called = bool(found) and is_calls(found)
    if "irrelevance" in category:
        return not called
    if "relevance" in category:
        return called
    if found is None or not is_calls(found):
        return False
    language = LANGUAGE.get(category, Language.PYTHON)
    model = "dots" if dotted else "underscores"
    try:
        return ast_checker(
            item["function"], found, answer["ground_truth"], language, category, model)["valid"]
    except Exception:
        return False


def odd():
    return draw.choice(["I cannot do that.", [], [{"f": "not json"}], [{"f": "[1, 2]"}], [{}], "Error during inference: 500"])


refused = set()
total = 0
for number in range(models + writers):
    writes = number >= models
    model = f"text-{number}" if writes else "truth" if number == 0 else f"model-{number}"
    dotted = writes or number % 2 == 1
    for category in AST + OTHER:
        items = lines(data / f"BFCL_v4_{category}.json")
        answers = lines(data / "possible_answer" / f"BFCL_v4_{category}.json") if category in AST else [None] * len(items)
        section = "live" if category.startswith("live") else "non_live"
        results, failed = [], []
        for item, answer in zip(items, answers):
            if writes:
                result = draw.choice(PROSE)
                if answer is not None and draw.random() < 0.97:
                    calls = truth(item, answer, category)
                    if draw.random() < 0.3:
                        calls = changed(calls)
                    result = as_text(calls, item, category)
            elif answer is None:
                call = [("some.tool", {"a": 1})]
                result = written(call, dotted) if draw.random() < 0.4 else odd()
                if number == 0:
                    result = written(call, dotted) if category == "live_relevance" else "No."
            else:
                calls = truth(item, answer, category)
                if number > 0 and draw.random() < 0.75:
                    calls = changed(calls)
                result = written(calls, dotted)
                if number > 0 and draw.random() < 0.03:
                    result = odd()
            valid = verdict(category, item, answer, result, dotted, writes)
            for _ in range(100):
                # Some of the acceptable values are refused by the checker itself.
                if number > 0 or valid or answer is None:
                    break
                result = written(truth(item, answer, category), dotted)
                valid = verdict(category, item, answer, result, dotted, writes)
            if number == 0 and not valid:
                refused.add(item["id"])
            results.append({"id": item["id"], "result": result, "latency": 1.0})
            if not valid:
                failed.append({"id": item["id"], "valid": False})
        total += len(results)
        head = {"accuracy": 1 - len(failed) / len(results), "total_count": len(results)}
        for kind, rows in (("result", results), ("score", [head] + failed)):
            path = out / kind / model / section / f"BFCL_v4_{category}_{kind}.json"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
print(f"{total} answers; its own checker refuses its own truth for {len(refused)} items: {sorted(refused)}")
sys.exit(refused != REFUSED)
