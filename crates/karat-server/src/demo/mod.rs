//! The demo server: tools that are good, slow, flaky or wrong, on purpose and always in the same way.
//!
//! The bundled project, the documentation and the tests measure it, so Karat must find each of its
//! faults. State lives as long as the process; nothing touches the disk or the network. The tools that
//! do are in [`vulnerable`], and are offered only on request.

pub mod vulnerable;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use karat_mcp::serve::{Context, Offer, ProtocolError, Respond};
use serde_json::{Value, json};

/// The longest time that `wait` waits.
const MAX_WAIT_MS: u64 = 10_000;
/// The longest note that is kept.
const MAX_NOTE: usize = 2_000;
/// Every call with a multiple of this number fails.
const FLAKY_EVERY: u64 = 4;
/// The code for invalid arguments.
const INVALID_PARAMS: i64 = -32602;

/// The tools of the demo server.
#[must_use]
pub fn offer() -> Offer {
    Offer {
        name: "karat-demo".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        instructions: Some(
            "A server to try Karat on. Some of its tools are wrong on purpose; their descriptions \
             say so."
                .to_owned(),
        ),
        tools: vec![
            add(),
            echo(),
            keep_note(),
            read_note(),
            forget_note(),
            wait(),
            flaky(),
            misshapen(),
        ],
    }
}

/// A tool that only reads.
fn tool(name: &str, description: &str, properties: &Value, required: &[&str]) -> Value {
    json!({
        "name": name,
        "description": description,
        "inputSchema": {
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        },
        "annotations": {"readOnlyHint": true},
    })
}

/// The same tool, but it changes something.
fn changing(mut tool: Value) -> Value {
    tool["annotations"]["readOnlyHint"] = json!(false);
    tool
}

fn with_output(mut tool: Value, properties: &Value, required: &[&str]) -> Value {
    tool["outputSchema"] =
        json!({"type": "object", "properties": properties, "required": required});
    tool
}

fn add() -> Value {
    let number =
        |which: &str| json!({"type": "number", "description": format!("The {which} number")});
    let tool = tool(
        "add",
        "Adds two numbers and returns their sum.",
        &json!({"a": number("first"), "b": number("second")}),
        &["a", "b"],
    );
    with_output(tool, &json!({"sum": {"type": "number"}}), &["sum"])
}

fn echo() -> Value {
    tool(
        "echo",
        "Returns the text that it is given, unchanged.",
        &json!({"text": {"type": "string", "description": "Any text"}}),
        &["text"],
    )
}

fn keep_note() -> Value {
    let tool = tool(
        "keep_note",
        "Keeps a note until the server ends, and returns the number under which it can be read.",
        &json!({"text": {"type": "string", "description": "The note", "minLength": 1, "maxLength": MAX_NOTE}}),
        &["text"],
    );
    changing(with_output(tool, &json!({"id": {"type": "integer"}}), &["id"]))
}

fn read_note() -> Value {
    tool(
        "read_note",
        "Reads back a note by its number; fails if there is no such note.",
        &json!({"id": {"type": "integer", "description": "The number that keep_note returned"}}),
        &["id"],
    )
}

fn forget_note() -> Value {
    let mut tool = tool(
        "forget_note",
        "Throws a note away for good, by its number.",
        &json!({"id": {"type": "integer", "description": "The number that keep_note returned"}}),
        &["id"],
    );
    tool["annotations"]["destructiveHint"] = json!(true);
    changing(tool)
}

fn wait() -> Value {
    tool(
        "wait",
        "Answers only after the given time has passed: a slow tool, to try time limits on.",
        &json!({"ms": {"type": "integer", "description": "Milliseconds to wait", "minimum": 0, "maximum": MAX_WAIT_MS}}),
        &["ms"],
    )
}

fn flaky() -> Value {
    tool(
        "flaky",
        "Fails at every fourth call, and succeeds otherwise: an unreliable tool, to try repetition on.",
        &json!({}),
        &[],
    )
}

fn misshapen() -> Value {
    let tool = tool(
        "misshapen",
        "Declares that it returns a whole number and returns a text: a tool that breaks its own schema.",
        &json!({}),
        &[],
    );
    with_output(tool, &json!({"count": {"type": "integer"}}), &["count"])
}

/// The state behind the tools.
#[derive(Default)]
pub struct Demo {
    notes: Mutex<BTreeMap<u64, String>>,
    kept: AtomicU64,
    flaky_calls: AtomicU64,
}

/// The parameters of each tool: others are refused, as the schemas say.
const PARAMETERS: &[(&str, &[&str])] = &[
    ("add", &["a", "b"]),
    ("echo", &["text"]),
    ("keep_note", &["text"]),
    ("read_note", &["id"]),
    ("forget_note", &["id"]),
    ("wait", &["ms"]),
    ("flaky", &[]),
    ("misshapen", &[]),
];

/// An argument that the tool does not have.
fn surplus<'a>(tool: &str, arguments: &'a Value) -> Option<&'a str> {
    let (_, known) = PARAMETERS.iter().find(|(name, _)| *name == tool)?;
    let given = arguments.as_object()?;
    given.keys().map(String::as_str).find(|name| !known.contains(name))
}

