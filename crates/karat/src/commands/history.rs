//! `karat history`: reports in one file, and their metrics over time.

use std::path::{Path, PathBuf};

use karat_core::provenance::{Stopwatch, is_day};
use karat_history::series::{self, Series};
use karat_history::{Added, Document, Entry, HistoryError, Prune, Run, Selection, Store, text};
use karat_io::input::{self, Limits, nearest, write_atomic};
use karat_io::text::{count, printable};
use serde_json::json;

use crate::cli::{
    HistoryAddArgs, HistoryArgs, HistoryCommand, HistoryCompareArgs, HistoryExportArgs,
    HistoryListArgs, HistoryPruneArgs, HistoryShowArgs, HistorySiteArgs,
};
use crate::commands::{compare, parquet};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

impl From<HistoryError> for Stop {
    fn from(error: HistoryError) -> Stop {
        Stop::bad_input(error)
    }
}

pub(crate) fn run(arguments: &HistoryArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let file = file(arguments.db.as_deref(), None)?;
    match &arguments.command {
        HistoryCommand::Add(arguments) => add(&file, arguments, terminal),
        HistoryCommand::List(arguments) => list(&Store::open_to_read(&file)?, arguments, terminal),
        HistoryCommand::Show(arguments) => show(&Store::open_to_read(&file)?, arguments, terminal),
        HistoryCommand::Compare(arguments) => {
            compare_runs(&Store::open_to_read(&file)?, arguments, terminal)
        }
        HistoryCommand::Prune(arguments) => prune(&mut Store::open(&file)?, arguments, terminal),
        HistoryCommand::Site(arguments) => site(&Store::open_to_read(&file)?, arguments, terminal),
        HistoryCommand::Export(arguments) => {
            export(&Store::open_to_read(&file)?, arguments, terminal)
        }
    }
}

/// The file to use: the given one, the one that the project names, or the default.
pub(crate) fn file(named: Option<&Path>, project: Option<&Path>) -> Result<PathBuf, Stop> {
    if let Some(named) = named {
        return Ok(named.to_owned());
    }
    Ok(project::history(project)?.place())
}

/// A document to add.
pub(crate) fn document(path: &Path) -> Result<Document, Stop> {
    let limits = Limits::default();
    if path != Path::new("-") {
        return Ok(Document::read(path, &input::read_bytes(path, &limits)?)?);
    }
    let bytes = input::read_stream("(stdin)", std::io::stdin(), &limits)?;
    Ok(Document::read(Path::new("(stdin)"), &bytes)?)
}

fn add(file: &Path, arguments: &HistoryAddArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    // Every file is read before the first is added: one that is not a report adds nothing and creates no history.
    let documents: Vec<Document> =
        arguments.reports.iter().map(|path| document(path)).collect::<Result<_, _>>()?;
    let mut store = Store::open_or_create(file)?;
    let mut lines = Vec::new();
    for (name, document) in arguments.reports.iter().zip(&documents) {
        lines.push((name, store.add(document)?));
    }
    if terminal.json() {
        let added = lines.iter().map(|(name, added)| match added {
            Added::New(run) => json!({"report": name, "run": run, "new": true}),
            Added::Known(run) => json!({"report": name, "run": run, "new": false}),
        });
        let added: Vec<_> = added.collect();
        terminal.print_json(&json!({"schema": "karat.history.add/1", "added": added}))?;
        return Ok(Exit::Pass);
    }
    for (name, added) in lines {
        let name = name.to_string_lossy();
        terminal.print(&match added {
            Added::New(run) => format!("{}: added as run {run}\n", printable(&name)),
            Added::Known(run) => {
                format!("{}: already added as run {run}; nothing changed\n", printable(&name))
            }
        })?;
    }
    Ok(Exit::Pass)
}

fn list(store: &Store, arguments: &HistoryListArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let mut runs = store.runs()?;
    if let Some(wanted) = &arguments.evaluation {
        let known = runs.iter().flat_map(|run| &run.entries);
        check_known(wanted, known.flat_map(|one| [one.evaluation.as_str(), &one.name]), |_| {
            runs.iter().flat_map(|run| &run.entries).any(|one| one.matches(wanted))
        })?;
        runs.retain(|run| run.entries.iter().any(|subject| subject.matches(wanted)));
    }
    if terminal.json() {
        terminal.print_json(&json!({"schema": "karat.history.list/1", "runs": runs}))?;
    } else {
        terminal.print(&text::list(&runs))?;
    }
    Ok(Exit::Pass)
}

/// An error with the nearest known name.
fn check_known<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    is_known: impl Fn(&str) -> bool,
) -> Result<(), Stop> {
    if is_known(wanted) {
        return Ok(());
    }
    let hint = nearest(wanted, names).map_or_else(
        || "`karat history list` shows the runs".to_owned(),
        |name| format!("did you mean {name}?"),
    );
    Err(Stop::bad_input(format!("the history has no {wanted:?}; {hint}")))
}

