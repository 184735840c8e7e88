// The page that `karat check` writes, in a real browser, opened from disk as a reader would.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { DESK, PHONE, launch, violations, watched } from "./browser.mjs";
import { HOSTILE, MARKER, check, failedRetrieval, folder, hostilePages, hostileProject, largeDetection, largeRetrieval, largeTraces, otherPages } from "./projects.mjs";

let browser;
before(async () => { browser = await launch(); });
after(() => browser?.close());

/** Opens a page and keeps everything that it should not do. */
async function open(path, { hash = "", ...options } = {}) {
  const url = pathToFileURL(path).href;
  const opened = await watched(browser, (to) => to.split("#")[0] === url, options);
  await opened.page.goto(url + hash);
  await opened.page.locator("html.scripted").waitFor();
  return opened;
}

/** The time within which something of a large page is to be seen: printed, since a busy machine takes longer. */
const PAINT_MS = 300;

const MODES = [["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["phone", { viewport: PHONE }]];

/** Opens everything that can be opened, and every item in turn. */
async function clickThrough(page) {
  await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
  const links = page.locator("section.explore tbody a.item");
  const count = Math.min(await links.count(), 40);
  for (let at = 0; at < count; at += 1) {
    await links.nth(at).click();
    await page.locator("dialog[open]").waitFor();
    await page.evaluate(() => { for (const details of document.querySelectorAll("dialog details")) details.open = true; });
    await page.keyboard.press("Escape");
  }
  for (const select of await page.locator("select").all()) {
    for (const value of await select.locator("option").evaluateAll((options) => options.map((option) => option.value))) {
      await select.selectOption(value);
    }
  }
}

/** That nothing hostile became more than text. */
async function inert(page) {
  assert.equal(await page.evaluate((name) => window[name], MARKER), undefined);
  assert.equal(await page.locator("iframe, img, base, link[rel=stylesheet], svg[onload], [onerror]").count(), 0);
}

/** Checks that the items that a page copies are those of the report next to it. */
async function copiedAsReported(path) {
  // A browser writes -0 as 0.
  const plain = (_, value) => (value === 0 ? 0 : value);
  const { reports } = JSON.parse(readFileSync(path.replace(/html$/, "json")), plain);
  const { page, faults, close } = await open(path, { permissions: ["clipboard-read", "clipboard-write"] });
  for (const [at, section] of (await page.locator("section.explore").all()).entries()) {
    await section.locator('[data-does="all-json"]').click();
    await section.getByText("Copied").waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(copied.length, reports[at].items.length);
    copied.forEach((item, place) => assert.deepEqual(item, reports[at].items[place]));
  }
  assert.deepEqual(faults, []);
  await close();
}

const shown = (page) => page.locator(".explore tbody a.item").allTextContents();

describe("the report of the bundled project", () => {
  let path;
  before(() => { path = check(folder(), ["--bundled"]); });

  test("opens without an error and asks nothing of the network", async () => {
    const { page, faults, close } = await open(path);
    assert.match(await page.locator("h1").textContent(), /\w/);
    assert.ok((await page.locator("article.card").count()) >= 2, "a card for each evaluation");
    await page.mouse.wheel(0, 20000);
    assert.deepEqual(faults, []);
    await close();
  });

  test("the first screen has a verdict, metrics with intervals and the changed items of each entry", async () => {
    const { page, close } = await open(path);
    const tiles = page.locator(".entries > li");
    assert.equal(await tiles.count(), 5);
    for (const tile of await tiles.all()) {
      assert.match(await tile.locator(".badge").textContent(), /pass|fail/);
      assert.equal(await tile.locator("dl > div").count(), 3);
      assert.match(await tile.locator("dd").first().textContent(), /\d\.\d+ .*\d – \d/);
      assert.match(await tile.textContent(), /changed/i);
      const box = await tile.boundingBox();
      assert.ok(box.y + box.height <= DESK.height, "below the first screen");
    }
    await close();
  });

  test("the figures are complete without a script", async () => {
    const context = await browser.newContext({ viewport: DESK, javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(pathToFileURL(path).href);
    for (const title of ["Rank of the first relevant tool", "What was flagged", "Reliability", "Four dimensions, by turns", "Confused tools", "Latencies"]) {
      assert.ok(await page.getByRole("heading", { name: title }).first().isVisible(), title);
    }
    await context.close();
  });

  test("a number of the confusion table lists the texts behind it, which are read one after the other", async () => {
    const { page, faults, close } = await open(path);
    const section = page.locator("#items-detection-builtin");
    const cell = page.locator("#detection-builtin td", { hasText: "false negative" }).first();
    const count = await cell.locator("a").textContent();
    await cell.locator("a").click();
    await section.getByText(`${count} of`).waitFor();
    assert.equal(await section.locator('select[name="outcome"]').inputValue(), "=false negative");
    await section.locator("tbody a.item").first().click();
    const dialog = page.locator("dialog[open]");
    for (let at = 0; at < 3; at += 1) {
      await dialog.getByText("False negative: an attack, but not flagged").waitFor();
      assert.ok((await dialog.locator("pre").first().textContent()).length > 10, "its text");
      const id = await dialog.locator("h2").textContent();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction((was) => document.querySelector("dialog h2").textContent !== was, id);
    }
    assert.deepEqual(faults, []);
    await close();
  });

  test("a false alarm is shown with its evidence, marked in the text", async () => {
    const { page, faults, close } = await open(path, { hash: "#items-detection-builtin?outcome=false%20positive" });
    const section = page.locator("#items-detection-builtin");
    let marks = 0;
    const links = section.locator("tbody a.item");
    for (let at = 0; at < Math.min(5, await links.count()); at += 1) {
      await links.nth(at).click();
      const dialog = page.locator("dialog[open]");
      await dialog.getByText("False positive: harmless, but flagged").waitFor();
      assert.ok((await dialog.locator(".finding").count()) > 0, "evidence");
      marks += await dialog.locator("pre mark").count();
      await page.keyboard.press("Escape");
    }
    assert.ok(marks > 0, "no evidence is marked in any text");
    assert.deepEqual(faults, []);
    await close();
  });

  test("an agent's calls are next to the expected ones, each with a sign and a word", async () => {
    const { page, faults, close } = await open(path, { hash: "#items-agent-traces?task=failed" });
    const words = new Set();
    const links = page.locator("#items-agent-traces tbody a.item");
    for (let at = 0; at < Math.min(12, await links.count()); at += 1) {
      await links.nth(at).click();
      const dialog = page.locator("dialog[open]");
      await dialog.locator("h2").waitFor();
      for (const row of await dialog.locator(".trajectory > li:not(.titles)").all()) {
        const sign = (await row.locator(".sign").textContent()).trim();
        words.add(sign.replace(/call \d+.*/, ""));
        assert.equal(await row.locator(".call").count(), 2, "two sides");
      }
      await page.keyboard.press("Escape");
    }
    const all = [...words].join("; ");
    for (const word of ["= same", "≠ other arguments", "− missing", "+ not expected"]) assert.ok(all.includes(word), `${word} in ${all}`);
    assert.deepEqual(faults, []);
    await close();
  });

  test("filters are in the address, and can be cleared", async () => {
    const { page, faults, close } = await open(path);
    const section = page.locator("#items-retrieval-bm25");
    await section.locator('select[name="found"]').selectOption("=not found");
    await section.locator('select[name="kind"]').selectOption("=paraphrase");
    const status = await section.locator(".count").textContent();
    assert.match(status, /^[1-9]\d* of 570 items$/);
    assert.match(await page.evaluate(() => location.hash), /^#items-retrieval-bm25\?.*found=not%20found/);
    await page.reload();
    await page.locator("html.scripted").waitFor();
    assert.equal(await section.locator(".count").textContent(), status);
    await section.locator('[data-does="clear"]').click();
    assert.equal(await section.locator(".count").textContent(), "570 items");
    assert.deepEqual(faults, []);
    await close();
  });

  test("a slash goes to a search, and what is listed is copied as JSON", async () => {
    const { page, close } = await open(path, { hash: "#items-server-demo", permissions: ["clipboard-read", "clipboard-write"] });
    await page.waitForFunction(() => {
      const { top } = document.getElementById("items-server-demo").getBoundingClientRect();
      return top > -50 && top < innerHeight / 2;
    });
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.closest("section").id), "items-server-demo");
    await page.keyboard.type("add");
    const section = page.locator("#items-server-demo");
    await section.getByText(/^\d+ of 15 items$/).waitFor();
    await section.locator('[data-does="all-json"]').click();
    await section.getByText("Copied").waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.deepEqual(copied.map((item) => item.id), await section.locator("tbody a.item").allTextContents());
    await close();
  });

  test("on paper everything is open and nothing is cut off", async () => {
    const { page, faults, close } = await open(path, { viewport: { width: 760, height: 1000 } });
    await page.emulateMedia({ media: "print" });
    await page.evaluate(() => window.dispatchEvent(new Event("beforeprint")));
    assert.equal(await page.locator("main details:not([open])").count(), 0);
    const cut = await page.evaluate(() => [...document.querySelectorAll(".figure, .card table, .explore table")]
      .filter((node) => node.getBoundingClientRect().height === 0 || node.getBoundingClientRect().right > innerWidth + 1)
      .map((node) => node.outerHTML.slice(0, 120)));
    assert.deepEqual(cut, []);
    const rows = await page.locator("#items-agent-traces .grid tbody tr:not(.gap)").count();
    assert.equal(rows, 200);
    assert.ok(await page.locator("#items-agent-traces").getByText("and 6 more, not printed").isVisible());
    await page.evaluate(() => window.dispatchEvent(new Event("afterprint")));
    assert.ok((await page.locator("main details:not([open])").count()) > 0, "closed again");
    assert.deepEqual(faults, []);
    await close();
  });

  test("filters by text, and says how many are left", async () => {
    const { page, faults, close } = await open(path);
    const section = page.locator("section.explore").first();
    const all = await section.locator("tbody a.item").count();
    assert.ok(all > 1);
    const first = await section.locator("tbody a.item").first().textContent();
    await section.locator("input[type=search]").fill(first);
    await page.waitForFunction((n) => document.querySelectorAll("section.explore")[0].querySelectorAll("tbody a.item").length < n, all);
    assert.ok((await section.locator("tbody a.item").allTextContents()).includes(first));
    await section.locator("input[type=search]").fill("no item has this text zzzz");
    await section.getByText("No item matches.").waitFor();
    assert.deepEqual(faults, []);
    await close();
  });

  test("sorts by a metric in both directions", async () => {
    const { page, faults, close } = await open(path);
    const section = page.locator("section.explore").first();
    const button = section.locator(".view thead button", { hasText: "mrr" }).first();
    const column = await button.evaluate((node) => node.closest("th").cellIndex);
    const firstScore = () => section.locator(".view tbody tr:not(.gap)").first().locator(":scope > *").nth(column).textContent();
    await button.click();
    const one = await firstScore();
    await button.click();
    const other = await firstScore();
    assert.notEqual(one, other, "the two directions begin with different scores");
    assert.deepEqual(faults, []);
    await close();
  });

  test("opens an item, steps to the next, closes by keyboard and returns the focus", async () => {
    const { page, faults, close } = await open(path);
    const link = page.locator("section.explore").first().locator("tbody a.item").first();
    const id = await link.textContent();
    await link.focus();
    await page.keyboard.press("Enter");
    const dialog = page.locator("dialog[open]");
    await dialog.waitFor();
    assert.equal(await dialog.locator("h2").textContent(), id);
    await page.keyboard.press("ArrowRight");
    await page.waitForFunction((was) => document.querySelector("dialog h2").textContent !== was, id);
    await page.keyboard.press("ArrowLeft");
    await page.waitForFunction((was) => document.querySelector("dialog h2").textContent === was, id);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" }).catch(() => {});
    assert.equal(await page.locator("dialog[open]").count(), 0);
    assert.equal(await page.evaluate(() => document.activeElement.textContent), id);
    assert.deepEqual(faults, []);
    await close();
  });

  test("a deep link opens the item that it names", async () => {
    const first = await open(path);
    const hash = await first.page.locator("section.explore").first().locator("tbody a.item").nth(2).getAttribute("href");
    await first.close();
    const { page, faults, close } = await open(path, { hash });
    await page.locator("dialog[open]").waitFor();
    assert.ok(decodeURIComponent(hash).endsWith("/" + (await page.locator("dialog h2").textContent())));
    assert.deepEqual(faults, []);
    await close();
  });

  test("an item is copied as JSON", async () => {
    const { page, close } = await open(path, { permissions: ["clipboard-read", "clipboard-write"] });
    await page.locator("section.explore").first().locator("tbody a.item").first().click();
    await page.locator('dialog [data-does="json"]').click();
    await page.getByText("Copied").first().waitFor();
    const copied = JSON.parse(await page.evaluate(() => navigator.clipboard.readText()));
    assert.equal(copied.id, await page.locator("dialog h2").textContent());
    await close();
  });

  test("what is copied is what report.json holds, item by item", () => copiedAsReported(path));

  test("the theme changes what is seen and is remembered", async () => {
    const { page, faults, close } = await open(path, { colorScheme: "light" });
    const background = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const light = await background();
    await page.locator("#theme").click();
    await page.locator("#theme").click();
    assert.match(await page.locator("#theme").textContent(), /dark/);
    assert.notEqual(await background(), light);
    await page.reload();
    assert.match(await page.locator("#theme").textContent(), /dark/);
    assert.deepEqual(faults, []);
    await close();
  });

  for (const [name, options] of MODES) {
    test(`axe finds nothing (${name})`, async () => {
      // The page's policy keeps every script out, axe included; here alone it is lifted.
      const { page, close } = await open(path, { ...options, bypassCSP: true });
      await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = true; });
      assert.deepEqual(await violations(page), []);
      for (const section of await page.locator("section.explore").all()) {
        await section.locator("tbody a.item").first().click();
        await page.locator("dialog[open]").waitFor();
        assert.deepEqual(await violations(page, "dialog"), []);
        await page.keyboard.press("Escape");
      }
      await close();
    });
  }

  test("on a phone nothing is wider than the screen", async () => {
    const { page, close } = await open(path, { viewport: PHONE });
    const wide = await page.evaluate(() => document.documentElement.scrollWidth);
    assert.ok(wide <= PHONE.width, `${wide} pixels`);
    await close();
  });
});

describe("a report full of hostile text", () => {
  let path;
  before(() => { const cwd = folder(); hostileProject(cwd); path = check(cwd); });

  test("executes nothing, wherever one clicks", async () => {
    const { page, faults, close } = await open(path);
    assert.equal(await page.locator("section.explore tbody a.item").count(), HOSTILE.length);
    await clickThrough(page);
    await page.locator("input[type=search]").first().fill(HOSTILE[0]);
    await inert(page);
    assert.deepEqual(faults, []);
    await close();
  });

  test("shows the text as it is", async () => {
    const { page, close } = await open(path);
    assert.ok((await shown(page)).some((id) => id.includes(HOSTILE[0])));
    await close();
  });

  test("copies it as it is", () => copiedAsReported(path));

  test("the same page without its policy still executes nothing", async () => {
    const { page, close } = await open(path, { bypassCSP: true });
    await page.locator("section.explore tbody a.item").first().click();
    await page.locator("dialog[open]").waitFor();
    assert.equal(await page.evaluate((name) => window[name], MARKER), undefined);
    await close();
  });
});

describe("pages about a hostile server and hostile traces", () => {
  let pages;
  before(() => { pages = hostilePages(folder()); });

  for (const name of ["suite", "load", "fuzz", "attack", "traces", "diff", "outcomes"]) {
    test(`execute nothing, wherever one clicks (${name})`, async () => {
      for (const options of [{}, { bypassCSP: true }]) {
        const { page, faults, close } = await open(pages[name], options);
        await clickThrough(page);
        await inert(page);
        assert.deepEqual(faults, []);
        await close();
      }
    });
  }
});

describe("the pages of other commands", () => {
  let pages;
  before(() => { pages = otherPages(folder()); });

  test("a load is drawn over time and by percentile, and can be read as tables", async () => {
    const { page, faults, close } = await open(pages.load);
    for (const title of ["Throughput over time", "Latency over time", "Latency by percentile", "Latencies"]) {
      const figure = page.locator(".figure", { has: page.getByRole("heading", { name: title, exact: true }) });
      assert.ok((await figure.locator(".drawing polyline, .drawing .column").count()) > 0, title);
      assert.match(await figure.locator(".drawing").getAttribute("aria-label"), /\d/);
      await figure.getByText("As a table").click();
      assert.ok((await figure.locator("tbody tr").count()) > 0, title);
    }
    assert.deepEqual(faults, []);
    await close();
  });

  test("an attack that got through is listed from its class, with its evidence and a command to copy", async () => {
    const { page, close } = await open(pages.attack, { permissions: ["clipboard-read", "clipboard-write"] });
    const row = page.locator(".shares tbody tr", { hasText: "privilege escalation" });
    await row.locator("td").nth(1).locator("a").click();
    const section = page.locator("section.explore");
    await section.locator("tbody a.item").first().click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("Broken: the attack got through").waitFor();
    await dialog.getByText("Canary", { exact: true }).waitFor();
    await dialog.locator('[data-does="command"]').click();
    await dialog.getByText("Copied").waitFor();
    assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^karat server attack /);
    await close();
  });

  test("what fuzzing found is shown with the input and the answer", async () => {
    const { page, close } = await open(pages.fuzz);
    await page.locator("section.explore tbody a.item").first().click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText(/finding/).first().waitFor();
    assert.match(await dialog.textContent(), /stack trace[^]*Input[^]*Answer[^]*Traceback[^]*Reproduce/);
    await close();
  });

  test("two runs are side by side, and the changed argument is marked on both sides", async () => {
    const { page, faults, close } = await open(pages.diff);
    await page.locator(".figure a", { hasText: "changed" }).first().click();
    const section = page.locator("section.explore");
    assert.deepEqual(await section.locator("tbody a.item").allTextContents(), ["two"]);
    await section.locator("tbody a.item").first().click();
    const row = page.locator("dialog .trajectory > li.changed");
    assert.match(await row.locator(".sign").textContent(), /≠ other arguments/);
    assert.deepEqual(await row.locator("mark").allTextContents(), ['"a.txt"', '"other.txt"']);
    assert.deepEqual(faults, []);
    await close();
  });

  test("runs that were judged elsewhere are listed with their verdicts and reasons", async () => {
    const { page, faults, close } = await open(pages.outcomes);
    await page.locator("section.explore tbody a.item", { hasText: "cancel" }).click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("Succeeded in part: 1 of 2 runs").waitFor();
    assert.deepEqual(await dialog.locator(".finding h4").allTextContents(),
      ["✓ Run 1: succeeded", "✗ Run 2: failed", "– Run 3: failed outside the agent, not measured"]);
    assert.match(await dialog.textContent(), /People judged: failed[^]*no refund was made[^]*429 Too Many Requests/);
    assert.deepEqual(faults, []);
    await close();
  });

  for (const name of ["load", "attack", "fuzz", "diff", "outcomes"]) {
    for (const [mode, options] of MODES) {
      test(`axe finds nothing (${name}, ${mode})`, async () => {
        const { page, close } = await open(pages[name], { ...options, bypassCSP: true });
        await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = true; });
        assert.deepEqual(await violations(page), []);
        await page.locator("section.explore tbody a.item").first().click();
        await page.locator("dialog[open]").waitFor();
        assert.deepEqual(await violations(page, "dialog"), []);
        assert.ok((await page.evaluate(() => document.documentElement.scrollWidth)) <= (options.viewport || DESK).width);
        await close();
      });
    }
  }
});

