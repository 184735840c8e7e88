
// What servers did: a case of a suite, a fuzzed tool, an attack, a stretch of load.

function suiteView(observed) {
  const { attempts, passed } = observed;
  const parts = [];
  if (typeof attempts === "number" && typeof passed === "number") {
    const words = attempts === 1 ? "" : ": " + passed + " of " + counted(attempts, "attempt");
    if (passed === attempts) parts.push(outcome("right", "\u2713", "Passed" + words));
    else parts.push(outcome("wrong", "\u2717", (passed ? "Passed at times" : "Failed") + words));
  }
  if (textOf(observed.about)) parts.push(element("p", { class: "about" }, observed.about));
  const why = listOf(observed.reasons).filter(textOf);
  if (why.length) parts.push(section("Why it failed", reasons(why)));
  if (typeof observed.more_reasons === "number" && observed.more_reasons > 0) parts.push(element("p", { class: "small" }, "and " + observed.more_reasons + " more"));
  const made = element("section", {}, element("h3", {}, "Call"));
  if (textOf(observed.tool)) made.append(element("p", {}, element("code", {}, observed.tool)));
  if (textOf(observed.arguments)) made.append(jsonBlock(observed.arguments));
  parts.push(made);
  const ended = textOf(observed.ended);
  const answered = section("Answer" + (ended ? ": " + visible(ended.replaceAll("_", " ")) : ""));
  answered.append(textOf(observed.answer) ? jsonBlock(observed.answer) : element("p", {}, "None was recorded."));
  parts.push(answered);
  if (isObject(observed.failures)) {
    const failed = Object.entries(observed.failures).map(([name, n]) => [name.replaceAll("_", " "), String(n)]);
    if (failed.length) parts.push(section("Failed attempts", pairs(failed)));
  }
  const problems = listOf(observed.input_problems).filter(textOf);
  if (problems.length) parts.push(section("What the schema says of the arguments", reasons(problems)));
  return parts;
}

function fuzzView(observed) {
  const findings = listOf(observed.findings).filter(isObject);
  const parts = [findings.length
    ? outcome("wrong", "\u2717", counted(findings.length, "finding"))
    : outcome("right", "\u2713", "Nothing was found")];
  if (textOf(observed.stopped)) parts.push(element("p", {}, "Stopped: " + visible(observed.stopped)));
  for (const finding of findings) {
    const head = [finding.severity, finding.rule].map(textOf).filter((text) => text !== null).join(" \u00b7 ");
    const part = section(head || "Finding");
    if (textOf(finding.message)) part.append(element("p", {}, finding.message));
    const seen = typeof finding.seen === "number" ? "seen " + counted(finding.seen, "time") : null;
    const again = finding.reproduced === true ? "reproduced" : null;
    const facts = [seen, again].filter((text) => text !== null).join(", ");
    if (facts) part.append(element("p", { class: "small" }, facts));
    for (const [key, title] of [["input", "Input"], ["answer", "Answer"]]) {
      const text = textOf(finding[key]);
      if (text) part.append(element("p", { class: "small" }, title), jsonBlock(text));
    }
    if (textOf(finding.replay)) part.append(element("p", { class: "small" }, "To see it again"), command(finding.replay));
    parts.push(part);
  }
  for (const [key, title] of [["counts", "Counts"], ["inputs", "Inputs by kind"], ["endings", "How calls ended"]]) {
    if (!isObject(observed[key])) continue;
    const rows = Object.entries(observed[key]).filter(([, n]) => typeof n === "number");
    if (rows.length) parts.push(section(title, pairs(rows.map(([name, n]) => [name.replaceAll("_", " "), String(n)]))));
  }
  return parts;
}

const STATUSES = new Map([
  ["held", ["right", "\u2713", "Held: no canary showed anything"]],
  ["broken", ["wrong", "\u2717", "Broken: the attack got through"]],
  ["not_judged", ["open", "?", "Not judged"]],
  ["not_applicable", ["open", "\u2013", "Not applicable"]],
]);

function attackView(item, observed) {
  const status = textOf(observed.status) || "";
  const parts = [outcome(...(STATUSES.get(status) || ["open", "\u2013", status]))];
  if (textOf(observed.about)) parts.push(element("p", { class: "about" }, observed.about));
  if (textOf(observed.why)) parts.push(section("Why", element("p", {}, observed.why)));
  if (isObject(observed.evidence)) {
    const { evidence } = observed;
    const part = section("Evidence");
    for (const [key, title] of [["canary", "What the canary showed"], ["about", "What was tried"]]) {
      if (textOf(evidence[key])) part.append(element("p", { class: "small" }, title), element("p", {}, evidence[key]));
    }
    for (const [key, title] of [["sent", "Sent"], ["answer", "Answer"]]) {
      if (textOf(evidence[key])) part.append(element("p", { class: "small" }, title), jsonBlock(evidence[key]));
    }
    parts.push(part);
  }
  if (isObject(observed.tools)) {
    const rows = Object.entries(observed.tools).map(([why, tools]) => [why, listOf(tools).join(", ")]);
    if (rows.length) parts.push(section("Tools", pairs(rows)));
  }
  if (textOf(observed.again)) parts.push(section("To try it again", command(observed.again)));
  return parts;
}

function loadView(observed) {
  if (typeof observed.load === "number") {
    const held = observed.holds === true;
    const words = held ? "the condition held" : "the condition did not hold" + (textOf(observed.why_not) ? ": " + observed.why_not : "");
    return [outcome(held ? "right" : "wrong", held ? "\u2713" : "\u2717", "Load " + number(observed.load) + ": " + words)];
  }
  const rows = ["ok", "errors"].filter((key) => typeof observed[key] === "number");
  return rows.length ? [section("Calls that ended in this second", pairs(rows.map((key) => [key, String(observed[key])])))] : null;
}
