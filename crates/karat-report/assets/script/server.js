
// What servers did: a case of a suite, a fuzzed tool, an attack, a second or a step of a load.

/** @param {Suite} test */
function suiteView(test) {
  const parts = [];
  const count = test.attempts === 1 ? "" : ": " + test.passed + " of " + counted(test.attempts, "attempt");
  if (test.passed === test.attempts) parts.push(outcome("right", "\u2713", "Passed" + count));
  else parts.push(outcome("wrong", "\u2717", (test.passed ? "Flaky" : "Failed") + count));
  if (test.about) parts.push(element("p", { class: "about" }, test.about));
  if (test.reasons.length) parts.push(section("Reasons", list(test.reasons)));
  if (test.more_reasons) parts.push(small("and " + test.more_reasons + " more"));
  parts.push(section("Call", element("p", {}, element("code", {}, test.tool)), test.arguments ? block(pretty(test.arguments)) : null));
  parts.push(section("Answer" + (test.ended ? ": " + spoken(test.ended) : ""),
    test.answer ? block(pretty(test.answer)) : element("p", {}, "None was recorded.")));
  parts.push(...counts("Failed attempts", test.failures));
  if (test.input_problems.length) parts.push(section("Arguments that do not match the schema", list(test.input_problems)));
  return parts;
}

/** @param {Fuzz} fuzz */
function fuzzView(fuzz) {
  return [
    fuzz.findings.length ? outcome("wrong", "\u2717", counted(fuzz.findings.length, "finding")) : outcome("right", "\u2713", "Nothing was found"),
    ...(fuzz.stopped ? [element("p", {}, "Stopped: " + fuzz.stopped)] : []),
    ...fuzz.findings.map(findingView),
    ...counts("Counts", fuzz.counts),
    ...counts("Inputs by kind", fuzz.inputs),
    ...counts("Outcomes of calls", fuzz.endings),
  ];
}

/** @param {Finding} finding */
function findingView(finding) {
  const times = finding.seen ? "seen " + counted(finding.seen, "time") : null;
  const facts = [finding.at ? "at " + finding.at : null, times, finding.reproduced ? "reproduced" : null].filter(Boolean);
  return section([finding.severity, finding.rule].join(" \u00b7 "),
    finding.message ? element("p", {}, finding.message) : null,
    facts.length ? small(facts.join(", ")) : null,
    ...titled("Input", finding.input), ...titled("Answer", finding.answer),
    ...(finding.replay ? [small("Reproduce"), command(finding.replay)] : []));
}

/** @type {Map<Attack["status"], string[]>} */
const STATUSES = new Map([
  ["held", ["right", "\u2713", "Held: no canary was triggered"]],
  ["broken", ["wrong", "\u2717", "Broken: the attack got through"]],
  ["not_judged", ["open", "?", "Not judged"]],
  ["not_applicable", ["open", "\u2013", "Not applicable"]],
  ["not_executed", ["open", "\u2013", "Not executed: no attempt was answered"]],
]);

/** @param {Attack} attack */
function attackView(attack) {
  const tools = Object.entries(attack.tools || {}).map(([why, names]) => [why, names.join(", ")]);
  return [
    outcome(...explained(STATUSES, attack.status)),
    attack.about ? element("p", { class: "about" }, attack.about) : null,
    attack.at ? small(`Parameter: ${attack.at}`) : null,
    attack.attempts ? small(counted(attack.attempts, "attempt")) : null,
    attack.why ? section("Why", element("p", {}, attack.why)) : null,
    attack.evidence ? attempt(attack.evidence) : null,
    tools.length ? section("Tools", pairs(tools)) : null,
    attack.again ? section("Reproduce", command(attack.again)) : null,
  ];
}

/** @param {AttackEvidence} evidence */
function attempt(evidence) {
  const part = section("Evidence");
  for (const [title, text] of [["Canary", evidence.canary], ["Attempt", evidence.about]]) {
    if (text) part.append(small(title), element("p", {}, text));
  }
  part.append(...titled("Sent", evidence.sent), ...titled("Answer", evidence.answer));
  return part;
}

/** @param {Load} load */
function loadView(load) {
  if (load.load === undefined) return [section("Calls that ended in this second", pairs([["ok", String(load.ok)], ["failed", String(load.errors)]]))];
  const found = load.holds ? "sustained" : "not sustained" + (load.why_not ? ": " + load.why_not : "");
  return [outcome(load.holds ? "right" : "wrong", load.holds ? "\u2713" : "\u2717", "Load " + number(load.load) + ": " + found)];
}
