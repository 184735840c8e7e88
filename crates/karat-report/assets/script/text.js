"use strict";

// Text and elements. Data reaches the page only as text nodes and as attributes that are set here, never
// as markup; the page's policy refuses markup from strings as well.

// The characters that karat_io::text::printable makes visible; a test compares the two lists.
const HIDDEN = /[\u{0}-\u{1f}\u{7f}-\u{9f}\u{ad}\u{34f}\u{61c}\u{115f}-\u{1160}\u{17b4}-\u{17b5}\u{180b}-\u{180f}\u{200b}-\u{200f}\u{2028}-\u{202e}\u{2060}-\u{206f}\u{2800}\u{3164}\u{fdd0}-\u{fdef}\u{feff}\u{ffa0}\u{fff0}-\u{fffb}\u{fffe}-\u{ffff}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{1fffe}-\u{1ffff}\u{2fffe}-\u{2ffff}\u{3fffe}-\u{3ffff}\u{4fffe}-\u{4ffff}\u{5fffe}-\u{5ffff}\u{6fffe}-\u{6ffff}\u{7fffe}-\u{7ffff}\u{8fffe}-\u{8ffff}\u{9fffe}-\u{9ffff}\u{afffe}-\u{affff}\u{bfffe}-\u{bffff}\u{cfffe}-\u{cffff}\u{dfffe}-\u{dffff}\u{e0000}-\u{e0fff}\u{efffe}-\u{effff}\u{ffffe}-\u{fffff}\u{10fffe}-\u{10ffff}]/gu;

function escaped(character) {
  switch (character) {
    case "\n": return "\\n";
    case "\t": return "\\t";
    case "\r": return "\\r";
    default: return "\\u{" + character.codePointAt(0).toString(16) + "}";
  }
}

// Text for one line.
function visible(text) {
  return String(text).replace(HIDDEN, escaped);
}

// Text of several lines: newlines and tabs stay.
function visibleBlock(text) {
  return String(text)
    .replace(/\r\n/g, "\n")
    .replace(HIDDEN, (character) => (character === "\n" || character === "\t" ? character : escaped(character)));
}

// An element with attributes and children; strings become visible text, null is left out.
function element(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value === true ? "" : visible(value));
  }
  for (const child of children) {
    if (child === null || child === undefined) continue;
    made.append(child instanceof Node ? child : visible(child));
  }
  return made;
}

// The same number of decimals as in the static part of the page.
function number(value) {
  if (value === null || value === undefined) return "\u2013";
  const size = Math.abs(value);
  const decimals = size < 10 ? 4 : size < 100 ? 2 : size < 1000 ? 1 : 0;
  return withMinus(value.toFixed(decimals));
}

function bound(value) {
  const size = Math.abs(value);
  return withMinus(value.toFixed(size < 10 ? 3 : size < 100 ? 1 : 0));
}

function withMinus(text) {
  if (!text.startsWith("-")) return text;
  return /[1-9]/.test(text) ? "\u2212" + text.slice(1) : text.slice(1);
}

function counted(n, noun) {
  return n === 1 ? "1 " + noun : n + " " + noun + "s";
}

function metricLink(column) {
  if (!column || !column.legend) return element("span", { class: "metric" }, column ? column.id : "");
  return element("a", { class: "metric", href: "#metric-" + column.legend }, column.id);
}

// A select with its label; `options` are [value, text] pairs or {group, options}.
function choice(label, options, onchange) {
  const select = element("select", { name: label, onchange: () => onchange(select.value) });
  const one = ([value, text]) => {
    const option = element("option", {}, text);
    // The value is compared, not shown: it is not escaped.
    option.value = value;
    return option;
  };
  for (const option of options) {
    if (Array.isArray(option)) select.append(one(option));
    else select.append(element("optgroup", { label: option.group }, ...option.options.map(one)));
  }
  return [element("label", { class: "field" }, element("span", {}, label), select), select];
}

// Announces something to readers who do not see it.
function announce(text) {
  document.getElementById("announcer").textContent = visible(text);
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Older browsers, and some for pages from disk: through a selection.
    const area = element("textarea", { class: "hidden" });
    area.value = text;
    (document.querySelector("dialog[open]") || document.body).append(area);
    area.select();
    let done = false;
    try {
      done = document.execCommand("copy");
    } catch {
      done = false;
    }
    area.remove();
    return done;
  }
}
