//! Makes the attempts of an attack one after the other, and looks for proofs that one of them worked.
//!
//! Nothing is judged by the wording of an answer. Once the server is lost, the rest is listed as not
//! executed; whether the run counts is decided when it is scored.

use std::time::Duration;

use karat_core::observed::{AttackEvidence, AttackStatus};
use karat_io::text::clip;
use karat_mcp::{Definition, ServerSpec};
use serde_json::{Map, Value};

use super::attacks::{KnownAttack, Technique};
use super::attempts::{Access, Attempt, ParameterAttempts, Plan, Planner};
use super::canary_site::CanarySite;
use super::config::Config;
use super::failed_attempts::FailedAttempts;
use super::judgement::{is_held, is_overload, is_refused_as_invalid, proven, unanswered};
use super::memory::{Memory, PlainCall};
use super::result::AttackResult;
use super::target::AttackTarget;
use crate::observation::Outcome;
use crate::probe::known_inputs::Successes;
use crate::probe::live::{CallResult, Flooded, REBOUND_HOST, Rebound};
use crate::probe::reaction::words_of;
use crate::probe::replay;
use crate::probe::stop::Deadline;
use crate::suggest::inputs::KnownValues;

/// The number of columns of arguments and answers in a report.
const SHOWN: usize = 400;

/// The time that a server has to work through the calls of a flood.
const BACKLOG: Duration = Duration::from_secs(60);

/// Carries out attacks.
pub(super) struct AttackRunner<'a, T> {
    pub(super) target: &'a T,
    pub(super) site: &'a CanarySite,
    pub(super) config: &'a Config,
    /// Inputs that have worked, and the place of the server; none if it is simulated.
    pub(super) known: Option<(&'a Successes, &'a KnownValues)>,
    pub(super) access: Access,
    /// The server for command lines; none if nothing is shown.
    pub(super) shown: Option<&'a ServerSpec>,
    pub(super) deadline: Deadline,
    pub(super) memory: &'a mut Memory,
}

