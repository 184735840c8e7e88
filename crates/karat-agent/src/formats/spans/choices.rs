//! Choices: the answers that a model gave to one request that asked for several. Their messages are numbered, so
//! that they are not taken for the messages of one answer.

use serde_json::Value;

/// The field of a message with the number of its choice.
pub(super) const CHOICE: &str = "index";

/// The event with a choice, in the older form of the GenAI conventions.
pub(super) const CHOICE_EVENT: &str = "gen_ai.choice";

/// The field of a message with the number of its answer, where the events of a span have several.
pub(super) const ANSWER: &str = "karat.answer_number";

/// The field of a choice that says why the model stopped.
pub(super) const FINISH: &str = "finish_reason";

/// The attribute with the parameters of a request in spans of Langfuse.
pub(super) const LANGFUSE_PARAMETERS: &str = "langfuse.observation.model.parameters";

/// Returns whether a model stopped for this reason to have tools called.
pub(super) fn ends_in_calls(reason: &Value) -> bool {
    let word = reason.as_str().unwrap_or_default().to_lowercase().replace('-', "_");
    // Some write the name of the enumeration before it.
    let word = word.rsplit('.').next().unwrap_or_default();
    matches!(word, "tool_call" | "tool_calls" | "tool_use" | "function_call")
}

/// The messages of choices; they are alternatives, and numbered if there are several.
pub(super) fn messages_of_choices(choices: &[Value]) -> Value {
    numbered(choices.iter().filter_map(|choice| choice.get("message")))
}

/// Messages with the numbers of their choices.
pub(super) fn numbered<'v>(messages: impl Iterator<Item = &'v Value>) -> Value {
    let mut all: Vec<Value> = messages.cloned().collect();
    if all.len() > 1 {
        for (number, message) in all.iter_mut().enumerate() {
            if let Some(message) = message.as_object_mut() {
                message.insert(CHOICE.to_owned(), number.into());
            }
        }
    }
    Value::from(all)
}
