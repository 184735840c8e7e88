"""Runs one real library against the scripted endpoint and writes what it exports.

drive.py SOURCE (plain|stream) FOLDER writes SOURCE.MODE.spans.jsonl (what a collector's file exporter
writes), .spans.binpb (protobuf), .console.json (what the SDK prints), .logs.jsonl where there are log
records, and the library's own formats. With OTLP=URL the spans also go there, over HTTP as protobuf.
"""

import base64
import importlib
import json
import os
import random
import sys
import time

from endpoint import TASKS
from libraries import LIBRARIES
from platforms import platform
from setting import BASE, INSTRUMENTATION, LIBRARY, MODE, SOURCE

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor, SpanExporter, SpanExportResult


def hex_ids(value):
    """protobuf's JSON writes bytes in base64; OTLP's JSON has ids in hex."""
    if isinstance(value, list):
        return [hex_ids(one) for one in value]
    if isinstance(value, dict):
        ids = ("traceId", "spanId", "parentSpanId")
        return {k: base64.b64decode(v).hex() if k in ids else hex_ids(v) for k, v in value.items()}
    return value


def as_line(message):
    from google.protobuf.json_format import MessageToDict

    return json.dumps(hex_ids(MessageToDict(message, use_integers_for_enums=True))) + "\n"


class ToFiles(SpanExporter):
    """Batches of three spans, as they end: children before parents."""

    def __init__(self):
        self.lines, self.binary, self.spans = open(BASE + ".spans.jsonl", "w"), open(BASE + ".spans.binpb", "wb"), []

    def export(self, spans):
        self.spans += spans
        if len(self.spans) >= 3:
            self.force_flush()
        return SpanExportResult.SUCCESS

    def force_flush(self, timeout_millis=0):
        if self.spans:
            message = encode_spans(self.spans)
            data = message.SerializeToString()
            self.lines.write(as_line(message))
            self.binary.write(len(data).to_bytes(4, "big") + data)
            self.lines.flush()
            self.binary.flush()
            self.spans = []
        return True

    def shutdown(self):
        self.force_flush()


PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(ToFiles()))
PROVIDER.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(out=open(BASE + ".console.json", "w"))))


class Disordered(SpanExporter):
    """Sends all spans over HTTP in the end: small batches in no order, slowly, every third one twice."""

    def __init__(self, url):
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        self.exporter, self.spans = OTLPSpanExporter(endpoint=url + "/v1/traces"), []

    def export(self, spans):
        self.spans += spans
        return SpanExportResult.SUCCESS

    def shutdown(self):
        random.Random(7).shuffle(self.spans)
        batches = [self.spans[at : at + 2] for at in range(0, len(self.spans), 2)]
        for batch in batches + batches[::3]:
            if self.exporter.export(batch) != SpanExportResult.SUCCESS:
                sys.exit("a batch could not be sent")
            time.sleep(0.2)
        self.exporter.shutdown()

    def force_flush(self, timeout_millis=0):
        return True


if os.environ.get("OTLP"):
    PROVIDER.add_span_processor(SimpleSpanProcessor(Disordered(os.environ["OTLP"])))
trace.set_tracer_provider(PROVIDER)


def log_provider():
    """Log records, for the instrumentation that puts content there."""
    from opentelemetry import _logs
    from opentelemetry.exporter.otlp.proto.common._log_encoder import encode_logs
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

    out = open(BASE + ".logs.jsonl", "w")

    class Export:
        def export(self, batch):
            out.write(as_line(encode_logs(batch)))
            out.flush()

        def shutdown(self):
            pass

        def force_flush(self, timeout_millis=0):
            return True

    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(Export()))
    _logs.set_logger_provider(provider)
    return provider


