//! A suite from a recording of real use.
//!
//! Every call of a tool, reading of a resource and getting of a prompt that was answered becomes a case, in the
//! order of the recording. Calls that only read and get the same answer again are one case; values that
//! differ between them, moments and ids are expected by their shape. Nothing private is written: a value is
//! expected by its shape, and a call whose arguments are private becomes a comment. Whatever is written about
//! the answers comes from `suggest::stable`, as in `karat server suggest`.

use std::collections::BTreeMap;
use std::path::Path;

use karat_core::error::EvalError;
use karat_io::private;
use karat_mcp::replay::{self, Recorded};
use karat_mcp::{Options, ServerSpec};
use serde_json::{Map, Value, json};

use crate::observation::Outcome;
use crate::probe::destructive_tools::{destructive, may_change};
use crate::suggest::{Case, Draft, Request, Writer, stable};
use crate::suite::Feature;

/// A suite from a recording.
#[derive(Debug)]
pub struct Distilled {
    /// The suite, as YAML.
    pub text: String,
    /// The number of calls that were recorded.
    pub calls: usize,
    /// The number of cases.
    pub cases: usize,
    /// Calls without a case, with the reason.
    pub left_out: Vec<(String, String)>,
}

/// A case with the answers that it is made from.
struct Group {
    request: Request,
    ended: Ended,
    answers: Vec<Value>,
    /// The number of calls before it that may have changed something.
    epoch: usize,
    /// True if the call itself may change something.
    changes: bool,
}

/// The kind of an answer: a result, a tool error, or a protocol error with its code.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ended {
    Result,
    ToolError,
    ProtocolError(i64),
}

impl Ended {
    fn of(feature: Feature, outcome: &Outcome) -> Option<Ended> {
        match outcome {
            Outcome::Result { .. } if feature.is_tool() && outcome.is_tool_error() => {
                Some(Ended::ToolError)
            }
            Outcome::Result { .. } => Some(Ended::Result),
            Outcome::ProtocolError { code, .. } => Some(Ended::ProtocolError(*code)),
            _ => None,
        }
    }
}

/// Distils a suite. Calls of tools that may destroy something become comments unless they are allowed. With a
/// server, the suite is run there: what differs is expected by its shape, and what does not pass twice becomes
/// a comment.
///
/// # Errors
/// If the file is not a recording or yields no cases, or the server does not start.
pub async fn distil(
    path: &Path,
    allow_destructive: bool,
    server: Option<(&ServerSpec, &Options)>,
) -> Result<Distilled, EvalError> {
    let (recorded, described) = replay::requests(path)?;
    let mut distiller = Distiller {
        definitions: definitions(&recorded),
        allow_destructive,
        ..Distiller::default()
    };
    let mut calls = 0;
    for one in &recorded {
        if let Some(request) = request(one) {
            calls += 1;
            distiller.take(request, &outcome(one));
        }
    }
    let Distiller { mut groups, left_out, .. } = distiller;
    let described = described.map(|text| private::hide("", &text).into_owned());
    let mut draft = Draft {
        name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        described: described.unwrap_or_else(|| "a recorded server".to_owned()),
        hides_private: true,
        ..Draft::default()
    };
    for (name, (request, why)) in left_out {
        draft.leave_out(name, Some(request), why.to_owned());
    }
    let draft = match server {
        None => {
            write(&mut draft, &groups);
            draft
        }
        Some((spec, options)) => {
            let mut writer = Writer::start(spec, options).await?;
            for group in &mut groups {
                let outcome = writer.ask(&group.request).await?;
                if Ended::of(group.request.feature, &outcome) == Some(group.ended)
                    && let Some(answer) = answer(&outcome)
                {
                    group.answers.push(answer);
                }
            }
            write(&mut draft, &groups);
            writer.draft = draft;
            writer.keep_what_passes().await?;
            writer.end().await
        }
    };
    if draft.cases.is_empty() {
        return Err(EvalError::NothingMeasured(format!(
            "{}: yields no cases; it has {calls} answered calls of tools, resources and prompts",
            path.display()
        )));
    }
    Ok(Distilled {
        text: draft.to_yaml(),
        calls,
        cases: draft.cases.len(),
        left_out: draft.unwritten.iter().map(|one| (one.name.clone(), one.why.clone())).collect(),
    })
}

/// The latest definition of each tool.
fn definitions(recorded: &[Recorded]) -> BTreeMap<String, Value> {
    let lists = recorded.iter().filter(|one| one.method == "tools/list");
    let tools = lists.filter_map(|one| one.answer.as_ref().ok()?.get("tools")?.as_array());
    let named = |tool: &Value| Some((tool.get("name")?.as_str()?.to_owned(), tool.clone()));
    tools.flatten().filter_map(named).collect()
}

/// The request of a case, if it can be one.
fn request(recorded: &Recorded) -> Option<Request> {
    let text = |key: &str| recorded.params.get(key).and_then(Value::as_str);
    let feature = match recorded.method.as_str() {
        "tools/call" => Feature::Tool,
        "prompts/get" => Feature::Prompt,
        "resources/read" => return Some(Request::of_resource(text("uri")?)),
        _ => return None,
    };
    let arguments = recorded.params.get("arguments").and_then(Value::as_object);
    let arguments = arguments.cloned().unwrap_or_else(Map::new);
    Some(Request { feature, name: text("name")?.to_owned(), arguments })
}

fn outcome(recorded: &Recorded) -> Outcome {
    match &recorded.answer {
        Ok(result) => Outcome::Result { result: result.clone() },
        Err(error) => Outcome::ProtocolError {
            code: error.get("code").and_then(Value::as_i64).unwrap_or_default(),
            message: error.get("message").and_then(Value::as_str).unwrap_or_default().to_owned(),
            data: None,
        },
    }
}

