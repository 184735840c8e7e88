//! A suite that is written from a live server.
//!
//! Every tool that only reads is called with arguments made from its schema until it answers, every resource
//! is read and every prompt is got, and all of it again in a second session. The parts of both answers that
//! agree become the expectations; values that change from call to call are expected by their shape alone. An
//! error, and a text that reads as one, is not taken for an answer. The suite is then run in a third session:
//! a case that does not pass there, or that would pass with an empty answer, is left out with its reason.
//! Tools that may change something are not called; their cases are written as comments.

mod draft;
pub(crate) mod inputs;
pub(crate) mod stable;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use karat_core::error::EvalError;
use karat_core::expect::Answer;
use karat_io::text::{clip, printable};
use karat_mcp::{CallError, Definition, Options, ServerInfo, ServerSpec, Session};
use serde_json::{Map, Value, json};

pub(crate) use self::draft::{Case, Draft, Request};
use crate::compliance::Contract;
use crate::controls::nothing;
use crate::judge::{answer_of, judge};
use crate::observation::{Attempt, Called, Outcome};
use crate::probe::destructive_tools::may_change;
use crate::probe::live::not_started;
use crate::probe::refusal::is_refusal;
use crate::probe::{check_known, unused_values};
use crate::suite::variables::{self, Variables};
use crate::suite::{self, Feature, Role, Suite};
use crate::system::{Server, Target};

/// The number of arguments that are tried for one tool or prompt.
const MAX_TRIES: usize = 8;
/// The number of times that the suite is run and shortened.
const MAX_ROUNDS: usize = 3;
/// The number of resources, and of prompts, that get a case.
const MAX_LISTED: usize = 50;
/// Names of things that no server has.
const NO_SUCH_TOOL: &str = "karat_no_such_tool";
const NO_SUCH_PROMPT: &str = "karat_no_such_prompt";
const NO_SUCH_RESOURCE: &str = "karat://no-such-resource";
/// The columns of a reason.
const MAX_COLUMNS: usize = 160;

/// Settings of the suite.
#[derive(Debug, Default)]
pub struct Settings {
    /// Values that are known to work, by the name of the parameter.
    pub known: Map<String, Value>,
    /// The only tools that are considered; everything that the server offers if empty.
    pub tools: Vec<String>,
    /// The server as the suite names it, if it may be written down.
    pub written_server: Option<Value>,
}

/// A suite that was written.
#[derive(Debug)]
pub struct Suggestion {
    /// The suite, as YAML.
    pub text: String,
    /// The number of cases.
    pub cases: usize,
    /// The number of tools that the server offers.
    pub tools: usize,
    /// The number of tools that only read.
    pub read_only: usize,
    /// The number of those that have a case.
    pub covered: usize,
    /// The number of resources that have a case.
    pub resources: usize,
    /// The number of prompts that have a case.
    pub prompts: usize,
    /// Tools, resources and prompts without a case, with the reason.
    pub left_out: Vec<(String, String)>,
    /// Things that a reader should know.
    pub notes: Vec<String>,
}

/// Writes a suite for a server.
///
/// # Errors
/// If the server does not start, what it offers cannot be listed, or nothing gave an answer that a case could
/// expect.
pub async fn suggest(
    spec: &ServerSpec,
    options: &Options,
    settings: &Settings,
) -> Result<Suggestion, EvalError> {
    let mut writer = Writer::start(spec, options).await?;
    writer.draft.server.clone_from(&settings.written_server);
    let tools = writer.tools.clone();
    check_known("--tool", "tool", &settings.tools, tools.iter().map(Definition::name))?;
    let chosen = |tool: &&Definition| {
        settings.tools.is_empty() || settings.tools.iter().any(|name| name == tool.name())
    };
    let around =
        inputs::KnownValues { folders: inputs::folders(spec), ..inputs::KnownValues::default() };
    let mut read_only = 0;
    for tool in tools.iter().filter(chosen) {
        let calls = inputs::calls(tool.input_schema(), &settings.known, &around);
        let request =
            |arguments| Request { feature: Feature::Tool, name: tool.name().to_owned(), arguments };
        let requests: Vec<Request> = calls.into_iter().map(request).collect();
        if let Some(why) = may_change(tool.raw()) {
            writer.draft.leave_out(tool.name().to_owned(), requests.into_iter().next(), why);
            continue;
        }
        read_only += 1;
        writer.first_answer(tool.name(), requests).await?;
    }
    let mut prompts = Vec::new();
    if settings.tools.is_empty() {
        writer.resources().await?;
        prompts = writer.prompts(&settings.known, &around).await?;
    }
    let schemas = tools.iter().filter_map(Definition::input_schema).chain(&prompts);
    writer.notes.extend(unused_values(&settings.known, schemas));
    writer.second_answers().await?;
    writer.errors().await?;
    writer.keep_what_passes().await?;
    writer.server.renew().await;
    writer.finish(read_only)
}

