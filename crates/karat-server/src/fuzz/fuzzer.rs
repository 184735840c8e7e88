//! Sends the generated inputs to a live server, one tool after the other.

use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use karat_core::error::EvalError;
use karat_core::evaluation::{Entry, RunContext};
use karat_core::finding::{Finding, Severity};
use karat_core::observed::FuzzCounts;
use karat_core::report::SystemRef;
use karat_core::run::{Progress, System};
use karat_core::schema::Compiled;
use karat_io::Failure;
use karat_io::text::clip;
use karat_mcp::{Definition, Options};
use karat_metrics::stats::random::Draws;
use serde_json::{Map, Value};

use super::case::{Case, InputKind};
use super::heard::{Heard, Usual};
use super::judge::{Flaw, Judge};
use super::result::ToolResult;
use super::rules::{CRASH, HANG, INVALID_RESULT, NEVER, PLACE, RULES, SECRET, SLOW, TRACE};
use super::shrink::Shrink;
use super::{Config, Fuzz, generate};
use crate::attack;
use crate::compliance::Contract;
use crate::observation::Outcome;
use crate::probe::known_inputs::{Openings, Successes};
use crate::probe::live::{self, Facts, LiveServer, Skipped};
use crate::probe::reaction::Reaction;
use crate::probe::replay;
use crate::probe::stop::Deadline;
use crate::probe::{self, SECRET_NAME};
use crate::suggest::inputs::KnownValues;

/// The numbers of crashes and hangs after which a tool is given up.
const MAX_CRASHES: u64 = 10;
const MAX_HANGS: u64 = 3;
/// The number of calls for shrinking an input that hangs: each costs a time-out.
const SHRINK_HANGS: usize = 8;
/// The number of findings of one tool that are shrunk and reported; more are counted.
const PER_TOOL: usize = 25;
/// The number of columns of inputs and answers in a finding.
const SHOWN: usize = 600;
/// The time for a server to clean up that is ended with a call under way.
const GRACE: Duration = Duration::from_secs(3);

/// A live server that is fuzzed; one question is one tool.
pub struct Fuzzer {
    live: LiveServer,
    pub(super) tools: Vec<Arc<Definition>>,
    skipped: Vec<Skipped>,
    /// Warnings about values of `set` that no tool takes.
    unused: Vec<String>,
    contract: Contract,
    /// The tools that run programs.
    runners: BTreeSet<String>,
    secret: String,
    seed: u64,
    config: Config,
    successes: Successes,
    around: KnownValues,
    deadline: Deadline,
    timeouts: (u64, u64),
    is_late: AtomicBool,
    lost: OnceLock<String>,
    progress: Arc<dyn Progress>,
}

impl System for Fuzzer {
    type Question = Definition;
    /// None if the tool was not reached.
    type Answer = Option<ToolResult>;

    async fn ask(&self, _: u32, tool: &Definition) -> Result<Option<ToolResult>, Failure> {
        if self.lost.get().is_some() || self.is_late.load(Ordering::Relaxed) {
            return Ok(None);
        }
        self.progress.working(tool.name());
        Ok(Some(self.fuzz(tool).await))
    }
}

impl Fuzzer {
    pub(super) async fn start(
        entry: &Entry<Fuzz>,
        context: &RunContext<'_>,
    ) -> Result<(Fuzzer, SystemRef), EvalError> {
        let (config, seed) = (entry.config.clone(), entry.common.seed);
        let secret = secret(seed);
        let target = live::target(config.server.as_ref(), config.builtin.as_deref(), None)?;
        let options = Options {
            grace: GRACE,
            ..live::session_options(&entry.common, context.folder, config.recorder.as_ref())
        };
        let live = LiveServer::start(&target, &options, &[(SECRET_NAME, &secret)]).await?;
        let tools = live.tools().await?;
        let (chosen, skipped) = live::choose(&tools, &config.tools, config.allow_destructive)?;
        let reference = live.reference(&tools);
        let around = live.known_values(context.folder).await;
        let fuzzer = Fuzzer {
            successes: entry.data.successes.clone(),
            around,
            contract: Contract::new(&tools, live.revision()),
            runners: tools
                .iter()
                .filter(|tool| attack::runs_programs(tool))
                .map(|tool| tool.name().to_owned())
                .collect(),
            live,
            unused: probe::unused_values(
                &config.set,
                tools.iter().filter_map(Definition::input_schema),
            ),
            tools: chosen,
            skipped,
            secret,
            seed,
            deadline: Deadline::after(config.time_limit.map(|limit| limit.0)),
            timeouts: (entry.common.timeout_ms, entry.common.start_timeout_ms),
            config,
            is_late: AtomicBool::new(false),
            lost: OnceLock::new(),
            progress: Arc::clone(&context.progress),
        };
        Ok((fuzzer, reference))
    }

