//! Renderers: a report goes in, text comes out.
//!
//! Nothing is computed here that is not in the report, and text from outside is escaped for the
//! format it goes into. Renderers read the types of [`karat_core::observed`]; a kind of report that
//! this build does not know is shown with its metrics, and its items as plain trees.

pub mod agent;
mod badge;
pub mod charts;
pub mod comment;
pub mod findings;
pub mod format;
pub mod html;
pub mod json;
mod junit;
mod markdown;
pub mod reference;
pub mod sarif;
mod score_report;
mod select;
pub mod terminal;

#[cfg(test)]
#[allow(dead_code, reason = "shared with the integration tests")]
#[path = "../tests/it/sample/mod.rs"]
mod sample;

use std::path::Path;

use karat_core::report::CheckReport;

/// A file format that a check can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// The whole document, for scripts.
    Json,
    /// One self-contained page, for people.
    Html,
    /// A summary for a pull request or a job page.
    Markdown,
    /// Test cases for a CI server.
    Junit,
    /// Findings, for code-scanning pages.
    Sarif,
    /// An endpoint badge for shields.io.
    Badge,
    /// A summary for a coding agent: failures and places to look.
    Agent,
    /// mcpproxy's public score report.
    ScoreReport,
}

/// The formats by file extension; the first that fits counts.
const EXTENSIONS: [(&str, Output); 12] = [
    (".badge.json", Output::Badge),
    (".score-report.json", Output::ScoreReport),
    (".agent.md", Output::Agent),
    (".agent.txt", Output::Agent),
    (".sarif.json", Output::Sarif),
    (".sarif", Output::Sarif),
    (".json", Output::Json),
    (".html", Output::Html),
    (".htm", Output::Html),
    (".md", Output::Markdown),
    (".markdown", Output::Markdown),
    (".xml", Output::Junit),
];

impl Output {
    /// The format for a file name.
    ///
    /// # Errors
    /// If the extension is not recognized.
    pub fn of(path: &Path) -> Result<Output, String> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let name = name.unwrap_or_default();
        let known = EXTENSIONS.iter().find(|(extension, _)| name.ends_with(extension));
        known.map(|(_, output)| *output).ok_or_else(|| {
            format!(
                "{}: unrecognized file extension; use .json, .html, .md, .xml (JUnit), .sarif, \
                 .agent.md, .badge.json (shields.io) or .score-report.json",
                path.display()
            )
        })
    }

    /// A check in this format.
    ///
    /// # Errors
    /// If the format cannot hold the check.
    pub fn render(self, check: &CheckReport) -> Result<String, String> {
        match self {
            Output::Json => Ok(json::text(check)),
            Output::Html => html::page(check),
            Output::Markdown => Ok(markdown::document(check)),
            Output::Junit => junit::xml(check),
            Output::Sarif => Ok(findings::sarif(check)),
            Output::Badge => Ok(badge::endpoint(check)),
            Output::Agent => Ok(agent::text(check, &[])),
            Output::ScoreReport => score_report::document(check),
        }
    }
}
