//! Simulated servers that the attacks are made on too: one that obeys every attack and one that refuses
//! every call. The judgement must tell them apart on the same tools.

use std::sync::Arc;
use std::time::Duration;

use karat_core::aggregate;
use karat_core::observed::AttackStatus;
use karat_core::report::{Control, Item};
use karat_mcp::Definition;
use serde_json::{Map, Value, json};

use super::attacks::KnownAttack;
use super::attempts::{Access, Attempt, Proof};
use super::canary_site::CanarySite;
use super::config::Config;
use super::items::{HELD, item};
use super::memory::Memory;
use super::result::AttackResult;
use super::runner::AttackRunner;
use super::target::AttackTarget;
use crate::observation::Outcome;
use crate::probe::live::{CallResult, Flooded, Rebound};
use crate::probe::stop::Deadline;

/// Attacks both simulated servers with the attacks that were made on the server.
pub(super) async fn run(
    made: &[(Option<Arc<Definition>>, &'static KnownAttack)],
    site: &CanarySite,
    access: Access,
) -> Vec<Control> {
    let mut controls = Vec::new();
    for (name, expected, obeys) in [
        ("obeys-all", "a server that obeys every attack is broken by each", true),
        ("refuses-all", "a server that refuses every call is broken by none", false),
    ] {
        let results = attack(&SimulatedServer { site, obeys }, made, access).await;
        let is_right = |result: &AttackResult| match result.status {
            AttackStatus::Broken | AttackStatus::NotJudged => obeys,
            AttackStatus::Held => !obeys,
            AttackStatus::NotApplicable => true,
            AttackStatus::NotExecuted => false,
        };
        let items: Vec<Item> = results.iter().filter_map(item).collect();
        let items: Vec<&Item> = items.iter().collect();
        controls.push(Control {
            name: name.to_owned(),
            expected: expected.to_owned(),
            metrics: vec![aggregate::measure(&HELD, &items, 1, 0)],
            ok: results.iter().all(is_right),
        });
    }
    controls
}

async fn attack(
    server: &SimulatedServer<'_>,
    made: &[(Option<Arc<Definition>>, &'static KnownAttack)],
    access: Access,
) -> Vec<AttackResult> {
    let (config, mut memory) = (Config::default(), Memory::default());
    let mut runner = AttackRunner {
        target: server,
        site: server.site,
        config: &config,
        known: None,
        access,
        shown: None,
        deadline: Deadline::after(None),
        memory: &mut memory,
    };
    let mut results = Vec::new();
    for (tool, attack) in made {
        // A simulated server never waits: without this nothing else would run, signals included.
        tokio::task::yield_now().await;
        match tool {
            Some(tool) => results.extend(runner.attack(tool, attack).await),
            None => results.push(runner.attack_server(attack).await),
        }
    }
    results
}

struct SimulatedServer<'a> {
    site: &'a CanarySite,
    obeys: bool,
}

impl AttackTarget for SimulatedServer<'_> {
    async fn call(&self, _: &str, attempt: &Attempt) -> Result<CallResult, String> {
        let text = |text: &str| Outcome::Result {
            result: json!({"content": [{"type": "text", "text": text}]}),
        };
        let answer = match attempt.proofs.first().filter(|_| self.obeys) {
            None => None,
            Some(Proof::Mark(path)) => {
                let _ = std::fs::write(path, "");
                None
            }
            Some(Proof::Called(page)) => {
                self.site.listener.record(&page.path());
                None
            }
            Some(Proof::Visited(_)) => {
                self.site.listener.record("/");
                None
            }
            Some(Proof::Changed) => {
                let _ = std::fs::write(self.site.outside_file(), "");
                None
            }
            Some(Proof::Product) => Some(text(&self.site.product())),
            Some(Proof::Token(_, token)) => Some(text(token)),
            Some(Proof::Overrun | Proof::Ended) => Some(Outcome::Timeout),
        };
        let refusal = || Outcome::Result { result: json!({"content": [], "isError": true}) };
        let outcome = answer.unwrap_or_else(refusal);
        let (latency, shown) = (Duration::ZERO, String::new());
        Ok(CallResult { outcome, latency, shown, is_alive: false })
    }

    async fn flood(
        &self,
        _: &str,
        _: &Map<String, Value>,
        _: usize,
        _: Duration,
    ) -> Result<(Flooded, String), String> {
        let state = if self.obeys { Flooded::Silent } else { Flooded::Answered };
        Ok((state, String::new()))
    }

    async fn rebind(&self) -> Rebound {
        match self.obeys {
            true => Rebound::Answered("a session was opened".to_owned()),
            false => Rebound::Refused("HTTP status 403".to_owned()),
        }
    }
}