# (module, class) by instrumentation and the start of the library's name
INSTRUMENTORS = {
    ("openinference", "openai-agents"): ("openinference.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
    ("openinference", "openai"): ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    ("openinference", "anthropic"): ("openinference.instrumentation.anthropic", "AnthropicInstrumentor"),
    ("openinference", "langchain"): ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
    ("openinference", "llama-index"): ("openinference.instrumentation.llama_index", "LlamaIndexInstrumentor"),
    ("openinference", "google-adk"): ("openinference.instrumentation.google_adk", "GoogleADKInstrumentor"),
    ("openinference", "crewai"): ("openinference.instrumentation.crewai", "CrewAIInstrumentor"),
    ("openinference", "agno"): ("openinference.instrumentation.agno", "AgnoInstrumentor"),
    ("openinference", "autogen"): ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    ("traceloop", "openai-agents"): ("opentelemetry.instrumentation.openai_agents", "OpenAIAgentsInstrumentor"),
    ("traceloop", "openai"): ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    ("traceloop", "anthropic"): ("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor"),
    ("traceloop", "langchain"): ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    ("traceloop", "llama-index"): ("opentelemetry.instrumentation.llamaindex", "LlamaIndexInstrumentor"),
    ("traceloop", "crewai"): ("opentelemetry.instrumentation.crewai", "CrewAIInstrumentor"),
    ("traceloop-events", "openai"): ("opentelemetry.instrumentation.openai", "OpenAIInstrumentor"),
    ("traceloop-events", "anthropic"): ("opentelemetry.instrumentation.anthropic", "AnthropicInstrumentor"),
    ("traceloop-events", "langchain"): ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    ("openinference", "smolagents"): ("openinference.instrumentation.smolagents", "SmolagentsInstrumentor"),
    ("openinference", "dspy"): ("openinference.instrumentation.dspy", "DSPyInstrumentor"),
    ("openinference", "bedrock"): ("openinference.instrumentation.bedrock", "BedrockInstrumentor"),
    ("openinference", "google-genai"): ("openinference.instrumentation.google_genai", "GoogleGenAIInstrumentor"),
    ("traceloop", "bedrock"): ("opentelemetry.instrumentation.bedrock", "BedrockInstrumentor"),
    ("otel", "bedrock"): ("opentelemetry.instrumentation.botocore", "BotocoreInstrumentor"),
    ("otel", "google-genai"): ("opentelemetry.instrumentation.google_genai", "GoogleGenAiSdkInstrumentor"),
    ("phoenix", "openai"): ("openinference.instrumentation.openai", "OpenAIInstrumentor"),
    ("openai-v2", "openai"): ("opentelemetry.instrumentation.openai_v2", "OpenAIInstrumentor"),
}


def main():
    writes_logs = INSTRUMENTATION in ("openai-v2", "otel", "traceloop-events")
    logs = log_provider() if writes_logs or LIBRARY in ("google-adk", "semantic-kernel") else None
    starts = [key for key in INSTRUMENTORS if key[0] == INSTRUMENTATION and LIBRARY.startswith(key[1])]
    if starts:
        module, name = INSTRUMENTORS[max(starts, key=lambda key: len(key[1]))]
        more = {"logger_provider": logs} if writes_logs else {}
        # It writes the messages to events instead of attributes.
        events = {"use_legacy_attributes": False} if INSTRUMENTATION == "traceloop-events" else {}
        getattr(importlib.import_module(module), name)(**events).instrument(tracer_provider=PROVIDER, **more)
    if INSTRUMENTATION == "openinference" and LIBRARY == "crewai":
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        LiteLLMInstrumentor().instrument(tracer_provider=PROVIDER)
    where = platform()
    where.start(PROVIDER)
    library = LIBRARIES[LIBRARY]
    answers = {}
    for task, (question, _, _) in TASKS.items():
        try:
            with where.around(task):
                answers[task] = library(task, question)
        except Exception as error:
            answers[task] = None
            if task != "failing":
                raise
            print(f"{SOURCE} {MODE}: {task} ended in {type(error).__name__}: {error}", file=sys.stderr)
    PROVIDER.force_flush()
    where.end()
    PROVIDER.shutdown()
    with open(BASE + ".answers.json", "w") as out:
        json.dump(answers, out)


main()
