"""A scripted model: OpenAI chat completions and Responses, Anthropic messages, Bedrock's Converse and Gemini,
plain and streamed.

Every answer follows from the request alone: the user's question names the task, the results that the
request already has name the step. Runs in a thread of the program that drives the libraries.

endpoint.py FOLDER runs alone, prints its address, and writes the OTLP/JSON that comes to /NAME/v1/traces to
FOLDER/NAME.spans.jsonl.
"""

import binascii
import gzip
import json
import os
import re
import struct
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

# Every exchange uses as many tokens; the cached ones are part of the input, reasoning is part of the output.
INPUT, CACHED, OUTPUT, REASONING = 30, 12, 10, 4

# question, the calls of each round, the answer
TASKS = {
    "one": ("What do 2 and 3 make?", [[("add", {"a": 2, "b": 3})]], "They make 5."),
    "parallel": (
        "How warm are Oslo and Rome?",
        [[("weather", {"city": "Oslo"}), ("weather", {"city": "Rome"})]],
        "Oslo has 4 degrees and Rome has 18.",
    ),
    "sequence": (
        "Which mail did Ana write?",
        [[("lookup", {"name": "Ana"})], [("read_mail", {"person": 7, "unread": False})]],
        "Ana wrote: see you at noon.",
    ),
    "none": ("Please say hello.", [], "Hello there."),
    "failing": ("Divide 1 by 0.", [[("divide", {"a": 1, "b": 0})]], "That cannot be divided."),
}


def task_of(text):
    return next((n for n, (question, _, _) in TASKS.items() if question in text), "unknown")


def step(text, results, offered):
    """The calls of this step with their ids, or the answer. Frameworks put something before a tool's name."""
    name = task_of(text)
    if name == "unknown":
        return [], "I do not know this question."
    _, rounds, answer = TASKS[name]
    done = 0
    for number, calls in enumerate(rounds):
        if results <= done:
            ends = lambda n: next((o for o in offered if re.fullmatch(rf"(.*[^a-z0-9])?{n}", o)), None)
            calls = [(f"call_{name}_{number}_{i}", ends(n), a) for i, (n, a) in enumerate(calls)]
            # Some requests are not for the agent: a title of the conversation, for instance.
            return (calls, None) if all(n for _, n, _ in calls) else ([], answer)
        done += len(calls)
    if "final_answer" in offered:
        return [(f"call_{name}_answer", "final_answer", {"answer": answer})], None
    return [], answer


def names(tools):
    """The names of the tools in a request."""
    found = []
    for tool in tools or []:
        inside = tool.get("functionDeclarations") or tool.get("tools")
        if inside:
            found += names(inside)
        else:
            found.append((tool.get("function") or tool.get("toolSpec") or tool).get("name") or "")
    return found


