//! Fuzzing: made-up inputs from every input schema, and what the server makes of them.
//!
//! Stations: [`generate`] (inputs, each known to keep or to break its schema), a live server that is
//! started again when it falls over, [`judge`] (what is wrong with an answer), [`shrink`] (a small input
//! that fails in the same way), and [`run()`], which puts them in line and returns the report. The same
//! server, seed and number of cases give the same calls in the same order. Tools that destroy are left
//! alone unless the user allows them (see [`crate::probe::caution`]).

mod base;
pub mod generate;
pub mod judge;
mod leak;
mod place;
pub(crate) mod shape;
pub mod shrink;
mod texts;
pub(crate) mod values;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use karat_core::dataset::Digest;
use karat_core::provenance::Stopwatch;
use karat_core::report::{
    self, Control, DatasetRef, Evaluation, Item, ItemError, Measured, Report, SystemRef,
};
use karat_core::run::{Event, Listener};
use karat_core::schema::Compiled;
use karat_io::text::clip;
use karat_mcp::{Definition, Options, ServerInfo, ServerSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::judge::{Flaw, Judge, Verdict};
use crate::compliance::Contract;
use crate::observation::Outcome;
use crate::probe::live::{Live, ProbeError, Skipped, choose};
use crate::probe::{self, Finding, Severity, counted, rate, replay};

/// What an input is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// A value that the schema allows, at its edge.
    Edge,
    /// At a bound and one beyond.
    Boundary,
    /// A value of another type.
    Type,
    /// Something is left out.
    Missing,
    /// Something is too much.
    Extra,
    /// Text that is handled wrongly more often than not.
    Unicode,
    /// Text that is dangerous where it is put into something.
    Injection,
    /// Nested deep.
    Deep,
    /// Very long.
    Huge,
    /// Some of all.
    Mixed,
}

/// Whether an input keeps its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Validity {
    /// It does.
    Valid,
    /// It does not.
    Invalid {
        /// The keyword that it breaks first.
        keyword: String,
        /// Where that stands in the schema.
        at: String,
        /// In words.
        why: String,
    },
    /// Engines may differ (formats), or there is no schema to hold it to.
    Unclear,
}

/// One input.
#[derive(Clone, Debug)]
pub struct Case {
    /// What it is for.
    pub kind: Kind,
    /// What it is, in words.
    pub about: String,
    /// The arguments.
    pub arguments: Map<String, Value>,
    /// Whether they keep the schema.
    pub validity: Validity,
}

/// How to fuzz.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Inputs for each tool.
    pub cases: usize,
    /// The seed of the mixtures.
    pub seed: u64,
    /// Only these tools; all where it is empty.
    pub tools: Vec<String>,
    /// Values that are known to work, by the name of the parameter.
    pub known: Map<String, Value>,
    /// Whether tools that destroy are called too.
    pub allow_destructive: bool,
    /// When to stop, whatever is left.
    pub time_limit: Option<Duration>,
    /// Calls that making one failing input smaller may take.
    pub shrink_calls: usize,
    /// Rules that are not reported.
    pub allow: Vec<String>,
    /// The mildest finding that fails the run.
    pub fail_on: Option<Severity>,
    /// How the session is held.
    pub options: Options,
}

/// What came of it.
#[derive(Debug)]
pub struct Fuzzed {
    /// The report, gated.
    pub report: Report,
    /// What was found, tool by tool, the worst first.
    pub findings: Vec<Finding>,
    /// Tools that were not called.
    pub skipped: Vec<Skipped>,
}

/// The variable with the bait.
pub(crate) const SECRET_NAME: &str = "KARAT_CANARY_SECRET";
/// So many failures of one kind, and the tool has said what it has to say.
const CRASHES: u64 = 10;
const HANGS: u64 = 3;
/// Making an input that hangs smaller costs a time-out each time.
const SHRINK_HANGS: usize = 8;
/// How many findings of one tool are made smaller and reported; more are counted.
const PER_TOOL: usize = 25;
/// How much of inputs and answers stands in a finding.
const SHOWN: usize = 600;

