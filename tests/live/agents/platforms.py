"""Platforms that record what an agent does in a way of their own.

Each is switched on by `start(PROVIDER)`, names a task by `around(task)`, and writes its own export in `end()`.
"""

import contextlib
import json
import os

import setting
from setting import BASE, FOLDER, INSTRUMENTATION, LIBRARY, MODE, SOURCE, URL, record


class Platform:
    """OpenTelemetry with the global provider, where nothing more is to be done."""

    def start(self, provider):
        pass

    def around(self, task):
        from opentelemetry import trace

        return trace.get_tracer("karat-test").start_as_current_span("task", attributes={"karat.task": task})

    def end(self):
        pass


class Mlflow(Platform):
    """Its traces as JSON, as `Trace.to_json` writes them and as its artifact has them."""

    def start(self, provider):
        os.environ["MLFLOW_ENABLE_ASYNC_TRACE_LOGGING"] = "false"
        import mlflow

        self.mlflow = mlflow
        # Making a store takes long: all sources share one.
        mlflow.set_tracking_uri(f"sqlite:///{os.path.abspath(FOLDER)}/mlflow.db")
        mlflow.set_experiment(f"{SOURCE} {MODE}")
        name = next(n for n in ("openai", "anthropic", "langchain") if LIBRARY.startswith(n))
        getattr(mlflow, name).autolog()

    def around(self, task):
        return self.mlflow.start_span(name="task", attributes={"karat.task": task})

    def end(self):
        for trace in self.mlflow.search_traces(return_type="list", include_spans=True):
            record("mlflow", json.loads(trace.to_json()))


class Logfire(Platform):
    def start(self, provider):
        import logfire

        logfire.configure(send_to_logfire=False, console=False, additional_span_processors=[Forward(provider)])
        if LIBRARY.startswith("openai-agents"):
            logfire.instrument_openai_agents()
        elif LIBRARY.startswith("openai"):
            logfire.instrument_openai()
        elif LIBRARY.startswith("anthropic"):
            logfire.instrument_anthropic()
        else:
            logfire.instrument_pydantic_ai()
        self.logfire = logfire

    def around(self, task):
        return self.logfire.span("task", **{"karat.task": task})

    def end(self):
        self.logfire.force_flush()


class Forward:
    """Gives the spans of another provider to the files of this one."""

    def __init__(self, provider):
        self.processor = provider._active_span_processor

    def on_start(self, span, parent_context=None):
        pass

    def _on_ending(self, span):
        pass

    def on_end(self, span):
        self.processor.on_end(span)

    def shutdown(self):
        pass

    def force_flush(self, timeout_millis=0):
        return True


class Langfuse(Platform):
    """Its client exports spans; nothing is sent to the server here."""

    def start(self, provider):
        os.environ.update(LANGFUSE_PUBLIC_KEY="pk", LANGFUSE_SECRET_KEY="sk", LANGFUSE_HOST=URL.removesuffix("/v1"), LANGFUSE_BASE_URL=URL.removesuffix("/v1"))
        import langfuse

        self.client = langfuse.Langfuse(tracer_provider=provider)
        if LIBRARY.startswith("openai"):
            import langfuse.openai
        else:
            from langfuse.langchain import CallbackHandler

            import libraries

            libraries.CALLBACKS.append(CallbackHandler())

    def end(self):
        self.client.flush()


class Langsmith(Platform):
    """Its runs, as a client lists them."""

    def start(self, provider):
        os.environ.update(LANGSMITH_TRACING="true", LANGSMITH_API_KEY="none", LANGSMITH_ENDPOINT=URL.removesuffix("/v1") + "/langsmith")
        import langsmith

        self.langsmith = langsmith
        if LIBRARY.startswith("openai"):
            import openai
            from langsmith.wrappers import wrap_openai

            made = openai.OpenAI
            openai.OpenAI = lambda: wrap_openai(made())
            import libraries

            def execute(name, arguments):
                tool = next(t for t in setting.TOOLS if t.__name__ == name)
                try:
                    return str(langsmith.traceable(run_type="tool")(tool)(**arguments)), False
                except Exception as error:
                    return f"error: {error}", True

            libraries.execute = execute

    @contextlib.contextmanager
    def around(self, task):
        with self.langsmith.tracing_context(enabled="local"):
            root = self.langsmith.trace("task", metadata={"task": task})
            try:
                with root as run:
                    yield
            finally:
                self.write(run)

    def write(self, run):
        fields = run.model_dump(mode="json", exclude={"child_runs", "client", "parent_run"}) if hasattr(run, "model_dump") else run.dict()
        record("langsmith", fields)
        for child in run.child_runs:
            self.write(child)