fn answer(outcome: &Outcome) -> Option<Value> {
    Some(crate::judge::answer_of(outcome)?.into_owned())
}

#[derive(Default)]
struct Distiller {
    definitions: BTreeMap<String, Value>,
    allow_destructive: bool,
    groups: Vec<Group>,
    /// Requests that become comments, by name: the first of each name is enough.
    left_out: BTreeMap<String, (Request, &'static str)>,
    epoch: usize,
}

impl Distiller {
    fn take(&mut self, mut request: Request, outcome: &Outcome) {
        let feature = request.feature;
        let definition = self.definitions.get(&request.name).cloned();
        let definition = definition.unwrap_or_else(|| json!({"name": request.name}));
        let changes = feature.is_tool() && may_change(&definition).is_some();
        if changes {
            self.epoch += 1;
        }
        let mut hidden = Value::Object(request.arguments.clone());
        private::hide_in(&mut hidden);
        let is_hidden = |value: &Value| value.to_string().contains(karat_io::redact::HIDDEN);
        if is_hidden(&hidden) || private::is_private("", &request.name) {
            request.name = private::hide("", &request.name).into_owned();
            if let Value::Object(arguments) = hidden {
                request.arguments = arguments;
            }
            self.leave_out(request, "its arguments hold something private");
            return;
        }
        if feature.is_tool() && destructive(&definition).is_some() && !self.allow_destructive {
            self.leave_out(request, "it may destroy something; --allow-destructive keeps it");
            return;
        }
        let (Some(ended), Some(answer)) = (Ended::of(feature, outcome), answer(outcome)) else {
            return;
        };
        let epoch = self.epoch;
        let same = self.groups.iter_mut().rev().find(|group| {
            !changes && !group.changes && group.request == request && group.ended == ended
        });
        // An answer that differs although nothing changed in between has parts that change by themselves.
        if let Some(group) = same
            && (group.epoch == epoch
                || stable::hold(&stable::expectations(feature, &group.answers), &answer))
        {
            group.answers.push(answer);
            return;
        }
        self.groups.push(Group { request, ended, answers: vec![answer], epoch, changes });
    }

    fn leave_out(&mut self, request: Request, why: &'static str) {
        self.left_out.entry(request.label()).or_insert((request, why));
    }
}

/// Writes a case for each group.
fn write(draft: &mut Draft, groups: &[Group]) {
    for Group { request, ended, answers, .. } in groups {
        let expect = stable::expectations(request.feature, answers);
        let error = match ended {
            Ended::Result => None,
            Ended::ToolError => Some("tool".to_owned()),
            Ended::ProtocolError(code) => Some(code.to_string()),
        };
        if error.is_none() && expect.is_empty() {
            let why = "nothing in its answer can be expected again".to_owned();
            draft.leave_out(request.label(), Some(request.clone()), why);
            continue;
        }
        let id = draft.unique(&request.label());
        draft.cases.push(Case { id, request: request.clone(), error, expect, note: None });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recorded(tool: &str, arguments: &Value, text: &str) -> Recorded {
        let result = json!({"content": [{"type": "text", "text": text}]});
        Recorded {
            session: 1,
            method: "tools/call".to_owned(),
            params: json!({"name": tool, "arguments": arguments}),
            answer: Ok(result),
        }
    }

    fn cases(calls: &[Recorded]) -> (Vec<String>, Vec<String>) {
        let mut distiller = Distiller { ..Distiller::default() };
        for one in calls {
            distiller.take(request(one).unwrap(), &outcome(one));
        }
        let mut draft = Draft::default();
        write(&mut draft, &distiller.groups);
        let shown = |case: &Case| format!("{} {}", case.id, Value::from(case.expect.clone()));
        (draft.cases.iter().map(shown).collect(), distiller.left_out.into_keys().collect())
    }

    #[test]
    fn repeated_calls_are_one_case_and_what_differs_is_expected_by_its_shape() {
        let (cases, _) = cases(&[
            recorded("look", &json!({"a": 1}), "process 31 is ready"),
            recorded("look", &json!({"a": 2}), "other"),
            recorded("look", &json!({"a": 1}), "process 47 is ready"),
        ]);
        assert_eq!(cases.len(), 2);
        assert!(cases[0].starts_with("look [{\"matches\":"), "{cases:?}");
        assert_eq!(cases[1], r#"look-2 [{"equals":"other"}]"#);
    }

    #[test]
    fn an_answer_that_a_change_explains_is_a_case_of_its_own() {
        let (cases, _) = cases(&[
            recorded("list", &json!({}), "none"),
            recorded("create_note", &json!({"text": "milk"}), "made"),
            recorded("list", &json!({}), "milk"),
            recorded("create_note", &json!({"text": "milk"}), "made"),
        ]);
        assert_eq!(
            cases,
            [
                r#"list [{"equals":"none"}]"#,
                r#"create_note [{"equals":"made"}]"#,
                r#"list-2 [{"equals":"milk"}]"#,
                r#"create_note-2 [{"equals":"made"}]"#,
            ]
        );
    }

    #[test]
    fn private_arguments_and_destructive_tools_become_comments() {
        let (cases, left) = cases(&[
            recorded("search", &json!({"q": "mail of ada@example.org"}), "none"),
            recorded("delete_all", &json!({}), "gone"),
            recorded("look", &json!({}), "the key is sk-live-a8f3k2l9d0s7g6h5 today"),
        ]);
        assert_eq!(left, ["delete_all", "search"]);
        assert_eq!(cases.len(), 1);
        assert!(!cases[0].contains("a8f3"), "{cases:?}");
    }
}
