//! A query and the tools that a search returned for it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One query as it was answered in the first run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Ranking {
    /// The text of the query.
    pub query: String,
    /// The rank of the first relevant tool, from 1; none if it was not returned.
    #[serde(default)]
    pub first_right: Option<usize>,
    /// The tools above the first relevant one, or all of them if there is none.
    #[serde(default)]
    pub outranked_by: Vec<String>,
    /// Relevant tools that were not returned.
    #[serde(default)]
    pub missed: Vec<String>,
    /// The tools that were returned, best first; none if the query was not answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ranked: Option<Vec<RankedTool>>,
}

/// One tool of a ranking.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RankedTool {
    /// The tool.
    pub tool_id: String,
    /// Its score, if the system gives one.
    #[serde(default)]
    pub score: Option<f64>,
    /// Its label: 0 is a hard negative, absent is not judged.
    #[serde(default)]
    pub relevance: Option<u8>,
}
