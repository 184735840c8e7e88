//! `karat server lint`: the tool definitions of a server, judged without a call.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::Path;

use karat_core::finding::{Finding, Severity};
use karat_io::input::{self, Limits, write_atomic};
use karat_io::text::{count, printable};
use karat_mcp::{Options, Redactor, ServerSpec, Session};
use karat_report::sarif;
use karat_server::lint::{self, Outcome, Settings};
use serde_json::Value;

use super::recording::Recording;
use super::{detectors, probing, target};
use crate::cli::{FailOn, LintArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;
use crate::work::until_stopped;

/// The number of findings of one rule on one tool that become one line.
const FOLDED: usize = 3;

/// Lints a server or a file of definitions.
pub(crate) fn lint(arguments: &LintArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    if arguments.findings.rules {
        terminal.print(&probing::rules(&detectors::rules()))?;
        return Ok(Exit::Pass);
    }
    check_allowed(&arguments.findings.allow)?;
    let (source, outcome) = match &arguments.tools {
        Some(path) => {
            target::refuse_options(&arguments.target)?;
            (path.display().to_string(), of_file(path, &arguments.findings.allow)?)
        }
        None => {
            let spec = target::spec(&arguments.target, terminal)?.ok_or_else(|| {
                Stop::bad_input(
                    "missing server: pass a command after `--`, --url, --server NAME, or --tools FILE",
                )
            })?;
            let recording = Recording::begin(&arguments.record)?;
            let options = Options {
                recorder: recording.recorder(),
                start_timeout: arguments.start_timeout.0,
                ..Options::default()
            };
            let outcome = of_server(&spec, &arguments.findings.allow, &options, terminal);
            (spec.describe(), recording.finish(outcome)?)
        }
    };
    if let Some(path) = &arguments.findings.sarif {
        write_atomic(
            path,
            sarif::document(&probing::log(&detectors::rules(), &outcome.findings)).as_bytes(),
        )?;
    }
    if terminal.json() {
        terminal.print_json(&outcome)?;
    } else {
        terminal.print(&text(&source, &outcome))?;
    }
    Ok(exit(&outcome, arguments.findings.fail_on))
}

/// The parts of a server that models read.
#[derive(Default)]
pub(super) struct Served {
    pub(super) tools: Vec<Value>,
    pub(super) instructions: Option<String>,
    pub(super) redactor: Redactor,
}

pub(super) fn check_allowed(allow: &[String]) -> Result<(), Stop> {
    let rules = detectors::rules();
    let Some(id) = allow.iter().find(|id| rules.iter().all(|rule| rule.id != **id)) else {
        return Ok(());
    };
    let near = input::nearest(id, rules.iter().map(|rule| rule.id));
    let hint = near.map(|near| format!(" (did you mean {near:?}?)")).unwrap_or_default();
    Err(Stop::bad_input(format!("--allow: unknown rule {id:?}{hint}; --rules lists all")))
}

/// Lints a file of definitions.
pub(crate) fn of_file(path: &Path, allow: &[String]) -> Result<Outcome, Stop> {
    let served = Served { tools: from_file(path)?, ..Served::default() };
    judge(&path.display().to_string(), &served, allow)
}

/// Lints a live server.
fn of_server(
    spec: &ServerSpec,
    allow: &[String],
    options: &Options,
    terminal: &Terminal,
) -> Result<Outcome, Stop> {
    check_allowed(allow)?;
    let served = from_server(spec, options)?;
    target::say_remarks(terminal, options);
    judge(&spec.describe(), &served, allow)
}

fn judge(source: &str, served: &Served, allow: &[String]) -> Result<Outcome, Stop> {
    if served.tools.is_empty() {
        return Err(Stop::not_measured(format!("{source} offers no tools to check")));
    }
    Ok(judged(served, allow))
}

/// Checks the definitions of a server; without tools, its instructions.
pub(super) fn judged(served: &Served, allow: &[String]) -> Outcome {
    let settings = Settings {
        count_tokens: &karat_core::tokens::count,
        allow,
        detector: Some(detectors::inspect),
        instructions: served.instructions.as_deref(),
    };
    let mut outcome = lint::lint(&served.tools, &settings);
    hide(&mut outcome, &served.redactor);
    outcome
}

/// Checks the definitions as served, and shows them without secrets.
fn hide(outcome: &mut Outcome, redactor: &Redactor) {
    let findings = outcome.findings.iter_mut();
    let texts = findings.flat_map(|found| [&mut found.tool, &mut found.at, &mut found.message]);
    let names = outcome.costs.iter_mut().map(|cost| &mut cost.tool);
    let others = outcome
        .tdqs
        .iter_mut()
        .flat_map(|one| std::iter::once(&mut one.tool).chain(one.shadowed_by.as_mut()));
    for text in texts.chain(names).chain(others) {
        *text = redactor.hidden(std::mem::take(text));
    }
}

fn exit(outcome: &Outcome, fail_on: FailOn) -> Exit {
    let fails = |severity| karat_server::probe::FailOn::from(fail_on).fails(severity);
    if outcome.worst().is_some_and(fails) { Exit::GateFailed } else { Exit::Pass }
}

/// The tools of a list, or of an answer to tools/list.
pub(super) fn from_file(path: &Path) -> Result<Vec<Value>, Stop> {
    listed(path, &input::load(path, &Limits::default())?)
}

/// The tools in the content of a file.
pub(super) fn listed(path: &Path, value: &Value) -> Result<Vec<Value>, Stop> {
    let list = value.pointer("/result/tools").or_else(|| value.get("tools")).unwrap_or(value);
    match list {
        Value::Array(tools) => Ok(tools.clone()),
        _ => Err(Stop::bad_input(format!(
            "{}: not a list of tools or an answer to tools/list",
            path.display()
        ))),
    }
}

/// Asks a server.
pub(super) fn from_server(spec: &ServerSpec, options: &Options) -> Result<Served, Stop> {
    let listing = async {
        let session = Session::start(spec, options).await.map_err(target::not_started)?;
        let tools = session.tools().await.map_err(Stop::not_measured)?;
        let redactor = session.redactor().clone();
        let instructions = session.server().instructions.clone();
        session.close().await;
        let tools = tools.into_iter().map(karat_mcp::Definition::into_raw).collect();
        Ok(Served { tools, instructions, redactor })
    };
    until_stopped(listing, "interrupted")
}

/// The findings, tool by tool, then their totals.
fn text(source: &str, outcome: &Outcome) -> String {
    let mut out = String::new();
    let mut tool: Option<&str> = None;
    // One line for all parameters of a tool with the same problem.
    let kind = |finding: &Finding| (finding.tool.clone(), finding.rule.clone());
    let mut alike: HashMap<(String, String), usize> = HashMap::new();
    outcome.findings.iter().for_each(|finding| *alike.entry(kind(finding)).or_default() += 1);
    for finding in &outcome.findings {
        if tool != Some(finding.tool.as_str()) {
            let name = if finding.tool.is_empty() { "(the server)" } else { &finding.tool };
            let _ = writeln!(out, "{}", printable(name));
            tool = Some(&finding.tool);
        }
        let Finding { rule, severity, message, .. } = finding;
        let message = match alike.get_mut(&kind(finding)) {
            // They are counted in the line of the first one.
            Some(0) => continue,
            Some(count @ FOLDED..) => {
                format!("{message} and {} more", std::mem::take(count) - 1)
            }
            Some(_) | None => message.clone(),
        };
        let _ = writeln!(out, "  {:<8}{}  [{rule}]", severity.name(), printable(&message));
    }
    if !outcome.findings.is_empty() {
        out.push('\n');
    }
    let of =
        |severity: Severity| outcome.findings.iter().filter(|f| f.severity == severity).count();
    let _ = writeln!(
        out,
        "{}: {}, {}; {}",
        printable(source),
        count(outcome.tools, "tool"),
        count(outcome.tokens, "token"),
        probing::tally(of)
    );
    let mut costly: Vec<&lint::Cost> = outcome.costs.iter().collect();
    costly.sort_by(|a, b| b.tokens.cmp(&a.tokens).then_with(|| a.tool.cmp(&b.tool)));
    let named: Vec<String> = costly
        .iter()
        .take(3)
        .map(|cost| format!("{} {}", printable(&cost.tool), cost.tokens))
        .collect();
    let _ = writeln!(out, "most tokens: {}", named.join(", "));
    out
}
