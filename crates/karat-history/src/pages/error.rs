//! The errors of pages.

use crate::error::HistoryError;

/// The reason for which a page could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PageError {
    /// There is no such page.
    #[error("no such page")]
    NotFound,
    /// The history could not be read.
    #[error(transparent)]
    History(HistoryError),
    /// The template could not be filled in.
    #[error("cannot render the page: {0:#}")]
    Template(#[from] minijinja::Error),
    /// The report could not be rendered.
    #[error("{0}")]
    Report(String),
}

impl From<HistoryError> for PageError {
    fn from(error: HistoryError) -> PageError {
        match error {
            HistoryError::NoRun { .. } => PageError::NotFound,
            other => PageError::History(other),
        }
    }
}
