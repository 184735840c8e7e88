//! Attacks: is the server held together when somebody means harm?
//!
//! Canaries are planted (`ground`), known attacks are sent through every parameter that could carry
//! them ([`cases`]), and an attack counts as successful only when a canary says so: a token that could
//! only come from beyond the root, a file that only an obeyed command makes or that nobody may change, a
//! call that only the server can have made, an answer beyond all limits. The wording of an answer decides
//! nothing. A server that is lost on the way is not measured, unless something broke it before. Traffic
//! goes to the server that the user named and, from there, to this machine alone.

mod canary;
pub mod cases;
mod ground;
mod parameters;
mod raid;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use karat_core::aggregate::{self, Kind, Spec};
use karat_core::dataset::Digest;
use karat_core::provenance::Stopwatch;
use karat_core::report::{self, Control, DatasetRef, Evaluation, Item, Report, Verdict};
use karat_core::run::{Event, Listener};
use karat_mcp::{Definition, Engine, Options, ServerSpec};
use serde::Serialize;
use serde_json::{Map, Value, json};

use self::cases::{ATTACKS, Attack, Attempt, Proof};
use self::ground::Ground;
use self::raid::{Ask, Evidence, Raid, Reach, Tried};
use crate::fuzz::{SECRET_NAME, system};
use crate::observation::Outcome;
use crate::probe::live::{Answered, Live, ProbeError, Skipped, choose, skipped_in_words};
use crate::probe::{self, Finding, Severity, replay};

/// The four classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// What is given becomes a part of something that is obeyed.
    Injection,
    /// What should stay inside comes out.
    Exfiltration,
    /// More is reached than was granted.
    PrivilegeEscalation,
    /// The server stops serving.
    DenialOfService,
}

impl Class {
    /// All four.
    pub const ALL: [Class; 4] =
        [Class::Injection, Class::Exfiltration, Class::PrivilegeEscalation, Class::DenialOfService];

    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Class::Injection => "injection",
            Class::Exfiltration => "exfiltration",
            Class::PrivilegeEscalation => "privilege_escalation",
            Class::DenialOfService => "denial_of_service",
        }
    }
}

/// How an attack ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was tried and nothing happened.
    Held,
    /// A canary says that it worked.
    Broken,
    /// There is nothing that it could go through.
    NotApplicable,
    /// It happened and is not the server's alone to prevent.
    NotJudged,
    /// It could not be tried: no attempt was answered.
    NotExecuted,
}

impl Status {
    /// The name in reports.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Status::Held => "held",
            Status::Broken => "broken",
            Status::NotApplicable => "not_applicable",
            Status::NotJudged => "not_judged",
            Status::NotExecuted => "not_executed",
        }
    }
}

/// How to attack.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Recorded; the tokens are new in every run.
    pub seed: u64,
    /// Only these tools; all where it is empty.
    pub tools: Vec<String>,
    /// Values that are known to work, by the name of the parameter.
    pub known: Map<String, Value>,
    /// Only these classes; all where it is empty.
    pub classes: Vec<Class>,
    /// Only these attacks, by id; all where it is empty.
    pub cases: Vec<String>,
    /// Whether tools that destroy are called too.
    pub allow_destructive: bool,
    /// The folders that the server may read.
    pub roots: Vec<PathBuf>,
    /// Calls at once in a flood.
    pub flood: usize,
    /// When to stop, whatever is left.
    pub time_limit: Option<Duration>,
    /// Rules that are not reported.
    pub allow: Vec<String>,
    /// The mildest finding that fails the run.
    pub fail_on: Option<Severity>,
    /// How the session is held.
    pub options: Options,
}

/// What came of it.
#[derive(Debug)]
pub struct Attacked {
    /// The report, gated.
    pub report: Report,
    /// What broke, and what is worth a note.
    pub findings: Vec<Finding>,
    /// Tools that were not called.
    pub skipped: Vec<Skipped>,
    /// How many of each class ended how.
    pub tally: BTreeMap<Class, BTreeMap<Status, u64>>,
}

