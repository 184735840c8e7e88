//! docs/metrics.md: the table of metrics as a page. `karat metrics --markdown` prints it, and a
//! test compares it with the page in docs/.

use karat_metrics::registry::{Better, FAMILIES};

/// The introduction of the page.
const OPENING: &str = "\
# Metrics

Every metric that Karat computes, with its formula, its conventions, and the differences from other
implementations. The page is generated from the table in karat-metrics (`karat metrics --markdown`);
a test fails if it is out of date.

Metrics of other tools have those tools' names (`ragas.*`, `deepeval.*`, `bfcl.*`) and reproduce them
to the last digit on the vectors in crates/karat-metrics/tests/vectors; where a tool raises an error
instead of giving a value, Karat gives a defined one, and the entry says which. A metric without a
value on some data is *undefined*: it is `null` in the report with its reason, is left out of means,
and is never counted as 0. `@k` and `^k` represent any positive whole number.

Where a peer raises an error on the vectors, Karat answers as follows; nothing else deviates:

| peer | situation | its error | Karat |
| --- | --- | --- | --- |
| DeepEval | parameters recorded on one side only | AttributeError | the pair scores 0 |
| ranx | the run has a query that was not judged | AssertionError | the query is left out and counted |
| ranx | no query has a single judgement | ValueError | every measure that is defined there is 0 |
";

/// The whole page.
pub fn metrics() -> String {
    let mut page = OPENING.to_owned();
    for family in FAMILIES {
        page.push_str(&format!("\n## {}\n", family.title));
        for metric in family.metrics {
            let better = match metric.better {
                Better::Higher => "higher",
                Better::Lower => "lower",
            };
            page.push_str(&format!("\n### `{}`\n\n{}\n", metric.id, metric.summary));
            page.push_str(&format!("\n```text\n{}\n```\n", metric.formula));
            page.push_str(&format!("\n- Better: {better}.\n"));
            if !metric.undefined.is_empty() {
                page.push_str(&format!("- Undefined: {}\n", metric.undefined));
            }
            if !metric.notes.is_empty() {
                page.push_str(&format!("\n{}\n", metric.notes.trim()));
            }
        }
    }
    page
}
