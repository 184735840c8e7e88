//! Which tools are not called with made-up arguments unless the user allows it.
//!
//! The author's word counts first: `destructiveHint` and `readOnlyHint`. A tool that says
//! `readOnlyHint: false` and nothing more is destructive, for that is the protocol's default; a tool
//! that says nothing at all is judged by the words of its name, because by that default every tool
//! without annotations would be left out and nothing be measured.

use serde_json::Value;

/// Words in names of tools that change or send what cannot be taken back.
const WORDS: &[&str] = &[
    "abort",
    "append",
    "archive",
    "ban",
    "buy",
    "cancel",
    "charge",
    "chmod",
    "chown",
    "clear",
    "close",
    "commit",
    "deactivate",
    "decommission",
    "del",
    "delete",
    "delist",
    "demote",
    "deploy",
    "deprovision",
    "destroy",
    "detach",
    "disable",
    "discard",
    "downgrade",
    "drop",
    "edit",
    "email",
    "erase",
    "eval",
    "evict",
    "exec",
    "execute",
    "expunge",
    "flush",
    "forget",
    "format",
    "halt",
    "insert",
    "install",
    "invalidate",
    "kill",
    "mail",
    "merge",
    "migrate",
    "mkfs",
    "move",
    "mv",
    "nuke",
    "overwrite",
    "patch",
    "pay",
    "post",
    "prune",
    "publish",
    "purchase",
    "purge",
    "push",
    "put",
    "quarantine",
    "rebase",
    "reboot",
    "recreate",
    "redeploy",
    "reformat",
    "refund",
    "reinstall",
    "reject",
    "remove",
    "rename",
    "replace",
    "reset",
    "restart",
    "restore",
    "revert",
    "revoke",
    "rewrite",
    "rm",
    "rmdir",
    "rollback",
    "save",
    "scrub",
    "sell",
    "send",
    "set",
    "shell",
    "shred",
    "shutdown",
    "stop",
    "submit",
    "sudo",
    "suspend",
    "terminate",
    "transfer",
    "trash",
    "truncate",
    "tweet",
    "undeploy",
    "uninstall",
    "unlink",
    "unpublish",
    "unregister",
    "unsubscribe",
    "update",
    "upload",
    "wipe",
    "withdraw",
    "write",
    "zap",
];

/// Words that mean it only together: a command that is handed over to be run can do anything, while a
/// report can be run and a command can be listed without harm.
const RUN: &[&str] = &["apply", "call", "do", "eval", "invoke", "perform", "raw", "run", "start"];
const RUNNABLE: &[&str] = &[
    "bash",
    "cmd",
    "code",
    "command",
    "commands",
    "javascript",
    "js",
    "mutation",
    "powershell",
    "python",
    "script",
    "sh",
    "sql",
    "statement",
    "statements",
    "transaction",
];
/// Verbs of two words, as names in snake_case often have them.
const PAIRS: &[(&str, &str)] = &[
    ("clean", "all"),
    ("clean", "up"),
    ("empty", "trash"),
    ("roll", "back"),
    ("shut", "down"),
    ("sign", "out"),
    ("take", "down"),
    ("tear", "down"),
    ("turn", "off"),
    ("un", "install"),
];

/// The word or words of a name that say so.
fn dangerous(name: &str) -> Option<String> {
    let words = words(name);
    let has = |list: &[&str]| words.iter().find(|word| list.contains(&word.as_str())).cloned();
    if let Some(word) = has(WORDS) {
        return Some(word);
    }
    if let (Some(run), Some(what)) = (has(RUN), has(RUNNABLE)) {
        return Some(format!("{run} {what}"));
    }
    let pairs = words.windows(2).filter_map(|two| match two {
        [first, second] => Some((first.as_str(), second.as_str())),
        _ => None,
    });
    pairs
        .filter(|pair| PAIRS.contains(pair))
        .map(|(first, second)| format!("{first} {second}"))
        .next()
}

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
            let word = dangerous(name)?;
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
        for name in [
            "deleteFile",
            "git-push",
            "send_mail",
            "page.remove",
            "DROP_TABLE",
            "rmdir",
            "del",
            "prune_all",
            "rollback",
            "roll_back",
            "trash_item",
            "refund",
            "withdraw",
            "flushCache",
            "revert_change",
            "run_sql",
            "sql-run",
            "runPythonScript",
            "run_command",
            "clean_up",
        ] {
            assert!(named(name), "{name}");
        }
        for name in [
            "read_file",
            "get_settings",
            "sendmailer_status",
            "list",
            "dropdown_values",
            "clean_text",
            "run_report",
            "sql_help",
            "explain_sql",
            "list_commands",
            "get_transaction",
            "lookup",
            "model_list",
            "delta",
            "start_page",
            "down_sample",
            "invertMatrix",
            "call_graph",
        ] {
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn names_are_taken_apart_into_words() {
        assert_eq!(words("getHTTPUrl_fromFile2-x"), ["get", "httpurl", "from", "file2", "x"]);
        assert_eq!(words(""), Vec::<String>::new());
    }
}
