//! Bounded reading of files, and atomic writing.
//!
//! Everything is bounded (bytes, line length, nesting, the expansion of aliases and compression), and every
//! error names the file, the line and the remedy. JSON, JSON Lines, YAML and TOML follow the same rules: no
//! duplicate keys, finite numbers, and unknown keys are errors with the nearest known one if the type has
//! `#[serde(deny_unknown_fields)]`.
//!
//! Whole files become types ([`load`]), text or bytes; large ones are read line by line ([`lines`],
//! [`records`]) or in blocks of lines ([`blocks`]). All of them read gzip, zstd and xz, recognized by their
//! first bytes, and drop a byte order mark.
//!
//! The functions that take a `name` and bytes touch no file and are meant for fuzzing.
//!
//! ```
//! use karat_io::input::{self, Format};
//! use serde::Deserialize;
//! use std::path::Path;
//!
//! #[derive(Debug, Deserialize)]
//! #[serde(deny_unknown_fields)]
//! struct Settings {
//!     timeout_ms: u64,
//! }
//!
//! let path = Path::new("settings.toml");
//! let settings: Settings = input::parse(path, "timeout_ms = 500", Format::Toml)?;
//! assert_eq!(settings.timeout_ms, 500);
//! let error = input::parse::<Settings>(path, "timeout = 500", Format::Toml).unwrap_err();
//! assert_eq!(error.to_string(), "settings.toml:1: unknown key `timeout`; did you mean `timeout_ms`?");
//! # Ok::<(), karat_io::input::InputError>(())
//! ```

mod archive;
mod blocks;
mod comments;
mod erased;
mod error;
mod format;
mod inspect;
mod json;
mod limits;
mod lines;
mod place;
mod source;
mod suggest;
mod temporary;
mod toml;
mod words;
mod write;
mod yaml;

use std::path::Path;

use serde::de::DeserializeOwned;

pub use self::archive::{Member, members};
pub use self::blocks::{BlockError, Blocks, blocks};
pub use self::error::{InputError, name, shown};
pub use self::format::Format;
pub use self::limits::Limits;
pub use self::lines::{Lines, Records, lines, records};
pub use self::source::{decode, open, read_bytes, read_raw, read_stream, read_text};
pub use self::suggest::nearest;
pub(crate) use self::temporary::Temporary;
pub use self::temporary::remove_unfinished;
pub use self::toml::TomlTable;
pub use self::words::plain;
pub use self::write::{
    WriteError, create_folder, destination, open_existing_for_writing, open_for_writing,
    refuse_links, write_atomic, write_atomic_with,
};

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
        // The extension only matters if the file exists.
        None if path.exists() => Err(InputError::UnknownFormat { path: path.to_owned() }),
        None => Err(InputError::NotFound { path: path.to_owned() }),
    }
}

/// Compares the schema of a file (`name/version`) with the supported one.
///
/// # Errors
/// [`InputError::NewerSchema`] for a later version, [`InputError::Invalid`] for another name.
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
        (Some((is, version)), Some((should, newest)))
            if is == should && (1..=newest).contains(&version) =>
        {
            Ok(())
        }
        (Some((is, 1..)), Some((should, _))) if is == should => Err(InputError::NewerSchema {
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

/// Parses text into a type, with the default limits.
///
/// # Errors
/// If the text is not valid in its format or does not fit the type.
pub fn parse<T: DeserializeOwned + Send>(
    path: &Path,
    text: &str,
    format: Format,
) -> Result<T, InputError> {
    parse_with(path, text, format, &Limits::default())
}

/// As [`parse`], with limits.
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

/// As [`parse`] for text that is known to be JSON.
///
/// [`parse`] compiles the readers of all formats for its type; a large type that only exists as JSON is
/// spared three of them.
///
/// # Errors
/// As [`parse`].
pub fn parse_json_text<T: DeserializeOwned>(path: &Path, text: &str) -> Result<T, InputError> {
    json::parse(text, Limits::default().depth()).map_err(|fault| fault.at(path))
}

/// Reads text as JSON that may have comments and trailing commas, as the files of editors do.
///
/// # Errors
/// As [`load`].
pub fn parse_json_with_comments<T: DeserializeOwned>(
    path: &Path,
    text: &str,
) -> Result<T, InputError> {
    parse_json_text(path, &comments::without_comments(text))
}

/// Reads bytes (plain, gzip or zstd) as JSON.
///
/// # Errors
/// As [`load`].
pub fn parse_json<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, InputError> {
    parse_json_text(Path::new(name), &decode(name, bytes, &Limits::default())?)
}

/// Reads bytes (plain, gzip or zstd) as JSON Lines.
///
/// # Errors
/// As [`load`].
pub fn parse_json_lines<T: DeserializeOwned>(name: &str, bytes: &[u8]) -> Result<T, InputError> {
    let limits = Limits::default();
    let text = decode(name, bytes, &limits)?;
    json::parse_lines(&text, limits.depth(), limits.line_bytes)
        .map_err(|fault| fault.at(Path::new(name)))
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
