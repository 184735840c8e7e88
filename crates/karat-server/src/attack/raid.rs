//! The attempts, one after the other: what is sent, what came of it, and what proves that it worked.
//!
//! Nothing is judged by the wording of an answer. When the server is lost, what is left is listed as not
//! executed; whether the run counts is decided elsewhere.

use std::collections::BTreeMap;
use std::time::Instant;

use karat_core::run::{Event, Listener};
use karat_io::text::clip;
use karat_mcp::Definition;
use serde::Serialize;
use serde_json::{Map, Value};

use super::Status;
use super::cases::{Attack, Attempt, Plan, Proof, Scene, Way};
use super::ground::Ground;
use super::parameters::Parameter;
use crate::fuzz::generate::plainest;
use crate::fuzz::judge;
use crate::observation::Outcome;
use crate::probe::disguise::carried;
use crate::probe::live::{Answered, Live};
use crate::probe::replay;

/// How much of what was sent and came back stands in a report.
const SHOWN: usize = 400;

#[derive(Clone, Copy)]
pub(super) struct Reach {
    pub(super) is_local: bool,
    pub(super) has_loopback: bool,
    pub(super) is_ours: bool,
}

/// Whoever is attacked: the live server, or one that is played.
pub(super) trait Ask {
    async fn call(&self, tool: &str, attempt: &Attempt) -> Result<Answered, String>;
    /// Whether the server survived so many calls at once, and what was seen.
    async fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
    ) -> Result<(bool, String), String>;
}

impl Ask for Live {
    /// A connection that failed says by itself nothing about the server: whether it went down with it
    /// is asked.
    async fn call(&self, tool: &str, attempt: &Attempt) -> Result<Answered, String> {
        let mut answered = Live::call(self, tool, &attempt.arguments).await?;
        if let Outcome::Transport { why } = &answered.outcome
            && !why.starts_with("HTTP status")
            && !self.is_alive().await
        {
            answered.outcome = Outcome::Crash { why: why.clone() };
            self.renew().await;
        }
        Ok(answered)
    }

    async fn flood(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
        count: usize,
    ) -> Result<(bool, String), String> {
        // What an earlier call did to the server is not the flood's doing.
        if !self.is_alive().await {
            self.renew().await;
        }
        let flood = Live::flood(self, tool, arguments, count).await?;
        let alive = !flood.lost && self.is_alive().await;
        // How many were answered may differ between runs, whether it lives may not.
        let saw = match (flood.lost, alive) {
            (true, _) => "the server ended under the calls",
            (false, false) => "the server did not answer afterwards",
            (false, true) => "the server answered afterwards",
        };
        if !alive {
            self.renew().await;
        }
        Ok((alive, saw.to_owned()))
    }
}

/// What came of one attack through one parameter.
pub(super) struct Tried {
    pub(super) attack: &'static Attack,
    pub(super) tool: String,
    pub(super) parameter: Option<Parameter>,
    pub(super) status: Status,
    pub(super) attempts: u64,
    /// The attempt that tells most: the one that broke it, or the last.
    pub(super) evidence: Option<Evidence>,
    pub(super) why: Option<String>,
    /// What may still turn up.
    pub(super) pending: Vec<(String, Vec<Proof>, String)>,
}

#[derive(Clone, Serialize)]
pub(super) struct Evidence {
    pub(super) about: String,
    pub(super) sent: String,
    pub(super) answer: String,
    pub(super) canary: String,
}

impl Tried {
    pub(super) fn new(attack: &'static Attack, tool: &str, parameter: Option<Parameter>) -> Tried {
        Tried {
            attack,
            tool: tool.to_owned(),
            parameter,
            status: Status::NotExecuted,
            attempts: 0,
            evidence: None,
            why: None,
            pending: Vec::new(),
        }
    }

    pub(super) fn not(attack: &'static Attack, tool: &str, why: &str) -> Tried {
        let why = Some(why.to_owned());
        Tried { status: Status::NotApplicable, why, ..Tried::new(attack, tool, None) }
    }

