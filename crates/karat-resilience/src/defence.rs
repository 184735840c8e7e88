//! The defence between an agent and a world: a proxy, a guard, or none.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use karat_io::exchange::{Exchange, Reply};
use karat_io::process::Program;
use karat_io::redact::Redactor;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// The settings of a defence; one of them at most.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DefenceConfig {
    /// The name in reports.
    pub name: Option<String>,
    /// The command of a proxy. In its words, `{server}` becomes the command of the world's server,
    /// `{url}` its address, `{config}` and `{config-url}` a file that names it as most clients do, and
    /// `{port}` a free port.
    pub proxy: Vec<String>,
    /// The address at which the proxy listens, such as `http://127.0.0.1:{port}/mcp`; stdio without it.
    pub url: Option<String>,
    /// Variables of the proxy or guard.
    pub env: BTreeMap<String, String>,
    /// The command of a guard: lines `{"id", "kind": "call" | "text", "text"}` in, `{"id", "block": true}` out.
    pub guard: Vec<String>,
}

impl DefenceConfig {
    /// The name in reports.
    pub fn label(&self) -> String {
        let program = self.proxy.first().or(self.guard.first());
        let program = program.map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
        self.name.clone().or(program).unwrap_or_else(|| "none".to_owned())
    }

    /// Finds contradictions.
    ///
    /// # Errors
    /// If there is one.
    pub(crate) fn validate(&self) -> Result<(), String> {
        if !self.proxy.is_empty() && !self.guard.is_empty() {
            return Err("give `proxy` or `guard`, not both".to_owned());
        }
        if self.url.is_some() && self.proxy.is_empty() {
            return Err("`url` needs the command of the proxy in `proxy`".to_owned());
        }
        // Without a program nothing would be between agent and world, under the name of a defence.
        let described = self.name.is_some() || !self.env.is_empty();
        if described && self.proxy.is_empty() && self.guard.is_empty() {
            return Err("the defence has no program: give `proxy` or `guard`".to_owned());
        }
        let places = ["{server}", "{url}", "{config}", "{config-url}"];
        let named = |text: &String| places.iter().any(|place| text.contains(place));
        if !self.proxy.is_empty() && !self.proxy.iter().chain(self.env.values()).any(named) {
            return Err(format!(
                "the proxy must be given the world's server: use one of {}",
                places.join(", ")
            ));
        }
        Ok(())
    }
}

/// This many runs in a row in which the guard answered nothing mean that it is lost.
const MAX_SILENT: u32 = 3;

/// A program that decides about calls and texts.
pub struct Guard {
    exchange: Exchange<bool>,
    asked: AtomicU64,
    /// The time for an answer, and for the first one, before which a guard may have to load a model.
    timeout: Duration,
    start_timeout: Duration,
    has_answered: AtomicBool,
    /// The number of runs since the last answer in which the guard answered nothing.
    silent: AtomicU32,
}

impl Guard {
    /// Starts a guard that has `timeout` for each answer, and `start_timeout` for the first one. No message
    /// shows what `redactor` hides.
    ///
    /// # Errors
    /// If it does not start.
    pub(crate) fn start(
        program: &Program,
        redactor: Redactor,
        timeout: Duration,
        start_timeout: Duration,
    ) -> Result<Guard, String> {
        let exchange = Exchange::start(program, redactor, read_verdict)?;
        Ok(Guard {
            exchange,
            asked: AtomicU64::new(0),
            timeout,
            start_timeout: start_timeout.max(timeout),
            has_answered: AtomicBool::new(false),
            silent: AtomicU32::new(0),
        })
    }

    /// Returns whether the guard has answered nothing for so long that it is no longer asked.
    pub(crate) fn is_lost(&self) -> bool {
        self.silent.load(Ordering::Relaxed) >= MAX_SILENT
    }

    async fn ask(&self, kind: &str, text: &str) -> Result<bool, String> {
        let id = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let question = json!({"id": id, "kind": kind, "text": text});
        let limit = match self.has_answered.load(Ordering::Relaxed) {
            true => self.timeout,
            false => self.start_timeout,
        };
        match tokio::time::timeout(limit, self.exchange.ask(&id, &question)).await {
            Ok(answer) => {
                self.has_answered.store(true, Ordering::Relaxed);
                self.silent.store(0, Ordering::Relaxed);
                answer.map_err(|failure| failure.message)
            }
            Err(_) => {
                let seconds = limit.as_secs_f64();
                Err(format!("the guard did not answer within {seconds} s"))
            }
        }
    }
}

/// A guard during one run. Runs share the program, but not its failures: a run in which the guard failed is
/// an error, and another one at the same time is not.
pub(crate) struct Watch {
    guard: Arc<Guard>,
    answered: AtomicBool,
    failed: Mutex<Option<String>>,
}

impl Watch {
    pub(crate) fn new(guard: Arc<Guard>) -> Watch {
        Watch { guard, answered: AtomicBool::new(false), failed: Mutex::default() }
    }

    /// Asks about a call or a text. What the guard does not answer is not passed on, and neither is
    /// anything after it: the run is an error.
    pub(crate) async fn blocks(&self, kind: &str, text: &str) -> bool {
        if self.failure().is_some() {
            return true;
        }
        match self.guard.ask(kind, text).await {
            Ok(block) => {
                self.answered.store(true, Ordering::Relaxed);
                block
            }
            Err(failure) => {
                if !self.answered.load(Ordering::Relaxed) {
                    self.guard.silent.fetch_add(1, Ordering::Relaxed);
                }
                *self.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(failure);
                true
            }
        }
    }

    /// The failure of the guard during the run.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

fn read_verdict(line: &str) -> Result<(String, Reply<bool>), String> {
    #[derive(Deserialize)]
    struct Verdict {
        id: String,
        block: bool,
    }
    let verdict: Verdict = serde_json::from_str(line)
        .map_err(|error| format!("the guard's line is not {{\"id\", \"block\"}}: {error}"))?;
    Ok((verdict.id, Ok(verdict.block)))
}
