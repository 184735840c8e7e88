//! RAGAS multi-turn samples:
//! `{"id", "user_input": [{"type": "human" | "ai" | "tool", "tool_calls": [{"name", "args"}]}],
//! "reference_tool_calls": [{"name", "args"}]}`, with `messages` as another name of `user_input`.
//!
//! The calls made are the `tool_calls` of the `ai` messages in order; those of other messages are not
//! looked at, as RAGAS does. Its rules on the order of messages are not checked: no score depends on
//! them.

use karat_metrics::calls::json::Reader;
use karat_metrics::calls::{Arguments, Call};

use super::{ImportError, ImportProblem, read_calls, read_id};
use crate::sample::Sample;

pub(super) fn read<'a>(reader: &mut Reader<'a>, trace: &mut Sample<'a>) -> Result<(), ImportError> {
    let (mut has_messages, mut has_reference) = (false, false);
    reader.object(|reader, key| {
        match &*key {
            "user_input" | "messages" => {
                trace.called.clear();
                has_messages = !reader.skip_null()?;
                if has_messages {
                    read_messages(reader, &mut trace.called).map_err(|e| e.within(key))?;
                }
            }
            "reference_tool_calls" => {
                trace.expected.clear();
                has_reference = !reader.skip_null()?;
                if has_reference {
                    let expected = &mut trace.expected;
                    read_calls(reader, expected, 0, read_call).map_err(|e| e.within(key))?;
                }
            }
            "id" => trace.id = read_id(reader).map_err(|e| e.within(key))?,
            _ => reader.skip()?,
        }
        Ok::<(), ImportError>(())
    })?;
    match (has_messages, has_reference) {
        (false, _) => Err(ImportError::missing("user_input")),
        (_, false) => Err(ImportError::missing("reference_tool_calls")),
        _ => Ok(()),
    }
}

fn read_messages<'a>(
    reader: &mut Reader<'a>,
    called: &mut Vec<Call<'a>>,
) -> Result<(), ImportError> {
    let mut position = 0;
    reader.list(|reader| {
        let step = |e: ImportError| e.within(format_args!("[{position}]"));
        read_message(reader, called).map_err(step)?;
        position += 1;
        Ok(())
    })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Author {
    Ai,
    Other,
}

fn read_message<'a>(
    reader: &mut Reader<'a>,
    called: &mut Vec<Call<'a>>,
) -> Result<(), ImportError> {
    let before = called.len();
    let mut author = None;
    // Where the calls stand, if they came before it was known that they are wanted.
    let mut later = None;
    reader.object(|reader, key| {
        match &*key {
            "type" => author = Some(read_author(reader).map_err(|e| e.within(key))?),
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
        Ok::<(), ImportError>(())
    })?;
    match (author, later) {
        (None, _) => Err(ImportError::missing("type")),
        (Some(Author::Ai), Some(mut reader)) => read_tool_calls(&mut reader, called, before),
        (Some(Author::Ai), None) => Ok(()),
        (Some(Author::Other), _) => {
            called.truncate(before);
            Ok(())
        }
    }
}

fn read_author(reader: &mut Reader<'_>) -> Result<Author, ImportError> {
    let value = reader.string()?;
    match &*value {
        "ai" => Ok(Author::Ai),
        "human" | "tool" => Ok(Author::Other),
        _ => {
            let value = value.into_owned();
            let problem = ImportProblem::UnknownValue { value, known: "human, ai, tool" };
            Err(ImportError { field: String::new(), problem })
        }
    }
}

fn read_tool_calls<'a>(
    reader: &mut Reader<'a>,
    called: &mut Vec<Call<'a>>,
    before: usize,
) -> Result<(), ImportError> {
    if reader.skip_null()? {
        return Ok(());
    }
    read_calls(reader, called, before, read_call).map_err(|e| e.within("tool_calls"))
}

