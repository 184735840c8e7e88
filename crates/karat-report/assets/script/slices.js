
// The metrics over parts of the items; the reader chooses the property.

function slicesOf(report) {
  const properties = [...new Set(report.head.slices.map((slice) => slice.by))];
  if (properties.length === 0) return null;
  const place = element("div", { class: "scroll framed", role: "group", tabindex: "0", "aria-label": "Slices" });
  const show = (by) => place.replaceChildren(sliceTable(report, by));
  const [field, select] = choice("Slices by", properties.map((by) => [by, visible(by)]), (by) => show(by));
  show(properties[0]);
  select.value = properties[0];
  return element("div", { class: "slices" }, element("div", { class: "bar" }, field), place);
}

function sliceTable(report, by) {
  /** @param {Slice} slice */
  const metricsOf = (slice) => slice.metrics;
  const slices = report.head.slices.filter((slice) => slice.by === by);
  const known = new Set(slices.flatMap(metricsOf).map((metric) => metric.id));
  // In the order of the report, then what only slices have.
  const ids = [...new Set([...report.metric.keys(), ...known])].filter((id) => known.has(id));
  const head = element("tr", {}, element("th", { scope: "col" }, by), element("th", { scope: "col", class: "number" }, "n"));
  for (const id of ids) {
    head.append(element("th", { scope: "col", class: "number" }, metricLink(report.metric.get(id) || { id })));
  }
  const rows = slices.map((slice) => {
    const n = Math.max(0, ...slice.metrics.map((metric) => metric.n));
    const row = element("tr", {}, element("th", { scope: "row" }, slice.value), element("td", { class: "number" }, String(n)));
    for (const id of ids) row.append(sliceCell(slice.metrics.find((metric) => metric.id === id), n));
    return row;
  });
  return element("table", { class: "plain" }, element("thead", {}, head), element("tbody", {}, ...rows));
}

/** @param {Measured} metric */
function sliceCell(metric, n) {
  if (!metric) return element("td", { class: "number" }, "\u2013");
  const cell = element("td", { class: "number" }, metric.value === null ? "undefined" : number(metric.value));
  if (metric.undefined) cell.append(element("span", { class: "small" }, metric.undefined));
  /** @param {Interval} interval */
  const shown = (interval) => ({ ends: bound(interval.low) + " \u2013 " + bound(interval.high), title: interval.method });
  const { ends, title } = metric.interval ? shown(metric.interval) : { ends: null, title: null };
  const notes = [ends, metric.n === n ? null : "n = " + metric.n].filter(Boolean);
  if (notes.length) cell.append(element("span", { class: "small", title }, notes.join(", ")));
  return cell;
}
