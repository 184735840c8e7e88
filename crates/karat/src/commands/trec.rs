//! `karat score trec`: standard TREC files, scored as trec_eval does.

use std::fmt::Write as _;

use karat_io::text::{count, printable};
use karat_metrics::Score;
use karat_metrics::ranking::{Measure, Rules, ScorePrecision};
use karat_retrieval::trec_files;
use serde_json::{Map, Value, json};
use trec::{MeasureMeans, Options, QueryList, QueryScores, Summary};

use crate::cli::TrecArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Scores the files and prints the means, and with `--per-query` every query before them.
pub(crate) fn score(arguments: &TrecArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let mut options = Options {
        rules: Rules {
            relevance_level: arguments.level,
            judged_only: arguments.judged_only,
            ..Rules::default()
        },
        ..Options::default()
    };
    if arguments.float32 {
        options.rules.precision = ScorePrecision::F32;
    }
    if !arguments.measures.is_empty() {
        options.measures = arguments
            .measures
            .iter()
            .map(|id| id.parse::<Measure>())
            .collect::<Result<_, _>>()
            .map_err(|error| Stop::bad_input(format!("--measure: {error}")))?;
    }
    // Nothing is printed before the whole run has proven to be readable.
    let mut lines = String::new();
    let mut queries = Vec::new();
    let mut each = |found: &QueryScores<'_>| {
        if terminal.json() {
            queries.push(json!({"query": found.query, "scores": scores(found)}));
        } else {
            per_query(&mut lines, found);
        }
    };
    let each = arguments.per_query.then_some(&mut each as &mut dyn FnMut(&QueryScores<'_>));
    let (qrels, run) = (trec_files::open(&arguments.qrels)?, trec_files::open(&arguments.run)?);
    let summary = trec::score(&qrels, &run, &options, each).map_err(Stop::bad_input)?;
    if summary.evaluated == 0 {
        return Err(Stop::not_measured(format!(
            "no query was evaluated: none of {} in {} is judged in {}; do the files belong together?",
            count(summary.in_run, "query"),
            arguments.run.display(),
            arguments.qrels.display()
        )));
    }
    if terminal.json() {
        terminal.print_json(&document(&summary, queries, arguments.per_query))?;
    } else {
        lines.push_str(&table(&summary));
        terminal.print(&lines)?;
    }
    Ok(Exit::Pass)
}

fn number(score: &Score) -> Value {
    score.map_or(Value::Null, |value| json!(value))
}

fn scores(found: &QueryScores<'_>) -> Value {
    let pairs = found.measures.iter().zip(found.scores);
    Value::Object(pairs.map(|(measure, score)| (measure.to_string(), number(score))).collect())
}

/// As trec_eval prints it: measure, query, value.
fn per_query(lines: &mut String, found: &QueryScores<'_>) {
    for (measure, score) in found.measures.iter().zip(found.scores) {
        let value = score.map_or_else(|_| "null".to_owned(), |value| format!("{value:.4}"));
        let id = measure.to_string();
        let _ = writeln!(lines, "{id:<22}\t{}\t{value}", printable(found.query));
    }
}

fn document(summary: &Summary, queries: Vec<Value>, per_query: bool) -> Value {
    let means = |pick: fn(&MeasureMeans) -> Score| -> Value {
        let pairs =
            summary.means.iter().map(|mean| (mean.measure.to_string(), number(&pick(mean))));
        Value::Object(pairs.collect::<Map<String, Value>>())
    };
    let found = |found: &QueryList| json!({"count": found.count, "first": found.first});
    let mut document = json!({
        "schema": "karat.trec/1",
        "queries": {
            "judged": summary.judged,
            "in_run": summary.in_run,
            "evaluated": summary.evaluated,
            "missing": found(&summary.missing),
            "unjudged": found(&summary.unjudged),
            "without_relevant": summary.without_relevant,
        },
        "results": {
            "retrieved": summary.retrieved,
            "relevant": summary.relevant,
            "relevant_retrieved": summary.relevant_retrieved,
        },
        "means": {
            "evaluated": means(|mean| mean.over_evaluated.value()),
            "judged": means(|mean| mean.over_all.value()),
        },
    });
    if per_query && let Some(object) = document.as_object_mut() {
        object.insert("per_query".to_owned(), Value::Array(queries));
    }
    document
}

fn table(summary: &Summary) -> String {
    let mut text = format!(
        "queries: {} judged, {} in the run, {} evaluated\nresults: {} retrieved, {} of {} relevant\n",
        summary.judged,
        summary.in_run,
        summary.evaluated,
        summary.retrieved,
        summary.relevant_retrieved,
        summary.relevant,
    );
    for (found, words) in [
        (&summary.missing, "judged, but not in the run"),
        (&summary.unjudged, "in the run, but not judged (skipped)"),
    ] {
        if let Some(first) = found.first.first() {
            let _ = writeln!(
                text,
                "note: {words}: {} (first: {})",
                count(found.count, "query"),
                printable(first)
            );
        }
    }
    if summary.without_relevant > 0 {
        let queries = count(summary.without_relevant, "query");
        let _ = writeln!(text, "note: no relevant document and a score of 0: {queries}");
    }
    let value = |score: Score| score.map_or_else(|_| "null".to_owned(), |v| format!("{v:.4}"));
    if summary.means_differ() {
        let _ = writeln!(text, "\n{:<22} {:>10} {:>10}", "measure", "evaluated", "all judged");
        for mean in &summary.means {
            let (evaluated, all) = (mean.over_evaluated.value(), mean.over_all.value());
            let id = mean.measure.to_string();
            let _ = writeln!(text, "{id:<22} {:>10} {:>10}", value(evaluated), value(all));
        }
        text.push_str("\nall judged: a query missing in the run counts as an empty result\n");
    } else {
        let _ = writeln!(text, "\n{:<22} {:>10}", "measure", "mean");
        for mean in &summary.means {
            let id = mean.measure.to_string();
            let _ = writeln!(text, "{id:<22} {:>10}", value(mean.over_evaluated.value()));
        }
    }
    text
}