    pub(super) async fn finish(&self) -> Facts {
        let is_late = self.is_late.load(Ordering::Relaxed);
        let mut facts = self.live.finish(&self.skipped, self.lost.get().cloned(), is_late).await;
        facts.warnings.extend(self.unused.iter().cloned());
        facts
    }

    fn judge(&self) -> Judge<'_> {
        Judge { contract: &self.contract, secret: &self.secret, runners: &self.runners }
    }

    fn is_out_of_time(&self) -> bool {
        if self.deadline.is_over() || self.config.stop.is_made() {
            self.is_late.store(true, Ordering::Relaxed);
        }
        self.is_late.load(Ordering::Relaxed)
    }

    async fn fuzz(&self, tool: &Definition) -> ToolResult {
        let name = tool.name();
        let Config { set, inputs, allow, .. } = &self.config;
        let mut result = ToolResult::default();
        let mut sightings = BTreeMap::new();
        let budget = self.config.tool_time_limit.map(|limit| limit.0);
        let of_tool = Deadline::after(budget);
        let schema = tool.input_schema().and_then(|schema| Compiled::new(schema).ok());
        let (known, stopped) =
            self.open(tool, schema.as_ref(), of_tool, &mut result, &mut sightings).await;
        let known = known.as_ref().unwrap_or(set);
        let left = inputs.saturating_sub(result.planned).max(1);
        let plan = generate::plan(tool.input_schema(), known, left, self.seed ^ hash(name));
        result.planned += plan.cases.len();
        result.warnings = plan.warnings;
        result.warnings.extend(
            plan.unused.iter().filter(|name| set.contains_key(*name)).map(|name| {
                format!("--set {name} is not used because its schema forbids the value")
            }),
        );
        let stopped = match stopped {
            None => self.send(name, plan.cases, of_tool, &mut result, &mut sightings).await.stopped,
            stopped => stopped,
        };
        let usual = Usual::of(&result.heard);
        result.unrelated = usual.count(&mut result.observed.counts, &result.heard);
        // Repeating and shrinking have the same time again.
        let of_tool = Deadline::after(budget);
        result.observed.stopped = stopped;

        let is_allowed = |id: &str| allow.iter().any(|allowed| allowed == id);
        let mut sightings: Vec<Sighting> =
            sightings.into_values().filter(|one| !is_allowed(one.flaw.rule.id)).collect();
        result.unreported = sightings.len().saturating_sub(PER_TOOL);
        sightings.truncate(PER_TOOL);
        for sighting in sightings {
            result.causes.push(sighting.flaw.cause());
            let finding = self.finding(tool, schema.as_ref(), of_tool, sighting, &usual).await;
            result.observed.findings.push(finding);
        }
        let valid = usual.valid;
        let valid_succeeded = result.observed.counts.valid_succeeded;
        let message = match plan.none_valid {
            true => Some("no input that matches its schema could be generated".to_owned()),
            false => (valid > 0 && valid_succeeded == 0)
                .then(|| format!("none of {valid} valid inputs succeeded")),
        };
        if let Some(message) = message.filter(|_| !is_allowed(NEVER.id)) {
            let seen = if plan.none_valid { 0 } else { valid };
            result.causes.push(Some(NEVER.id.to_owned()));
            result.observed.findings.push(Finding {
                rule: NEVER.id.to_owned(),
                severity: NEVER.severity,
                tool: name.to_owned(),
                at: "/inputSchema".to_owned(),
                message,
                seen,
                ..Finding::default()
            });
        }
        result.is_complete = self.lost.get().is_none() && !self.is_late.load(Ordering::Relaxed);
        result
    }

    /// Sends inputs that succeeded in a recording, or else likely ones until one succeeds. Returns the values of the
    /// first that succeeded, and the reason for stopping early.
    async fn open(
        &self,
        tool: &Definition,
        schema: Option<&Compiled>,
        of_tool: Deadline,
        result: &mut ToolResult,
        sightings: &mut Sightings,
    ) -> (Option<Map<String, Value>>, Option<String>) {
        let Openings { recorded, likely } =
            Openings::of(tool, &self.successes, &self.config.set, &self.around);
        let case = |about: &str, arguments: Map<String, Value>| Case {
            kind: InputKind::Known,
            about: about.to_owned(),
            validity: generate::validity(schema, tool.input_schema(), &arguments),
            arguments,
        };
        let cases: Vec<Case> = recorded
            .into_iter()
            .map(|arguments| case("an input that succeeded in a recording", arguments))
            .collect();
        result.planned += cases.len();
        let Sent { mut accepted, mut stopped } =
            self.send(tool.name(), cases, of_tool, result, sightings).await;
        let is_empty = |value: &Value| match value {
            Value::Array(list) => list.is_empty(),
            Value::Object(fields) => fields.is_empty(),
            _ => false,
        };
        if let Some(input) = &mut accepted {
            // An empty list would hide what can be in it.
            input.retain(|_, value| !is_empty(value));
            return (accepted, stopped);
        }
        for arguments in likely {
            if accepted.is_some() || stopped.is_some() {
                break;
            }
            result.planned += 1;
            let cases = vec![case("a likely input", arguments)];
            Sent { accepted, stopped } =
                self.send(tool.name(), cases, of_tool, result, sightings).await;
        }
        // What is made in any case need not be known, and leaves room for other values.
        let simplest = generate::plainest(tool.input_schema(), &self.config.set);
        if let Some(input) = &mut accepted {
            input.retain(|name, value| {
                self.config.set.contains_key(name)
                    || (simplest.get(name) != Some(&*value) && !is_empty(value))
            });
        }
        (accepted, stopped)
    }

    /// Sends the inputs.
    async fn send(
        &self,
        tool: &str,
        cases: Vec<Case>,
        of_tool: Deadline,
        result: &mut ToolResult,
        sightings: &mut Sightings,
    ) -> Sent {
        let mut accepted = None;
        let stopped =
            self.send_each(tool, cases, of_tool, result, sightings, &mut accepted).await.err();
        Sent { accepted, stopped }
    }

    /// Sends the inputs; the error is the reason for stopping early.
    async fn send_each(
        &self,
        tool: &str,
        cases: Vec<Case>,
        of_tool: Deadline,
        result: &mut ToolResult,
        sightings: &mut Sightings,
        accepted: &mut Option<Map<String, Value>>,
    ) -> Result<(), String> {
        let judge = self.judge();
        let total = cases.len();
        for (number, case) in cases.into_iter().enumerate() {
            result.controls.simulate(&judge, tool, &case);
            if self.config.stop.is_made() {
                return Err(INTERRUPTED.to_owned());
            }
            if self.is_out_of_time() {
                return Err("the time limit was reached".to_owned());
            }
            if of_tool.is_over() {
                return Err("the time limit of a tool was reached".to_owned());
            }
            if number % PROGRESS_STEP == 0 {
                self.progress.working(&format!("{tool} {number}/{total}"));
            }
            let called = tokio::select! {
                called = self.live.call(tool, &case.arguments) => called,
                () = self.config.stop.made() => return Err(INTERRUPTED.to_owned()),
            };
            let called = match called {
                Ok(called) => called,
                Err(why) => return Err(self.lost.get_or_init(|| why).clone()),
            };
            let reaction = Reaction::from(&called.outcome);
            let validity = case.judged(reaction);
            if reaction == Reaction::Accepted && accepted.is_none() {
                *accepted = Some(case.arguments.clone());
            }
            if called.outcome.is_answer() {
                let nanos = u64::try_from(called.latency.as_nanos());
                result.latencies.push(nanos.unwrap_or(u64::MAX));
            }
            let mut flaws = judge.flaws(tool, &case.arguments, &validity, &called.outcome);
            let waited = Duration::from_millis(self.timeouts.0);
            flaws.iter_mut().for_each(|flaw| flaw.note_ping(called.is_alive, waited));
            result.slow += u64::from(called.is_alive);
            let gone = self.live.gone_after(&called.outcome).await;
            if gone.is_some() {
                flaws.iter_mut().for_each(Flaw::mark_as_gone);
            }
            result.heard.push(Heard::of(case.kind, &validity, &called.outcome));
            let observed = &mut result.observed;
            count(&mut observed.counts, &called.outcome, &flaws);
            *observed.inputs.entry(case.kind.name().to_owned()).or_default() += 1;
            *observed.endings.entry(called.outcome.class().to_owned()).or_default() += 1;
            for flaw in flaws {
                let flaw = Flaw { message: self.live.redact(&flaw.message), ..flaw };
                note(sightings, flaw, &case, &called.shown);
            }
            if let Some(why) = gone {
                return Err(self.lost.get_or_init(|| why).clone());
            }
            let FuzzCounts { crashes, hangs, .. } = observed.counts;
            let slow = result.slow;
            if crashes >= MAX_CRASHES || hangs + slow >= MAX_HANGS {
                let timeouts = hangs + slow;
                return Err(format!("stopped after {crashes} crashes and {timeouts} time-outs"));
            }
        }
        Ok(())
    }

    /// Sends the input again, shrinks it as far as possible, and makes the finding.
    async fn finding(
        &self,
        tool: &Definition,
        schema: Option<&Compiled>,
        of_tool: Deadline,
        sighting: Sighting,
        usual: &Usual,
    ) -> Finding {
        let Sighting { flaw, case, mut answer, seen } = sighting;
        let budget = match flaw.rule.id {
            _ if self.lost.get().is_some() || self.is_out_of_time() || of_tool.is_over() => 0,
            id if id == HANG.id || id == SLOW.id => SHRINK_HANGS.min(self.config.shrink_calls),
            _ => self.config.shrink_calls,
        };
        let (mut input, mut message) = (case.arguments, flaw.message.clone());
        let mut reproduced = false;
        let again = match budget {
            0 => Again::Otherwise,
            _ => self.fails_again(tool, schema, &flaw, &input, usual).await,
        };
        // An answer of a tool cannot be the machine's doing, and says nothing of another answer.
        let is_of_answer = ![CRASH.id, HANG.id, SLOW.id].contains(&flaw.rule.id);
        let has_stopped = is_of_answer && matches!(again, Again::Unrelated);
        if let Again::Same(shown) = again {
            (message, answer, reproduced) = (shown.message, shown.answer, true);
            let mut shrink = Shrink::new(input, budget - 1);
            while self.lost.get().is_none()
                && !self.is_out_of_time()
                && !of_tool.is_over()
                && let Some(smaller) = shrink.next()
            {
                if let Again::Same(shown) =
                    self.fails_again(tool, schema, &flaw, &smaller, usual).await
                {
                    (message, answer) = (shown.message, shown.answer);
                    shrink.accept(smaller);
                }
            }
            input = shrink.into_best();
        }
        let is_lost = self.lost.get().is_some();
        let (severity, again) = match (reproduced, budget) {
            (false, 0) if is_lost => {
                (flaw.rule.severity, "; not sent again because the server is gone")
            }
            (true, _) => (flaw.rule.severity, ""),
            (false, _) if has_stopped => (flaw.rule.severity, HAS_STOPPED),
            // What was seen once may be the machine's doing.
            (false, 0) => (flaw.rule.severity.min(Severity::Warning), NOT_SENT_AGAIN),
            (false, _) => (flaw.rule.severity.min(Severity::Warning), NOT_AGAIN),
        };
        Finding {
            rule: flaw.rule.id.to_owned(),
            severity,
            tool: tool.name().to_owned(),
            at: flaw.at,
            message: format!("{message} ({}{again})", case.about),
            input: clip(&replay::ascii(&Value::Object(input.clone())), SHOWN).into_owned(),
            answer: clip(&answer, SHOWN).into_owned(),
            seen,
            reproduced,
            replay: replay::call(
                self.live.shown_spec(),
                tool.name(),
                &input,
                Some(self.timeouts),
                &str::to_owned,
            ),
        }
    }

    /// Sends an input again, and returns the message and the answer if it shows the same flaw.
    async fn fails_again(
        &self,
        tool: &Definition,
        schema: Option<&Compiled>,
        flaw: &Flaw,
        input: &Map<String, Value>,
        usual: &Usual,
    ) -> Again {
        let called = tokio::select! {
            called = self.live.call(tool.name(), input) => called,
            () = self.config.stop.made() => return Again::Otherwise,
        };
        let called = match called {
            Ok(called) => called,
            Err(why) => {
                self.lost.get_or_init(|| why);
                return Again::Otherwise;
            }
        };
        if let Some(why) = self.live.gone_after(&called.outcome).await {
            self.lost.get_or_init(|| why);
        }
        let validity = generate::validity(schema, tool.input_schema(), input);
        let mut found = self.judge().flaws(tool.name(), input, &validity, &called.outcome);
        let waited = Duration::from_millis(self.timeouts.0);
        found.iter_mut().for_each(|flaw| flaw.note_ping(called.is_alive, waited));
        match found.into_iter().find(|found| found.is_same(flaw)) {
            Some(same) => {
                let message = self.live.redact(&same.message);
                Again::Same(Shown { message, answer: called.shown })
            }
            None if usual.is_unrelated(&called.outcome) => Again::Unrelated,
            None => Again::Otherwise,
        }
    }
}

