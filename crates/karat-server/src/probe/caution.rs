//! Which tools are not called with made-up arguments unless the user allows it.
//!
//! The author's word counts first: `destructiveHint` and `readOnlyHint`. A tool that says
//! `readOnlyHint: false` and nothing more is destructive, for that is the protocol's default; a tool
//! that says nothing at all is judged by the words of its name, because by that default every tool
//! without annotations would be left out and nothing be measured.

use serde_json::Value;

/// Words in names of tools that change or send what cannot be taken back.
const WORDS: &[&str] = &[
    "append",
    "archive",
    "buy",
    "cancel",
    "charge",
    "clear",
    "close",
    "commit",
    "delete",
    "deploy",
    "destroy",
    "disable",
    "drop",
    "edit",
    "email",
    "erase",
    "exec",
    "execute",
    "forget",
    "format",
    "insert",
    "install",
    "kill",
    "mail",
    "merge",
    "move",
    "overwrite",
    "patch",
    "pay",
    "post",
    "publish",
    "purchase",
    "purge",
    "push",
    "put",
    "reboot",
    "remove",
    "rename",
    "replace",
    "reset",
    "restart",
    "revoke",
    "rm",
    "save",
    "send",
    "set",
    "shell",
    "shutdown",
    "stop",
    "submit",
    "terminate",
    "transfer",
    "truncate",
    "uninstall",
    "unlink",
    "update",
    "upload",
    "wipe",
    "write",
];

/// Why a tool is taken to be destructive, if it is.
#[must_use]
pub fn destructive(definition: &Value) -> Option<String> {
    let hint = |key: &str| {
        definition.get("annotations").and_then(|found| found.get(key)).and_then(Value::as_bool)
    };
    match (hint("destructiveHint"), hint("readOnlyHint")) {
        (Some(true), _) => Some("it says destructiveHint".to_owned()),
        (Some(false), _) | (None, Some(true)) => None,
        (None, Some(false)) => {
            Some("it says that it does not only read, and not that it destroys nothing".to_owned())
        }
        (None, None) => {
            let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
            let word = words(name).into_iter().find(|word| WORDS.contains(&word.as_str()))?;
            Some(format!("it has no annotations, and its name says {word:?}"))
        }
    }
}

/// The words of a name in snake_case, kebab-case or camelCase, in lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before_is_lower = false;
    for c in name.chars() {
        let starts = !c.is_alphanumeric() || (c.is_uppercase() && before_is_lower);
        before_is_lower = c.is_lowercase() || c.is_numeric();
        if starts {
            words.push(String::new());
        }
        if c.is_alphanumeric()
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_word_of_the_author_counts_before_the_name() {
        let says = |annotations: Value| {
            destructive(&json!({"name": "delete_file", "annotations": annotations})).is_some()
        };
        assert!(says(json!({})));
        assert!(!says(json!({"destructiveHint": false})));
        assert!(!says(json!({"readOnlyHint": true})));
        assert!(says(json!({"readOnlyHint": true, "destructiveHint": true})));
        assert!(says(json!({"readOnlyHint": false})));
    }

    #[test]
    fn without_annotations_the_words_of_the_name_decide() {
        let named = |name: &str| destructive(&json!({"name": name})).is_some();
        for name in ["deleteFile", "git-push", "send_mail", "page.remove", "DROP_TABLE"] {
            assert!(named(name), "{name}");
        }
        for name in ["read_file", "get_settings", "sendmailer_status", "list", "dropdown_values"] {
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn names_are_taken_apart_into_words() {
        assert_eq!(words("getHTTPUrl_fromFile2-x"), ["get", "httpurl", "from", "file2", "x"]);
        assert_eq!(words(""), Vec::<String>::new());
    }
}
