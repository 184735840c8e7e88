// Scratch projects for the tests, and Karat run in them.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** What a hostile server would like the page to run; the marker shows if one did. */
export const MARKER = "__karat_was_here";
const RUN = `window.${MARKER}=1`;
export const HOSTILE = [
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `"><img src=x onerror="${RUN}">`,
  `'><svg onload='${RUN}'>`,
  `javascript:${RUN}`,
  `<a href="javascript:${RUN}">x</a>`,
  `<iframe srcdoc="<script>parent.${MARKER}=1</script>"></iframe>`,
  `<math><mtext><style><img src onerror=${RUN}></style></mtext></math>`,
  `{{constructor.constructor('${RUN}')()}}`,
  `<!--><script>${RUN}</script>-->`,
  `]]><script>${RUN}</script>`,
  `<details open ontoggle=${RUN}>`,
  `\u0000<script>${RUN}</script>`,
  `\u202e<script>${RUN}</script>\u001b[31m`,
  `<base href="http://192.0.2.1/"><link rel=stylesheet href="http://192.0.2.1/x.css">`,
  `__proto__`,
];

/** A folder that is removed at the end of the process. */
export function folder() {
  const path = mkdtempSync(join(tmpdir(), "karat-browser-"));
  process.on("exit", () => rmSync(path, { recursive: true, force: true }));
  return path;
}

/** Runs `karat check` in the folder and returns the path of its page. A failed gate is fine here. */
export function check(cwd, flags = [], env = {}) {
  try {
    execFileSync(process.env.KARAT, ["check", "--quiet", ...flags], { cwd, stdio: "pipe", env: { ...process.env, ...env } });
  } catch (error) {
    if (error.status !== 1) throw new Error(`karat check ended with ${error.status}: ${error.stderr}`);
  }
  return join(cwd, "karat-report", "report.html");
}

/** Runs another command of Karat that writes one page; a failed gate is fine here. */
export function page(cwd, name, args) {
  const [before, after] = args.includes("--") ? [args.slice(0, args.indexOf("--")), args.slice(args.indexOf("--"))] : [args, []];
  try {
    execFileSync(process.env.KARAT, [...before, "-q", "-o", name, ...after], { cwd, stdio: "pipe" });
  } catch (error) {
    if (error.status !== 1) throw new Error(`karat ${args.join(" ")} ended with ${error.status}: ${error.stderr}`);
  }
  return join(cwd, name);
}

/** The pages of a load, of attacks and of two runs, over harmless things. */
export function otherPages(cwd) {
  const demo = [process.env.KARAT, "demo-server"];
  writeFileSync(join(cwd, "before.jsonl"), runs((call) => call));
  writeFileSync(join(cwd, "after.jsonl"), runs((call, at) => ({ ...call, arguments: { path: at === 0 ? "other.txt" : "a.txt" } })));
  return {
    load: page(cwd, "load.html", ["server", "load", "--tool", "echo", "--input", '{"text":"hi"}', "--duration", "2s", "--warm-up", "5", "--", ...demo]),
    attack: page(cwd, "attack.html", ["server", "attack", "--tool", "read_file_unsafe", "--tool", "read_file_safe", "--", ...demo, "--vulnerable"]),
    fuzz: page(cwd, "fuzz.html", ["server", "fuzz", "--tool", "trace_unsafe", "--cases", "10", "--", ...demo, "--vulnerable"]),
    diff: page(cwd, "diff.html", ["agent", "diff", "before.jsonl", "after.jsonl"]),
  };
}

/** Traces of three tasks with two calls each. */
function runs(change) {
  const calls = ["read", "write"].map((name) => ({ name, server: "files", arguments: { path: "a.txt" } }));
  const traces = ["one", "two", "three"].map((id, task) => ({
    id, input: `Do ${id}.`, calls: calls.map((call, at) => (task === 1 ? change(call, at) : call)), output: "Done.",
    expect: { calls: [{ name: "read", server: "files", arguments: { path: "b.txt" } }, { name: "list", server: "files" }] },
  }));
  return traces.map((trace) => JSON.stringify(trace)).join("\n") + "\n";
}

/** An MCP server whose every word is hostile: name, tools, answers, errors. */
function hostileServer(cwd) {
  writeFileSync(join(cwd, "server.mjs"), `
    import { createInterface } from "node:readline";
    const hostile = ${JSON.stringify(HOSTILE)};
    const schema = { type: "object", properties: { text: { type: "string", description: hostile[0] } } };
    let asked = 0;
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, method, params } = JSON.parse(line);
      if (id === undefined) continue;
      const text = hostile[(asked += 1) % hostile.length];
      const answer = { initialize: () => ({ protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: hostile[2], version: hostile[3] }, instructions: text }),
        "tools/list": () => ({ tools: hostile.map((word, at) => ({ name: word + at, description: word, inputSchema: schema })) }),
        "tools/call": () => ({ content: [{ type: "text", text: text + JSON.stringify(params) }], isError: asked % 2 === 0 }) }[method];
      console.log(JSON.stringify({ jsonrpc: "2.0", id, ...(answer ? { result: answer() } : { error: { code: -32601, message: text } }) }));
    }`);
  return ["node", "server.mjs"];
}

