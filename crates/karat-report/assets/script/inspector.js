
// One item, in a dialog: the question, the answer and the scores.

class Inspector {
  constructor(dialog) {
    this.dialog = dialog;
    this.table = null;
    this.row = null;
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
    const row = table.report.rows[table.report.places.get(id)];
    this.table = table;
    this.row = row;
    const focused = document.activeElement && this.dialog.contains(document.activeElement) ? document.activeElement.getAttribute("data-does") : null;
    if (row) this.dialog.replaceChildren(this.head(), this.content(table.report.item(row)));
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

  // Called a moment after the dialog has closed: by then another item may be open.
  closed() {
    if (this.dialog.open) return;
    const { table, row } = this;
    this.table = null;
    this.row = null;
    if (!table) return;
    const shown = row ? new URL(table.report.link(row.id), location.href).hash : location.hash;
    if (location.hash === shown && shown.startsWith("#" + table.report.head.slug + "/")) {
      history.replaceState(null, "", location.href.split("#")[0]);
    }
    if (this.fromTable && row) table.focusItem(row.id);
  }

  // The order is that of the table as it is filtered and sorted, unless the item is not in it.
  neighbour(step) {
    const { table, row } = this;
    const order = table.order.includes(row.at) ? table.order : table.report.rows.map((_, at) => at);
    const next = order[order.indexOf(row.at) + step];
    return next === undefined ? null : table.report.rows[next];
  }

  step(step) {
    if (!this.row) return;
    const next = this.neighbour(step);
    if (next) location.hash = this.table.report.link(next.id);
  }

  head() {
    const { table: { report }, row } = this;
    const button = (text, does, run, disabled) => element("button", { type: "button", "data-does": does, disabled, onclick: run }, text);
    return element("header", {},
      element("p", { class: "small" }, report.head.evaluation + " \u00b7 " + report.head.name),
      element("h2", { id: "inspector-head", tabindex: "-1" }, row.id),
      element("div", { class: "actions" },
        button("\u2190 Previous", "previous", () => this.step(-1), this.neighbour(-1) === null),
        button("Next \u2192", "next", () => this.step(1), this.neighbour(1) === null),
        copyButton("Copy JSON", "json", () => JSON.stringify(report.item(row), null, 2)),
        copyButton("Copy link", "link", () => String(new URL(report.link(row.id), location.href))),
        button("Close", "close", () => this.close())));
  }

  /** @param {Item} item */
  content(item) {
    const body = element("div", { class: "content" });
    const moved = this.table.report.moved(this.row);
    if (moved) body.append(section("Before \u2192 now", element("p", {}, moved)));
    if (item.error) body.append(failure(item.error));
    if (this.table.report.head.first_run) body.append(small("Observed in the first run:"));
    const view = item.observed ? viewOf(item.observed) : undefined;
    if (view) body.append(...view(item.observed).filter((part) => part !== null));
    else if (item.observed) body.append(section("Observed", tree(item.observed, 2)));
    body.append(this.scores(item));
    const tags = Object.entries(item.tags || {});
    if (item.group) tags.push(["group", item.group]);
    if (tags.length) body.append(section("Tags", pairs(tags)));
    if (view) body.append(element("details", {}, element("summary", {}, "Everything observed"), tree(item.observed, 1)));
    return body;
  }

  /** @param {Item} item */
  scores(item) {
    const { report } = this.table;
    const runs = item.per_run || [];
    const isCompared = report.worsened.size + report.improved.size > 0;
    const rows = report.columns.map((column) => {
      const of = (scores) => element("td", { class: "number" }, number(Object.hasOwn(scores, column.id) ? scores[column.id] : null));
      const row = element("tr", {}, element("th", { scope: "row" }, metricLink(column)), of(item.metrics), ...runs.map(of));
      if (!isCompared) return row;
      const changed = [["worse", report.worsened], ["better", report.improved]].find(([, ids]) => (ids.get(item.id) || []).includes(column.id));
      const earlier = report.earlier(this.row, column.id);
      row.append(element("td", { class: "number" }, earlier === undefined ? "\u2013" : number(earlier)));
      row.append(element("td", {}, changed ? element("span", { class: "change " + changed[0] }, changed[0]) : null));
      return row;
    });
    const headings = ["Metric", "#Score", ...runs.map((_, index) => "#Run " + (index + 1)), ...(isCompared ? ["#Before", "Against the baseline"] : [])];
    return section("Scores", scrolled("Scores", "", headings, rows));
  }
}

/** @param {Observed} observed */
function viewOf(observed) {
  return VIEWS.get(observed.kind);
}

/** @param {ItemError} error */
function failure(error) {
  return element("section", { class: "error" }, element("h3", {}, "No answer: " + error.class), block(error.message));
}