/// The metric.
const HELD: Spec = Spec { id: "attacks_held", kind: Kind::Rate };
/// How long a late canary is waited for at the end.
const LATE: Duration = Duration::from_millis(300);

/// Attacks a server.
///
/// # Errors
/// When nothing could be measured.
pub async fn run(
    spec: &ServerSpec,
    settings: &Settings,
    folder: &Path,
    listener: &dyn Listener,
) -> Result<Attacked, ProbeError> {
    let stopwatch = Stopwatch::start();
    let attacks = wanted(settings)?;
    let named = !settings.roots.is_empty();
    let roots = if named { settings.roots.clone() } else { folders_in(spec) };
    if let Some(wrong) = settings.roots.iter().find(|root| !root.is_dir()) {
        return Err(ProbeError::Wrong(format!("--root: {} is no folder", wrong.display())));
    }
    let ground = Ground::prepare(&roots, named)
        .await
        .map_err(|error| ProbeError::Wrong(format!("canaries cannot be planted: {error}")))?;
    let bait = [(SECRET_NAME, ground.env_token.as_str())];
    let live = Live::start(&within_reach(spec, &ground), &settings.options, &bait).await?;
    let tools = live.tools().await?;
    let (chosen, skipped) = choose(&tools, &settings.tools, settings.allow_destructive)?;

    let reach = Reach {
        is_local: is_local(spec),
        has_loopback: has_loopback(spec),
        is_ours: live.is_ours(),
    };
    let ends = settings.time_limit.and_then(|limit| Instant::now().checked_add(limit));
    let known = &settings.known;
    let mut raid = Raid::new(&live, &ground, known, reach);
    raid.flood = settings.flood;
    raid.ends = ends;
    listener.on(&Event::Started { total: chosen.len() * attacks.len(), resumed: 0 });
    let mut tried = raid.all(&chosen, &attacks, listener).await;
    listener.on(&Event::Finished);
    let (late, lost) = (raid.late, raid.lost);
    tokio::time::sleep(LATE).await;
    for one in &mut tried {
        one.look_again(&ground);
    }
    let controls = controls(&chosen, &attacks, &ground, reach).await;
    live.renew().await;
    let measured =
        Measurement { settings, live: &live, ground: &ground, tried, controls, late, lost };
    measured.report(&tools, &attacks, skipped, &stopwatch, folder)
}

fn wanted(settings: &Settings) -> Result<Vec<&'static Attack>, ProbeError> {
    for id in &settings.cases {
        if !ATTACKS.iter().any(|attack| attack.id() == id) {
            let hint = karat_io::input::nearest(id, ATTACKS.iter().map(|attack| attack.id()))
                .map(|near| format!(" (did you mean {near:?}?)"))
                .unwrap_or_default();
            return Err(ProbeError::Wrong(format!("--case: there is no attack {id:?}{hint}")));
        }
    }
    let chosen: Vec<&Attack> = ATTACKS
        .iter()
        .copied()
        .filter(|attack| settings.classes.is_empty() || settings.classes.contains(&attack.class))
        .filter(|attack| {
            settings.cases.is_empty() || settings.cases.iter().any(|id| id == attack.id())
        })
        .filter(|attack| !settings.allow.iter().any(|id| id == attack.rule.id))
        .collect();
    if chosen.is_empty() {
        return Err(ProbeError::Nothing("no attack is left of those that were chosen".to_owned()));
    }
    Ok(chosen)
}

/// Folders among the words of a command: what servers of files are given as their roots.
fn folders_in(spec: &ServerSpec) -> Vec<PathBuf> {
    let base = spec.cwd.clone().unwrap_or_default();
    let words = spec.command.iter().flatten().skip(1);
    words.map(|word| base.join(word)).filter(|path| path.is_dir()).collect()
}

/// The server with the canaries put into its sandbox, if it has one: an attack that holds because the
/// canary cannot be seen would say nothing about the server.
fn within_reach(spec: &ServerSpec, ground: &Ground) -> ServerSpec {
    let mut spec = spec.clone();
    if let Some(isolation) = spec.isolate.as_mut().filter(|one| one.engine != Engine::None) {
        isolation.write.push(ground.folder().to_owned());
        isolation.write.extend(ground.beside().map(Path::to_owned));
    }
    spec
}

