//! Versions of datasets: `v1`, `v2` and so on.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The version of a dataset: `v1`, `v2` and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Version(u32);

impl Version {
    /// The version with a number; 0 becomes 1, the first.
    #[must_use]
    pub fn new(number: u32) -> Self {
        Self(number.max(1))
    }

    /// The one after it.
    #[must_use]
    pub fn next(self) -> Self {
        Self(self.0.saturating_add(1))
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "v{}", self.0)
    }
}

/// A text that is not a version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a version; expected v1, v2 and so on")]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let version = text.strip_prefix('v').and_then(|number| number.parse().ok()).map(Self);
        // `v01` and `v+1` would be second names of the same version.
        version.filter(|version| version.0 > 0 && version.to_string() == text).ok_or(NotAVersion)
    }
}

impl TryFrom<String> for Version {
    type Error = NotAVersion;

    fn try_from(text: String) -> Result<Self, NotAVersion> {
        text.parse()
    }
}

impl From<Version> for String {
    fn from(version: Version) -> Self {
        version.to_string()
    }
}
