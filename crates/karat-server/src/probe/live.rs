//! A live server under made-up calls: started again when it ends or hangs, its secrets kept out of what
//! is shown of its answers.

use std::time::Duration;

use karat_io::input::nearest;
use karat_io::text::printable;
use karat_mcp::{Definition, Options, ServerInfo, ServerSpec, StartError};
use serde::Serialize;
use serde_json::{Map, Value};

use super::caution;
use super::disguise::carried;
use crate::fuzz::judge;
use crate::observation::Outcome;
use crate::suite::matcher::Answer;
use crate::system::{Server, Target};

/// How much of an answer is kept to be shown.
const READ: usize = 4_000;

/// How long a server at an address has to come back, between one look and the next.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_millis(600),
    Duration::from_millis(1_000),
];
/// How long that may take in all.
const PATIENCE: Duration = Duration::from_secs(10);

/// Why nothing was measured, or could not be.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// The user must change something.
    #[error("{0}")]
    Wrong(String),
    /// The server did not start.
    #[error(transparent)]
    NotStarted(StartError),
    /// There was nothing to call, or nothing answered.
    #[error("{0}")]
    Nothing(String),
}

impl ProbeError {
    /// Whether nothing was measured although the input was right.
    #[must_use]
    pub fn is_not_measured(&self) -> bool {
        !matches!(self, ProbeError::Wrong(_))
    }
}

impl From<StartError> for ProbeError {
    fn from(error: StartError) -> ProbeError {
        match error {
            StartError::Spec { why } => ProbeError::Wrong(why),
            other => ProbeError::NotStarted(other),
        }
    }
}

/// A tool that was not called, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skipped {
    /// The tool.
    pub tool: String,
    /// Why.
    pub why: String,
}

/// What came of a call.
#[derive(Debug)]
pub struct Answered {
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub latency: Duration,
    /// The start of the answer for people: without secrets, printable.
    pub shown: String,
}

/// What came of many calls at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flood {
    /// How many were answered.
    pub answered: usize,
    /// Whether the server ended.
    pub lost: bool,
}

/// A server that is probed.
pub struct Live {
    server: Server,
    shown_spec: ServerSpec,
    info: ServerInfo,
    restartable: bool,
    bait: Vec<String>,
}

impl Live {
    /// Starts the server, with bait in its environment where it is a program.
    ///
    /// # Errors
    /// When there is no session.
    pub async fn start(
        spec: &ServerSpec,
        options: &Options,
        bait: &[(&str, &str)],
    ) -> Result<Live, ProbeError> {
        let mut baited = spec.clone();
        let mut options = options.clone();
        if spec.command.is_some() {
            for (name, value) in bait {
                baited.env.insert((*name).to_owned(), (*value).to_owned());
            }
        }
        options.canaries.extend(bait.iter().map(|(_, value)| (*value).to_owned()));
        let server = Server::start(Target::Spec(Box::new(baited)), options, Vec::new()).await?;
        let session = server.session().await?;
        let info = session.server().clone();
        let shown_spec = hidden(spec, &|text| session.redactor().hide(text).into_owned());
        let restartable = spec.command.is_some();
        // Whoever holds a session keeps its server alive, so it is let go at once.
        drop(session);
        let bait = bait.iter().map(|(_, value)| (*value).to_owned()).collect();
        Ok(Live { server, shown_spec, info, restartable, bait })
    }

    /// What the server says about itself.
    pub fn info(&self) -> &ServerInfo {
        &self.info
    }

    /// The spec without its secrets, to be shown.
    pub fn shown_spec(&self) -> &ServerSpec {
        &self.shown_spec
    }

    /// Whether it is a program that we started.
    pub fn is_ours(&self) -> bool {
        self.restartable
    }

    /// Text without the secrets of the spec.
    pub fn hide(&self, text: &str) -> String {
        self.server.redactor().hide(text).into_owned()
    }

