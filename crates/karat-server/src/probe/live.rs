//! A live server under generated calls: it is restarted when it ends or hangs, and its secrets are
//! kept out of everything that is shown.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::Common;
use karat_core::report::SystemRef;
use karat_io::text::{first_few, printable};
use karat_mcp::{
    CallError, CallOptions, Definition, Isolation, Options, Recorder, Revision, ServerInfo,
    ServerSpec, Session, StartError,
};
use serde_json::{Map, Value};

use super::destructive_tools::may_change;
use super::encodings::find_encoded;
use super::{check_known, reaction};
use crate::observation::Outcome;
use crate::suggest::inputs::{self, KnownValues};
use crate::suite;
use crate::system::{Server, Target};

/// The number of skipped tools that are named with their reasons, and the number that are named at all.
const NAMED: usize = 8;
const MAX_NAMED: usize = 60;

/// The number of resources that are looked at.
const MAX_RESOURCES: usize = 20;

/// The pauses before each attempt to reach a server at an address again.
const PAUSES_MS: [u64; 4] = [100, 300, 600, 1_000];
/// The name of a site that leads nowhere: what a browser would send for a page of a site whose name was
/// made to lead to the server.
pub(crate) const REBOUND_HOST: &str = "rebound.karat.invalid";

/// The time limit for all of these attempts.
const RECONNECT_LIMIT: Duration = Duration::from_secs(10);

/// The server of an entry: its own, a built-in one, or the one that its suite names.
///
/// # Errors
/// If there is none, or more than one.
pub(crate) fn target(
    server: Option<&ServerSpec>,
    builtin: Option<&str>,
    of_suite: Option<&Value>,
) -> Result<Target, EvalError> {
    match (server, builtin) {
        (Some(spec), None) => Ok(Target::Spec(Box::new(spec.clone()))),
        (None, Some("demo")) => Ok(Target::Demo),
        (None, Some(name)) => {
            Err(EvalError::config(format!("`builtin`: no built-in server {name:?}; expected demo")))
        }
        (Some(_), Some(_)) => Err(EvalError::config("give `server` or `builtin`, not both")),
        (None, None) => {
            let written = of_suite.ok_or_else(|| {
                EvalError::config("no server given: set `server`, or `builtin = \"demo\"`")
            })?;
            let found = suite::server::find(written, Path::new("")).map_err(EvalError::config)?;
            Ok(Target::Spec(Box::new(found.spec)))
        }
    }
}

/// The error of a server that did not start; a wrong spec is bad input.
pub(crate) fn not_started(error: StartError) -> EvalError {
    match error {
        StartError::Spec { why } => EvalError::Config(why),
        other => EvalError::NotStarted(other.to_string()),
    }
}

/// The settings of a session, from those of an entry.
pub(crate) fn session_options(
    common: &Common,
    folder: &Path,
    recorder: Option<&Recorder>,
) -> Options {
    Options {
        call_timeout: common.timeout(),
        start_timeout: common.start_timeout(),
        folder: Some(folder.to_owned()),
        recorder: recorder.cloned(),
        ..Options::default()
    }
}

/// A server as reports name it.
pub(crate) fn system_ref(described: String, info: &ServerInfo) -> SystemRef {
    let name = if info.name.is_empty() { &described } else { &info.name };
    SystemRef {
        kind: "mcp".to_owned(),
        name: name.clone(),
        version: Some(info.version.clone()).filter(|version| !version.is_empty()),
        settings: BTreeMap::from([
            ("protocol".to_owned(), info.revision.to_string()),
            ("server".to_owned(), described),
        ]),
    }
}

/// A tool that is not called, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Skipped {
    /// The tool.
    pub tool: String,
    /// The reason.
    pub why: String,
}

/// The state of a server after many calls at once.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Flooded {
    /// It answered a ping.
    Answered,
    /// It is gone.
    Ended {
        /// A description.
        how: String,
        /// True if calls without an answer in time were cancelled before.
        has_cancelled: bool,
    },
    /// It did not answer a ping in time.
    Silent,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct CallResult {
    pub(crate) outcome: Outcome,
    pub(crate) latency: Duration,
    /// The start of the answer for people: without secrets, printable.
    pub(crate) shown: String,
    /// True if there was no answer in time and the server answered a ping.
    pub(crate) is_alive: bool,
}

