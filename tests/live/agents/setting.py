"""What is being run: the source and the mode of this process, the model's address, and the tools."""

import json
import os
import sys

import endpoint

SOURCE, MODE, FOLDER = sys.argv[1:4]
STREAM = MODE == "stream"
URL = endpoint.start()
INSTRUMENTATION, LIBRARY = SOURCE.split("+", 1)
BASE = os.path.join(FOLDER, f"{SOURCE}.{MODE}")
MODEL = "claude-sonnet-4-5" if "anthropic" in LIBRARY else "gpt-4o-mini"

os.environ.update(
    OPENAI_API_KEY="none", OPENAI_BASE_URL=URL, OPENAI_API_BASE=URL, ANTHROPIC_API_KEY="none",
    ANTHROPIC_BASE_URL=URL.removesuffix("/v1"), OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
    CREWAI_DISABLE_TELEMETRY="true", CREWAI_TRACING_ENABLED="false", OTEL_SDK_DISABLED="false", LITELLM_LOCAL_MODEL_COST_MAP="True",
)
if SOURCE in ("otel+google-genai", "litellm+litellm"):
    os.environ["USE_OTEL_LITELLM_REQUEST_SPAN"] = "true"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_AND_EVENT"
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
if os.environ.get("CONTENT") == "off":
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "false"
    os.environ["TRACELOOP_TRACE_CONTENT"] = "false"
    for name in ("INPUTS", "OUTPUTS", "INPUT_MESSAGES", "OUTPUT_MESSAGES", "INPUT_TEXT", "OUTPUT_TEXT"):
        os.environ[f"OPENINFERENCE_HIDE_{name}"] = "true"


# The tools, with schemas for the libraries that want them written out.
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def weather(city: str) -> str:
    """Says how warm a city is."""
    return {"Oslo": "4 degrees", "Rome": "18 degrees"}[city]


def lookup(name: str) -> int:
    """Finds the number of a person."""
    return {"Ana": 7}[name]


def read_mail(person: int, unread: bool) -> str:
    """Reads the mail of a person."""
    return f"from {person}: see you at noon"


def divide(a: int, b: int) -> float:
    """Divides two numbers."""
    return a / b


TOOLS = [add, weather, lookup, read_mail, divide]
KINDS = {int: "integer", str: "string", bool: "boolean"}


def schema(tool):
    hints = {k: v for k, v in tool.__annotations__.items() if k != "return"}
    properties = {name: {"type": KINDS[kind]} for name, kind in hints.items()}
    return {"type": "object", "properties": properties, "required": list(properties), "additionalProperties": False}


def execute(name, arguments):
    """The result of a tool, and whether it failed."""
    try:
        return str(next(t for t in TOOLS if t.__name__ == name)(**arguments)), False
    except Exception as error:
        return f"error: {error}", True


RECORDS = {}


def record(kind, value):
    """A line of one of the library's own formats."""
    if kind not in RECORDS:
        RECORDS[kind] = open(f"{BASE}.{kind}.jsonl", "w")
    RECORDS[kind].write(json.dumps(value, default=str) + "\n")
    RECORDS[kind].flush()
