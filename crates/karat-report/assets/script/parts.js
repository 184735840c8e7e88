
// The building blocks of the views of items. A view is a list of elements; null is left out.

// The views by kind of observation. tests/it/script.rs compares the fields that they read, the keys of
// this table and those of the others with the schema of the report.
/** @type {Map<Observed["kind"], Function>} */
const VIEWS = new Map([
  ["ranking", rankingView],
  ["verdicts", verdictsView],
  ["suite", suiteView],
  ["load", loadView],
  ["fuzz", fuzzView],
  ["attack", attackView],
  ["traces", tracesView],
  ["trajectories", trajectoriesView],
  ["outcomes", outcomesView],
  ["resilience", resilienceView],
]);

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

function small(text) {
  return element("p", { class: "small" }, text);
}

// What a table says about a value; a value that it does not know is shown as it is.
function explained(table, value) {
  return table.get(value) || ["open", "?", String(value)];
}

function outcome(look, sign, text) {
  return element("p", { class: "outcome " + look }, sign + " " + text);
}

function block(text) {
  const pre = element("pre", {});
  pre.textContent = visibleBlock(text);
  return pre;
}

function sides(leftName, left, rightName, right) {
  return element("div", { class: "sides" },
    element("div", {}, element("h4", {}, leftName), left), element("div", {}, element("h4", {}, rightName), right));
}

// A text with its title, where there is one.
function titled(title, text) {
  return text ? [small(title), block(pretty(text))] : [];
}

function counts(title, values) {
  const rows = Object.entries(values).map(([name, count]) => [spoken(name), String(count)]);
  return rows.length ? [section(title, pairs(rows))] : [];
}

function spoken(name) {
  return name.replaceAll("_", " ");
}

function pairs(entries) {
  return element("dl", { class: "pairs" },
    ...entries.map(([key, value]) => element("div", {}, element("dt", {}, key), element("dd", {}, value))));
}

function list(texts) {
  return element("ul", { class: "reasons" }, ...texts.map((text) => element("li", {}, text)));
}

// A table that scrolls by itself; a heading that begins with # is that of a column of numbers.
function scrolled(name, look, headings, rows) {
  const head = headings.map((text) => element("th", { scope: "col", class: text.startsWith("#") ? "number" : null }, text.replace("#", "")));
  return element("div", { class: "scroll", role: "group", tabindex: "0", "aria-label": name },
    element("table", { class: "plain narrow " + look }, element("thead", {}, element("tr", {}, ...head)), element("tbody", {}, ...rows)));
}

// JSON with line breaks, other text as it is.
function pretty(text) {
  try {
    const value = JSON.parse(text);
    return value !== null && typeof value === "object" ? JSON.stringify(value, null, 2) : text;
  } catch {
    return text;
  }
}

// Text as detectors compare it: lower case, plain forms, single spaces. `places` has the position of
// each character in the original, with the end of the text last.
function folded(text) {
  let plain = "";
  const places = [];
  let at = 0;
  for (const character of text) {
    const form = character.normalize("NFKC").toLowerCase();
    for (const part of /^\s*$/.test(form) ? " " : form) {
      if (part === " " && plain.endsWith(" ")) continue;
      plain += part;
      for (let unit = 0; unit < part.length; unit += 1) places.push(at);
    }
    at += character.length;
  }
  places.push(at);
  return { plain, places };
}

// Text with the excerpts that occur in it marked.
function marked(text, excerpts) {
  const ranges = [];
  const { plain, places } = folded(text);
  for (const excerpt of excerpts) {
    const sought = folded(excerpt.replace(/\u2026$/, "")).plain.trim();
    if (sought.length < 2) continue;
    const at = plain.indexOf(sought);
    if (at >= 0) ranges.push([places[at], places[at + sought.length]]);
  }
  ranges.sort((a, b) => a[0] - b[0] || b[1] - a[1]);
  const pre = element("pre", {});
  let done = 0;
  for (const [from, to] of ranges) {
    if (from < done) continue;
    pre.append(visibleBlock(text.slice(done, from)));
    const mark = element("mark", {});
    mark.textContent = visibleBlock(text.slice(from, to));
    pre.append(mark);
    done = to;
  }
  pre.append(visibleBlock(text.slice(done)));
  return pre;
}

// A button that copies a text and says whether it could.
function copyButton(label, does, text) {
  const button = element("button", { type: "button", "data-does": does }, label);
  button.addEventListener("click", async () => {
    const done = await copy(text());
    button.textContent = done ? "Copied" : "Not copied";
    announce(done ? "Copied" : "The browser did not allow copying");
    setTimeout(() => { button.textContent = label; }, 1500);
  });
  return button;
}

function command(text) {
  return element("div", { class: "command" }, block(text), copyButton("Copy", "command", () => text));
}

const LONG = 100; // Entries of a list that are shown at once.

// Any JSON as a tree; branches are made when they are opened.
function tree(value, open) {
  if (value === null || typeof value !== "object") return leaf(value);
  const entries = Array.isArray(value) ? value.map((entry, index) => [String(index), entry]) : Object.entries(value);
  const list = element("ul", { class: "tree" });
  const more = (from) => {
    for (const [key, entry] of entries.slice(from, from + LONG)) list.append(branch(key, entry, open));
    const left = entries.length - from - LONG;
    if (left <= 0) return;
    const button = element("button", { type: "button" }, "Show more (" + left + " left)");
    const place = element("li", {}, button);
    button.addEventListener("click", () => {
      place.remove();
      more(from + LONG);
    });
    list.append(place);
  };
  more(0);
  return list;
}

function branch(key, value, open) {
  const name = element("span", { class: "key-name" }, key);
  if (value === null || typeof value !== "object") return element("li", {}, name, ": ", leaf(value));
  const size = Array.isArray(value) ? counted(value.length, "element") : counted(Object.keys(value).length, "field");
  const details = element("details", {}, element("summary", {}, name, " ", element("span", { class: "small" }, size)));
  const fill = () => {
    if (details.children.length === 1) details.append(tree(value, open - 1));
  };
  details.addEventListener("toggle", fill);
  if (open > 0) {
    details.open = true;
    fill();
  }
  return element("li", {}, details);
}

function leaf(value) {
  if (typeof value === "string") {
    if (value.includes("\n") || value.length > 200) return block(value);
    return element("span", { class: "string" }, JSON.stringify(value));
  }
  return element("span", { class: "literal" }, String(value));
}