/// Whether 127.0.0.1 is for the server what it is for us.
fn has_loopback(spec: &ServerSpec) -> bool {
    spec.isolate.as_ref().is_none_or(|isolation| match isolation.engine {
        Engine::None => true,
        Engine::Bwrap => isolation.network,
        Engine::Docker => false,
    })
}

/// Whether the server runs on this machine.
fn is_local(spec: &ServerSpec) -> bool {
    let Some(url) = &spec.url else { return true };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        place.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}

/// A server that obeys every attack, and one that refuses every call: the judgement must tell them
/// apart on the same tools.
async fn controls(
    tools: &[&Definition],
    attacks: &[&'static Attack],
    ground: &Ground,
    reach: Reach,
) -> Vec<Control> {
    let mut found = Vec::new();
    for (name, expected, obeys) in [
        ("obeys-all", "a server that does what every attack wants is broken by each", true),
        ("refuses-all", "a server that refuses every call is broken by none", false),
    ] {
        let played = Played { ground, obeys };
        let known = &Map::new();
        let mut raid = Raid::new(&played, ground, known, reach);
        raid.is_shown = false;
        let tried = raid.all(tools, attacks, &karat_core::run::Silent).await;
        let right = |one: &Tried| match one.status {
            Status::Broken | Status::NotJudged => obeys,
            Status::Held => !obeys,
            Status::NotApplicable => true,
            Status::NotExecuted => false,
        };
        let ok = tried.iter().all(right);
        let items: Vec<Item> = tried.iter().map(|one| item(one, "")).collect();
        let refs: Vec<&Item> = items.iter().collect();
        found.push(Control {
            name: name.to_owned(),
            expected: expected.to_owned(),
            metrics: vec![aggregate::measure(HELD, &refs, 1, 0)],
            ok,
        });
    }
    found
}

struct Played<'a> {
    ground: &'a Ground,
    obeys: bool,
}

impl Ask for Played<'_> {
    async fn call(&self, _: &str, attempt: &Attempt) -> Result<Answered, String> {
        let refused = Outcome::Result { result: json!({"content": [], "isError": true}) };
        let outcome = match attempt.proofs.first().filter(|_| self.obeys) {
            None => refused,
            Some(Proof::Mark(path)) => {
                let _ = std::fs::write(path, "");
                refused
            }
            Some(Proof::Called(path)) => {
                self.ground.canary.note(path);
                refused
            }
            Some(Proof::Visited) => {
                self.ground.canary.note("/");
                refused
            }
            Some(Proof::Changed) => {
                let _ = std::fs::write(self.ground.beyond(), "");
                refused
            }
            Some(Proof::Product) => said(&self.ground.product()),
            Some(Proof::Token(_, token)) => said(token),
            Some(Proof::Overrun | Proof::Ended) => Outcome::Timeout,
        };
        Ok(Answered { outcome, latency: Duration::ZERO, shown: String::new() })
    }

    async fn flood(
        &self,
        _: &str,
        _: &Map<String, Value>,
        _: usize,
    ) -> Result<(bool, String), String> {
        Ok((!self.obeys, String::new()))
    }
}

fn said(text: &str) -> Outcome {
    Outcome::Result { result: json!({"content": [{"type": "text", "text": text}]}) }
}

fn item(tried: &Tried, line: &str) -> Item {
    let held = match tried.status {
        Status::Held => Some(1.0),
        Status::Broken => Some(0.0),
        _ => None,
    };
    let tags = [
        ("class", tried.attack.class.name()),
        ("attack", tried.attack.id()),
        ("tool", tried.tool.as_str()),
        ("status", tried.status.name()),
    ];
    Item {
        id: tried.id(),
        group: None,
        tags: tags.into_iter().map(|(key, value)| (key.to_owned(), value.to_owned())).collect(),
        metrics: BTreeMap::from([(HELD.id.to_owned(), held)]),
        per_run: Vec::new(),
        observed: json!({
            "about": tried.attack.rule.summary,
            "status": tried.status,
            "attempts": tried.attempts,
            "evidence": tried.evidence,
            "why": tried.why,
            "again": line,
        }),
        error: None,
    }
}