class LangsmithOtel(Platform):
    """LangSmith's tracing as spans of OpenTelemetry."""

    def start(self, provider):
        os.environ.update(
            LANGSMITH_TRACING="true", LANGSMITH_API_KEY="none", LANGSMITH_ENDPOINT=URL.removesuffix("/v1") + "/langsmith",
            LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true",
        )

    def end(self):
        import langsmith

        langsmith.run_trees.get_cached_client().flush()


class LiteLlm(Platform):
    def start(self, provider):
        import litellm
        from litellm.integrations.opentelemetry import OpenTelemetry

        litellm.callbacks = [OpenTelemetry(tracer_provider=provider)]

    def end(self):
        import time

        time.sleep(2)


class SemanticKernel(Platform):
    """Content comes in log records, from Python's logging."""

    def start(self, provider):
        import logging

        os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "true"
        from opentelemetry import _logs
        from opentelemetry.sdk._logs import LoggingHandler

        handler = LoggingHandler(logger_provider=_logs.get_logger_provider())
        logging.getLogger().addHandler(handler)
        logging.getLogger().setLevel(logging.INFO)


class Openlit(Platform):
    def start(self, provider):
        import openlit

        # Without a file it asks the network for prices.
        prices = BASE + ".prices.json"
        with open(prices, "w") as out:
            out.write("{}")
        openlit.init(disable_metrics=True, capture_message_content=True, pricing_json=prices)


class Phoenix(Platform):
    """A Phoenix on this machine: what its API answers, and its table of spans."""

    def start(self, provider):
        import socket
        import subprocess
        import sys
        import time
        import urllib.request

        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace.export import SimpleSpanProcessor

        def free():
            with socket.socket() as one:
                one.bind(("127.0.0.1", 0))
                return one.getsockname()[1]

        port = free()
        more = {"PHOENIX_PORT": str(port), "PHOENIX_HOST": "127.0.0.1", "PHOENIX_GRPC_PORT": str(free()), "PHOENIX_WORKING_DIR": os.path.abspath(BASE) + ".phoenix", "PHOENIX_TELEMETRY_ENABLED": "false"}
        self.server = subprocess.Popen([sys.executable, "-m", "phoenix.server.main", "serve"], cwd=os.path.dirname(os.path.abspath(BASE)), env={**os.environ, **more}, stdout=subprocess.DEVNULL, stderr=open(BASE + ".phoenix.log", "w"))
        self.url = f"http://127.0.0.1:{port}"
        for _ in range(400):
            try:
                urllib.request.urlopen(self.url + "/healthz").read()
                break
            except OSError:
                time.sleep(1)
        provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(endpoint=self.url + "/v1/traces")))

    def end(self):
        import time
        import urllib.request

        try:
            for _ in range(30):
                time.sleep(1)
                text = urllib.request.urlopen(self.url + "/v1/projects/default/spans?limit=1000").read()
                if len(json.loads(text)["data"]) >= 14:
                    break
            with open(BASE + ".phoenix.json", "wb") as out:
                out.write(text)
            with open(BASE + ".phoenix-otlp.json", "wb") as out:
                out.write(urllib.request.urlopen(self.url + "/v1/projects/default/spans/otlpv1?limit=1000").read())
            from phoenix.client import Client

            frame = Client(base_url=self.url).spans.get_spans_dataframe(limit=1000)
            frame.to_json(BASE + ".phoenix-frame.jsonl", orient="records", lines=True, date_format="iso", default_handler=str)
        finally:
            self.server.terminate()
            self.server.wait()


PLATFORMS = {
    "mlflow": Mlflow,
    "logfire": Logfire,
    "langfuse": Langfuse,
    "langsmith": Langsmith,
    "langsmith-otel": LangsmithOtel,
    "litellm": LiteLlm,
    "openlit": Openlit,
    "phoenix": Phoenix,
}


def platform():
    if LIBRARY == "semantic-kernel":
        return SemanticKernel()
    return PLATFORMS.get(INSTRUMENTATION, Platform)()
