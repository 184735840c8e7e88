//! Makes the attempts of an attack one after the other, and looks for proofs that one of them worked.
//!
//! Nothing is judged by the wording of an answer. Once the server is lost, the rest is listed as not
//! executed; whether the run counts is decided when it is scored.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use karat_core::expect::Answer;
use karat_core::observed::{AttackEvidence, AttackStatus};
use karat_io::text::clip;
use karat_mcp::{Definition, ServerSpec};
use serde_json::{Map, Value};

use super::attacks::{KnownAttack, Technique};
use super::attempts::{Access, Attempt, Plan, Planner, Proof, Way};
use super::canary_site::CanarySite;
use super::config::Config;
use super::judgement::{
    goes_there, is_held, is_refused_as_invalid, looks_at_files, proven, side_effect,
};
use super::listener::REDIRECTING;
use super::result::{AttackResult, Unreached};
use super::target::AttackTarget;
use crate::fuzz::generate::plainest;
use crate::observation::Outcome;
use crate::probe::destructive_tools::may_change;
use crate::probe::known_inputs::{Openings, Successes};
use crate::probe::live::{CallResult, Flooded, REBOUND_HOST, Rebound};
use crate::probe::reaction::{INVALID_PARAMS, Reaction, failure_of, words_of};
use crate::probe::replay;
use crate::probe::stop::Deadline;
use crate::suggest::inputs::Surroundings;

/// The number of columns of arguments and answers in a report.
const SHOWN: usize = 400;

/// The numbers of recorded and of likely inputs that are tried for a plain call that succeeds.
const MAX_RECORDED: usize = 3;
const MAX_LIKELY: usize = 4;

/// The length from which an argument is not in an answer by chance.
const SHORTEST_ECHO: usize = 6;

/// The time that a server has to work through the calls of a flood.
const BACKLOG: Duration = Duration::from_secs(60);

/// Proofs of an attempt that may still turn up.
struct Pending {
    id: String,
    about: String,
    sent: String,
    proofs: Vec<Proof>,
}

/// A call of a tool without an attack: the input around which attacks are made.
#[derive(Clone, Default)]
pub(super) struct PlainCall {
    /// The values that it was made with, as far as they are known.
    pub(super) known: Map<String, Value>,
    /// The arguments of the call that the outcome is of.
    arguments: Map<String, Value>,
    /// Its answer; none if there was none.
    outcome: Option<Outcome>,
}

impl PlainCall {
    /// Returns whether even this call is refused as invalid: then a refusal proves nothing about the attack in
    /// the arguments.
    fn is_refused(&self) -> bool {
        self.outcome.as_ref().is_some_and(is_refused_as_invalid)
    }

    fn is_slow(&self) -> bool {
        self.outcome == Some(Outcome::Timeout)
    }

    /// The words that it failed with, if it did.
    fn failure(&self) -> Option<BTreeSet<String>> {
        let outcome = self.outcome.as_ref().filter(|outcome| outcome.is_answer())?;
        (Reaction::from(outcome) != Reaction::Accepted).then(|| words_of(outcome))
    }
}

/// The state that a run keeps from one attack to the next.
#[derive(Default)]
pub(super) struct Memory {
    /// The last input that was sent.
    last: Option<String>,
    /// The reason for which the server was lost, and the last input before.
    pub(super) lost: Option<String>,
    /// The plain call of each tool.
    plain: BTreeMap<String, PlainCall>,
    /// The ids of results that show that a file outside was looked at.
    looked_at: BTreeSet<String>,
    pending: Vec<Pending>,
}

impl Memory {
    /// The evidence of a proof that turned up after the answer.
    pub(super) fn late_evidence(&self, id: &str, site: &CanarySite) -> Option<AttackEvidence> {
        let mut of_result = self.pending.iter().filter(|pending| pending.id == id);
        of_result.find_map(|pending| {
            let canary = pending.proofs.iter().find_map(|proof| side_effect(proof, site))?;
            Some(AttackEvidence {
                about: pending.about.clone(),
                sent: pending.sent.clone(),
                answer: "(the proof came after the answer)".to_owned(),
                canary,
            })
        })
    }
}

