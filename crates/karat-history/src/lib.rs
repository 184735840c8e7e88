//! Reports over time: a store in one file, and pages over it.
//!
//! [`Store`] keeps reports as they were written, with their numbers in tables, so that a metric can be
//! followed from run to run. [`series`] puts the numbers in order and [`text`] shows them in a
//! terminal; [`serve`] shows them in a browser on this machine, and [`site`] writes the same pages as files. Nothing here measures or judges, and
//! nothing leaves the machine.

mod chart;
mod document;
mod error;
mod model;
pub mod pages;
pub mod series;
pub mod serve;
pub mod site;
mod store;
pub mod text;

pub use document::Document;
pub use error::HistoryError;
pub use model::{Entry, Run, State, Subject, Value};
pub use store::{Added, Prune, Selection, Store};

/// The default name of a history.
pub const FILE: &str = "karat-history.sqlite";
