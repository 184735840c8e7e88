//! A conversation cut into units: a request of the user, and the steps that follow it.
//!
//! Messages may be those of OpenAI, Anthropic and RAGAS, with their content as text or in blocks; all are
//! read into one form first. A unit without a recorded request or recorded steps cannot be judged, and
//! has a reason instead.

use karat_io::text::clip;
use serde_json::Value;

use crate::trace::{Arguments, CallOutcome, Trace, Turns};

/// The number of characters of a text that a judge sees.
pub(super) const SHOWN: usize = 4000;

/// A unit.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Unit {
    pub(super) task: String,
    pub(super) steps: String,
}

/// An event of a conversation.
enum Event {
    Asked(String),
    Called { name: String, arguments: String },
    Got { text: String, failed: bool },
    Said(String),
}

/// Cuts a trace into units; an error is the reason for which a judge cannot be asked.
pub(super) fn units(trace: &Trace) -> Vec<Result<Unit, String>> {
    let mut found: Vec<(String, Vec<String>)> = Vec::new();
    let mut called = 0;
    let mut acted = true;
    for event in trace.messages.iter().flat_map(events) {
        match (event, found.last_mut()) {
            // A second user message before any answer.
            (Event::Asked(text), Some((task, _))) if !acted => {
                task.push('\n');
                task.push_str(&text);
            }
            (Event::Asked(text), _) => {
                found.push((text, Vec::new()));
                acted = false;
            }
            // Before the first request.
            (_, None) => {}
            (event, Some((_, steps))) => {
                called += usize::from(matches!(event, Event::Called { .. }));
                acted |= !matches!(event, Event::Got { .. });
                steps.push(step(event));
            }
        }
    }
    let has_all = called >= trace.calls.len();
    if has_all && found.iter().any(|(_, steps)| !steps.is_empty()) {
        return found.into_iter().map(|(task, steps)| unit(task, &steps)).collect();
    }
    if found.len() > 1 || trace.turns == Turns::Multi {
        return vec![Err("the messages do not show the whole conversation".to_owned())];
    }
    let task = found.pop().map(|(task, _)| task).or_else(|| trace.input.clone());
    vec![unit(task.unwrap_or_default(), &recorded_steps(trace))]
}

fn unit(task: String, steps: &[String]) -> Result<Unit, String> {
    if task.trim().is_empty() {
        return Err("the request is not recorded".to_owned());
    }
    if steps.is_empty() {
        return Err("the steps are not recorded".to_owned());
    }
    Ok(Unit { task, steps: steps.join("\n") })
}

fn step(event: Event) -> String {
    match event {
        Event::Asked(text) => text,
        Event::Called { name, arguments } => {
            format!("calls {name} with {}", clip(&arguments, SHOWN))
        }
        Event::Got { text, failed: true } => format!("gets an error: {}", clip(&text, SHOWN)),
        Event::Got { text, failed: false } => format!("gets: {}", clip(&text, SHOWN)),
        Event::Said(text) if text.is_empty() => "says nothing".to_owned(),
        Event::Said(text) => format!("says: {}", clip(&text, SHOWN)),
    }
}

/// The events of one message, in order.
fn events(message: &Value) -> Vec<Event> {
    let role = message.get("role").or_else(|| message.get("type")).and_then(Value::as_str);
    let content = message.get("content").unwrap_or(&Value::Null);
    match role {
        Some("user" | "human") => {
            let mut events = blocks(content);
            // Text in several blocks is one message, after the results.
            let said: Vec<String> = events.extract_if(.., is_said).map(step_text).collect();
            let said = said.join("\n");
            events.extend((!said.is_empty()).then_some(Event::Asked(said)));
            events
        }
        Some("assistant" | "ai") => {
            let mut events = blocks(content);
            let calls = message.get("tool_calls").and_then(Value::as_array);
            events.extend(
                calls.into_iter().flatten().chain(message.get("function_call")).filter_map(call),
            );
            if events.is_empty() {
                events.push(Event::Said(String::new()));
            }
            events
        }
        Some("tool" | "function") => {
            vec![Event::Got { text: text_of(content), failed: false }]
        }
        _ => Vec::new(),
    }
}

