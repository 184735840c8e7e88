// A real browser for the tests, and what a page must never do in it.

import axe from "axe-core";
import { chromium } from "playwright-core";

export const PHONE = { width: 390, height: 844 };
export const DESK = { width: 1280, height: 900 };

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM,
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** A page that keeps everything that it should not do; `allowed` says which requests it may make. */
export async function watched(browser, allowed, options = {}) {
  const context = await browser.newContext({ viewport: DESK, ...options });
  const page = await context.newPage();
  const faults = [];
  page.on("console", (message) => { if (["error", "warning"].includes(message.type())) faults.push(`console: ${message.text()}`); });
  page.on("pageerror", (error) => faults.push(`error: ${error.message}`));
  page.on("dialog", (dialog) => { faults.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  page.on("popup", () => faults.push("popup"));
  page.on("request", (request) => { if (!allowed(request.url()) && !request.url().startsWith("data:")) faults.push(`request: ${request.url()}`); });
  return { page, faults, close: () => context.close() };
}

/**
 * What axe finds, whatever its weight. The page's policy keeps axe out too: open it with `bypassCSP`. A phone has
 * the colours of a desk, and their contrast takes most of the time: it is measured at the width of a desk alone.
 */
export async function violations(page, scope = "html") {
  const contrast = page.viewportSize().width !== PHONE.width;
  const found = await page.evaluate(async ([source, within, enabled]) => {
    if (!window.axe) (0, eval)(source);
    const rules = { "color-contrast": { enabled } };
    return window.axe.run(within, { resultTypes: ["violations"], preload: false, rules });
  }, [axe.source, scope, contrast]);
  return found.violations
    .map(({ id, impact, nodes }) => `${id} (${impact}): ${nodes.slice(0, 3).map((node) => node.html.slice(0, 200)).join(" | ")}`);
}
