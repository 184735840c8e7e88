//! The one way in which Karat reads files, and the one way it writes them.
//!
//! Everything is bounded (bytes, line length, nesting, what aliases and compression expand to), and
//! every error names the file, the line and what to do. JSON, JSON Lines, YAML and TOML obey the
//! same rules: keys stand once, numbers are finite, unknown keys are errors with the nearest known
//! one. Nothing here knows what the files mean; types with `#[serde(deny_unknown_fields)]` do.
//!
//! The functions that take a `name` and bytes touch no file and are meant for fuzzing.

mod blocks;
mod comments;
mod error;
mod inspect;
mod json;
mod lines;
mod place;
mod source;
mod suggest;
mod toml;
mod write;
mod yaml;

use std::path::Path;

use serde::de::DeserializeOwned;

pub use self::blocks::{BlockError, Blocks, blocks};
pub use self::error::{InputError, name, shown};
pub use self::lines::{Lines, Records, lines, records};
pub use self::source::{decode, read_bytes, read_raw, read_text};
pub use self::suggest::nearest;
pub use self::toml::TomlTable;
pub use self::write::{WriteError, destination, write_atomic};

/// How much is read at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of a whole file, after decompression.
    pub bytes: u64,
    /// Bytes of one line, where files are read by lines.
    pub line_bytes: usize,
    /// Nested lists and objects. At most 256 whatever is set, so that the stack suffices; TOML
    /// stops at 80 within one value.
    pub depth: usize,
}

impl Limits {
    const DEEPEST: usize = 256;

    /// The default limits without one for the whole file: for journals, which are read line by line
    /// and kept nowhere.
    #[must_use]
    pub fn streaming() -> Self {
        Self { bytes: u64::MAX, ..Self::default() }
    }

    fn depth(&self) -> usize {
        self.depth.min(Self::DEEPEST)
    }
}

impl Default for Limits {
    /// 256 MiB for a document, 16 MiB for a line, 128 levels.
    fn default() -> Self {
        Self { bytes: 256 << 20, line_bytes: 16 << 20, depth: 128 }
    }
}

/// What a file holds.
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
    /// The format that a file name stands for. A last `.gz`, `.zst` or `.zstd` does not count.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let extension = |path: &Path| path.extension()?.to_str().map(str::to_ascii_lowercase);
        let mut ending = extension(path)?;
        if ["gz", "zst", "zstd"].contains(&ending.as_str()) {
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
}

/// Reads a file into a type; the format comes from the file name.
///
/// A `.jsonl` file is a list: load it as `Vec<T>`.
///
/// # Errors
/// Any [`InputError`] except [`InputError::Invalid`] and [`InputError::NewerSchema`].
pub fn load<T: DeserializeOwned + Send>(path: &Path, limits: &Limits) -> Result<T, InputError> {
    let (text, format) = text_and_format(path, limits)?;
    parse_with(path, &text, format, limits)
}

fn text_and_format(path: &Path, limits: &Limits) -> Result<(String, Format), InputError> {
    match Format::of(path) {
        Some(format) => Ok((read_text(path, limits)?, format)),
        // A wrong name is the news only if there is such a file.
        None if path.exists() => Err(InputError::UnknownFormat { path: path.to_owned() }),
        None => Err(InputError::NotFound { path: path.to_owned() }),
    }
}

/// Reads a file that says in `schema` what it is, such as `karat.report/1`.
///
/// The version is looked at before anything else, so that a file of a later Karat is reported as
/// such and not as one with unknown keys.
///
/// # Errors
/// As [`load`], [`InputError::NewerSchema`] for a later version, and [`InputError::Invalid`] for
/// another kind of file.
pub fn load_versioned<T: DeserializeOwned + Send>(
    path: &Path,
    limits: &Limits,
    supported: &str,
) -> Result<T, InputError> {
    #[derive(serde::Deserialize)]
    struct Head {
        schema: Option<String>,
    }
    let (text, format) = text_and_format(path, limits)?;
    let head: Head = parse_with(path, &text, format, limits)?;
    check_schema(path, head.schema.as_deref(), supported)?;
    parse_with(path, &text, format, limits)
}

