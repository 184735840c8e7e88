//! The cost of a search answer in a model's context, in tokens (see [`karat_core::tokens`]).

use std::collections::HashMap;

use karat_core::tokens::count;
use serde_json::json;

use crate::dataset::Tool;
use crate::ranking::Ranked;

/// The tokens of each definition of a corpus: for engines that answer with ids alone.
pub struct Definitions(HashMap<String, u64>);

impl Definitions {
    /// Counts every tool once.
    pub(crate) fn count(tools: &[Tool]) -> Definitions {
        Definitions(
            tools.iter().map(|tool| (tool.tool_id.clone(), count(&definition(tool)))).collect(),
        )
    }

    /// The cost of putting these definitions into a context.
    pub(crate) fn of(&self, ranked: &[Ranked]) -> u64 {
        ranked.iter().filter_map(|ranked| self.0.get(&ranked.tool_id)).sum()
    }
}

/// A tool as a search would hand it to a model.
fn definition(tool: &Tool) -> String {
    json!({
        "name": tool.tool_id,
        "description": tool.description,
        "inputSchema": tool.input_schema,
    })
    .to_string()
}
