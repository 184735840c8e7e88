//! Search engines that run inside Karat.

pub mod bm25;
pub mod words;

use crate::dataset::Tool;
use crate::system::Ranked;

/// Ranks the tools of a corpus for a query.
pub trait Engine: Send + Sync {
    /// The best tools, best first; equal scores by id.
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked>;
}

/// What building an engine gives, or why it could not be built.
pub type Built = Result<Box<dyn Engine>, String>;

/// A built-in engine: its name, what it does, and how it is built.
pub struct Builtin {
    /// The name in `system = { builtin = "…" }`.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Indexes a corpus.
    pub build: fn(&[Tool]) -> Built,
}

/// All built-in engines; a new one is a file here and a line in this list.
pub const ENGINES: &[Builtin] = &[Builtin {
    name: "bm25",
    summary: "BM25 over name, title, description and schema text, with camelCase and snake_case split and English stemming",
    build: |tools| Ok(Box::new(bm25::Bm25::build(tools, bm25::Fields::All)?)),
}];

/// The engine of this name.
pub fn find(name: &str) -> Option<&'static Builtin> {
    ENGINES.iter().find(|engine| engine.name == name)
}
