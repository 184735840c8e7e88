//! JSON-RPC messages: bounded reading, and writing.
//!
//! Reading keeps the raw value. An invalid message is a [`Fault`] with its id, if one can be found, so that
//! the right call fails.

use karat_io::text::json_string_end;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::error::{CallError, quoted};
use crate::lenient;
use crate::limits::Limits;

/// A message that came in.
#[derive(Debug, PartialEq)]
pub(crate) enum Incoming {
    /// An answer to a request of this side.
    Answer { id: Value, outcome: Result<Value, CallError> },
    /// A request of the other side.
    Request { id: Value, method: String, params: Value },
    /// A notification of the other side.
    Notification { method: String, params: Value },
}

/// Bytes that are not a valid message.
#[derive(Debug, PartialEq)]
pub(crate) struct Fault {
    pub(crate) kind: FaultKind,
    /// The id of the message, if it has one.
    pub(crate) id: Option<Value>,
    pub(crate) error: CallError,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FaultKind {
    NotJson,
    NotUtf8,
    TooDeep,
    NotJsonRpc,
}

impl Fault {
    fn new(kind: FaultKind, why: impl Into<String>) -> Box<Fault> {
        Box::new(Fault { kind, id: None, error: CallError::invalid(why) })
    }
}

/// The messages in a line or body.
pub(crate) struct Read {
    /// One message, or those of a batch.
    pub(crate) messages: Vec<Result<Incoming, Box<Fault>>>,
    /// The replacements without which it would not be JSON.
    pub(crate) repaired: Option<String>,
}

/// A result as nearly every answer is written, without anything else in the message. It is read at once, where
/// any other message is read as a document and then taken apart.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlainResult<'a> {
    jsonrpc: &'a str,
    id: u64,
    result: Value,
}

impl PlainResult<'_> {
    /// Reads a message of this kind; any other, also one with a key that is there twice, is left alone.
    fn read(bytes: &[u8], limits: &Limits) -> Option<Incoming> {
        // Of a list the parts would be taken for the fields.
        if bytes.first() != Some(&b'{') || deeper_than(bytes, limits.depth()) {
            return None;
        }
        let PlainResult { jsonrpc, id, result } = serde_json::from_slice(bytes).ok()?;
        let id = Value::from(id);
        (jsonrpc == "2.0").then_some(Incoming::Answer { id, outcome: Ok(result) })
    }
}

/// Reads the bytes of one message; a batch gives several.
pub(crate) fn read(bytes: &[u8], limits: &Limits) -> Read {
    if let Some(answer) = PlainResult::read(bytes, limits) {
        return Read { messages: vec![Ok(answer)], repaired: None };
    }
    let mut repaired = None;
    let mut parsed = parse(bytes, limits);
    if let Err(fault) = &parsed
        && fault.kind == FaultKind::NotJson
        && let Some((bytes, note)) = lenient::repaired(bytes)
        && let Ok(value) = parse(&bytes, limits)
    {
        (parsed, repaired) = (Ok(value), Some(note));
    }
    let messages = match parsed {
        Ok(Value::Array(messages)) if !messages.is_empty() => {
            messages.into_iter().map(classify).collect()
        }
        Ok(message) => vec![classify(message)],
        Err(fault) => vec![Err(fault)],
    };
    Read { messages, repaired }
}

/// The number of an id. `3.0` is 3: most languages cannot tell them apart.
pub(crate) fn id_number(id: &Value) -> Option<u64> {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float = || id.as_f64().filter(|id| id.fract() == 0.0 && (0.0..EXACT).contains(id));
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "checked to be a whole number in range"
    )]
    id.as_u64().or_else(|| float().map(|id| id as u64))
}

