// The page that `karat check` writes, in a real browser, opened from disk as a reader would.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { pathToFileURL } from "node:url";

import { PHONE, launch, serious, watched } from "./browser.mjs";
import { HOSTILE, MARKER, check, folder, hostileProject, largeProject } from "./projects.mjs";

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

const shown = (page) => page.locator(".explore tbody a.item").allTextContents();

describe("the report of the bundled project", () => {
  let path;
  before(() => { path = check(folder()); });

  test("opens without an error and asks nothing of the network", async () => {
    const { page, faults, close } = await open(path);
    assert.match(await page.locator("h1").textContent(), /\w/);
    assert.ok((await page.locator("article.card").count()) >= 2, "a card for each evaluation");
    await page.mouse.wheel(0, 20000);
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

  for (const [name, options] of [
    ["light", { colorScheme: "light" }], ["dark", { colorScheme: "dark" }], ["phone", { viewport: PHONE }],
  ]) {
    test(`axe finds nothing serious (${name})`, async () => {
      // The page's policy keeps every script out, axe included; here alone it is lifted.
      const { page, close } = await open(path, { ...options, bypassCSP: true });
      await page.evaluate(() => { for (const details of document.querySelectorAll("main details")) details.open = true; });
      assert.deepEqual(await serious(page), []);
      await page.locator("section.explore").first().locator("tbody a.item").first().click();
      await page.locator("dialog[open]").waitFor();
      assert.deepEqual(await serious(page), []);
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
    const links = await page.locator("section.explore tbody a.item").count();
    assert.equal(links, HOSTILE.length);
    for (let at = 0; at < links; at += 1) {
      await page.locator("section.explore tbody a.item").nth(at).click();
      await page.locator("dialog[open]").waitFor();
      await page.keyboard.press("Escape");
    }
    for (const select of await page.locator("select").all()) {
      for (const value of await select.locator("option").evaluateAll((options) => options.map((option) => option.value))) {
        await select.selectOption(value);
      }
    }
    await page.locator("input[type=search]").first().fill(HOSTILE[0]);
    await page.evaluate(() => { for (const details of document.querySelectorAll("details")) details.open = true; });
    assert.equal(await page.evaluate((name) => window[name], MARKER), undefined);
    assert.equal(await page.locator("iframe, img, base, link[rel=stylesheet], svg[onload], [onerror]").count(), 0);
    assert.deepEqual(faults, []);
    await close();
  });

  test("shows the text as it is", async () => {
    const { page, close } = await open(path);
    assert.ok((await shown(page)).some((id) => id.includes(HOSTILE[0])));
    await close();
  });

  test("the same page without its policy still executes nothing", async () => {
    const { page, close } = await open(path, { bypassCSP: true });
    await page.locator("section.explore tbody a.item").first().click();
    await page.locator("dialog[open]").waitFor();
    assert.equal(await page.evaluate((name) => window[name], MARKER), undefined);
    await close();
  });
});

describe("a report of 10,000 items", () => {
  test("is below 15 MB, shows itself, and sorts and filters", async (t) => {
    const cwd = folder();
    largeProject(cwd, 10_000);
    const path = check(cwd);
    const megabytes = readFileSync(path).length / 1e6;
    assert.ok(megabytes < 15, `${megabytes.toFixed(1)} MB`);
    const { page, faults, close } = await open(path);
    const paint = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
    t.diagnostic(`${megabytes.toFixed(1)} MB, first contentful paint after ${Math.round(paint)} ms`);
    const section = page.locator("section.explore").first();
    assert.ok((await section.locator("tbody tr").count()) < 300, "only the rows in sight exist");
    await section.locator("input[type=search]").fill("q-09999");
    await page.waitForFunction(() => document.querySelectorAll("section.explore tbody a.item").length === 1);
    await section.locator("input[type=search]").fill("");
    await section.locator(".view thead button", { hasText: "mrr" }).first().click();
    assert.deepEqual(faults, []);
    await close();
  });
});
