
// One item, in a dialog: what was asked, what came back, how it scored.

const GRADES = new Map([
  [0, ["wrong", "hard negative"]],
  [1, ["right", "right, grade 1"]],
  [2, ["right", "right, grade 2"]],
]);
const LONG = 100; // Entries of a list that are shown at once.

class Inspector {
  constructor(dialog) {
    this.dialog = dialog;
    this.table = null;
    this.item = null;
    this.fromTable = true;
    dialog.addEventListener("close", () => this.closed());
    dialog.addEventListener("click", (event) => {
      if (event.target === dialog) dialog.close();
    });
    dialog.addEventListener("keydown", (event) => {
      if (event.target.closest("input, select, summary, .view, pre")) return;
      if (event.key === "ArrowLeft") this.step(-1);
      if (event.key === "ArrowRight") this.step(1);
    });
  }

  open(table, id) {
    const item = table.report.items[table.report.places.get(id)];
    this.table = table;
    this.item = item;
    const focused = document.activeElement && this.dialog.contains(document.activeElement) ? document.activeElement.getAttribute("data-does") : null;
    if (item) this.dialog.replaceChildren(this.head(), this.content());
    else this.dialog.replaceChildren(...this.nothing(id));
    if (!this.dialog.open) {
      // The browser gives the focus back to a link outside the table; within it, the row may be gone.
      const from = document.activeElement;
      this.fromTable = !from || from === document.body || table.root.contains(from);
      this.dialog.showModal();
    }
    this.dialog.scrollTop = 0;
    const again = focused && this.dialog.querySelector('[data-does="' + focused + '"]:not(:disabled)');
    (again || this.dialog.querySelector("h2")).focus();
  }

  // A link to an item of another report, or of an older one.
  nothing(id) {
    const close = element("button", { type: "button", onclick: () => this.close() }, "Close");
    return [
      element("header", {}, element("h2", { id: "inspector-head", tabindex: "-1" }, id), element("div", { class: "actions" }, close)),
      element("div", { class: "content" }, element("p", {}, "This report has no such item.")),
    ];
  }

  close() {
    if (this.dialog.open) this.dialog.close();
  }

  // Told a moment after the dialog has closed: by then another item may be asked for, or open.
  closed() {
    if (this.dialog.open) return;
    const { table, item } = this;
    this.table = null;
    this.item = null;
    if (!table) return;
    const shown = item ? new URL(table.report.link(item.id), location.href).hash : location.hash;
    if (location.hash === shown && shown.startsWith("#" + table.report.slug + "/")) {
      history.replaceState(null, "", location.href.split("#")[0]);
    }
    if (this.fromTable && item) table.focusItem(item.id);
  }

  // The order is that of the table as it is filtered and sorted, unless the item is not in it.
  neighbour(step) {
    const { table, item } = this;
    const place = table.report.places.get(item.id);
    const order = table.order.includes(place) ? table.order : table.report.items.map((_, index) => index);
    const next = order[order.indexOf(place) + step];
    return next === undefined ? null : table.report.items[next];
  }

  step(step) {
    if (!this.item) return;
    const next = this.neighbour(step);
    if (next) location.hash = this.table.report.link(next.id);
  }

  head() {
    const { table, item } = this;
    const button = (text, does, run, disabled) => element("button", { type: "button", "data-does": does, disabled, onclick: run }, text);
    const copied = (does, text) => async (event) => {
      const done = await copy(text());
      event.target.textContent = done ? "Copied" : "Not copied";
      say(done ? "Copied" : "The browser did not allow copying");
      setTimeout(() => { event.target.textContent = does; }, 1500);
    };
    return element("header", {},
      element("p", { class: "small" }, table.report.data.evaluation + " \u00b7 " + table.report.data.name),
      element("h2", { id: "inspector-head", tabindex: "-1" }, item.id),
      element("div", { class: "actions" },
        button("\u2190 Previous", "previous", () => this.step(-1), this.neighbour(-1) === null),
        button("Next \u2192", "next", () => this.step(1), this.neighbour(1) === null),
        button("Copy JSON", "json", copied("Copy JSON", () => JSON.stringify(table.report.whole(item), null, 2))),
        button("Copy link", "link", copied("Copy link", () => String(new URL(table.report.link(item.id), location.href)))),
        button("Close", "close", () => this.close())));
  }

  content() {
    const { table: { report }, item } = this;
    const observed = report.observed(item);
    const body = element("div", { class: "content" });
    if (item.error !== undefined) {
      body.append(element("section", { class: "error" },
        element("h3", {}, "No answer: " + visible(item.error.class)), block(item.error.message)));
    }
    const view = viewOf(report, item, observed);
    if (view !== null) body.append(...view);
    else if (observed !== null) body.append(section("Observed", tree(observed, 2)));
    body.append(scores(report, item));
    const facts = Object.entries(item.tags || {});
    if (item.group !== undefined) facts.push(["group", item.group]);
    if (facts.length) {
      body.append(element("section", {}, element("h3", {}, "Tags"), element("dl", { class: "pairs" },
        ...facts.map(([key, value]) => element("div", {}, element("dt", {}, key), element("dd", {}, value))))));
    }
    if (view !== null) {
      body.append(element("details", {}, element("summary", {}, "All that was observed"), tree(observed, 1)));
    }
    return body;
  }
}

function block(text) {
  const pre = element("pre", {});
  pre.textContent = visibleBlock(text);
  return pre;
}

