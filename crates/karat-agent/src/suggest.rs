//! Tasks from real traffic: each distinct request once, with the calls of the runs that went well, and
//! without what identifies people or opens doors.
//!
//! A proposal is not a golden task: it says what an agent did, not what is right. Each one is marked as
//! unreviewed, with the number of runs that it was seen in and that agree.

use std::collections::BTreeMap;

use karat_io::secrets;
use serde_json::{Map, Value, json};

use crate::scores::{Own, TraceScorer};
use crate::tools::Tools;
use crate::trace::{CallOutcome, Trace};

/// Proposed tasks, and what was left out.
#[derive(Debug, Default)]
pub struct Suggestions {
    /// The tasks, as records of a file of tasks.
    pub tasks: Vec<Value>,
    /// Traces that were left out, by reason.
    pub left_out: BTreeMap<&'static str, u64>,
    /// The number of values that were replaced.
    pub replaced: u64,
}

/// The runs of one request.
struct Group<'t> {
    input: &'t str,
    seen: u64,
    /// Runs by the calls that they made.
    by_calls: BTreeMap<String, (u64, &'t Trace)>,
}

/// Proposes tasks.
pub fn suggest(traces: &[Trace]) -> Suggestions {
    let tools = Tools::default();
    let scorer = TraceScorer::new(&tools, &[]);
    let mut found = Suggestions::default();
    let mut groups: BTreeMap<String, Group<'_>> = BTreeMap::new();
    for trace in traces {
        let Some(input) = trace.input.as_deref().filter(|input| !input.trim().is_empty()) else {
            *found.left_out.entry("no request was recorded").or_default() += 1;
            continue;
        };
        let key = input.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase();
        let group =
            groups.entry(key).or_insert(Group { input, seen: 0, by_calls: BTreeMap::new() });
        group.seen += 1;
        let reason = match trace {
            _ if trace.failed.is_some() || trace.stopped.is_some() => {
                Some("the run did not end well")
            }
            _ if trace.calls.iter().any(|call| call.outcome() == CallOutcome::Failed) => {
                Some("a call failed")
            }
            _ if trace.calls.iter().any(|call| call.arguments.value().is_none()) => {
                Some("arguments were not recorded or are not JSON")
            }
            _ if scorer.score(trace).value(Own::Success) == Some(0.0) => {
                Some("the task was not done")
            }
            _ => None,
        };
        if let Some(reason) = reason {
            *found.left_out.entry(reason).or_default() += 1;
            continue;
        }
        group.by_calls.entry(calls(trace).to_string()).or_insert((0, trace)).0 += 1;
    }
    for group in groups.into_values() {
        // Of equally frequent ones the shortest: an agent that needs fewer calls.
        let best = group.by_calls.iter().max_by_key(|(text, (count, trace))| {
            (*count, std::cmp::Reverse(trace.calls.len()), std::cmp::Reverse((*text).clone()))
        });
        let Some((_, (agree, trace))) = best else { continue };
        let mut names = Names::default();
        let number = found.tasks.len() + 1;
        let mut task = Map::new();
        task.insert("id".to_owned(), format!("suggested-{number}").into());
        task.insert("input".to_owned(), names.clean(group.input).into());
        if !trace.servers.is_empty() {
            task.insert("servers".to_owned(), json!(trace.servers));
        }
        let mut expected = calls(trace);
        names.clean_in(&mut expected, None);
        task.insert("expect".to_owned(), json!({"calls": expected}));
        let tags = json!({
            "review": "unreviewed",
            "seen": group.seen.to_string(),
            "agree": agree.to_string(),
        });
        task.insert("tags".to_owned(), tags);
        found.replaced += names.replaced;
        found.tasks.push(Value::Object(task));
    }
    found
}

fn calls(trace: &Trace) -> Value {
    let call = |call: &crate::trace::CallMade| {
        let mut fields = Map::new();
        fields.insert("name".to_owned(), call.name.clone().into());
        if let Some(server) = &call.server {
            fields.insert("server".to_owned(), server.clone().into());
        }
        fields.insert("arguments".to_owned(), call.arguments.value().unwrap_or_default());
        Value::Object(fields)
    };
    trace.calls.iter().map(call).collect()
}

/// Replacements within one task: the same value gets the same name, so that request and calls still fit.
#[derive(Default)]
struct Names {
    known: BTreeMap<String, String>,
    replaced: u64,
}

impl Names {
    fn name(&mut self, kind: &str, value: &str) -> String {
        self.replaced += 1;
        if let Some(known) = self.known.get(value) {
            return known.clone();
        }
        let number = self.known.len() + 1;
        let name = match kind {
            "email" => format!("person{number}@example.com"),
            "number" => format!("[number-{number}]"),
            kind => format!("[{kind}-{number}]"),
        };
        self.known.insert(value.to_owned(), name.clone());
        name
    }