    pub(super) fn id(&self) -> String {
        let mut id = format!("{}/{}", self.attack.id(), self.tool);
        if let Some(parameter) = &self.parameter {
            id.push('/');
            id.push_str(&parameter.name);
        }
        id
    }

    /// A canary that sang after the answer sang all the same.
    pub(super) fn look_again(&mut self, ground: &Ground) {
        if self.status != Status::Held {
            return;
        }
        for (about, proofs, sent) in &self.pending {
            let Some(saw) = proofs.iter().find_map(|proof| side_effect(proof, ground)) else {
                continue;
            };
            self.status = Status::Broken;
            self.evidence = Some(Evidence {
                about: about.clone(),
                sent: sent.clone(),
                answer: "(the canary came after the answer)".to_owned(),
                canary: saw,
            });
            return;
        }
    }
}

pub(super) struct Raid<'a, A> {
    ask: &'a A,
    ground: &'a Ground,
    known: &'a Map<String, Value>,
    reach: Reach,
    pub(super) flood: usize,
    pub(super) ends: Option<Instant>,
    pub(super) late: bool,
    /// The last thing that was sent.
    last: Option<String>,
    /// How the server was lost, and after what.
    pub(super) lost: Option<String>,
    /// Whether a plain call of a tool is refused by the form of its arguments.
    refuses: BTreeMap<String, bool>,
    /// Whether what was sent and seen is kept to be shown.
    pub(super) is_shown: bool,
}