/// Reads bytes as JSON within the limits.
pub(crate) fn parse(bytes: &[u8], limits: &Limits) -> Result<Value, Box<Fault>> {
    let depth = limits.depth();
    if deeper_than(bytes, depth) {
        let error = CallError::TooLarge { limit: depth, what: "levels" };
        let id = id_in(&bytes[..bytes.len().min(ID_BYTES)]);
        return Err(Box::new(Fault { kind: FaultKind::TooDeep, id, error }));
    }
    match serde_json::from_slice(bytes) {
        Ok(value) => Ok(value),
        Err(_) if std::str::from_utf8(bytes).is_err() => {
            let mut fault = Fault::new(FaultKind::NotUtf8, "the answer is not UTF-8");
            let text = String::from_utf8_lossy(bytes);
            fault.id = serde_json::from_str::<Value>(&text)
                .ok()
                .and_then(|message| message.get("id").cloned());
            Err(fault)
        }
        Err(_) => {
            let why = format!("not JSON: {}", quoted(&String::from_utf8_lossy(start(bytes))));
            let mut fault = Fault::new(FaultKind::NotJson, why);
            fault.id = id_in(bytes);
            Err(fault)
        }
    }
}

/// Bytes at the start of a message in which its id is looked for.
const ID_BYTES: usize = 4 << 10;

/// The id at the top level of a message of which only the start was kept.
pub(crate) fn id_in(start: &[u8]) -> Option<Value> {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = start.get(at) {
        match byte {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => {
                let end = json_string_end(start, at)?;
                if depth == 1 && &start[at..end] == b"\"id\"" {
                    let rest = start[end..].trim_ascii_start().strip_prefix(b":")?;
                    let stop = rest.iter().position(|byte| matches!(byte, b',' | b'}'))?;
                    return serde_json::from_slice(rest[..stop].trim_ascii()).ok();
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// True if lists and objects are nested deeper than this. Only brackets outside of strings count.
fn deeper_than(bytes: &[u8], limit: usize) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'{' | b'[' => {
                depth += 1;
                if depth > limit {
                    return true;
                }
            }
            b'}' | b']' => depth = depth.saturating_sub(1),
            b'"' => match json_string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                None => return false,
            },
            _ => {}
        }
        at += 1;
    }
    false
}

fn start(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(2_000)]
}

fn classify(message: Value) -> Result<Incoming, Box<Fault>> {
    let Value::Object(mut fields) = message else {
        return Err(Fault::new(FaultKind::NotJsonRpc, "the message is not an object"));
    };
    let id = fields.swap_remove("id");
    let fault = |why: String| {
        let error = CallError::Invalid { why };
        Box::new(Fault { kind: FaultKind::NotJsonRpc, id: id.clone(), error })
    };
    if fields.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(fault("missing \"jsonrpc\": \"2.0\"".to_owned()));
    }
    match fields.swap_remove("method") {
        Some(Value::String(method)) => {
            let params = fields.swap_remove("params").unwrap_or(Value::Null);
            return Ok(match id {
                Some(id) => Incoming::Request { id, method, params },
                None => Incoming::Notification { method, params },
            });
        }
        Some(_) => return Err(fault("the method of the message is not a string".to_owned())),
        None => {}
    }
    let outcome = match (fields.swap_remove("result"), fields.swap_remove("error")) {
        (Some(result), None) => Ok(result),
        (None, Some(error)) => Err(protocol_error(error).map_err(&fault)?),
        (Some(_), Some(_)) => {
            return Err(fault("the answer has both a result and an error".to_owned()));
        }
        (None, None) => {
            return Err(fault("the message has no method, no result and no error".to_owned()));
        }
    };
    Ok(Incoming::Answer { id: id.unwrap_or(Value::Null), outcome })
}

fn protocol_error(error: Value) -> Result<CallError, String> {
    let Value::Object(mut fields) = error else {
        return Err("the error of the answer is not an object".to_owned());
    };
    let Some(code) = fields.get("code").and_then(Value::as_i64) else {
        return Err("the error of the answer has no integer code".to_owned());
    };
    let Some(Value::String(message)) = fields.swap_remove("message") else {
        return Err("the error of the answer has no message".to_owned());
    };
    Ok(CallError::Protocol { code, message, data: fields.swap_remove("data") })
}

