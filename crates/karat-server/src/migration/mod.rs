//! A server and revision 2026-07-28: is what it promises there true, and what is left to do?
//!
//! The server is opened in both generations of the protocol, and twice in the new one: as two processes, or as
//! two connections to an address. Lists are got several times, tools that only read are called in every session
//! with the same arguments, and states of multi-round requests are taken to the other instance and changed on
//! the way. An answer that differs between two calls in one session says nothing about instances or
//! generations, and is not compared.

mod rules;
mod schemas;

use std::time::{Duration, Instant};

use karat_core::error::EvalError;
use karat_core::expect::equal;
use karat_core::finding::{Finding, Severity};
use karat_io::text::{clip, count, printable};
use karat_mcp::{
    CallError, Definition, Elicitation, Options, Policies, Revision, Roots, Sampling, ServerSpec,
    Session, StartError, TransportKind,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::rules::{
    BOUNDS, DEPRECATED, GENERATIONS, HEADER_IGNORED, HEADER_MARK, HINTS, INSTANCES, NOT_SPOKEN,
    OLD_CLIENTS, ORDER, REMOVED, RESULT_TYPE, SCOPE, STATE_FORGED, STATE_LOST, TTL,
};
use crate::fuzz::generate::plainest;
use crate::probe::destructive_tools::may_change;
use crate::probe::live::not_started;
use crate::probe::{Rule, unused_values};
use crate::suggest::inputs;

/// The number of tools that are called, of inputs that are tried for each, and of resources that are read.
const MAX_TOOLS: usize = 40;
const MAX_TRIES: usize = 4;
const MAX_RESOURCES: usize = 5;
/// The pause before a fresh result is got again.
const PAUSE: Duration = Duration::from_millis(300);
/// The columns of a value in a message.
const SHOWN: usize = 120;

/// Every rule.
#[must_use]
pub fn rules() -> [&'static Rule; 16] {
    rules::ALL
}

/// The result of a check.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The subject.
    pub name: &'static str,
    /// The things that were looked at, or the reason why there were none.
    pub detail: String,
    /// True if there was something to check.
    pub applies: bool,
    /// The number of findings.
    pub findings: usize,
}

/// The report.
#[derive(Clone, Debug, Serialize)]
pub struct Migration {
    /// True if the server speaks 2026-07-28.
    pub new_generation: bool,
    /// The revision that it opens sessions with, if it does.
    pub old_generation: Option<Revision>,
    /// The checks, in order.
    pub checks: Vec<Check>,
    /// The findings, the most severe first.
    pub findings: Vec<Finding>,
    /// Things that a reader should know.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Settings of the checks.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// Values that are known to work, by the name of the parameter.
    pub known: Map<String, Value>,
}

/// Checks a server.
///
/// # Errors
/// If it opens a session in neither generation.
pub async fn check(
    spec: &ServerSpec,
    options: &Options,
    settings: &Settings,
) -> Result<Migration, EvalError> {
    let options = Options { policies: answers(), ..options.clone() };
    let opened = |revision| {
        let (spec, options) = (ServerSpec { protocol: revision, ..spec.clone() }, &options);
        async move { Session::start(&spec, options).await }
    };
    let new = opened(Some(Revision::V2026_07_28)).await;
    let old = opened_old(spec, &options).await;
    let mut report = Report { checks: Vec::new(), findings: Vec::new(), notes: Vec::new() };
    let old_generation = old.as_ref().ok().map(|session| session.server().revision);
    let new_generation = new.is_ok();
    match (new, old) {
        (Err(_), Err(error)) => return Err(not_started(error)),
        (Err(why), Ok(old)) => {
            report.add(&NOT_SPOKEN, "", "", why.to_string());
            report.done("revision 2026-07-28", why.to_string(), false, 1);
            report.left_to_do(&old, spec);
            let tools = old.tools().await;
            report.schemas(&tools.map_err(|error| EvalError::NothingMeasured(error.to_string()))?);
            old.close().await;
        }
        (Ok(new), old) => {
            match &old {
                Ok(old) => report.left_to_do(old, spec),
                Err(why) => {
                    report.add(&OLD_CLIENTS, "", "", why.to_string());
                    report.done("earlier revisions", why.to_string(), true, 1);
                }
            }
            let other = opened(Some(Revision::V2026_07_28)).await.map_err(not_started)?;
            let sessions = Sessions { new, other, old: old.ok() };
            report.quality(spec, &sessions, &options, settings).await?;
            sessions.close().await;
        }
    }
    let Report { checks, mut findings, notes } = report;
    findings.sort_by(|a, b| b.severity.cmp(&a.severity).then_with(|| a.rule.cmp(&b.rule)));
    Ok(Migration { new_generation, old_generation, checks, findings, notes })
}

