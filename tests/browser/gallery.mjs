// Makes a report of each kind and a dashboard, and takes their pictures: every width, both themes.
//
//   KARAT=… CHROMIUM=… node gallery.mjs FOLDER [NAME…]
//
// `gallery` next to this file calls it and says what becomes of the pictures.

import { execFileSync, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

import { launch } from "./browser.mjs";
import { check, failedRetrieval, folder, otherPages, page, retrieval } from "./projects.mjs";

export const WIDTHS = [390, 1024, 1440];
const THEMES = ["light", "dark"];

/** Runs Karat, whatever its exit code. */
function karat(cwd, args, env = {}) {
  try {
    execFileSync(process.env.KARAT, args, { cwd, stdio: "pipe", env: { ...process.env, ...env } });
  } catch (error) {
    if (![1, 3, 4].includes(error.status)) throw new Error(`karat ${args.join(" ")}: ${error.status} ${error.stderr}`);
  }
}

/** Where an init of this kind was measured. */
function started(kind, change = () => {}) {
  const cwd = folder();
  karat(cwd, ["init", "--for", kind, "--ci", "none"]);
  change(cwd);
  karat(cwd, ["check", "--quiet"]);
  return join(cwd, "karat-report/report.html");
}

function suite() {
  const cwd = folder();
  writeFileSync(join(cwd, "suite.yaml"), `name: arithmetic
mcp_server: {command: ${JSON.stringify(process.env.KARAT)}, args: [demo-server]}
test_cases:
  - {id: sum, about: adds two numbers, tool: add, input: {a: 1, b: 2}, expect: {json: $.sum, equals: 3}, tags: [arithmetic]}
  - {id: negative, about: adds a negative number, tool: add, input: {a: 1, b: -2}, expect: {json: $.sum, equals: 1}, tags: [arithmetic]}
  - {id: echo, about: gives back its text, tool: echo, input: {text: hello}, expect: {contains: hello}}
  - {id: shout, about: gives back its text in capitals, tool: echo, input: {text: hello}, expect: {contains: HELLO}}
`);
  return page(cwd, "suite.html", ["server", "test", "suite.yaml", "--out", "out"]);
}

function unmeasured() {
  const cwd = folder();
  const tools = [{ tool_id: "s:open_ticket", server: "s", tool: "open_ticket", description: "Opens a ticket." }];
  retrieval(cwd, tools, [{ id: "q-1", query: "open a ticket", labels: [{ tool_id: "s:open_ticket", relevance: 2 }] }], { system: { command: ["sh", "-c", "echo cannot open the index >&2; exit 3"] } });
  karat(cwd, ["check", "--quiet"]);
  return join(cwd, "karat-report/report.html");
}

/** The reports by name, each made when it is asked for. */
const others = {};
const REPORTS = {
  bundled: () => check(folder(), ["--bundled"]),
  failed: () => failedRetrieval(folder()),
  suite,
  unmeasured,
  agent: () => started("agent"),
  scanner: () => started("scanner"),
  ...Object.fromEntries(["load", "attack", "fuzz", "diff"].map((kind) => [kind, () => (others.made ??= otherPages(folder()))[kind]])),
};

/** Twenty runs of a search whose quality goes up and down, and of another that stays as it is. */
function history() {
  const cwd = folder();
  const nouns = ["ticket", "branch", "invoice", "contact", "shipment", "meeting", "folder", "channel"];
  const tools = nouns.map((noun, at) => ({ tool_id: `s:t${at}`, server: "s", tool: `t${at}`, description: `Opens a ${noun} by its number.` }));
  const queries = nouns.map((noun, at) => ({ id: `q-${at}`, query: `show me the ${noun} that we talked about`, labels: [{ tool_id: `s:t${at}`, relevance: 2 }] }));
  execFileSync("git", ["init", "-q", "-b", "main"], { cwd });
  const git = (...words) => execFileSync("git", ["-c", "user.name=n", "-c", "user.email=n@example.com", ...words], { cwd, stdio: "pipe" });
  for (let run = 0; run < 20; run += 1) {
    // Queries beyond the last one that is known get the wrong tool first.
    const known = 8 - [0, 0, 1, 0, 2, 1, 0, 0, 3, 1][run % 10];
    writeFileSync(join(cwd, "system.mjs"), `
      import { createInterface } from "node:readline";
      for await (const line of createInterface({ input: process.stdin })) {
        const { id } = JSON.parse(line);
        const right = { tool_id: "s:t" + id.slice(2) };
        console.log(JSON.stringify({ id, ranked: Number(id.slice(2)) < ${known} ? [right] : [{ tool_id: "s:t0" }, right] }));
      }`);
    retrieval(cwd, tools, queries, { name: "search", system: { command: ["node", "system.mjs"] } });
    const gated = (text) => text.replace(/\[retrieval\.gate\][^]*/, 'baseline = "b.json"\n[retrieval.gate]\n[retrieval.gate.metrics]\nmrr = { min = 0.85 }\n');
    const project = gated(readFileSync(join(cwd, "karat.toml"), "utf8"));
    const second = '[[retrieval]]\nname = "words"\ncorpus = "tools.json"\ngolden = "golden.json"\nsystem = { builtin = "bm25" }\n[retrieval.gate.metrics]\nmrr = { min = 0.75 }\n';
    writeFileSync(join(cwd, "karat.toml"), `name = "gateway"\n${project}${second}`);
    if (run === 0) karat(cwd, ["baseline", "update", "--quiet", "--only", "search"]);
    git("add", "karat.toml", "tools.json", "golden.json", "b.json", "system.mjs");
    git("commit", "-q", "--allow-empty", "-m", `Change ${run + 1}: tune the index`);
    karat(cwd, ["check", "--quiet", "--history"], { SOURCE_DATE_EPOCH: String(1794711845 + 7200 * run) });
  }
  return cwd;
}

/** One picture for the documentation: the first screen, small. */
async function small(browser, into, name, url) {
  const context = await browser.newContext({ viewport: { width: 1024, height: 640 }, colorScheme: "light" });
  const opened = await context.newPage();
  await opened.goto(url);
  await opened.waitForLoadState("networkidle");
  await opened.screenshot({ path: join(into, `${name}.png`) });
  await context.close();
}

async function pictures(browser, into, name, url) {
  if (process.env.KARAT_GALLERY === "docs") return small(browser, into, name, url);
  for (const colorScheme of THEMES) {
    for (const width of WIDTHS) {
      const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme });
      context.setDefaultTimeout(180_000);
      const opened = await context.newPage();
      await opened.goto(url);
      await opened.waitForLoadState("networkidle");
      const wide = await opened.evaluate(() => document.documentElement.scrollWidth);
      if (wide > width) console.log(`${name}: ${wide} px wide at ${width}`);
      await opened.screenshot({ path: join(into, `${name}-${width}-${colorScheme}.png`) });
      await opened.screenshot({ path: join(into, `${name}-${width}-${colorScheme}-whole.png`), fullPage: true, clip: { x: 0, y: 0, width, height: Math.min(6000, await opened.evaluate(() => document.documentElement.scrollHeight)) } });
      await context.close();
    }
  }
}

const [into, ...wanted] = [resolve(process.argv[2]), ...process.argv.slice(3)];
mkdirSync(into, { recursive: true });
const is = (name) => wanted.length === 0 || wanted.includes(name);
const browser = await launch();
for (const [name, make] of Object.entries(REPORTS).filter(([name]) => is(name))) {
  const path = make();
  if (process.env.KARAT_GALLERY !== "docs") copyFileSync(path, join(into, `${name}.html`));
  await pictures(browser, into, name, pathToFileURL(path).href);
  console.log(name);
}
if (is("dashboard")) {
  const cwd = history();
  const child = spawn(process.env.KARAT, ["serve", "--json"], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  const lines = createInterface({ input: child.stdout });
  const { url } = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
  const pages = { dashboard: "/", "dashboard-evaluation": "/evaluations/1", "dashboard-metric": "/evaluations/1/metrics/1", "dashboard-runs": "/runs", "dashboard-run": "/runs/9", "dashboard-compare": "/compare?before=1&after=9" };
  for (const [name, path] of Object.entries(pages)) {
    await pictures(browser, into, name, new URL(path, url).href);
    console.log(name);
  }
  child.kill("SIGINT");
}
await browser.close();