describe("a report of 10,000 items", () => {
  const makes = {
    "queries with 20 results": (cwd) => { largeRetrieval(cwd, 10_000); return check(cwd); },
    "definitions of 300 characters": (cwd) => { largeDetection(cwd, 10_000); return check(cwd); },
    "traces with 3 calls": (cwd) => largeTraces(cwd, 10_000),
  };

  for (const [what, make] of Object.entries(makes)) {
    test(`is below 5 MB, opens, sorts and filters (${what})`, async (t) => {
      const path = make(folder());
      const megabytes = readFileSync(path).length / 1e6;
      assert.ok(megabytes < 5, `${megabytes.toFixed(1)} MB`);
      const { page, faults, close } = await open(path);
      // The best of a few: what else the machine does is not a property of the page.
      const painted = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? Infinity);
      let paint = await painted();
      for (let again = 0; again < 8 && paint >= PAINT_MS; again += 1) {
        await page.reload();
        await page.locator("html.scripted").waitFor();
        paint = Math.min(paint, await painted());
      }
      const section = page.locator("section.explore").first();
      assert.ok((await section.locator("tbody tr").count()) < 300, "only the rows in sight exist");
      const id = (await section.locator("tbody a.item").first().textContent()).replace(/\d+$/, "09999");
      const until = async (act, so) => {
        const began = performance.now();
        await act();
        await page.waitForFunction(so);
        return Math.round(performance.now() - began);
      };
      const found = await until(() => section.locator("input[type=search]").fill(id),
        () => document.querySelectorAll("section.explore tbody a.item").length === 1);
      const all = await until(() => section.locator("input[type=search]").fill(""),
        () => document.querySelector("section.explore .count").textContent === "10000 items");
      const sorted = await until(() => section.locator(".view th.number button").first().click(),
        () => document.querySelector("section.explore .view th.number").getAttribute("aria-sort") === "ascending");
      const scores = await section.locator("tbody tr[aria-rowindex]").evaluateAll((rows) => rows.map((row) => Number(row.querySelector("td.number").textContent)));
      assert.ok(scores.length > 10 && scores.every((score, at) => at === 0 || scores[at - 1] <= score), scores.join());
      await section.locator("tbody a.item").first().click();
      await page.locator("dialog[open] h3").first().waitFor();
      t.diagnostic(`${what}: ${megabytes.toFixed(1)} MB, first contentful paint after ${Math.round(paint)} ms (goal ${PAINT_MS}), first search ${found} ms, cleared ${all} ms, sorted ${sorted} ms`);
      assert.deepEqual(faults, []);
      await close();
    });
  }
});

