//! `karat agent suggest`: tasks proposed from recorded traces.

use std::fmt::Write as _;

use karat_agent::suggest;
use karat_agent::traces::Config;
use karat_io::input::write_atomic;
use karat_io::text::count;
use serde_json::json;

use super::{config, here};
use crate::cli::AgentSuggestArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Writes the proposals, if there are any.
pub(crate) fn suggest(arguments: &AgentSuggestArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let config = Config { traces: arguments.traces.clone(), ..config(&arguments.read)? };
    let traces = config.whole_traces(&here())?.traces;
    let found = suggest::suggest(&traces);
    let left_out: Vec<String> =
        found.left_out.iter().map(|(reason, count)| format!("{count}: {reason}")).collect();
    if found.tasks.is_empty() {
        return Err(Stop::not_measured(format!(
            "no task can be proposed from {} ({})",
            count(traces.len(), "trace"),
            left_out.join("; ")
        )));
    }
    let mut lines = String::new();
    for task in &found.tasks {
        let _ = writeln!(lines, "{task}");
    }
    write_atomic(&arguments.output, lines.as_bytes())?;
    let path = arguments.output.display();
    if terminal.json() {
        terminal.print_json(&json!({
            "tasks": found.tasks.len(),
            "traces": traces.len(),
            "left_out": found.left_out,
            "replaced": found.replaced,
            "file": path.to_string(),
        }))?;
        return Ok(Exit::Pass);
    }
    let mut text = format!(
        "{} from {}: {path}\n",
        count(found.tasks.len(), "task"),
        count(traces.len(), "trace")
    );
    if !left_out.is_empty() {
        let _ = writeln!(text, "skipped: {}", left_out.join("; "));
    }
    let _ = writeln!(
        text,
        "{} replaced (addresses, numbers, secrets; names of people are not recognized)",
        count(found.replaced, "value")
    );
    text.push_str(
        "review each task before it gates anything: it records what an agent did, which may be wrong\n",
    );
    terminal.print(&text)?;
    Ok(Exit::Pass)
}
