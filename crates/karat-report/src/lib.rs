//! Renderers: a report goes in, text comes out. Nothing is computed here that is not in the report,
//! and everything that came from outside is escaped for where it goes.

pub mod html;
pub mod json;
pub mod junit;
pub mod markdown;
pub mod reference;
pub mod sarif;
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
}

impl Output {
    /// The format that a file name asks for.
    pub fn of(path: &Path) -> Result<Output, String> {
        let extension =
            path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match extension.as_deref() {
            Some("json") => Ok(Output::Json),
            Some("html" | "htm") => Ok(Output::Html),
            Some("md" | "markdown") => Ok(Output::Markdown),
            Some("xml") => Ok(Output::Junit),
            _ => Err(format!(
                "{}: the ending says no known format; use .json, .html, .md or .xml (JUnit)",
                path.display()
            )),
        }
    }

    /// The document in this format.
    pub fn render(self, check: &CheckReport) -> Result<String, String> {
        match self {
            Output::Json => Ok(json::text(check)),
            Output::Html => html::page(check),
            Output::Markdown => Ok(markdown::summary(check)),
            Output::Junit => junit::xml(check),
        }
    }
}