/// Fuzzes a server.
///
/// # Errors
/// When nothing could be measured.
pub async fn run(
    spec: &ServerSpec,
    settings: &Settings,
    folder: &Path,
    listener: &dyn Listener,
) -> Result<Fuzzed, ProbeError> {
    let stopwatch = Stopwatch::start();
    let secret = bait(settings.seed);
    let live = Live::start(spec, &settings.options, &[(SECRET_NAME, &secret)]).await?;
    let tools = live.tools().await?;
    let (chosen, skipped) = choose(&tools, &settings.tools, settings.allow_destructive)?;
    let contract = Contract::new(&tools, live.info().revision);
    let mut fuzzer = Fuzzer {
        live: &live,
        settings,
        judge: Judge { contract: &contract, secret: Some(&secret) },
        ends: settings.time_limit.and_then(|limit| Instant::now().checked_add(limit)),
        done: Vec::new(),
        latencies: Vec::new(),
        lost: None,
        late: false,
        controls: Played::default(),
        chosen: chosen.iter().map(|tool| tool.name().to_owned()).collect(),
        listener,
    };
    listener.on(&Event::Started { total: chosen.len() * settings.cases, resumed: 0 });
    for tool in &chosen {
        if fuzzer.lost.is_some() || fuzzer.late {
            break;
        }
        let done = fuzzer.tool(tool).await;
        fuzzer.done.push(done);
    }
    listener.on(&Event::Finished);
    live.renew().await;
    fuzzer.finish(&tools, skipped, &stopwatch, folder)
}

/// The value that must not come back, of the seed: no two runs with one seed differ.
pub(crate) fn bait(seed: u64) -> String {
    let mut draws = karat_metrics::stats::random::Draws::from_seed(seed ^ 0x5ec2_e700);
    format!("karat{:016x}{:016x}", draws.bits(), draws.bits())
}

/// What was counted over calls.
#[derive(Clone, Copy, Debug, Default, Serialize)]
struct Tally {
    calls: u64,
    answers: u64,
    crashes: u64,
    hangs: u64,
    results: u64,
    invalid_results: u64,
    leaks: u64,
    valid: u64,
    valid_not_refused: u64,
    valid_succeeded: u64,
    invalid: u64,
    invalid_refused: u64,
}

impl Tally {
    fn add(&mut self, validity: &Validity, outcome: &Outcome, flaws: &[Flaw]) {
        let found = |rules: &[&str]| flaws.iter().any(|flaw| rules.contains(&flaw.rule.id));
        let verdict = judge::verdict(outcome);
        self.calls += 1;
        self.crashes += u64::from(found(&[judge::CRASH.id]));
        self.hangs += u64::from(found(&[judge::HANG.id]));
        self.leaks += u64::from(found(&[judge::TRACE.id, judge::SECRET.id, judge::PLACE.id]));
        let result = matches!(outcome, Outcome::Result { .. } | Outcome::Invalid { .. });
        self.results += u64::from(result);
        self.invalid_results += u64::from(found(&[judge::INVALID_RESULT.id]));
        if verdict == Verdict::NoAnswer {
            return;
        }
        self.answers += 1;
        match validity {
            Validity::Valid => {
                self.valid += 1;
                self.valid_not_refused += u64::from(verdict != Verdict::Refused);
                self.valid_succeeded += u64::from(verdict == Verdict::Accepted);
            }
            Validity::Invalid { .. } => {
                self.invalid += 1;
                self.invalid_refused += u64::from(verdict != Verdict::Accepted);
            }
            Validity::Unclear => {}
        }
    }

    fn plus(self, other: Tally) -> Tally {
        Tally {
            calls: self.calls + other.calls,
            answers: self.answers + other.answers,
            crashes: self.crashes + other.crashes,
            hangs: self.hangs + other.hangs,
            results: self.results + other.results,
            invalid_results: self.invalid_results + other.invalid_results,
            leaks: self.leaks + other.leaks,
            valid: self.valid + other.valid,
            valid_not_refused: self.valid_not_refused + other.valid_not_refused,
            valid_succeeded: self.valid_succeeded + other.valid_succeeded,
            invalid: self.invalid + other.invalid,
            invalid_refused: self.invalid_refused + other.invalid_refused,
        }
    }

