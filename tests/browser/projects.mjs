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
