"""Runs one real library against the scripted endpoint and writes what it exports.

drive.py SOURCE (plain|stream) FOLDER writes SOURCE.MODE.spans.jsonl (what a collector's file exporter
writes), .spans.binpb (protobuf), .console.json (what the SDK prints), .logs.jsonl where there are log
records, and the library's own formats. With OTLP=URL the spans also go there, over HTTP.
"""

import base64
import importlib
import json
import os
import sys

import endpoint
from endpoint import TASKS

from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor, SpanExporter, SpanExportResult

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
if os.environ.get("CONTENT") == "off":
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "false"
    os.environ["TRACELOOP_TRACE_CONTENT"] = "false"
    for name in ("INPUTS", "OUTPUTS", "INPUT_MESSAGES", "OUTPUT_MESSAGES", "INPUT_TEXT", "OUTPUT_TEXT"):
        os.environ[f"OPENINFERENCE_HIDE_{name}"] = "true"


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
if os.environ.get("OTLP"):
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    PROVIDER.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=os.environ["OTLP"] + "/v1/traces")))
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


# The libraries. Each does one task.
def openai_chat(task, question):
    import openai

    client = openai.OpenAI()
    messages = [{"role": "user", "content": question}]
    tools = [
        {"type": "function", "function": {"name": t.__name__, "description": t.__doc__, "parameters": schema(t)}}
        for t in TOOLS
    ]
    while True:
        request = {"model": MODEL, "messages": list(messages), "tools": tools}
        if STREAM:
            with client.chat.completions.stream(**request, stream_options={"include_usage": True}) as stream:
                for _ in stream:
                    pass
                response = stream.get_final_completion()
        else:
            response = client.chat.completions.create(**request)
        record("openai", {"task": task, "request": request, "response": response.model_dump(mode="json")})
        message = response.choices[0].message
        sent = message.model_dump(mode="json", exclude_none=True, include={"role", "content", "tool_calls"})
        for call in sent.get("tool_calls", []):
            call["function"] = {k: call["function"][k] for k in ("name", "arguments")}
        messages.append(sent)
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result, _ = execute(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def openai_responses(task, question):
    import openai

    client = openai.OpenAI()
    given = [{"role": "user", "content": question}]
    tools = [
        {"type": "function", "name": t.__name__, "description": t.__doc__, "parameters": schema(t), "strict": True}
        for t in TOOLS
    ]
    while True:
        request = {"model": MODEL, "input": list(given), "tools": tools}
        if STREAM:
            with client.responses.stream(**request) as stream:
                for _ in stream:
                    pass
                response = stream.get_final_response()
        else:
            response = client.responses.create(**request)
        record("openai", {"task": task, "request": request, "response": response.model_dump(mode="json")})
        calls = [item for item in response.output if item.type == "function_call"]
        for call in calls:
            given.append({k: getattr(call, k) for k in ("type", "call_id", "name", "arguments")})
        if not calls:
            return response.output_text
        for call in calls:
            result, _ = execute(call.name, json.loads(call.arguments))
            given.append({"type": "function_call_output", "call_id": call.call_id, "output": result})


def anthropic_messages(task, question):
    import anthropic

    client = anthropic.Anthropic()
    messages = [{"role": "user", "content": question}]
    tools = [{"name": t.__name__, "description": t.__doc__, "input_schema": schema(t)} for t in TOOLS]
    while True:
        request = {"model": MODEL, "max_tokens": 100, "messages": list(messages), "tools": tools}
        if STREAM:
            with client.messages.stream(**request) as stream:
                for _ in stream:
                    pass
                response = stream.get_final_message()
        else:
            response = client.messages.create(**request)
        record("anthropic", {"task": task, "request": request, "response": response.model_dump(mode="json")})
        content = [b.model_dump(mode="json", include={"type", "text", "id", "name", "input"}) for b in response.content]
        messages.append({"role": "assistant", "content": content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if not calls:
            return response.content[0].text
        results = []
        for call in calls:
            result, failed = execute(call.name, call.input)
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": result, "is_error": failed})
        messages.append({"role": "user", "content": results})


def openai_agents(task, question):
    import agents
    from agents.tracing.processor_interface import TracingExporter

    class Lines(TracingExporter):
        def export(self, items):
            for item in items:
                record("agents-trace", item.export())

    if not RECORDS.get("agents-trace") and INSTRUMENTATION == "own":
        from agents.tracing.processors import BatchTraceProcessor

        agents.set_trace_processors([BatchTraceProcessor(Lines())])
    use = agents.OpenAIResponsesModel if LIBRARY.endswith("responses") else agents.OpenAIChatCompletionsModel
    import openai

    client = openai.AsyncOpenAI()
    agent = agents.Agent(
        name="helper",
        model=use(model=MODEL, openai_client=client),
        tools=[agents.function_tool(t) for t in TOOLS],
        model_settings=agents.ModelSettings(include_usage=True),
    )

    async def go():
        config = agents.RunConfig(group_id=task, trace_metadata={"task": task})
        if STREAM:
            result = agents.Runner.run_streamed(agent, question, run_config=config)
            async for _ in result.stream_events():
                pass
        else:
            result = await agents.Runner.run(agent, question, run_config=config)
        record("openai", {"task": task, "input": result.to_input_list()})
        return result.final_output

    import asyncio

    return asyncio.run(go())


def langchain(task, question):
    from langchain.agents import create_agent
    from langchain_core.messages import convert_to_openai_messages, messages_to_dict

    if "anthropic" in LIBRARY:
        from langchain_anthropic import ChatAnthropic

        model = ChatAnthropic(model=MODEL, streaming=STREAM)
    else:
        from langchain_openai import ChatOpenAI

        model = ChatOpenAI(model=MODEL, streaming=STREAM, stream_usage=True)
    agent = create_agent(model, TOOLS)
    given = {"messages": [{"role": "user", "content": question}]}
    result = agent.invoke(given)
    record("langchain", {"task": task, "messages": messages_to_dict(result["messages"])})
    record("openai", {"task": task, "messages": convert_to_openai_messages(result["messages"])})
    return result["messages"][-1].text


def pydantic_ai(task, question):
    from pydantic_ai import Agent

    if "anthropic" in LIBRARY:
        from pydantic_ai.models.anthropic import AnthropicModel

        model = AnthropicModel(MODEL)
    elif LIBRARY.endswith("responses"):
        from pydantic_ai.models.openai import OpenAIResponsesModel

        model = OpenAIResponsesModel(MODEL)
    else:
        from pydantic_ai.models.openai import OpenAIChatModel

        model = OpenAIChatModel(MODEL)
    Agent.instrument_all()
    agent = Agent(model, tools=TOOLS)
    if STREAM:
        result = agent.run_stream_sync(question)
        answer = result.get_output()
    else:
        result = agent.run_sync(question)
        answer = result.output
    record("pydantic-ai", {"task": task, "messages": json.loads(result.all_messages_json())})
    return answer


def llama_index(task, question):
    import asyncio

    from llama_index.core.agent.workflow import FunctionAgent
    from llama_index.llms.openai import OpenAI

    async def go():
        more = {"stream_options": {"include_usage": True}} if STREAM else {}
        llm = OpenAI(model=MODEL, api_base=URL, api_key="none", additional_kwargs=more)
        agent = FunctionAgent(tools=TOOLS, llm=llm, streaming=STREAM)
        return str(await agent.run(user_msg=question))

    return asyncio.run(go())


def google_adk(task, question):
    import asyncio

    from google.adk.agents import Agent
    from google.adk.agents.run_config import RunConfig, StreamingMode
    from google.adk.models.lite_llm import LiteLlm
    from google.adk.runners import InMemoryRunner
    from google.genai import types

    agent = Agent(name="helper", model=LiteLlm(model="openai/" + MODEL, api_base=URL, api_key="none"), tools=list(TOOLS))

    async def go():
        runner = InMemoryRunner(agent=agent, app_name="app")
        session = await runner.session_service.create_session(app_name="app", user_id="u")
        message = types.Content(role="user", parts=[types.Part(text=question)])
        config = RunConfig(streaming_mode=StreamingMode.SSE if STREAM else StreamingMode.NONE)
        answer = None
        async for event in runner.run_async(user_id="u", session_id=session.id, new_message=message, run_config=config):
            if event.content and event.content.parts and event.content.parts[0].text:
                answer = event.content.parts[0].text
        return answer

    return asyncio.run(go())


def crewai(task, question):
    from crewai import LLM, Agent, Crew, Task
    from crewai.tools import tool

    tools = [tool(t.__name__)(t) for t in TOOLS]
    agent = Agent(role="helper", goal="Help.", backstory="A helper.", llm=LLM(model="openai/" + MODEL, base_url=URL, api_key="none", stream=STREAM), tools=tools)
    crew = Crew(agents=[agent], tasks=[Task(description=question, expected_output="An answer.", agent=agent)])
    return crew.kickoff().raw


def strands(task, question):
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    model = OpenAIModel(client_args={"api_key": "none", "base_url": URL}, model_id=MODEL)
    return str(Agent(model=model, tools=[tool(t) for t in TOOLS], callback_handler=None)(question)).strip()


def agno(task, question):
    from agno.agent import Agent
    from agno.models.openai import OpenAIChat

    agent = Agent(model=OpenAIChat(id=MODEL, base_url=URL, api_key="none"), tools=list(TOOLS), telemetry=False)
    if not STREAM:
        return agent.run(question).content
    words = [event.content for event in agent.run(question, stream=True) if isinstance(event.content, str)]
    return "".join(words)


def haystack(task, question):
    from haystack.components.agents import Agent
    from haystack.components.generators.chat import OpenAIChatGenerator
    from haystack.components.generators.utils import print_streaming_chunk
    from haystack.dataclasses import ChatMessage
    from haystack.tools import create_tool_from_function
    from haystack.utils import Secret

    generator = OpenAIChatGenerator(api_key=Secret.from_token("none"), model=MODEL, api_base_url=URL)
    shown = print_streaming_chunk if STREAM else None
    agent = Agent(chat_generator=generator, tools=[create_tool_from_function(t) for t in TOOLS], streaming_callback=shown)
    messages = agent.run(messages=[ChatMessage.from_user(question)])["messages"]
    record("haystack", {"task": task, "messages": [message.to_dict() for message in messages]})
    return messages[-1].text


def autogen(task, question):
    import asyncio

    from autogen_agentchat.agents import AssistantAgent
    from autogen_core.models import ModelInfo
    from autogen_ext.models.openai import OpenAIChatCompletionClient

    info = ModelInfo(vision=False, function_calling=True, json_output=False, family="unknown", structured_output=False)
    client = OpenAIChatCompletionClient(model=MODEL, base_url=URL, api_key="none", model_info=info, include_name_in_message=False)
    agent = AssistantAgent(
        "helper", model_client=client, tools=list(TOOLS), max_tool_iterations=5, model_client_stream=STREAM, system_message=None,
    )

    async def go():
        result = await agent.run(task=question)
        record("autogen", {"task": task, "messages": [message.model_dump(mode="json") for message in result.messages]})
        return result.messages[-1].to_text()

    return asyncio.run(go())


LIBRARIES = {
    "strands": strands,
    "agno": agno,
    "haystack": haystack,
    "autogen": autogen,
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic_messages,
    "openai-agents-chat": openai_agents,
    "openai-agents-responses": openai_agents,
    "langchain-openai": langchain,
    "langchain-anthropic": langchain,
    "pydantic-ai-chat": pydantic_ai,
    "pydantic-ai-responses": pydantic_ai,
    "pydantic-ai-anthropic": pydantic_ai,
    "llama-index": llama_index,
    "google-adk": google_adk,
    "crewai": crewai,
}
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
    ("openai-v2", "openai"): ("opentelemetry.instrumentation.openai_v2", "OpenAIInstrumentor"),
}


def main():
    in_logs = INSTRUMENTATION == "openai-v2" or LIBRARY == "google-adk"
    logs = log_provider() if in_logs else None
    starts = [key for key in INSTRUMENTORS if key[0] == INSTRUMENTATION and LIBRARY.startswith(key[1])]
    if starts:
        module, name = INSTRUMENTORS[max(starts, key=lambda key: len(key[1]))]
        more = {"logger_provider": logs} if INSTRUMENTATION == "openai-v2" else {}
        getattr(importlib.import_module(module), name)().instrument(tracer_provider=PROVIDER, **more)
    if INSTRUMENTATION == "openinference" and LIBRARY == "crewai":
        from openinference.instrumentation.litellm import LiteLLMInstrumentor

        LiteLLMInstrumentor().instrument(tracer_provider=PROVIDER)
    library = LIBRARIES[LIBRARY]
    tracer = trace.get_tracer("karat-test")
    answers = {}
    for task, (question, _, _) in TASKS.items():
        try:
            with tracer.start_as_current_span("task", attributes={"karat.task": task}):
                answers[task] = library(task, question)
        except Exception as error:
            answers[task] = None
            if task != "failing":
                raise
            print(f"{SOURCE} {MODE}: {task} ended in {type(error).__name__}: {error}", file=sys.stderr)
    PROVIDER.force_flush()
    PROVIDER.shutdown()
    with open(BASE + ".answers.json", "w") as out:
        json.dump(answers, out)


main()