#[derive(Serialize)]
struct Request<'a, P> {
    jsonrpc: &'static str,
    id: u64,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<P>,
}

#[derive(Serialize)]
struct Notification<'a> {
    jsonrpc: &'static str,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Value>,
}

/// A request.
pub(crate) fn request<P: Serialize>(id: u64, method: &str, params: Option<P>) -> Vec<u8> {
    bytes(&Request { jsonrpc: "2.0", id, method, params })
}

/// A notification.
pub(crate) fn notification(method: &str, params: Option<&Value>) -> Vec<u8> {
    bytes(&Notification { jsonrpc: "2.0", method, params })
}

/// An answer to a request.
pub(crate) fn answer(id: &Value, outcome: &Result<Value, (i64, String)>) -> Vec<u8> {
    let mut message = Map::new();
    message.insert("jsonrpc".to_owned(), json!("2.0"));
    message.insert("id".to_owned(), id.clone());
    match outcome {
        Ok(result) => message.insert("result".to_owned(), result.clone()),
        Err((code, text)) => {
            message.insert("error".to_owned(), json!({"code": code, "message": text}))
        }
    };
    bytes(&message)
}

/// A message as JSON. Messages here always serialize: their keys are strings and their numbers finite.
pub(crate) fn bytes<T: Serialize>(message: &T) -> Vec<u8> {
    serde_json::to_vec(message).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn one(text: &str) -> Result<Incoming, Box<Fault>> {
        let mut read = read(text.as_bytes(), &Limits::default()).messages;
        assert_eq!(read.len(), 1);
        read.remove(0)
    }

    #[test]
    fn messages_are_classified() {
        assert_eq!(
            one(r#"{"jsonrpc":"2.0","id":1,"result":{}}"#),
            Ok(Incoming::Answer { id: json!(1), outcome: Ok(json!({})) })
        );
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#),
            Ok(Incoming::Request { method, .. }) if method == "ping"
        ));
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","method":"x","params":[1]}"#),
            Ok(Incoming::Notification { params, .. }) if params == json!([1])
        ));
        assert!(matches!(
            one(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"no"}}"#),
            Ok(Incoming::Answer { outcome: Err(CallError::Protocol { code: -32602, .. }), .. })
        ));
    }

    #[test]
    fn a_plain_result_is_read_as_any_other_message_is() {
        let limits = Limits::default();
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"b":[1.5,null],"a":"\u00e9"}}"#,
            r#" { "result" : 3 , "id" : 18446744073709551615 , "jsonrpc" : "2.0" } "#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2\u002e0","id":1,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"result":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":1,"result":2}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":{},"extra":1}"#,
            r#"{"jsonrpc":"1.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":"1","result":{}}"#,
            r#"{"jsonrpc":"2.0","id":-1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1.0,"result":{}}"#,
            r#"["2.0",1,{}]"#,
        ] {
            let whole = classify(parse(text.as_bytes(), &limits).unwrap());
            let whole = match parse(text.as_bytes(), &limits).unwrap() {
                Value::Array(messages) => messages.into_iter().map(classify).collect(),
                _ => vec![whole],
            };
            assert_eq!(read(text.as_bytes(), &limits).messages, whole, "{text}");
        }
    }

    #[test]
    fn a_broken_answer_keeps_its_id() {
        for text in [
            r#"{"id":7,"result":{}}"#,
            r#"{"jsonrpc":"1.0","id":7,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":7}"#,
            r#"{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":""}}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":"no"}"#,
            r#"{"jsonrpc":"2.0","id":7,"error":{"code":"x","message":""}}"#,
            r#"{"jsonrpc":"2.0","id":7,"method":3}"#,
        ] {
            let fault = one(text).unwrap_err();
            assert_eq!((fault.kind, fault.id), (FaultKind::NotJsonRpc, Some(json!(7))), "{text}");
        }
    }

    #[test]
    fn a_whole_number_is_an_id_however_it_is_written() {
        let id = |text: &str| id_number(&serde_json::from_str(text).unwrap());
        assert_eq!(["3", "3.0", "3e0"].map(id), [Some(3); 3]);
        assert_eq!(["3.5", "-1", "-1.0", "1e300", "\"3\"", "null"].map(id), [None; 6]);
    }

    #[test]
    fn an_answer_that_is_not_json_keeps_its_id() {
        for text in [r#"{"jsonrpc":"2.0","id":7,"result":{"a":undefined}}"#, r#"{"id":7,"result":"#]
        {
            let fault = one(text).unwrap_err();
            assert_eq!((fault.kind, fault.id), (FaultKind::NotJson, Some(json!(7))), "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_utf8_are_a_fault_of_their_own() {
        let fault = read(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"result\":\"\xff\"}", &Limits::default())
            .messages
            .remove(0)
            .unwrap_err();
        assert_eq!((fault.kind, fault.id), (FaultKind::NotUtf8, Some(json!(3))));
    }

    #[test]
    fn depth_is_counted_outside_of_strings() {
        let limits = Limits { depth: 3, ..Limits::default() };
        assert!(parse(br#"{"a":[{"b":"[[[[[\"[["}]}"#, &limits).is_ok());
        let fault = parse(br#"{"id":9,"a":[[[1]]]}"#, &limits).unwrap_err();
        assert_eq!((fault.kind, fault.id), (FaultKind::TooDeep, Some(json!(9))));
        let bomb = "[".repeat(1_000_000);
        assert_eq!(
            parse(bomb.as_bytes(), &Limits::default()).unwrap_err().kind,
            FaultKind::TooDeep
        );
    }

    #[test]
    fn the_id_is_found_in_the_start_of_a_message() {
        assert_eq!(id_in(br#"{"jsonrpc":"2.0","id":12,"result":{"id":1,"#), Some(json!(12)));
        assert_eq!(id_in(br#"{"result":{"id":1,"te"#), None);
        assert_eq!(id_in(br#"{"result":{"id":1},"id" : 4}"#), Some(json!(4)));
    }

    /// Random bytes that often resemble messages.
    fn hostile() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            prop::sample::select(vec![
                "{",
                "}",
                "[",
                "]",
                ",",
                ":",
                "\"",
                "\\",
                "\"id\"",
                "\"jsonrpc\":\"2.0\"",
                "\"result\"",
                "\"error\"",
                "\"method\"",
                "null",
                "1",
                "-1",
                "1e999",
                " ",
                "\n",
            ])
            .prop_map(|text| text.as_bytes().to_vec()),
            prop::collection::vec(any::<u8>(), 0..4),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn any_bytes_give_messages_or_one_fault(bytes in hostile()) {
            let Read { messages, repaired } = read(&bytes, &Limits::default());
            prop_assert!(!messages.is_empty());
            if serde_json::from_slice::<Value>(&bytes).is_err() && repaired.is_none() {
                prop_assert!(matches!(messages[..], [Err(_)]));
            }
        }

        #[test]
        fn the_id_in_the_start_of_a_message_is_its_id(
            id in any::<u64>(), text in ".{0,20}", first in any::<bool>()
        ) {
            let result = json!({"id": text, text.clone(): ["]}", "\"id\":1"]});
            let message = match first {
                true => json!({"id": id, "result": result}),
                false => json!({"result": result, "id": id}),
            };
            prop_assert_eq!(id_in(message.to_string().as_bytes()), Some(json!(id)));
        }

        #[test]
        fn depth_is_counted_like_the_parser_counts(depth in 1_usize..40, limit in 1_usize..40) {
            let text = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
            prop_assert_eq!(deeper_than(text.as_bytes(), limit), depth > limit);
        }
    }

    #[test]
    fn a_batch_is_several_messages() {
        let both = br#"[{"jsonrpc":"2.0","method":"a"},{"jsonrpc":"2.0","id":1,"result":1}]"#;
        assert_eq!(read(both, &Limits::default()).messages.len(), 2);
    }
}