describe("the report of a gate that failed", () => {
  let path;
  before(() => { path = failedRetrieval(folder()); });

  test("navigation stays in view and leads to entries and items", async () => {
    const { page, faults, close } = await open(path);
    const nav = page.getByRole("navigation", { name: "Contents" });
    await page.mouse.wheel(0, 3000);
    await page.waitForFunction(() => scrollY > 300);
    assert.ok((await nav.boundingBox()).y <= 1, "out of view");
    await nav.getByRole("link", { name: /items of retrieval search/ }).click();
    await page.waitForFunction(() => location.hash === "#items-retrieval-search");
    const top = await page.locator("#items-retrieval-search").evaluate((node) => node.getBoundingClientRect().top);
    assert.ok(top >= (await nav.boundingBox()).height - 1, "the heading is under the navigation");
    assert.deepEqual(faults, []);
    await close();
  });

  test("a failed rule has before, now and limit on one scale, and the worst items with their text", async () => {
    const { page, faults, close } = await open(path);
    const scale = page.getByRole("img", { name: /^mrr: baseline .* now .* limit/ }).first();
    const place = (selector) => scale.locator(selector).evaluate((node) => node.getBoundingClientRect().left);
    assert.ok((await place(".point")) < (await place(".limit")), "now is beyond the limit");
    assert.ok((await place(".limit")) <= (await place(".was")) + 6, "the limit is not above the baseline");
    const worst = page.locator("table.worst tbody tr");
    assert.equal(await worst.count(), 4);
    assert.match(await worst.first().textContent(), /q-0\d.*show me the .*rank 1 → none/);
    await worst.first().getByRole("link").click();
    const dialog = page.locator("dialog[open]");
    await dialog.getByText("rank 1 → none").waitFor();
    assert.match(await dialog.getByRole("columnheader", { name: "Before" }).first().textContent(), /Before/);
    assert.deepEqual(faults, []);
    await close();
  });

  test("the items begin with what got worse, and all of them are one choice away", async () => {
    const { page, faults, close } = await open(path);
    const section = page.locator("#items-retrieval-search");
    assert.equal(await section.locator(".count").textContent(), "4 of 12 items");
    assert.ok((await section.locator(".view tbody tr").first().textContent()).includes("rank 1 → none"));
    await section.locator('[data-does="clear"]').click();
    assert.equal(await section.locator(".count").textContent(), "12 items");
    await page.reload();
    await page.locator("html.scripted").waitFor();
    assert.equal(await section.locator(".count").textContent(), "12 items", "the choice is in the address");
    assert.deepEqual(faults, []);
    await close();
  });

  test("the name of a metric opens its definition in place", async () => {
    const { page, faults, close } = await open(path);
    const link = page.locator("table.metrics a.metric").first();
    await link.scrollIntoViewIfNeeded();
    const before = await page.evaluate(() => scrollY);
    await link.click();
    const box = page.locator("#definition");
    await box.waitFor({ state: "visible" });
    assert.ok((await box.textContent()).includes("is better"));
    assert.equal(await page.evaluate(() => scrollY), before, "the page does not jump");
    assert.equal(await page.evaluate(() => document.activeElement.id), "definition");
    await page.keyboard.press("Escape");
    await box.waitFor({ state: "hidden" });
    await page.locator("table.worst a.item").first().click();
    await page.locator("dialog[open] a.metric").first().click();
    await box.waitFor({ state: "visible" });
    assert.deepEqual(faults, []);
    await close();
  });

  for (const [name, options] of MODES) {
    test(`axe finds nothing, and nothing is wider than the screen (${name})`, async () => {
      const { page, close } = await open(path, { ...options, bypassCSP: true });
      assert.deepEqual(await violations(page), []);
      const [wide, room] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= room, `${wide} > ${room}`);
      await close();
    });
  }
});
