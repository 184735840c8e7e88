//! The defence between an agent and a world: a proxy, a guard, or none.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use karat_io::exchange::{Exchange, Reply};
use karat_io::process::Program;
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
    pub fn validate(&self) -> Result<(), String> {
        if !self.proxy.is_empty() && !self.guard.is_empty() {
            return Err("give `proxy` or `guard`, not both".to_owned());
        }
        if self.url.is_some() && self.proxy.is_empty() {
            return Err("`url` needs the command of the proxy in `proxy`".to_owned());
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

/// A program that decides about calls and texts.
pub struct Guard {
    exchange: Exchange<bool>,
    asked: AtomicU64,
    /// Set once the guard failed: what it cannot judge is not passed on.
    failed: std::sync::Mutex<Option<String>>,
}

impl Guard {
    /// Starts a guard.
    ///
    /// # Errors
    /// If it does not start.
    pub fn start(config: &DefenceConfig, folder: &Path) -> Result<Guard, String> {
        let program = Program {
            command: config.guard.clone(),
            env: config.env.clone(),
            folder: Some(folder.to_owned()),
            ..Program::default()
        };
        let exchange = Exchange::start(&program, read_verdict)?;
        Ok(Guard { exchange, asked: AtomicU64::new(0), failed: std::sync::Mutex::default() })
    }

    /// Asks about a call or a text. What a guard does not answer is blocked, and the run is an error.
    pub(crate) async fn blocks(&self, kind: &str, text: &str) -> bool {
        let id = self.asked.fetch_add(1, Ordering::Relaxed).to_string();
        let question = json!({"id": id, "kind": kind, "text": text});
        let answer =
            tokio::time::timeout(Duration::from_secs(30), self.exchange.ask(&id, &question)).await;
        let failure = match answer {
            Ok(Ok(block)) => return block,
            Ok(Err(failure)) => failure.message,
            Err(_) => "the guard did not answer within 30 s".to_owned(),
        };
        *self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(failure);
        true
    }

    /// The failure of the guard since it was last asked for.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failed.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()
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