impl<'a, A: Ask> Raid<'a, A> {
    pub(super) fn new(
        ask: &'a A,
        ground: &'a Ground,
        known: &'a Map<String, Value>,
        reach: Reach,
    ) -> Raid<'a, A> {
        Raid {
            ask,
            ground,
            known,
            reach,
            flood: 1,
            ends: None,
            late: false,
            last: None,
            lost: None,
            refuses: BTreeMap::new(),
            is_shown: true,
        }
    }

    pub(super) async fn all(
        &mut self,
        tools: &[&Definition],
        attacks: &[&'static Attack],
        listener: &dyn Listener,
    ) -> Vec<Tried> {
        let mut all = Vec::new();
        for tool in tools {
            for attack in attacks {
                if self.ends.is_some_and(|ends| Instant::now() >= ends) {
                    self.late = true;
                    return all;
                }
                // A server that is played never waits: without a rest nothing else would be heard, signals included.
                tokio::task::yield_now().await;
                let tried = self.one(tool, attack).await;
                let broken = tried.iter().any(|one| one.status == Status::Broken);
                all.extend(tried);
                listener.on(&Event::Asked { id: attack.id(), failed: broken });
            }
        }
        all
    }

    async fn one(&mut self, tool: &Definition, attack: &'static Attack) -> Vec<Tried> {
        let Reach { is_local, has_loopback, is_ours } = self.reach;
        let (ground, known) = (self.ground, self.known);
        let scene = Scene { tool, ground, known, is_local, has_loopback, is_ours };
        match scene.plan(attack.way) {
            Plan::Not(why) => vec![Tried::not(attack, tool.name(), why)],
            Plan::Flood(arguments) => vec![self.flooded(tool, attack, &arguments).await],
            Plan::Through(ways) => {
                let mut all = Vec::new();
                for (parameter, attempts) in ways {
                    let tried = Tried::new(attack, tool.name(), parameter);
                    all.push(self.through(tool, tried, &attempts).await);
                }
                all
            }
        }
    }

    async fn flooded(
        &mut self,
        tool: &Definition,
        attack: &'static Attack,
        arguments: &Map<String, Value>,
    ) -> Tried {
        let mut tried = Tried::new(attack, tool.name(), None);
        if self.is_over(&mut tried) {
            return tried;
        }
        match self.ask.flood(tool.name(), arguments, self.flood).await {
            Ok((alive, saw)) => {
                tried.status = if alive { Status::Held } else { Status::Broken };
                tried.attempts = 1;
                let evidence = Evidence {
                    about: format!("{} calls at once", self.flood),
                    sent: self.shown(arguments),
                    answer: String::new(),
                    canary: saw,
                };
                self.sent(&mut tried, evidence);
            }
            Err(why) => self.lose(&mut tried, &why),
        }
        tried
    }

    async fn through(
        &mut self,
        tool: &Definition,
        mut tried: Tried,
        attempts: &[Attempt],
    ) -> Tried {
        let way = tried.attack.way;
        let mut taken = false;
        for attempt in attempts {
            if self.is_over(&mut tried) {
                return tried;
            }
            // What an earlier attempt left behind must not speak for or against this one.
            if let Err(error) = self.ground.replant() {
                tried.status = Status::NotExecuted;
                tried.why = Some(format!("the canaries cannot be planted again: {error}"));
                return tried;
            }
            let since = self.ground.canary.count();
            let answered = match self.call(tool.name(), attempt).await {
                Ok(answered) => answered,
                Err(why) => {
                    self.lose(&mut tried, &why);
                    return tried;
                }
            };
            tried.attempts += 1;
            let saw = proven(attempt, &answered.outcome, self.ground, since);
            let evidence = Evidence {
                about: attempt.about.clone(),
                sent: self.shown(&attempt.arguments),
                answer: clip(&self.ground.masked(&answered.shown), SHOWN).into_owned(),
                canary: saw.clone().unwrap_or_else(|| "nothing".to_owned()),
            };
            let pending = (attempt.about.clone(), attempt.proofs.clone(), evidence.sent.clone());
            self.sent(&mut tried, evidence);
            if saw.is_some() {
                tried.status = match way {
                    Way::Relay => Status::NotJudged,
                    _ => Status::Broken,
                };
                return tried;
            }
            if is_held(attempt, &answered.outcome) {
                tried.status = Status::Held;
            }
            taken |= !is_refused_by_form(&answered.outcome);
            tried.pending.push(pending);
        }
        if tried.status == Status::Held && way == Way::Relay {
            tried.status = Status::NotApplicable;
            tried.why = Some("the tool did not bring the planted text".to_owned());
        }
        let needs_the_tool = !matches!(way, Way::EnvPlain | Way::HugeInput | Way::DeepInput);
        if tried.status == Status::Held && needs_the_tool && !taken && self.refuses(tool).await {
            tried.status = Status::NotExecuted;
            tried.why = Some(format!(
                "{} refuses even plain arguments as invalid, so no attack came through to it; give \
                 values that work with --set NAME=VALUE",
                tool.name()
            ));
        }
        if tried.status == Status::NotExecuted && tried.why.is_none() {
            tried.why = Some("no attempt was answered".to_owned());
        }
        tried
    }

    /// Keeps what was sent and seen.
    fn sent(&mut self, tried: &mut Tried, evidence: Evidence) {
        self.last = Some(format!("{}: {}: {}", tried.id(), evidence.about, evidence.sent));
        tried.evidence = Some(evidence);
    }

    /// Nothing can be tried any more, and what was under way was not tried to its end.
    fn lose(&mut self, tried: &mut Tried, why: &str) {
        let after = match &self.last {
            Some(last) => format!("the last that was sent is {last}"),
            None => "nothing was sent to it".to_owned(),
        };
        self.lost = Some(format!("{why} ({after})"));
        self.is_over(tried);
    }

    /// Whether the server is lost; then this was not tried.
    fn is_over(&self, tried: &mut Tried) -> bool {
        if let Some(lost) = &self.lost {
            tried.status = Status::NotExecuted;
            tried.why = Some(lost.clone());
        }
        self.lost.is_some()
    }

    /// Whether a plain call of the tool is refused by its form too: then a refusal says nothing about
    /// what else was in the arguments.
    async fn refuses(&mut self, tool: &Definition) -> bool {
        if let Some(known) = self.refuses.get(tool.name()) {
            return *known;
        }
        let arguments = plainest(tool.input_schema(), self.known);
        let plain = Attempt { about: "a plain call".to_owned(), arguments, proofs: Vec::new() };
        let answered = self.ask.call(tool.name(), &plain).await;
        let refuses = answered.is_ok_and(|answered| is_refused_by_form(&answered.outcome));
        self.refuses.insert(tool.name().to_owned(), refuses);
        refuses
    }

    /// Makes the attempt; one that was not answered in time is made again on a fresh server, for the
    /// machine may have been busy.
    async fn call(&self, tool: &str, attempt: &Attempt) -> Result<Answered, String> {
        let first = self.ask.call(tool, attempt).await?;
        if first.outcome != Outcome::Timeout {
            return Ok(first);
        }
        // One that then cannot even be reached has not answered twice.
        Ok(self.ask.call(tool, attempt).await.unwrap_or(first))
    }

    fn shown(&self, arguments: &Map<String, Value>) -> String {
        if !self.is_shown {
            return String::new();
        }
        // A long text is cut before it is copied about.
        let mut short = arguments.clone();
        for value in short.values_mut() {
            if let Value::String(text) = value
                && text.len() > SHOWN
            {
                *text =
                    format!("{} ({} bytes)", text.chars().take(40).collect::<String>(), text.len());
            }
        }
        let text = replay::ascii(&Value::Object(short));
        clip(&self.ground.masked(&text), SHOWN).into_owned()
    }
}