/// The result of a request under the name of another site.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rebound {
    /// The server opened a session, and this was seen.
    Answered(String),
    /// The server refused, in these words.
    Refused(String),
    /// No page can make such a request.
    NotApplicable(&'static str),
    /// The server could not be asked.
    NotExecuted(String),
}

/// A server under generated calls.
pub(crate) struct LiveServer {
    server: Server,
    described: String,
    shown_spec: ServerSpec,
    info: ServerInfo,
    isolation: Vec<String>,
    is_restartable: bool,
    has_bait: bool,
    bait: Vec<String>,
}

/// Everything a live server reported apart from its answers.
#[derive(Default)]
pub struct Facts {
    pub(crate) isolation: Vec<String>,
    /// A note on restarts, notes on its conduct and a note on skipped tools.
    pub(crate) warnings: Vec<String>,
    /// The reason for which the server was lost.
    pub(crate) lost: Option<String>,
    /// True if the time limit ended the run.
    pub(crate) is_late: bool,
    /// The day of the run.
    pub(crate) today: String,
    /// The number of tools that were not called because they may change something.
    pub(crate) skipped: usize,
}

impl LiveServer {
    /// Starts the server, with bait in its environment if it is a program of its own.
    ///
    /// # Errors
    /// If there is no session.
    pub(crate) async fn start(
        target: &Target,
        options: &Options,
        bait: &[(&str, &str)],
    ) -> Result<LiveServer, EvalError> {
        let (mut baited, mut options) = (target.clone(), options.clone());
        let spec = match &mut baited {
            Target::Spec(spec) => {
                let plain = spec.as_ref().clone();
                if spec.command.is_some() {
                    let variables =
                        bait.iter().map(|(name, value)| (name.to_string(), value.to_string()));
                    spec.env.extend(variables);
                }
                plain
            }
            Target::Demo => {
                ServerSpec::from_command(["karat", "demo-server"].map(String::from).into())
            }
        };
        let bait: Vec<String> = bait.iter().map(|(_, value)| (*value).to_owned()).collect();
        options.canaries.extend(bait.iter().cloned());
        let is_in_process = matches!(target, Target::Demo);
        let server = Server::start(baited, options, Vec::new()).await.map_err(not_started)?;
        let session = server.session().await.map_err(not_started)?;
        let shown_spec = redacted(&spec, &session);
        Ok(LiveServer {
            described: if is_in_process { target.describe() } else { shown_spec.describe() },
            shown_spec,
            info: session.server().clone(),
            isolation: session.isolation().to_vec(),
            is_restartable: spec.command.is_some(),
            has_bait: spec.command.is_some() && !is_in_process,
            bait,
            server,
        })
    }

    /// The server as reports name it, with a digest of the tools that it serves.
    pub(crate) fn reference(&self, tools: &[Definition]) -> SystemRef {
        let raw: Vec<&Value> = tools.iter().map(Definition::raw).collect();
        let mut reference = system_ref(self.described.clone(), &self.info);
        let text = serde_json::to_string(&raw).unwrap_or_default();
        reference.settings.insert("tools".to_owned(), Digest::of(text.as_bytes()).to_string());
        reference
    }

    /// The protocol revision in use.
    pub(crate) fn revision(&self) -> Revision {
        self.info.revision
    }

    /// The spec without its secrets.
    pub(crate) fn shown_spec(&self) -> &ServerSpec {
        &self.shown_spec
    }

    /// Returns whether the bait is in its environment.
    pub(crate) fn has_bait(&self) -> bool {
        self.has_bait
    }

    /// Text without the secrets of the spec.
    pub(crate) fn redact(&self, text: &str) -> String {
        self.server.redactor().hide(text).into_owned()
    }

