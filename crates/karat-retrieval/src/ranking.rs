//! A question to a search and its answer.

use karat_core::adapter::Values;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

/// One result of a search.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranked {
    /// The tool.
    pub tool_id: String,
    /// Its score, where the system gives one. The order of the list is what counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub score: Option<f64>,
}

impl<'de> Deserialize<'de> for Ranked {
    /// An id alone will do: it is what anybody writes first.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Ranked, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = Ranked;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a tool id, or an object with `tool_id`")
            }

            fn visit_str<E>(self, id: &str) -> Result<Ranked, E> {
                Ok(Ranked { tool_id: id.to_owned(), score: None })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Ranked, A::Error> {
                #[derive(Deserialize)]
                struct Fields {
                    tool_id: String,
                    score: Option<f64>,
                }
                let Fields { tool_id, score } =
                    Fields::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Ranked { tool_id, score })
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// The answer to one query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ranking {
    /// The tools, best first.
    pub ranked: Vec<Ranked>,
    /// The tokens of the answer, if they are counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_tokens: Option<u64>,
}

impl Ranking {
    /// A ranking of these tools, best first.
    pub fn new(ranked: Vec<Ranked>) -> Ranking {
        Ranking { ranked, answer_tokens: None }
    }
}

/// The question to a system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Question {
    /// The query's id.
    pub id: String,
    /// Its text.
    pub query: String,
    /// The number of results that are wanted.
    pub limit: usize,
}

impl Question {
    /// The text of [`Question::sample`].
    pub(crate) const SAMPLE: &str = "QUERY";

    /// A question for finding mistakes in templates.
    pub(crate) fn sample() -> Question {
        Question { id: "q".to_owned(), query: Question::SAMPLE.to_owned(), limit: 1 }
    }

    /// The values for the places of a template.
    pub(crate) fn values(&self, run: u32) -> Values {
        [
            ("query", json!(self.query)),
            ("limit", json!(self.limit)),
            ("id", json!(self.id)),
            ("run", json!(run)),
            ("offset", json!(0)),
            ("cursor", json!("")),
        ]
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect()
    }
}
