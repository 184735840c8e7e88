
// The data block. It is packed as crates/karat-report/src/html/data.rs says; what is read here can be
// rebuilt exactly as it stood in the report.

// [0, ...] is a list, [1, [keys], cells...] a list of objects with the same keys.
function unpacked(value) {
  if (Array.isArray(value)) {
    if (value[0] === 0) return value.slice(1).map(unpacked);
    const keys = value[1];
    const rows = [];
    for (let at = 2; at < value.length; at += keys.length) {
      rows.push(Object.fromEntries(keys.map((key, index) => [key, unpacked(value[at + index])])));
    }
    return rows;
  }
  if (value !== null && typeof value === "object") {
    // fromEntries defines a field even where its name is __proto__.
    return Object.fromEntries(Object.entries(value).map(([key, field]) => [key, unpacked(field)]));
  }
  return value;
}

// All strings in a value, without the names of fields.
function strings(value, found) {
  if (typeof value === "string") found.push(value);
  else if (value !== null && typeof value === "object") for (const part of Object.values(value)) strings(part, found);
}

function packedStrings(value, found) {
  if (Array.isArray(value)) {
    for (const part of value.slice(value[0] === 0 ? 1 : 2)) packedStrings(part, found);
  } else if (value !== null && typeof value === "object") {
    for (const part of Object.values(value)) packedStrings(part, found);
  } else strings(value, found);
}

function named(scores, names) {
  if (!Array.isArray(scores)) return scores;
  return Object.fromEntries(names.map((name, index) => [name, scores[index]]).filter(([, score]) => score !== false));
}

class Report {
  constructor(data) {
    this.data = data;
    this.slug = data.slug;
    this.items = data.items;
    this.metrics = data.metrics;
    this.metric = new Map(data.metrics.map((metric) => [metric.id, metric]));
    // The columns of the items are the metrics that are scored item by item.
    this.columns = data.metrics.filter((metric) => data.scores.includes(metric.id));
    this.places = new Map(data.items.map((item, index) => [item.id, index]));
    this.blamed = new Set(data.blamed);
    this.tones = new Map(Object.entries(data.tones));
    // For each item the metrics on which it moved, over all items rather than over a slice.
    this.worsened = new Map();
    this.improved = new Map();
    for (const flip of data.flips.filter((flip) => flip.slice === undefined)) {
      for (const [ids, into] of [[flip.worsened, this.worsened], [flip.improved, this.improved]]) {
        for (const id of ids) {
          if (!into.has(id)) into.set(id, []);
          into.get(id).push(flip.metric);
        }
      }
    }
    this.scoreAt = new Map(data.scores.map((name, index) => [name, index]));
    this.texts = null;
  }

  score(item, id) {
    // A row has false where the item has no such score at all.
    if (Array.isArray(item.metrics)) {
      const score = item.metrics[this.scoreAt.get(id)];
      return typeof score === "number" ? score : null;
    }
    return Object.hasOwn(item.metrics, id) ? item.metrics[id] : null;
  }

  // The item as it stands in the report.
  whole(item) {
    const names = this.data.scores;
    const whole = { id: item.id };
    if (item.group !== undefined) whole.group = item.group;
    if (item.tags !== undefined) whole.tags = item.tags;
    whole.metrics = named(item.metrics, names);
    if (item.per_run !== undefined) whole.per_run = item.per_run.map((run) => named(run, names));
    whole.observed = unpacked(item.observed);
    if (item.error !== undefined) whole.error = item.error;
    return whole;
  }

  // What a search looks through, made when it is first needed.
  text(index) {
    if (this.texts === null) {
      this.texts = this.items.map((item) => {
        const found = [item.id];
        for (const part of [item.group, item.tags, item.error]) strings(part, found);
        packedStrings(item.observed, found);
        return found.join("\n").toLowerCase();
      });
    }
    return this.texts[index];
  }

  // One line that tells a person which item this is.
  title(item) {
    const observed = item.observed;
    if (typeof observed === "string") return observed;
    if (observed !== null && typeof observed === "object" && !Array.isArray(observed)) {
      const said = (key) => (Object.hasOwn(observed, key) && typeof observed[key] === "string" ? observed[key] : null);
      const together = (one, other) => [said(one), said(other)].filter((text) => text !== null).join(" \u00b7 ");
      const special = { verdicts: () => together("name", "text"), suite: () => together("tool", "arguments"), fuzz: () => this.findings(observed), load: () => this.stretch(observed) }[this.data.kind];
      const text = special ? special() : "";
      if (text) return text;
      for (const key of ["query", "input", "task", "prompt", "question", "title", "about", "description", "name", "tool", "text"]) {
        if (said(key) !== null) return observed[key];
      }
    }
    if (item.error !== undefined) return item.error.message;
    return observed === null || observed === undefined ? "" : JSON.stringify(unpacked(observed)).slice(0, 300);
  }

  // What fuzzing found in a tool.
  findings(observed) {
    const found = unpacked(observed.findings);
    if (!Array.isArray(found)) return "";
    const messages = found.map((finding) => (finding ? finding.message : null)).filter((text) => typeof text === "string");
    return messages.length ? messages.join("; ") : "no finding";
  }

  // A second or a step of a load.
  stretch(observed) {
    if (typeof observed.load === "number") return "load " + number(observed.load) + (observed.holds === true ? ": holds" : ": does not hold");
    if (typeof observed.ok !== "number" || typeof observed.errors !== "number") return "";
    return observed.ok + " ended well, " + observed.errors + " did not";
  }

  link(id) {
    return "#" + this.slug + "/" + encodeURIComponent(id);
  }

  // What an item can be filtered by: the facet of the report, then its tags.
  properties(item) {
    const { facet } = this.data;
    const tags = Object.entries(item.tags || {}).filter(([key]) => key !== facet);
    return facet !== undefined && item.facet !== undefined ? [[facet, item.facet], ...tags] : tags;
  }

  property(item, key) {
    if (key === this.data.facet) return item.facet;
    return item.tags && Object.hasOwn(item.tags, key) ? item.tags[key] : undefined;
  }

  // The values of each of them, in order.
  tags() {
    const tags = new Map();
    const { facet } = this.data;
    if (facet !== undefined) tags.set(facet, new Map());
    for (const item of this.items) {
      for (const [key, value] of this.properties(item)) {
        if (!tags.has(key)) tags.set(key, new Map());
        tags.get(key).set(value, (tags.get(key).get(value) || 0) + 1);
      }
    }
    return tags;
  }
}