impl Respond for Demo {
    async fn call(
        &self,
        _: &Context,
        tool: &str,
        arguments: &Value,
    ) -> Result<Value, ProtocolError> {
        self.answer(tool, arguments).await
    }
}

impl Demo {
    async fn answer(&self, tool: &str, arguments: &Value) -> Result<Value, ProtocolError> {
        if let Some(name) = surplus(tool, arguments) {
            return Ok(failed(&format!("there is no parameter {name:?}")));
        }
        match tool {
            "add" => Ok(self.add(arguments)),
            "echo" => Ok(text_argument(arguments, "text")
                .map_or_else(|why| failed(&why), |text| said(&text))),
            "keep_note" => Ok(self.keep(arguments)),
            "read_note" => Ok(self.read(arguments)),
            "forget_note" => Ok(self.forget(arguments)),
            "wait" => Ok(wait_for(arguments).await),
            "flaky" => Ok(self.flaky()),
            "misshapen" => Ok(json!({
                "content": [{"type": "text", "text": "seven"}],
                "structuredContent": {"count": "seven"},
            })),
            other => Err(ProtocolError::new(INVALID_PARAMS, format!("there is no tool {other:?}"))),
        }
    }

    fn add(&self, arguments: &Value) -> Value {
        let number = |name: &str| {
            arguments
                .get(name)
                .and_then(Value::as_f64)
                .ok_or_else(|| format!("{name} must be a number"))
        };
        match (number("a"), number("b")) {
            (Ok(a), Ok(b)) => structured(&json!({"sum": a + b})),
            (Err(why), _) | (_, Err(why)) => failed(&why),
        }
    }

    fn keep(&self, arguments: &Value) -> Value {
        match text_argument(arguments, "text") {
            Ok(text) if text.is_empty() => failed("text must not be empty"),
            Ok(text) if text.chars().count() > MAX_NOTE => {
                failed(&format!("text must have at most {MAX_NOTE} characters"))
            }
            Ok(text) => {
                let id = self.kept.fetch_add(1, Ordering::Relaxed) + 1;
                self.notes().insert(id, text);
                structured(&json!({"id": id}))
            }
            Err(why) => failed(&why),
        }
    }

    fn read(&self, arguments: &Value) -> Value {
        match note_id(arguments) {
            Ok(id) => self
                .notes()
                .get(&id)
                .map_or_else(|| failed(&format!("there is no note {id}")), |text| said(text)),
            Err(why) => failed(&why),
        }
    }

    fn forget(&self, arguments: &Value) -> Value {
        match note_id(arguments) {
            Ok(id) if self.notes().remove(&id).is_some() => said("forgotten"),
            Ok(id) => failed(&format!("there is no note {id}")),
            Err(why) => failed(&why),
        }
    }

    fn flaky(&self) -> Value {
        let call = self.flaky_calls.fetch_add(1, Ordering::Relaxed) + 1;
        if call.is_multiple_of(FLAKY_EVERY) { failed("not this time") } else { said("done") }
    }

    fn notes(&self) -> std::sync::MutexGuard<'_, BTreeMap<u64, String>> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn wait_for(arguments: &Value) -> Value {
    match arguments.get("ms").and_then(Value::as_u64) {
        Some(ms) if ms <= MAX_WAIT_MS => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            said(&format!("waited {ms} ms"))
        }
        _ => failed(&format!("ms must be a whole number from 0 to {MAX_WAIT_MS}")),
    }
}

fn text_argument(arguments: &Value, name: &str) -> Result<String, String> {
    arguments
        .get(name)
        .and_then(Value::as_str)
        .map(str::to_owned)
        .ok_or_else(|| format!("{name} must be a text"))
}

fn note_id(arguments: &Value) -> Result<u64, String> {
    arguments
        .get("id")
        .and_then(Value::as_u64)
        .ok_or_else(|| "id must be a whole number".to_owned())
}

fn said(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn structured(content: &Value) -> Value {
    json!({"content": [{"type": "text", "text": content.to_string()}], "structuredContent": content})
}

/// A tool error, so that a model can correct its arguments.
fn failed(why: &str) -> Value {
    json!({"content": [{"type": "text", "text": why}], "isError": true})
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lint;

    #[test]
    fn the_demo_has_no_lint_findings() {
        let settings = lint::Settings {
            count_tokens: &|text| text.len() as u64 / 4,
            allow: &[],
            detector: None,
            instructions: None,
        };
        assert_eq!(lint::lint(&offer().tools, &settings).findings, []);
    }

    #[tokio::test]
    async fn every_tool_answers() {
        let demo = Demo::default();
        for tool in offer().tools {
            let name = tool["name"].as_str().unwrap();
            assert!(demo.answer(name, &json!({})).await.is_ok(), "{name}");
        }
        assert!(demo.answer("nothing", &json!({})).await.is_err());
    }

    #[tokio::test]
    async fn the_flaky_tool_fails_at_every_fourth_call() {
        let demo = Demo::default();
        let mut failures = Vec::new();
        for call in 1..=8 {
            let result = demo.answer("flaky", &json!({})).await.unwrap();
            if result.get("isError").is_some() {
                failures.push(call);
            }
        }
        assert_eq!(failures, [4, 8]);
    }
}