/// Proposes a case for one request: it is made in three sessions, and must end in the same way in each. What
/// the first two answers share becomes the expectations. Returns the case as YAML.
///
/// # Errors
/// If the server does not start, the tool may change something and that is not allowed, or the answers have
/// nothing in common.
pub async fn propose(
    spec: &ServerSpec,
    options: &Options,
    feature: Feature,
    name: &str,
    arguments: Map<String, Value>,
    is_allowed: bool,
) -> Result<String, EvalError> {
    let mut writer = Writer::start(spec, options).await?;
    if feature.is_tool() {
        let known = writer.tools.iter().map(Definition::name);
        check_known("--tool", "tool", &[name.to_owned()], known)?;
        let tool = writer.tools.iter().find(|tool| tool.name() == name);
        let why = tool.and_then(|tool| may_change(tool.raw()));
        if let Some(why) = why.filter(|_| !is_allowed) {
            return Err(EvalError::config(format!(
                "{name} may change something ({why}), and would be called three times; \
                 --allow-destructive calls it"
            )));
        }
    }
    let request = match feature {
        Feature::Resource => Request::of_resource(name),
        _ => Request { feature, name: name.to_owned(), arguments },
    };
    let mut ended: Vec<Outcome> = Vec::new();
    for _ in 0..2 {
        ended.push(writer.ask(&request).await?);
        writer.server.renew().await;
    }
    let differ = |why: &str| EvalError::NothingMeasured(format!("{}: {why}", request.label()));
    let classes: Vec<&str> = ended.iter().map(Outcome::class).collect();
    if let [first, second] = classes.as_slice()
        && first != second
    {
        return Err(differ(&format!(
            "no case: the first call ended with {}, the second with {}",
            ended[0], ended[1]
        )));
    }
    let error = match ended.first() {
        Some(Outcome::ProtocolError { code, .. }) => Some(code.to_string()),
        Some(outcome) if feature.is_tool() && outcome.is_tool_error() => Some("tool".to_owned()),
        Some(Outcome::Result { .. }) => None,
        other => {
            let how = other.map(Outcome::to_string).unwrap_or_default();
            return Err(differ(&format!("no case: it ended with {how}")));
        }
    };
    let results: Vec<Value> =
        ended.iter().filter_map(|outcome| Some(answer_of(outcome)?.into_owned())).collect();
    let expect = stable::expectations(feature, &results);
    if error.is_none() && expect.is_empty() {
        return Err(differ("no case: nothing in its answer can be expected again"));
    }
    let case = Case { id: request.label(), request, error, expect, note: None };
    let mut text = String::new();
    case.write(&mut text);
    writer.draft.cases.push(case);
    writer.keep_what_passes().await?;
    writer.server.renew().await;
    match writer.draft.unwritten.first() {
        Some(one) => Err(EvalError::NothingMeasured(format!("no case: {}: {}", one.name, one.why))),
        None => Ok(text),
    }
}

/// A request with the answers that it got.
struct Taken {
    id: String,
    request: Request,
    answers: Vec<Value>,
}

pub(crate) struct Writer {
    server: Server,
    info: ServerInfo,
    tools: Vec<Definition>,
    contract: Contract,
    taken: Vec<Taken>,
    pub(crate) draft: Draft,
    notes: Vec<String>,
    /// True if an answer had something private in it.
    saw_private: AtomicBool,
}