    /// Every tool.
    ///
    /// # Errors
    /// If they cannot be listed.
    pub(crate) async fn tools(&self) -> Result<Vec<Definition>, EvalError> {
        let session = self.server.session().await.map_err(not_started)?;
        session.tools().await.map_err(|error| {
            EvalError::NothingMeasured(format!("the server's tools cannot be listed: {error}"))
        })
    }

    /// Known facts about its place: the folders of its command, and its resources.
    pub(crate) async fn known_values(&self, folder: &Path) -> KnownValues {
        let folders = match self.server.target() {
            Target::Spec(spec) => inputs::folders_in(spec, folder),
            Target::Demo => Vec::new(),
        };
        KnownValues { folders, resources: self.resources().await }
    }

    /// The URIs of its first resources. A list that cannot be read is ignored.
    async fn resources(&self) -> Vec<String> {
        if self.info.capabilities.get("resources").is_none() {
            return Vec::new();
        }
        let Ok(session) = self.server.session().await else { return Vec::new() };
        match session.list("resources/list", "resources").await {
            Ok(listed) => {
                let uris = listed.iter().filter_map(|one| one.get("uri")?.as_str());
                uris.take(MAX_RESOURCES).map(str::to_owned).collect()
            }
            Err(CallError::Protocol { .. }) => Vec::new(),
            Err(_) => {
                // It may still be busy, which is not the fault of the next call.
                drop(session);
                self.server.renew().await;
                Vec::new()
            }
        }
    }

    /// Calls a tool. Without an answer the server is restarted, because it may still be busy.
    ///
    /// # Errors
    /// If the server is gone and does not come back.
    pub(crate) async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<CallResult, String> {
        let called = self.server.call(tool, arguments).await;
        let (outcome, latency, redacted) =
            called.map_err(|error| format!("the server cannot be restarted: {error}"))?;
        let is_timeout = outcome == Outcome::Timeout;
        let is_alive = is_timeout && self.server.is_alive().await;
        if is_timeout {
            self.server.renew().await;
        }
        let text = reaction::text(&outcome);
        let shown = match self.bait.iter().any(|token| find_encoded(&text, token).is_some()) {
            // The rest of the environment is likely to be next to the bait, and it is the user's.
            true => "(not shown: it contains the server's environment)".to_owned(),
            false => printable(&redacted).into_owned(),
        };
        Ok(CallResult { outcome, latency, shown, is_alive })
    }

    /// The time limit of a call.
    pub(crate) fn call_timeout(&self) -> Duration {
        self.server.call_timeout()
    }

    /// Returns whether the server answers a ping within the time limit of a call.
    pub(crate) async fn is_alive(&self) -> bool {
        let Ok(session) = self.server.session().await else { return false };
        Server::answers_ping(&session, self.server.call_timeout()).await
    }

    /// The reason for which the server is lost, if a call broke it and it does not come back. A server
    /// at an address cannot be restarted: it is pinged, and then new sessions are tried a few times,
    /// because someone else may restart it.
    pub(crate) async fn gone_after(&self, outcome: &Outcome) -> Option<String> {
        let broke = match outcome {
            Outcome::Crash { .. } => true,
            Outcome::Transport { why } => reaction::http_status(why).is_none(),
            _ => false,
        };
        if self.is_restartable || !broke || self.is_alive().await {
            return None;
        }
        let why = match tokio::time::timeout(RECONNECT_LIMIT, self.reconnect()).await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        Some(format!("the server did not come back after this call: {}", self.redact(&why)))
    }

