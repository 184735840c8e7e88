//! Tools and a prompt that ask for input, in rounds: revision 2026-07-28 asks with results.
//!
//! A result of type `input_required` lists the requests; the client calls again with the answers and
//! with the state that it was given. The server keeps nothing between the rounds, so the state has a
//! seal, and a changed state is refused.

use std::hash::{BuildHasher as _, RandomState};

use karat_mcp::serve::{Context, ProtocolError};
use serde_json::{Map, Value, json};

use super::{CAPABILITIES, INVALID_PARAMS, library, needs, said};

/// The tools that ask, with their descriptions.
pub(super) const TOOLS: &[(&str, &str)] = &[
    ("test_input_required_result_elicitation", "Asks for a name and greets."),
    ("test_input_required_result_sampling", "Asks the client's model for a capital."),
    ("test_input_required_result_list_roots", "Asks for the client's roots."),
    ("test_input_required_result_request_state", "Asks once, with a state to keep."),
    ("test_input_required_result_multiple_inputs", "Asks three things at once."),
    ("test_input_required_result_multi_round", "Asks twice, one after the other."),
    ("test_input_required_result_tampered_state", "Asks once, and looks at its seal."),
    ("test_input_required_result_capabilities", "Asks only what the client can answer."),
    ("test_streaming_elicitation", "Asks by a result, never by a request."),
];
/// The prompt that asks.
pub(super) const PROMPT: &str = "test_input_required_result_prompt";

/// A request of one round: the key of the answer, the capability it needs, and the request.
struct Question {
    key: &'static str,
    capability: &'static str,
    request: Value,
}

/// Keeps nothing but the key of its seals.
#[derive(Default)]
pub(super) struct Rounds {
    seal: RandomState,
}

impl Rounds {
    /// Answers a call of one of [`TOOLS`].
    pub(super) fn call(&self, context: &Context, tool: &str) -> Result<Value, ProtocolError> {
        if !context.is_stateless() {
            return Err(ProtocolError::new(
                INVALID_PARAMS,
                format!("{tool} needs a client of revision 2026-07-28"),
            ));
        }
        match tool {
            "test_input_required_result_sampling" => {
                once(context, &model("What is the capital of France?", "capital_question"))
            }
            "test_input_required_result_list_roots" => once(context, &roots()),
            "test_input_required_result_request_state" => {
                self.sealed(context, &[confirm()], "The state is as it was given: state-ok")
            }
            "test_input_required_result_multiple_inputs" => {
                let all = [name(), model("Generate a greeting", "greeting"), roots()];
                self.sealed(context, &all, "All three came.")
            }
            "test_input_required_result_multi_round" => self.twice(context),
            "test_input_required_result_tampered_state" => {
                self.sealed(context, &[confirm()], "The seal is whole.")
            }
            "test_input_required_result_capabilities" => able(context),
            _ => once(context, &name()),
        }
    }

    /// Answers a request for [`PROMPT`].
    pub(super) fn prompt(&self, context: &Context, params: &Value) -> Result<Value, ProtocolError> {
        if params.get("name").and_then(Value::as_str) != Some(PROMPT) {
            return Err(ProtocolError::new(INVALID_PARAMS, "Unknown prompt"));
        }
        let question = Question {
            key: "user_context",
            capability: "elicitation",
            request: form("What context should the prompt use?", "context", "string"),
        };
        match answers(context, std::slice::from_ref(&question)) {
            Some(answers) => {
                let words = spoken(answers[0]);
                Ok(library::messages(vec![library::text(&format!("The context is: {words}"))]))
            }
            None => wanted(context, &[question], None),
        }
    }

    /// One round with a state that must come back unchanged.
    fn sealed(
        &self,
        context: &Context,
        questions: &[Question],
        done: &str,
    ) -> Result<Value, ProtocolError> {
        if answers(context, questions).is_none() {
            return wanted(context, questions, Some(self.state("asked")));
        }
        self.opened(context)?;
        Ok(said(done))
    }

    fn twice(&self, context: &Context) -> Result<Value, ProtocolError> {
        let first = Question {
            key: "step1",
            capability: "elicitation",
            request: form("Step 1: What is your name?", "name", "string"),
        };
        let second = Question {
            key: "step2",
            capability: "elicitation",
            request: form("Step 2: What is your favorite color?", "color", "string"),
        };
        if let Some(color) = answers(context, std::slice::from_ref(&second)) {
            let state = self.opened(context)?;
            let name = state.strip_prefix("named ").unwrap_or("nobody").to_owned();
            return Ok(said(&format!("{name} likes {}.", spoken(color[0]))));
        }
        match answers(context, std::slice::from_ref(&first)) {
            Some(name) => {
                self.opened(context)?;
                let state = self.state(&format!("named {}", spoken(name[0])));
                wanted(context, &[second], Some(state))
            }
            None => wanted(context, &[first], Some(self.state("asked"))),
        }
    }

