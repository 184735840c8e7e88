
// What the views of items are made of. Nothing is taken for granted about what was observed: a field
// that is not what it should be is left out here and stands in the tree of everything.

function section(title, ...children) {
  return element("section", {}, element("h3", {}, title), ...children);
}

function isObject(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function textOf(value) {
  return typeof value === "string" && value !== "" ? value : null;
}

function listOf(value) {
  return Array.isArray(value) ? value : [];
}

function outcome(kind, sign, words) {
  return element("p", { class: "outcome " + kind }, sign + " " + words);
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

function jsonBlock(value) {
  return block(typeof value === "string" ? pretty(value) : JSON.stringify(value, null, 2));
}

// Text as detectors compare it: small letters, plain forms, single spaces. `places` says where in the
// text each character stood, with the end of the text last.
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

// Text in which the excerpts that are found stand out.
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

// A command to run again, with a button that copies it.
function command(text) {
  const button = element("button", { type: "button", "data-does": "command" }, "Copy");
  button.addEventListener("click", async () => {
    const done = await copy(text);
    button.textContent = done ? "Copied" : "Not copied";
    say(done ? "Copied" : "The browser did not allow copying");
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  return element("div", { class: "command" }, block(text), button);
}

function pairs(entries) {
  return element("dl", { class: "pairs" },
    ...entries.map(([key, value]) => element("div", {}, element("dt", {}, key), element("dd", {}, value))));
}

function reasons(list) {
  return element("ul", { class: "reasons" }, ...list.map((reason) => element("li", {}, reason)));
}

// What the kind of report has to say of an item; null where it has no view of its own.
function viewOf(report, item, observed) {
  if (!isObject(observed)) return null;
  switch (report.data.kind) {
    case "ranking": return isRanking(observed) ? ranking(observed) : isQuery(observed) ? [asked(observed.query)] : null;
    case "verdicts": return verdictsView(observed);
    case "suite": return suiteView(observed);
    case "fuzz": return fuzzView(observed);
    case "attack": return attackView(item, observed);
    case "load": return loadView(observed);
    case "traces": return tracesView(observed);
    case "trajectories": return trajectoriesView(observed);
    default: return null;
  }
}