/// A session with `initialize`, whatever its revision.
async fn opened_old(spec: &ServerSpec, options: &Options) -> Result<Session, StartError> {
    let spec = ServerSpec { protocol: None, ..spec.clone() };
    let session = Session::start(&spec, options).await?;
    if session.server().revision.has_handshake() {
        return Ok(session);
    }
    session.close().await;
    Err(StartError::Handshake { why: "initialize is refused".to_owned() })
}

/// Fixed answers to everything that a server may ask, so that it does.
fn answers() -> Policies {
    Policies {
        sampling: Sampling::text("Karat"),
        elicitation: Elicitation::AcceptDefaults,
        roots: Roots::List(Vec::new()),
    }
}

/// Answers to everything that a result of type `input_required` asks for.
fn responses(asked: &Value) -> Option<Map<String, Value>> {
    let requests = asked.get("inputRequests").and_then(Value::as_object);
    let answer = |(key, request): (&String, &Value)| {
        let params = request.get("params").unwrap_or(&Value::Null);
        let answer = match request.get("method")?.as_str()? {
            "elicitation/create" => {
                let content = plainest(params.get("requestedSchema"), &Map::new());
                json!({"action": "accept", "content": content})
            }
            "sampling/createMessage" => json!({
                "role": "assistant", "model": "karat", "stopReason": "endTurn",
                "content": {"type": "text", "text": "Karat"},
            }),
            "roots/list" => json!({"roots": []}),
            _ => return None,
        };
        Some((key.clone(), answer))
    };
    requests.into_iter().flatten().map(answer).collect()
}

struct Sessions {
    new: Session,
    /// Another instance, or another connection.
    other: Session,
    old: Option<Session>,
}

impl Sessions {
    async fn close(self) {
        self.new.close().await;
        self.other.close().await;
        if let Some(old) = self.old {
            old.close().await;
        }
    }
}

/// A cacheable request.
struct Cacheable {
    method: &'static str,
    params: Map<String, Value>,
    /// The name for messages.
    name: String,
}

/// A result that says how long it is fresh.
struct Fresh {
    of: usize,
    result: Value,
    until: Instant,
    ttl_ms: u64,
    is_public: bool,
}

