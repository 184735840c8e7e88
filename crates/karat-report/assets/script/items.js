
// The table of items: search, filters, sorting. Only the rows in sight exist, so 10,000 items scroll
// like ten.

const ROW = 37; // The height of a row in px; explore.css says the same.
const SPARE = 12; // Rows drawn above and below those in sight.
const PRINTED = 200; // Rows that are printed.

class ItemTable {
  constructor(report) {
    this.report = report;
    this.search = "";
    // What a reader of a failed gate looks for comes first.
    this.firstShow = report.head.failed && report.worsened.size ? "worse" : "all";
    this.show = this.firstShow;
    this.tags = new Map();
    this.sort = null;
    this.order = [];
    this.first = -1;
    this.last = -1;
    this.root = element("div", { class: "items" }, this.bar(), this.frame());
    this.apply();
  }

  bar() {
    const bar = element("div", { class: "bar" });
    const input = element("input", { type: "search", name: "search", placeholder: "id, text, tool\u2026", autocomplete: "off", spellcheck: "false" });
    let waiting = 0;
    input.addEventListener("input", () => {
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        this.search = input.value.trim();
        this.chosen();
      }, 120);
    });
    this.input = input;
    this.selects = new Map();
    bar.append(element("label", { class: "field wide" }, element("span", {}, "Search"), input));
    const choices = this.choices();
    const [shown, select] = choice("Show", choices, (value) => {
      this.show = value;
      this.chosen();
    });
    this.showing = select;
    select.value = this.show;
    if (choices.length > 1) bar.append(shown);
    for (const [key, values] of this.report.values()) {
      if (values.size < 2 || values.size > 500) continue;
      const sorted = [...values.keys()].sort();
      const options = sorted.map((value) => ["=" + value, visible(value) + " (" + values.get(value) + ")"]);
      const [field, of] = choice(visible(key), [["", "any"], ...options], (value) => {
        if (value === "") this.tags.delete(key);
        else this.tags.set(key, value.slice(1));
        this.chosen();
      });
      this.selects.set(key, of);
      bar.append(field);
    }
    this.clear = element("button", { type: "button", hidden: true, "data-does": "clear", onclick: () => { this.filter(new Map()); this.chosen(); } }, "Clear");
    const items = () => this.order.map((at) => this.report.item(this.report.rows[at]));
    const whole = copyButton("Copy JSON", "all-json", () => JSON.stringify(items(), null, 2));
    this.status = element("p", { class: "count", role: "status" });
    bar.append(this.clear, whole, this.status);
    return bar;
  }

  // Sets the filters to exactly those of an address.
  filter(wanted) {
    this.search = (wanted.get("search") || "").trim();
    this.input.value = wanted.get("search") || "";
    const offered = [...this.showing.options].some((option) => option.value === wanted.get("show"));
    this.show = offered ? wanted.get("show") : "all";
    this.showing.value = this.show;
    this.tags.clear();
    for (const [key, value] of wanted) {
      if (key !== "search" && key !== "show") this.tags.set(key, value);
    }
    for (const [key, select] of this.selects) {
      select.value = this.tags.has(key) ? "=" + this.tags.get(key) : "";
    }
    this.apply();
  }

  // After a choice of the reader: the address leads to the same view.
  chosen() {
    this.apply();
    const wanted = [];
    if (this.input.value.trim() !== "") wanted.push(["search", this.input.value.trim()]);
    if (this.show !== this.firstShow) wanted.push(["show", this.show]);
    wanted.push(...this.tags);
    const query = wanted.map((pair) => pair.map(encodeURIComponent).join("=")).join("&");
    history.replaceState(null, "", location.href.split("#")[0] + (query ? "#items-" + this.report.head.slug + "?" + query : ""));
  }

  choices() {
    const report = this.report;
    const choices = [["all", "all items"]];
    const errors = report.rows.filter((row) => row.error !== undefined).length;
    if (report.worsened.size) choices.push(["worse", "worse than the baseline (" + report.worsened.size + ")"]);
    if (report.improved.size) choices.push(["better", "better than the baseline (" + report.improved.size + ")"]);
    const blamed = [...report.blamed].filter((id) => report.places.has(id)).length;
    if (blamed) choices.push(["blamed", "behind a failed check (" + blamed + ")"]);
    if (errors) choices.push(["errors", "without an answer (" + errors + ")"]);
    for (const [word, flips] of [["worse", report.worsened], ["better", report.improved]]) {
      const counts = new Map();
      for (const metrics of flips.values()) {
        for (const metric of metrics) counts.set(metric, (counts.get(metric) || 0) + 1);
      }
      const options = [...counts].map(([id, n]) => [word + " " + id, visible(id) + " (" + n + ")"]);
      if (options.length > 1) choices.push({ group: word + " on", options });
    }
    return choices;
  }

  frame() {
    const columns = this.report.columns;
    const head = element("tr", { "aria-rowindex": "1" }, this.header("Item", "id"), element("th", { scope: "col" }, "Description"));
    const longest = this.report.rows.reduce((most, row) => Math.max(most, row.id.length), 0);
    // On a phone the state of an item, which is the third column, stays in sight.
    const [first, second] = innerWidth < 480 ? [64, 130] : [80, 180];
    const widths = [Math.max(first, Math.min(220, 24 + 8 * longest)), Math.max(second, Math.min(420, innerWidth * 0.36))];
    this.stated = this.report.rows.some((row) => states(this.report, row).length > 0);
    if (this.stated) {
      head.append(element("th", { scope: "col" }, "State"));
      widths.push(156);
    }
    this.compared = this.report.before.size > 0;
    if (this.compared) {
      head.append(element("th", { scope: "col" }, "Before \u2192 now"));
      widths.push(200);
    }
    for (const column of columns) {
      head.append(this.header(column.id, column.id, column));
      widths.push(Math.max(88, Math.min(230, 40 + 8 * visible(column.id).length)));
    }
    this.heads = [...head.children];
    this.widths = widths;
    this.sizes = widths.map(() => element("col"));
    const sizes = element("colgroup", {}, ...this.sizes);
    this.body = element("tbody", { onkeydown: (event) => this.key(event) });
    this.table = element("table", { class: "grid" }, element("caption", { class: "hidden" }, "Items of " + this.report.head.name), sizes, element("thead", {}, head), this.body);
    this.table.style.width = widths.reduce((sum, width) => sum + width, 0) + "px";
    this.size((width) => width + "px");
    this.view = element("div", { class: "framed view", role: "group", tabindex: "0", "aria-label": "Items" }, this.table);
    let asked = false;
    this.view.addEventListener("scroll", () => {
      if (asked) return;
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        this.draw();
      });
    }, { passive: true });
    new ResizeObserver(() => this.draw()).observe(this.view);
    return this.view;
  }

  size(shown) {
    this.sizes.forEach((size, index) => { size.style.width = shown(this.widths[index]); });
  }

  header(text, key, column) {
    const button = element("button", { type: "button", title: column ? column.id + ", " + column.better + " is better" : null, onclick: () => this.sortBy(key, column) }, text);
    return element("th", { scope: "col", class: column ? "number" : null, "aria-sort": "none", "data-key": key }, button);
  }

  // First the worst, then the best, then the order of the report.
  sortBy(key, column) {
    const worst = column && column.better === "lower" ? -1 : 1;
    if (!this.sort || this.sort.key !== key || this.sort.metric !== Boolean(column)) {
      this.sort = { key, metric: Boolean(column), sign: worst };
    } else if (this.sort.sign === worst) this.sort.sign = -worst;
    else this.sort = null;
    this.heads.forEach((head) => {
      if (!head.hasAttribute("aria-sort")) return;
      const here = this.sort && head === this.headOf(this.sort);
      head.setAttribute("aria-sort", here ? (this.sort.sign > 0 ? "ascending" : "descending") : "none");
    });
    this.apply();
  }

  headOf(sort) {
    if (!sort.metric) return this.heads[0];
    const at = this.report.columns.findIndex((column) => column.id === sort.key);
    return this.heads[this.heads.length - this.report.columns.length + at];
  }

  matches(at, has) {
    const report = this.report;
    const row = report.rows[at];
    const [what, ...rest] = this.show.split(" ");
    const metric = rest.join(" ");
    const moved = what === "worse" ? report.worsened : report.improved;
    switch (what) {
      case "errors": if (row.error === undefined) return false; break;
      case "blamed": if (!report.blamed.has(row.id)) return false; break;
      case "worse":
      case "better": {
        const metrics = moved.get(row.id);
        if (!metrics || (metric && !metrics.includes(metric))) return false;
      }
    }
    for (const [key, value] of this.tags) {
      if (report.property(row, key) !== value) return false;
    }
    return has(at);
  }

  apply() {
    const report = this.report;
    this.order = [];
    const has = this.search === "" ? () => true : report.search(this.search);
    for (let at = 0; at < report.rows.length; at += 1) {
      if (this.matches(at, has)) this.order.push(at);
    }
    if (this.sort) {
      const { key, metric, sign } = this.sort;
      const of = (at) => (metric ? report.score(report.rows[at], key) : at);
      this.order.sort((a, b) => {
        const [left, right] = [of(a), of(b)];
        // Items without a score come last in either direction.
        if (left === null || right === null) return (left === null) - (right === null) || a - b;
        return sign * (left - right) || a - b;
      });
    }
    const all = report.rows.length;
    this.clear.hidden = this.search === "" && this.show === "all" && this.tags.size === 0;
    this.status.textContent = this.order.length === all ? counted(all, "item") : this.order.length + " of " + counted(all, "item");
    this.table.setAttribute("aria-rowcount", this.order.length + 1);
    this.view.scrollTop = 0;
    this.first = -1;
    this.draw();
  }

  draw() {
    // A layout for printing must not move the window.
    if (this.printing) return;
    const height = this.view.clientHeight || 600;
    const first = Math.max(0, Math.floor(this.view.scrollTop / ROW) - SPARE);
    const last = Math.min(this.order.length, Math.ceil((this.view.scrollTop + height) / ROW) + SPARE);
    if (first === this.first && last === this.last) return;
    this.fill(first, last);
  }

  fill(first, last) {
    const focused = this.body.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
    this.first = first;
    this.last = last;
    const rows = [];
    if (first > 0) rows.push(this.gap(first));
    for (let at = first; at < last; at += 1) rows.push(this.row(at));
    if (last < this.order.length) rows.push(this.gap(this.order.length - last));
    if (this.order.length === 0) {
      rows.push(element("tr", {}, element("td", { class: "nothing", colspan: this.heads.length }, "No item matches.")));
    }
    this.body.replaceChildren(...rows);
    if (focused !== null) {
      const again = [...this.body.querySelectorAll("a.item")].find((link) => link.getAttribute("href") === focused);
      (again || this.view).focus({ preventScroll: true });
    }
  }

  gap(rows) {
    const gap = element("tr", { class: "gap", "aria-hidden": "true" }, element("td", { colspan: this.heads.length }));
    gap.firstChild.style.height = rows * ROW + "px";
    return gap;
  }

  row(at) {
    const report = this.report;
    const row = report.rows[this.order[at]];
    const link = element("a", { class: "item", href: report.link(row.id), title: row.id, "data-at": at }, row.id);
    const shown = element("tr", { "aria-rowindex": at + 2 },
      element("th", { scope: "row" }, link),
      element("td", { title: row.title }, row.title),
      this.stated ? element("td", {}, ...states(report, row)) : null,
      this.compared ? element("td", { title: report.moved(row) }, report.moved(row)) : null);
    for (const column of report.columns) {
      shown.append(element("td", { class: "number" }, number(report.score(row, column.id))));
    }
    shown.addEventListener("click", (event) => {
      if (event.target.closest("a") || String(getSelection())) return;
      location.hash = link.getAttribute("href");
    });
    return shown;
  }

  key(event) {
    const link = event.target.closest("a.item");
    if (!link) return;
    const at = Number(link.getAttribute("data-at"));
    const page = Math.max(1, Math.floor(this.view.clientHeight / ROW) - 2);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, PageDown: at + page, PageUp: at - page, Home: 0, End: this.order.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    this.focus(Math.max(0, Math.min(this.order.length - 1, to)));
  }

  // Scrolls a row into sight and focuses its link.
  focus(at) {
    this.view.scrollIntoView({ block: "nearest" });
    const head = this.heads[0].offsetHeight;
    const top = at * ROW;
    const room = this.view.clientHeight - head - ROW;
    if (top < this.view.scrollTop) this.view.scrollTop = top;
    else if (top > this.view.scrollTop + room) this.view.scrollTop = top - room;
    this.draw();
    const link = this.body.querySelector('a.item[data-at="' + at + '"]');
    if (link) link.focus({ preventScroll: true });
  }

  focusItem(id) {
    const at = this.order.indexOf(this.report.places.get(id));
    if (at >= 0) this.focus(at);
  }

  // On paper the columns share a fixed width; the square root keeps the wide ones from taking it all.
  print() {
    this.printing = true;
    const total = this.widths.reduce((sum, width) => sum + Math.sqrt(width), 0);
    this.size((width) => (100 * Math.sqrt(width)) / total + "%");
    this.fill(0, Math.min(PRINTED, this.order.length));
    const gap = this.body.querySelector(".gap");
    if (gap) {
      gap.firstChild.style.height = "auto";
      gap.firstChild.textContent = "and " + (this.order.length - PRINTED) + " more, not printed";
    }
  }

  printed() {
    this.printing = false;
    this.size((width) => width + "px");
    this.first = -1;
    this.draw();
  }
}

// The state of an item at a glance.
function states(report, row) {
  const states = [];
  const add = (tone, text, title) => states.push(element("span", { class: "state " + tone, title }, text));
  const tone = report.tones.get(row.facet);
  if (tone !== undefined) add(tone, spoken(row.facet));
  if (row.error !== undefined) add("lost", "no answer", messageOf(row.error));
  if (report.worsened.has(row.id)) add("worse", "worse", "on " + report.worsened.get(row.id).join(", "));
  if (report.improved.has(row.id)) add("better", "better", "on " + report.improved.get(row.id).join(", "));
  return states;
}

/** @param {ItemError} error */
function messageOf(error) {
  return error.message;
}