    /// A text without addresses, telephone and card numbers, and secrets.
    fn clean(&mut self, text: &str) -> String {
        let mut out = String::new();
        let mut rest = text;
        while !rest.is_empty() {
            let is_break = |c: char| c.is_whitespace() || "\"'`<>()[]{},;|=".contains(c);
            let end = rest.find(is_break).unwrap_or(rest.len());
            // A number may have spaces in it.
            if let Some(length) = long_number(rest) {
                let (number, after) = rest.split_at(length);
                let digits: String = number.chars().filter(char::is_ascii_digit).collect();
                out.push_str(&self.name("number", &digits));
                rest = after;
                continue;
            }
            let (word, after) = rest.split_at(end);
            let bare = word.trim_end_matches(['.', ':', '!', '?']);
            match kind(bare) {
                Some(kind) => {
                    out.push_str(&self.name(kind, bare));
                    out.push_str(&word[bare.len()..]);
                }
                None => out.push_str(word),
            }
            let next = after.chars().next().map_or(0, char::len_utf8);
            out.push_str(&after[..next]);
            rest = &after[next..];
        }
        out
    }

    fn clean_in(&mut self, value: &mut Value, key: Option<&str>) {
        match value {
            Value::String(text) => {
                let secret = key.is_some_and(|key| secrets::is_secret(key, text));
                *text = if secret { self.name("secret", text) } else { self.clean(text) };
            }
            Value::Array(all) => all.iter_mut().for_each(|one| self.clean_in(one, key)),
            Value::Object(fields) => {
                for (key, value) in fields {
                    self.clean_in(value, Some(key));
                }
            }
            _ => {}
        }
    }
}

/// The kind of a word that must not be kept.
fn kind(word: &str) -> Option<&'static str> {
    let address = word.split_once('@').is_some_and(|(name, host)| {
        !name.is_empty() && host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
    });
    if address {
        return Some("email");
    }
    let parts: Vec<&str> = word.split('.').collect();
    let octet = |part: &&str| part.len() <= 3 && part.parse::<u8>().is_ok();
    if parts.len() == 4 && parts.iter().all(octet) {
        return Some("address");
    }
    (word.len() >= 16 && secrets::looks_like_token(word)).then_some("secret")
}

/// The length of a telephone, card or account number at the start of a text: nine digits or more, with
/// what people put between them.
fn long_number(text: &str) -> Option<usize> {
    let starts = text.starts_with(|c: char| c.is_ascii_digit() || c == '+');
    if !starts {
        return None;
    }
    let length = text.find(|c: char| !c.is_ascii_digit() && !"+ -/()".contains(c));
    let number =
        text[..length.unwrap_or(text.len())].trim_end_matches([' ', '-', '/', '(', ')', '+']);
    let digits = number.chars().filter(char::is_ascii_digit).count();
    // A date with a time has no plus and few digits; a count has no separators and is short.
    let grouped = number.contains(['+', ' ']) || digits >= 13;
    (digits >= 9 && grouped).then_some(number.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::Tasks;
    use crate::trace::{Arguments, CallError, CallMade};

    fn trace(input: &str, name: &str, arguments: &str) -> Trace {
        let mut call = CallMade::named(name);
        call.arguments = Arguments::written(arguments);
        Trace { input: Some(input.into()), calls: vec![call], ..Trace::of(input) }
    }

    #[test]
    fn requests_are_proposed_once_with_the_calls_that_most_runs_made() {
        let mut failed = trace("Add  1 and 2", "oops", "{}");
        failed.calls[0].error = Some(CallError { class: "e".into(), message: String::new() });
        let all = [
            trace("Add 1 and 2", "add", r#"{"a":1,"b":2}"#),
            trace("add 1 and 2", "add", r#"{"a":1,"b":2}"#),
            trace("Add 1 and 2", "sum", r#"{"all":[1,2]}"#),
            failed,
            Trace::of("nothing"),
        ];
        let found = suggest(&all);
        assert_eq!(found.tasks.len(), 1);
        assert_eq!(found.tasks[0]["expect"]["calls"][0]["name"], "add");
        assert_eq!(
            found.tasks[0]["tags"],
            json!({"review": "unreviewed", "seen": "4", "agree": "2"})
        );
        assert_eq!(found.left_out.values().sum::<u64>(), 2);
        let mut tasks = Tasks::default();
        tasks.add("t.jsonl".as_ref(), &found.tasks[0].to_string()).unwrap();
        assert_eq!(tasks.len(), 1);
    }

    #[test]
    fn people_and_secrets_are_replaced_alike_in_request_and_calls() {
        let input =
            "Write to ana@mail.org (+49 170 1234567) with key sk-proj-abcdefghijklmnop1234567890";
        let arguments = r#"{"to":"ana@mail.org","password":"hunter2hunter2","n":42}"#;
        let found = suggest(&[trace(input, "send", arguments)]);
        let text = found.tasks[0].to_string();
        for gone in ["ana@", "1234567", "sk-proj", "hunter2"] {
            assert!(!text.contains(gone), "{gone} in {text}");
        }
        assert_eq!(found.tasks[0]["expect"]["calls"][0]["arguments"]["to"], "person1@example.com");
        assert!(found.tasks[0]["input"].as_str().unwrap().contains("person1@example.com"));
        assert_eq!(found.tasks[0]["expect"]["calls"][0]["arguments"]["n"], 42);
        assert_eq!(
            Names::default().clean("On 2026-11-16 there were 123456789 of 3."),
            "On 2026-11-16 there were 123456789 of 3."
        );
    }
}