    fn metrics(&self) -> Vec<Measured> {
        vec![
            rate(
                "schema.rejects_invalid",
                self.invalid_refused,
                self.invalid,
                "no input that breaks the schema was answered",
            ),
            rate(
                "schema.accepts_valid",
                self.valid_not_refused,
                self.valid,
                "no input that keeps the schema was answered",
            ),
            rate("crash_rate", self.crashes, self.calls, "no call was made"),
            rate("hang_rate", self.hangs, self.calls, "no call was made"),
            rate("invalid_result_rate", self.invalid_results, self.results, "there was no result"),
            rate("leak_rate", self.leaks, self.answers, "nothing was answered"),
        ]
    }
}

/// A flaw with the smallest input that showed it so far.
struct Seen {
    flaw: Flaw,
    case: Case,
    answer: String,
    times: u64,
}

/// What was done with one tool.
struct Done {
    tool: String,
    planned: usize,
    tally: Tally,
    kinds: BTreeMap<Kind, u64>,
    endings: BTreeMap<&'static str, u64>,
    findings: Vec<Finding>,
    unreported: usize,
    stopped: Option<String>,
    warnings: Vec<String>,
}

struct Fuzzer<'a> {
    live: &'a Live,
    settings: &'a Settings,
    judge: Judge<'a>,
    ends: Option<Instant>,
    done: Vec<Done>,
    latencies: Vec<Duration>,
    lost: Option<String>,
    late: bool,
    controls: Played,
    /// The names of the tools, in the order in which they are called.
    chosen: Vec<String>,
    listener: &'a dyn Listener,
}

