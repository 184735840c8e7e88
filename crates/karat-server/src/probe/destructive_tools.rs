//! Tools that are not called with generated arguments unless the user allows it.
//!
//! The author's annotations count first: `destructiveHint` and `readOnlyHint`. A tool with
//! `readOnlyHint: false` and nothing else is destructive, as the protocol's default says. A tool
//! without annotations is judged by the words of its name: by that default every such tool would be
//! skipped, and nothing would be measured.

use serde_json::Value;

/// Words in the names of tools that change or send something for good.
const WORDS: &str = "\
    abort append archive ban buy cancel charge chmod chown clear close commit deactivate \
    decommission del delete delist demote deploy deprovision destroy detach disable discard \
    downgrade drop edit email erase eval evict exec execute expunge flush forget format halt \
    insert install invalidate kill mail merge migrate mkfs move mv nuke overwrite patch pay post \
    prune publish purchase purge push put quarantine rebase reboot recreate redeploy reformat \
    refund reinstall reject remove rename replace reset restart restore revert revoke rewrite rm \
    rmdir rollback save scrub sell send set shell shred shutdown stop submit sudo suspend \
    terminate transfer trash truncate tweet undeploy uninstall unlink unpublish unregister \
    unsubscribe update upload wipe withdraw write zap";

/// Words that are dangerous only together: a command that is handed over to be run can do anything,
/// while running a report and listing commands are harmless.
const RUN: &str = "apply call do eval invoke perform raw run start";
const RUNNABLE: &str = "\
    bash cmd code command commands javascript js mutation powershell python script sh sql \
    statement statements transaction";

/// Verbs of two words, as they often occur in snake_case.
const PAIRS: &str = "clean-all clean-up empty-trash roll-back shut-down sign-out take-down tear-down \
    turn-off un-install";

/// The word or words of a name that suggest a destructive tool.
fn dangerous(name: &str) -> Option<String> {
    let words = split_name(name);
    let has = |list: &str| words.iter().find(|word| is_in(word, list)).cloned();
    if let Some(word) = has(WORDS) {
        return Some(word);
    }
    if let (Some(run), Some(what)) = (has(RUN), has(RUNNABLE)) {
        return Some(format!("{run} {what}"));
    }
    let pair = words.windows(2).map(|two| two.join("-")).find(|pair| is_in(pair, PAIRS));
    pair.map(|pair| pair.replace('-', " "))
}

/// Returns whether a word is in a list of words with spaces between them.
pub(crate) fn is_in(word: &str, list: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// The reason for which a tool is considered destructive, if it is.
#[must_use]
pub fn destructive(definition: &Value) -> Option<String> {
    let hint = |key: &str| {
        definition.get("annotations").and_then(|found| found.get(key)).and_then(Value::as_bool)
    };
    match (hint("destructiveHint"), hint("readOnlyHint")) {
        (Some(true), _) => Some("it has destructiveHint".to_owned()),
        (Some(false), _) | (None, Some(true)) => None,
        (None, Some(false)) => {
            Some("it has readOnlyHint: false and no destructiveHint: false".to_owned())
        }
        (None, None) => {
            let name = definition.get("name").and_then(Value::as_str).unwrap_or_default();
            let word = dangerous(name)?;
            Some(format!("it has no annotations, and its name contains {word:?}"))
        }
    }
}

/// The words of a name in snake_case, kebab-case or camelCase, in lower case.
pub(crate) fn split_name(name: &str) -> Vec<String> {
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
    fn annotations_count_before_the_name() {
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
        let destructive = "deleteFile git-push send_mail page.remove DROP_TABLE rmdir del prune_all \
            rollback roll_back trash_item refund withdraw flushCache revert_change run_sql sql-run \
            runPythonScript run_command clean_up";
        for name in destructive.split_whitespace() {
            assert!(named(name), "{name}");
        }
        let harmless = "read_file get_settings sendmailer_status list dropdown_values clean_text \
            run_report sql_help explain_sql list_commands get_transaction lookup model_list delta \
            start_page down_sample invertMatrix call_graph";
        for name in harmless.split_whitespace() {
            assert!(!named(name), "{name}");
        }
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(split_name("getHTTPUrl_fromFile2-x"), ["get", "httpurl", "from", "file2", "x"]);
        assert_eq!(split_name(""), Vec::<String>::new());
    }
}
