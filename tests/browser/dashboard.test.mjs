// The pages of `karat serve` in a real browser, over a history of several runs.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { after, before, describe, test } from "node:test";

import { PHONE, launch, violations, watched } from "./browser.mjs";
import { HOSTILE, MARKER, check, folder, retrieval } from "./projects.mjs";

const VERBS = ["list", "create", "delete", "update", "send"];
const NOUNS = ["ticket", "branch", "invoice", "contact"];
const TOOLS = VERBS.flatMap((verb) => NOUNS.map((noun) => ({
  tool_id: `${noun}s:${verb}_${noun}`, server: `${noun}s`, tool: `${verb}_${noun}`, description: `Lets you ${verb} a ${noun} by its number.`,
})));
const QUERIES = TOOLS.map((tool, at) => ({ id: `q-${String(at).padStart(2, "0")}`, query: `${tool.tool.replace("_", " a ")} please`, labels: [{ tool_id: tool.tool_id, relevance: 2 }] }));

/** A search that gives the right answer to all but every `miss`-th query. */
function searches(cwd, miss) {
  writeFileSync(join(cwd, "system.mjs"), `
    import { createInterface } from "node:readline";
    let asked = 0;
    for await (const line of createInterface({ input: process.stdin })) {
      const { id, query } = JSON.parse(line);
      const [verb, , noun] = query.split(" ");
      const right = { tool_id: noun + "s:" + verb + "_" + noun };
      asked += 1;
      console.log(JSON.stringify({ id, ranked: asked % ${miss} ? [right] : [{ tool_id: "tickets:list_ticket" }, right] }));
    }`);
}

/** Six runs of one entry, the last two on other data, and two of another entry. */
function history() {
  const cwd = folder();
  const system = { command: ["node", "system.mjs"] };
  const run = (hours) => check(cwd, ["--history"], { SOURCE_DATE_EPOCH: String(1794711845 + 3600 * hours) });
  [1000, 5, 2, 7].forEach((miss, at) => {
    searches(cwd, miss);
    retrieval(cwd, TOOLS, QUERIES, { name: "search", system });
    const gated = readFileSync(join(cwd, "karat.toml"), "utf8") + "[retrieval.gate.metrics]\nmrr = { min = 0.8 }\n";
    writeFileSync(join(cwd, "karat.toml"), gated);
    run(at);
  });
  [5, 9].forEach((miss, at) => {
    searches(cwd, miss);
    retrieval(cwd, TOOLS, QUERIES.slice(3), { name: "search", system });
    run(4 + at);
  });
  [6, 7].forEach((hours) => { retrieval(cwd, TOOLS, QUERIES, { name: "catalogue" }); run(hours); });
  return cwd;
}

/** Starts `karat serve` and waits for its address. */
async function serve(cwd) {
  const child = spawn(process.env.KARAT, ["serve", "--json"], { cwd, stdio: ["ignore", "pipe", "inherit"] });
  process.on("exit", () => child.kill());
  const lines = createInterface({ input: child.stdout });
  const { url } = JSON.parse((await lines[Symbol.asyncIterator]().next()).value);
  return { url, end: () => new Promise((ended) => { child.on("exit", ended); child.kill("SIGINT"); }) };
}

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

