
// A run under attack as a transcript: the injected text, the attacker's calls and what changed are marked
// by a sign and a word.

/** @type {Map<Resilience["outcome"], string[]>} */
const ENDS = new Map([
  ["succeeded", ["wrong", "\u2212", "The attack succeeded"]],
  ["attempted", ["wrong", "\u2260", "A call of the attacker's was made, and had no effect"]],
  ["refused", ["open", "\u2013", "The agent declined its task"]],
  ["ignored", ["right", "=", "The attack was ignored"]],
  ["undelivered", ["open", "\u2013", "The injected text did not arrive"]],
  ["error", ["open", "\u2013", "The run failed and measures nothing"]],
]);

/** @param {Resilience} run */
function resilienceView(run) {
  const [look, sign, text] = run.outcome ? explained(ENDS, run.outcome) : ["open", "=", "No attack"];
  const done = run.utility === true ? "The task was done." : run.utility === false ? "The task was not done." : null;
  return [
    section("Task", element("p", { class: "about" }, run.task)),
    outcome(look, sign, text + (run.goal ? ": " + run.goal : "")),
    done ? small(done) : null,
    run.injected && run.injected.length ? section("Injected text", ...run.injected.map(block)) : null,
    run.steps && run.steps.length ? section("Transcript", element("ol", { class: "findings" }, ...run.steps.map((step) => runStep(step, run.injected || [])))) : null,
    run.changes && run.changes.length ? section("Changed state", element("ol", { class: "findings" }, ...run.changes.map((change) => stateChange(change, run.steps || [])))) : null,
  ];
}

// A text with the injected parts of it marked, as they are or as JSON writes them.
function markedBlock(text, injected) {
  const forms = injected.flatMap((one) => [one, JSON.stringify(one).slice(1, -1)]);
  const found = forms.find((form) => form !== "" && text.includes(form));
  if (found === undefined) return block(text);
  const at = text.indexOf(found);
  // Text nodes keep their lines.
  const plain = (part) => document.createTextNode(visibleBlock(part));
  return element("pre", {}, plain(text.slice(0, at)), element("mark", {}, plain(found)), plain(text.slice(at + found.length)));
}

/**
 * @param {RunStep} step
 * @param {string[]} injected
 */
function runStep(step, injected) {
  const marks = [
    step.attacker ? "attacker's call" : null,
    step.injected ? "carries the injected text" : null,
    step.blocked ? "blocked or failed" : null,
  ].filter((mark) => mark !== null);
  const look = step.attacker ? "attacker" : step.injected ? "injected" : "";
  return element("li", { class: look }, element("b", {}, step.tool ? step.role + " " + step.tool : step.role),
    marks.length ? element("span", { class: "small" }, " \u00b7 " + marks.join(" \u00b7 ")) : null, step.injected ? markedBlock(step.text, injected) : block(step.text));
}

/**
 * @param {StateChange} change
 * @param {RunStep[]} steps
 */
function stateChange(change, steps) {
  const attacker = steps.some((step) => step.attacker && !step.blocked && leaves(step.text, change.after));
  return element("li", { class: attacker ? "attacker" : "" }, element("code", {}, change.path),
    attacker ? element("span", { class: "small" }, " \u00b7 as the attacker's call left it") : null,
    ...titled("before", change.before), ...titled("after", change.after));
}

// Whether a record has all arguments of a call.
function leaves(call, record) {
  try {
    const [given, kept] = [JSON.parse(call), JSON.parse(record || "null")];
    const names = Object.keys(given);
    return kept !== null && names.length > 0
      && names.every((name) => JSON.stringify(kept[name]) === JSON.stringify(given[name]));
  } catch {
    return false;
  }
}
