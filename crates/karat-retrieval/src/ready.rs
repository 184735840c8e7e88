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
use karat_io::text::{clip, first_few, printable};
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::dataset::{Dataset, Tool};
use crate::ranking::{Question, Ranking};
use crate::system::{Search, not_started};
use karat_core::error::EvalError;

/// The number of missing tools that are named.
const NAMED: usize = 20;
/// The part of a description is asked for.
const DESCRIPTION: usize = 200;
/// The time to wait between two rounds: at first, and at most.
const PAUSE: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));
/// The time within which something that is being started may refuse connections.
const GRACE: Duration = Duration::from_secs(2);

/// `ready = { … }` of a project entry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReadyConfig {
    /// Set to probe; without it, a search over HTTP or MCP is probed and others are not.
    pub probe: Option<bool>,
    /// The time to wait until all tools are there, in milliseconds.
    #[serde(default = "default_timeout_ms")]
    pub timeout_ms: u64,
    /// The number of results a probe asks for; by default, as many as the entry.
    pub results: Option<usize>,
    /// The number of probes that are under way at once.
    #[serde(default = "default_concurrency")]
    pub concurrency: usize,
    /// The outcome if tools are missing when the time is up.
    #[serde(default)]
    pub missing: Missing,
}

/// The outcome of a search that does not list every tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Missing {
    /// Nothing is measured: the search is not ready.
    #[default]
    Wait,
    /// It is measured, and the gate fails naming the tools.
    Fail,
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
            results: None,
            concurrency: default_concurrency(),
            missing: Missing::default(),
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

/// Waits until every tool of the corpus has been seen in an answer. Returns those that were not, if
/// they are to fail the gate.
///
/// # Errors
/// [`EvalError::NotStarted`] if the time is up or the system is gone.
pub(crate) async fn wait(
    search: &Arc<Search>,
    dataset: &Dataset,
    config: &ReadyConfig,
    limit: usize,
    timeout: Duration,
) -> Result<Vec<String>, EvalError> {
    let started = Instant::now();
    let deadline = started + Duration::from_millis(config.timeout_ms);
    let mut probing = Probing {
        search,
        config,
        limit: config.results.unwrap_or(limit),
        timeout,
        missing: dataset.tools.iter().map(|tool| tool.tool_id.as_str()).collect(),
        dataset,
        started,
        answers: 0,
        empty: 0,
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
                Err(_) => return probing.conclude(),
            }
        }
        wanted.retain(|tool| probing.missing.contains(tool.tool_id.as_str()));
        if wanted.is_empty() || Instant::now() + pause >= deadline {
            return probing.conclude();
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
    started: Instant,
    /// The number of answers.
    answers: u64,
    /// The number of answers without a result.
    empty: u64,
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
                Ok(Err(failure)) if self.is_hopeless(&failure) => {
                    return Err(not_started(failure.message));
                }
                Ok(Err(failure)) => self.failure = Some(failure),
                Err(error) => return Err(not_started(error.to_string())),
            }
        }
    }

    /// Returns whether waiting cannot help. Something that is being started may not listen yet.
    fn is_hopeless(&self, failure: &Failure) -> bool {
        let starting = failure.class == FailureClass::Transport && self.started.elapsed() < GRACE;
        failure.permanent && self.answers == 0 && !starting
    }

    fn note(&mut self, ranking: &Ranking) {
        self.answers += 1;
        self.empty += u64::from(ranking.ranked.is_empty());
        for ranked in &ranking.ranked {
            let seen = self.missing.remove(ranked.tool_id.as_str());
            if !seen && self.stranger.is_none() && self.dataset.tool(&ranked.tool_id).is_none() {
                self.stranger = Some(ranked.tool_id.clone());
            }
        }
    }

    /// The end: everything is there, or what is missing is an error or a finding.
    fn conclude(&self) -> Result<Vec<String>, EvalError> {
        let found = self.missing.len() < self.dataset.tools.len();
        match self.config.missing {
            _ if self.missing.is_empty() => Ok(Vec::new()),
            // A search that lists nothing at all is not one that lost a tool.
            Missing::Fail if found => Ok(self.missing.iter().map(|id| (*id).to_owned()).collect()),
            _ => Err(self.not_ready()),
        }
    }

    /// The likely cause first, then the tools.
    fn not_ready(&self) -> EvalError {
        let of = self.dataset.tools.len();
        let missing = self.missing.len();
        let mut causes = Vec::new();
        if let Some(failure) = &self.failure {
            let (class, message) = (failure.class.name(), &failure.message);
            causes.push(format!("the last failed probe: {class}: {message}"));
        }
        if self.answers > 0 && self.empty == self.answers {
            causes.push(format!("all {} answers are empty", self.answers));
        }
        if let Some(stranger) = &self.stranger {
            let stranger = clip(&printable(stranger), 100).into_owned();
            causes.push(format!(
                "it answers with ids such as {stranger:?}, which the corpus does not have: is the id \
                 rule right?"
            ));
        }
        let named: Vec<&str> = self.missing.iter().copied().collect();
        causes.push(format!(
            "after {} ms it lists {} of {of} tools of the corpus, {missing} are not found by name; load the \
             corpus into the search, or give the corpus that it has; missing: {}",
            self.config.timeout_ms,
            of - missing,
            first_few(&named, NAMED)
        ));
        EvalError::NotStarted(format!("the search is not ready: {}", causes.join("; ")))
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
