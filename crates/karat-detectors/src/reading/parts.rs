//! The strings of a definition and their sentences.

use std::borrow::Cow;

use serde_json::{Map, Value};

use super::super::meaning::Mask;

/// The longest name; a longer one is read up to here.
pub(super) const MAX_NAME: usize = 400;

/// The place of a string in the definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surface {
    /// The server's name.
    Server,
    /// The tool's name.
    Name,
    /// The tool's title, in either of its places.
    Title,
    /// The tool's description.
    Description,
    /// The instructions of the server.
    Instructions,
    /// The name of a parameter.
    ParameterName,
    /// The title or description of a parameter.
    ParameterText,
    /// An allowed, default or example value of a parameter.
    ParameterValue,
    /// Any string of the output schema.
    Output,
    /// The result of a call.
    Result,
}

impl Surface {
    /// The name in evidence.
    fn name(self) -> &'static str {
        match self {
            Surface::Server => "server",
            Surface::Name => "name",
            Surface::Title => "title",
            Surface::Description => "description",
            Surface::Instructions => "server instructions",
            Surface::ParameterName => "parameter name",
            Surface::ParameterText => "parameter description",
            Surface::ParameterValue => "parameter value",
            Surface::Output => "output schema",
            Surface::Result => "result",
        }
    }
}

/// A keyword of JSON Schema whose values a model sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keyword {
    /// `default`.
    Default,
    /// `enum`.
    Enum,
    /// `const`.
    Const,
    /// `examples` and `example`.
    Examples,
}

impl Keyword {
    /// The name in evidence.
    fn name(self) -> &'static str {
        match self {
            Keyword::Default => "default",
            Keyword::Enum => "enum",
            Keyword::Const => "const",
            Keyword::Examples => "examples",
        }
    }
}

/// One string of the definition.
#[derive(Clone, Debug)]
pub(crate) struct Part<'a> {
    /// Its place.
    pub(crate) surface: Surface,
    /// The parameter that it belongs to.
    pub(crate) parameter: Option<&'a str>,
    /// The schema that it is part of, or that belongs to the name of a parameter.
    pub(super) schema: Option<&'a Map<String, Value>>,
    /// The keyword of a schema value.
    pub(crate) keyword: Option<Keyword>,
    /// The text as it was written.
    pub(crate) raw: &'a str,
    /// The meanings in it.
    pub(crate) mask: Mask,
    /// The kinds of its bytes: [`Part::ODD`] and [`Part::ESCAPE`].
    pub(super) kinds: u8,
}

impl<'a> Part<'a> {
    /// A control character, or a byte of a character that is not ASCII.
    pub(super) const ODD: u8 = 1;
    /// The start of an escape, as in `\u0041` or `&#65;`.
    pub(super) const ESCAPE: u8 = 2;

    pub(super) fn new(surface: Surface, raw: &'a str) -> Part<'a> {
        let (parameter, schema, keyword) = (None, None, None);
        Part { surface, parameter, schema, keyword, raw, mask: Mask::NONE, kinds: 0 }
    }

    /// Returns false if it belongs to a parameter that cannot carry a text: a switch, a number or a choice
    /// among given values. Its documentation says what the tool does, not what the model hands over.
    pub(crate) fn may_carry_text(&self) -> bool {
        self.schema.is_none_or(may_carry_text)
    }

    /// Returns true if it may have characters other than printable ASCII and line breaks.
    pub(crate) fn has_odd_characters(&self) -> bool {
        self.kinds & Part::ODD != 0
    }

    /// Returns true if it may have characters written as escapes.
    pub(crate) fn has_escapes(&self) -> bool {
        self.kinds & Part::ESCAPE != 0
    }

    /// Returns true if it is a name rather than text: words are joined by `_` or by capitals.
    pub(super) fn is_name(&self) -> bool {
        match self.surface {
            Surface::Server | Surface::Name | Surface::ParameterName => true,
            Surface::ParameterValue => {
                self.raw.len() < MAX_NAME
                    && self.raw.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
            }
            _ => false,
        }
    }

    /// Describes its place, for evidence.
    pub(crate) fn place(&self) -> Cow<'static, str> {
        match self.parameter {
            Some(parameter) => {
                let what = self.keyword.map_or(self.surface.name(), Keyword::name);
                Cow::Owned(format!("{what} of `{parameter}`"))
            }
            None => Cow::Borrowed(self.surface.name()),
        }
    }
}

fn may_carry_text(schema: &Map<String, Value>) -> bool {
    if schema.contains_key("enum") || schema.contains_key("const") {
        return false;
    }
    let carries =
        |kind: &Value| !matches!(kind.as_str(), Some("boolean" | "integer" | "number" | "null"));
    match schema.get("type") {
        Some(Value::Array(kinds)) => return kinds.iter().any(carries),
        Some(kind) => return carries(kind),
        None => {}
    }
    let variants = ["anyOf", "oneOf"].iter().find_map(|key| schema.get(*key)?.as_array());
    // One level is enough: generators write an optional parameter as a choice of its type and null.
    variants.is_none_or(|all| {
        all.iter().any(|variant| {
            let closed = variant.get("enum").or_else(|| variant.get("const")).is_some();
            !closed && variant.get("type").is_none_or(carries)
        })
    })
}

/// One sentence.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sentence {
    /// The number of the part that it belongs to.
    pub(crate) part: usize,
    /// Its first byte in the buffer.
    pub(crate) start: usize,
    /// The byte after its last.
    pub(crate) end: usize,
    /// The meanings in it.
    pub(crate) mask: Mask,
    /// Its hits among those of the reading.
    pub(super) first_hit: usize,
    pub(super) end_hit: usize,
}

impl Sentence {
    pub(super) fn new(part: usize, start: usize, end: usize) -> Sentence {
        Sentence { part, start, end, mask: Mask::NONE, first_hit: 0, end_hit: 0 }
    }
}