impl Fuzzer<'_> {
    async fn tool(&mut self, tool: &Definition) -> Done {
        let name = tool.name().to_owned();
        let seed = self.settings.seed ^ seed_of(&name);
        let Settings { known, cases, .. } = self.settings;
        let plan = generate::plan(tool.input_schema(), known, *cases, seed);
        let mut done = Done {
            tool: name.clone(),
            planned: plan.cases.len(),
            tally: Tally::default(),
            kinds: BTreeMap::new(),
            endings: BTreeMap::new(),
            findings: Vec::new(),
            unreported: 0,
            stopped: None,
            warnings: plan.warnings,
        };
        let mut seen: BTreeMap<(usize, String), Seen> = BTreeMap::new();
        for case in plan.cases {
            self.controls.play(&self.judge, &name, &case);
            if self.out_of_time() {
                done.stopped = Some("the time was up".to_owned());
                break;
            }
            let answered = match self.live.call(&name, &case.arguments).await {
                Ok(answered) => answered,
                Err(why) => {
                    done.stopped = Some(why.clone());
                    self.lost = Some(why);
                    break;
                }
            };
            self.latencies.extend(answered.outcome.is_answer().then_some(answered.latency));
            let mut flaws =
                self.judge.flaws(&name, &case.arguments, &case.validity, &answered.outcome);
            let gone = self.live.gone_after(&answered.outcome).await;
            if gone.is_some() {
                flaws.iter_mut().for_each(judge::gone);
            }
            done.tally.add(&case.validity, &answered.outcome, &flaws);
            *done.kinds.entry(case.kind).or_default() += 1;
            *done.endings.entry(answered.outcome.class()).or_default() += 1;
            self.listener.on(&Event::Asked { id: &name, failed: !flaws.is_empty() });
            for flaw in flaws {
                let flaw = Flaw { message: self.live.hide(&flaw.message), ..flaw };
                note(&mut seen, flaw, &case, &answered.shown);
            }
            if let Some(why) = gone {
                done.stopped = Some(why.clone());
                self.lost = Some(why);
                break;
            }
            if done.tally.crashes >= CRASHES || done.tally.hangs >= HANGS {
                done.stopped = Some(format!(
                    "given up after {} crashes and {} calls without an answer",
                    done.tally.crashes, done.tally.hangs
                ));
                break;
            }
        }
        let allowed = |seen: &Seen| !self.settings.allow.iter().any(|id| id == seen.flaw.rule.id);
        let mut seen: Vec<Seen> = seen.into_values().filter(allowed).collect();
        done.unreported = seen.len().saturating_sub(PER_TOOL);
        seen.truncate(PER_TOOL);
        let judge = tool.input_schema().and_then(|schema| Compiled::new(schema).ok());
        for one in seen {
            let finding = self.finding(tool, judge.as_ref(), one).await;
            done.findings.push(finding);
        }
        let never = !self.settings.allow.iter().any(|id| id == judge::NEVER.id);
        if never && plan.none_valid {
            let message = "no input could be made that keeps its schema".to_owned();
            done.findings.push(never_succeeded(&name, 0, message));
        } else if never && done.tally.valid > 0 && done.tally.valid_succeeded == 0 {
            let message = format!("none of {} valid inputs led to a success", done.tally.valid);
            done.findings.push(never_succeeded(&name, done.tally.valid, message));
        }
        done
    }

    fn out_of_time(&mut self) -> bool {
        self.late |= self.ends.is_some_and(|ends| Instant::now() >= ends);
        self.late
    }

    /// Makes the input small, as long as that is possible, and writes the finding down.
    async fn finding(
        &mut self,
        tool: &Definition,
        schema: Option<&Compiled>,
        seen: Seen,
    ) -> Finding {
        let Seen { flaw, case, mut answer, times } = seen;
        let name = tool.name();
        let budget = match flaw.rule.id {
            _ if self.lost.is_some() || self.out_of_time() => 0,
            id if id == judge::HANG.id => SHRINK_HANGS.min(self.settings.shrink_calls),
            _ => self.settings.shrink_calls,
        };
        let (live, judge) = (self.live, &self.judge);
        let (mut lost, mut message) = (None, flaw.message.clone());
        let mut fails_again = async |input: &Map<String, Value>| {
            if lost.is_some() {
                return false;
            }
            match live.call(name, input).await {
                Ok(answered) => {
                    lost = live.gone_after(&answered.outcome).await;
                    let validity = generate::validity(schema, input);
                    let flaws = judge.flaws(name, input, &validity, &answered.outcome);
                    let same = flaws
                        .into_iter()
                        .find(|found| found.rule.id == flaw.rule.id && found.key == flaw.key);
                    match same {
                        Some(found) => {
                            message = live.hide(&found.message);
                            answer = answered.shown;
                            true
                        }
                        None => false,
                    }
                }
                Err(why) => {
                    lost = Some(why);
                    false
                }
            }
        };
        let (mut input, mut reproduced) = (case.arguments.clone(), false);
        if budget > 0 {
            reproduced = fails_again(&input).await;
            if reproduced {
                (input, _) = shrink::shrink(input, budget - 1, fails_again).await;
            }
        }
        if lost.is_some() {
            self.lost = lost;
        }
        // A time-out that does not come again may be the machine's.
        let severity = match flaw.rule.severity {
            Severity::Error if flaw.rule.id == judge::HANG.id && budget > 0 && !reproduced => {
                Severity::Warning
            }
            other => other,
        };
        let again = match (reproduced, budget) {
            (false, 0) if self.lost.is_some() => "; not sent again, for the server is gone",
            (true, _) | (_, 0) => "",
            (false, _) => "; not when it was sent again",
        };
        Finding {
            rule: flaw.rule.id,
            severity,
            tool: name.to_owned(),
            at: flaw.at,
            message: format!("{message} ({}{again})", case.about),
            input: clip(&replay::ascii(&Value::Object(input.clone())), SHOWN).into_owned(),
            answer: clip(&answer, SHOWN).into_owned(),
            seen: times,
            reproduced,
            replay: replay::call(live.shown_spec(), name, &input, &str::to_owned),
        }
    }

    fn finish(
        self,
        tools: &[Definition],
        skipped: Vec<Skipped>,
        stopwatch: &Stopwatch,
        folder: &Path,
    ) -> Result<Fuzzed, ProbeError> {
        let total = self.done.iter().fold(Tally::default(), |sum, done| sum.plus(done.tally));
        if total.answers + total.crashes + total.hangs == 0 {
            let first = self.lost.unwrap_or_else(|| "no call was made".to_owned());
            return Err(ProbeError::Nothing(format!(
                "nothing was executed: none of {} calls was answered (first: {first})",
                total.calls
            )));
        }
        let mut metrics = total.metrics();
        metrics.push(counted("fuzz.tools", self.done.len() as u64));
        metrics.push(counted("fuzz.calls", total.calls));
        let findings: Vec<Finding> =
            self.done.iter().flat_map(|done| done.findings.iter().cloned()).collect();
        let mut warnings = Vec::new();
        for done in &self.done {
            if let Some(why) = &done.stopped {
                let (made, planned) = (done.tally.calls, done.planned);
                warnings.push(format!("{}: {made} of {planned} inputs: {why}", done.tool));
            }
            let of = |warning: &String| format!("{}: {warning}", done.tool);
            warnings.extend(done.warnings.iter().map(of));
            if done.unreported > 0 {
                let more = done.unreported;
                warnings.push(format!("{}: {more} more findings are not listed", done.tool));
            }
        }
        warnings.extend(not_reached(&self.chosen, self.done.len()));
        if self.late {
            warnings.push(
                "the time limit was reached, so another run may come further or not as far"
                    .to_owned(),
            );
        }
        // Looking for a server that is gone is no restart.
        let came_back = self.live.is_ours() || self.lost.is_none();
        warnings.extend(self.live.restarts_in_words().filter(|_| came_back));
        warnings.extend(self.live.remarks());
        warnings.extend(probe::live::skipped_in_words(&skipped));
        let mut items: Vec<Item> = self.done.iter().map(item).collect();
        items.sort_by(|a, b| a.id.cmp(&b.id));
        let gate = probe::gate(&findings, self.settings.fail_on, "findings");
        let report = Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Server,
            name: "fuzz".to_owned(),
            dataset: dataset(tools, self.settings),
            system: system(self.live, self.live.info()),
            runs: 1,
            seed: self.settings.seed,
            conventions: conventions(),
            metrics,
            slices: Vec::new(),
            items,
            controls: self.controls.controls(),
            comparison: None,
            gate: Some(gate),
            warnings,
            environment: stopwatch.environment(&self.latencies, Some(folder)),
        };
        Ok(Fuzzed { report, findings, skipped })
    }
}