fn is_said(event: &mut Event) -> bool {
    matches!(event, Event::Said(_))
}

fn step_text(event: Event) -> String {
    match event {
        Event::Said(text) => text,
        other => step(other),
    }
}

/// The events in the content of a message: a text, or blocks.
fn blocks(content: &Value) -> Vec<Event> {
    let said = |text: &str| (!text.is_empty()).then(|| Event::Said(text.to_owned()));
    let Some(blocks) = content.as_array() else {
        return content.as_str().and_then(said).into_iter().collect();
    };
    let event = |block: &Value| match block.get("type").and_then(Value::as_str) {
        Some("tool_use" | "mcp_tool_use" | "server_tool_use") => call(block),
        Some("tool_result" | "mcp_tool_result") => Some(Event::Got {
            text: text_of(block.get("content").unwrap_or(&Value::Null)),
            failed: block.get("is_error") == Some(&Value::Bool(true)),
        }),
        // Thinking has its text under another key; images and documents have none.
        _ => block.get("text").and_then(Value::as_str).and_then(said),
    };
    blocks.iter().filter_map(event).collect()
}

/// A call in the format of OpenAI (`function`, `arguments`), Anthropic (`input`) or RAGAS (`args`).
fn call(value: &Value) -> Option<Event> {
    let function = value.get("function").unwrap_or(value);
    let name = function.get("name")?.as_str()?.to_owned();
    let arguments = ["arguments", "input", "args"].iter().find_map(|key| function.get(key));
    let arguments = match arguments {
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
        None => "{}".to_owned(),
    };
    Some(Event::Called { name, arguments })
}

/// A result as the model got it.
fn text_of(content: &Value) -> String {
    if let Value::String(text) = content {
        return text.clone();
    }
    let texts = content.as_array().into_iter().flatten();
    let texts: Vec<&str> = texts.filter_map(|block| block.get("text")?.as_str()).collect();
    match (texts.is_empty(), content) {
        (true, Value::Null) => String::new(),
        (true, other) => other.to_string(),
        (false, _) => texts.join("\n"),
    }
}

