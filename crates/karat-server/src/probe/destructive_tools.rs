//! Tools that are not called with generated arguments unless the user allows it: [`may_change`] is the one rule
//! of `fuzz`, `attack`, `scan` and `suggest`. [`destructive`] is the stricter half of it, for tools that destroy or
//! send something for good.
//!
//! The author's annotations count first: `destructiveHint` and `readOnlyHint`. A tool with
//! `readOnlyHint: false` and nothing else is destructive, as the protocol's default says. A tool
//! without annotations is judged by the words of its name, and by the verb that its description starts with: by
//! that default every such tool would be skipped, and nothing would be measured.

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

/// Words in the names of tools that leave something behind, without destroying anything.
const CHANGES: &str = "\
    activate allocate apply approve assign attach authorize begin book bookmark checkout clone comment \
    configure connect copy create duplicate enable enqueue favorite follow fork grant import increment \
    index ingest init initialize invite join launch learn like link lock login logout make mark \
    mkdir mount new notify order pause pin provision queue react record register release \
    remember reply reserve resume retry rotate schedule seed share sign simulate sleep spawn stage star \
    start stash store subscribe sync tag toggle touch trigger unlock unmount unstage upgrade upsert vote \
    wait";

/// Verbs at the start of a description that say the same, for a tool whose name says nothing. Words that are
/// often nouns there (post, record, index, order) are left out.
const SAYS: &str = "\
    append applies apply create customize delete deploy edit insert install modifies modify overwrite publish \
    remove rename replace save send truncate uninstall update upload write";

/// Verbs in the name of a tool that reads, whatever it does to get there ("Execute a SELECT query").
const READS: &str = "\
    check compare count describe explain fetch find get help inspect list lookup preview query read search \
    show status validate view";

/// The number of words of a description in which the thing that is run is looked for.
const LEAD: usize = 6;

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
pub(crate) fn destructive(definition: &Value) -> Option<String> {
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
            Some(format!("it has no readOnlyHint, and its name contains {word:?}"))
        }
    }
}

/// The reason for which a tool is not called without permission, if there is one: it may destroy or change
/// something.
#[must_use]
pub(crate) fn may_change(definition: &Value) -> Option<String> {
    if let Some(why) = destructive(definition) {
        return Some(why);
    }
    let hint = |key: &str| definition.get("annotations")?.get(key)?.as_bool();
    match hint("readOnlyHint") {
        Some(true) => return None,
        Some(false) => return Some("it has readOnlyHint: false".to_owned()),
        None => {}
    }
    let text = |key: &str| definition.get(key).and_then(Value::as_str).unwrap_or_default();
    let words = split_name(text("name"));
    let word = words.iter().find(|word| is_in(word, CHANGES)).cloned();
    // `add` and `add_numbers` compute; `add_note` keeps something.
    let adds = words.first().is_some_and(|word| word == "add")
        && words.get(1).is_some_and(|word| !is_in(word, "numbers number integers two values"));
    if let Some(word) = word.or_else(|| adds.then(|| "add".to_owned())) {
        return Some(format!("it has no readOnlyHint, and its name contains {word:?}"));
    }
    if words.iter().any(|word| is_in(word, READS)) {
        return None;
    }
    let verb = says_it_changes(text("description"))?;
    Some(format!("it has no readOnlyHint, and its description starts with {verb:?}"))
}

/// The verb at the start of a description that suggests a change ("Creates a folder", "Run a shell command").
fn says_it_changes(description: &str) -> Option<String> {
    let mut words = description
        .split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase);
    let first = words.next()?;
    // "Creates" and "publishes" are "create" and "publish".
    let is_form_of = |list: &str| {
        let forms = [Some(first.as_str()), first.strip_suffix('s'), first.strip_suffix("es")];
        forms.into_iter().flatten().any(|form| is_in(form, list))
    };
    let rest: Vec<String> = words.take(LEAD).collect();
    let next = rest.first().map(String::as_str).unwrap_or_default();
    let runs = is_form_of("run execute") && rest.iter().any(|word| is_in(word, RUNNABLE));
    // "Set of rules" and "Add two numbers" change nothing.
    let sets = is_form_of("set") && next != "of";
    let adds = is_form_of("add") && !is_in(next, "numbers number integers two values up together");
    (is_form_of(SAYS) || runs || sets || adds).then_some(first)
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
    fn only_tools_that_read_are_called() {
        let called = |definition: Value| may_change(&definition).is_none();
        for name in ["get_time", "add", "add_numbers", "search", "list_notes", "get_orders"] {
            assert!(called(json!({"name": name})), "{name}");
        }
        for name in ["create_note", "add_note", "toggle-x", "delete_all", "startJob"] {
            assert!(!called(json!({"name": name})), "{name}");
        }
        let annotated = |hints: Value| called(json!({"name": "create_x", "annotations": hints}));
        assert!(annotated(json!({"readOnlyHint": true})));
        assert!(!annotated(json!({"readOnlyHint": false, "destructiveHint": false})));
        assert!(!annotated(json!({"destructiveHint": false})));
    }

    #[test]
    fn a_description_counts_where_the_name_says_nothing() {
        let why = |name: &str, description: &str| {
            may_change(&json!({"name": name, "description": description}))
        };
        for (name, description) in [
            ("folder", "Creates a folder."),
            ("note", "Send a note to the team"),
            ("release", "Publishes the page"),
            ("protection", "Add a password to a document"),
            ("fit", "Sets columns to fit their content"),
            ("colours", "Applies colours to the rows"),
            ("bash", "Run a bash command and return its output"),
            ("python", "Executes Python code in a fresh interpreter"),
            ("dirs", "\n  Create a directory (and its parents)"),
        ] {
            assert!(why(name, description).is_some(), "{name}: {description}");
        }
        let folder = why("folder", "Creates a folder.").unwrap();
        assert!(folder.contains("its description starts with \"creates\""), "{folder}");
        for (name, description) in [
            ("read_query", "Execute a SELECT statement"),
            ("report", "Run a report over the sales"),
            ("sum", "Adds two numbers"),
            ("rules", "Set of rules that apply"),
            ("created", "Created files, newest first"),
            ("posts", "Post titles that match"),
            ("search_updates", "Updates of a package"),
            ("folder", "The folder of the server. Does not create one."),
            ("folder", ""),
        ] {
            assert_eq!(why(name, description), None, "{name}: {description}");
        }
        let annotated = json!({"name": "folder", "description": "Creates a view of the folder.",
            "annotations": {"readOnlyHint": true}});
        assert_eq!(may_change(&annotated), None);
    }

    #[test]
    fn names_are_split_into_words() {
        assert_eq!(split_name("getHTTPUrl_fromFile2-x"), ["get", "httpurl", "from", "file2", "x"]);
        assert_eq!(split_name(""), Vec::<String>::new());
    }
}