/// The tools that had no turn, in words.
fn not_reached(chosen: &[String], reached: usize) -> Option<String> {
    const NAMED: usize = 8;
    let left = chosen.get(reached..).filter(|left| !left.is_empty())?;
    let named = left.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if left.len() > NAMED { ", …" } else { "" };
    let count = match left.len() {
        1 => "1 tool was not reached".to_owned(),
        n => format!("{n} tools were not reached"),
    };
    Some(format!("{count}: {named}{more}"))
}

/// Keeps the smallest input of each flaw.
fn note(seen: &mut BTreeMap<(usize, String), Seen>, flaw: Flaw, case: &Case, answer: &str) {
    let rank = judge::RULES.iter().position(|rule| rule.id == flaw.rule.id).unwrap_or(usize::MAX);
    let size = |case: &Case| Value::Object(case.arguments.clone()).to_string().len();
    match seen.entry((rank, flaw.key.clone())) {
        std::collections::btree_map::Entry::Vacant(entry) => {
            entry.insert(Seen { flaw, case: case.clone(), answer: answer.to_owned(), times: 1 });
        }
        std::collections::btree_map::Entry::Occupied(mut entry) => {
            let known = entry.get_mut();
            known.times += 1;
            if size(case) < size(&known.case) {
                let times = known.times;
                *known = Seen { flaw, case: case.clone(), answer: answer.to_owned(), times };
            }
        }
    }
}

fn never_succeeded(tool: &str, valid: u64, message: String) -> Finding {
    Finding {
        rule: judge::NEVER.id,
        severity: judge::NEVER.severity,
        tool: tool.to_owned(),
        at: "/inputSchema".to_owned(),
        message,
        input: String::new(),
        answer: String::new(),
        seen: valid,
        reproduced: false,
        replay: String::new(),
    }
}

