
// A query and what a search returned for it.

/** @type {Map<number, string[]>} */
const GRADES = new Map([
  [0, ["wrong", "hard negative"]],
  [1, ["right", "relevant, grade 1"]],
  [2, ["right", "relevant, grade 2"]],
]);

/** @param {Ranking} ranking */
function rankingView(ranking) {
  const parts = [section("Query", element("p", { class: "query" }, ranking.query))];
  // A query without an answer.
  if (!ranking.ranked) return parts;
  const list = (ids) => element("ul", { class: "ids" }, ...ids.map((id) => element("li", {}, element("code", {}, id))));
  const count = ranking.ranked.length;
  const found = ranking.first_right === 1 ? "A relevant tool is at rank 1."
    : ranking.first_right ? "The first relevant tool is at rank " + ranking.first_right + ", below:"
      : count ? "No relevant tool is among the " + counted(count, "result") + ":" : "The search returned nothing.";
  parts.push(section("Found", element("p", {}, found), ranking.outranked_by.length ? list(ranking.outranked_by) : null));
  if (ranking.missed.length) parts.push(section("Missed", element("p", {}, "Relevant, but not returned:"), list(ranking.missed)));
  if (count) parts.push(section("Ranking", scrolled("Ranking", "ranking", ["#Rank", "Tool", "#Score", "Judged"], ranking.ranked.map(rankedRow))));
  return parts;
}

/** @param {RankedTool} tool */
function rankedRow(tool, index) {
  const grade = typeof tool.relevance === "number" ? ["right", "relevant, grade " + tool.relevance] : ["", "not judged"];
  const [look, name] = GRADES.get(tool.relevance) || grade;
  return element("tr", { class: look || null },
    element("td", { class: "number" }, String(index + 1)),
    element("th", { scope: "row" }, element("code", {}, tool.tool_id)),
    element("td", { class: "number" }, number(tool.score)),
    element("td", {}, element("span", { class: "grade " + look }, name)));
}