def chat(body):
    results = sum(1 for m in body["messages"] if m["role"] == "tool")
    text = json.dumps(body["messages"], ensure_ascii=False)
    if "[[ ## next_tool_name ## ]]" in text or "[[ ## completed ## ]]" in text:
        calls, answer = [], fields(body["messages"])
    else:
        offered = names(body.get("tools"))
        if "final_answer" in offered:
            # Its results are messages of the user, one for all calls of a step.
            said = json.dumps([m["content"] for m in body["messages"] if m["role"] != "system"])
            steps = said.count("Observation:") + said.count("Error:")
            results = sum(len(calls) for calls in TASKS[task_of(text)][1][:steps])
        calls, answer = step(text, results, offered)
    message = {"role": "assistant", "content": answer}
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": n, "arguments": json.dumps(a)}}
            for i, n, a in calls
        ]
    usage = {
        "prompt_tokens": INPUT,
        "completion_tokens": OUTPUT,
        "total_tokens": INPUT + OUTPUT,
        "prompt_tokens_details": {"cached_tokens": CACHED},
        "completion_tokens_details": {"reasoning_tokens": REASONING},
    }
    reason = "tool_calls" if calls else "stop"
    common = {"id": f"chatcmpl-{task_of(json.dumps(body['messages']))}-{results}", "created": 1700000000, "model": body["model"]}
    if not body.get("stream"):
        choice = {"index": 0, "message": message, "finish_reason": reason}
        return {**common, "object": "chat.completion", "choices": [choice], "usage": usage}

    def chunk(delta, finish=None, **more):
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        return {**common, "object": "chat.completion.chunk", "choices": [choice], **more}

    out = [chunk({"role": "assistant", "content": None if calls else ""})]
    for at, (i, n, a) in enumerate(calls):
        text = json.dumps(a)
        half = len(text) // 2
        function = {"name": n, "arguments": ""}
        out.append(chunk({"tool_calls": [{"index": at, "id": i, "type": "function", "function": function}]}))
        for part in (text[:half], text[half:]):
            out.append(chunk({"tool_calls": [{"index": at, "function": {"arguments": part}}]}))
    for word in (answer or "").split(" "):
        if word:
            out.append(chunk({"content": word if len(out) == 1 else " " + word}))
    out.append(chunk({}, reason))
    if (body.get("stream_options") or {}).get("include_usage"):
        out.append({**common, "object": "chat.completion.chunk", "choices": [], "usage": usage})
    return [(None, each) for each in out] + [(None, "[DONE]")]


def fields(messages):
    """The step of an agent that is asked to write fields, as DSPy asks."""
    text = messages[-1]["content"]
    text = text if isinstance(text, str) else "".join(part.get("text", "") for part in text)
    _, rounds, answer = TASKS[task_of(text)]
    calls = [call for calls in rounds for call in calls]
    write = lambda **all: "\n\n".join(f"[[ ## {k} ## ]]\n{v}" for k, v in {**all, "completed": ""}.items())
    if "`[[ ## next_thought ## ]]`" not in text:
        return write(reasoning="It is known.", answer=answer)
    done = text.count("[[ ## observation_")
    name, arguments = calls[done] if done < len(calls) else ("finish", {})
    return write(next_thought="So.", next_tool_name=name, next_tool_args=json.dumps(arguments))