/// A number for a name, the same for ever (FNV-1a): tools do not change each other's inputs.
fn seed_of(name: &str) -> u64 {
    name.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

fn item(done: &Done) -> Item {
    let metrics = done.tally.metrics();
    let error = (done.tally.calls == 0).then(|| ItemError {
        class: "not_called".to_owned(),
        message: done.stopped.clone().unwrap_or_else(|| "no input was made".to_owned()),
    });
    Item {
        id: done.tool.clone(),
        group: None,
        tags: BTreeMap::new(),
        metrics: metrics.into_iter().map(|measured| (measured.id, measured.value)).collect(),
        per_run: Vec::new(),
        observed: json!({
            "counts": done.tally,
            "inputs": done.kinds,
            "endings": done.endings,
            "findings": done.findings,
            "stopped": done.stopped,
        }),
        error,
    }
}

/// What was tried is made from the definitions, the seed and the number of cases.
fn dataset(tools: &[Definition], settings: &Settings) -> DatasetRef {
    let mut text = format!("fuzz/1 seed {} cases {}\n", settings.seed, settings.cases);
    if !settings.known.is_empty() {
        text.push_str(&Value::Object(settings.known.clone()).to_string());
        text.push('\n');
    }
    for tool in tools {
        text.push_str(&tool.raw().to_string());
        text.push('\n');
    }
    DatasetRef {
        id: "schemas".to_owned(),
        version: format!("seed-{}", settings.seed),
        digest: Digest::of(text.as_bytes()).to_string(),
    }
}

/// The server as reports name it.
pub(crate) fn system(live: &Live, info: &ServerInfo) -> SystemRef {
    let described = live.shown_spec().describe();
    let name = if info.name.is_empty() { described.clone() } else { info.name.clone() };
    SystemRef {
        kind: "mcp".to_owned(),
        name,
        version: Some(info.version.clone()).filter(|version| !version.is_empty()),
        settings: BTreeMap::from([
            ("server".to_owned(), described),
            ("protocol".to_owned(), info.revision.to_string()),
        ]),
    }
}

fn conventions() -> BTreeMap<String, String> {
    [
        ("valid", "by JSON Schema (2020-12 unless stated); where only a format is broken, neither valid nor invalid"),
        ("refused", "a protocol error, an HTTP status of 4xx, or a tool error that a validator marked; any error refuses an invalid input"),
        ("crash", "the server ended, or its connection failed"),
        ("interval", "Wilson, 95 %; inputs are chosen, not drawn, so it says how much was tried, not how likely a user meets it"),
    ]
    .into_iter()
    .map(|(name, rule)| (name.to_owned(), rule.to_owned()))
    .collect()
}

/// Servers of known quality, played on the same inputs without starting anything.
#[derive(Default)]
struct Played {
    cases: u64,
    invalid: u64,
    accepts_found: u64,
    ends_found: u64,
    refuses_found: u64,
}

impl Played {
    fn play(&mut self, judge: &Judge<'_>, tool: &str, case: &Case) {
        let flaws = |outcome: &Outcome| judge.flaws(tool, &case.arguments, &case.validity, outcome);
        let invalid = matches!(case.validity, Validity::Invalid { .. });
        let accepted = Outcome::Result { result: json!({"content": []}) };
        let refused = Outcome::Result { result: json!({"content": [], "isError": true}) };
        let taken = |flaw: &Flaw| [judge::ACCEPTED.id, judge::EXTRA.id].contains(&flaw.rule.id);
        self.cases += 1;
        self.invalid += u64::from(invalid);
        self.accepts_found += u64::from(flaws(&accepted).iter().any(taken));
        let ended = flaws(&Outcome::Crash { why: String::new() });
        self.ends_found += u64::from(ended.iter().any(|flaw| flaw.rule.id == judge::CRASH.id));
        self.refuses_found += u64::from(!flaws(&refused).is_empty());
    }

    fn controls(&self) -> Vec<Control> {
        let control = |name: &str, expected: &str, metric: Measured, ok: bool| Control {
            name: name.to_owned(),
            expected: expected.to_owned(),
            metrics: vec![metric],
            ok,
        };
        let none = "there is no such input";
        vec![
            control(
                "accepts-all",
                "a server that answers every input is found out by every invalid one",
                rate(
                    "schema.rejects_invalid",
                    self.invalid - self.accepts_found,
                    self.invalid,
                    none,
                ),
                self.accepts_found == self.invalid,
            ),
            control(
                "ends-on-all",
                "a server that ends on every input is found out by every one",
                rate("crash_rate", self.ends_found, self.cases, none),
                self.ends_found == self.cases,
            ),
            control(
                "refuses-all",
                "a server whose every answer is a tool error has no flaw",
                rate("crash_rate", self.refuses_found, self.cases, none),
                self.refuses_found == 0,
            ),
        ]
    }
}
