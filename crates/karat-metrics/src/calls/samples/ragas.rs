//! RAGAS multi-turn samples:
//! `{"id", "user_input": [{"type": "human" | "ai" | "tool", "tool_calls": [{"name", "args"}]}],
//! "reference_tool_calls": [{"name", "args"}]}`, with `messages` as another name of `user_input`.
//!
//! The calls made are the `tool_calls` of the `ai` messages in order; those of other messages are not
//! looked at, as in RAGAS. Its rules on the order of messages are not checked: no score depends on
//! them.

use super::super::json::Reader;
use super::super::{Arguments, Call};
use super::{Invalid, Sample, missing, read_calls, read_id, unknown_value};

pub(super) fn read<'a>(reader: &mut Reader<'a>, sample: &mut Sample<'a>) -> Result<(), Invalid> {
    let (mut has_messages, mut has_reference) = (false, false);
    reader.object(|reader, key| {
        match &*key {
            "user_input" | "messages" => {
                sample.called.clear();
                has_messages = !reader.skip_null()?;
                if has_messages {
                    read_messages(reader, &mut sample.called)
                        .map_err(|error| error.within(&key))?;
                }
            }
            "reference_tool_calls" => {
                sample.expected.clear();
                has_reference = !reader.skip_null()?;
                if has_reference {
                    let expected = &mut sample.expected;
                    read_calls(reader, expected, 0, read_call)
                        .map_err(|error| error.within(&key))?;
                }
            }
            "id" => sample.id = read_id(reader).map_err(|error| error.within(&key))?,
            _ => reader.skip()?,
        }
        Ok::<(), Invalid>(())
    })?;
    match (has_messages, has_reference) {
        (false, _) => Err(missing("user_input")),
        (_, false) => Err(missing("reference_tool_calls")),
        _ => Ok(()),
    }
}

fn read_messages<'a>(reader: &mut Reader<'a>, called: &mut Vec<Call<'a>>) -> Result<(), Invalid> {
    let mut position = 0;
    reader.list(|reader| {
        let place = |error: Invalid| error.within(&format!("[{position}]"));
        read_message(reader, called).map_err(place)?;
        position += 1;
        Ok(())
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Ai,
    Other,
}

fn read_message<'a>(reader: &mut Reader<'a>, called: &mut Vec<Call<'a>>) -> Result<(), Invalid> {
    let before = called.len();
    let mut author = None;
    // The place of the calls, if they come before the type that decides whether they count.
    let mut later = None;
    reader.object(|reader, key| {
        match &*key {
            "type" => author = Some(read_author(reader).map_err(|error| error.within(&key))?),
            "tool_calls" => {
                called.truncate(before);
                later = None;
                if author == Some(Author::Ai) {
                    read_tool_calls(reader, called, before)?;
                } else {
                    later = Some(reader.clone());
                    reader.skip()?;
                }
            }
            _ => reader.skip()?,
        }
        Ok::<(), Invalid>(())
    })?;
    match (author, later) {
        (None, _) => Err(missing("type")),
        (Some(Author::Ai), Some(mut reader)) => read_tool_calls(&mut reader, called, before),
        (Some(Author::Ai), None) => Ok(()),
        (Some(Author::Other), _) => {
            called.truncate(before);
            Ok(())
        }
    }
}

fn read_author(reader: &mut Reader<'_>) -> Result<Author, Invalid> {
    let value = reader.string()?;
    match &*value {
        "ai" => Ok(Author::Ai),
        "human" | "tool" => Ok(Author::Other),
        _ => Err(unknown_value(&value, "human, ai, tool")),
    }
}

fn read_tool_calls<'a>(
    reader: &mut Reader<'a>,
    called: &mut Vec<Call<'a>>,
    before: usize,
) -> Result<(), Invalid> {
    if reader.skip_null()? {
        return Ok(());
    }
    read_calls(reader, called, before, read_call).map_err(|error| error.within("tool_calls"))
}

fn read_call<'a>(reader: &mut Reader<'a>) -> Result<Call<'a>, Invalid> {
    let (mut name, mut arguments) = (None, None);
    reader.object(|reader, key| {
        match &*key {
            "name" => {
                name = Some(reader.string().map_err(|error| Invalid::from(error).within(&key))?);
            }
            "args" => {
                let read = Arguments::read(reader);
                arguments = Some(read.map_err(|error| Invalid::from(error).within(&key))?);
            }
            _ => reader.skip()?,
        }
        Ok::<(), Invalid>(())
    })?;
    let name = name.ok_or_else(|| missing("name"))?;
    let arguments = arguments.ok_or_else(|| missing("args"))?;
    Ok(Call::new(name, arguments))
}

