//! A second or a step of a load.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One stretch of a load.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Load {
    /// A step of the search for the highest load.
    Step {
        /// Calls at once, or calls per second.
        load: f64,
        /// True if the condition holds under it.
        holds: bool,
        /// The reason if it does not.
        why_not: Option<String>,
    },
    /// A second of the measurement.
    Second {
        /// Calls that ended as they should.
        ok: u64,
        /// Calls that did not.
        errors: u64,
    },
}
