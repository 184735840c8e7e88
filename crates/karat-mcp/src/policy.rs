//! Answers to requests of the server: sampling, elicitation, roots.
//!
//! All are refused by default, and then not offered as capabilities. Answers are fixed in advance, so that
//! every run is the same; no model and no person is asked. Each policy is written as a keyword or as the
//! answer itself.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// Answers to the requests of a server.
///
/// ```
/// use karat_mcp::{Elicitation, Policies, Roots, Sampling};
///
/// let written = r#"{"sampling": {"text": "Paris"}, "elicitation": "decline"}"#;
/// let policies: Policies = serde_json::from_str(written)?;
/// assert_eq!(policies.sampling, Sampling::text("Paris"));
/// assert_eq!((policies.elicitation, policies.roots), (Elicitation::Decline, Roots::Refuse));
/// assert!(serde_json::from_str::<Policies>(r#"{"sampling": "always"}"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Policies {
    /// `sampling/createMessage`.
    #[serde(skip_serializing_if = "is_default")]
    pub sampling: Sampling,
    /// `elicitation/create`.
    #[serde(skip_serializing_if = "is_default")]
    pub elicitation: Elicitation,
    /// `roots/list`.
    #[serde(skip_serializing_if = "is_default")]
    pub roots: Roots,
}

/// The model that a sampling answer names by default.
const MODEL: &str = "karat";

/// The answer to a server that asks for a completion: `"refuse"`, or `{text, model}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Sampling {
    /// An error.
    #[default]
    Refuse,
    /// Always this text.
    Answer {
        /// The name of the model.
        model: String,
        /// The text.
        text: String,
    },
}

/// The answer to a server that asks its user to fill in a form: `"refuse"`, `"decline"`, `"cancel"`,
/// `"defaults"`, or `{accept: {…}}`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Elicitation {
    /// An error.
    #[default]
    Refuse,
    /// The user declines.
    Decline,
    /// The user closes the form.
    Cancel,
    /// The user sends this.
    Accept(Map<String, Value>),
    /// The user sends the form with its defaults.
    AcceptDefaults,
}

/// The answer to a server that asks for the folders it may use: `"refuse"`, or a list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Roots {
    /// An error.
    #[default]
    Refuse,
    /// These URLs, such as `file:///data`. In a spec they may be paths relative to the project folder.
    List(Vec<String>),
}

fn is_default<T: Default + PartialEq>(policy: &T) -> bool {
    *policy == T::default()
}

impl TryFrom<Value> for Sampling {
    type Error = String;

    fn try_from(written: Value) -> Result<Sampling, String> {
        let wrong =
            || "sampling must be \"refuse\" or {text: …}, with an optional model: …".to_owned();
        match written {
            Value::String(word) if word == "refuse" => Ok(Sampling::Refuse),
            Value::Object(mut fields) => {
                let mut take = |field| match fields.remove(field) {
                    Some(Value::String(text)) => Ok(Some(text)),
                    None => Ok(None),
                    Some(_) => Err(wrong()),
                };
                let text = take("text")?.ok_or_else(wrong)?;
                let model = take("model")?.unwrap_or_else(|| MODEL.to_owned());
                if fields.is_empty() { Ok(Sampling::Answer { model, text }) } else { Err(wrong()) }
            }
            _ => Err(wrong()),
        }
    }
}

impl From<Sampling> for Value {
    fn from(sampling: Sampling) -> Value {
        match sampling {
            Sampling::Refuse => json!("refuse"),
            Sampling::Answer { model, text } => json!({"text": text, "model": model}),
        }
    }
}

impl Sampling {
    /// Always this text.
    #[must_use]
    pub fn text(text: impl Into<String>) -> Sampling {
        Sampling::Answer { model: MODEL.to_owned(), text: text.into() }
    }
}

impl TryFrom<Value> for Elicitation {
    type Error = String;