/// Compares what a file says it is (`name/version`) with what is supported.
///
/// # Errors
/// [`InputError::NewerSchema`] for a later version of the same name, [`InputError::Invalid`] for
/// anything else that is not the supported version or an earlier one.
pub fn check_schema(path: &Path, found: Option<&str>, supported: &str) -> Result<(), InputError> {
    fn parts(schema: &str) -> Option<(&str, u32)> {
        let (name, version) = schema.rsplit_once('/')?;
        Some((name, version.parse().ok()?))
    }
    let Some(found) = found else {
        let message = format!("missing; expected `{supported}`");
        return Err(InputError::invalid(path, "schema", message));
    };
    match (parts(found), parts(supported)) {
        (Some((is, version)), Some((should, newest))) if is == should && version <= newest => {
            Ok(())
        }
        (Some((is, _)), Some((should, _))) if is == should => Err(InputError::NewerSchema {
            path: path.to_owned(),
            found: found.to_owned(),
            supported: supported.to_owned(),
        }),
        _ => {
            let message = format!("this is `{found}`; expected `{supported}`");
            Err(InputError::invalid(path, "schema", message))
        }
    }
}

/// Makes a type of text that was read, within the default depth.
///
/// # Errors
/// When the text breaks the rules of the format or does not fit the type.
pub fn parse<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
    format: Format,
) -> Result<T, InputError> {
    parse_with(path, text, format, &Limits::default())
}

/// As [`parse`], with limits of the caller's.
///
/// # Errors
/// As [`parse`].
pub fn parse_with<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
    format: Format,
    limits: &Limits,
) -> Result<T, InputError> {
    let limits = &Limits { depth: limits.depth(), ..*limits };
    let parsed = match format {
        Format::Json => json::parse(text, limits.depth),
        Format::JsonLines => json::parse_lines(text, limits.depth, limits.line_bytes),
        Format::Yaml => yaml::parse(text, limits),
        Format::Toml => toml::parse(text, limits.depth),
    };
    parsed.map_err(|fault| fault.at(path))
}

/// Reads text as JSON that may have comments and trailing commas, as the files of editors do.
///
/// # Errors
/// As [`load`].
pub fn parse_json_with_comments<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
) -> Result<T, InputError> {
    parse(path, &comments::without_comments(text), Format::Json)
}

/// Reads bytes (plain, gzip or zstd) as JSON.
///
/// # Errors
/// As [`load`].
pub fn parse_json<T: DeserializeOwned + Send>(name: &str, bytes: &[u8]) -> Result<T, InputError> {
    parse_bytes(name, bytes, Format::Json, &Limits::default())
}

/// Reads bytes (plain, gzip or zstd) as JSON Lines.
///
/// # Errors
/// As [`load`].
pub fn parse_json_lines<T: DeserializeOwned + Send>(
    name: &str,
    bytes: &[u8],
) -> Result<T, InputError> {
    parse_bytes(name, bytes, Format::JsonLines, &Limits::default())
}

/// Reads bytes (plain, gzip or zstd) as YAML.
///
/// # Errors
/// As [`load`].
pub fn parse_yaml<T: DeserializeOwned + Send>(name: &str, bytes: &[u8]) -> Result<T, InputError> {
    parse_bytes(name, bytes, Format::Yaml, &Limits::default())
}

/// Reads bytes (plain, gzip or zstd) as TOML.
///
/// # Errors
/// As [`load`].
pub fn parse_toml<T: DeserializeOwned + Send>(name: &str, bytes: &[u8]) -> Result<T, InputError> {
    parse_bytes(name, bytes, Format::Toml, &Limits::default())
}

/// Reads bytes (plain, gzip or zstd) in a given format within given limits.
///
/// # Errors
/// As [`load`].
pub fn parse_bytes<T: DeserializeOwned + Send>(
    name: &str,
    bytes: &[u8],
    format: Format,
    limits: &Limits,
) -> Result<T, InputError> {
    parse_with(Path::new(name), &decode(name, bytes, limits)?, format, limits)
}
