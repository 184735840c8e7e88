"""Agent libraries and clients. Each function does one task and returns the answer."""

import json

from setting import INSTRUMENTATION, LIBRARY, MODEL, STREAM, TOOLS, URL, execute, record, schema

# Listeners that langchain is given, and openai-agents.
CALLBACKS = []
PROCESSORS = []


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

    if not PROCESSORS and INSTRUMENTATION == "own":
        from agents.tracing.processors import BatchTraceProcessor

        PROCESSORS.append(BatchTraceProcessor(Lines()))
        agents.set_trace_processors(PROCESSORS)
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

    answer = asyncio.run(go())
    for processor in PROCESSORS:
        processor.force_flush()
    return answer


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
    result = agent.invoke(given, config={"callbacks": CALLBACKS})
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


def semantic_kernel(task, question):
    import asyncio

    import openai
    from semantic_kernel.agents import ChatCompletionAgent
    from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion
    from semantic_kernel.functions import KernelPlugin, kernel_function

    plugin = KernelPlugin(name="tools", functions=[kernel_function(description=t.__doc__)(t) for t in TOOLS])

    async def go():
        service = OpenAIChatCompletion(ai_model_id=MODEL, async_client=openai.AsyncOpenAI())
        agent = ChatCompletionAgent(service=service, name="helper", plugins=[plugin])
        thread, words = None, []
        if STREAM:
            async for part in agent.invoke_stream(messages=question):
                thread = part.thread
                words.append(str(part.message))
        else:
            response = await agent.get_response(messages=question)
            thread = response.thread
            words.append(str(response.message))
        record("semantic-kernel", {"task": task, **json.loads(thread._chat_history.serialize())})
        return "".join(words)

    return asyncio.run(go())


def agent_framework(task, question):
    import asyncio

    from agent_framework import Agent
    from agent_framework.observability import enable_instrumentation
    from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

    enable_instrumentation(enable_sensitive_data=True)
    client = OpenAIChatClient if LIBRARY.endswith("responses") else OpenAIChatCompletionClient

    async def go():
        # The endpoint keeps nothing, so every request has the whole conversation.
        more = {"default_options": {"store": False}} if LIBRARY.endswith("responses") else {}
        agent = Agent(client=client(model=MODEL, api_key="none", base_url=URL), name="helper", tools=list(TOOLS), **more)
        if not STREAM:
            return (await agent.run(question)).text
        return "".join([update.text async for update in agent.run(question, stream=True)])

    return asyncio.run(go())


def litellm(task, question):
    import litellm

    messages = [{"role": "user", "content": question}]
    tools = [
        {"type": "function", "function": {"name": t.__name__, "description": t.__doc__, "parameters": schema(t)}}
        for t in TOOLS
    ]
    while True:
        request = {"model": "openai/" + MODEL, "messages": list(messages), "tools": tools, "api_base": URL, "api_key": "none"}
        if STREAM:
            parts = list(litellm.completion(**request, stream=True, stream_options={"include_usage": True}))
            response = litellm.stream_chunk_builder(parts, messages=messages)
        else:
            response = litellm.completion(**request)
        message = response.choices[0].message
        messages.append(message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"}))
        if not message.tool_calls:
            return message.content
        for call in message.tool_calls:
            result, _ = execute(call.function.name, json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})


def smolagents(task, question):
    from smolagents import OpenAIServerModel, Tool, ToolCallingAgent

    def described(t):
        """A tool as a class, for docstrings here do not describe the arguments."""
        fields = schema(t)["properties"]
        inputs = {name: {**kind, "description": "A value."} for name, kind in fields.items()}
        members = {"name": t.__name__, "description": t.__doc__, "inputs": inputs, "output_type": "any", "forward": staticmethod(t), "skip_forward_signature_validation": True}
        return type(t.__name__, (Tool,), members)()

    model = OpenAIServerModel(model_id=MODEL, api_base=URL, api_key="none")
    return ToolCallingAgent(tools=[described(t) for t in TOOLS], model=model, stream_outputs=STREAM, verbosity_level=0).run(question)