    fn try_from(written: Value) -> Result<Elicitation, String> {
        let accepted = match &written {
            Value::String(word) => match word.as_str() {
                "refuse" => return Ok(Elicitation::Refuse),
                "decline" => return Ok(Elicitation::Decline),
                "cancel" => return Ok(Elicitation::Cancel),
                "defaults" => return Ok(Elicitation::AcceptDefaults),
                _ => None,
            },
            Value::Object(fields) if fields.len() == 1 => fields.get("accept"),
            _ => None,
        };
        match accepted {
            Some(Value::Object(content)) => Ok(Elicitation::Accept(content.clone())),
            _ => Err("elicitation must be \"refuse\", \"decline\", \"cancel\", \"defaults\" or \
                      {accept: {…}} with the fields of the form"
                .to_owned()),
        }
    }
}

impl From<Elicitation> for Value {
    fn from(elicitation: Elicitation) -> Value {
        match elicitation {
            Elicitation::Refuse => json!("refuse"),
            Elicitation::Decline => json!("decline"),
            Elicitation::Cancel => json!("cancel"),
            Elicitation::AcceptDefaults => json!("defaults"),
            Elicitation::Accept(content) => json!({"accept": content}),
        }
    }
}

impl TryFrom<Value> for Roots {
    type Error = String;

    fn try_from(written: Value) -> Result<Roots, String> {
        let wrong = || "roots must be \"refuse\" or a list of folders".to_owned();
        let root = |root: Value| match root {
            Value::String(root) if !root.is_empty() => Ok(root),
            _ => Err(wrong()),
        };
        match written {
            Value::String(word) if word == "refuse" => Ok(Roots::Refuse),
            Value::Array(roots) => {
                roots.into_iter().map(root).collect::<Result<_, _>>().map(Roots::List)
            }
            _ => Err(wrong()),
        }
    }
}

impl From<Roots> for Value {
    fn from(roots: Roots) -> Value {
        match roots {
            Roots::Refuse => json!("refuse"),
            Roots::List(roots) => json!(roots),
        }
    }
}

/// The code for a refusal by the user in the examples of the specification.
const REFUSED: i64 = -1;
const METHOD_NOT_FOUND: i64 = -32601;
const INVALID_PARAMS: i64 = -32602;

impl Policies {
    /// The capabilities that these policies offer.
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
        let is_form = params.get("mode").is_none_or(|mode| mode == "form");
        match self {
            Elicitation::Accept(_) | Elicitation::AcceptDefaults if !is_form => {
                Err((INVALID_PARAMS, "Only forms are filled in".to_owned()))
            }
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
    fn policies_are_written_as_keywords_or_answers() {
        let read = |written: Value| serde_json::from_value::<Policies>(written);
        let written = json!({
            "sampling": {"text": "hi"},
            "elicitation": {"accept": {"name": "Ada", "age": 36}},
            "roots": ["data"],
        });
        let policies = read(written).unwrap();
        assert_eq!(policies.sampling, Sampling::text("hi"));
        assert!(matches!(&policies.elicitation, Elicitation::Accept(form) if form["age"] == 36));
        assert_eq!(policies.roots, Roots::List(vec!["data".to_owned()]));
        assert_eq!(read(serde_json::to_value(&policies).unwrap()).unwrap(), policies);
        let refused = json!({"sampling": "refuse", "elicitation": "refuse", "roots": "refuse"});
        assert_eq!(read(refused).unwrap(), Policies::default());
        for word in ["decline", "cancel", "defaults"] {
            let policies = read(json!({"elicitation": word})).unwrap();
            assert_eq!(serde_json::to_value(&policies).unwrap(), json!({"elicitation": word}));
        }
        for wrong in [
            json!({"sampling": "yes"}),
            json!({"sampling": {"model": "m"}}),
            json!({"sampling": {"text": "x", "temperature": 1}}),
            json!({"elicitation": "accept"}),
            json!({"elicitation": {"accept": {}, "decline": {}}}),
            json!({"elicitation": {"accept": 1}}),
            json!({"roots": "data"}),
            json!({"roots": [1]}),
            json!({"sample": "refuse"}),
        ] {
            assert!(read(wrong.clone()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_url_to_visit_is_not_filled_in_as_a_form() {
        let visit = json!({"mode": "url", "url": "http://127.0.0.1/", "elicitationId": "1"});
        assert!(Elicitation::AcceptDefaults.answer(&visit).is_err());
        assert_eq!(Elicitation::Decline.answer(&visit), Ok(json!({"action": "decline"})));
    }

    #[test]
    fn answered_requests_are_offered_as_capabilities() {
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
