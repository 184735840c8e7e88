//! A call of a tool.
//!
//! Arguments that come from a file are parsed when a metric first needs them: most calls that agree
//! with the expected one have the same text, and then no metric does.

use std::borrow::Cow;
use std::ops::Deref;
use std::sync::OnceLock;

use super::json::{JsonError, Reader};
use super::{Object, Value};

/// One call of a tool.
///
/// ```
/// use karat_metrics::calls::json::Reader;
/// use karat_metrics::calls::{Arguments, Call};
///
/// let arguments = Arguments::read(&mut Reader::new(r#"{"query": "weather"}"#))?;
/// let call = Call::new("search", arguments);
/// assert_eq!(call.arguments().len(), 1);
/// # Ok::<(), karat_metrics::calls::json::JsonError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct Call<'a> {
    /// The tool's name.
    pub name: Cow<'a, str>,
    /// The kind of the tool. Only DeepEval's metrics depend on it.
    pub kind: CallKind,
    /// The arguments; `None` if none were recorded, which only DeepEval distinguishes from an empty
    /// object.
    pub arguments: Option<Arguments<'a>>,
    /// The tool's answer; null if it was not recorded. Only DeepEval's metrics depend on it.
    pub output: Value<'a>,
}

impl<'a> Call<'a> {
    /// Creates a call with arguments.
    pub fn new(name: impl Into<Cow<'a, str>>, arguments: impl Into<Arguments<'a>>) -> Self {
        Call { name: name.into(), arguments: Some(arguments.into()), ..Call::default() }
    }

    /// Returns the arguments; an empty object if they were not recorded.
    pub fn arguments(&self) -> &Object<'a> {
        static NONE: Object<'static> = Object::new();
        self.arguments.as_deref().unwrap_or(&NONE)
    }

    /// Returns `true` if the arguments of both are the same text, so that they are equal by any
    /// equality.
    #[inline]
    pub(super) fn written_alike(&self, other: &Call<'_>) -> bool {
        match (&self.arguments, &other.arguments) {
            (Some(a), Some(b)) => a.written_alike(b),
            _ => false,
        }
    }
}

/// The kinds of tools that DeepEval distinguishes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CallKind {
    /// A plain function; the default.
    #[default]
    Function,
    /// A tool of an MCP server.
    Mcp,
}

/// The arguments of a call: an [`Object`] that may not have been parsed yet.
#[derive(Clone, Debug)]
pub struct Arguments<'a> {
    /// The JSON text, checked; empty if the arguments did not come from a text.
    text: &'a str,
    object: OnceLock<Object<'a>>,
}

impl<'a> Arguments<'a> {
    /// Takes the next object of a text. It is checked now and parsed when it is needed.
    ///
    /// # Errors
    /// If the next value is not a valid JSON object.
    pub fn read(reader: &mut Reader<'a>) -> Result<Self, JsonError> {
        Ok(Arguments { text: reader.object_text()?, object: OnceLock::new() })
    }

    /// Takes the next object of a text and parses it now, for callers that need its values anyway.
    ///
    /// # Errors
    /// If the next value is not a valid JSON object.
    pub fn read_now(reader: &mut Reader<'a>) -> Result<Self, JsonError> {
        let (text, object) = reader.object_and_text()?;
        Ok(Arguments { text, object: OnceLock::from(object) })
    }

    /// Returns `true` if both are the same text.
    #[inline]
    pub(super) fn written_alike(&self, other: &Arguments<'_>) -> bool {
        !self.text.is_empty() && self.text == other.text
    }
}

impl<'a> Deref for Arguments<'a> {
    type Target = Object<'a>;

    fn deref(&self) -> &Object<'a> {
        self.object.get_or_init(|| {
            // The text was checked, including its depth, when it was taken, so this does not fail.
            let mut reader = Reader::with_depth_limit(self.text, usize::MAX);
            reader.read_object().unwrap_or_default()
        })
    }
}

impl<'a> From<Object<'a>> for Arguments<'a> {
    fn from(object: Object<'a>) -> Self {
        Arguments { text: "", object: OnceLock::from(object) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Equality;
    use super::*;

    fn read(text: &str) -> Arguments<'_> {
        Arguments::read(&mut Reader::new(text)).unwrap()
    }

    #[test]
    fn arguments_that_were_not_recorded_count_as_an_empty_object() {
        let bare = Call { name: "tool".into(), ..Call::default() };
        assert!(bare.arguments().is_empty());
        assert!(Equality::Json.calls(&bare, &Call::new("tool", Object::new())));
    }

    #[test]
    fn arguments_are_the_same_whether_parsed_early_or_late() {
        let text = r#" {"a":[1,{"b":null}],"c":"\u00e9"} "#;
        let early = Reader::new(text).read_object().unwrap();
        assert!(read(text).identical(&early), "{}", *read(text));
        let now = Arguments::read_now(&mut Reader::new(text)).unwrap();
        assert!(now.identical(&early) && now.written_alike(&read(text)));
        assert!(read("{}").is_empty());
    }

    #[test]
    fn broken_arguments_are_rejected_at_once() {
        assert!(Arguments::read(&mut Reader::new(r#"{"a":01}"#)).is_err());
        assert!(Arguments::read(&mut Reader::new("[]")).is_err());
    }

    #[test]
    fn arguments_without_a_text_are_never_the_same_text() {
        let made = Arguments::from(Object::new());
        assert!(!made.written_alike(&made));
        assert!(read(" {} ").written_alike(&read("{}")));
        assert!(!read("{ }").written_alike(&read("{}")));
    }
}