struct Measurement<'a> {
    settings: &'a Settings,
    live: &'a Live,
    ground: &'a Ground,
    tried: Vec<Tried>,
    controls: Vec<Control>,
    late: bool,
    lost: Option<String>,
}

impl Measurement<'_> {
    fn report(
        self,
        tools: &[Definition],
        attacks: &[&'static Attack],
        skipped: Vec<Skipped>,
        stopwatch: &Stopwatch,
        folder: &Path,
    ) -> Result<Attacked, ProbeError> {
        let findings = self.findings();
        let gate = probe::gate(&findings, self.settings.fail_on, "attacks_held");
        if let Some(lost) = self.lost.as_ref().filter(|_| gate.verdict != Verdict::Fail) {
            return Err(ProbeError::Nothing(self.lost_in_words(lost)));
        }
        let executed =
            |one: &&Tried| matches!(one.status, Status::Held | Status::Broken | Status::NotJudged);
        if self.tried.iter().filter(executed).count() == 0 {
            let why = self.tried.iter().find_map(|one| one.why.clone()).unwrap_or_default();
            return Err(ProbeError::Nothing(format!(
                "nothing was executed: no attack found anything to go through (first: {why})"
            )));
        }
        let mut items: Vec<Item> = self
            .tried
            .iter()
            .filter(|one| one.status != Status::NotApplicable)
            .map(|one| item(one, &self.line(one)))
            .collect();
        items.extend(attacks.iter().filter_map(|attack| self.not_applicable(attack)));
        items.sort_by(|a, b| a.id.cmp(&b.id));
        let refs: Vec<&Item> = items.iter().collect();
        let metrics = vec![aggregate::measure(HELD, &refs, 1, self.settings.seed)];
        let slices = ["class", "attack"]
            .iter()
            .flat_map(|by| aggregate::slices(by, &[HELD], &items, 1, self.settings.seed))
            .collect();
        let mut tally: BTreeMap<Class, BTreeMap<Status, u64>> = BTreeMap::new();
        for one in &self.tried {
            *tally.entry(one.attack.class).or_default().entry(one.status).or_default() += 1;
        }
        let report = Report {
            schema: report::SCHEMA.to_owned(),
            evaluation: Evaluation::Server,
            name: "attack".to_owned(),
            dataset: dataset(tools, attacks),
            system: system(self.live, self.live.info()),
            runs: 1,
            seed: self.settings.seed,
            conventions: conventions(),
            metrics,
            slices,
            items,
            gate: Some(gate),
            warnings: self.warnings(&skipped),
            controls: self.controls,
            comparison: None,
            environment: stopwatch.environment(&[], Some(folder)),
        };
        Ok(Attacked { report, findings, skipped, tally })
    }

    fn lost_in_words(&self, lost: &str) -> String {
        let count = |status: Status| self.tried.iter().filter(|one| one.status == status).count();
        format!(
            "the server was lost, and {} attacks were not tried to their end ({} held, {} broken \
             before): {lost}",
            count(Status::NotExecuted),
            count(Status::Held),
            count(Status::Broken),
        )
    }

    /// One item for all tools to which an attack does not apply, with the reasons.
    fn not_applicable(&self, attack: &'static Attack) -> Option<Item> {
        let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let not =
            |one: &&Tried| one.attack.id() == attack.id() && one.status == Status::NotApplicable;
        for one in self.tried.iter().filter(not) {
            reasons.entry(one.why.as_deref().unwrap_or_default()).or_default().push(&one.tool);
        }
        if reasons.is_empty() {
            return None;
        }
        let mut whole = item(&Tried::not(attack, "", ""), "");
        whole.id = attack.id().to_owned();
        whole.tags.remove("tool");
        whole.observed = json!({
            "about": attack.rule.summary,
            "status": Status::NotApplicable,
            "tools": reasons,
        });
        Some(whole)
    }

    fn findings(&self) -> Vec<Finding> {
        let finding = |one: &Tried| {
            let evidence = one.evidence.as_ref()?;
            let through = match &one.parameter {
                Some(parameter) => format!(" through {}", parameter.name),
                None => String::new(),
            };
            let at = match &one.parameter {
                Some(parameter) => {
                    let name = parameter.outer.replace('~', "~0").replace('/', "~1");
                    format!("/inputSchema/properties/{name}")
                }
                None => String::new(),
            };
            let Evidence { about, sent, answer, canary } = evidence;
            Some(Finding {
                rule: one.attack.rule.id,
                severity: one.attack.rule.severity,
                tool: one.tool.clone(),
                at,
                message: format!("{}{through}: {canary} ({about})", one.attack.id()),
                input: sent.clone(),
                answer: answer.clone(),
                seen: 1,
                reproduced: true,
                replay: self.line(one),
            })
        };
        let told = |one: &&Tried| matches!(one.status, Status::Broken | Status::NotJudged);
        self.tried.iter().filter(told).filter_map(finding).collect()
    }

    /// The canaries of this run are gone, so the attack is tried anew.
    fn line(&self, one: &Tried) -> String {
        let roots: Vec<String> =
            self.settings.roots.iter().map(|root| root.display().to_string()).collect();
        let mut words = vec!["attack", "--tool", &one.tool, "--case", one.attack.id()];
        words.extend(roots.iter().flat_map(|root| ["--root", root]));
        replay::line(self.live.shown_spec(), &words, &|word| self.ground.masked(word))
    }

    fn warnings(&self, skipped: &[Skipped]) -> Vec<String> {
        let mut warnings = Vec::new();
        let count = |status: Status| self.tried.iter().filter(|one| one.status == status).count();
        if count(Status::NotJudged) > 0 {
            warnings.push(format!(
                "planted texts with orders that came back unmarked: {} (noted, not counted)",
                count(Status::NotJudged)
            ));
        }
        if count(Status::NotExecuted) > 0 {
            let first = self.tried.iter().find(|one| one.status == Status::NotExecuted);
            let why = first.and_then(|one| one.why.clone()).unwrap_or_default();
            warnings
                .push(format!("{} attacks could not be tried: {why}", count(Status::NotExecuted)));
        }
        if self.late {
            warnings.push("the time limit was reached before every attack was tried".to_owned());
        }
        warnings.extend(self.live.restarts_in_words());
        warnings.extend(self.live.remarks());
        warnings.extend(skipped_in_words(skipped));
        warnings
    }
}