def responses(body):
    given = body["input"]
    items = given if isinstance(given, list) else []
    results = sum(1 for item in items if item.get("type") == "function_call_output")
    calls, answer = step(json.dumps(given, ensure_ascii=False), results, names(body.get("tools")))
    spaces = {name: tool["name"] for tool in body.get("tools") or [] if tool.get("type") == "namespace" for name in names([tool])}
    space = lambda n: {"namespace": spaces[n]} if n in spaces else {}
    output = [
        {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": json.dumps(a), "status": "completed", **space(n)}
        for i, n, a in calls
    ]
    if answer:
        content = [{"type": "output_text", "text": answer, "annotations": []}]
        output = [{"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": content}]
    whole = {
        "id": f"resp_{task_of(json.dumps(given))}_{results}",
        "object": "response",
        "created_at": 1700000000,
        "model": body["model"],
        "status": "completed",
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "usage": {
            "input_tokens": INPUT,
            "output_tokens": OUTPUT,
            "total_tokens": INPUT + OUTPUT,
            "input_tokens_details": {"cached_tokens": CACHED, "cache_write_tokens": 0},
            "output_tokens_details": {"reasoning_tokens": REASONING},
        },
    }
    if not body.get("stream"):
        return whole
    events, number = [], 0

    def send(kind, **fields):
        nonlocal number
        events.append((kind, {"type": kind, "sequence_number": number, **fields}))
        number += 1

    send("response.created", response={**whole, "status": "in_progress", "output": [], "usage": None})
    for at, item in enumerate(output):
        if item["type"] == "function_call":
            send("response.output_item.added", output_index=at, item={**item, "arguments": "", "status": "in_progress"})
            send("response.function_call_arguments.delta", output_index=at, item_id=item["id"], delta=item["arguments"])
            send("response.function_call_arguments.done", output_index=at, item_id=item["id"], name=item["name"], arguments=item["arguments"])
        else:
            part = item["content"][0]
            place = {"output_index": at, "item_id": item["id"], "content_index": 0}
            send("response.output_item.added", output_index=at, item={**item, "content": [], "status": "in_progress"})
            send("response.content_part.added", **place, part={**part, "text": ""})
            send("response.output_text.delta", **place, delta=part["text"], logprobs=[])
            send("response.output_text.done", **place, text=part["text"], logprobs=[])
            send("response.content_part.done", **place, part=part)
        send("response.output_item.done", output_index=at, item=item)
    send("response.completed", response=whole)
    return events


def messages(body):
    def blocks(m):
        return m["content"] if isinstance(m["content"], list) else []

    results = sum(1 for m in body["messages"] for b in blocks(m) if b.get("type") == "tool_result")
    calls, answer = step(json.dumps(body["messages"], ensure_ascii=False), results, names(body.get("tools")))
    content = [{"type": "tool_use", "id": i, "name": n, "input": a} for i, n, a in calls]
    if answer:
        content = [{"type": "text", "text": answer}]
    # Anthropic counts cached tokens apart from the input.
    usage = {"input_tokens": INPUT - CACHED, "cache_read_input_tokens": CACHED, "cache_creation_input_tokens": 0}
    whole = {
        "id": f"msg_{task_of(json.dumps(body['messages']))}_{results}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {**usage, "output_tokens": OUTPUT},
    }
    if not body.get("stream"):
        return whole
    begun = {**whole, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    events = [("message_start", {"message": begun})]
    for at, block in enumerate(content):
        empty = {**block, "text": ""} if block["type"] == "text" else {**block, "input": {}}
        events.append(("content_block_start", {"index": at, "content_block": empty}))
        delta = {"type": "text_delta", "text": block.get("text")}
        if block["type"] == "tool_use":
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events.append(("content_block_delta", {"index": at, "delta": delta}))
        events.append(("content_block_stop", {"index": at}))
    end = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    events.append(("message_delta", {"delta": end, "usage": {"output_tokens": OUTPUT}}))
    events.append(("message_stop", {}))
    return [(kind, {"type": kind, **fields}) for kind, fields in events]


def converse(body):
    results = sum(1 for m in body["messages"] for b in m["content"] if "toolResult" in b)
    offered = names((body.get("toolConfig") or {}).get("tools"))
    calls, answer = step(json.dumps(body["messages"], ensure_ascii=False), results, offered)
    content = [{"toolUse": {"toolUseId": i, "name": n, "input": a}} for i, n, a in calls] or [{"text": answer}]
    usage = {"inputTokens": INPUT, "outputTokens": OUTPUT, "totalTokens": INPUT + OUTPUT}
    reason = "tool_use" if calls else "end_turn"
    whole = {"output": {"message": {"role": "assistant", "content": content}}, "stopReason": reason, "usage": usage, "metrics": {"latencyMs": 1}}
    events = [("messageStart", {"role": "assistant"})]
    for at, block in enumerate(content):
        place = {"contentBlockIndex": at}
        if use := block.get("toolUse"):
            text = json.dumps(use["input"])
            events.append(("contentBlockStart", {**place, "start": {"toolUse": {"toolUseId": use["toolUseId"], "name": use["name"]}}}))
            deltas = [{"toolUse": {"input": part}} for part in (text[:4], text[4:])]
        else:
            deltas = [{"text": word} for word in re.split("(?<= )", block["text"])]
        events += [("contentBlockDelta", {**place, "delta": delta}) for delta in deltas]
        events.append(("contentBlockStop", place))
    events += [("messageStop", {"stopReason": reason}), ("metadata", {"usage": usage, "metrics": {"latencyMs": 1}})]
    return whole, events


def event_stream(events):
    """The binary frames in which Bedrock streams."""
    out = b""
    for kind, data in events:
        headers = b""
        for name, value in ((":event-type", kind), (":content-type", "application/json"), (":message-type", "event")):
            headers += struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        data = json.dumps(data).encode()
        prelude = struct.pack("!II", len(headers) + len(data) + 16, len(headers))
        frame = prelude + struct.pack("!I", binascii.crc32(prelude)) + headers + data
        out += frame + struct.pack("!I", binascii.crc32(frame))
    return out


def gemini(body):
    parts = [part for content in body["contents"] for part in content["parts"]]
    results = sum(1 for part in parts if "functionResponse" in part)
    calls, answer = step(json.dumps(parts, ensure_ascii=False), results, names(body.get("tools")))
    usage = {
        "promptTokenCount": INPUT, "cachedContentTokenCount": CACHED, "candidatesTokenCount": OUTPUT - REASONING,
        "thoughtsTokenCount": REASONING, "totalTokenCount": INPUT + OUTPUT,
    }

    def part(parts, **more):
        return {"candidates": [{"index": 0, "content": {"role": "model", "parts": parts}, **more}], "modelVersion": "gemini-2.5-flash", "responseId": "r"}

    made = [{"functionCall": {"name": n, "args": a}} for _, n, a in calls] or [{"text": answer}]
    whole = {**part(made, finishReason="STOP"), "usageMetadata": usage}
    if calls:
        return whole, [part([one]) for one in made] + [{**part([{"text": ""}], finishReason="STOP"), "usageMetadata": usage}]
    words = re.split("(?<= )", answer)
    return whole, [part([{"text": word}]) for word in words] + [{**part([{"text": ""}], finishReason="STOP"), "usageMetadata": usage}]


ROUTES = {"chat/completions": chat, "responses": responses, "messages": messages}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.body()
        path = self.path.split("?")[0].rstrip("/")
        if path.endswith("/v1/traces"):
            name = path.strip("/").split("/")[0]
            if "json" in self.headers["content-type"] and len(sys.argv) == 2:
                with open(os.path.join(sys.argv[1], name + ".spans.jsonl"), "ab") as out:
                    out.write(body.replace(b"\n", b"") + b"\n")
            self.reply(200, self.headers["content-type"], b"{}" if "json" in self.headers["content-type"] else b"")
            return
        body = json.loads(body)
        if path.endswith(("/converse", "/converse-stream")):
            whole, events = converse(body)
            if path.endswith("stream"):
                self.reply(200, "application/vnd.amazon.eventstream", event_stream(events))
            else:
                self.reply(200, "application/json", json.dumps(whole).encode())
            return
        if path.endswith(":generateContent"):
            self.reply(200, "application/json", json.dumps(gemini(body)[0]).encode())
            return
        if path.endswith(":streamGenerateContent"):
            lines = "".join(f"data: {json.dumps(part)}\r\n\r\n" for part in gemini(body)[1])
            self.reply(200, "text/event-stream", lines.encode())
            return
        route = next((f for end, f in ROUTES.items() if path.endswith(end)), None)
        if route is None:
            self.reply(404, "application/json", b'{"error": {"message": "no such path"}}')
            return
        answer = route(body)
        if isinstance(answer, dict):
            self.reply(200, "application/json", json.dumps(answer).encode())
            return
        lines = []
        for kind, data in answer:
            lines += [f"event: {kind}"] if kind else []
            lines += [f"data: {data if isinstance(data, str) else json.dumps(data)}", ""]
        self.reply(200, "text/event-stream", ("\n".join(lines) + "\n").encode())

    def body(self):
        data = b""
        if "chunked" in (self.headers["transfer-encoding"] or ""):
            while size := int(self.rfile.readline(), 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers["content-length"] or 0))
        return gzip.decompress(data) if self.headers["content-encoding"] == "gzip" else data

    def reply(self, status, kind, data):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


def start():
    """Starts the endpoint and returns its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/v1"


if __name__ == "__main__":
    print(start(), flush=True)
    threading.Event().wait()