#[cfg(test)]
mod tests {
    use super::super::SampleFormat;
    use super::*;

    fn sample(line: &str) -> Result<Sample<'_>, Invalid> {
        let mut sample = Sample::default();
        sample.read(SampleFormat::Ragas, line).map(|()| sample)
    }

    fn names(calls: &[Call<'_>]) -> Vec<String> {
        calls.iter().map(|call| format!("{}{}", call.name, call.arguments())).collect()
    }

    #[track_caller]
    fn fails(line: &str, place: &str, message: &str) {
        assert_eq!(sample(line).unwrap_err(), Invalid::at(place, message));
    }

    #[test]
    fn the_calls_of_all_ai_messages_count_in_order() {
        let line = r#"{"user_input":[
            {"type":"human","content":"hi","tool_calls":[{"name":"no"}]},
            {"type":"ai","content":"","tool_calls":[{"name":"a","args":{"x":1}},{"name":"b","args":{}}]},
            {"type":"tool","content":"r"},
            {"type":"ai","content":"t","tool_calls":null},
            {"content":"","tool_calls":[{"args":{"y":[2]},"name":"c"}],"type":"ai"},
            {"tool_calls":[{"name":"no"}],"type":"human"}
        ],"reference_tool_calls":[{"name":"a","args":{"x":1.0}}],"id":"s-1","other":{"deep":[1]}}"#;
        let sample = sample(line).unwrap();
        assert_eq!(names(&sample.called), [r#"a{"x":1}"#, "b{}", r#"c{"y":[2]}"#]);
        assert_eq!(names(&sample.expected), [r#"a{"x":1.0}"#]);
        assert_eq!(sample.id.as_deref(), Some("s-1"));
    }

    #[test]
    fn of_a_repeated_key_the_last_one_counts() {
        let call = |name| format!(r#"[{{"name":"{name}","args":{{}}}}]"#);
        let message = |calls: &str, other: &str, kind| {
            format!(r#"{{"type":"ai","tool_calls":{calls},"tool_calls":{other},"type":"{kind}"}}"#)
        };
        let kept = message(&call("no"), &call("yes"), "ai");
        let dropped = message(&call("no"), &call("no"), "human");
        let line = format!(
            r#"{{"messages":[{kept}],"user_input":[{kept},{dropped}],
                "reference_tool_calls":{},"reference_tool_calls":[]}}"#,
            call("no")
        );
        let sample = sample(&line).unwrap();
        assert_eq!(names(&sample.called), ["yes{}"]);
        assert!(sample.expected.is_empty());
    }

    #[test]
    fn a_missing_field_is_named() {
        let missing = "is missing";
        fails("{}", "user_input", missing);
        fails(r#"{"messages":null,"reference_tool_calls":[]}"#, "user_input", missing);
        fails(r#"{"messages":[]}"#, "reference_tool_calls", missing);
        fails(r#"{"messages":[],"reference_tool_calls":null}"#, "reference_tool_calls", missing);
        fails(r#"{"messages":[{}],"reference_tool_calls":[]}"#, "messages[0].type", missing);
        let reference =
            r#"{"messages":[],"reference_tool_calls":[{"name":"a","args":{}},{"name":"b"}]}"#;
        fails(reference, "reference_tool_calls[1].args", missing);
        let message =
            r#"{"messages":[{"tool_calls":[{"args":{}}],"type":"ai"}],"reference_tool_calls":[]}"#;
        fails(message, "messages[0].tool_calls[0].name", missing);
    }

    #[test]
    fn a_field_of_the_wrong_type_is_named() {
        fails("[]", "", "should be an object, not a list");
        fails(r#"{"messages":{}}"#, "messages", "should be a list, not an object");
        fails(r#"{"messages":["hi"]}"#, "messages[0]", "should be an object, not a string");
        fails(
            r#"{"messages":[{"type":"ai"},{"type":"ai","tool_calls":[{"name":"a","args":[]}]}]}"#,
            "messages[1].tool_calls[0].args",
            "should be an object, not a list",
        );
        fails(r#"{"id":{}}"#, "id", "should be a string, not an object");
        let unknown = "is \"system\", should be one of human, ai, tool";
        fails(r#"{"messages":[{"type":"system"}]}"#, "messages[0].type", unknown);
    }
}
