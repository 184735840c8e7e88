//! Choices: the answers that a model gave to one request that asked for several. Their messages are numbered, so
//! that they are not taken for the messages of one answer.

use serde_json::Value;

/// The field of a message with the number of its choice.
pub(super) const CHOICE: &str = "index";

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