function scores(report, item) {
  const runs = report.runs(item);
  const head = element("tr", {}, element("th", { scope: "col" }, "Metric"), element("th", { scope: "col", class: "number" }, "Score"));
  runs.forEach((_, index) => head.append(element("th", { scope: "col", class: "number" }, "Run " + (index + 1))));
  const compared = report.worsened.size + report.improved.size > 0;
  if (compared) head.append(element("th", { scope: "col" }, "Against the baseline"));
  const rows = report.columns.map((column) => {
    const row = element("tr", {}, element("th", { scope: "row" }, metricLink(column)),
      element("td", { class: "number" }, number(report.score(item, column.id))));
    for (const run of runs) row.append(element("td", { class: "number" }, number(Object.hasOwn(run, column.id) ? run[column.id] : null)));
    if (!compared) return row;
    const worse = (report.worsened.get(item.id) || []).includes(column.id);
    const better = (report.improved.get(item.id) || []).includes(column.id);
    row.append(element("td", {}, worse || better ? element("span", { class: "change " + (worse ? "worse" : "better") }, worse ? "worse" : "better") : null));
    return row;
  });
  return element("section", {}, element("h3", {}, "Scores"), element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Scores" },
    element("table", { class: "plain narrow" }, element("thead", {}, head), element("tbody", {}, ...rows))));
}

// A query that got no answer.
function isQuery(observed) {
  return Object.keys(observed).join() === "query" && typeof observed.query === "string";
}

function asked(query) {
  return element("section", {}, element("h3", {}, "Query"), element("p", { class: "query" }, query));
}

function isRanking(observed) {
  return typeof observed.query === "string" && Array.isArray(observed.ranked)
    && observed.ranked.every((entry) => entry !== null && typeof entry === "object" && typeof entry.tool_id === "string");
}

// What a search answered to a query.
function ranking(observed) {
  const parts = [asked(observed.query)];
  const list = (ids) => element("ul", { class: "ids" }, ...ids.map((id) => element("li", {}, element("code", {}, id))));
  const found = element("section", {}, element("h3", {}, "Found"));
  const first = observed.first_right;
  const above = Array.isArray(observed.outranked_by) ? observed.outranked_by : [];
  if (typeof first === "number") {
    found.append(element("p", {}, first === 1 ? "A right tool stands first." : "The first right tool stands at rank " + first + ", below:"));
  } else {
    found.append(element("p", {}, observed.ranked.length ? "No right tool is among the " + observed.ranked.length + " results. They were:" : "The search found nothing."));
  }
  if (above.length) found.append(list(above));
  parts.push(found);
  if (Array.isArray(observed.missed) && observed.missed.length) {
    parts.push(element("section", {}, element("h3", {}, "Missed"), element("p", {}, "Right, but not among the results:"), list(observed.missed)));
  }
  if (observed.ranked.length) parts.push(element("section", {}, element("h3", {}, "Ranking"), rankingTable(observed)));
  return parts;
}

function rankingTable(observed) {
  const rows = observed.ranked.map((entry, index) => {
    const [kind, word] = GRADES.get(entry.relevance) || (entry.relevance > 0 ? ["right", "right, grade " + entry.relevance] : ["", "not judged"]);
    const score = typeof entry.score === "number" ? number(entry.score) : "\u2013";
    return element("tr", { class: kind || null },
      element("td", { class: "number" }, String(index + 1)),
      element("th", { scope: "row" }, element("code", {}, entry.tool_id)),
      element("td", { class: "number" }, score),
      element("td", {}, element("span", { class: "grade " + kind }, word)));
  });
  const head = element("tr", {}, element("th", { scope: "col", class: "number" }, "Rank"), element("th", { scope: "col" }, "Tool"), element("th", { scope: "col", class: "number" }, "Score"), element("th", { scope: "col" }, "Judged"));
  return element("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": "Ranking" },
    element("table", { class: "plain narrow ranking" }, element("thead", {}, head), element("tbody", {}, ...rows)));
}

// Any JSON as a tree; branches are made when they are opened.
function tree(value, open) {
  if (value === null || typeof value !== "object") return leaf(value);
  const entries = Array.isArray(value) ? value.map((entry, index) => [String(index), entry]) : Object.entries(value);
  const list = element("ul", { class: "tree" });
  const more = (from) => {
    for (const [key, entry] of entries.slice(from, from + LONG)) list.append(branch(key, entry, open));
    const left = entries.length - from - LONG;
    if (left <= 0) return;
    const button = element("button", { type: "button" }, "Show more (" + left + " left)");
    const place = element("li", {}, button);
    button.addEventListener("click", () => {
      place.remove();
      more(from + LONG);
    });
    list.append(place);
  };
  more(0);
  return list;
}

function branch(key, value, open) {
  const name = element("span", { class: "key-name" }, key);
  if (value === null || typeof value !== "object") return element("li", {}, name, ": ", leaf(value));
  const size = Array.isArray(value) ? counted(value.length, "entry").replace("entrys", "entries") : counted(Object.keys(value).length, "field");
  const details = element("details", {}, element("summary", {}, name, " ", element("span", { class: "small" }, size)));
  const fill = () => {
    if (details.children.length === 1) details.append(tree(value, open - 1));
  };
  details.addEventListener("toggle", fill);
  if (open > 0) {
    details.open = true;
    fill();
  }
  return element("li", {}, details);
}

function leaf(value) {
  if (typeof value === "string") {
    if (value.includes("\n") || value.length > 200) return block(value);
    return element("span", { class: "string" }, JSON.stringify(value));
  }
  return element("span", { class: "literal" }, String(value));
}
