//! Tool definitions as servers offer them, and the input of a scanner.

use serde::{Deserialize, Serialize};

pub use karat_core::tool::Definition as Tool;

/// Another tool that is connected at the same time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Peer {
    /// The server that offers it.
    #[serde(default)]
    pub server: String,
    /// The tool.
    pub tool: Tool,
}

/// The input of a scanner: everything that a client would see, without the label.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ScanInput {
    /// The id of the entry.
    pub id: String,
    /// The definition under test.
    pub tool: Tool,
    /// The server that offers it.
    pub server: String,
    /// Other tools that are connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// The definition as it was first approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Tool>,
    /// The result of a call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The instructions of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
}

impl ScanInput {
    /// A definition without server, peers and results.
    pub fn of_tool(tool: Tool) -> ScanInput {
        ScanInput { tool, ..ScanInput::default() }
    }
}