    /// Every tool.
    ///
    /// # Errors
    /// When they cannot be listed.
    pub async fn tools(&self) -> Result<Vec<Definition>, ProbeError> {
        let session = self.server.session().await?;
        let tools = session.tools().await;
        tools.map_err(|error| {
            ProbeError::Nothing(format!("the tools of the server cannot be listed: {error}"))
        })
    }

    /// Calls a tool. After no answer the server is given up, for it may be at it still.
    ///
    /// # Errors
    /// When the server is gone and does not come back.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Result<Answered, String> {
        let called = self.server.call(tool, arguments).await;
        let (outcome, latency, redacted) =
            called.map_err(|error| format!("the server does not start again: {error}"))?;
        if outcome == Outcome::Timeout {
            self.server.renew().await;
        }
        let text = judge::text(&outcome);
        let shown = match self.bait.iter().any(|token| carried(&text, token).is_some()) {
            // With the bait the rest of the environment is likely to be there, and it is the user's.
            true => "(not shown: the environment of the server is in it)".to_owned(),
            false => printable(&redacted).into_owned(),
        };
        Ok(Answered { outcome, latency, shown })
    }

    /// Whether the server answers a ping in the time of a call.
    pub async fn is_alive(&self) -> bool {
        let Ok(session) = self.server.session().await else { return false };
        Server::answers_ping(&session, self.server.call_timeout()).await
    }

    /// Why the server is lost, where a call to it broke and it does not come back. A server that was
    /// reached at an address cannot be started again: it is asked for a sign of life, and if the session
    /// is dead for another one, a few times, for somebody else may start it.
    pub async fn gone_after(&self, outcome: &Outcome) -> Option<String> {
        let broke = match outcome {
            Outcome::Crash { .. } => true,
            Outcome::Transport { why } => !why.starts_with("HTTP status "),
            _ => false,
        };
        if self.restartable || !broke || self.is_alive().await {
            return None;
        }
        let why = match tokio::time::timeout(PATIENCE, self.reopened()).await {
            Ok(Ok(())) => return None,
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it does not answer".to_owned(),
        };
        Some(format!("the server is gone since this call: {}", self.hide(&why)))
    }

    /// Opens another session, and waits a little more before each time.
    async fn reopened(&self) -> Result<(), StartError> {
        let mut last = None;
        for pause in PAUSES {
            self.server.renew().await;
            tokio::time::sleep(pause).await;
            match self.server.session().await {
                Ok(_) => return Ok(()),
                Err(error) => last = Some(error),
            }
        }
        last.map_or(Ok(()), Err)
    }

    /// Makes many calls at once.
    ///
    /// # Errors
    /// When the server is gone and does not come back.
    pub async fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
    ) -> Result<Flood, String> {
        let session = self.server.session().await.map_err(|error| error.to_string())?;
        let mut under_way = tokio::task::JoinSet::new();
        for _ in 0..count {
            let (session, tool, arguments) =
                (std::sync::Arc::clone(&session), tool.to_owned(), arguments.clone());
            under_way.spawn(async move { session.call(&tool, &arguments).await });
        }
        let mut flood = Flood { answered: 0, lost: false };
        while let Some(done) = under_way.join_next().await {
            match done {
                Ok(Ok(_) | Err(karat_mcp::CallError::Protocol { .. })) => flood.answered += 1,
                Ok(Err(error)) => flood.lost |= error.is_lost(),
                Err(_) => {}
            }
        }
        drop(session);
        if flood.lost {
            self.server.renew().await;
        }
        Ok(flood)
    }

    /// Gives the server up: the next call gets a fresh one.
    pub async fn renew(&self) {
        self.server.renew().await;
    }

    /// How often it had to be started again.
    pub fn restarts(&self) -> u64 {
        self.server.restarts()
    }

    /// What the server did beside answering, in words.
    pub fn remarks(&self) -> Vec<String> {
        self.server.protocol_log().warnings()
    }

    /// How often it had to be started again in words, if it had to.
    pub fn restarts_in_words(&self) -> Option<String> {
        match self.restarts() {
            0 => None,
            1 if !self.restartable => Some("the session had to be opened again once".to_owned()),
            n if !self.restartable => Some(format!("the session had to be opened again {n} times")),
            1 => Some("the server had to be started again once".to_owned()),
            n => Some(format!("the server had to be started again {n} times")),
        }
    }
}

