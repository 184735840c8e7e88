//! File formats by extension.

use std::path::Path;

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON value.
    Json,
    /// One JSON value per line; together a list.
    JsonLines,
    /// One YAML document.
    Yaml,
    /// One TOML document.
    Toml,
}

impl Format {
    /// The format of a file by its extension. A final `.gz`, `.zst`, `.zstd` or `.xz` is ignored.
    ///
    /// ```
    /// use karat_io::input::Format;
    /// use std::path::Path;
    ///
    /// assert_eq!(Format::of(Path::new("log.jsonl.gz")), Some(Format::JsonLines));
    /// assert_eq!(Format::of(Path::new("notes.txt")), None);
    /// ```
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let extension = |path: &Path| path.extension()?.to_str().map(str::to_ascii_lowercase);
        let mut ending = extension(path)?;
        if ["gz", "zst", "zstd", "xz"].contains(&ending.as_str()) {
            ending = extension(Path::new(path.file_stem()?))?;
        }
        match ending.as_str() {
            "json" => Some(Self::Json),
            "jsonl" | "ndjson" => Some(Self::JsonLines),
            "yaml" | "yml" => Some(Self::Yaml),
            "toml" => Some(Self::Toml),
            _ => None,
        }
    }

    /// Returns whether text in this format is a list, as far as its beginning shows.
    ///
    /// ```
    /// use karat_io::input::Format;
    ///
    /// assert!(Format::Json.is_list(" [1]"));
    /// assert!(Format::Yaml.is_list("# Tools.\n---\n- name: a\n"));
    /// assert!(!Format::Yaml.is_list("tools:\n- name: a\n"));
    /// ```
    #[must_use]
    pub fn is_list(self, text: &str) -> bool {
        match self {
            Self::Json => text.trim_start().starts_with('['),
            Self::JsonLines => true,
            Self::Yaml => {
                let first = text.lines().map(content).find(|line| {
                    let blank = line.is_empty() || line.trim_end() == "---";
                    !blank && !line.starts_with(['#', '%'])
                });
                first.is_some_and(|line| {
                    line == "-" || line.starts_with("- ") || line.starts_with('[')
                })
            }
            Self::Toml => false,
        }
    }
}

/// A line of YAML without the mark that a document starts there.
fn content(line: &str) -> &str {
    line.strip_prefix("--- ").unwrap_or(line).trim_start()
}
