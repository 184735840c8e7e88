
// An entry of a threat corpus and what detectors reported about it, with the evidence marked in the text.

/** @type {Map<Verdicts["outcome"], string[]>} */
const OUTCOMES = new Map([
  ["true positive", ["right", "\u2713", "True positive: an attack, flagged"]],
  ["true negative", ["right", "\u2713", "True negative: harmless, not flagged"]],
  ["false positive", ["wrong", "\u2717", "False positive: harmless, but flagged"]],
  ["false negative", ["wrong", "\u2717", "False negative: an attack, but not flagged"]],
  ["unsupported", ["open", "\u2013", "Unsupported: the system does not judge such entries"]],
  ["error", ["open", "\u2013", "Error: the system tried and failed"]],
]);

/** @param {Verdicts} entry */
function verdictsView(entry) {
  const excerpts = entry.findings.map(excerptOf).filter(Boolean);
  const parts = [];
  if (entry.outcome) parts.push(outcome(...explained(OUTCOMES, entry.outcome)));
  parts.push(section(entry.name || "Text", entry.before
    ? sides("Before", block(pretty(entry.before)), "Now", marked(entry.text, excerpts))
    : marked(entry.text, excerpts)));
  const others = [["Input schema", entry.input_schema], ["Result", entry.result], ["Server instructions", entry.instructions]];
  for (const [title, text] of others.filter(([, text]) => text)) parts.push(section(title, marked(pretty(text), excerpts)));
  if (entry.notes) parts.push(section("Reason for the label \u201c" + entry.label + "\u201d", element("p", {}, entry.notes)));
  parts.push(section("Evidence", entry.findings.length
    ? element("ul", { class: "findings" }, ...entry.findings.map(evidence))
    : element("p", {}, "No detector gave any.")));
  const rows = Object.entries(entry.verdicts).sort((a, b) => (a[1] !== "flag") - (b[1] !== "flag"));
  const scores = entry.scores || {};
  const scored = ([detector, verdict]) => [detector, verdict + (Object.hasOwn(scores, detector) ? " (score " + number(scores[detector]) + ")" : "")];
  if (rows.length) parts.push(section("Verdicts", pairs(rows.map(scored))));
  return parts;
}

/** @param {DetectorFinding} finding */
function excerptOf(finding) {
  return finding.excerpt;
}

/** @param {DetectorFinding} finding */
function evidence(finding) {
  const head = [finding.severity, finding.detector, finding.rule].filter(Boolean).join(" \u00b7 ");
  return element("li", { class: "finding" },
    head ? element("h4", {}, head) : null,
    finding.message ? element("p", {}, finding.message) : null,
    finding.place ? small("in " + finding.place) : null,
    finding.excerpt ? block(finding.excerpt) : null);
}
