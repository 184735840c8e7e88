//! Variables in configuration values: one rule for `env`, `headers`, `url` and the words of a command.
//!
//! | written | becomes |
//! | --- | --- |
//! | `${VAR}`, `${env:VAR}` | the environment variable; an error if it is not set |
//! | `${VAR:-default}` | the variable, or `default` if it is not set or empty |
//! | `${workspaceFolder}`, `${workspaceRoot}` | the folder of the project |
//! | `${userHome}` | the home folder |
//! | `${/}`, `${pathSeparator}` | the path separator |
//! | `$${` | a plain `${` |
//!
//! Every other `$` is a plain `$`, so a password such as `pa$$word` needs no escape. Values are not
//! interpolated again, and nothing else is expanded: no `~`, no `$VAR`, no commands.
//!
//! Interpolation happens when a server is started or a client is made, never earlier, so that a
//! configuration can be shown and stored without its secrets.
//!
//! ```
//! use karat_io::interpolate::Variables;
//! use std::path::Path;
//!
//! let lookup = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
//! let variables = Variables::new(&lookup, Path::new("/project"));
//! let header = variables.interpolate("Bearer ${TOKEN}")?;
//! assert_eq!(header.text, "Bearer s3cret");
//! assert_eq!(header.used[0].name, "TOKEN");
//! assert_eq!(variables.interpolate("${PORT:-8080} $${PORT}")?.text, "8080 ${PORT}");
//! # Ok::<(), karat_io::interpolate::InterpolateError>(())
//! ```

use std::path::Path;

/// Text with its variables replaced, and the values that were inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpolated {
    /// The text.
    pub text: String,
    /// Every inserted value, in order.
    pub used: Vec<Used>,
}

/// A value that was inserted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Used {
    /// The name between the braces, without `env:` and the default.
    pub name: String,
    /// The value.
    pub value: String,
    /// True for the value of a variable, false for a default and for what the machine is known by
    /// (`${workspaceFolder}`, `${userHome}`, `${/}`).
    pub from_variable: bool,
}

/// A text whose variables cannot be replaced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InterpolateError {
    /// A `${` without `}`.
    #[error("`{text}` has a `${{` without a `}}`; write `$${{` for a plain `${{`")]
    Unclosed {
        /// The whole text, which holds no values yet.
        text: String,
    },
    /// A variable that is not set and has no default.
    #[error(
        "the environment variable {name} is not set; set it, or give a default: `${{{name}:-…}}`"
    )]
    NotSet {
        /// Its name.
        name: String,
    },
    /// Something between the braces that cannot be the name of a variable.
    #[error("`${{{inside}}}` does not name a variable; write `$${{` for a plain `${{`")]
    NotAName {
        /// The text between the braces.
        inside: String,
    },
    /// `${input:…}`, which an editor asks its user for.
    #[error(
        "`${{input:{id}}}` prompts the user of an editor; set a variable and write `${{env:NAME}}` instead"
    )]
    Input {
        /// The id of the input.
        id: String,
    },
}

/// A part of a string with variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part<'a> {
    /// Plain text.
    Text(&'a str),
    /// A variable: the text between its braces.
    Variable(&'a str),
}

/// Splits a string at its variables, for values that do not come from the environment. No part is empty
/// text.
///
/// ```
/// use karat_io::interpolate::{Part, parts};
///
/// let found = parts("a$${b ${c}")?;
/// assert_eq!(found, [Part::Text("a"), Part::Text("${"), Part::Text("b "), Part::Variable("c")]);
/// # Ok::<(), karat_io::interpolate::InterpolateError>(())
/// ```
///
/// # Errors
/// If a `${` has no `}`.
pub fn parts(text: &str) -> Result<Vec<Part<'_>>, InterpolateError> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            parts.extend([Part::Text(before), Part::Text("${")]);
            rest = after;
            continue;
        }
        let Some((inside, behind)) = after.split_once('}') else {
            return Err(InterpolateError::Unclosed { text: text.to_owned() });
        };
        parts.extend([Part::Text(before), Part::Variable(inside)]);
        rest = behind;
    }
    parts.push(Part::Text(rest));
    parts.retain(|part| *part != Part::Text(""));
    Ok(parts)
}

/// The source of values.
#[derive(Clone, Copy)]
pub struct Variables<'a> {
    lookup: &'a dyn Fn(&str) -> Option<String>,
    folder: &'a Path,
}

/// Looks a variable up in the environment of this process. A value that is not UTF-8 counts as not set.
#[must_use]
pub fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A text that interpolation turns back into this one: nothing in it is a variable.
///
/// ```
/// assert_eq!(karat_io::interpolate::escaped("run ${HOME}"), "run $${HOME}");
/// ```
#[must_use]
pub fn escaped(text: &str) -> String {
    text.replace("${", "$${")
}

