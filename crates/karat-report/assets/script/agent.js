
// What agents did: calls next to those that were expected, two runs next to each other, or runs that were
// judged elsewhere. A sign and a word tell how the calls of a row differ and how a run ended.

/** @type {Map<Step["change"], string[]>} */
const CHANGES = new Map([
  ["same", ["=", "same"]],
  ["changed", ["\u2260", "other arguments"]],
  ["inserted", ["+", "inserted"]],
  ["missing", ["\u2212", "missing"]],
  ["moved", ["\u21c5", "moved"]],
  ["left_out", ["\u25cb", "optional, left out"]],
]);

/** @param {Traces} run */
function tracesView(run) {
  const parts = [task(run.input)];
  if (run.expected && run.steps) parts.push(section("Calls", aligned(run.steps, run.expected, run.calls, "Expected", "Called", "not expected")));
  else {
    parts.push(section("Calls", run.calls.length
      ? element("ol", { class: "findings" }, ...run.calls.map((call) => element("li", {}, callCell(call, [], null))))
      : element("p", {}, "None was made.")));
  }
  if (run.more_calls) parts.push(small("and " + counted(run.more_calls, "more call")));
  if (run.confusions) parts.push(section("Confused tools", list(run.confusions)));
  if (run.output) parts.push(section("Answer", block(run.output)));
  if (run.stopped) parts.push(section("Stopped", element("p", {}, run.stopped)));
  if (run.trajectory) parts.push(section("Compared with the earlier run", ...compared(run.trajectory, "Earlier", "Now")));
  const undefinedScores = Object.entries(run.undefined);
  if (undefinedScores.length) parts.push(element("details", {}, element("summary", {}, "Scores that do not apply (" + undefinedScores.length + ")"), pairs(undefinedScores)));
  return parts;
}

/** @param {Trajectory} pair */
function trajectoriesView(pair) {
  return [task(pair.input), ...compared(pair, "Before", "After")];
}

function task(input) {
  return input ? section("Task", element("p", { class: "about" }, input)) : null;
}

/** @param {Trajectory} pair */
function compared(pair, before, after) {
  if (pair.not_compared) return [outcome("open", "\u2013", "Not compared: " + pair.not_compared)];
  const alike = typeof pair.similarity === "number" ? " (similarity " + number(pair.similarity) + ")" : "";
  const [earlier, later] = pair.answers || [];
  const answer = (text) => (text ? block(text) : element("p", {}, "none"));
  return [
    pair.lost ? outcome("wrong", "\u2212", "Only the earlier set has this task")
      : pair.steps.every(isSame) ? outcome("right", "=", "The same calls" + alike) : outcome("open", "\u2260", "Other calls" + alike),
    section("Calls", aligned(pair.steps, pair.before, pair.after, before, after)),
    pair.answers ? section("Answers", sides(before, answer(earlier), after, answer(later)))
      : small(pair.answer_changed ? "The answers differ." : "The answers are the same."),
  ];
}

/** @param {Step} step */
function isSame(step) {
  return step.change === "same";
}

// Two aligned lists of calls; places count from 1.
function aligned(steps, left, right, leftName, rightName, extra) {
  if (steps.length === 0) return element("p", {}, "No call was made, and none was expected.");
  /** @param {Step} step */
  const row = (step) => {
    const [sign, usual] = CHANGES.get(step.change) || ["?", step.change];
    const word = step.change === "inserted" && extra ? extra : usual;
    const from = step.change === "missing" || step.change === "left_out" ? step.at : step.from;
    const to = step.change === "inserted" ? step.at : step.to;
    const differences = step.arguments || [];
    const where = step.change === "moved" ? "call " + from + " \u2192 call " + to : null;
    return element("li", { class: step.change.replace("_", "-") },
      element("span", { class: "sign" }, element("b", { "aria-hidden": "true" }, sign), " " + word, where ? element("span", { class: "small" }, where) : null),
      side(left, from, step.tool, differences, "before", leftName),
      side(right, to, step.tool, differences, "after", rightName));
  };
  return element("ol", { class: "trajectory" },
    element("li", { class: "titles", "aria-hidden": "true" }, element("span", {}, ""), element("span", {}, leftName), element("span", {}, rightName)), ...steps.map(row));
}

function side(calls, place, tool, differences, which, name) {
  if (place === undefined) return element("span", { class: "call gone", "data-side": name + ":" }, "\u2013");
  // Of many calls only the first are recorded.
  const cell = callCell(calls[place - 1] || { name: tool }, differences, which);
  cell.setAttribute("data-side", name + ":");
  return cell;
}

// Arguments that differ are marked.
/** @param {ShownCall|ShownExpectation} call */
function callCell(call, differences, which) {
  /** @param {Difference} difference */
  const differs = (difference) => [difference.name, which === "before" ? difference.before : difference.after];
  const differing = new Map(differences.map(differs));
  const cell = element("div", { class: "call" }, element("code", { class: "tool" }, call.name));
  if (call.optional) cell.append(element("span", { class: "small" }, " optional"));
  // Expected values are text already; long arguments are clipped text.
  const given = call.accepts ? Object.entries(call.accepts)
    : Object.entries(typeof call.arguments === "object" ? call.arguments : {}).map(([name, value]) => [name, JSON.stringify(value)]);
  const shown = new Map([...differing].map(([name, value]) => [name, value ?? "not given"]));
  for (const [name, value] of given) shown.set(name, value);
  const rows = [...shown].map(([name, value]) => element("div", {}, element("dt", {}, name),
    element("dd", {}, element(differing.has(name) ? "mark" : "span", {}, value))));
  if (rows.length) cell.append(element("dl", {}, ...rows));
  if (typeof call.arguments === "string") cell.append(block(call.arguments));
  if (call.not_json) cell.append(element("span", { class: "failed" }, "arguments that are not a JSON object"), block(call.not_json));
  if (call.error) cell.append(element("span", { class: "failed" }, "error: " + call.error));
  return cell;
}

/** @param {Outcomes} outcomes */
function outcomesView(outcomes) {
  // A run that failed outside the agent is neither a success nor a failure.
  const judged = outcomes.trials.filter((trial) => typeof trial.error !== "string" && typeof trial.success === "boolean");
  const done = judged.filter((trial) => trial.success).length;
  const count = judged.length === 1 ? "" : ": " + done + " of " + counted(judged.length, "run");
  const head = judged.length === 0 ? outcome("open", "\u2013", "No run was judged")
    : done === judged.length ? outcome("right", "\u2713", "Succeeded" + count)
      : outcome("wrong", "\u2717", (done ? "Succeeded in part" : "Failed") + count);
  const runs = outcomes.trials.map(trialEntry);
  return [head, runs.length ? section("Runs", element("ol", { class: "findings" }, ...runs)) : null];
}

/** @param {Trial} trial */
function trialEntry(trial, index) {
  const failed = typeof trial.error === "string";
  const [sign, word] = failed ? ["\u2013", "failed outside the agent, not measured"] : verdictOf(trial.success);
  return element("li", { class: "finding" },
    element("h4", {}, sign + " Run " + (index + 1) + ": " + word),
    typeof trial.human === "boolean" ? small("People judged: " + verdictOf(trial.human)[1]) : null,
    trial.reason ? element("p", {}, trial.reason) : null,
    trial.error ? block(trial.error) : null);
}

function verdictOf(success) {
  if (typeof success !== "boolean") return ["\u2013", "not judged"];
  return success ? ["\u2713", "succeeded"] : ["\u2717", "failed"];
}
