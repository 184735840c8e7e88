//! The strings of a definition: a walk over its fields and schemas.

use serde_json::{Map, Value};

use super::parts::{Keyword, Part, Surface};
use crate::definition::ScanInput;

/// The most strings of one definition that are read; a schema with more was not made for people.
const MAX_PARTS: usize = 20_000;

/// The strings of a definition. Both lists are empty.
pub(super) fn collect<'a>(
    input: &'a ScanInput,
    parts: Vec<Part<'a>>,
    pending: Vec<Pending<'a>>,
) -> (Vec<Part<'a>>, Vec<Pending<'a>>) {
    let mut collector = Collector { parts, pending };
    collector.input(input);
    (collector.parts, collector.pending)
}

struct Collector<'a> {
    parts: Vec<Part<'a>>,
    /// The schema nodes that are still to be visited.
    pending: Vec<Pending<'a>>,
}

/// A schema node that is still to be visited.
#[derive(Clone, Copy)]
pub(super) struct Pending<'a> {
    node: &'a Value,
    parameter: Option<&'a str>,
}

impl<'a> Pending<'a> {
    /// A child of this node, about the same parameter.
    fn child(self, node: &'a Value) -> Pending<'a> {
        Pending { node, ..self }
    }
}

impl<'a> Collector<'a> {
    fn input(&mut self, input: &'a ScanInput) {
        let tool = &input.tool;
        self.push(Part::new(Surface::Server, &input.server));
        self.push(Part::new(Surface::Name, &tool.name));
        if let Some(title) = &tool.title {
            self.push(Part::new(Surface::Title, title));
        }
        self.push(Part::new(Surface::Description, &tool.description));
        if let Some(annotations) = &tool.annotations {
            self.schema(annotations, Surface::Title);
        }
        if let Some(instructions) = &input.instructions {
            self.push(Part::new(Surface::Instructions, instructions));
        }
        if let Some(schema) = &tool.input_schema {
            self.schema(schema, Surface::ParameterText);
        }
        if let Some(schema) = &tool.output_schema {
            self.schema(schema, Surface::Output);
        }
        if let Some(result) = &input.result {
            self.result(result);
        }
    }

    /// Adds a result: of JSON its strings, line by line, so that quotation marks of JSON are not
    /// taken for citations; of anything else the text.
    fn result(&mut self, text: &'a str) {
        if !text.trim_start().starts_with(['{', '[', '"']) {
            return self.push(Part::new(Surface::Result, text));
        }
        let (mut rest, mut strings) = (text, 0);
        while let Some(open) = rest.find('"') {
            let inside = &rest[open + 1..];
            let mut escaped = false;
            let close = inside.bytes().position(|byte| {
                let closes = byte == b'"' && !escaped;
                escaped = byte == b'\\' && !escaped;
                closes
            });
            let Some(close) = close else { break };
            let (string, after) = (&inside[..close], &inside[close + 1..]);
            let is_key = after.trim_start().starts_with(':');
            if !is_key {
                strings += 1;
                for line in string.split("\\n") {
                    self.push(Part::new(Surface::Result, line.trim()));
                }
            }
            rest = after;
        }
        if strings == 0 {
            self.push(Part::new(Surface::Result, text));
        }
    }

    fn push(&mut self, part: Part<'a>) {
        if !part.raw.is_empty() && self.parts.len() < MAX_PARTS {
            self.parts.push(part);
        }
    }

    /// Adds every string of a schema, without recursion: depth costs memory on the heap, not the stack.
    fn schema(&mut self, root: &'a Value, surface: Surface) {
        self.pending.clear();
        self.pending.push(Pending { node: root, parameter: None });
        while let Some(at) = self.pending.pop() {
            if self.parts.len() >= MAX_PARTS {
                return;
            }
            match at.node {
                Value::Object(fields) => {
                    for (key, value) in fields.iter().rev() {
                        match key.as_str() {
                            "properties" | "patternProperties" | "$defs" | "definitions" => {
                                self.properties(value, surface);
                            }
                            "title" | "description" | "$comment" => {
                                self.text(value, at, fields, surface);
                            }
                            "default" => self.values(value, Keyword::Default, at, surface),
                            "enum" => self.values(value, Keyword::Enum, at, surface),
                            "const" => self.values(value, Keyword::Const, at, surface),
                            "examples" | "example" => {
                                self.values(value, Keyword::Examples, at, surface);
                            }
                            "type" | "format" | "$ref" | "$schema" | "$id" | "required"
                            | "pattern" => {}
                            _ if value.is_object() || value.is_array() => {
                                self.pending.push(at.child(value));
                            }
                            _ => self.text(value, at, fields, surface),
                        }
                    }
                }
                Value::Array(items) => {
                    self.pending.extend(items.iter().rev().map(|item| at.child(item)));
                }
                _ => {}
            }
        }
    }

    fn properties(&mut self, value: &'a Value, surface: Surface) {
        let Value::Object(properties) = value else { return };
        for (name, node) in properties.iter().rev() {
            let parameter = Some(name.as_str());
            if surface == Surface::ParameterText && self.parts.len() < MAX_PARTS {
                let part = Part::new(Surface::ParameterName, name);
                self.parts.push(Part { parameter, schema: node.as_object(), ..part });
            }
            self.pending.push(Pending { node, parameter });
        }
    }

    fn text(
        &mut self,
        value: &'a Value,
        at: Pending<'a>,
        schema: &'a Map<String, Value>,
        surface: Surface,
    ) {
        if let Value::String(text) = value
            && !text.is_empty()
        {
            self.parts.push(Part {
                parameter: at.parameter,
                schema: Some(schema),
                ..Part::new(surface, text)
            });
        }
    }

    /// Adds every string in default, allowed and example values.
    fn values(&mut self, value: &'a Value, keyword: Keyword, at: Pending<'a>, surface: Surface) {
        let surface =
            if surface == Surface::ParameterText { Surface::ParameterValue } else { surface };
        let parameter = at.parameter;
        let mut add = |text: &'a str| {
            self.push(Part { parameter, keyword: Some(keyword), ..Part::new(surface, text) });
        };
        // Nearly all values are strings, numbers, or arrays of them, which need no list.
        match value {
            Value::String(text) => add(text),
            Value::Array(items) => items.iter().for_each(|item| strings_in(item, &mut add)),
            value => strings_in(value, &mut add),
        }
    }
}

/// Every string in a value, in order, without recursion.
fn strings_in<'a>(value: &'a Value, add: &mut impl FnMut(&'a str)) {
    let mut pending = match value {
        Value::String(text) => return add(text),
        Value::Array(_) | Value::Object(_) => vec![value],
        _ => return,
    };
    while let Some(value) = pending.pop() {
        match value {
            Value::String(text) => add(text),
            Value::Array(items) => pending.extend(items.iter().rev()),
            Value::Object(fields) => pending.extend(fields.values().rev()),
            _ => {}
        }
    }
}
