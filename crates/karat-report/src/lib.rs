//! Renderers: a report goes in, text comes out. Nothing is computed here that is not in the report,
//! and everything that came from outside is escaped for where it goes.

pub mod badge;
pub mod findings;
pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod reference;
pub mod sarif;
pub mod score_report;
pub mod terminal;

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
    /// What was found, for code-scanning pages.
    Sarif,
    /// An endpoint badge for shields.io.
    Badge,
    /// mcpproxy's public score report.
    ScoreReport,
}

/// Which ending asks for which format; the first that fits counts.
const ENDINGS: [(&str, Output); 10] = [
    (".badge.json", Output::Badge),
    (".score-report.json", Output::ScoreReport),
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
    /// The format that a file name asks for.
    pub fn of(path: &Path) -> Result<Output, String> {
        let name = path.file_name().map(|name| name.to_string_lossy().to_lowercase());
        let name = name.unwrap_or_default();
        let known = ENDINGS.iter().find(|(ending, _)| name.ends_with(ending));
        known.map(|(_, output)| *output).ok_or_else(|| {
            format!(
                "{}: the ending says no known format; use .json, .html, .md, .xml (JUnit), .sarif, \
                 .badge.json (shields.io) or .score-report.json",
                path.display()
            )
        })
    }

    /// The document in this format.
    pub fn render(self, check: &CheckReport) -> Result<String, String> {
        match self {
            Output::Json => Ok(json::text(check)),
            Output::Html => html::page(check),
            Output::Markdown => Ok(markdown::summary(check)),
            Output::Junit => junit::xml(check),
            Output::Sarif => Ok(findings::sarif(check)),
            Output::Badge => Ok(badge::endpoint(check)),
            Output::ScoreReport => score_report::document(check),
        }
    }
}