/** Pages about a hostile server and hostile traces. */
export function hostilePages(cwd) {
  const server = hostileServer(cwd);
  const tool = HOSTILE[0] + 0;
  const cases = HOSTILE.map((text, at) => ({ id: `${text} ${at}`, about: text, tool: text + at, input: { text }, tags: [text], expected_output_contains: text }));
  writeFileSync(join(cwd, "suite.json"), JSON.stringify({ name: HOSTILE[1], mcp_server: { command: server[0], args: server.slice(1) }, cases }));
  const traces = (output) => HOSTILE.map((text, at) => JSON.stringify({
    id: `${text} ${at}`, input: text, tags: { domain: text }, model: text, output: output + text,
    calls: [{ name: text, server: text, arguments: { [text]: output + text }, error: text }],
    expect: { calls: [{ name: text + "x", server: text, arguments: { [text]: text } }] },
  })).join("\n") + "\n";
  writeFileSync(join(cwd, "before.jsonl"), traces(""));
  writeFileSync(join(cwd, "after.jsonl"), traces("other "));
  return {
    suite: page(cwd, "suite.html", ["server", "test", "suite.json", "--out", "suite"]),
    load: page(cwd, "load.html", ["server", "load", "--tool", tool, "--count", "60", "--warm-up", "0", "--", ...server]),
    fuzz: page(cwd, "fuzz.html", ["server", "fuzz", "--tool", tool, "--cases", "8", "--", ...server]),
    attack: page(cwd, "attack.html", ["server", "attack", "--tool", tool, "--", ...server]),
    traces: page(cwd, "traces.html", ["agent", "score", "after.jsonl", "--before", "before.jsonl"]),
    diff: page(cwd, "diff.html", ["agent", "diff", "before.jsonl", "after.jsonl"]),
  };
}

/** A retrieval project over these tools and queries. */
export function retrieval(cwd, tools, queries, { name = "search", system = { builtin: "bm25" }, maxErrors = 0 } = {}) {
  writeFileSync(join(cwd, "tools.json"), JSON.stringify({ version: "v1", tools }));
  writeFileSync(join(cwd, "golden.json"), JSON.stringify({ corpus_version: "v1", queries }));
  const value = system.builtin ? `{ builtin = "bm25" }` : `{ command = ${JSON.stringify(system.command)} }`;
  writeFileSync(join(cwd, "karat.toml"), [
    "[[retrieval]]", `name = ${JSON.stringify(name)}`, `corpus = "tools.json"`, `golden = "golden.json"`,
    `system = ${value}`, "limit = 10", "[retrieval.gate]", `max_errors = ${maxErrors.toFixed(2)}`, "",
  ].join("\n"));
}

/** Hostile text wherever text can come from: names, servers, descriptions, queries, error texts. */
export function hostileProject(cwd) {
  const tools = HOSTILE.map((text, at) => ({ tool_id: `${text} ${at}:${text} ${at}`, server: `${text} ${at}`, tool: `${text} ${at}`, description: text }));
  const queries = HOSTILE.map((text, at) => ({
    id: `${text} ${at}`, query: `${text} find`, notes: text,
    kind: text, labels: [{ tool_id: tools[at].tool_id, relevance: 2 }],
  }));
  // Answers every second query with hostile results and refuses the others with hostile words.
  writeFileSync(join(cwd, "system.mjs"), `
    import { createInterface } from "node:readline";
    const hostile = ${JSON.stringify(HOSTILE)};
    let asked = 0;
    for await (const line of createInterface({ input: process.stdin })) {
      const { id } = JSON.parse(line);
      const text = hostile[asked % hostile.length];
      asked += 1;
      console.log(JSON.stringify(asked % 2 ? { id, ranked: [{ tool_id: text + " 0:" + text + " 0" }, { tool_id: text }] } : { id, error: text }));
    }`);
  retrieval(cwd, tools, queries, { name: "hostile", system: { command: ["node", "system.mjs"] }, maxErrors: 1 });
}

/** A project with this many items. */
export function largeProject(cwd, items) {
  const verbs = ["list", "create", "delete", "update", "search", "send", "open", "close", "merge", "archive"];
  const nouns = ["ticket", "branch", "invoice", "contact", "table", "bucket", "message", "page", "event", "device"];
  const tools = [];
  for (const verb of verbs) {
    for (const noun of nouns) {
      tools.push({ tool_id: `${noun}s:${verb}_${noun}`, server: `${noun}s`, tool: `${verb}_${noun}`, description: `Lets you ${verb} a ${noun} by its number or name.` });
    }
  }
  const queries = Array.from({ length: items }, (_, at) => {
    const tool = tools[(at * 37) % tools.length];
    return { id: `q-${String(at).padStart(5, "0")}`, query: `I want to ${tool.tool.replace("_", " the ")} of order ${at}`, labels: [{ tool_id: tool.tool_id, relevance: 2 }] };
  });
  retrieval(cwd, tools, queries);
}

export function read(path) {
  return readFileSync(path);
}