struct Report {
    checks: Vec<Check>,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl Report {
    fn add(&mut self, rule: &Rule, tool: &str, at: &str, message: impl Into<String>) {
        self.findings.push(Finding {
            rule: rule.id.to_owned(),
            severity: rule.severity,
            tool: tool.to_owned(),
            at: at.to_owned(),
            message: clip(&printable(&message.into()), 400).into_owned(),
            seen: 1,
            ..Finding::default()
        });
    }

    fn done(
        &mut self,
        name: &'static str,
        detail: impl Into<String>,
        applies: bool,
        findings: usize,
    ) {
        let detail = clip(&printable(&detail.into()), 200).into_owned();
        self.checks.push(Check { name, detail, applies, findings });
    }

    /// Features of earlier revisions that this one has not.
    fn left_to_do(&mut self, old: &Session, spec: &ServerSpec) {
        let before = self.findings.len();
        let capabilities = &old.server().capabilities;
        if capabilities.get("logging").is_some() {
            let message = "the capability `logging`: logging/setLevel is gone, and log messages are \
                           deprecated";
            self.add(&DEPRECATED, "", "/capabilities/logging", message);
        }
        if capabilities.pointer("/resources/subscribe") == Some(&Value::Bool(true)) {
            let message = "resources/subscribe is gone: clients use subscriptions/listen";
            self.add(&REMOVED, "", "/capabilities/resources/subscribe", message);
        }
        if capabilities.get("tasks").is_some() {
            let message = "tasks are an extension now; tasks/list and tasks/result are gone";
            self.add(&REMOVED, "", "/capabilities/tasks", message);
        }
        if old.has_session_id() {
            let message =
                "the server gives its clients an Mcp-Session-Id: sessions no longer exist";
            self.add(&REMOVED, "", "", message);
        }
        if matches!(spec.transport(), Ok(TransportKind::Sse)) {
            let message = "the transport HTTP+SSE: only streamable HTTP and stdio are left";
            self.add(&REMOVED, "", "", message);
        }
        let found = self.findings.len() - before;
        let revision = old.server().revision;
        self.done("earlier revisions", format!("speaks {revision}"), true, found);
    }

    async fn quality(
        &mut self,
        spec: &ServerSpec,
        sessions: &Sessions,
        options: &Options,
        settings: &Settings,
    ) -> Result<(), EvalError> {
        let new = &sessions.new;
        let listed = |error: CallError| EvalError::NothingMeasured(error.to_string());
        let tools = new.tools().await.map_err(listed)?;
        let schemas = tools.iter().filter_map(Definition::input_schema);
        self.notes.extend(unused_values(&settings.known, schemas));
        let fresh = self.cached(sessions).await;
        self.order(sessions).await;
        self.calls(spec, sessions, &tools, settings).await;
        self.states(spec, sessions, &tools, settings).await;
        self.headers(spec, options, &tools, settings).await;
        self.schemas(&tools);
        self.still_fresh(sessions, fresh).await;
        Ok(())
    }

    /// Gets everything that can be cached, and looks at the hints.
    async fn cached(&mut self, sessions: &Sessions) -> (Vec<Cacheable>, Vec<Fresh>) {
        let (before, new) = (self.findings.len(), &sessions.new);
        let all = cacheable(new).await;
        let mut fresh = Vec::new();
        for (of, one) in all.iter().enumerate() {
            let got = Instant::now();
            let result = match new.request(one.method, &one.params).await {
                Ok(result) => result,
                Err(CallError::Protocol { code: -32601, .. }) => continue,
                Err(error) => {
                    self.add(&HINTS, "", "", format!("{}: {error}", one.name));
                    continue;
                }
            };
            match result.get("resultType").and_then(Value::as_str) {
                Some("complete") => {}
                // Not cacheable.
                Some("input_required") => continue,
                other => {
                    let found = other.map_or("none".to_owned(), |text| format!("{text:?}"));
                    self.add(&RESULT_TYPE, "", "", format!("{}: resultType is {found}", one.name));
                }
            }
            let ttl = result.get("ttlMs");
            let ttl_ms = ttl.and_then(Value::as_u64);
            let scope = result.get("cacheScope").and_then(Value::as_str);
            if ttl_ms.is_none() {
                let found = ttl.map_or("missing".to_owned(), Value::to_string);
                self.add(&HINTS, "", "", format!("{}: ttlMs is {found}", one.name));
            }
            if !matches!(scope, Some("public" | "private")) {
                let found = result.get("cacheScope").map_or("missing".to_owned(), Value::to_string);
                self.add(&HINTS, "", "", format!("{}: cacheScope is {found}", one.name));
            }
            let ttl_ms = ttl_ms.unwrap_or(0);
            let (until, is_public) = (got + Duration::from_millis(ttl_ms), scope == Some("public"));
            fresh.push(Fresh { of, result, until, ttl_ms, is_public });
        }
        let detail = format!("{} cacheable results", fresh.len());
        self.done("caching hints", detail, !fresh.is_empty(), self.findings.len() - before);
        (all, fresh)
    }

    /// Gets fresh results again, and public ones for another client.
    async fn still_fresh(
        &mut self,
        sessions: &Sessions,
        (all, fresh): (Vec<Cacheable>, Vec<Fresh>),
    ) {
        let before = self.findings.len();
        let (mut again, mut shared) = (0, 0);
        tokio::time::sleep(PAUSE).await;
        for Fresh { of, result, until, ttl_ms, is_public } in &fresh {
            let Some(Cacheable { method, params, name }) = all.get(*of) else { continue };
            if *ttl_ms > 0 {
                let now = sessions.new.request(method, params).await;
                // Only while it is promised.
                if let (Ok(now), true) = (now, Instant::now() < *until) {
                    again += 1;
                    if !equal(&content(result), &content(&now)) {
                        let message =
                            format!("{name}: changed within {ttl_ms} ms: {}", change(result, &now));
                        self.add(&TTL, "", "", message);
                    }
                }
            }
            if *is_public && let Ok(theirs) = sessions.other.request(method, params).await {
                shared += 1;
                if !equal(&content(result), &content(&theirs)) {
                    let message =
                        format!("{name}: public, and differs: {}", change(result, &theirs));
                    self.add(&SCOPE, "", "", message);
                }
            }
        }
        let detail =
            format!("{again} results were got again while fresh, {shared} by another client");
        self.done("truth of the hints", detail, again + shared > 0, self.findings.len() - before);
    }

    /// Lists several times, in one instance and in the other.
    async fn order(&mut self, sessions: &Sessions) {
        let before = self.findings.len();
        let mut compared = 0;
        for (method, field, key) in LISTS {
            let mut orders: Vec<Vec<String>> = Vec::new();
            for session in [&sessions.new, &sessions.new, &sessions.other, &sessions.new] {
                if let Ok(list) = session.list(method, field).await {
                    let name =
                        |one: &Value| one.get(key).and_then(Value::as_str).map(str::to_owned);
                    orders.push(list.iter().filter_map(name).collect());
                }
            }
            let Some(first) = orders.first().filter(|first| first.len() > 1) else { continue };
            compared += 1;
            if let Some((at, other)) = orders.iter().enumerate().find(|(_, other)| *other != first)
            {
                let sorted = |names: &Vec<String>| {
                    let mut names = names.clone();
                    names.sort();
                    names
                };
                let place = if at == 2 { "another instance" } else { "a later call" };
                let (rule, what) = match sorted(first) == sorted(other) {
                    true => (&ORDER, "in another order"),
                    false => (&INSTANCES, "other entries"),
                };
                let message = format!(
                    "{method}: {place} has {what}: {} and {}",
                    shown(&json!(first)),
                    shown(&json!(other))
                );
                self.add(rule, "", "", message);
            }
        }
        let lists = count(compared, "list");
        let detail = format!("{lists} with two entries or more, got four times each");
        self.done("order of lists", detail, compared > 0, self.findings.len() - before);
    }

    /// Calls the tools that only read in every session.
    async fn calls(
        &mut self,
        spec: &ServerSpec,
        sessions: &Sessions,
        tools: &[Definition],
        settings: &Settings,
    ) {
        let Sessions { new, other, old } = sessions;
        let (mut on_instances, mut on_generations) = ([0, 0], [0, 0]);
        if let Some(old) = old
            && let Ok(theirs) = old.tools().await
        {
            on_generations[1] += self.definitions(tools, &theirs);
        }
        for tool in tools.iter().filter(|tool| may_change(tool.raw()).is_none()).take(MAX_TOOLS) {
            let Some((arguments, first)) = succeeds(new, spec, tool, settings).await else {
                continue;
            };
            let again = new.call(tool.name(), &arguments).await.map(|reply| reply.raw);
            // An answer that differs by itself cannot be compared.
            if !again.is_ok_and(|again| equal(&content(&first), &content(&again))) {
                continue;
            }
            let theirs = new_answer(other, tool.name(), &arguments).await;
            on_instances[0] += 1;
            if let Some(message) = differs(&first, theirs) {
                on_instances[1] += 1;
                self.add(&INSTANCES, tool.name(), "", format!("another instance: {message}"));
            }
            if let Some(old) = old {
                on_generations[0] += 1;
                let theirs = new_answer(old, tool.name(), &arguments).await;
                if let Some(message) = differs(&first, theirs) {
                    on_generations[1] += 1;
                    let revision = old.server().revision;
                    self.add(&GENERATIONS, tool.name(), "", format!("{revision}: {message}"));
                }
            }
        }
        let [count, found] = on_instances;
        let detail =
            format!("{count} tools answered the same call twice, and then in another instance");
        self.done("statelessness", detail, count > 0, found);
        let [count, found] = on_generations;
        let detail = match old {
            Some(_) => {
                format!("definitions, and {count} tools, compared with the other generation")
            }
            None => "there is only one".to_owned(),
        };
        self.done("both generations", detail, old.is_some(), found);
    }

    fn definitions(&mut self, ours: &[Definition], theirs: &[Definition]) -> usize {
        let before = self.findings.len();
        for tool in ours {
            match theirs.iter().find(|other| other.name() == tool.name()) {
                None => self.add(
                    &GENERATIONS,
                    tool.name(),
                    "",
                    "the tool is only in 2026-07-28".to_owned(),
                ),
                Some(other) if !equal(tool.raw(), other.raw()) => {
                    let message =
                        format!("another definition: {}", change(tool.raw(), other.raw()));
                    self.add(&GENERATIONS, tool.name(), "", message);
                }
                Some(_) => {}
            }
        }
        for other in theirs.iter().filter(|one| ours.iter().all(|tool| tool.name() != one.name())) {
            let message = "the tool is only in earlier revisions".to_owned();
            self.add(&GENERATIONS, other.name(), "", message);
        }
        self.findings.len() - before
    }

    /// Takes the state of a multi-round request to another instance, and changes it on the way.
    async fn states(
        &mut self,
        spec: &ServerSpec,
        sessions: &Sessions,
        tools: &[Definition],
        settings: &Settings,
    ) {
        let before = self.findings.len();
        let mut tried = 0;
        for tool in tools.iter().filter(|tool| may_change(tool.raw()).is_none()).take(MAX_TOOLS) {
            let around = inputs::KnownValues {
                folders: inputs::folders_in(spec, std::path::Path::new(".")),
                ..inputs::KnownValues::default()
            };
            let calls = inputs::calls(tool.input_schema(), &settings.known, &around);
            let Some(arguments) = calls.into_iter().next() else { continue };
            let mut params = Map::new();
            params.insert("name".to_owned(), Value::from(tool.name()));
            params.insert("arguments".to_owned(), Value::Object(arguments));
            let Ok(asked) = sessions.new.request("tools/call", &params).await else { continue };
            let state = asked.get("requestState").and_then(Value::as_str);
            let is_open = asked.get("resultType").and_then(Value::as_str) == Some("input_required");
            let (Some(state), true) = (state, is_open) else { continue };
            let Some(responses) = responses(&asked) else { continue };
            tried += 1;
            params.insert("inputResponses".to_owned(), Value::Object(responses));
            params.insert("requestState".to_owned(), Value::from(state));
            // First in the same instance: if it is refused there, nothing can be said.
            let honest = sessions.new.request("tools/call", &params).await;
            if !is_accepted(&honest) {
                continue;
            }
            let there = sessions.other.request("tools/call", &params).await;
            if !is_accepted(&there) {
                let said = described(&there);
                self.add(&STATE_LOST, tool.name(), "", format!("another instance: {said}"));
            }
            for (how, forged) in forgeries(state) {
                params.insert("requestState".to_owned(), Value::from(forged));
                let answered = sessions.new.request("tools/call", &params).await;
                if is_accepted(&answered) {
                    let said = described(&answered);
                    let message = format!("the state {} with {how}: {said}", shown(&json!(state)));
                    self.add(&STATE_FORGED, tool.name(), "", message);
                    break;
                }
            }
        }
        let detail = match tried {
            0 => "no tool that only reads answered with a requestState".to_owned(),
            _ => format!("{tried} tools answered with a requestState"),
        };
        self.done("request state", detail, tried > 0, self.findings.len() - before);
    }

    /// Checks the marks, and sends a header that contradicts an argument.
    async fn headers(
        &mut self,
        spec: &ServerSpec,
        options: &Options,
        tools: &[Definition],
        settings: &Settings,
    ) {
        let before = self.findings.len();
        let mut marked = 0;
        for tool in tools {
            if let Some(why) = tool.parameter_headers_fault() {
                marked += 1;
                self.add(&HEADER_MARK, tool.name(), "/inputSchema", why);
                continue;
            }
            let Some((parameter, header)) = mark(tool) else { continue };
            marked += 1;
            let is_http = matches!(spec.transport(), Ok(TransportKind::Http));
            if !is_http || may_change(tool.raw()).is_some() {
                continue;
            }
            let around = inputs::KnownValues::default();
            let calls = inputs::calls(tool.input_schema(), &settings.known, &around);
            let Some(arguments) = calls.into_iter().find(|call| call.contains_key(&parameter))
            else {
                continue;
            };
            // A session that has not listed the tools adds no such header itself.
            let mut spec = ServerSpec { protocol: Some(Revision::V2026_07_28), ..spec.clone() };
            spec.headers.insert(format!("Mcp-Param-{header}"), "karat-contradiction".to_owned());
            let Ok(session) = Session::start(&spec, options).await else { continue };
            let answered = session.call(tool.name(), &arguments).await;
            session.close().await;
            if let Ok(reply) = answered
                && !reply.is_error
            {
                let message = format!(
                    "Mcp-Param-{header}: karat-contradiction, with {parameter} {}: {}",
                    shown(arguments.get(&parameter).unwrap_or(&Value::Null)),
                    shown(&reply.raw)
                );
                self.add(&HEADER_IGNORED, tool.name(), "", message);
            }
        }
        let detail = match marked {
            0 => "no tool has x-mcp-header".to_owned(),
            count => format!("{count} tools have x-mcp-header"),
        };
        self.done("arguments in headers", detail, marked > 0, self.findings.len() - before);
    }

    fn schemas(&mut self, tools: &[Definition]) {
        let before = self.findings.len();
        for tool in tools {
            for (at, schema) in
                [("/inputSchema", tool.input_schema()), ("/outputSchema", tool.output_schema())]
            {
                if let Some(why) = schema.and_then(schemas::beyond) {
                    self.add(&BOUNDS, tool.name(), at, why);
                }
            }
        }
        let detail = format!("{} tools", tools.len());
        self.done("bounds of schemas", detail, !tools.is_empty(), self.findings.len() - before);
    }
}

const LISTS: [(&str, &str, &str); 4] = [
    ("tools/list", "tools", "name"),
    ("prompts/list", "prompts", "name"),
    ("resources/list", "resources", "uri"),
    ("resources/templates/list", "resourceTemplates", "uriTemplate"),
];

/// Every request whose result can be cached, as far as the server has the capability.
async fn cacheable(session: &Session) -> Vec<Cacheable> {
    let has = |capability: &str| session.server().capabilities.get(capability).is_some();
    let plain =
        |method: &'static str| Cacheable { method, params: Map::new(), name: method.to_owned() };
    let mut all = vec![plain("server/discover")];
    if has("tools") {
        all.push(plain("tools/list"));
    }
    if has("prompts") {
        all.push(plain("prompts/list"));
    }
    if has("resources") {
        all.push(plain("resources/list"));
        all.push(plain("resources/templates/list"));
        let resources = session.list("resources/list", "resources").await.unwrap_or_default();
        for resource in resources.iter().take(MAX_RESOURCES) {
            let Some(uri) = resource.get("uri").and_then(Value::as_str) else { continue };
            let params = Map::from_iter([("uri".to_owned(), Value::from(uri))]);
            let name = format!("resources/read {uri}");
            all.push(Cacheable { method: "resources/read", params, name });
        }
    }
    all
}

/// Arguments with which a tool succeeds, and its result.
async fn succeeds(
    session: &Session,
    spec: &ServerSpec,
    tool: &Definition,
    settings: &Settings,
) -> Option<(Map<String, Value>, Value)> {
    let around = inputs::KnownValues {
        folders: inputs::folders_in(spec, std::path::Path::new(".")),
        ..inputs::KnownValues::default()
    };
    let calls = inputs::calls(tool.input_schema(), &settings.known, &around);
    for arguments in calls.into_iter().take(MAX_TRIES) {
        match session.call(tool.name(), &arguments).await {
            Ok(reply) if !reply.is_error => return Some((arguments, reply.raw)),
            Ok(_) | Err(CallError::Protocol { .. }) => {}
            // A call that takes long is not worth further ones.
            Err(_) => return None,
        }
    }
    None
}

async fn new_answer(
    session: &Session,
    tool: &str,
    arguments: &Map<String, Value>,
) -> Result<Value, CallError> {
    session.call(tool, arguments).await.map(|reply| reply.raw)
}

fn differs(ours: &Value, theirs: Result<Value, CallError>) -> Option<String> {
    match theirs {
        Ok(theirs) if equal(&content(ours), &content(&theirs)) => None,
        Ok(theirs) => Some(change(ours, &theirs)),
        // A busy machine is not the server's doing.
        Err(CallError::Timeout { .. }) => None,
        Err(error) => Some(format!("{}, and there {error}", shown(&content(ours)))),
    }
}

/// A result without what is about the message.
fn content(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(fields) = result.as_object_mut() {
        for key in ["_meta", "resultType", "ttlMs", "cacheScope"] {
            fields.shift_remove(key);
        }
        // A result without the mark of an error and one that denies it say the same.
        if fields.get("isError") == Some(&Value::Bool(false)) {
            fields.shift_remove("isError");
        }
    }
    result
}

fn is_accepted(answered: &Result<Value, CallError>) -> bool {
    answered.as_ref().is_ok_and(|result| result.get("isError") != Some(&Value::Bool(true)))
}

fn described(answered: &Result<Value, CallError>) -> String {
    match answered {
        Ok(result) => shown(&content(result)),
        Err(error) => clip(&error.to_string(), SHOWN).into_owned(),
    }
}

/// Changed states. The last characters stay: in base64 their bits may be unused.
fn forgeries(state: &str) -> Vec<(&'static str, String)> {
    let letters: Vec<char> = state.chars().collect();
    let other = |c: char| match c {
        'a'..='y' | 'A'..='Y' | '0'..='8' => char::from_u32(c as u32 + 1).unwrap_or('x'),
        'z' | 'Z' => 'a',
        _ => 'x',
    };
    let changed = |at: usize| {
        let mut letters = letters.clone();
        if let Some(letter) = letters.get_mut(at) {
            *letter = other(*letter);
        }
        letters.into_iter().collect::<String>()
    };
    let mut forged = Vec::new();
    if letters.len() >= 4 {
        forged.push(("its first character changed", changed(0)));
        forged.push(("a character in the middle changed", changed(letters.len() / 2)));
    }
    forged.push(("other characters", "karat-forged".to_owned()));
    forged.retain(|(_, text)| text != state);
    forged
}

/// The first property with a mark, and its header.
fn mark(tool: &Definition) -> Option<(String, String)> {
    let properties = tool.input_schema()?.get("properties")?.as_object()?;
    properties.iter().find_map(|(name, property)| {
        let header = property.get("x-mcp-header")?.as_str()?;
        Some((name.clone(), header.to_owned()))
    })
}

/// The first place at which two values differ.
fn change(ours: &Value, theirs: &Value) -> String {
    fn at(path: &str, ours: &Value, theirs: &Value) -> Option<String> {
        if equal(ours, theirs) {
            return None;
        }
        match (ours, theirs) {
            (Value::Object(a), Value::Object(b)) => {
                let keys = a.keys().chain(b.keys().filter(|key| !a.contains_key(*key)));
                let mut keys = keys;
                keys.find_map(|key| {
                    let value = |of: &Map<String, Value>| of.get(key).cloned().unwrap_or_default();
                    at(&format!("{path}/{key}"), &value(a), &value(b))
                })
            }
            (Value::Array(a), Value::Array(b)) if a.len() == b.len() => a
                .iter()
                .zip(b)
                .enumerate()
                .find_map(|(number, (a, b))| at(&format!("{path}/{number}"), a, b)),
            _ => Some(format!("{path}: {} and {}", shown(ours), shown(theirs))),
        }
    }
    at("", &content(ours), &content(theirs)).unwrap_or_default()
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    clip(&printable(&text), SHOWN).into_owned()
}

impl Migration {
    /// The number of findings of a severity.
    #[must_use]
    pub fn count(&self, severity: Severity) -> usize {
        self.findings.iter().filter(|finding| finding.severity == severity).count()
    }
}
