
// The data block. It is packed as crates/karat-report/src/html/pack.rs says; what is read here can be
// rebuilt exactly as it stood in the report.

// Reads packed values, each when it is asked for.
class Packing {
  constructor({ texts, names }) {
    this.texts = texts;
    this.names = names;
  }

  value(packed) {
    if (!Array.isArray(packed)) return packed;
    const [kind, head] = packed;
    switch (kind) {
      case 0: case 1: return this.cells(packed, 1);
      case 2: case 3: return record(this.names[head], this.cells(packed, 2));
      case 4: {
        const columns = packed.slice(2).map((column) => this.value(column));
        return columns[0].map((_, at) => record(this.names[head], columns.map((column) => column[at])));
      }
      case 5: {
        const list = new Array(head).fill(this.value(packed[2]));
        for (let at = 3; at < packed.length; at += 2) list[packed[at]] = this.value(packed[at + 1]);
        return list;
      }
      default: return this.texts[head];
    }
  }

  // Under an odd kind there are no numbers but those that stand for texts.
  cells(packed, from) {
    const coded = packed[0] % 2 === 1;
    return packed.slice(from).map((cell) => (coded && typeof cell === "number" ? this.texts[cell] : this.value(cell)));
  }

  // All texts in a value, without the names of fields, and without making the value.
  collect(packed, found) {
    if (typeof packed === "string") found.push(packed);
    if (!Array.isArray(packed)) return;
    const kind = packed[0];
    if (kind === 6) found.push(this.texts[packed[1]]);
    else {
      for (let at = kind < 2 ? 1 : 2; at < packed.length; at += 1) {
        if (typeof packed[at] !== "number") this.collect(packed[at], found);
        else if (kind === 1 || kind === 3) found.push(this.texts[packed[at]]);
      }
    }
  }

  // A list of which single places are read: what is mostly the same is not laid out.
  places(packed) {
    if (packed[0] !== 5) {
      const list = this.value(packed);
      return (at) => list[at];
    }
    const usual = this.value(packed[2]);
    const others = new Map();
    for (let at = 3; at < packed.length; at += 2) others.set(packed[at], this.value(packed[at + 1]));
    return (at) => (others.has(at) ? others.get(at) : usual);
  }
}

// fromEntries defines a field even where its name is __proto__.
function record(names, values) {
  return Object.fromEntries(names.map((name, at) => [name, values[at]]));
}

// The items with what the table needs of them.
function itemsOf(data, packing) {
  const columns = Object.entries(data.columns).map(([name, packed]) => [name, packing.value(packed)]);
  return data.observed.map((_, at) => {
    const item = { at };
    for (const [name, list] of columns) {
      if (list[at] !== null) item[name] = list[at];
    }
    return item;
  });
}

class Report {
  constructor(data) {
    this.data = data;
    this.slug = data.slug;
    this.packing = new Packing(data);
    this.items = itemsOf(data, this.packing);
    this.slices = this.packing.value(data.slices);
    this.metrics = data.metrics;
    this.metric = new Map(data.metrics.map((metric) => [metric.id, metric]));
    // The columns of the items are the metrics that are scored item by item.
    this.columns = data.metrics.filter((metric) => data.scores.includes(metric.id));
    this.places = new Map(this.items.map((item) => [item.id, item.at]));
    this.blamed = new Set(data.blamed);
    this.tones = new Map(Object.entries(data.tones));
    // For each item the metrics on which it moved, over all items rather than over a slice.
    this.worsened = new Map();
    this.improved = new Map();
    for (const flip of data.flips.filter((flip) => flip.slice === undefined)) {
      for (const [ids, into] of [[flip.worsened, this.worsened], [flip.improved, this.improved]]) {
        for (const id of this.packing.value(ids)) {
          if (!into.has(id)) into.set(id, []);
          into.get(id).push(flip.metric);
        }
      }
    }
    this.scored = new Map(data.scores.map((name, index) => [name, this.packing.places(data.scored[index])]));
    this.texts = null;
  }

  // Null where it is undefined, false where the item has no such score at all.
  scoreOrNone(item, id) {
    return this.scored.has(id) ? this.scored.get(id)(item.at) : false;
  }

  score(item, id) {
    const score = this.scoreOrNone(item, id);
    return score === false ? null : score;
  }

  observed(item) {
    return this.packing.value(this.data.observed[item.at]);
  }

  // The scores of each run, where there was more than one.
  runs(item) {
    return this.data.per_run ? this.packing.value(this.data.per_run[item.at]) : [];
  }

  // The item as it stands in the report.
  whole(item) {
    const whole = { id: item.id };
    if (item.group !== undefined) whole.group = item.group;
    if (item.tags !== undefined) whole.tags = item.tags;
    const scores = this.data.scores.map((name) => [name, this.scoreOrNone(item, name)]);
    whole.metrics = Object.fromEntries(scores.filter(([, score]) => score !== false));
    const runs = this.runs(item);
    if (runs.length) whole.per_run = runs;
    whole.observed = this.observed(item);
    if (item.error !== undefined) whole.error = item.error;
    return whole;
  }

  // What a search looks through, made when it is first needed.
  text(index) {
    if (this.texts === null) {
      this.texts = this.items.map((item) => {
        const found = [item.id];
        if (item.group !== undefined) found.push(item.group);
        for (const part of [item.tags, item.error]) found.push(...Object.values(part || {}));
        this.packing.collect(this.data.observed[item.at], found);
        return found.join("\n").toLowerCase();
      });
    }
    return this.texts[index];
  }

  // One line that tells a person which item this is.
  title(item) {
    const observed = this.observed(item);
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
    return observed === null || observed === undefined ? "" : JSON.stringify(observed).slice(0, 300);
  }

  // What fuzzing found in a tool.
  findings(observed) {
    if (!Array.isArray(observed.findings)) return "";
    const messages = observed.findings.map((finding) => (finding ? finding.message : null)).filter((text) => typeof text === "string");
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