def dspy(task, question):
    import dspy

    dspy.configure(lm=dspy.LM("openai/" + MODEL, api_base=URL, api_key="none", cache=False))
    return dspy.ReAct("question -> answer", tools=list(TOOLS), max_iters=5)(question=question).answer


def bedrock(task, question):
    import boto3

    client = boto3.client(
        "bedrock-runtime", region_name="eu-west-1", endpoint_url=URL.removesuffix("/v1"), aws_access_key_id="none", aws_secret_access_key="none",
    )
    messages = [{"role": "user", "content": [{"text": question}]}]
    tools = [{"toolSpec": {"name": t.__name__, "description": t.__doc__, "inputSchema": {"json": schema(t)}}} for t in TOOLS]
    while True:
        request = {"modelId": "amazon.nova-lite-v1:0", "messages": list(messages), "toolConfig": {"tools": tools}}
        if STREAM:
            message = converse_streamed(client.converse_stream(**request)["stream"])
        else:
            response = client.converse(**request)
            message = response["output"]["message"]
            kept = {k: response[k] for k in ("output", "stopReason", "usage")}
            record("bedrock", {"task": task, "request": request, "response": kept})
        messages.append(message)
        calls = [block["toolUse"] for block in message["content"] if "toolUse" in block]
        if not calls:
            return message["content"][0]["text"]
        results = []
        for call in calls:
            result, failed = execute(call["name"], call["input"])
            status = "error" if failed else "success"
            results.append({"toolResult": {"toolUseId": call["toolUseId"], "content": [{"text": result}], "status": status}})
        messages.append({"role": "user", "content": results})


def converse_streamed(events):
    content = []
    for event in events:
        if start := event.get("contentBlockStart"):
            content.append({"toolUse": {**start["start"]["toolUse"], "input": ""}})
        elif delta := event.get("contentBlockDelta"):
            if len(content) <= delta["contentBlockIndex"]:
                content.append({"text": ""})
            if use := delta["delta"].get("toolUse"):
                content[-1]["toolUse"]["input"] += use["input"]
            else:
                content[-1]["text"] += delta["delta"]["text"]
    for block in content:
        if "toolUse" in block:
            block["toolUse"]["input"] = json.loads(block["toolUse"]["input"])
    return {"role": "assistant", "content": content}


def google_genai(task, question):
    from google import genai
    from google.genai import types

    client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=URL.removesuffix("/v1")))
    declared = [{"name": t.__name__, "description": t.__doc__, "parameters_json_schema": schema(t)} for t in TOOLS]
    config = types.GenerateContentConfig(tools=[types.Tool(function_declarations=declared)])
    contents = [types.Content(role="user", parts=[types.Part(text=question)])]
    while True:
        request = {"model": "gemini-2.5-flash", "contents": list(contents), "config": config}
        if STREAM:
            chunks = [c for c in client.models.generate_content_stream(**request)]
            parts = [p for c in chunks for p in c.candidates[0].content.parts if p.text or p.function_call]
            if not any(p.function_call for p in parts):
                parts = [types.Part(text="".join(p.text for p in parts))]
        else:
            response = client.models.generate_content(**request)
            parts = response.candidates[0].content.parts
        contents.append(types.Content(role="model", parts=parts))
        calls = [p.function_call for p in parts if p.function_call]
        if not calls:
            record("gemini", {"task": task, "contents": [c.model_dump(mode="json", exclude_none=True) for c in contents]})
            return parts[0].text
        results = []
        for call in calls:
            result, failed = execute(call.name, call.args)
            results.append(types.Part.from_function_response(name=call.name, response={"error" if failed else "result": result}))
        contents.append(types.Content(role="user", parts=results))


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
    "semantic-kernel": semantic_kernel,
    "agent-framework-chat": agent_framework,
    "agent-framework-responses": agent_framework,
    "litellm": litellm,
    "smolagents": smolagents,
    "dspy": dspy,
    "bedrock": bedrock,
    "google-genai": google_genai,
}
