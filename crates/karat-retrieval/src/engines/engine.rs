//! The interface of every search engine.

use std::collections::BTreeMap;

use crate::ranking::Ranked;

/// Ranks the tools of a corpus for a query.
pub trait Engine: Send + Sync {
    /// The best tools, best first; equal scores by id.
    fn search(&self, query: &str, limit: usize) -> Vec<Ranked>;

    /// Further settings for the report, such as the digest of its weights.
    fn settings(&self) -> BTreeMap<String, String> {
        BTreeMap::new()
    }
}