fn dataset(tools: &[Definition], attacks: &[&'static Attack]) -> DatasetRef {
    let mut text = String::from("attacks/2\n");
    for attack in attacks {
        text.push_str(attack.id());
        text.push('\n');
    }
    for tool in tools {
        text.push_str(&tool.raw().to_string());
        text.push('\n');
    }
    DatasetRef {
        id: "attacks".to_owned(),
        version: "v2".to_owned(),
        digest: Digest::of(text.as_bytes()).to_string(),
    }
}

fn conventions() -> BTreeMap<String, String> {
    [
        ("broken", "a canary proves it: a token in the answer (as it is, base64, hexadecimal, reversed), a file that was made, or changed beyond the root, a call to the listener, a product that was computed, an answer beyond the limits or none"),
        ("held", "at least one attempt was answered and no canary showed anything"),
        ("not_executed", "no attempt was answered, the server was lost, or it refuses even plain arguments of the tool as invalid"),
        ("not_applicable", "no parameter could carry it, or doing so is what the tool is for"),
        ("not_judged", "a text that gives orders was passed on: whether a model obeys it is not the server's doing"),
        ("attacks_held", "held ÷ (held + broken), over attack, tool and parameter"),
    ]
    .into_iter()
    .map(|(name, rule)| (name.to_owned(), rule.to_owned()))
    .collect()
}