    /// Opens another session, with longer and longer pauses between attempts.
    async fn reconnect(&self) -> Result<(), StartError> {
        let mut last = None;
        for pause in PAUSES_MS {
            self.server.renew().await;
            tokio::time::sleep(Duration::from_millis(pause)).await;
            match self.server.session().await {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// Makes many calls at once, each with the time of a call, and then waits for the answer to a ping.
    ///
    /// # Errors
    /// If the server is gone and does not come back.
    pub(crate) async fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
        limit: Duration,
    ) -> Result<Flooded, String> {
        let session = self.server.session().await.map_err(|error| error.to_string())?;
        let mut under_way = tokio::task::JoinSet::new();
        for _ in 0..count {
            let (session, tool, arguments) =
                (Arc::clone(&session), tool.to_owned(), arguments.clone());
            under_way.spawn(async move { session.call(&tool, &arguments).await });
        }
        let (mut ended, mut has_cancelled) = (None, false);
        while let Some(done) = under_way.join_next().await {
            match done {
                Ok(Err(error)) if error.is_lost() => ended = Some(error),
                Ok(Err(CallError::Timeout { .. })) => has_cancelled = true,
                _ => {}
            }
        }
        // It is asked once and not given up, on the session of the calls: another one would be of another process,
        // and a server that works through them answers in their order.
        let asking =
            CallOptions { timeout: Some(limit.max(self.call_timeout())), ..CallOptions::default() };
        let answered = match ended {
            Some(error) => Err(error),
            None => session.request_with("ping", &Map::new(), asking).await,
        };
        drop(session);
        let flooded = match answered {
            Ok(_) | Err(CallError::Protocol { .. } | CallError::Http { .. }) => Flooded::Answered,
            Err(error) if error.is_lost() => {
                let how = self.redact(&error.to_string());
                let how = how.split("; its stderr").next().unwrap_or_default();
                let how = how.trim_start_matches("the server was lost: ").to_owned();
                Flooded::Ended { how, has_cancelled }
            }
            Err(_) => Flooded::Silent,
        };
        if flooded != Flooded::Answered {
            self.server.renew().await;
        }
        Ok(flooded)
    }

    /// Opens a session of its own under the name of another site.
    pub(crate) async fn rebind(&self) -> Rebound {
        let Target::Spec(spec) = self.server.target() else {
            return Rebound::NotApplicable(NO_ADDRESS);
        };
        let Some(url) = &spec.url else { return Rebound::NotApplicable(NO_ADDRESS) };
        if url.starts_with("https:") {
            let why = "the server proves its name with a certificate, which a page of another site \
                       cannot get around";
            return Rebound::NotApplicable(why);
        }
        let mut spec = spec.as_ref().clone();
        let is_name =
            |name: &str| ["host", "origin"].iter().any(|one| name.eq_ignore_ascii_case(one));
        spec.headers.retain(|name, _| !is_name(name));
        let place = match port(url) {
            Some(port) => format!("{REBOUND_HOST}:{port}"),
            None => REBOUND_HOST.to_owned(),
        };
        spec.headers.insert("Origin".to_owned(), format!("http://{place}"));
        spec.headers.insert("Host".to_owned(), place);
        let session = match Session::start(&spec, self.server.options()).await {
            Ok(session) => session,
            Err(StartError::Handshake { why }) => return Rebound::Refused(self.redact(&why)),
            Err(error) => return Rebound::NotExecuted(self.redact(&error.to_string())),
        };
        let saw = match session.tools().await {
            Ok(tools) => format!("the server opened a session and listed {} tools", tools.len()),
            Err(_) => "the server opened a session".to_owned(),
        };
        session.close().await;
        Rebound::Answered(saw)
    }

    /// Ends the server; the next call gets a fresh one.
    pub(crate) async fn renew(&self) {
        self.server.renew().await;
    }

    /// Ends the server in good order, and keeps what it reported apart from its answers.
    pub(crate) async fn finish(
        &self,
        skipped: &[Skipped],
        lost: Option<String>,
        is_late: bool,
    ) -> Facts {
        self.server.renew().await;
        // Looking for a server that is gone is not a restart.
        let came_back = self.is_restartable || lost.is_none();
        let mut warnings: Vec<String> = self.restarts().filter(|_| came_back).into_iter().collect();
        warnings.extend(self.server.protocol_log().warnings());
        warnings.extend(describe_skipped(skipped, self.is_throwaway()));
        let today = karat_core::provenance::today();
        let (isolation, skipped) = (self.isolation.clone(), skipped.len());
        Facts { isolation, warnings, lost, is_late, today, skipped }
    }

    /// Returns whether nothing that the server changes outlasts it.
    fn is_throwaway(&self) -> bool {
        self.shown_spec.isolate.as_ref().is_some_and(Isolation::is_throwaway)
    }

    fn restarts(&self) -> Option<String> {
        let what = match self.is_restartable {
            true => "the server had to be started again",
            false => "the session had to be opened again",
        };
        match self.server.restarts() {
            0 => None,
            1 => Some(format!("{what} once")),
            n => Some(format!("{what} {n} times")),
        }
    }
}

const NO_ADDRESS: &str = "the server has no address that a web page could ask";

/// The port in a URL.
fn port(url: &str) -> Option<u16> {
    let (_, rest) = url.split_once("://")?;
    let place = rest.split(['/', '?', '#']).next()?;
    place.rsplit_once(':')?.1.parse().ok()
}

/// The spec without secrets.
fn redacted(spec: &ServerSpec, session: &Session) -> ServerSpec {
    let redact = |text: &String| session.redactor().hide(text).into_owned();
    let values = |values: &BTreeMap<String, String>| {
        values.iter().map(|(name, value)| (name.clone(), redact(value))).collect()
    };
    ServerSpec {
        command: spec.command.as_ref().map(|words| words.iter().map(redact).collect()),
        url: spec.url.as_ref().map(redact),
        env: values(&spec.env),
        headers: values(&spec.headers),
        ..spec.clone()
    }
}

/// Divides the tools into those that are called and those that are skipped.
///
/// # Errors
/// If a wanted tool does not exist, or none is left.
pub(crate) fn choose(
    tools: &[Definition],
    wanted: &[String],
    allow_destructive: bool,
) -> Result<(Vec<Arc<Definition>>, Vec<Skipped>), EvalError> {
    check_known("tools", "tool", wanted, tools.iter().map(Definition::name))?;
    if tools.is_empty() {
        return Err(EvalError::NothingMeasured("the server offers no tools to call".to_owned()));
    }
    let (mut chosen, mut skipped) = (Vec::new(), Vec::new());
    for tool in tools {
        let name = tool.name().to_owned();
        if !wanted.is_empty() && !wanted.contains(&name) {
            continue;
        }
        match may_change(tool.raw()) {
            Some(why) if !allow_destructive => skipped.push(Skipped { tool: name, why }),
            _ => chosen.push(Arc::new(tool.clone())),
        }
    }
    if chosen.is_empty() {
        return Err(EvalError::NothingMeasured(format!(
            "no tool is left to call: {}; `allow_destructive` (--allow-destructive) calls them anyway",
            describe_skipped(&skipped, false).unwrap_or_default()
        )));
    }
    Ok((chosen, skipped))
}

/// The tools of a server that are not called without permission.
#[must_use]
pub fn uncalled<'a>(tools: impl IntoIterator<Item = &'a Value>) -> Vec<Skipped> {
    let skipped = |tool: &Value| {
        let name = tool.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
        may_change(tool).map(|why| Skipped { tool: name, why })
    };
    tools.into_iter().filter_map(skipped).collect()
}

/// The skipped tools in one line: the first with the reasons, the others by name.
#[must_use]
pub fn describe_skipped(skipped: &[Skipped], is_throwaway: bool) -> Option<String> {
    let count = match skipped.len() {
        0 => return None,
        1 => "1 tool was not called because it may change something".to_owned(),
        n => format!("{n} tools were not called because they may change something"),
    };
    let named = skipped.iter().enumerate().map(|(number, Skipped { tool, why })| {
        if number < NAMED { format!("{tool} ({why})") } else { tool.clone() }
    });
    let named: Vec<String> = named.collect();
    let harmless = match is_throwaway {
        true => "; its changes do not outlive this server, so --allow-destructive is safe here",
        false => "",
    };
    Some(format!("{count}: {}{harmless}", first_few(&named, MAX_NAMED)))
}

/// The end of a verdict: the tools that it is not about.
pub(crate) fn not_about(skipped: usize) -> String {
    match skipped {
        0 => String::new(),
        1 => "; 1 tool that may change something was not called".to_owned(),
        n => format!("; {n} tools that may change something were not called"),
    }
}