/// An answer in words, before secrets are taken out.
pub(crate) fn words(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Result { result } => {
            let text: String = Answer::new(result).text().chars().take(READ).collect();
            let kind = if outcome.is_tool_error() { "error: " } else { "" };
            if text.is_empty() {
                let whole: String = result.to_string().chars().take(READ).collect();
                return format!("{kind}{whole}");
            }
            format!("{kind}{text}")
        }
        Outcome::ProtocolError { data: Some(data), .. } => {
            let data: String = data.to_string().chars().take(READ).collect();
            format!("{}: {data}", outcome.words())
        }
        other => other.words(),
    }
}

/// The spec with secrets taken out of all its words.
fn hidden(spec: &ServerSpec, hide: &dyn Fn(&str) -> String) -> ServerSpec {
    let values = |values: &std::collections::BTreeMap<String, String>| {
        values.iter().map(|(name, value)| (name.clone(), hide(value))).collect()
    };
    ServerSpec {
        command: spec.command.as_ref().map(|words| words.iter().map(|word| hide(word)).collect()),
        url: spec.url.as_deref().map(hide),
        env: values(&spec.env),
        headers: values(&spec.headers),
        ..spec.clone()
    }
}

/// The tools that are called, and those that are not.
///
/// # Errors
/// When a tool is named that is not there, or none is left.
pub fn choose<'a>(
    tools: &'a [Definition],
    wanted: &[String],
    allow_destructive: bool,
) -> Result<(Vec<&'a Definition>, Vec<Skipped>), ProbeError> {
    for name in wanted {
        if !tools.iter().any(|tool| tool.name() == name) {
            let hint = nearest(name, tools.iter().map(Definition::name))
                .map(|near| format!(" (did you mean {near:?}?)"))
                .unwrap_or_default();
            return Err(ProbeError::Wrong(format!("--tool: there is no tool {name:?}{hint}")));
        }
    }
    if tools.is_empty() {
        let none = "the server offers no tools, so there is nothing to call";
        return Err(ProbeError::Nothing(none.to_owned()));
    }
    let mut chosen = Vec::new();
    let mut skipped = Vec::new();
    let asked =
        |tool: &&Definition| wanted.is_empty() || wanted.iter().any(|name| name == tool.name());
    for tool in tools.iter().filter(asked) {
        match caution::destructive(tool.raw()) {
            Some(why) if !allow_destructive => {
                skipped.push(Skipped { tool: tool.name().to_owned(), why });
            }
            _ => chosen.push(tool),
        }
    }
    if chosen.is_empty() {
        return Err(ProbeError::Nothing(format!(
            "no tool is left: {}; --allow-destructive calls them all the same",
            skipped_in_words(&skipped).unwrap_or_default()
        )));
    }
    Ok((chosen, skipped))
}

/// How many skipped tools are named with their reasons.
const NAMED: usize = 8;

/// The skipped tools in one line.
pub(crate) fn skipped_in_words(skipped: &[Skipped]) -> Option<String> {
    if skipped.is_empty() {
        return None;
    }
    let named: Vec<String> = skipped
        .iter()
        .take(NAMED)
        .map(|skipped| format!("{} ({})", skipped.tool, skipped.why))
        .collect();
    let more = if skipped.len() > NAMED { ", …" } else { "" };
    let count = match skipped.len() {
        1 => "1 tool was not called, for it may destroy something".to_owned(),
        n => format!("{n} tools were not called, for they may destroy something"),
    };
    Some(format!("{count}: {}{more}", named.join(", ")))
}