describe("the dashboard", () => {
  let site;
  before(async () => { site = await serve(history()); });
  after(async () => { assert.equal(await site.end(), 0, "Ctrl-C is a peaceful end"); });

  const open = async (path, options) => {
    const opened = await watched(browser, (to) => to.startsWith(site.url), options);
    await opened.page.goto(new URL(path, site.url).href);
    return opened;
  };
  const runsShown = (page) => page.locator("table.filtered tbody tr:visible th").allTextContents();

  test("leads from the overview over a metric to a run, its report and an item", async () => {
    const { page, faults, close } = await open("/");
    assert.equal(await page.locator("article.card").count(), 2, "a tile for each entry");
    const tile = page.locator("article.card", { has: page.getByRole("link", { name: "search" }) });
    await tile.locator("a.metric").click();
    await page.waitForURL(/\/evaluations\/\d+\/metrics\/\d+$/);
    assert.equal(await page.locator(".over a").count(), 6, "a point for each run");
    assert.equal(await page.locator(".over polyline").count(), 2, "a line for each dataset");
    assert.equal(await page.locator(".over .failed").count(), 1, "the failed run is marked");
    await page.getByRole("link", { name: /^Run 3,/ }).click();
    await page.waitForURL(/\/runs\/3$/);
    assert.match(await page.locator("h1").textContent(), /fail/i);
    await page.getByRole("link", { name: "Full report" }).click();
    await page.waitForURL(/\/runs\/3\/report$/);
    await page.locator("html.scripted").waitFor();
    await page.locator("section.explore tbody a.item").first().click();
    await page.locator("dialog[open]").waitFor();
    assert.match(page.url(), /\/runs\/3\/report#.+\/q-/);
    await page.keyboard.press("Escape");
    await page.getByRole("link", { name: "Run 3" }).click();
    await page.waitForURL(/\/runs\/3$/);
    assert.deepEqual(faults, []);
    await close();
  });

  test("two points of a metric are chosen and compared", async () => {
    const { page, faults, close } = await open("/");
    const tile = page.locator("article.card", { has: page.getByRole("link", { name: "search" }) });
    assert.equal(await tile.locator(".strip li").count(), 6, "a mark for each run");
    assert.equal(await tile.locator(".strip a.fail").count(), 1);
    await tile.locator("a.metric").click();
    assert.ok((await page.locator(".over .tick").count()) >= 2, "ticks");
    assert.ok((await page.locator(".time").count()) >= 1, "days");
    await page.getByRole("radio", { name: "run 1 as the earlier one" }).check();
    await page.getByRole("radio", { name: "run 3 as the later one" }).check();
    await page.getByRole("button", { name: "Compare the two chosen runs" }).click();
    await page.getByRole("heading", { name: "Run 3 against run 1" }).waitFor();
    await page.goto(new URL("/runs", site.url).href);
    await page.getByText("(fail)").first().waitFor();
    assert.deepEqual(faults, []);
    await close();
  });

  test("a comparison lists the changed items and links to them in the report", async () => {
    const { page, faults, close } = await open("/compare");
    await page.getByLabel("Before").selectOption("1");
    await page.getByLabel("After").selectOption("3");
    await page.getByRole("button", { name: "Compare" }).click();
    await page.waitForURL(/\/compare\?before=1&after=3$/);
    const flipped = page.locator(".flips a.item").first();
    const id = await flipped.textContent();
    await flipped.click();
    await page.locator("dialog[open]").waitFor();
    assert.equal(await page.locator("dialog h2").textContent(), id);
    await page.goto(new URL("/compare?before=1&after=6", site.url).href);
    await page.getByText("the golden set changed: 3 removed (q-00, q-01, q-02); left out of the comparison").waitFor();
    assert.deepEqual(faults, []);
    await close();
  });

  test("runs are filtered by text, verdict and evaluation, and sorted", async () => {
    const { page, faults, close } = await open("/runs");
    assert.equal((await runsShown(page)).length, 8);
    await page.getByLabel("Verdict").selectOption("fail");
    assert.deepEqual(await runsShown(page), ["run 3"]);
    await page.getByText("1 of 8 runs").waitFor();
    await page.getByLabel("Verdict").selectOption("");
    await page.getByLabel("Evaluation").selectOption({ label: "retrieval catalogue" });
    assert.deepEqual(await runsShown(page), ["run 8", "run 7"]);
    await page.getByRole("button", { name: "Run" }).click();
    assert.deepEqual(await runsShown(page), ["run 7", "run 8"]);
    await page.getByRole("button", { name: "Run" }).click();
    assert.deepEqual(await runsShown(page), ["run 8", "run 7"]);
    await page.getByRole("searchbox").fill("no run has this text");
    await page.getByText("No run matches.").waitFor();
    assert.deepEqual(faults, []);
    await close();
  });

  test("the points of a chart are reached by keyboard", async () => {
    const { page, faults, close } = await open("/evaluations/1/metrics/1");
    await page.locator(".siblings a").last().focus();
    await page.keyboard.press("Tab");
    assert.match(await page.evaluate(() => document.activeElement.getAttribute("aria-label")), /^Run 1,/);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.waitForURL(/\/runs\/2$/);
    assert.deepEqual(faults, []);
    await close();
  });

  test("a theme that was chosen holds on every page, the report included", async () => {
    const { page, faults, close } = await open("/", { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.locator("#theme").click();
    await page.locator("#theme").click();
    assert.match(await page.locator("#theme").textContent(), /dark/);
    const dark = await background();
    assert.notEqual(dark, light);
    for (const path of ["/runs", "/runs/1/report"]) {
      await page.goto(new URL(path, site.url).href);
      assert.match(await page.locator("#theme").textContent(), /dark/);
      assert.equal(await background(), dark);
    }
    assert.deepEqual(faults, []);
    await close();
  });

  test("everything is there without a script", async () => {
    const { page, faults, close } = await open("/runs", { javaScriptEnabled: false });
    assert.equal((await runsShown(page)).length, 8);
    assert.equal(await page.locator("#filter").isVisible(), false);
    await page.getByRole("link", { name: "run 2", exact: true }).click();
    await page.locator("article.card a.metric").first().click();
    assert.equal(await page.locator(".over a").count(), 6);
    assert.deepEqual(faults, []);
    await close();
  });

  const PATHS = ["/", "/evaluations/1", "/evaluations/1/metrics/1", "/runs", "/runs/3", "/compare?before=1&after=3", "/nothing-here"];
  for (const [name, options] of [
    ["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["phone", { viewport: PHONE }],
  ]) {
    test(`axe finds nothing (${name})`, async () => {
      const { page, close } = await open("/", { ...options, bypassCSP: true });
      for (const path of PATHS) {
        await page.goto(new URL(path, site.url).href);
        assert.deepEqual(await violations(page), [], path);
      }
      await close();
    });
  }

  test("on a phone nothing is wider than the screen", async () => {
    const { page, close } = await open("/", { viewport: PHONE });
    for (const path of PATHS) {
      await page.goto(new URL(path, site.url).href);
      const wide = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(wide <= PHONE.width, `${path}: ${wide} pixels`);
    }
    await close();
  });
});

describe("a history full of hostile text", () => {
  let site;
  before(async () => {
    const cwd = folder();
    retrieval(cwd, TOOLS, QUERIES.slice(0, 3));
    check(cwd);
    const text = readFileSync(join(cwd, "karat-report", "report.json"), "utf8");
    const files = HOSTILE.flatMap((hostile, at) => [0, 1].map((turn) => {
      const document = JSON.parse(text);
      const report = document.reports[0];
      report.name = hostile;
      report.dataset = { id: hostile, version: hostile, digest: hostile };
      report.system = { kind: hostile, name: hostile, version: hostile };
      report.environment = { ...report.environment, karat: hostile, commit: hostile, started: `2026-11-15T0${turn}:00:${String(at).padStart(2, "0")}Z` };
      report.metrics[0].id = hostile;
      report.metrics[1] = { ...report.metrics[1], value: null, interval: null, undefined: hostile };
      report.items = report.items.map((item, place) => ({ ...item, id: `${hostile} ${place}`, metrics: { [hostile]: turn } }));
      document.not_measured = [{ evaluation: "server", name: hostile, reason: hostile }];
      document.verdict = null;
      const path = join(cwd, `hostile-${at}-${turn}.json`);
      writeFileSync(path, JSON.stringify(document));
      return path;
    }));
    execFileSync(process.env.KARAT, ["history", "add", ...files], { cwd, stdio: "pipe" });
    site = await serve(cwd);
  });
  after(() => site.end());

  /** Follows every link of every page, but no more than so many of one kind: the reports have tests of their own. */
  async function everywhere(page) {
    const seen = new Set();
    const kinds = new Map();
    const waiting = ["/"];
    while (waiting.length > 0) {
      const path = waiting.shift();
      const kind = path.replace(/\d+/g, "N");
      const visited = kinds.get(kind) ?? 0;
      if (seen.has(path) || visited >= (kind.endsWith("/report") ? 4 : 2 * HOSTILE.length)) continue;
      seen.add(path);
      kinds.set(kind, visited + 1);
      await page.goto(new URL(path, site.url).href);
      assert.equal(await page.evaluate((name) => window[name], MARKER), undefined, path);
      assert.equal(await page.locator("iframe, img, base, [onerror], [onload]").count(), 0, path);
      const links = await page.locator("a[href]").evaluateAll((all) => all.filter((a) => !a.hasAttribute("download")).map((a) => a.getAttribute("href")));
      for (const link of links) {
        assert.match(link, /^(\/|#)/, "every link stays here");
        if (link.startsWith("/")) waiting.push(link.split("#")[0]);
      }
    }
    return seen;
  }

  test("executes nothing, wherever a link leads", async () => {
    const { page, faults, close } = await watched(browser, (to) => to.startsWith(site.url));
    const seen = await everywhere(page);
    assert.ok(seen.size > 3 * HOSTILE.length, `${seen.size} pages`);
    assert.deepEqual(faults, []);
    await close();
  });

  test("shows the text as it is, and executes nothing even without the policy", async () => {
    const { page, close } = await watched(browser, (to) => to.startsWith(site.url), { bypassCSP: true });
    for (const path of ["/", "/runs", "/runs/1", "/evaluations/1", "/evaluations/1/metrics/1", "/compare?before=1&after=2"]) {
      await page.goto(new URL(path, site.url).href);
      assert.ok((await page.locator("main").textContent()).includes(HOSTILE[0]), path);
      assert.equal(await page.evaluate((name) => window[name], MARKER), undefined, path);
    }
    await close();
  });
});