impl<'a> Variables<'a> {
    /// Variables from `lookup` ([`environment`], usually), with `folder` for `${workspaceFolder}`.
    pub fn new(lookup: &'a dyn Fn(&str) -> Option<String>, folder: &'a Path) -> Variables<'a> {
        Variables { lookup, folder }
    }

    /// The folder of the project.
    #[must_use]
    pub fn folder(&self) -> &'a Path {
        self.folder
    }

    /// Replaces the variables of a text.
    ///
    /// # Errors
    /// If a variable is not set, or a `${` is not one of the forms that the module lists.
    pub fn interpolate(&self, text: &str) -> Result<Interpolated, InterpolateError> {
        let mut result = String::with_capacity(text.len());
        let mut used = Vec::new();
        for part in parts(text)? {
            match part {
                Part::Text(text) => result.push_str(text),
                Part::Variable(inside) => {
                    let inserted = self.look_up(inside.trim())?;
                    result.push_str(&inserted.value);
                    used.push(inserted);
                }
            }
        }
        Ok(Interpolated { text: result, used })
    }

    fn look_up(&self, inside: &str) -> Result<Used, InterpolateError> {
        let used = |name: &str, value: String, from_variable| {
            Ok(Used { name: name.to_owned(), value, from_variable })
        };
        let not_set = |name: &str| InterpolateError::NotSet { name: name.to_owned() };
        match inside {
            "workspaceFolder" | "workspaceRoot" => {
                return used(inside, self.folder.to_string_lossy().into_owned(), false);
            }
            "userHome" => {
                let home = (self.lookup)("HOME").ok_or_else(|| not_set("HOME"))?;
                return used(inside, home, false);
            }
            "/" | "pathSeparator" => {
                return used(inside, std::path::MAIN_SEPARATOR.to_string(), false);
            }
            _ => {}
        }
        if let Some(id) = inside.strip_prefix("input:") {
            return Err(InterpolateError::Input { id: id.to_owned() });
        }
        let variable = inside.strip_prefix("env:").unwrap_or(inside);
        let (name, default) = match variable.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (variable, None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
            return Err(InterpolateError::NotAName { inside: inside.to_owned() });
        }
        match ((self.lookup)(name), default) {
            // As in a shell, `:-` counts an empty variable as not set.
            (Some(value), Some(default)) if value.is_empty() => {
                used(name, default.to_owned(), false)
            }
            (Some(value), _) => used(name, value, true),
            (None, Some(default)) => used(name, default.to_owned(), false),
            (None, None) => Err(not_set(name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn lookup(name: &str) -> Option<String> {
        match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            "HOME" => Some("/home/me".to_owned()),
            _ => None,
        }
    }

    fn run(text: &str) -> Result<Interpolated, InterpolateError> {
        Variables::new(&lookup, Path::new("/w")).interpolate(text)
    }

    #[test]
    fn every_listed_form_is_replaced() {
        let done = run("a${A}b${env:A}c${B:-d}e${ A }").unwrap();
        assert_eq!(done.text, "a1b1cde1");
        assert_eq!(
            done.used.iter().map(|used| used.from_variable).collect::<Vec<_>>(),
            [true, true, false, true]
        );
        assert_eq!(run("${EMPTY:-x}").unwrap().text, "x");
        assert_eq!(run("${EMPTY}").unwrap().text, "");
        assert_eq!(run("${workspaceFolder}/x ${userHome}${/}y").unwrap().text, "/w/x /home/me/y");
    }

    #[test]
    fn only_a_dollar_before_a_variable_is_an_escape() {
        assert_eq!(run("$${A} $$${A}").unwrap().text, "${A} $${A}");
        assert_eq!(run("pa$$word costs $5 $").unwrap().text, "pa$$word costs $5 $");
        assert_eq!(run("$${ is plain").unwrap().text, "${ is plain");
    }

    #[test]
    fn nothing_else_is_expanded() {
        assert_eq!(run("$A ~ $(id) `id` %A%").unwrap().text, "$A ~ $(id) `id` %A%");
        assert_eq!(run("${NESTED}").unwrap().text, "${A}");
    }

    #[test]
    fn errors_name_the_variable_and_the_remedy() {
        for (text, message) in [
            ("${MISSING}", "MISSING is not set; set it, or give a default: `${MISSING:-…}`"),
            ("${A", "`${A` has a `${` without a `}`"),
            ("${input:key}", "write `${env:NAME}` instead"),
            ("${a b}", "`${a b}` does not name a variable"),
            ("${}", "does not name a variable"),
        ] {
            let error = run(text).unwrap_err().to_string();
            assert!(error.contains(message), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn text_without_variables_stays_as_it_is(text in "[a-z$ }{]{0,20}") {
            prop_assume!(!text.contains("${"));
            prop_assert_eq!(run(&text).unwrap().text, text);
        }

        #[test]
        fn an_escaped_text_comes_back_whole(text in "[a-zA${} ]{0,20}") {
            let escaped = super::escaped(&text);
            prop_assert_eq!(run(&escaped).unwrap().text, text);
        }
    }
}
