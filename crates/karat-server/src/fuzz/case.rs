//! One generated input: its kind, its arguments, and whether they match the schema.

use serde_json::{Map, Value};

use crate::probe::reaction::Reaction;

/// The purpose of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum InputKind {
    /// An input that succeeded in a recording, or is likely to succeed.
    Known,
    /// A value at the edge of what the schema allows.
    Edge,
    /// A value at a bound or one beyond it.
    Boundary,
    /// A value of another type.
    Type,
    /// Something is left out.
    Missing,
    /// Something is added that the schema does not have.
    Extra,
    /// Text that is often handled wrongly.
    Unicode,
    /// Text that is dangerous when it becomes part of a command or query.
    Injection,
    /// A deeply nested value.
    Deep,
    /// A very long value.
    Huge,
    /// A random mixture.
    Mixed,
}

impl InputKind {
    /// Returns whether a server may refuse it as it likes, though it matches the schema.
    pub(super) fn is_hostile(self) -> bool {
        matches!(
            self,
            InputKind::Unicode | InputKind::Injection | InputKind::Deep | InputKind::Huge
        )
    }

    /// The name in reports.
    pub(super) fn name(self) -> &'static str {
        match self {
            InputKind::Known => "known",
            InputKind::Edge => "edge",
            InputKind::Boundary => "boundary",
            InputKind::Type => "type",
            InputKind::Missing => "missing",
            InputKind::Extra => "extra",
            InputKind::Unicode => "unicode",
            InputKind::Injection => "injection",
            InputKind::Deep => "deep",
            InputKind::Huge => "huge",
            InputKind::Mixed => "mixed",
        }
    }
}

/// The keyword of an input whose only fault is that a value has a type that many libraries convert.
pub(super) const COERCION: &str = "coercion";

/// True if an input matches its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It does.
    Valid,
    /// It does not.
    Invalid {
        /// The first keyword that it violates.
        keyword: String,
        /// The place of the keyword in the schema.
        at: String,
        /// The violation as text.
        why: String,
    },
    /// Validators may differ (formats), or there is no usable schema.
    Unclear,
}

impl Case {
    /// The validity by which the answer is judged: a server may refuse hostile text as it likes.
    pub(super) fn judged(&self, reaction: Reaction) -> Validity {
        match &self.validity {
            Validity::Valid if self.kind.is_hostile() && reaction == Reaction::Refused => {
                Validity::Unclear
            }
            other => other.clone(),
        }
    }
}

/// One input.
#[derive(Clone, Debug)]
pub struct Case {
    /// Its purpose.
    pub kind: InputKind,
    /// A description.
    pub about: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// True if they match the schema.
    pub validity: Validity,
}
