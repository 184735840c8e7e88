//! DeepEval test cases:
//! `{"id", "tools_called": [{"name", "type", "input_parameters", "output"}], "expected_tools": […]}`,
//! also with the camel-case names under which DeepEval writes them (`toolsCalled`, `expectedTools`,
//! `inputParameters`).

use super::super::json::Reader;
use super::super::{Arguments, Call, CallKind};
use super::{Invalid, Sample, missing, read_calls, read_id, unknown_value};

pub(super) fn read<'a>(reader: &mut Reader<'a>, sample: &mut Sample<'a>) -> Result<(), Invalid> {
    let (mut has_called, mut has_expected) = (false, false);
    reader.object(|reader, key| {
        let (calls, has) = match &*key {
            "tools_called" | "toolsCalled" => (&mut sample.called, &mut has_called),
            "expected_tools" | "expectedTools" => (&mut sample.expected, &mut has_expected),
            "id" => {
                sample.id = read_id(reader).map_err(|error| error.within(&key))?;
                return Ok(());
            }
            _ => return Ok(reader.skip()?),
        };
        calls.clear();
        *has = !reader.skip_null()?;
        if *has {
            read_calls(reader, calls, 0, read_call).map_err(|error| error.within(&key))?;
        }
        Ok::<(), Invalid>(())
    })?;
    match (has_called, has_expected) {
        (false, _) => Err(missing("tools_called")),
        (_, false) => Err(missing("expected_tools")),
        _ => Ok(()),
    }
}

fn read_call<'a>(reader: &mut Reader<'a>) -> Result<Call<'a>, Invalid> {
    let mut name = None;
    let mut call = Call::default();
    reader.object(|reader, key| {
        match &*key {
            "name" => {
                name = Some(reader.string().map_err(|error| Invalid::from(error).within(&key))?);
            }
            "type" => call.kind = read_kind(reader).map_err(|error| error.within(&key))?,
            "input_parameters" | "inputParameters" => {
                call.arguments = None;
                if !reader.skip_null()? {
                    let read = Arguments::read(reader);
                    call.arguments = Some(read.map_err(|error| Invalid::from(error).within(&key))?);
                }
            }
            "output" => call.output = reader.value()?,
            _ => reader.skip()?,
        }
        Ok::<(), Invalid>(())
    })?;
    call.name = name.ok_or_else(|| missing("name"))?;
    Ok(call)
}

fn read_kind(reader: &mut Reader<'_>) -> Result<CallKind, Invalid> {
    let value = reader.string()?;
    match &*value {
        "FUNCTION" => Ok(CallKind::Function),
        "MCP" => Ok(CallKind::Mcp),
        _ => Err(unknown_value(&value, "FUNCTION, MCP")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::SampleFormat;
    use super::*;

    fn sample(line: &str) -> Result<Sample<'_>, Invalid> {
        let mut sample = Sample::default();
        sample.read(SampleFormat::Deepeval, line).map(|()| sample)
    }

    #[track_caller]
    fn fails(line: &str, place: &str, message: &str) {
        assert_eq!(sample(line).unwrap_err(), Invalid::at(place, message));
    }

    #[test]
    fn everything_that_deepeval_compares_is_read() {
        let line = r#"{"id":7,"input":"q","actual_output":"a",
            "tools_called":[{"name":"a","type":"MCP","input_parameters":{"x":1},"output":[1.0],"reasoning":"r"}],
            "expectedTools":[{"name":"b","inputParameters":null,"output":null}]}"#;
        let sample = sample(line).unwrap();
        let [called] = &sample.called[..] else { panic!("{:?}", sample.called) };
        assert_eq!((&*called.name, called.kind), ("a", CallKind::Mcp));
        assert_eq!(called.arguments.as_ref().unwrap().to_string(), r#"{"x":1}"#);
        assert_eq!(called.output.to_string(), "[1.0]");
        let [expected] = &sample.expected[..] else { panic!("{:?}", sample.expected) };
        assert_eq!((&*expected.name, expected.kind), ("b", CallKind::Function));
        assert!(expected.arguments.is_none());
        assert_eq!(sample.id.as_deref(), Some("7"));
    }

    #[test]
    fn a_missing_or_wrong_field_is_named() {
        fails("{}", "tools_called", "is missing");
        fails(r#"{"tools_called":[]}"#, "expected_tools", "is missing");
        fails(r#"{"tools_called":[{}]}"#, "tools_called[0].name", "is missing");
        fails(
            r#"{"expected_tools":[{"name":"a","input_parameters":3}]}"#,
            "expected_tools[0].input_parameters",
            "should be an object, not a number",
        );
        fails(
            r#"{"expected_tools":[{"name":"a","type":"mcp"}]}"#,
            "expected_tools[0].type",
            "is \"mcp\", should be one of FUNCTION, MCP",
        );
    }
}
