
// The data block: gzip in base64. Its first line has what the tables show of every report; each further
// line is one item as it is in the report, parsed when it is needed.

// The key of each field and the number after it, if it is one: they are not text. A quote inside a text
// has a backslash in front, so no text is mistaken for a key.
const NO_TEXT = /"[^"\\]*":(-?\d[-+.\dEe]*)?/g;

async function load() {
  const packed = atob(document.getElementById("data").textContent);
  const bytes = new Uint8Array(packed.length);
  for (let at = 0; at < packed.length; at += 1) bytes[at] = packed.charCodeAt(at);
  const lines = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const [heads, ...items] = (await new Response(lines).text()).split("\n");
  let from = 0;
  return JSON.parse(heads).map((head) => {
    const lines = items.slice(from, from + head.rows.length);
    from += head.rows.length;
    return new Report(head, lines);
  });
}

class Report {
  constructor(head, lines) {
    this.head = head;
    this.lines = lines;
    this.rows = head.rows;
    this.rows.forEach((row, at) => { row.at = at; });
    this.metric = new Map(head.metrics.map((metric) => [metric.id, metric]));
    // The columns of the items are the metrics that items are scored by.
    this.columns = head.metrics.filter((metric) => head.scored.includes(metric.id));
    this.scored = new Map(head.scored.map((id, at) => [id, at]));
    this.places = new Map(this.rows.map((row) => [row.id, row.at]));
    this.blamed = new Set(head.blamed);
    this.before = new Map(Object.entries(head.before || {}));
    this.tones = new Map(Object.entries(head.tones));
    // For each item the metrics on which it got worse and better.
    this.worsened = new Map();
    this.improved = new Map();
    for (const flip of head.flips) {
      for (const [ids, into] of [[flip.worsened, this.worsened], [flip.improved, this.improved]]) {
        for (const id of ids) {
          if (!into.has(id)) into.set(id, []);
          into.get(id).push(flip.metric);
        }
      }
    }
    this.texts = new Map();
  }

  // The earlier score of an item; undefined if there is none.
  earlier(row, id) {
    const scores = this.before.get(row.id);
    if (scores && Object.hasOwn(scores, id)) return scores[id];
    return this.before.size ? this.score(row, id) : undefined;
  }

  // The way an item moved, as text: its rank, or the first score on which it got worse or better.
  moved(row) {
    const shown = (rank) => (rank === null ? "none" : String(rank));
    if (row.ranks) return "rank " + row.ranks.map(shown).join(" \u2192 ");
    const [metric] = this.worsened.get(row.id) || this.improved.get(row.id) || [];
    if (metric === undefined || this.earlier(row, metric) === undefined) return "";
    return metric + " " + number(this.earlier(row, metric)) + " \u2192 " + number(this.score(row, metric));
  }

  score(row, id) {
    return row.scores[this.scored.get(id)];
  }

  // The item as it is in the report.
  item(row) {
    return JSON.parse(this.lines[row.at]);
  }

  // A test whether an item has a text, in any of its fields. Most lines are refused as a whole; the
  // others are searched again without the names of fields.
  search(sought) {
    // In JSON, quotes and line breaks are escaped.
    const text = JSON.stringify(sought.toLowerCase()).slice(1, -1);
    const pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"), "i");
    return (at) => {
      if (!pattern.test(this.lines[at])) return false;
      if (!this.texts.has(at)) this.texts.set(at, this.lines[at].replace(NO_TEXT, "").toLowerCase());
      return this.texts.get(at).includes(text);
    };
  }

  link(id) {
    return "#" + this.head.slug + "/" + encodeURIComponent(id);
  }

  // The properties that items can be filtered by: the facet of the report, then their tags.
  properties(row) {
    const { facet } = this.head;
    const tags = Object.entries(row.tags || {}).filter(([key]) => key !== facet);
    return facet !== null && row.facet !== undefined ? [[facet, row.facet], ...tags] : tags;
  }

  property(row, key) {
    if (key === this.head.facet) return row.facet;
    return row.tags && Object.hasOwn(row.tags, key) ? row.tags[key] : undefined;
  }

  // The values of each property, and how many items have them.
  values() {
    const values = new Map();
    for (const row of this.rows) {
      for (const [key, value] of this.properties(row)) {
        if (!values.has(key)) values.set(key, new Map());
        values.get(key).set(value, (values.get(key).get(value) || 0) + 1);
      }
    }
    return values;
  }
}
