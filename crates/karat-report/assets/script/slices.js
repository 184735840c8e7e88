
// The metrics over parts of the items; the reader chooses by which property.

function slicesOf(report) {
  const properties = [...new Set(report.slices.map((slice) => slice.by))];
  if (properties.length === 0) return null;
  const place = element("div", { class: "scroll framed", role: "region", tabindex: "0", "aria-label": "Slices" });
  const show = (by) => place.replaceChildren(sliceTable(report, by));
  const [field, select] = choice("Slices by", properties.map((by) => [by, visible(by)]), (by) => show(by));
  show(properties[0]);
  select.value = properties[0];
  return element("div", { class: "slices" }, element("div", { class: "bar" }, field), place);
}

function sliceTable(report, by) {
  const slices = report.slices.filter((slice) => slice.by === by);
  const ids = report.metrics.map((metric) => metric.id).filter((id) =>
    slices.some((slice) => slice.metrics.some((metric) => metric.id === id)));
  for (const metric of slices.flatMap((slice) => slice.metrics)) {
    if (!ids.includes(metric.id)) ids.push(metric.id);
  }
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

function sliceCell(metric, n) {
  if (!metric) return element("td", { class: "number" }, "\u2013");
  const cell = element("td", { class: "number" }, metric.value === null ? "undefined" : number(metric.value));
  if (metric.undefined) cell.append(element("span", { class: "small" }, metric.undefined));
  const notes = [];
  if (metric.interval) notes.push(bound(metric.interval.low) + " \u2013 " + bound(metric.interval.high));
  if (metric.n !== n) notes.push("n = " + metric.n);
  if (notes.length) {
    const method = metric.interval ? metric.interval.method : null;
    cell.append(element("span", { class: "small", title: method }, notes.join(", ")));
  }
  return cell;
}