fn show(store: &Store, arguments: &HistoryShowArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let what = arguments.what.as_str();
    let metrics = store.metrics()?;
    let subjects = store.subjects()?;
    let names = || subjects.iter().flat_map(|one| [one.evaluation.as_str(), &one.name]);
    if let Some(wanted) = &arguments.evaluation {
        check_known(wanted, names(), |wanted| subjects.iter().any(|one| one.matches(wanted)))?;
    }
    let is_metric = metrics.iter().any(|metric| metric == what);
    check_known(what, names().chain(metrics.iter().map(String::as_str)), |_| {
        is_metric || subjects.iter().any(|one| one.matches(what))
    })?;
    let meant = subjects.iter().filter(|subject| {
        arguments.evaluation.as_ref().is_none_or(|wanted| subject.matches(wanted))
            && (is_metric || subject.matches(what))
    });
    let mut followed: Vec<Vec<Entry>> = Vec::new();
    for subject in meant {
        followed.push(store.entries(Selection::Subject(subject.id, arguments.last))?);
    }
    let series = |metric: &str| -> Vec<Series<'_>> {
        followed.iter().flat_map(|entries| series::of(entries, metric)).collect()
    };
    if terminal.json() {
        let all: Vec<Series<'_>> = match is_metric {
            true => series(what),
            false => metrics.iter().flat_map(|metric| series(metric)).collect(),
        };
        terminal.print_json(&json!({"schema": "karat.history.show/1", "series": all}))?;
    } else if is_metric {
        terminal.print(&text::metric(&series(what)))?;
    } else {
        for entries in &followed {
            terminal.print(&text::subject(&entries.iter().collect::<Vec<_>>()))?;
        }
    }
    Ok(Exit::Pass)
}

fn compare_runs(
    store: &Store,
    arguments: &HistoryCompareArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let before = store.check(arguments.before)?.reports;
    let after = store.check(arguments.after)?.reports;
    compare::show(&before, &after, &compare::slices(&arguments.slice)?, None, terminal)
}

fn prune(
    store: &mut Store,
    arguments: &HistoryPruneArgs,
    terminal: &Terminal,
) -> Result<Exit, Stop> {
    let prune = match (arguments.keep, &arguments.older_than) {
        (Some(keep), _) => Prune::Keep(keep),
        (None, older) => older_than(older.as_deref().unwrap_or_default())?,
    };
    let gone = store.prunable(&prune)?;
    if !arguments.dry_run && !gone.is_empty() {
        store.remove(&gone)?;
    }
    if terminal.json() {
        let runs: Vec<i64> = gone.iter().map(|run| run.id).collect();
        let document =
            json!({"schema": "karat.history.prune/1", "removed": !arguments.dry_run, "runs": runs});
        terminal.print_json(&document)?;
        return Ok(Exit::Pass);
    }
    let verb = if arguments.dry_run { "would be deleted" } else { "deleted" };
    let summary = match gone.as_slice() {
        [] => "no runs are that old; none deleted\n".to_owned(),
        [Run { id, .. }] => format!("run {id} {verb}\n"),
        [Run { id: first, .. }, .., Run { id: last, .. }] => {
            format!("{} runs {verb}, from run {first} to run {last}\n", gone.len())
        }
    };
    terminal.print(&summary)?;
    Ok(Exit::Pass)
}

/// `2026-08-01`, or `90d`.
fn older_than(text: &str) -> Result<Prune, Stop> {
    if let Some(days) = text.strip_suffix('d').and_then(|days| days.parse().ok()) {
        let now = Stopwatch::start().environment(&[], None).started;
        return Ok(Prune::Days { days, now });
    }
    if is_day(text) {
        return Ok(Prune::Before(text.to_owned()));
    }
    Err(Stop::bad_input(format!(
        "--older-than {text:?}: expected a day such as 2026-08-01, or a number of days such as 90d"
    )))
}

fn site(store: &Store, arguments: &HistorySiteArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let pages = karat_history::site::write(store, &arguments.folder, arguments.reports)
        .map_err(Stop::bad_input)?;
    let index = arguments.folder.join("index.html");
    if terminal.json() {
        terminal.print_json(&json!({"schema": "karat.history.site/1", "pages": pages}))?;
        return Ok(Exit::Pass);
    }
    terminal.print(&format!("{}: {}\n", count(pages, "page"), index.display()))?;
    Ok(Exit::Pass)
}

fn export(store: &Store, arguments: &HistoryExportArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if let Some(path) = &arguments.parquet {
        let runs = parquet::export(store, arguments.run, path)?;
        if terminal.json() {
            terminal.print_json(&json!({"schema": "karat.history.export/1", "runs": runs}))?;
        } else {
            terminal.print(&format!("metrics of {}: {}\n", count(runs, "run"), path.display()))?;
        }
        return Ok(Exit::Pass);
    }
    let run = arguments.run.ok_or_else(|| {
        Stop::bad_input("missing the number of a run; `karat history list` shows them")
    })?;
    let bytes = store.document(run)?;
    match &arguments.output {
        Some(path) => write_atomic(path, &bytes)?,
        None => terminal.print_json_text(&String::from_utf8_lossy(&bytes))?,
    }
    Ok(Exit::Pass)
}
