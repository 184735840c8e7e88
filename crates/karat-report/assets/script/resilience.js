
// A run under attack as a transcript: the injected text, the attacker's calls and what changed are marked
// by a sign and a word.

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
  const [look, sign, text] = ENDS.get(run.outcome) || ["open", "=", "No attack"];
  const done = run.utility === true ? "The task was done." : run.utility === false ? "The task was not done." : null;
  return [
    section("Task", element("p", { class: "about" }, run.task)),
    outcome(look, sign, text + (run.goal ? ": " + run.goal : "")),
    done ? small(done) : null,
    run.injected && run.injected.length ? section("Injected text", ...run.injected.map(block)) : null,
    run.steps && run.steps.length ? section("Transcript", element("ol", { class: "findings" }, ...run.steps.map(runStep))) : null,
    run.changes && run.changes.length ? section("Changed state", element("ol", { class: "findings" }, ...run.changes.map(stateChange))) : null,
  ];
}

/** @param {RunStep} step */
function runStep(step) {
  const marks = [
    step.attacker ? "attacker's call" : null,
    step.injected ? "carries the injected text" : null,
    step.blocked ? "blocked or failed" : null,
  ].filter((mark) => mark !== null);
  const look = step.attacker ? "attacker" : step.injected ? "injected" : "";
  return element("li", { class: look }, element("b", {}, step.tool ? step.role + " " + step.tool : step.role),
    marks.length ? element("span", { class: "small" }, " \u00b7 " + marks.join(" \u00b7 ")) : null, block(step.text));
}

/** @param {StateChange} change */
function stateChange(change) {
  return element("li", {}, element("code", {}, change.path), ...titled("before", change.before), ...titled("after", change.after));
}
