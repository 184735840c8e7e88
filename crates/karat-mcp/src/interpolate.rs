//! `${VAR}`, `${VAR:-default}` and `${env:VAR}` in specs.
//!
//! Interpolation happens when a server is started, never earlier, so that a spec can be shown and
//! stored without what it stands for. Nothing else is expanded: no `~`, no `$VAR`, no commands.

use std::path::Path;

/// Text with its variables put in, and what was put in.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Interpolated {
    pub(crate) text: String,
    pub(crate) used: Vec<Used>,
}

/// What was put in for a name.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Used {
    pub(crate) name: String,
    pub(crate) value: String,
    /// Whether it is the value of a variable, and not written in the spec or known to everybody.
    pub(crate) from_variable: bool,
}

/// Where values come from.
pub(crate) struct Surroundings<'a> {
    /// Looks a variable up.
    pub(crate) variable: &'a dyn Fn(&str) -> Option<String>,
    /// What `${workspaceFolder}` stands for.
    pub(crate) folder: &'a Path,
}

/// Puts the variables in.
pub(crate) fn interpolate(text: &str, around: &Surroundings<'_>) -> Result<Interpolated, String> {
    let mut result = String::with_capacity(text.len());
    let mut used = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        result.push_str(before);
        let Some((inside, behind)) = after.split_once('}') else {
            return Err(format!("`{text}` has a `${{` without its `}}`"));
        };
        let put_in = look_up(inside, around)?;
        result.push_str(&put_in.value);
        used.push(put_in);
        rest = behind;
    }
    result.push_str(rest);
    Ok(Interpolated { text: result, used })
}

fn look_up(inside: &str, around: &Surroundings<'_>) -> Result<Used, String> {
    let used = |name: &str, value: String, from_variable| {
        Ok(Used { name: name.to_owned(), value, from_variable })
    };
    match inside {
        "workspaceFolder" | "workspaceRoot" => {
            return used(inside, around.folder.to_string_lossy().into_owned(), false);
        }
        "userHome" => {
            let home = (around.variable)("HOME").ok_or("the variable HOME is not set")?;
            return used(inside, home, false);
        }
        "/" | "pathSeparator" => {
            return used(inside, std::path::MAIN_SEPARATOR.to_string(), false);
        }
        _ => {}
    }
    if let Some(input) = inside.strip_prefix("input:") {
        return Err(format!(
            "`${{input:{input}}}` asks a person; set a variable and write `${{env:NAME}}` instead"
        ));
    }
    let variable = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match variable.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (variable, None),
    };
    if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err(format!("`${{{inside}}}` does not name a variable"));
    }
    match ((around.variable)(name), default) {
        // As in a shell, `:-` counts an empty variable as unset.
        (Some(value), Some(default)) if value.is_empty() => used(name, default.to_owned(), false),
        (Some(value), _) => used(name, value, true),
        (None, Some(default)) => used(name, default.to_owned(), false),
        (None, None) => {
            Err(format!("the variable {name} is not set; set it or write `${{{name}:-default}}`"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(text: &str) -> Result<Interpolated, String> {
        let variable = |name: &str| match name {
            "A" => Some("1".to_owned()),
            "EMPTY" => Some(String::new()),
            "NESTED" => Some("${A}".to_owned()),
            _ => None,
        };
        interpolate(text, &Surroundings { variable: &variable, folder: Path::new("/w") })
    }

    #[test]
    fn the_three_forms_are_put_in() {
        let done = run("a${A}b${env:A}c${B:-d}e").unwrap();
        assert_eq!(done.text, "a1b1cde");
        assert_eq!(done.used.len(), 3);
        assert_eq!(run("${EMPTY:-x}").unwrap().text, "x");
        assert_eq!(run("${EMPTY}").unwrap().text, "");
        assert_eq!(run("${workspaceFolder}/x").unwrap().text, "/w/x");
    }

    #[test]
    fn nothing_else_is_expanded() {
        assert_eq!(run("$A ~ $(id) `id` %A%").unwrap().text, "$A ~ $(id) `id` %A%");
        assert_eq!(run("${NESTED}").unwrap().text, "${A}");
    }

    #[test]
    fn what_cannot_be_put_in_is_named() {
        assert!(run("${MISSING}").unwrap_err().contains("MISSING"));
        assert!(run("${A").unwrap_err().contains("without"));
        assert!(run("${input:key}").unwrap_err().contains("env:NAME"));
        assert!(run("${a b}").unwrap_err().contains("does not name"));
    }
}