fn read_call<'a>(reader: &mut Reader<'a>) -> Result<Call<'a>, ImportError> {
    let (mut name, mut arguments) = (None, None);
    reader.object(|reader, key| {
        match &*key {
            "name" => name = Some(reader.string().map_err(|e| ImportError::from(e).within(key))?),
            "args" => {
                let read = Arguments::read(reader);
                arguments = Some(read.map_err(|e| ImportError::from(e).within(key))?);
            }
            _ => reader.skip()?,
        }
        Ok::<(), ImportError>(())
    })?;
    let name = name.ok_or_else(|| ImportError::missing("name"))?;
    let arguments = arguments.ok_or_else(|| ImportError::missing("args"))?;
    Ok(Call::new(name, arguments))
}

#[cfg(test)]
mod tests {
    use karat_metrics::calls::Kind;
    use karat_metrics::calls::json::DEPTH_LIMIT;

    use super::super::{Format, read};
    use super::*;

    fn trace(line: &str) -> Result<Sample<'_>, ImportError> {
        let mut trace = Sample::default();
        read(Format::Ragas, line, DEPTH_LIMIT, &mut trace).map(|()| trace)
    }

    fn names(calls: &[Call<'_>]) -> Vec<String> {
        calls.iter().map(|call| format!("{}{}", call.name, call.arguments())).collect()
    }

    #[track_caller]
    fn fails(line: &str, field: &str, problem: ImportProblem) {
        assert_eq!(trace(line).unwrap_err(), ImportError { field: field.into(), problem });
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
        let trace = trace(line).unwrap();
        assert_eq!(names(&trace.called), [r#"a{"x":1}"#, "b{}", r#"c{"y":[2]}"#]);
        assert_eq!(names(&trace.expected), [r#"a{"x":1.0}"#]);
        assert_eq!(trace.id.as_deref(), Some("s-1"));
    }

    #[test]
    fn of_a_key_that_comes_twice_the_last_one_counts() {
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
        let trace = trace(&line).unwrap();
        assert_eq!(names(&trace.called), ["yes{}"]);
        assert!(trace.expected.is_empty());
    }

    #[test]
    fn what_is_missing_is_named() {
        let missing = || ImportProblem::Missing;
        fails("{}", "user_input", missing());
        fails(r#"{"messages":null,"reference_tool_calls":[]}"#, "user_input", missing());
        fails(r#"{"messages":[]}"#, "reference_tool_calls", missing());
        fails(r#"{"messages":[],"reference_tool_calls":null}"#, "reference_tool_calls", missing());
        fails(r#"{"messages":[{}],"reference_tool_calls":[]}"#, "messages[0].type", missing());
        let reference =
            r#"{"messages":[],"reference_tool_calls":[{"name":"a","args":{}},{"name":"b"}]}"#;
        fails(reference, "reference_tool_calls[1].args", missing());
        let message =
            r#"{"messages":[{"tool_calls":[{"args":{}}],"type":"ai"}],"reference_tool_calls":[]}"#;
        fails(message, "messages[0].tool_calls[0].name", missing());
    }

    #[test]
    fn what_is_of_the_wrong_kind_is_named() {
        let wrong = |expected, found| ImportProblem::WrongType { expected, found };
        fails("[]", "", wrong(Kind::Object, Kind::List));
        fails(r#"{"messages":{}}"#, "messages", wrong(Kind::List, Kind::Object));
        fails(r#"{"messages":["hi"]}"#, "messages[0]", wrong(Kind::Object, Kind::String));
        fails(
            r#"{"messages":[{"type":"ai"},{"type":"ai","tool_calls":[{"name":"a","args":[]}]}]}"#,
            "messages[1].tool_calls[0].args",
            wrong(Kind::Object, Kind::List),
        );
        fails(r#"{"id":{}}"#, "id", wrong(Kind::String, Kind::Object));
        let unknown =
            ImportProblem::UnknownValue { value: "system".into(), known: "human, ai, tool" };
        fails(r#"{"messages":[{"type":"system"}]}"#, "messages[0].type", unknown);
    }
}
