//! The pages of the dashboard: a history goes in, HTML comes out, the same bytes for the same history.
//!
//! Addresses have numbers only, so no name from a report is ever part of one, except the ids of items
//! behind `#`, which are percent-encoded. Names are made printable and escaped by the templates.

mod compare;
mod error;
mod marks;
mod view;

pub use error::PageError;

use std::path::Path;

use karat_report::html;
use minijinja::value::{Serde, Value};
use minijinja::{Environment, context};
use serde::Serialize;

use crate::document;
use crate::store::Store;

const TEMPLATES: [(&str, &str); 9] = [
    ("parts.html", include_str!("../../assets/parts.html")),
    ("layout.html", include_str!("../../assets/layout.html")),
    ("overview.html", include_str!("../../assets/overview.html")),
    ("subject.html", include_str!("../../assets/subject.html")),
    ("metric.html", include_str!("../../assets/metric.html")),
    ("runs.html", include_str!("../../assets/runs.html")),
    ("run.html", include_str!("../../assets/run.html")),
    ("compare.html", include_str!("../../assets/compare.html")),
    ("message.html", include_str!("../../assets/message.html")),
];

/// The script of the pages.
pub(crate) const SCRIPT: &str = include_str!("../../assets/dashboard.js");

/// The style of the pages: that of the report, and additions for the dashboard.
pub(crate) fn style() -> String {
    [html::style(), include_str!("../../assets/dashboard.css")].concat()
}

/// The templates, ready to be filled in.
pub struct Pages {
    environment: Environment<'static>,
    /// True if no server is behind the pages.
    files: bool,
}

impl Pages {
    /// Reads the templates.
    ///
    /// # Errors
    /// If one of them is not valid.
    pub fn new() -> Result<Pages, PageError> {
        let mut environment = html::environment()?;
        for (name, source) in TEMPLATES {
            environment.add_template(name, source)?;
        }
        Ok(Pages { environment, files: false })
    }

    /// As [`Pages::new`], for pages that are read without a server: they have no forms.
    ///
    /// # Errors
    /// As [`Pages::new`].
    pub(crate) fn for_files() -> Result<Pages, PageError> {
        Ok(Pages { files: true, ..Pages::new()? })
    }

    fn fill(
        &self,
        template: &str,
        title: &str,
        here: &str,
        page: &impl Serialize,
    ) -> Result<String, PageError> {
        let template = self.environment.get_template(template)?;
        Ok(template.render(context! {
            title => title,
            here => here,
            files => self.files,
            icons => Value::from(Serde(&html::ICONS)),
            page => Value::from(Serde(page)),
        })?)
    }

    /// A page with a message.
    ///
    /// # Errors
    /// If the template cannot be filled in.
    pub(crate) fn message(&self, title: &str, message: &str) -> Result<String, PageError> {
        Ok(self.environment.get_template("message.html")?.render(context! {
            title => title,
            here => "",
            files => self.files,
            icons => Value::from(Serde(&html::ICONS)),
            message => message,
        })?)
    }

    /// The latest results of all subjects.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn overview(&self, store: &Store) -> Result<String, PageError> {
        match view::overview(store)? {
            Some(page) => self.fill("overview.html", "Overview", "/", &page),
            None => self.message(
                "No run yet",
                "The history is empty. Add a report with `karat history add REPORT.json`, or run \
                 `karat check --history`.",
            ),
        }
    }

    /// Every metric of one subject, and its runs.
    ///
    /// # Errors
    /// If there is no such subject, or the history cannot be read.
    pub fn subject(&self, store: &Store, subject: i64) -> Result<String, PageError> {
        let page = view::subject(store, subject)?;
        self.fill("subject.html", &page.title(), "", &page)
    }

    /// One metric of one subject over time.
    ///
    /// # Errors
    /// If there is no such series, or the history cannot be read.
    pub fn metric(&self, store: &Store, subject: i64, metric: i64) -> Result<String, PageError> {
        let page = view::metric(store, subject, metric)?;
        self.fill("metric.html", &page.title(), "", &page)
    }

    /// The runs, the latest first.
    ///
    /// # Errors
    /// If the history cannot be read.
    pub fn runs(&self, store: &Store) -> Result<String, PageError> {
        self.fill("runs.html", "Runs", "/runs", &view::runs(store)?)
    }

    /// One run with its numbers.
    ///
    /// # Errors
    /// If there is no such run, or the history cannot be read.
    pub fn run(&self, store: &Store, id: i64) -> Result<String, PageError> {
        self.fill("run.html", &format!("Run {id}"), "", &view::run(store, id)?)
    }

    /// The whole report of a run, from its document. It needs no access to the history, because it
    /// takes a while if there are many items.
    ///
    /// # Errors
    /// If the document cannot be read.
    pub fn report(&self, id: i64, document: &[u8]) -> Result<String, PageError> {
        let check = document::parse(Path::new(&format!("run {id}")), document)
            .map_err(|error| PageError::History(error.into()))?;
        let back = html::Back { name: format!("Run {id}"), target: format!("/runs/{id}") };
        html::served(&check, &back).map_err(PageError::Report)
    }

    /// A comparison of two runs; the form to choose them if none are given.
    ///
    /// # Errors
    /// If there is no such run, or the history cannot be read.
    pub fn compare(&self, store: &Store, runs: Option<(i64, i64)>) -> Result<String, PageError> {
        self.fill("compare.html", "Compare", "/compare", &compare::page(store, runs)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn style_and_script_stay_within_the_policy() {
        for word in
            ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", ".style"]
        {
            assert!(!SCRIPT.contains(word), "{word}");
        }
        for (name, template) in TEMPLATES {
            for word in ["|safe", " style=", "onclick", "onload", "<script>", "javascript:"] {
                assert!(!template.contains(word), "{name}: {word}");
            }
        }
        assert!(!style().contains("url(") && !style().contains("@import"));
    }
}