/// Whether an attempt that proved nothing was borne: it was answered or refused, or, where the question
/// is only whether the server goes on, it does.
fn is_held(attempt: &Attempt, outcome: &Outcome) -> bool {
    let Outcome::Transport { why } = outcome else { return outcome.is_answer() };
    let goes_on = |proof: &Proof| matches!(proof, Proof::Overrun | Proof::Ended);
    is_refused_by_http(why) || attempt.proofs.iter().any(goes_on)
}

/// Statuses that refuse what was sent, and neither whoever sent it nor how often.
fn is_refused_by_http(why: &str) -> bool {
    const REFUSALS: [&str; 8] = ["400", "403", "406", "413", "414", "415", "422", "431"];
    let status = why.strip_prefix("HTTP status ").unwrap_or_default();
    REFUSALS.iter().any(|refusal| status.starts_with(refusal))
}

/// Whether the arguments were refused as invalid, before the tool did anything with them.
fn is_refused_by_form(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::ProtocolError { code, .. } => *code == judge::INVALID_PARAMS,
        other => other.is_tool_error() && judge::verdict(other) == judge::Verdict::Refused,
    }
}

/// What proves that the attempt worked, in words. `since` is how often the listener had been called.
fn proven(attempt: &Attempt, outcome: &Outcome, ground: &Ground, since: usize) -> Option<String> {
    let text = judge::text(outcome);
    attempt.proofs.iter().find_map(|proof| match proof {
        Proof::Mark(_) | Proof::Called(_) => side_effect(proof, ground),
        Proof::Product => {
            text.contains(&ground.product()).then(|| "the product was computed".to_owned())
        }
        Proof::Token(what, token) => {
            carried(&text, token).map(|how| format!("{what} is in the answer, {how}"))
        }
        Proof::Changed => ground.disturbed(),
        Proof::Visited => ground.canary.was_visited(since).then(|| CALLED.to_owned()),
        Proof::Overrun => overrun(outcome).or_else(|| ended(outcome)),
        Proof::Ended => ended(outcome),
    })
}

const CALLED: &str = "the listener on 127.0.0.1 was called";

/// What was left behind, whatever was answered, and can have come from this attempt alone.
fn side_effect(proof: &Proof, ground: &Ground) -> Option<String> {
    match proof {
        Proof::Mark(path) => path.exists().then(|| "the command made its file".to_owned()),
        Proof::Called(path) => ground.canary.was_called(path).then(|| CALLED.to_owned()),
        _ => None,
    }
}

fn overrun(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Invalid { why } if why.starts_with("the answer has more than") => {
            Some(why.clone())
        }
        _ => None,
    }
}

fn ended(outcome: &Outcome) -> Option<String> {
    match outcome {
        Outcome::Timeout => Some("there was no answer in time".to_owned()),
        Outcome::Crash { .. } => Some("the server ended".to_owned()),
        Outcome::Transport { why } if why.starts_with("HTTP status 5") => Some(why.clone()),
        _ => None,
    }
}