const NOT_AGAIN: &str = "; not reproduced when sent again";
const HAS_STOPPED: &str = "; when sent again, it failed as all other calls did by then";
const NOT_SENT_AGAIN: &str = "; not sent again: the time was up";
const INTERRUPTED: &str = "interrupted";
/// The number of inputs between two updates of the progress bar.
const PROGRESS_STEP: usize = 10;

/// The result of sending inputs.
struct Sent {
    /// The first input that succeeded.
    accepted: Option<Map<String, Value>>,
    /// The reason for stopping early.
    stopped: Option<String>,
}

/// The answer to an input that is sent again.
enum Again {
    /// It shows the same flaw.
    Same(Shown),
    /// It does not.
    Otherwise,
    /// It says nothing about the input, since the tool fails with valid ones too.
    Unrelated,
}

/// A flaw as an input showed it.
struct Shown {
    message: String,
    answer: String,
}

/// A flaw with the smallest input that showed it so far.
struct Sighting {
    flaw: Flaw,
    case: Case,
    answer: String,
    seen: u64,
}

/// Sightings by the rank of their rule and the key of their flaw.
type Sightings = BTreeMap<(usize, String), Sighting>;

/// Keeps the smallest input of each flaw.
fn note(sightings: &mut Sightings, flaw: Flaw, case: &Case, answer: &str) {
    let rank = RULES.iter().position(|rule| rule.id == flaw.rule.id).unwrap_or(usize::MAX);
    let size = |case: &Case| Value::Object(case.arguments.clone()).to_string().len();
    let key = (rank, flaw.key.clone());
    let new = |seen| Sighting { flaw, case: case.clone(), answer: answer.to_owned(), seen };
    match sightings.entry(key) {
        Slot::Vacant(slot) => {
            slot.insert(new(1));
        }
        Slot::Occupied(mut slot) => {
            let known = slot.get_mut();
            known.seen += 1;
            if size(case) < size(&known.case) {
                *known = new(known.seen);
            }
        }
    }
}

/// Counts one call.
fn count(counts: &mut FuzzCounts, outcome: &Outcome, flaws: &[Flaw]) {
    let has = |ids: &[&str]| u64::from(flaws.iter().any(|flaw| ids.contains(&flaw.rule.id)));
    let reaction = Reaction::from(outcome);
    counts.calls += 1;
    counts.crashes += has(&[CRASH.id]);
    counts.hangs += has(&[HANG.id]);
    counts.leaks += has(&[TRACE.id, SECRET.id, PLACE.id]);
    let is_result = matches!(outcome, Outcome::Result { .. } | Outcome::Invalid { .. });
    counts.results += u64::from(is_result);
    counts.invalid_results += has(&[INVALID_RESULT.id]);
    counts.answers += u64::from(reaction != Reaction::NoAnswer);
}

/// The value that must not come back, from the seed: two runs with one seed are the same.
fn secret(seed: u64) -> String {
    let mut draws = Draws::from_seed(seed ^ 0x5ec2_e700);
    format!("karat{:016x}{:016x}", draws.bits(), draws.bits())
}

/// A stable hash of a name (FNV-1a): no tool changes the inputs of another.
fn hash(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
