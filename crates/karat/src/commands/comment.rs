//! `karat comment`: a report as the comment of a pull or merge request.

use karat_core::report::{load_reports, parse_check};
use karat_io::input::{Limits, read_text};
use serde_json::json;

use crate::cli::CommentArgs;
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Prints the comment for a report that `karat check` wrote.
pub(crate) fn run(arguments: &CommentArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let text = read_text(&arguments.report, &Limits::default())?;
    let check = parse_check(&arguments.report, &text)?;
    let base = arguments.base.as_deref().map(load_reports).transpose()?;
    let text = karat_report::comment::text(&check, base.as_deref(), arguments.link.as_deref())
        .map_err(Stop::bad_input)?;
    match terminal.json() {
        true => terminal.print_json(&json!({"schema": "karat.comment/1", "text": text}))?,
        false => terminal.print(&text)?,
    }
    Ok(Exit::Pass)
}
