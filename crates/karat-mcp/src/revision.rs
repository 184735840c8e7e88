//! The revisions of the protocol.

use std::fmt;

use rmcp::model::ProtocolVersion;
use serde::{Deserialize, Serialize};

/// A revision of MCP. Up to 2025-11-25 a session begins with `initialize`; 2026-07-28 has no handshake, and
/// every request names its client.
///
/// ```
/// use karat_mcp::Revision;
///
/// assert_eq!(Revision::of("2025-06-18"), Some(Revision::V2025_06_18));
/// assert!(Revision::V2025_11_25.has_handshake());
/// ```
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub enum Revision {
    /// The first, with HTTP+SSE as its network transport.
    #[serde(rename = "2024-11-05")]
    V2024_11_05,
    /// Added streamable HTTP, annotations and batches.
    #[serde(rename = "2025-03-26")]
    V2025_03_26,
    /// Added structured content and elicitation, and removed batches.
    #[serde(rename = "2025-06-18")]
    V2025_06_18,
    /// The last with a handshake.
    #[default]
    #[serde(rename = "2025-11-25")]
    V2025_11_25,
    /// Without a handshake: `server/discover`, and metadata on each request.
    #[serde(rename = "2026-07-28")]
    V2026_07_28,
}

impl Revision {
    /// All revisions, the oldest first.
    pub const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];
    /// The newest revision with `initialize`.
    pub const NEWEST_WITH_HANDSHAKE: Revision = Revision::V2025_11_25;

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Revision::V2024_11_05 => "2024-11-05",
            Revision::V2025_03_26 => "2025-03-26",
            Revision::V2025_06_18 => "2025-06-18",
            Revision::V2025_11_25 => "2025-11-25",
            Revision::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this name.
    pub fn of(name: &str) -> Option<Revision> {
        Revision::ALL.into_iter().find(|revision| revision.name() == name)
    }

    /// True if a session begins with `initialize`.
    pub fn has_handshake(self) -> bool {
        self <= Revision::NEWEST_WITH_HANDSHAKE
    }

    pub(crate) fn sdk(self) -> ProtocolVersion {
        match self {
            Revision::V2024_11_05 => ProtocolVersion::V_2024_11_05,
            Revision::V2025_03_26 => ProtocolVersion::V_2025_03_26,
            Revision::V2025_06_18 => ProtocolVersion::V_2025_06_18,
            Revision::V2025_11_25 => ProtocolVersion::V_2025_11_25,
            Revision::V2026_07_28 => ProtocolVersion::V_2026_07_28,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_the_sdk_and_the_files() {
        for revision in Revision::ALL {
            assert_eq!(revision.sdk().as_str(), revision.name());
            assert_eq!(serde_json::to_value(revision).unwrap(), revision.name());
            assert_eq!(Revision::of(revision.name()), Some(revision));
        }
        assert_eq!(Revision::of("2099-01-01"), None);
    }
}