impl Writer {
    /// Starts the server and lists its tools.
    pub(crate) async fn start(spec: &ServerSpec, options: &Options) -> Result<Writer, EvalError> {
        let target = Target::Spec(Box::new(spec.clone()));
        let server =
            Server::start(target, options.clone(), Vec::new()).await.map_err(not_started)?;
        let session = server.session().await.map_err(not_started)?;
        let tools = session.tools().await.map_err(|error| {
            EvalError::NothingMeasured(format!("the server's tools cannot be listed: {error}"))
        })?;
        let info = session.server().clone();
        drop(session);
        let name = if info.name.is_empty() { "server".to_owned() } else { info.name.clone() };
        let described = server.redactor().hidden(spec.describe());
        Ok(Writer {
            contract: Contract::new(&tools, info.revision),
            server,
            info,
            tools,
            taken: Vec::new(),
            draft: Draft { name, described, ..Draft::default() },
            notes: Vec::new(),
            saw_private: AtomicBool::new(false),
        })
    }

    async fn session(&self) -> Result<Arc<Session>, EvalError> {
        self.server.session().await.map_err(not_started)
    }

    /// The entries of a list, if the server has the capability.
    async fn listed(&mut self, capability: &str, method: &str) -> Result<Vec<Value>, EvalError> {
        if self.info.capabilities.get(capability).is_none() {
            return Ok(Vec::new());
        }
        let field = method.split('/').nth(1).filter(|field| *field != "list").unwrap_or(capability);
        let field = if field == "templates" { "resourceTemplates" } else { field };
        match self.session().await?.list(method, field).await {
            Ok(found) => Ok(found),
            Err(CallError::Protocol { code: -32601, .. }) => Ok(Vec::new()),
            Err(error) => {
                self.notes.push(format!("{method}: {error}"));
                Ok(Vec::new())
            }
        }
    }

    fn note_rest(&mut self, what: &str, count: usize) {
        if count > MAX_LISTED {
            self.notes.push(format!("of {count} {what}, the first {MAX_LISTED} have cases"));
        }
    }

    /// Reads every resource. Templates become comments.
    async fn resources(&mut self) -> Result<(), EvalError> {
        let found = self.listed("resources", "resources/list").await?;
        self.note_rest("resources", found.len());
        for resource in found.iter().take(MAX_LISTED) {
            let Some(uri) = resource.get("uri").and_then(Value::as_str) else { continue };
            let request = Request::of_resource(uri);
            self.first_answer(&request.label(), vec![request]).await?;
        }
        for template in self.listed("resources", "resources/templates/list").await? {
            let Some(uri) = template.get("uriTemplate").and_then(Value::as_str) else { continue };
            let request = Request::of_resource(uri);
            let why = "a template; its parameters are yours to fill in".to_owned();
            self.draft.leave_out(request.label(), Some(request), why);
        }
        Ok(())
    }

    /// Gets every prompt. Returns the schemas of their arguments.
    async fn prompts(
        &mut self,
        known: &Map<String, Value>,
        around: &inputs::KnownValues,
    ) -> Result<Vec<Value>, EvalError> {
        let mut schemas = Vec::new();
        let found = self.listed("prompts", "prompts/list").await?;
        self.note_rest("prompts", found.len());
        for prompt in found.iter().take(MAX_LISTED) {
            let Some(name) = prompt.get("name").and_then(Value::as_str) else { continue };
            let (mut properties, mut required) = (Map::new(), Vec::new());
            let mut values = known.clone();
            let listed = prompt.get("arguments").and_then(Value::as_array);
            for argument in listed.into_iter().flatten() {
                let Some(key) = argument.get("name").and_then(Value::as_str) else { continue };
                let about = argument.get("description").cloned().unwrap_or_default();
                properties.insert(key.to_owned(), json!({"type": "string", "description": about}));
                if argument.get("required") == Some(&Value::Bool(true)) {
                    required.push(key);
                    if !values.contains_key(key)
                        && let Some(value) = self.completion(name, key).await?
                    {
                        values.insert(key.to_owned(), Value::String(value));
                    }
                }
            }
            let schema = json!({"type": "object", "properties": properties, "required": required});
            let calls = inputs::calls(Some(&schema), &values, around);
            let request =
                |arguments| Request { feature: Feature::Prompt, name: name.to_owned(), arguments };
            let requests: Vec<Request> = calls.into_iter().map(request).collect();
            self.first_answer(&format!("prompt {name}"), requests).await?;
            schemas.push(schema);
        }
        Ok(schemas)
    }

