"""A scripted model: OpenAI chat completions and Responses, Anthropic messages, plain and streamed.

Every answer follows from the request alone: the user's question names the task, the results that the
request already has name the step. Runs in a thread of the program that drives the libraries.
"""

import json
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


def step(text, results):
    """The calls of this step with their ids, or the answer."""
    name = task_of(text)
    if name == "unknown":
        return [], "I do not know this question."
    _, rounds, answer = TASKS[name]
    done = 0
    for number, calls in enumerate(rounds):
        if results <= done:
            return [(f"call_{name}_{number}_{i}", n, a) for i, (n, a) in enumerate(calls)], None
        done += len(calls)
    return [], answer


def chat(body):
    results = sum(1 for m in body["messages"] if m["role"] == "tool")
    calls, answer = step(json.dumps(body["messages"], ensure_ascii=False), results)
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


def responses(body):
    given = body["input"]
    items = given if isinstance(given, list) else []
    results = sum(1 for item in items if item.get("type") == "function_call_output")
    calls, answer = step(json.dumps(given, ensure_ascii=False), results)
    output = [
        {"type": "function_call", "id": f"fc_{i}", "call_id": i, "name": n, "arguments": json.dumps(a), "status": "completed"}
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
    calls, answer = step(json.dumps(body["messages"], ensure_ascii=False), results)
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


ROUTES = {"chat/completions": chat, "responses": responses, "messages": messages}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.split("?")[0].rstrip("/")
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