/// Attacks on files, each with those that show by their answers that such a file was looked at.
/// A tool that looks anywhere is not confined by refusing another way there.
const ON_FILES: [(&str, &[&str]); 5] = [
    ("absolute-path", &["absolute-path"]),
    ("path-traversal", &["path-traversal", "absolute-path"]),
    ("secret-file", &["absolute-path", "path-traversal"]),
    ("sibling-folder", &["absolute-path", "path-traversal"]),
    ("symbolic-link", &["absolute-path", "path-traversal"]),
];

impl Memory {
    /// The reason for which an attack on files is not held, although nothing proves it: the server looked at a file
    /// outside, and only failed to use what was in it.
    pub(super) fn doubt(&self, result: &AttackResult) -> Option<String> {
        let (_, shown_by) = ON_FILES.iter().find(|(attack, _)| *attack == result.attack)?;
        let id = |attack: &&&str| {
            let shown = AttackResult { attack: (**attack).to_owned(), ..result.clone() };
            self.looked_at.contains(&shown.id())
        };
        shown_by.iter().find(id)?;
        Some(format!(
            "{} answers differently for a file outside that exists and one that does not, so it looked at it, \
             and may use one of the kind that it reads",
            result.tool
        ))
    }
}

/// Carries out attacks.
pub(super) struct AttackRunner<'a, T> {
    pub(super) target: &'a T,
    pub(super) site: &'a CanarySite,
    pub(super) config: &'a Config,
    /// Inputs that have worked, and the place of the server; none if it is simulated.
    pub(super) known: Option<(&'a Successes, &'a Surroundings)>,
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
        way: &Way,
    ) -> AttackResult {
        let mut is_accepted = false;
        let mut is_redirected = false;
        // Attempts that ended as the plain call did, which failed: something else may be to blame.
        let plain = self.known.and_then(|_| self.memory.plain.get(tool.name()));
        let failure = plain.and_then(PlainCall::failure);
        let may_be_blocked = way.is_run || needs_more(tool, result.parameter.as_deref());
        let mut same = 0;
        let mut answers = Vec::new();
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
            let saw = proven(attempt, &called, self.site, since);
            // A tool that is slow by itself, and whose server is alive, is not blocked by the attack.
            let is_slow = called.outcome == Outcome::Timeout
                && called.is_alive
                && self.plain_call(tool).await.is_slow();
            let saw = saw.filter(|_| !is_slow);
            is_redirected |= self.site.listener.was_asked(since, REDIRECTING);
            let sent = self.show(&attempt.arguments);
            if attempt.proofs.iter().any(Proof::is_side_effect) {
                self.memory.pending.push(Pending {
                    id: result.id(),
                    about: attempt.about.clone(),
                    sent: sent.clone(),
                    proofs: attempt.proofs.clone(),
                });
            }
            let evidence = AttackEvidence {
                about: attempt.about.clone(),
                sent,
                answer: clip(&self.site.masked(&called.shown), SHOWN).into_owned(),
                canary: saw.clone().unwrap_or_else(|| "nothing".to_owned()),
            };
            self.sent(&mut result, evidence);
            if saw.is_some() {
                result.status = match technique {
                    Technique::Relay => AttackStatus::NotJudged,
                    _ => AttackStatus::Broken,
                };
                return result;
            }
            if is_held(attempt, &called.outcome) {
                result.status = AttackStatus::Held;
            }
            is_accepted |= !is_refused_as_invalid(&called.outcome);
            same += u64::from(failure.as_ref() == Some(&words_of(&called.outcome)));
            answers.push((attempt, called.outcome));
        }
        // Both are tried with addresses of this machine: where none of these is asked for, nothing shows whether a
        // redirect would be followed, or the address of metadata refused.
        let is_live_held = result.status == AttackStatus::Held && self.known.is_some();
        let has_contact = match technique {
            Technique::Redirect => is_redirected,
            Technique::Metadata if is_live_held => self.calls_this_machine(tool, &result).await,
            _ => true,
        };
        // Then the other address came through, in whatever words the tool fails.
        let came_through = technique == Technique::Metadata && has_contact;
        let needs_tool =
            !matches!(technique, Technique::EnvPlain | Technique::HugeInput | Technique::DeepInput);
        if result.status == AttackStatus::Held
            && (needs_tool || technique == Technique::EnvPlain)
            && !is_accepted
            && !came_through
            && self.plain_call(tool).await.is_refused()
        {
            result.status = AttackStatus::NotExecuted;
            result.why = Some(format!(
                "{} refuses even plain arguments as invalid, so no attack reached it; give valid \
                 values with --set NAME=VALUE or --from-recording FILE",
                tool.name()
            ));
        }
        // A server that survives a huge input has survived it, whatever the tool does with it.
        let survives = matches!(technique, Technique::HugeInput | Technique::DeepInput);
        if result.status == AttackStatus::Held
            && !came_through
            && let Some(unreached) = self.not_reached(tool, &answers, survives).await
        {
            result.set_unreached(unreached);
        }
        if result.status == AttackStatus::Held && technique == Technique::Relay {
            result.status = AttackStatus::NotApplicable;
            result.why = Some("the tool did not return the planted text".to_owned());
        }
        if let Some(doubt) = way.doubt
            && result.status == AttackStatus::Held
        {
            result.status = AttackStatus::NotApplicable;
            result.why = Some(doubt.to_owned());
        }
        // A few attempts may fail for reasons of their own, such as a zero byte that no program takes.
        let is_blocked = may_be_blocked && same * 2 > result.attempts;
        if result.status == AttackStatus::Held && needs_tool && is_blocked && !came_through {
            result.status = AttackStatus::NotExecuted;
            result.why = Some(format!(
                "{} fails with plain arguments, and in the same words with the attack, so it may not have \
                 reached it; give valid values with --set NAME=VALUE or --from-recording FILE",
                tool.name()
            ));
        }
        if result.status == AttackStatus::Held
            && needs_tool
            && !came_through
            && self.fails_with_any_text(tool, &result, &answers).await
        {
            result.status = AttackStatus::NotExecuted;
            result.why = Some(format!(
                "{} fails in the same words with any text there, so the attack may not have reached it; give \
                 values that go together with --set NAME=VALUE or --from-recording FILE",
                tool.name()
            ));
        }
        if result.status == AttackStatus::Held
            && self.known.is_some()
            && !has_contact
            && !self.is_over(&mut result)
        {
            result.status = AttackStatus::NotExecuted;
            let name = tool.name();
            result.why = Some(match technique {
                Technique::Redirect => format!(
                    "{name} asked for no page that redirects, so its handling of a redirect is not known"
                ),
                _ => format!(
                    "{name} called no address of this machine, so nothing is known of its handling of the addresses \
                     of metadata"
                ),
            });
        }
        // A tool that writes shows by the file outside whether it went there.
        let leads_out = matches!(technique, Technique::Link | Technique::Sibling)
            && may_change(tool.raw()).is_none();
        if result.status == AttackStatus::Held
            && leads_out
            && answers.iter().any(|(attempt, outcome)| goes_there(attempt, outcome))
        {
            result.status = AttackStatus::NotExecuted;
            result.why = Some(format!(
                "{} accepts the path of a file outside but does not show its content, so it may use it",
                tool.name()
            ));
        }
        if result.status == AttackStatus::NotExecuted && result.why.is_none() {
            result.why = Some("no attempt was answered".to_owned());
        }
        if way.compares
            && self.known.is_some()
            && let [(there, seen), .., (missing, unseen)] = answers.as_slice()
            && looks_at_files((*there, seen), (*missing, unseen))
        {
            self.memory.looked_at.insert(result.id());
        }
        result
    }

    /// The reason for which attempts that failed alike prove nothing: the tool fails with plain arguments in the same
    /// words, so something else may be to blame.
    ///
    /// A tool that fails alike with every value may still have read it ("no such user"). Then it fails
    /// otherwise when the value is left out, and not with the words of a validator.
    async fn not_reached(
        &mut self,
        tool: &Definition,
        answers: &[(&Attempt, Outcome)],
        survives: bool,
    ) -> Option<Unreached> {
        self.known?;
        let (attempt, last) = answers.last()?;
        let failure = failure_of(last)?;
        let before = self.plain_call(tool).await;
        let failed_before = failure_of(before.outcome.as_ref()?);
        let is_alike = |outcome: &Outcome| failure_of(outcome).as_ref() == Some(&failure);
        let is_any_accepted =
            answers.iter().any(|(_, one)| Reaction::from(one) == Reaction::Accepted);
        let alike = answers.iter().filter(|(_, outcome)| is_alike(outcome)).count();
        let is_like_before = failed_before.as_ref() == Some(&failure);
        // A few attempts may fail for reasons of their own, such as a zero byte that no program takes.
        if is_like_before && (is_any_accepted || alike * 2 <= answers.len()) {
            return None;
        }
        if self.is_out_of_time() || !is_alike(&self.again_plain(tool, &before.arguments).await?) {
            return None;
        }
        if !is_like_before {
            return Some(Unreached::Stopped);
        }
        // An argument that is repeated has reached the tool.
        if repeats(last, &attempt.arguments) {
            return None;
        }
        let without = self.without_values(tool, &before, answers).await?;
        let is_elsewhere =
            matches!(last, Outcome::ProtocolError { code, .. } if *code != INVALID_PARAMS);
        let is_checked_before = is_elsewhere || is_refused_as_invalid(&without);
        (is_alike(&without) || (is_checked_before && !survives)).then_some(Unreached::FailsAlike)
    }

    /// The way in which a tool fails with plain arguments whatever they are; none if it does not.
    async fn fails_anyway(&mut self, tool: &Definition) -> Option<Unreached> {
        self.known?;
        let before = self.plain_call(tool).await;
        if self.is_out_of_time() {
            return None;
        }
        let now = self.again_plain(tool, &before.arguments).await?;
        let failure = failure_of(&now)?;
        if failure_of(before.outcome.as_ref()?).as_ref() != Some(&failure) {
            return Some(Unreached::Stopped);
        }
        let without = self.without_values(tool, &before, &[]).await?;
        (failure_of(&without).as_ref() == Some(&failure)).then_some(Unreached::FailsAlike)
    }

    /// The answer to the plain call, made again: a tool may have stopped working since the first one.
    async fn again_plain(
        &self,
        tool: &Definition,
        arguments: &Map<String, Value>,
    ) -> Option<Outcome> {
        let about = "a plain call".to_owned();
        let attempt = Attempt { about, arguments: arguments.clone(), proofs: Vec::new() };
        Some(self.target.call(tool.name(), &attempt).await.ok()?.outcome)
    }

    /// The answer to a call without the values that were attacked, or without any.
    async fn without_values(
        &self,
        tool: &Definition,
        plain: &PlainCall,
        answers: &[(&Attempt, Outcome)],
    ) -> Option<Outcome> {
        let mut arguments = plain.arguments.clone();
        let is_attacked = |name: &str, value: &Value| {
            answers.iter().any(|(attempt, _)| attempt.arguments.get(name) != Some(value))
        };
        arguments.retain(|name, value| !is_attacked(name, value));
        if arguments.len() == plain.arguments.len() {
            arguments.clear();
        }
        self.again_plain(tool, &arguments).await
    }

    /// Returns whether every attempt through an optional text failed in the same words, and so does a harmless text:
    /// other arguments are to blame then.
    async fn fails_with_any_text(
        &mut self,
        tool: &Definition,
        result: &AttackResult,
        answers: &[(&Attempt, Outcome)],
    ) -> bool {
        let (Some(name), [(first, outcome), ..]) = (&result.parameter, answers) else {
            return false;
        };
        let schema = tool.input_schema();
        let required = schema.and_then(|schema| schema.get("required")?.as_array());
        let is_required = required.is_some_and(|all| all.iter().any(|one| one == name.as_str()));
        let is_used = |plain: &PlainCall| plain.known.contains_key(name);
        // The plain call has a value for it, and is what the attempts were compared with.
        if is_required || self.memory.plain.get(tool.name()).is_some_and(is_used) {
            return false;
        }
        let words = words_of(outcome);
        let is_same = |outcome: &Outcome| {
            Reaction::from(outcome) != Reaction::Accepted && words_of(outcome) == words
        };
        let is_text = first.arguments.get(name).is_some_and(Value::is_string);
        if !is_text || self.known.is_none() || !answers.iter().all(|(_, outcome)| is_same(outcome))
        {
            return false;
        }
        let mut arguments = first.arguments.clone();
        arguments.insert(name.clone(), Value::from("text"));
        let harmless =
            Attempt { about: "a harmless text".to_owned(), arguments, proofs: Vec::new() };
        let called = self.target.call(tool.name(), &harmless).await;
        called.is_ok_and(|called| is_same(&called.outcome))
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
    fn is_over(&self, result: &mut AttackResult) -> bool {
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

    /// The plain call of a tool: with an input that succeeded in a recording or is likely to succeed, or with the
    /// simplest arguments.
    pub(super) async fn plain_call(&mut self, tool: &Definition) -> PlainCall {
        if let Some(plain) = self.memory.plain.get(tool.name()) {
            return plain.clone();
        }
        let set = &self.config.set;
        let simplest = plainest(tool.input_schema(), set);
        let mut plain =
            PlainCall { known: set.clone(), arguments: simplest.clone(), outcome: None };
        let Openings { recorded, likely } = match self.known {
            Some((successes, around)) => Openings::of(tool, successes, set, around),
            None => Openings::default(),
        };
        let likely = likely.into_iter().filter(|one| *one != simplest).take(MAX_LIKELY);
        let inputs = recorded.into_iter().take(MAX_RECORDED).map(|input| (input, false));
        let inputs = inputs.chain([(simplest.clone(), true)]);
        for (arguments, is_simplest) in inputs.chain(likely.map(|input| (input, false))) {
            if self.is_out_of_time() {
                break;
            }
            let about = "a plain call".to_owned();
            let attempt = Attempt { about, arguments, proofs: Vec::new() };
            let Ok(called) = self.target.call(tool.name(), &attempt).await else { break };
            let reaction = Reaction::from(&called.outcome);
            let is_last = matches!(reaction, Reaction::Accepted | Reaction::NoAnswer);
            if is_last || is_simplest {
                plain.arguments.clone_from(&attempt.arguments);
            }
            if reaction == Reaction::Accepted && !is_simplest {
                plain.known = attempt.arguments;
            }
            if is_last || is_simplest {
                plain.outcome = Some(called.outcome);
            }
            if is_last {
                break;
            }
        }
        self.memory.plain.insert(tool.name().to_owned(), plain.clone());
        plain
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

/// Returns whether an answer repeats an argument.
fn repeats(outcome: &Outcome, arguments: &Map<String, Value>) -> bool {
    // Not the names of fields, which may be a plain value too ("text").
    let said = match outcome {
        Outcome::Result { result } => Answer::new(result).text().to_owned(),
        Outcome::ProtocolError { message, .. } => message.clone(),
        _ => return false,
    };
    let is_said = |value: &Value| {
        value.as_str().is_some_and(|sent| sent.len() >= SHORTEST_ECHO && said.contains(sent))
    };
    arguments.values().any(is_said)
}

/// Returns whether a tool requires more than this parameter.
fn needs_more(tool: &Definition, parameter: Option<&str>) -> bool {
    let required = tool.input_schema().and_then(|schema| schema.get("required")?.as_array());
    let outer = parameter.map(|name| name.split(['.', '[']).next().unwrap_or(name));
    required.into_iter().flatten().any(|name| name.as_str() != outer)
}

#[cfg(test)]
mod tests {
    use super::super::attacks::ATTACKS;
    use super::*;

    #[test]
    fn a_tool_that_looks_at_any_file_is_not_held_by_another_way_there() {
        let result = |id: &str, tool: &str| {
            let attack = ATTACKS.iter().find(|attack| attack.id() == id).unwrap();
            AttackResult {
                parameter: Some("path".to_owned()),
                ..AttackResult::new(attack, tool, None)
            }
        };
        let mut memory = Memory::default();
        memory.looked_at.insert(result("absolute-path", "list").id());
        for id in
            ["absolute-path", "path-traversal", "secret-file", "sibling-folder", "symbolic-link"]
        {
            assert!(memory.doubt(&result(id, "list")).is_some(), "{id}");
            assert!(memory.doubt(&result(id, "read")).is_none(), "{id}");
        }
        assert!(memory.doubt(&result("command-injection", "list")).is_none());
    }
}