    /// The first value that the server offers for an argument of a prompt.
    async fn completion(&self, prompt: &str, key: &str) -> Result<Option<String>, EvalError> {
        if self.info.capabilities.get("completions").is_none() {
            return Ok(None);
        }
        let params = json!({
            "ref": {"type": "ref/prompt", "name": prompt},
            "argument": {"name": key, "value": ""},
        });
        let Value::Object(params) = params else { return Ok(None) };
        let asked = self.session().await?.request("completion/complete", &params).await;
        let values = asked.ok().and_then(|result| result.pointer("/completion/values/0").cloned());
        Ok(values.and_then(|value| value.as_str().map(str::to_owned)))
    }

    /// Makes a request. Secrets of the server, and what reads as private, are removed from its outcome.
    pub(crate) async fn ask(&self, request: &Request) -> Result<Outcome, EvalError> {
        let Request { feature, name, arguments } = request;
        let asked = self.server.ask(*feature, name, arguments).await;
        let (outcome, _) = asked.map_err(not_started)?;
        if outcome == Outcome::Timeout {
            // It may still be busy with the call.
            self.server.renew().await;
        }
        let kept = called(request, outcome).redacted(self.server.redactor());
        // A suite is judged by answers without anything private, so it is written from such answers.
        let hidden = kept.clone().without_private();
        if hidden.outcome != kept.outcome {
            self.saw_private.store(true, Ordering::Relaxed);
        }
        Ok(hidden.outcome)
    }

    /// The reason for which an outcome is not an answer that a case can expect.
    fn unusable(&self, request: &Request, outcome: &Outcome) -> Option<String> {
        let Outcome::Result { result } = outcome else { return Some(short(&outcome.to_string())) };
        let answer = Answer::new(result);
        if let Some(why) = self.contract.malformed_answer(request.feature, result) {
            return Some(format!("a result that breaks the protocol: {why}"));
        }
        if !request.feature.is_tool() {
            return None;
        }
        if outcome.is_tool_error() {
            return Some(short(&format!("a tool error: {}", answer.text())));
        }
        if is_refusal(result, answer.text()) {
            return Some(short(&format!("an answer that reads as an error: {}", answer.text())));
        }
        let fit = self.contract.output(&request.name, outcome);
        fit.reasons().first().map(|why| short(&format!("a result that breaks its schema at {why}")))
    }

    /// Makes requests until one is answered.
    async fn first_answer(&mut self, id: &str, requests: Vec<Request>) -> Result<(), EvalError> {
        let mut why = "no arguments that match its schema could be made".to_owned();
        let first = requests.first().cloned();
        for request in requests.into_iter().take(MAX_TRIES) {
            let outcome = self.ask(&request).await?;
            match (self.unusable(&request, &outcome), outcome) {
                (None, Outcome::Result { result }) => {
                    self.taken.push(Taken { id: id.to_owned(), request, answers: vec![result] });
                    return Ok(());
                }
                (reason, outcome) => {
                    why = format!("called, and it ended with {}", reason.unwrap_or_default());
                    if !outcome.is_answer() {
                        break;
                    }
                }
            }
        }
        let hint = match first.as_ref().is_some_and(|first| !first.arguments.is_empty()) {
            true => "; give values with --set",
            false => "",
        };
        self.draft.leave_out(id.to_owned(), first, format!("{why}{hint}"));
        Ok(())
    }

