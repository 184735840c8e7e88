//! DeepEval test cases:
//! `{"id", "tools_called": [{"name", "type", "input_parameters", "output"}], "expected_tools": […]}`,
//! also with the camel-case names under which DeepEval writes them (`toolsCalled`, `expectedTools`,
//! `inputParameters`).

use karat_metrics::calls::json::Reader;
use karat_metrics::calls::{Arguments, Call, CallKind};

use super::{ImportError, ImportProblem, read_calls, read_id};
use crate::sample::Sample;

pub(super) fn read<'a>(reader: &mut Reader<'a>, trace: &mut Sample<'a>) -> Result<(), ImportError> {
    let (mut has_called, mut has_expected) = (false, false);
    reader.object(|reader, key| {
        let (calls, has) = match &*key {
            "tools_called" | "toolsCalled" => (&mut trace.called, &mut has_called),
            "expected_tools" | "expectedTools" => (&mut trace.expected, &mut has_expected),
            "id" => {
                trace.id = read_id(reader).map_err(|e| e.within(key))?;
                return Ok(());
            }
            _ => return reader.skip().map_err(ImportError::from),
        };
        calls.clear();
        *has = !reader.skip_null()?;
        if *has {
            read_calls(reader, calls, 0, read_call).map_err(|e| e.within(key))?;
        }
        Ok::<(), ImportError>(())
    })?;
    match (has_called, has_expected) {
        (false, _) => Err(ImportError::missing("tools_called")),
        (_, false) => Err(ImportError::missing("expected_tools")),
        _ => Ok(()),
    }
}

fn read_call<'a>(reader: &mut Reader<'a>) -> Result<Call<'a>, ImportError> {
    let mut name = None;
    let mut call = Call::default();
    reader.object(|reader, key| {
        match &*key {
            "name" => name = Some(reader.string().map_err(|e| ImportError::from(e).within(key))?),
            "type" => call.kind = read_kind(reader).map_err(|e| e.within(key))?,
            "input_parameters" | "inputParameters" => {
                call.arguments = None;
                if !reader.skip_null()? {
                    let read = Arguments::read(reader);
                    call.arguments = Some(read.map_err(|e| ImportError::from(e).within(key))?);
                }
            }
            "output" => call.output = reader.value()?,
            _ => reader.skip()?,
        }
        Ok::<(), ImportError>(())
    })?;
    call.name = name.ok_or_else(|| ImportError::missing("name"))?;
    Ok(call)
}

fn read_kind(reader: &mut Reader<'_>) -> Result<CallKind, ImportError> {
    let value = reader.string()?;
    match &*value {
        "FUNCTION" => Ok(CallKind::Function),
        "MCP" => Ok(CallKind::Mcp),
        _ => {
            let value = value.into_owned();
            let problem = ImportProblem::UnknownValue { value, known: "FUNCTION, MCP" };
            Err(ImportError { field: String::new(), problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use karat_metrics::calls::Kind;
    use karat_metrics::calls::json::DEPTH_LIMIT;

    use super::super::{Format, read};
    use super::*;

    fn trace(line: &str) -> Result<Sample<'_>, ImportError> {
        let mut trace = Sample::default();
        read(Format::DeepEval, line, DEPTH_LIMIT, &mut trace).map(|()| trace)
    }

    #[track_caller]
    fn fails(line: &str, field: &str, problem: ImportProblem) {
        assert_eq!(trace(line).unwrap_err(), ImportError { field: field.into(), problem });
    }

    #[test]
    fn everything_deepeval_looks_at_is_read() {
        let line = r#"{"id":7,"input":"q","actual_output":"a",
            "tools_called":[{"name":"a","type":"MCP","input_parameters":{"x":1},"output":[1.0],"reasoning":"r"}],
            "expectedTools":[{"name":"b","inputParameters":null,"output":null}]}"#;
        let trace = trace(line).unwrap();
        let [called] = &trace.called[..] else { panic!("{:?}", trace.called) };
        assert_eq!((&*called.name, called.kind), ("a", CallKind::Mcp));
        assert_eq!(called.arguments.as_ref().unwrap().to_string(), r#"{"x":1}"#);
        assert_eq!(called.output.to_string(), "[1.0]");
        let [expected] = &trace.expected[..] else { panic!("{:?}", trace.expected) };
        assert_eq!((&*expected.name, expected.kind), ("b", CallKind::Function));
        assert!(expected.arguments.is_none());
        assert_eq!(trace.id.as_deref(), Some("7"));
    }

    #[test]
    fn what_is_missing_or_wrong_is_named() {
        fails("{}", "tools_called", ImportProblem::Missing);
        fails(r#"{"tools_called":[]}"#, "expected_tools", ImportProblem::Missing);
        fails(r#"{"tools_called":[{}]}"#, "tools_called[0].name", ImportProblem::Missing);
        fails(
            r#"{"expected_tools":[{"name":"a","input_parameters":3}]}"#,
            "expected_tools[0].input_parameters",
            ImportProblem::WrongType { expected: Kind::Object, found: Kind::Number },
        );
        fails(
            r#"{"expected_tools":[{"name":"a","type":"mcp"}]}"#,
            "expected_tools[0].type",
            ImportProblem::UnknownValue { value: "mcp".into(), known: "FUNCTION, MCP" },
        );
    }
}
