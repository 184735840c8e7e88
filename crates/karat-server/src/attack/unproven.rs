//! Judges attempts that proved nothing: the attack is held only if it came through to the tool.

use karat_core::expect::Answer;
use karat_core::observed::AttackStatus;
use karat_mcp::Definition;
use serde_json::{Map, Value};

use super::attacks::Technique;
use super::attempts::{Attempt, ParameterAttempts};
use super::failed_attempts::FailedAttempts;
use super::judgement::{failure_of, goes_there, is_refused_as_invalid, looks_at_files, unanswered};
use super::memory::PlainCall;
use super::result::{AttackResult, Unreached};
use super::runner::AttackRunner;
use super::target::AttackTarget;
use crate::observation::Outcome;
use crate::probe::destructive_tools::may_change;
use crate::probe::live::CallResult;
use crate::probe::reaction::{INVALID_PARAMS, Reaction, words_of};

/// The length from which an argument is not in an answer by chance.
const SHORTEST_ECHO: usize = 6;

/// The reason for which attempts without a proof are not held.
enum Objection {
    NotExecuted(String),
    NotApplicable(&'static str),
    Unreached(Unreached),
    /// The server is lost or the time is up.
    Over,
}

impl<T: AttackTarget> AttackRunner<'_, T> {
    /// Judges attempts that proved nothing.
    pub(super) async fn judge_unproven(
        &mut self,
        tool: &Definition,
        technique: Technique,
        way: &ParameterAttempts,
        tried: FailedAttempts<'_>,
        mut result: AttackResult,
    ) -> AttackResult {
        if result.status == AttackStatus::Held {
            match self.objection(tool, technique, way, &tried, &result).await {
                Some(Objection::NotExecuted(why)) => {
                    result.status = AttackStatus::NotExecuted;
                    result.why = Some(why);
                }
                Some(Objection::NotApplicable(why)) => {
                    result.status = AttackStatus::NotApplicable;
                    result.why = Some(why.to_owned());
                }
                Some(Objection::Unreached(unreached)) => result.set_unreached(unreached),
                Some(Objection::Over) => {
                    self.is_over(&mut result);
                }
                None => {}
            }
        }
        if result.status == AttackStatus::NotExecuted && result.why.is_none() {
            result.why = Some("no attempt was answered".to_owned());
        }
        if way.compares
            && self.known.is_some()
            && let [(there, seen), .., (missing, unseen)] = tried.answers.as_slice()
            && looks_at_files((*there, seen), (*missing, unseen))
        {
            self.memory.looked_at.insert(result.id());
        }
        result
    }

    /// The reason for which attempts without a proof are not held; none if they are.
    async fn objection(
        &mut self,
        tool: &Definition,
        technique: Technique,
        way: &ParameterAttempts,
        tried: &FailedAttempts<'_>,
        result: &AttackResult,
    ) -> Option<Objection> {
        let name = tool.name();
        if let Some(doubt) = tried.contacts.doubt {
            return Some(Objection::NotExecuted(doubt.why(name)));
        }
        // Both are tried with addresses of this machine: where none of these is requested, nothing shows whether a
        // redirect would be followed, or the address of metadata refused.
        let now = self.site.listener.count();
        let asks = |(attempt, _): &(&Attempt, Outcome)| self.asks_for_redirect(attempt, now);
        let has_contact = match technique {
            // A call may have come after the answer.
            Technique::Redirect => tried.is_redirected || tried.answers.iter().any(asks),
            Technique::Metadata if self.known.is_some() => {
                self.calls_this_machine(tool, result).await
            }
            _ => true,
        };
        // Then the other address came through, in whatever words the tool fails.
        let came_through = technique == Technique::Metadata && has_contact;
        let needs_tool =
            !matches!(technique, Technique::EnvPlain | Technique::HugeInput | Technique::DeepInput);
        if (needs_tool || technique == Technique::EnvPlain)
            && !tried.is_accepted
            && !came_through
            && self.plain_call(tool).await.is_refused()
        {
            return Some(Objection::NotExecuted(format!(
                "{name} refuses even plain arguments as invalid, so no attack reached it; give valid \
                 values with --set NAME=VALUE or --from-recording FILE"
            )));
        }
        // A server that survives a huge input has survived it, whatever the tool does with it.
        let survives = matches!(technique, Technique::HugeInput | Technique::DeepInput);
        if !came_through
            && let Some(unreached) = self.not_reached(tool, &tried.answers, survives).await
        {
            return Some(Objection::Unreached(unreached));
        }
        if technique == Technique::Relay {
            return Some(Objection::NotApplicable("the tool did not return the planted text"));
        }
        if let Some(doubt) = way.doubt {
            return Some(Objection::NotApplicable(doubt));
        }
        // A few attempts may fail for reasons of their own, such as a zero byte that no program takes.
        let may_be_blocked = way.is_run || needs_more(tool, result.parameter.as_deref());
        let is_blocked = may_be_blocked && tried.same * 2 > result.attempts;
        if needs_tool && is_blocked && !came_through {
            return Some(Objection::NotExecuted(format!(
                "{name} fails with plain arguments, and in the same words with the attack, so it may not have \
                 reached it; give valid values with --set NAME=VALUE or --from-recording FILE"
            )));
        }
        if needs_tool
            && !came_through
            && self.fails_with_any_text(tool, result, &tried.answers).await
        {
            return Some(Objection::NotExecuted(format!(
                "{name} fails in the same words with any text there, so the attack may not have reached it; give \
                 values that go together with --set NAME=VALUE or --from-recording FILE"
            )));
        }
        if self.known.is_some() && !has_contact {
            if self.is_out_of_time() {
                return Some(Objection::Over);
            }
            return Some(Objection::NotExecuted(match technique {
                Technique::Redirect => format!(
                    "{name} asked for no page that redirects before it answered, so its handling of a redirect is not known"
                ),
                _ => format!(
                    "{name} asked no address of this machine for a page, so nothing is known of its handling of the \
                     addresses of metadata"
                ),
            }));
        }
        // A tool that writes shows by the file outside whether it went there.
        let leads_out = matches!(technique, Technique::Link | Technique::Sibling)
            && may_change(tool.raw()).is_none();
        if leads_out && tried.answers.iter().any(|(attempt, outcome)| goes_there(attempt, outcome))
        {
            return Some(Objection::NotExecuted(format!(
                "{name} accepts the path of a file outside but does not show its content, so it may use it"
            )));
        }
        None
    }

    /// Returns whether a call that ended without an answer says nothing of the attack: a plain call ends so too, or the
    /// tool had stopped working before.
    pub(super) async fn ends_anyway(&mut self, tool: &Definition, called: &CallResult) -> bool {
        if self.known.is_none() {
            return false;
        }
        let plain = self.plain_call(tool).await;
        if called.outcome == Outcome::Timeout {
            return called.is_alive && plain.is_slow();
        }
        let Some(how) = unanswered(&called.outcome) else { return false };
        let is_same = |outcome: Outcome| unanswered(&outcome) == Some(how);
        if plain.outcome.is_some_and(is_same) {
            return true;
        }
        // A server that answers the attempt before and nothing afterwards was ended by this one.
        !self.memory.is_answering
            && self.again_plain(tool, &plain.arguments).await.is_some_and(is_same)
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
    pub(super) async fn fails_anyway(&mut self, tool: &Definition) -> Option<Unreached> {
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
