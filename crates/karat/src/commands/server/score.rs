//! `karat server score`: the recorded answers of an earlier run, judged by the present suite.

use std::collections::BTreeMap;
use std::path::Path;

use karat_mcp::Definition;
use karat_server::recorded::{Definitions, Recorded};
use karat_server::suites::Config;

use super::{lint, test};
use crate::cli::{CheckArgs, ServerScoreArgs};
use crate::commands::check;
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Judges the answers. Every case must pass, as in a run.
pub(crate) fn score(arguments: &ServerScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if !(0.0..=1.0).contains(&arguments.max_errors) {
        return Err(Stop::bad_input("--max-errors must be between 0 and 1"));
    }
    let suite = test::suite_of(&arguments.suite)?;
    let definitions = arguments.tools.as_deref().map(definitions).transpose()?;
    let config = Config {
        suite: arguments.suite.clone(),
        tags: arguments.tag.clone(),
        case: arguments.case.clone(),
        ..Config::default()
    };
    let recorded =
        Recorded::load(suite, config, &arguments.journal, definitions, arguments.max_errors)?;
    let run = CheckArgs::writing(&arguments.out, &arguments.outputs).in_form(arguments.form);
    check::carry_out(&project::of_any(recorded), &run, terminal)
}

/// The definitions in a file; of two with one name the last one, as in a run.
fn definitions(path: &Path) -> Result<Definitions, Stop> {
    let mut tools = BTreeMap::new();
    for raw in lint::from_file(path)? {
        let tool = Definition::new(raw)
            .map_err(|error| Stop::bad_input(format!("{}: {error}", path.display())))?;
        tools.insert(tool.name().to_owned(), tool);
    }
    if tools.is_empty() {
        return Err(Stop::bad_input(format!("{}: no tools in the file", path.display())));
    }
    Ok(Definitions { path: path.to_owned(), tools: tools.into_values().collect() })
}
