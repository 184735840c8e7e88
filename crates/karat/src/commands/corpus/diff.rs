//! `karat corpus diff`: what changed between two corpora, field by field: tools by server and name, the
//! labelled entries of threat corpora by id.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::dataset::DatasetFiles;
use karat_detection::dataset::Dataset;
use karat_io::text::{clip, printable};
use karat_retrieval::snapshot::Snapshot;
use karat_retrieval::snapshot::diff::{Changed, Diff, Field, Tool};
use serde_json::{Value, json};

use super::snapshot;
use crate::bundled;
use crate::cli::DiffArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// The way wide a shown value may be.
const WIDTH: usize = 160;
/// The number of characters around a change are shown.
const AROUND: usize = 40;

pub(super) fn run(arguments: &DiffArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let (before, after) = (Corpus::open(&arguments.before)?, Corpus::open(&arguments.after)?);
    let diff = between(&before, &after)?;
    if terminal.json() {
        let mut document = json!({
            "schema": "karat.corpus-diff/1",
            "before": before.counts(),
            "after": after.counts(),
        });
        if let (Value::Object(document), Ok(Value::Object(diff))) =
            (&mut document, serde_json::to_value(&diff))
        {
            document.extend(diff);
        }
        terminal.print_json(&document)?;
    } else {
        terminal.print(&text(&diff))?;
    }
    Ok(if arguments.exit_code && !diff.is_empty() { Exit::GateFailed } else { Exit::Pass })
}

/// Things that can be compared with their like.
enum Corpus {
    Tools(Snapshot),
    /// Labelled entries, by id.
    Threats(BTreeMap<String, Value>),
}

impl Corpus {
    fn open(path: &Path) -> Result<Corpus, Stop> {
        let tools = snapshot(path);
        if let Ok(tools) = tools
            && !tools.servers.is_empty()
        {
            return Ok(Corpus::Tools(tools));
        }
        let entries = threats(path).ok().filter(|dataset| !dataset.samples.is_empty());
        let Some(dataset) = entries else {
            snapshot(path)?;
            let message = format!("{}: no tools and no entries", path.display());
            return Err(Stop::bad_input(message));
        };
        let entries = dataset.samples.iter().map(|sample| (sample.id.clone(), json!(sample)));
        Ok(Corpus::Threats(entries.collect()))
    }

    fn counts(&self) -> Value {
        match self {
            Corpus::Tools(tools) => json!({"servers": tools.servers.len(), "tools": tools.len()}),
            Corpus::Threats(entries) => json!({"entries": entries.len()}),
        }
    }
}

/// The labelled entries of a frozen folder, a file, or `bundled:threats/v2`.
fn threats(path: &Path) -> Result<Dataset, Stop> {
    Ok(match path.to_str().and_then(|text| text.strip_prefix("bundled:")) {
        Some(name) => Dataset::open(bundled::named(name)?)?,
        None if path.is_dir() => Dataset::open(DatasetFiles::Folder(path.to_owned()))?,
        None => Dataset::from_file(path)?,
    })
}

fn between(before: &Corpus, after: &Corpus) -> Result<Diff, Stop> {
    match (before, after) {
        (Corpus::Tools(before), Corpus::Tools(after)) => Ok(Diff::between(before, after)),
        (Corpus::Threats(before), Corpus::Threats(after)) => {
            let mut diff = Diff::default();
            diff.entries("", &by_id(before), &by_id(after));
            Ok(diff)
        }
        _ => Err(Stop::bad_input(
            "one has tools and the other labelled entries; compare two of a kind",
        )),
    }
}

fn by_id(entries: &BTreeMap<String, Value>) -> BTreeMap<&str, &Value> {
    entries.iter().map(|(id, entry)| (id.as_str(), entry)).collect()
}

fn text(diff: &Diff) -> String {
    let mut text = format!(
        "{} added, {} removed, {} changed ({} reworded), {} unchanged\n",
        diff.added.len(),
        diff.removed.len(),
        diff.changed.len(),
        diff.reworded(),
        diff.unchanged
    );
    let mut line = |content: String| {
        text.push_str(&content);
        text.push('\n');
    };
    for (sign, servers) in [('+', &diff.servers_added), ('-', &diff.servers_removed)] {
        servers.iter().for_each(|server| line(format!("{sign} server {}", printable(server))));
    }
    for changed in &diff.servers_changed {
        line(format!("~ server {}", printable(&changed.id)));
        fields(changed, &mut line);
    }
    for (sign, tools) in [('+', &diff.added), ('-', &diff.removed)] {
        tools.iter().for_each(|tool| line(one_line(sign, tool)));
    }
    for changed in &diff.changed {
        line(format!("~ {}", printable(&changed.id)));
        fields(changed, &mut line);
    }
    text
}

fn one_line(sign: char, tool: &Tool) -> String {
    let described = tool.definition.get("description");
    let described = described.or_else(|| tool.definition.pointer("/tool/description"));
    let described = described.and_then(Value::as_str).unwrap_or_default();
    let shown = printable(described);
    format!("{sign} {}  {}", printable(&tool.id), clip(&shown, 80)).trim_end().to_owned()
}

fn fields(changed: &Changed, line: &mut impl FnMut(String)) {
    for field in &changed.fields {
        line(format!("    {}", printable(&field.path)));
        let (before, after) = sides(field);
        for (sign, side) in [('-', before), ('+', after)] {
            if let Some(side) = side {
                line(format!("      {sign} {side}"));
            }
        }
    }
}

/// Both sides of a change, printable. Long texts are cut to the part around the difference.
fn sides(field: &Field) -> (Option<String>, Option<String>) {
    let shown = |text: &str| clip(&printable(text), WIDTH).into_owned();
    if let (Some(Value::String(before)), Some(Value::String(after))) = (&field.before, &field.after)
    {
        let (before, after) = around(before, after);
        return (Some(shown(&before)), Some(shown(&after)));
    }
    let value = |value: &Value| match value {
        Value::String(text) => shown(text),
        other => shown(&other.to_string()),
    };
    (field.before.as_ref().map(value), field.after.as_ref().map(value))
}

/// Cuts the common beginning of two texts, except for the words just before the difference.
fn around(before: &str, after: &str) -> (String, String) {
    let shared = before.chars().zip(after.chars()).take_while(|(a, b)| a == b).count();
    let from = shared.saturating_sub(AROUND);
    let cut = |text: &str| {
        let mark = if from > 0 { "…" } else { "" };
        format!("{mark}{}", text.chars().skip(from).collect::<String>())
    };
    (cut(before), cut(after))
}
