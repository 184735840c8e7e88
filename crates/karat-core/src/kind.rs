//! The names of evaluations and of the kinds of reports they make.
//!
//! Both are open: a report of an evaluation that this build does not know keeps its name and can be
//! shown, gated and compared like any other.

use std::borrow::Cow;
use std::fmt;

use karat_io::text::printable;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Declares an open enum of names: known variants and `Other`, serialized as a plain string.
macro_rules! names {
    ($(#[$meta:meta])* $type:ident { $($(#[$doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $type {
            $($(#[$doc])* $variant,)*
            /// One that this build does not know.
            Other(Cow<'static, str>),
        }

        impl $type {
            /// The known ones, in the order in which they are shown.
            pub const KNOWN: &[$type] = &[$($type::$variant),*];

            /// The name in reports and in karat.toml.
            pub fn name(&self) -> &str {
                match self {
                    $($type::$variant => $name,)*
                    $type::Other(name) => name,
                }
            }
        }

        impl From<String> for $type {
            fn from(name: String) -> $type {
                match name.as_str() {
                    $($name => $type::$variant,)*
                    _ => $type::Other(Cow::Owned(name)),
                }
            }
        }

        impl From<$type> for String {
            fn from(name: $type) -> String {
                name.name().to_owned()
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                // A name that this build does not know is whatever a report says.
                f.pad(&printable(self.name()))
            }
        }

        impl JsonSchema for $type {
            fn schema_name() -> Cow<'static, str> {
                stringify!($type).into()
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "string", "examples": [$($name),*]})
            }
        }
    };
}

names! {
    /// The question that was asked.
    Evaluation {
        /// Does an MCP server answer correctly, validly, reliably, fast and safely?
        Server = "server",
        /// Did the model call the right tools, and at what cost?
        Agent = "agent",
        /// Does tool search find the right tools?
        Retrieval = "retrieval",
        /// Does a scanner catch attacks and stay quiet otherwise?
        Detection = "detection",
        /// Does an agent, or the defence in front of it, withstand attacks and still do its work?
        Resilience = "resilience",
    }
}

names! {
    /// The kind of a report: what its items are, and so how they are observed and shown.
    Kind {
        /// Queries and the tools that a search returned for them.
        Ranking = "ranking",
        /// Definitions and what detectors reported about them.
        Verdicts = "verdicts",
        /// Cases of a suite and how their calls ended.
        Suite = "suite",
        /// Seconds and steps of a load.
        Load = "load",
        /// Tools and what generated inputs did to them.
        Fuzz = "fuzz",
        /// Attacks on tools.
        Attack = "attack",
        /// Tasks, the calls that were made and those that were expected.
        Traces = "traces",
        /// Tasks, each as it was run twice.
        Trajectories = "trajectories",
        /// Tasks and how their runs ended, judged elsewhere.
        Outcomes = "outcomes",
        /// Runs of tasks, with and without an attack.
        Resilience = "resilience",
    }
}

impl Kind {
    /// Returns whether the items are found in the run (seconds, tools of a server) and are not part of the
    /// data: two runs on the same data may have different ones.
    pub(crate) fn finds_items(&self) -> bool {
        matches!(self, Kind::Load | Kind::Fuzz | Kind::Attack)
    }

    /// The evaluation that makes reports of this kind; one of the same name where it is not known.
    pub fn evaluation(&self) -> Evaluation {
        match self {
            Kind::Ranking => Evaluation::Retrieval,
            Kind::Verdicts => Evaluation::Detection,
            Kind::Suite | Kind::Load | Kind::Fuzz | Kind::Attack => Evaluation::Server,
            Kind::Traces | Kind::Trajectories | Kind::Outcomes => Evaluation::Agent,
            Kind::Resilience => Evaluation::Resilience,
            Kind::Other(name) => Evaluation::from(name.clone().into_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back_as_what_they_were() {
        for kind in Kind::KNOWN.iter().cloned().chain([Kind::Other("toy".into())]) {
            let text = serde_json::to_string(&kind).unwrap();
            assert_eq!(serde_json::from_str::<Kind>(&text).unwrap(), kind);
        }
        assert_eq!(Kind::Other("toy".into()).evaluation().name(), "toy");
    }

    #[test]
    fn a_name_that_is_not_known_is_shown_escaped() {
        let name = Evaluation::from("a\u{1b}[31m".to_owned());
        assert_eq!(format!("{name:<12}|"), "a\\u{1b}[31m |");
    }
}
