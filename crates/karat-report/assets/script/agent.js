
// What agents did: calls beside those that were expected, or two runs beside each other. Each row says
// by a sign and a word what became of the call.

const CHANGES = new Map([
  ["same", ["=", "same"]],
  ["changed", ["\u2260", "other arguments"]],
  ["inserted", ["+", "inserted"]],
  ["missing", ["\u2212", "missing"]],
  ["moved", ["\u21c5", "moved"]],
  ["left_out", ["\u25cb", "left out, as it may be"]],
]);

function tracesView(observed) {
  const parts = [];
  if (textOf(observed.input)) parts.push(section("Task", element("p", { class: "about" }, observed.input)));
  if (Array.isArray(observed.expected) && Array.isArray(observed.steps)) {
    parts.push(section("Calls", trajectory(observed.steps, observed.expected, listOf(observed.calls), "Expected", "Called", "not expected")));
  } else if (Array.isArray(observed.calls)) {
    parts.push(section("Calls", observed.calls.length
      ? element("ol", { class: "findings" }, ...observed.calls.map((call) => element("li", {}, callCell(call, [], null))))
      : element("p", {}, "None was made.")));
  }
  if (typeof observed.more_calls === "number") parts.push(element("p", { class: "small" }, "and " + observed.more_calls + " more calls"));
  const confused = listOf(observed.confusions).filter(textOf);
  if (confused.length) parts.push(section("Taken for another", reasons(confused)));
  if (textOf(observed.output)) parts.push(section("Answer", block(observed.output)));
  if (textOf(observed.stopped)) parts.push(section("Stopped", element("p", {}, observed.stopped)));
  if (isObject(observed.trajectory) && Array.isArray(observed.trajectory.steps)) {
    const { trajectory: run } = observed;
    parts.push(section("Against the earlier run", trajectory(run.steps, listOf(run.before), listOf(run.after), "Earlier", "Now")));
  }
  if (isObject(observed.undefined)) {
    const rows = Object.entries(observed.undefined).map(([id, why]) => [id, String(why)]);
    if (rows.length) parts.push(element("details", {}, element("summary", {}, "Scores that do not apply (" + rows.length + ")"), pairs(rows)));
  }
  return parts;
}

function trajectoriesView(observed) {
  const same = listOf(observed.steps).every((step) => isObject(step) && step.change === "same");
  const parts = [];
  const alike = typeof observed.similarity === "number" ? " (similarity " + number(observed.similarity) + ")" : "";
  parts.push(same ? outcome("right", "=", "The same calls" + alike) : outcome("open", "\u2260", "Other calls" + alike));
  if (textOf(observed.input)) parts.push(section("Task", element("p", { class: "about" }, observed.input)));
  parts.push(section("Calls", trajectory(listOf(observed.steps), listOf(observed.before), listOf(observed.after), "Before", "After")));
  if (Array.isArray(observed.answers)) {
    const [before, after] = observed.answers.map((answer) => textOf(answer));
    parts.push(section("Answers", element("div", { class: "beside" },
      element("div", {}, element("h4", {}, "Before"), before ? block(before) : element("p", {}, "none")),
      element("div", {}, element("h4", {}, "After"), after ? block(after) : element("p", {}, "none")))));
  } else parts.push(element("p", { class: "small" }, "The answers are the same."));
  return parts;
}

// Two lists of calls, aligned; places count from 1.
function trajectory(steps, left, right, leftName, rightName, extra) {
  if (steps.length === 0) return element("p", {}, "No call was made, and none was expected.");
  const rows = steps.filter(isObject).map((step) => {
    const [sign, usual] = CHANGES.get(step.change) || ["?", String(step.change)];
    const word = step.change === "inserted" && extra ? extra : usual;
    const from = step.change === "missing" || step.change === "left_out" ? step.at : step.from;
    const to = step.change === "inserted" ? step.at : step.to;
    const differences = listOf(step.arguments).filter(isObject);
    const where = step.change === "moved" ? "call " + from + " \u2192 call " + to : null;
    return element("li", { class: CHANGES.has(step.change) ? step.change.replace("_", "-") : null },
      element("span", { class: "sign" }, element("b", { "aria-hidden": "true" }, sign), " " + word, where ? element("span", { class: "small" }, where) : null),
      side(left, from, step.tool, differences, "before", leftName),
      side(right, to, step.tool, differences, "after", rightName));
  });
  return element("ol", { class: "trajectory" },
    element("li", { class: "titles", "aria-hidden": "true" }, element("span", {}, ""), element("span", {}, leftName), element("span", {}, rightName)), ...rows);
}

function side(calls, place, tool, differences, which, name) {
  if (typeof place !== "number") return element("span", { class: "call gone", "data-side": name + ":" }, "\u2013");
  const call = isObject(calls[place - 1]) ? calls[place - 1] : { name: tool };
  const cell = callCell(call, differences, which);
  cell.setAttribute("data-side", visible(name) + ":");
  return cell;
}

// A call with its arguments; those that differ are marked.
function callCell(call, differences, which) {
  const cell = element("div", { class: "call" });
  if (!isObject(call)) return cell;
  cell.append(element("code", { class: "tool" }, String(call.name)));
  if (call.optional === true) cell.append(element("span", { class: "small" }, " may be left out"));
  const given = isObject(call.arguments) ? call.arguments : isObject(call.accepts) ? call.accepts : {};
  const list = element("dl", {});
  const differing = new Map(differences.map((one) => [one.name, one]));
  for (const [name, value] of Object.entries(given)) {
    // What is expected comes as words already.
    const shown = isObject(call.accepts) ? String(value) : JSON.stringify(value);
    list.append(argument(name, shown, differing.has(name)));
    differing.delete(name);
  }
  for (const [name, one] of differing) {
    const value = textOf(one[which]);
    list.append(argument(String(name), value === null ? "not given" : value, true));
  }
  if (list.children.length) cell.append(list);
  if (typeof call.arguments === "string") cell.append(block(call.arguments));
  if (textOf(call.not_json)) cell.append(element("span", { class: "failed" }, "arguments that are no JSON object"), block(call.not_json));
  if (textOf(call.error)) cell.append(element("span", { class: "failed" }, "error: " + visible(call.error)));
  return cell;
}

function argument(name, shown, differs) {
  const value = element(differs ? "mark" : "span", {}, shown);
  return element("div", {}, element("dt", {}, name), element("dd", {}, value));
}
