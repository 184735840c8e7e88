//! Readiness, proven through the path that is measured.
//!
//! A live search may still be indexing when it first answers, and a score taken then says nothing.
//! So before the first query every tool of the corpus is asked for by its exact name. A tool is there
//! as soon as any answer lists it, at whatever rank: this proves that it is indexed, not that it is
//! ranked well. Those that no answer lists are asked for in other words too (server and name,
//! description), again and again until the time is up. What is missing then is listed, and nothing is
//! measured.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use karat_core::run::System;
use karat_io::text::{clip, printable};
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dataset::{Dataset, Tool};
use crate::system::{Question, Ranking, Search, not_started};
use karat_core::error::EvalError;

/// The number of missing tools that are named.
const NAMED: usize = 20;
/// The part of a description is asked for.
const DESCRIPTION: usize = 200;
/// The time to wait between two rounds: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// `ready = { … }` of a project entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyConfig {
    /// Set to probe; without it, a search over HTTP or MCP is probed and others are not.
    #[serde(default)]
    pub probe: Option<bool>,
    /// The time to wait until all tools are there, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The number of results a probe asks for; the entry's own limit unless said otherwise.
    #[serde(default)]
    pub limit: Option<usize>,
    /// The number of probes that are under way at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
}

fn default_timeout_ms() -> u64 {
    60_000
}
fn default_concurrency() -> usize {
    4
}

impl Default for ReadyConfig {
    fn default() -> ReadyConfig {
        ReadyConfig {
            probe: None,
            timeout_ms: default_timeout_ms(),
            limit: None,
            concurrency: default_concurrency(),
        }
    }
}

/// The ways to ask for a tool, the plainest first.
const WORDINGS: [fn(&Tool) -> String; 4] = [
    |tool| tool.tool.clone(),
    |tool| tool.tool_id.clone(),
    |tool| format!("{} {}", tool.server, tool.tool),
    |tool| clip(&tool.description, DESCRIPTION).into_owned(),
];

/// Waits until every tool of the corpus has been seen in an answer.
///
/// # Errors
/// [`EvalError::NotStarted`] if the time is up or the system is gone.
pub async fn wait(
    search: &Arc<Search>,
    dataset: &Dataset,
    config: &ReadyConfig,
    limit: usize,
    timeout: Duration,
) -> Result<(), EvalError> {
    let deadline = Instant::now() + Duration::from_millis(config.timeout_ms);
    let mut probing = Probing {
        search,
        config,
        limit: config.limit.unwrap_or(limit),
        timeout,
        missing: dataset.tools.iter().map(|tool| tool.tool_id.as_str()).collect(),
        dataset,
        stranger: None,
        failure: None,
    };
    let mut pause = PAUSE.0;
    // Every tool by its name, even if another's answer has listed it: that is what is promised.
    let mut wanted: Vec<&Tool> = dataset.tools.iter().collect();
    loop {
        for (round, wording) in WORDINGS.iter().enumerate() {
            if round > 0 {
                wanted.retain(|tool| probing.missing.contains(tool.tool_id.as_str()));
            }
            let asked = probing.ask(&wanted, *wording);
            match tokio::time::timeout_at(deadline, asked).await {
                Ok(asked) => asked?,
                Err(_) if probing.missing.is_empty() => return Ok(()),
                Err(_) => return Err(probing.not_ready()),
            }
        }
        wanted.retain(|tool| probing.missing.contains(tool.tool_id.as_str()));
        if wanted.is_empty() {
            return Ok(());
        }
        if Instant::now() + pause >= deadline {
            return Err(probing.not_ready());
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(PAUSE.1);
    }
}

struct Probing<'a> {
    search: &'a Arc<Search>,
    config: &'a ReadyConfig,
    limit: usize,
    timeout: Duration,
    missing: BTreeSet<&'a str>,
    dataset: &'a Dataset,
    /// An id that was answered and is not in the corpus: perhaps the id rule is wrong.
    stranger: Option<String>,
    failure: Option<Failure>,
}

impl<'a> Probing<'a> {
    async fn ask(
        &mut self,
        wanted: &[&'a Tool],
        wording: fn(&Tool) -> String,
    ) -> Result<(), EvalError> {
        let mut waiting = wanted.iter();
        let mut under_way = JoinSet::new();
        loop {
            while under_way.len() < self.config.concurrency.max(1) {
                let Some(tool) = waiting.next() else { break };
                let query = wording(tool);
                if query.trim().is_empty() {
                    continue;
                }
                let id = format!("ready:{}", tool.tool_id);
                let question = Question { id, query, limit: self.limit };
                let (search, timeout) = (Arc::clone(self.search), self.timeout);
                under_way.spawn(async move { probe(&search, &question, timeout).await });
            }
            let Some(answer) = under_way.join_next().await else { return Ok(()) };
            match answer {
                Ok(Ok(ranking)) => self.note(&ranking),
                Ok(Err(failure)) if failure.lost => {
                    return Err(not_started(failure.message));
                }
                Ok(Err(failure)) => self.failure = Some(failure),
                Err(error) => return Err(not_started(error.to_string())),
            }
        }
    }

    fn note(&mut self, ranking: &Ranking) {
        for ranked in &ranking.ranked {
            let seen = self.missing.remove(ranked.tool_id.as_str());
            if !seen && self.stranger.is_none() && self.dataset.tool(&ranked.tool_id).is_none() {
                self.stranger = Some(ranked.tool_id.clone());
            }
        }
    }

    fn not_ready(&self) -> EvalError {
        let of = self.dataset.tools.len();
        let named: Vec<&str> = self.missing.iter().take(NAMED).copied().collect();
        let more = if self.missing.len() > NAMED { ", …" } else { "" };
        let mut reason = format!("missing: {}{more}", named.join(", "));
        if self.missing.len() == of
            && let Some(stranger) = &self.stranger
        {
            let stranger = clip(&printable(stranger), 100).into_owned();
            reason.push_str(&format!(
                "; it answers with ids such as {stranger:?}, which the corpus does not have: is the \
                 id rule right?"
            ));
        }
        if let Some(failure) = &self.failure {
            let (class, message) = (failure.class.name(), &failure.message);
            reason.push_str(&format!("; the last failed probe: {class}: {message}"));
        }
        let (missing, waited_ms) = (self.missing.len(), self.config.timeout_ms);
        EvalError::NotStarted(format!(
            "the search is not ready: after {waited_ms} ms it lists {} of {of} tools, {missing} are \
             not found by name; {reason}",
            of - missing
        ))
    }
}

async fn probe(
    search: &Search,
    question: &Question,
    timeout: Duration,
) -> Result<Ranking, Failure> {
    match tokio::time::timeout(timeout, search.ask(0, question)).await {
        Ok(answer) => answer,
        Err(_) => {
            let message = format!("no answer within {timeout:?}");
            Err(Failure::new(FailureClass::Timeout, message))
        }
    }
}
