//! The language of expectations: one place in an answer, and one condition on the value there.
//!
//! Suites check the results of tools with it, and traces check the answers of agents and the state
//! that they leave behind. A [`MatcherSpec`] is an expectation as people write it; compiled into a
//! [`Matcher`], it checks [`Answer`]s.
//!
//! | place | value |
//! | --- | --- |
//! | none | the text |
//! | `json` (or `path`) | at a path in the data |
//! | `result` | at a path in the whole result of a tool |
//! | `block` | the content block with this number, from 0: its text, or the block if it has none |
//!
//! | condition | holds if |
//! | --- | --- |
//! | `equals`, `one_of` | the value is equal to it, or to one of them |
//! | `contains`, `lacks` | the text has all of the given texts in it, or none of them |
//! | `includes` | the list has the value as an entry, or the text has the text in it |
//! | `matches` (or `regex`) | the regular expression is found in the text |
//! | `schema` | the value fits the JSON Schema |
//! | `near: {value, within}` (or `number` with `within`) | the number is at most that far from the value |
//! | `at_least`, `at_most` | the number is |
//! | `count` | the list or object has that many entries, the text that many characters |
//! | `exists` | there is a value at the place, or there is none |
//! | `type` | the content block is of that type |
//! | `snapshot` | the value is the one that was accepted earlier |
//! | `any_of` | one of several conditions on the same place holds |
//! | `not` | the condition on the same place does not hold |
//!
//! `ignore_case: true` goes with `equals`, `one_of`, `contains`, `lacks` and `matches`.
//!
//! A path that leads nowhere fails, whatever the condition, except `exists: false`. Values are
//! equal as in JSON Schema: 1 equals 1.0, and there is no tolerance except the one of `near`. A
//! matcher that cannot fail, or cannot pass, is refused when it is compiled.
//!
//! The three kinds of answers differ where their texts mean different things:
//!
//! | | result of a tool | answer of an agent | end state |
//! | --- | --- | --- | --- |
//! | text | of all content blocks | the answer | none |
//! | data | `structuredContent`, or else the JSON in the first text block | the JSON that the answer is | the state |
//! | `equals` on a text | exact | apart from white space around it | exact |
//! | a text is a number | if it is nothing else | by any number in it | never |
//! | a path to several values | checks the list of them | checks the list of them | needs one that holds |
//!
//! ```
//! use karat_core::expect::{Answer, MatcherSpec};
//!
//! let spec: MatcherSpec = serde_json::from_str(r#"{"json": "$.total", "at_least": 12}"#)?;
//! let matcher = spec.compile()?;
//! let result = serde_json::json!({"content": [], "structuredContent": {"total": 9}});
//! let why = matcher.check(&Answer::new(&result)).unwrap_err();
//! assert_eq!(why, "$.total is 9, expected a number of at least 12");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod answer;
mod condition;
mod equality;
mod matcher;
mod number;
mod snapshot;
mod spec;
#[cfg(test)]
mod tests;

pub use self::answer::Answer;
pub use self::equality::equal;
pub use self::matcher::Matcher;
pub use self::number::{Near, Number};
pub use self::snapshot::{RedactionSpec, Snapshot, SnapshotSpec};
pub use self::spec::{MatcherSpec, Texts, one_or_several, paths};

use karat_io::text::{clip, printable};
use serde_json::Value;

/// The memory that a compiled regular expression may take, in bytes.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// Compiles a regular expression within bounds.
fn pattern(text: &str, case: Case) -> Result<regex::Regex, regex::Error> {
    let mut builder = regex::RegexBuilder::new(text);
    builder.size_limit(MAX_PATTERN_BYTES).case_insensitive(case == Case::Ignored).build()
}

/// A value for a message: printable, and not longer than `columns`.
fn quoted(value: &Value, columns: usize) -> String {
    clip(&printable(&value.to_string()), columns).into_owned()
}

/// The treatment of upper and lower case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Case {
    /// `a` is not `A`.
    #[default]
    Sensitive,
    /// `a` is `A`.
    Ignored,
}

impl Case {
    fn fold(self, text: &str) -> std::borrow::Cow<'_, str> {
        match self {
            Case::Sensitive => text.into(),
            Case::Ignored => text.to_lowercase().into(),
        }
    }
}