    /// Makes every request again in another session, and writes a case for each that is answered again.
    async fn second_answers(&mut self) -> Result<(), EvalError> {
        self.server.renew().await;
        for mut taken in std::mem::take(&mut self.taken) {
            let outcome = self.ask(&taken.request).await?;
            let why = match (self.unusable(&taken.request, &outcome), outcome) {
                (None, Outcome::Result { result }) => {
                    taken.answers.push(result);
                    let expect = stable::expectations(taken.request.feature, &taken.answers);
                    if expect.is_empty() {
                        "nothing in its answer can be expected again".to_owned()
                    } else {
                        taken.id = self.draft.unique(&taken.id);
                        self.draft.cases.push(Case {
                            id: taken.id.clone(),
                            request: taken.request.clone(),
                            error: None,
                            expect,
                            note: None,
                        });
                        self.taken.push(taken);
                        continue;
                    }
                }
                (reason, _) => {
                    format!("it answered once, and then ended with {}", reason.unwrap_or_default())
                }
            };
            self.draft.leave_out(taken.id, Some(taken.request), why);
        }
        Ok(())
    }

    /// Cases for things that do not exist and for missing arguments, where the server refuses them.
    async fn errors(&mut self) -> Result<(), EvalError> {
        self.server.renew().await;
        let has = |feature| self.taken.iter().any(|taken| taken.request.feature == feature);
        let named =
            |feature, name: &str| Request { feature, name: name.to_owned(), arguments: Map::new() };
        // The id, the request, and the argument that it lacks.
        let mut wanted: Vec<(String, Request, Option<String>)> = Vec::new();
        if has(Feature::Tool) {
            let request = named(Feature::Tool, NO_SUCH_TOOL);
            wanted.push(("a tool that does not exist".to_owned(), request, None));
        }
        if has(Feature::Resource) {
            let request = Request::of_resource(NO_SUCH_RESOURCE);
            wanted.push(("a resource that does not exist".to_owned(), request, None));
        }
        if has(Feature::Prompt) {
            let request = named(Feature::Prompt, NO_SUCH_PROMPT);
            wanted.push(("a prompt that does not exist".to_owned(), request, None));
        }
        for taken in self.taken.iter().filter(|taken| taken.request.feature.is_tool()) {
            let definition = self.tools.iter().find(|tool| tool.name() == taken.request.name);
            let schema = definition.and_then(Definition::input_schema);
            let required = schema.and_then(|schema| schema.get("required")?.get(0)?.as_str());
            let Some(missing) = required else { continue };
            let mut request = taken.request.clone();
            request.arguments.remove(missing);
            let id = format!("{} without {missing}", request.name);
            wanted.push((id, request, Some(missing.to_owned())));
        }
        for (id, request, missing) in wanted {
            let mut texts = Vec::new();
            for _ in 0..2 {
                let outcome = self.ask(&request).await?;
                match &outcome {
                    Outcome::ProtocolError { message, .. } => texts.push(message.clone()),
                    Outcome::Result { result } if outcome.is_tool_error() => {
                        texts.push(Answer::new(result).text().to_owned());
                    }
                    _ => break,
                }
            }
            if texts.len() < 2 {
                self.notes.push(format!("{id}: not refused with an error, so no case expects one"));
                continue;
            }
            let named =
                missing.filter(|name| texts.iter().all(|text| text.contains(name.as_str())));
            let expect = named.map(|name| json!({"contains": name})).into_iter().collect();
            let (id, error) = (self.draft.unique(&id), Some("any".to_owned()));
            self.draft.cases.push(Case { id, request, error, expect, note: None });
        }
        Ok(())
    }

    /// Runs the suite, and leaves out what does not pass, or would pass without an answer.
    pub(crate) async fn keep_what_passes(&mut self) -> Result<(), EvalError> {
        for _ in 0..MAX_ROUNDS {
            let cases = self.parsed()?;
            self.server.renew().await;
            let mut failed = BTreeMap::new();
            for case in &cases {
                let request = request_of(case);
                let outcome = self.ask(&request).await?;
                if let Some(why) = self.fails(case, &request, outcome) {
                    let why = format!("a third call did not end in the same way: {}", short(&why));
                    failed.insert(case.id.clone(), why);
                    continue;
                }
                let empty = Outcome::Result { result: nothing(request.feature) };
                if case.step.ending == suite::Ending::Success
                    && self.fails(case, &request, empty).is_none()
                {
                    failed.insert(case.id.clone(), "an empty answer would pass too".to_owned());
                }
            }
            if failed.is_empty() {
                self.note_look_alikes(&cases);
                return Ok(());
            }
            for (id, why) in failed {
                self.draft.drop_case(&id, why);
            }
        }
        Err(EvalError::NothingMeasured(
            "the answers of the server change from session to session, so no suite passes twice"
                .to_owned(),
        ))
    }