impl<T: AttackTarget> AttackRunner<'_, T> {
    /// Makes one attack on one tool.
    pub(super) async fn attack(
        &mut self,
        tool: &Definition,
        attack: &KnownAttack,
    ) -> Vec<AttackResult> {
        let Self { site, config, access, .. } = *self;
        let name = tool.name();
        let planner = Planner { tool, site, known: &config.set, access };
        let mut plan = planner.plan(attack.technique);
        // Only an attack that applies is worth a plain call.
        if !matches!(plan, Plan::Not(_)) && !self.is_out_of_time() {
            let known = self.plain_call(tool).await.known;
            plan = Planner { known: &known, ..planner }.plan(attack.technique);
        }
        let mut results = match plan {
            Plan::Not(why) => {
                let (status, why) = (AttackStatus::NotApplicable, Some(why.to_owned()));
                return vec![AttackResult { status, why, ..AttackResult::new(attack, name, None) }];
            }
            Plan::Flood(arguments) => {
                let mut result = AttackResult::new(attack, name, None);
                match self.fails_anyway(tool).await {
                    Some(unreached) if !self.is_over(&mut result) => {
                        result.set_unreached(unreached);
                    }
                    _ => result = self.flood(result, &arguments).await,
                }
                vec![result]
            }
            Plan::Through(ways) => {
                let mut results = Vec::new();
                for way in ways {
                    let result = AttackResult::new(attack, name, way.parameter.as_ref());
                    results.push(self.through(tool, attack.technique, result, &way).await);
                }
                results
            }
        };
        let again = self.again(name, attack);
        results.iter_mut().for_each(|result| result.again.clone_from(&again));
        results
    }

    /// Makes one attack on the server as a whole.
    pub(super) async fn attack_server(&mut self, attack: &KnownAttack) -> AttackResult {
        let mut result = AttackResult::new(attack, "", None);
        if self.is_over(&mut result) {
            return result;
        }
        result.again = self.again("", attack);
        let (status, canary, answer) = match self.target.rebind().await {
            Rebound::Answered(saw) => (AttackStatus::Broken, saw, String::new()),
            Rebound::Refused(said) => (AttackStatus::Held, "nothing".to_owned(), said),
            Rebound::NotApplicable(why) => {
                result.status = AttackStatus::NotApplicable;
                result.why = Some(why.to_owned());
                return result;
            }
            Rebound::NotExecuted(why) => {
                result.why = Some(why);
                return result;
            }
        };
        result.status = status;
        result.attempts = 1;
        let about = "the Host and the Origin of another site".to_owned();
        let answer = clip(&self.site.masked(&answer), SHOWN).into_owned();
        let sent = format!("Host: {REBOUND_HOST}, Origin: http://{REBOUND_HOST}");
        self.sent(&mut result, AttackEvidence { about, sent, answer, canary });
        result
    }

    async fn flood(
        &mut self,
        mut result: AttackResult,
        arguments: &Map<String, Value>,
    ) -> AttackResult {
        if self.is_over(&mut result) {
            return result;
        }
        let count = if self.shown.is_some() { self.config.flood } else { 1 };
        let limit = self.deadline.left().map_or(BACKLOG, |left| left.min(BACKLOG));
        let mut flooded = self.target.flood(&result.tool, arguments, count, limit).await;
        let is_lost = |flooded: &Result<(Flooded, String), String>| {
            flooded.as_ref().is_ok_and(|(state, _)| *state != Flooded::Answered)
        };
        // The machine may have been busy, so a server counts as lost if it is lost again.
        if is_lost(&flooded) && self.known.is_some() && !self.is_out_of_time() {
            let limit = self.deadline.left().map_or(BACKLOG, |left| left.min(BACKLOG));
            flooded = self.target.flood(&result.tool, arguments, count, limit).await;
        }
        match flooded {
            // It was given less than the time that a server has.
            Ok((Flooded::Silent, _)) if self.is_over(&mut result) => {}
            Ok((state, saw)) => {
                let survived = state == Flooded::Answered;
                result.status = if survived { AttackStatus::Held } else { AttackStatus::Broken };
                result.attempts = 1;
                let evidence = AttackEvidence {
                    about: format!("{count} concurrent calls"),
                    sent: self.show(arguments),
                    answer: String::new(),
                    canary: saw,
                };
                self.sent(&mut result, evidence);
            }
            Err(why) => self.lose(&mut result, &why),
        }
        result
    }

    async fn through(
        &mut self,
        tool: &Definition,
        technique: Technique,
        mut result: AttackResult,
        way: &ParameterAttempts,
    ) -> AttackResult {
        // Attempts that ended as the plain call did, which failed: something else may be to blame.
        let plain = self.known.and_then(|_| self.memory.plain.get(tool.name()));
        let failure = plain.and_then(PlainCall::failure);
        let mut tried = FailedAttempts::default();
        tried.contacts.since = self.site.listener.count();
        for attempt in &way.attempts {
            if self.is_over(&mut result) {
                return result;
            }
            // The traces of an earlier attempt must not count for or against this one.
            if let Err(error) = self.site.restore() {
                result.status = AttackStatus::NotExecuted;
                result.why = Some(format!("the canaries cannot be restored: {error}"));
                return result;
            }
            let since = self.site.listener.count();
            let called = match self.call(tool.name(), attempt).await {
                Ok(called) => called,
                Err(why) => {
                    self.lose(&mut result, &why);
                    return result;
                }
            };
            result.attempts += 1;
            let mut saw = proven(attempt, &called, self.site);
            if saw.is_some() && is_overload(attempt) && self.ends_anyway(tool, &called).await {
                saw = None;
            }
            if saw.is_none() {
                saw = self.contacted(tool, attempt, &called, &mut tried.contacts).await;
            }
            self.memory.is_answering =
                unanswered(&called.outcome).is_none() && called.outcome != Outcome::Timeout;
            tried.is_redirected |= self.asks_for_redirect(attempt, since);
            self.memory.keep(&result, attempt, &self.show(&attempt.arguments));
            if self.conclude(&mut result, technique, attempt, &called, saw) {
                return result;
            }
            if is_held(attempt, &called.outcome) {
                result.status = AttackStatus::Held;
            }
            tried.is_accepted |= !is_refused_as_invalid(&called.outcome);
            tried.same += u64::from(failure.as_ref() == Some(&words_of(&called.outcome)));
            tried.answers.push((attempt, called.outcome));
        }
        if let Some((attempt, called, saw)) =
            self.connected(tool, &way.attempts, &mut tried.contacts).await
        {
            self.conclude(&mut result, technique, attempt, &called, Some(saw));
            return result;
        }
        self.memory.keep_unproven(&result);
        self.judge_unproven(tool, technique, way, tried, result).await
    }

    /// Keeps the evidence of an attempt; returns whether it proves the attack.
    fn conclude(
        &mut self,
        result: &mut AttackResult,
        technique: Technique,
        attempt: &Attempt,
        called: &CallResult,
        saw: Option<String>,
    ) -> bool {
        let is_proven = saw.is_some();
        let evidence = AttackEvidence {
            about: attempt.about.clone(),
            sent: self.show(&attempt.arguments),
            answer: clip(&self.site.masked(&called.shown), SHOWN).into_owned(),
            canary: saw.unwrap_or_else(|| "nothing".to_owned()),
        };
        self.sent(result, evidence);
        if is_proven {
            result.status = match technique {
                Technique::Relay => AttackStatus::NotJudged,
                _ => AttackStatus::Broken,
            };
        }
        is_proven
    }

    /// A command line that makes the attack again: the canaries of this run are gone.
    fn again(&self, tool: &str, attack: &KnownAttack) -> String {
        let Some(spec) = self.shown else { return String::new() };
        let roots: Vec<String> =
            self.config.roots.iter().map(|root| root.display().to_string()).collect();
        let mut words = vec!["attack"];
        if !tool.is_empty() {
            words.extend(["--tool", tool]);
        }
        words.extend(["--case", attack.id()]);
        words.extend(roots.iter().flat_map(|root| ["--root", root]));
        let mut flags: Vec<String> = self
            .config
            .timeouts
            .into_iter()
            .flat_map(|limits| replay::timeout_flags(limits, replay::ATTACK_TIMEOUTS_MS))
            .collect();
        for (name, value) in &self.config.set {
            flags.extend(["--set".to_owned(), format!("{name}={}", replay::ascii(value))]);
        }
        for path in &self.config.recordings {
            flags.extend(["--from-recording".to_owned(), path.display().to_string()]);
        }
        if self.config.allow_destructive {
            flags.push("--allow-destructive".to_owned());
        }
        words.extend(flags.iter().map(String::as_str));
        replay::line(spec, &words, &|word| self.site.masked(word))
    }

    /// Keeps the input and its evidence.
    fn sent(&mut self, result: &mut AttackResult, evidence: AttackEvidence) {
        self.memory.last = Some(format!("{}: {}: {}", result.id(), evidence.about, evidence.sent));
        result.evidence = Some(evidence);
    }

    /// Ends the run: the server is lost, and this attack was not completed.
    fn lose(&mut self, result: &mut AttackResult, why: &str) {
        let after = match &self.memory.last {
            Some(last) => format!("the last input was {last}"),
            None => "no input was sent".to_owned(),
        };
        self.memory.lost = Some(format!("{why} ({after})"));
        self.is_over(result);
    }

    /// Returns whether the server is lost or the time is up; then this attack is not executed.
    pub(super) fn is_over(&self, result: &mut AttackResult) -> bool {
        let why = match &self.memory.lost {
            Some(lost) => lost,
            None if self.config.stop.is_made() => "the run was interrupted",
            None if self.deadline.is_over() => "the time limit was reached",
            None => return false,
        };
        result.status = AttackStatus::NotExecuted;
        result.why = Some(why.to_owned());
        true
    }

    pub(super) fn is_out_of_time(&self) -> bool {
        self.memory.lost.is_some() || self.config.stop.is_made() || self.deadline.is_over()
    }

    /// Makes the attempt. One without an answer in time is made again on a fresh server, because the
    /// machine may have been busy.
    async fn call(&self, tool: &str, attempt: &Attempt) -> Result<CallResult, String> {
        let first = self.target.call(tool, attempt).await?;
        if first.outcome != Outcome::Timeout || self.deadline.is_over() {
            return Ok(first);
        }
        // If the server cannot even be reached then, the first result counts.
        Ok(self.target.call(tool, attempt).await.unwrap_or(first))
    }

    /// The arguments for display.
    fn show(&self, arguments: &Map<String, Value>) -> String {
        if self.shown.is_none() {
            return String::new();
        }
        // Long texts are cut before anything is copied.
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
        clip(&self.site.masked(&text), SHOWN).into_owned()
    }
}
