//! The earlier spellings of options. They work for one release, each with a hint, and no help, manual page or
//! completion shows them: only what clap refuses is looked up here, and then read as the present spelling.

use std::ffi::OsString;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Error, Parser as _};

use super::Cli;

/// An option that had another spelling.
struct Renamed {
    /// The command that had it; empty if every command that has the present one did.
    command: &'static str,
    earlier: &'static str,
    present: &'static str,
    /// The unit of its number, which the present value has to name.
    unit: &'static str,
}

const fn renamed(earlier: &'static str, present: &'static str, unit: &'static str) -> Renamed {
    Renamed { command: "", earlier, present, unit }
}

const fn of(command: &'static str, earlier: &'static str, present: &'static str) -> Renamed {
    Renamed { command, earlier, present, unit: "" }
}

const RENAMED: [Renamed; 16] = [
    renamed("--timeout-ms", "--timeout", "ms"),
    renamed("--start-timeout-ms", "--start-timeout", "ms"),
    renamed("--retry-pause-ms", "--backoff", "ms"),
    renamed("--retry-pause", "--backoff", ""),
    renamed("--max-p50", "--max-p50", "ms"),
    renamed("--max-seconds", "--agent-timeout", "s"),
    renamed("--max-time", "--agent-timeout", ""),
    renamed("--agent-seconds", "--agent-timeout", "s"),
    renamed("--parallel", "--concurrency", ""),
    renamed("--cases", "--inputs", ""),
    renamed("--max-bad", "--max-malformed", ""),
    renamed("--format", "--output-format", ""),
    of("retrieval serve-fitness", "--limit", "--results"),
    of("corpus lock", "--out", "--output"),
    of("corpus serve", "--out", "--output"),
    of("import", "--output", "--out"),
];

/// An earlier spelling that was used, and the present one.
pub(crate) struct Hint {
    pub(crate) earlier: String,
    pub(crate) present: String,
}

/// Parses the command line, in which options may have their earlier spelling.
///
/// # Errors
/// As clap reports them, about the words that were written.
pub(crate) fn parse(mut arguments: Vec<OsString>) -> Result<(Cli, Vec<Hint>), Error> {
    let mut hints = Vec::new();
    let mut refused = match Cli::try_parse_from(&arguments) {
        Ok(cli) => return Ok((cli, hints)),
        Err(refused) => refused,
    };
    // Each turn replaces one earlier spelling, so there are not more turns than words.
    while let Some((renamed, hint)) = renew(&mut arguments, &refused) {
        hints.push(hint);
        match Cli::try_parse_from(&arguments) {
            Ok(cli) => return Ok((cli, hints)),
            // The command has neither spelling.
            Err(error) if is_about(&error, ErrorKind::UnknownArgument, renamed.present) => break,
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

/// Replaces the option that was refused by its present spelling, if it is an earlier one.
fn renew(arguments: &mut [OsString], refused: &Error) -> Option<(&'static Renamed, Hint)> {
    let command = command(arguments);
    let renamed = RENAMED.iter().find(|renamed| {
        // With the same name as before, it is the value that is refused.
        let kind = match renamed.earlier == renamed.present {
            true => ErrorKind::ValueValidation,
            false => ErrorKind::UnknownArgument,
        };
        (renamed.command.is_empty() || renamed.command == command)
            && is_about(refused, kind, renamed.earlier)
    })?;
    let at = arguments.iter().take_while(|word| *word != "--").position(|word| {
        let rest = word.to_str().and_then(|word| word.strip_prefix(renamed.earlier));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
    })?;
    let word = arguments[at].to_str()?.to_owned();
    let joined = word.split_once('=').map(|(_, value)| value);
    let next = arguments.get(at + 1).and_then(|word| word.to_str());
    // The number, which is the only value that is shown.
    let number = joined.or(next).filter(|value| value.parse::<f64>().is_ok());
    let number = number.filter(|_| !renamed.unit.is_empty()).map(str::to_owned);
    if number.is_none() && renamed.earlier == renamed.present {
        return None;
    }
    let with_unit = number.as_ref().map(|number| format!("{number}{}", renamed.unit));
    let hint = Hint {
        earlier: with_value(renamed.earlier, number.as_deref()),
        present: with_value(renamed.present, with_unit.as_deref()),
    };
    match (joined, with_unit) {
        (Some(value), with_unit) => {
            let value = with_unit.unwrap_or_else(|| value.to_owned());
            arguments[at] = format!("{}={value}", renamed.present).into();
        }
        (None, with_unit) => {
            arguments[at] = renamed.present.into();
            if let Some(value) = with_unit {
                arguments[at + 1] = value.into();
            }
        }
    }
    Some((renamed, hint))
}

fn with_value(option: &str, value: Option<&str>) -> String {
    value.map_or_else(|| option.to_owned(), |value| format!("{option} {value}"))
}

/// Returns whether an error is of this kind and about this option.
fn is_about(error: &Error, kind: ErrorKind, option: &str) -> bool {
    let Some(ContextValue::String(named)) = error.get(ContextKind::InvalidArg) else {
        return false;
    };
    error.kind() == kind && named.split([' ', '=']).next() == Some(option)
}

/// The words of the command, such as `corpus lock`.
fn command(arguments: &[OsString]) -> String {
    let mut command = Cli::command();
    let mut path = Vec::new();
    for word in arguments.iter().skip(1).take_while(|word| *word != "--") {
        if let Some(found) = command.find_subcommand(word).cloned() {
            path.push(found.get_name().to_owned());
            command = found;
        }
    }
    path.join(" ")
}