/// The steps that the trace records, if the messages do not show them.
fn recorded_steps(trace: &Trace) -> Vec<String> {
    let mut steps = Vec::new();
    for call in &trace.calls {
        let arguments = match &call.arguments {
            Arguments::NotRecorded => "arguments that were not recorded",
            Arguments::Object(text) | Arguments::Text(text) => text,
        };
        steps.push(format!("calls {} with {}", call.shown(), clip(arguments, SHOWN)));
        match (call.outcome(), &call.error, &call.result) {
            (CallOutcome::Failed, Some(error), _) => {
                steps.push(format!("gets an error: {}", error.message));
            }
            (_, _, Some(result)) => {
                steps.push(format!("gets: {}", clip(&result.to_string(), SHOWN)));
            }
            _ => {}
        }
    }
    match &trace.output {
        Some(output) => steps.push(format!("says: {}", clip(output, SHOWN))),
        None if steps.is_empty() => {}
        None => steps.push("says nothing".to_owned()),
    }
    steps
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{TraceFiles, TraceFormat, TraceSet, TraceSource};

    /// Task and steps of each unit of a document in this format.
    fn cut(format: TraceFormat, document: &Value) -> Vec<(String, String)> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("log.jsonl");
        std::fs::write(&file, document.to_string()).unwrap();
        let files = TraceFiles { files: &[file], formats: &[format], metrics: &[] };
        let source = TraceSource { files, tasks: None, max_malformed: 0.0, prices: None };
        let set = TraceSet::read(&source).unwrap();
        let all = units(&set.traces[0]);
        all.into_iter().map(|unit| unit.unwrap()).map(|unit| (unit.task, unit.steps)).collect()
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(task, steps)| (String::from(*task), String::from(*steps))).collect()
    }

    #[test]
    fn a_conversation_is_cut_where_the_user_speaks_again() {
        let message = |role: &str, text: &str| json!({"role": role, "content": text});
        let mut trace = Trace::of("t");
        trace.messages = vec![
            message("user", "one"),
            message("user", "more"),
            message("assistant", "done"),
            message("user", "two"),
            message("assistant", ""),
            message("user", "three"),
        ];
        let all = units(&trace);
        assert_eq!(all[0], Ok(Unit { task: "one\nmore".into(), steps: "says: done".into() }));
        // A recorded empty answer is a step; no record is not.
        assert_eq!(all[1], Ok(Unit { task: "two".into(), steps: "says nothing".into() }));
        assert!(all[2].as_ref().is_err_and(|why| why.contains("the steps")), "{all:?}");
    }

    #[test]
    fn content_in_parts_is_read_as_its_text() {
        let log = json!({"id": "o", "messages": [
            {"role": "user", "content": [{"type": "text", "text": "Book"}, {"type": "text", "text": "Bern"}]},
            {"role": "assistant", "content": null, "function_call": {"name": "book", "arguments": "{\"to\":1}"}},
            {"role": "function", "name": "book", "content": "ok"},
            {"role": "assistant", "content": [{"type": "text", "text": "Booked."}]}]});
        let steps = "calls book with {\"to\":1}\ngets: ok\nsays: Booked.";
        assert_eq!(cut(TraceFormat::Openai, &log), pairs(&[("Book\nBern", steps)]));
    }

    #[test]
    fn calls_and_results_in_blocks_belong_to_their_unit() {
        let log = json!({"id": "a", "messages": [
            {"role": "user", "content": "Book a flight"},
            {"role": "assistant", "content": "One way?"},
            {"role": "user", "content": "Yes"},
            {"role": "assistant", "content": [
                {"type": "text", "text": "Let me see"},
                {"type": "tool_use", "id": "t1", "name": "book", "input": {"to": "Bern"}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "is_error": true, "content": [{"type": "text", "text": "full"}]}]},
            {"role": "assistant", "content": "There is no seat."},
            {"role": "user", "content": [{"type": "text", "text": "Thanks"}]}],
            "response": {"content": [{"type": "text", "text": "You are welcome."}]}});
        let booked = "says: Let me see\ncalls book with {\"to\":\"Bern\"}\ngets an error: full\nsays: There is no seat.";
        assert_eq!(
            cut(TraceFormat::Anthropic, &log),
            pairs(&[
                ("Book a flight", "says: One way?"),
                ("Yes", booked),
                ("Thanks", "says: You are welcome."),
            ])
        );
    }

    #[test]
    fn a_sample_of_several_turns_has_a_unit_for_each() {
        let log = json!({"id": "r", "reference_tool_calls": [], "user_input": [
            {"type": "human", "content": "Book"},
            {"type": "ai", "content": "", "tool_calls": [{"name": "book", "args": {"to": "Bern"}}]},
            {"type": "tool", "content": "ok"},
            {"type": "ai", "content": "Booked."},
            {"type": "human", "content": "Cancel"},
            {"type": "ai", "content": "No."}]});
        let steps = "calls book with {\"to\":\"Bern\"}\ngets: ok\nsays: Booked.";
        assert_eq!(
            cut(TraceFormat::Ragas, &log),
            pairs(&[("Book", steps), ("Cancel", "says: No.")])
        );
    }

    #[test]
    fn a_plain_question_and_answer_is_a_unit_too() {
        let trace = Trace::parse(r#"{"id":"t","input":"q","calls":[{"name":"f","arguments":{},"error":"no"}],"output":"a"}"#).unwrap();
        let steps = "calls f with {}\ngets an error: no\nsays: a".to_owned();
        assert_eq!(units(&trace), [Ok(Unit { task: "q".into(), steps })]);
    }

    #[test]
    fn a_unit_that_was_not_recorded_is_not_judged() {
        let why = |text: &str| units(&Trace::parse(text).unwrap())[0].clone().unwrap_err();
        assert!(why(r#"{"id":"t","calls":[],"output":"a"}"#).contains("the request"));
        assert!(why(r#"{"id":"t","input":"q","calls":[]}"#).contains("the steps"));
        let several = r#"{"id":"t","input":"q","turns":"multi","calls":[],"output":"a"}"#;
        assert!(why(several).contains("whole conversation"));
        // Two turns, and a call that the messages do not show.
        let lost = r#"{"id":"t","calls":[{"name":"f"}],"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"}]}"#;
        assert!(why(lost).contains("whole conversation"));
    }
}
