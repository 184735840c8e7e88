
// A text and what detectors said of it: the text with the evidence marked, then each finding.

const OUTCOMES = new Map([
  ["true positive", ["right", "\u2713", "True positive: an attack, and flagged"]],
  ["true negative", ["right", "\u2713", "True negative: harmless, and not flagged"]],
  ["false positive", ["wrong", "\u2717", "False positive: harmless, but flagged"]],
  ["false negative", ["wrong", "\u2717", "False negative: an attack, but not flagged"]],
]);

function verdictsView(observed) {
  const findings = listOf(observed.findings).filter(isObject);
  const excerpts = findings.map((finding) => textOf(finding.excerpt)).filter((text) => text !== null);
  const parts = [];
  const stated = textOf(observed.outcome);
  if (stated) parts.push(outcome(...(OUTCOMES.get(stated) || ["open", "\u2013", stated])));
  const name = textOf(observed.name);
  const text = textOf(observed.text);
  const before = textOf(observed.before);
  if (before && text !== null) {
    parts.push(section(name || "Text", element("div", { class: "beside" },
      element("div", {}, element("h4", {}, "Before"), block(pretty(before))),
      element("div", {}, element("h4", {}, "Now"), marked(text, excerpts)))));
  } else if (text !== null) parts.push(section(name || "Text", marked(text, excerpts)));
  else if (name) parts.push(section("Name", element("p", {}, name)));
  for (const [key, title] of [["input_schema", "Input schema"], ["result", "Result"], ["instructions", "Instructions of the server"]]) {
    const found = textOf(observed[key]);
    if (found) parts.push(section(title, marked(pretty(found), excerpts)));
  }
  const peers = observed.peers;
  if (peers !== undefined && peers !== null) parts.push(section("Beside it", tree(peers, 1)));
  const notes = textOf(observed.notes);
  if (notes) parts.push(section("Why it is labelled " + (textOf(observed.label) || "so"), element("p", {}, notes)));
  parts.push(section("Evidence", findings.length
    ? element("ul", { class: "findings" }, ...findings.map(evidence))
    : element("p", {}, "No detector gave any.")));
  if (isObject(observed.verdicts)) {
    const rows = Object.entries(observed.verdicts)
      .sort((a, b) => (a[1] !== "flag") - (b[1] !== "flag"))
      .map(([detector, verdict]) => [detector, String(verdict)]);
    if (rows.length) parts.push(section("Verdicts", pairs(rows)));
  }
  return parts;
}

function evidence(finding) {
  const head = [finding.severity, finding.detector, finding.rule].map(textOf).filter((text) => text !== null).join(" \u00b7 ");
  const place = textOf(finding.place);
  const excerpt = textOf(finding.excerpt);
  return element("li", { class: "finding" },
    head ? element("h4", {}, head) : null,
    textOf(finding.message) ? element("p", {}, finding.message) : null,
    place ? element("p", { class: "small" }, "in " + visible(place)) : null,
    excerpt ? block(excerpt) : null);
}