    /// A state with its seal. The key is drawn when the server starts and never leaves it.
    fn state(&self, what: &str) -> String {
        format!("{:016x} {what}", self.seal.hash_one(what))
    }

    /// The content of the state of a request, if its seal is intact.
    fn opened<'a>(&self, context: &'a Context) -> Result<&'a str, ProtocolError> {
        let state = context.request_state().and_then(Value::as_str).unwrap_or_default();
        let (seal, what) = state.split_once(' ').unwrap_or_default();
        if format!("{:016x}", self.seal.hash_one(what)) == seal {
            return Ok(what);
        }
        Err(ProtocolError::new(INVALID_PARAMS, "The request state is not the one that was given"))
    }
}

/// One round without a state.
fn once(context: &Context, question: &Question) -> Result<Value, ProtocolError> {
    let question = std::slice::from_ref(question);
    match answers(context, question) {
        Some(answers) => Ok(said(&format!("Hello, {}!", spoken(answers[0])))),
        None => wanted(context, question, None),
    }
}

/// Asks what the client says that it can answer, and nothing else.
fn able(context: &Context) -> Result<Value, ProtocolError> {
    let can = |question: &Question| {
        context.meta(CAPABILITIES).is_some_and(|all| all.get(question.capability).is_some())
    };
    let questions: Vec<Question> = [name(), model("Generate a greeting", "greeting"), roots()]
        .into_iter()
        .filter(can)
        .collect();
    if questions.is_empty() {
        return Ok(said("The client can answer nothing."));
    }
    match answers(context, &questions) {
        Some(_) => Ok(said("All answers came.")),
        None => wanted(context, &questions, None),
    }
}

/// The answers to all of the questions, in their order; `None` while one is missing or does not answer
/// what was asked. Others are ignored.
fn answers<'a>(context: &'a Context, questions: &[Question]) -> Option<Vec<&'a Value>> {
    let responses = context.input_responses()?.as_object()?;
    questions
        .iter()
        .map(|question| responses.get(question.key).filter(|given| fits(question, given)))
        .collect()
}

fn fits(question: &Question, given: &Value) -> bool {
    match question.capability {
        "elicitation" => given.get("action").is_some_and(Value::is_string),
        "sampling" => given.get("content").is_some(),
        _ => given.get("roots").is_some_and(Value::is_array),
    }
}

/// A result that asks.
fn wanted(
    context: &Context,
    questions: &[Question],
    state: Option<String>,
) -> Result<Value, ProtocolError> {
    let mut requests = Map::new();
    for question in questions {
        needs(context, question.capability)?;
        requests.insert(question.key.to_owned(), question.request.clone());
    }
    let mut result = json!({"resultType": "input_required", "inputRequests": requests});
    if let Some(state) = state {
        result["requestState"] = json!(state);
    }
    Ok(result)
}

fn form(message: &str, field: &str, kind: &str) -> Value {
    json!({"method": "elicitation/create", "params": {
        "mode": "form",
        "message": message,
        "requestedSchema": {
            "type": "object",
            "properties": {field: {"type": kind}},
            "required": [field],
        },
    }})
}

fn name() -> Question {
    let request = form("What is your name?", "name", "string");
    Question { key: "user_name", capability: "elicitation", request }
}

fn confirm() -> Question {
    let request = form("Please confirm", "ok", "boolean");
    Question { key: "confirm", capability: "elicitation", request }
}

fn model(prompt: &str, key: &'static str) -> Question {
    let request = json!({"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": {"type": "text", "text": prompt}}],
        "maxTokens": 100,
    }});
    Question { key, capability: "sampling", request }
}

fn roots() -> Question {
    let request = json!({"method": "roots/list", "params": {}});
    Question { key: "client_roots", capability: "roots", request }
}

/// The first text in an answer.
fn spoken(answer: &Value) -> String {
    let form = answer.get("content").and_then(Value::as_object);
    let field = form.and_then(|fields| {
        fields.get("text").or_else(|| fields.values().next()).and_then(Value::as_str)
    });
    let root = answer.pointer("/roots/0/uri").and_then(Value::as_str);
    field.or(root).unwrap_or("nobody").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_is_valid_for_its_own_state_only() {
        let rounds = Rounds::default();
        let state = rounds.state("asked");
        assert_eq!(state, rounds.state("asked"));
        assert_ne!(state, Rounds::default().state("asked"));
        assert!(state.ends_with(" asked"));
    }

    #[test]
    fn the_first_text_of_an_answer_is_found() {
        let form = json!({"action": "accept", "content": {"name": "Ada"}});
        assert_eq!(spoken(&form), "Ada");
        let model = json!({"content": {"type": "text", "text": "Paris"}});
        assert_eq!(spoken(&model), "Paris");
        assert_eq!(spoken(&json!({"roots": [{"uri": "file:///x"}]})), "file:///x");
    }
}
