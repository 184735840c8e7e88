//! How requests of the server are answered: sampling, elicitation, roots.
//!
//! All are refused by default and then not offered as capabilities either. An answer is fixed in
//! advance, so that a run gives the same result each time; nothing here asks a model or a person.

use serde_json::{Map, Value, json};

/// Answers to what a server may ask of its client.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Policies {
    /// `sampling/createMessage`.
    pub sampling: Sampling,
    /// `elicitation/create`.
    pub elicitation: Elicitation,
    /// `roots/list`.
    pub roots: Roots,
}

/// What a server gets that wants a model to write.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sampling {
    /// An error.
    #[default]
    Refuse,
    /// Always this text.
    Answer {
        /// The model that is said to have written it.
        model: String,
        /// The text.
        text: String,
    },
}

/// What a server gets that wants a person to fill in a form.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Elicitation {
    /// An error.
    #[default]
    Refuse,
    /// The person says no.
    Decline,
    /// The person closes the form.
    Cancel,
    /// The person sends this.
    Accept(Map<String, Value>),
    /// The person sends the form as it came, with its defaults.
    AcceptDefaults,
}

/// What a server gets that asks which folders it may look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Roots {
    /// An error.
    #[default]
    Refuse,
    /// These addresses, such as `file:///data`.
    List(Vec<String>),
}

/// The code for a person's refusal in the examples of the specification.
const REFUSED: i64 = -1;
const METHOD_NOT_FOUND: i64 = -32601;

impl Policies {
    /// The capabilities that go with these answers.
    pub(crate) fn capabilities(&self) -> Value {
        let mut offered = Map::new();
        if self.sampling != Sampling::Refuse {
            offered.insert("sampling".to_owned(), json!({}));
        }
        if self.elicitation != Elicitation::Refuse {
            offered.insert("elicitation".to_owned(), json!({}));
        }
        if self.roots != Roots::Refuse {
            offered.insert("roots".to_owned(), json!({}));
        }
        Value::Object(offered)
    }

    /// The answer to a request of the server: a result, or a code and a message.
    pub(crate) fn answer(&self, method: &str, params: &Value) -> Result<Value, (i64, String)> {
        match method {
            "ping" => Ok(json!({})),
            "sampling/createMessage" => self.sampling.answer(),
            "elicitation/create" => self.elicitation.answer(params),
            "roots/list" => self.roots.answer(),
            other => Err((METHOD_NOT_FOUND, format!("Method not found: {other}"))),
        }
    }
}

impl Sampling {
    fn answer(&self) -> Result<Value, (i64, String)> {
        match self {
            Sampling::Refuse => Err((REFUSED, "Sampling is refused".to_owned())),
            Sampling::Answer { model, text } => Ok(json!({
                "role": "assistant",
                "model": model,
                "stopReason": "endTurn",
                "content": {"type": "text", "text": text},
            })),
        }
    }
}

impl Elicitation {
    fn answer(&self, params: &Value) -> Result<Value, (i64, String)> {
        match self {
            Elicitation::Refuse => Err((REFUSED, "Elicitation is refused".to_owned())),
            Elicitation::Decline => Ok(json!({"action": "decline"})),
            Elicitation::Cancel => Ok(json!({"action": "cancel"})),
            Elicitation::Accept(content) => Ok(json!({"action": "accept", "content": content})),
            Elicitation::AcceptDefaults => {
                Ok(json!({"action": "accept", "content": defaults(params)}))
            }
        }
    }
}

fn defaults(params: &Value) -> Map<String, Value> {
    let properties = params.pointer("/requestedSchema/properties").and_then(Value::as_object);
    let default = |(name, schema): (&String, &Value)| {
        schema.get("default").map(|value| (name.clone(), value.clone()))
    };
    properties.into_iter().flatten().filter_map(default).collect()
}

impl Roots {
    fn answer(&self) -> Result<Value, (i64, String)> {
        match self {
            Roots::Refuse => Err((REFUSED, "Roots are refused".to_owned())),
            Roots::List(roots) => {
                let roots: Vec<Value> = roots.iter().map(|uri| json!({"uri": uri})).collect();
                Ok(json!({"roots": roots}))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_but_ping_is_refused_by_default() {
        let policies = Policies::default();
        for method in ["sampling/createMessage", "elicitation/create", "roots/list", "x/y"] {
            assert!(policies.answer(method, &Value::Null).is_err(), "{method}");
        }
        assert_eq!(policies.answer("ping", &Value::Null), Ok(json!({})));
        assert_eq!(policies.capabilities(), json!({}));
    }

    #[test]
    fn what_is_answered_is_offered() {
        let policies = Policies {
            sampling: Sampling::Answer { model: "m".into(), text: "t".into() },
            elicitation: Elicitation::AcceptDefaults,
            roots: Roots::List(vec!["file:///data".into()]),
        };
        assert_eq!(
            policies.capabilities(),
            json!({"sampling": {}, "elicitation": {}, "roots": {}})
        );
        let form = json!({"requestedSchema": {"properties": {
            "a": {"type": "string", "default": "x"}, "b": {"type": "string"}}}});
        assert_eq!(
            policies.answer("elicitation/create", &form),
            Ok(json!({"action": "accept", "content": {"a": "x"}}))
        );
        assert_eq!(
            policies.answer("roots/list", &Value::Null),
            Ok(json!({"roots": [{"uri": "file:///data"}]}))
        );
        let written = policies.answer("sampling/createMessage", &Value::Null).unwrap();
        assert_eq!(written["content"]["text"], "t");
    }
}