    fn parsed(&self) -> Result<Vec<Arc<suite::Case>>, EvalError> {
        let text = self.draft.to_yaml();
        Ok(Suite::parse(Path::new("suggested.yaml"), text.as_bytes())?.cases)
    }

    fn fails(&self, case: &suite::Case, request: &Request, outcome: Outcome) -> Option<String> {
        let attempt = Attempt { calls: vec![called(request, outcome)], stopped: None };
        judge(case, &attempt, &self.contract).reasons.into_iter().next()
    }

    /// Notes for cases that the answer of another tool, resource or prompt would pass.
    fn note_look_alikes(&mut self, cases: &[Arc<suite::Case>]) {
        let mut notes = BTreeMap::new();
        for case in cases.iter().filter(|case| case.step.ending == suite::Ending::Success) {
            let request = request_of(case);
            let same = self.taken.iter().find(|taken| {
                let answer = taken.answers.first().cloned().unwrap_or_default();
                taken.request.feature == request.feature
                    && taken.request.name != request.name
                    && self.fails(case, &request, Outcome::Result { result: answer }).is_none()
            });
            if let Some(taken) = same {
                let note = format!("the answer of {} would pass too", taken.id);
                notes.insert(case.id.clone(), note);
            }
        }
        for case in &mut self.draft.cases {
            case.note = notes.remove(&case.id);
        }
    }

    /// Ends the server. Returns the suite.
    pub(crate) async fn end(self) -> Draft {
        self.server.renew().await;
        self.draft
    }

    fn finish(mut self, read_only: usize) -> Result<Suggestion, EvalError> {
        self.draft.hides_private |= self.saw_private.load(Ordering::Relaxed);
        let tools = self.tools.len();
        let answered = |feature| {
            let cases = self.draft.cases.iter().filter(|case| case.error.is_none());
            cases.filter(|case| case.request.feature == feature).count()
        };
        let covered = answered(Feature::Tool);
        let (resources, prompts) = (answered(Feature::Resource), answered(Feature::Prompt));
        let left_out: Vec<(String, String)> =
            self.draft.unwritten.iter().map(|one| (one.name.clone(), one.why.clone())).collect();
        if covered + resources + prompts == 0 {
            let reasons: Vec<String> =
                left_out.iter().take(3).map(|(tool, why)| format!("{tool}: {why}")).collect();
            return Err(EvalError::NothingMeasured(format!(
                "no answer that a case could expect; a suite of errors only would pass on a broken server \
                 ({tools} tools{}{})",
                if reasons.is_empty() { "" } else { "; " },
                reasons.join("; ")
            )));
        }
        Ok(Suggestion {
            text: self.draft.to_yaml(),
            cases: self.draft.cases.len(),
            tools,
            read_only,
            covered,
            resources,
            prompts,
            left_out,
            notes: self.notes,
        })
    }
}

/// The request of a case.
fn request_of(case: &suite::Case) -> Request {
    let step = &case.step;
    // Nothing is saved, so only `$${` is replaced.
    let arguments = variables::fill(&step.input, &Variables::new());
    Request {
        feature: step.feature,
        name: step.tool.clone(),
        arguments: arguments.unwrap_or_else(|_| step.input.clone()),
    }
}

/// A request as a call of a case.
fn called(request: &Request, outcome: Outcome) -> Called {
    Called {
        role: Role::Call,
        number: 0,
        feature: request.feature,
        tool: request.name.clone(),
        arguments: request.arguments.clone(),
        outcome,
        nanos: 0,
        notifications: Vec::new(),
        headers: None,
        task: None,
        violation: None,
    }
}

/// A text on one line of bounded length.
fn short(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    clip(&printable(&line), MAX_COLUMNS).into_owned()
}
