//! Attacks: does the server withstand input that is meant to do harm?
//!
//! [`Attack`] is the evaluation. Canaries are planted (`canary_site`), known attacks (`ATTACKS`) are
//! sent through every parameter that could carry them (`attempts`, `runner`), and an attack counts as
//! successful only if a canary proves it: a token that is only outside the root, a file that only a
//! command makes or that nothing may change, a request that only the server can have sent, an answer
//! beyond all limits. The wording of an answer decides nothing. A server that is lost on the way is not
//! measured, unless an attack broke it before. Traffic goes to the server that the user named and, from
//! there, to this machine alone.

mod attacks;
mod attempts;
mod canary_site;
mod config;
mod contact;
mod controls;
mod failed_attempts;
mod items;
mod judgement;
mod languages;
mod listener;
mod memory;
mod pages;
pub(crate) mod parameters;
mod plain;
pub mod reach;
mod result;
mod runner;
mod score;
mod target;
mod unproven;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use karat_core::dataset::Digest;
use karat_core::error::EvalError;
use karat_core::evaluation::{
    Common, Computes, Entry, Evaluation, Observations, Questions, RunContext, Scored, Start,
};
use karat_core::journal::{Entry as Outcome, Outcome as Kept};
use karat_core::kind::Kind;
use karat_core::observed::AttackStatus;
use karat_core::project::Root;
use karat_core::report::{Control, DatasetRef, Property};
use karat_core::run::{Options, Progress, System};
use karat_io::Failure;
use karat_mcp::{Definition, Engine, ServerSpec};
use tokio::sync::Mutex;

pub(crate) use self::attacks::ATTACKS;
pub use self::attacks::{Class, KnownAttack};
use self::attempts::Access;
use self::canary_site::CanarySite;
pub use self::config::{Config, TIME_LIMIT};
pub(crate) use self::languages::runs_programs;
use self::memory::Memory;
pub use self::result::AttackResult;
use self::runner::AttackRunner;
pub use self::score::{findings, tally};
use crate::probe::SECRET_NAME;
use crate::probe::known_inputs::Successes;
use crate::probe::live::{self, LiveServer, Skipped};
use crate::probe::stop::Deadline;
use crate::probe::{self, Rule};
use crate::suggest::inputs::KnownValues;
use crate::system::Target;

/// The time for a server to clean up that is ended with a call under way.
const GRACE: Duration = Duration::from_secs(3);

/// The attack evaluation.
pub struct Attack;

/// Every rule of attacks, class by class.
pub fn rules() -> Vec<&'static Rule> {
    ATTACKS.iter().map(|attack| &attack.rule).collect()
}

/// The attacks of an entry.
pub struct Data {
    attacks: Vec<&'static KnownAttack>,
    successes: Successes,
    reference: DatasetRef,
}

/// One attack on one tool, or on the server as a whole.
pub struct Question {
    tool: Option<Arc<Definition>>,
    attack: &'static KnownAttack,
}

/// Everything a server reported apart from its answers, and the controls on its tools.
#[derive(Default)]
pub struct Facts {
    live: live::Facts,
    controls: Vec<Control>,
}

/// A live server that is attacked, with the canaries.
pub struct AttackSystem {
    live: LiveServer,
    site: CanarySite,
    access: Access,
    tools: Vec<Arc<Definition>>,
    skipped: Vec<Skipped>,
    /// Warnings about values of `set` that no tool takes.
    unused: Vec<String>,
    config: Config,
    successes: Successes,
    around: KnownValues,
    /// The server for command lines.
    shown: ServerSpec,
    deadline: Deadline,
    is_late: AtomicBool,
    memory: Mutex<Memory>,
    progress: Arc<dyn Progress>,
}

impl System for AttackSystem {
    type Question = Question;
    /// One result for each parameter; none if the time limit was reached before.
    type Answer = Vec<AttackResult>;

    async fn ask(&self, _: u32, question: &Question) -> Result<Vec<AttackResult>, Failure> {
        if self.deadline.is_over() || self.config.stop.is_made() {
            self.is_late.store(true, Ordering::Relaxed);
            return Ok(Vec::new());
        }
        let Question { tool, attack } = question;
        let name = tool.as_ref().map_or("the server", |tool| tool.name());
        self.progress.working(&format!("{name} {}", attack.id()));
        let mut memory = self.memory.lock().await;
        let mut runner = AttackRunner {
            target: &self.live,
            site: &self.site,
            config: &self.config,
            known: Some((&self.successes, &self.around)),
            access: self.access,
            shown: Some(&self.shown),
            deadline: self.deadline,
            memory: &mut memory,
        };
        let results = match tool {
            Some(tool) => runner.attack(tool, attack).await,
            None => vec![runner.attack_server(attack).await],
        };
        if self.deadline.is_over() || self.config.stop.is_made() {
            self.is_late.store(true, Ordering::Relaxed);
        }
        Ok(results)
    }
}

impl Evaluation for Attack {
    const KIND: Kind = Kind::Attack;
    const TABLE: &'static str = "attack";
    const TAKES: &'static [&'static str] = &["timeout_ms", "start_timeout_ms"];
    const ITEMS: &'static str = "attacks";

    type Config = Config;
    type Dataset = Data;
    type System = AttackSystem;
    type Facts = Facts;

    fn check(config: &Config, _: &mut Common) -> Result<(), EvalError> {
        live::target(config.server.as_ref(), config.builtin.as_deref(), None)?;
        let ids = ATTACKS.iter().map(|attack| attack.id());
        probe::check_known("cases", "attack", &config.cases, ids)?;
        let rules = ATTACKS.iter().map(|attack| attack.rule.id);
        let waived: Vec<String> = config.waive.iter().map(|waiver| waiver.rule.clone()).collect();
        probe::check_known("waive", "rule", &waived, rules.clone())?;
        probe::check_known("allow", "rule", &config.allow, rules)
    }

    /// The data is the list of attacks: what they do to a changed server is comparable.
    fn load(config: &Config, _: &Common, root: &Root<'_>) -> Result<Data, EvalError> {
        if let Some(wrong) = config.roots.iter().find(|folder| !root.path(folder).is_dir()) {
            let wrong = wrong.display();
            return Err(EvalError::config(format!("`roots`: {wrong} is not a folder")));
        }
        let paths: Vec<PathBuf> = config.recordings.iter().map(|path| root.path(path)).collect();
        let successes = Successes::read(&paths)?;
        let Config { server, tools, classes, cases, allow, .. } = config;
        // A program that is spoken to over its own pipes has no address, so no page can reach it.
        let has_address = server.as_ref().is_some_and(|spec| spec.url.is_some());
        let is_chosen = |attack: &&&KnownAttack| {
            (classes.is_empty() || classes.contains(&attack.class))
                && (cases.is_empty() || cases.iter().any(|id| id == attack.id()))
                && (!attack.is_on_server()
                    || cases.iter().any(|id| id == attack.id())
                    || has_address && tools.is_empty())
                && !allow.iter().any(|id| id == attack.rule.id)
        };
        let attacks: Vec<&KnownAttack> = ATTACKS.iter().filter(is_chosen).copied().collect();
        if attacks.is_empty() {
            return Err(EvalError::NothingMeasured("no attack is left to make".to_owned()));
        }
        let ids: String = attacks.iter().map(|attack| format!("{}\n", attack.id())).collect();
        let reference = DatasetRef {
            id: "attacks".to_owned(),
            version: "v2".to_owned(),
            digest: Digest::of(format!("attacks/2\n{ids}{}", successes.as_text()).as_bytes())
                .to_string(),
        };
        Ok(Data { attacks, successes, reference })
    }

    fn reference(data: &Data) -> DatasetRef {
        data.reference.clone()
    }

    fn reads(config: &Config) -> Vec<PathBuf> {
        config.recordings.clone()
    }

    fn computes(_: &Config, data: &Data) -> Option<Computes> {
        let slices = data.attacks.iter().flat_map(|attack| {
            [(Property::Class, attack.class.name()), (Property::Attack, attack.id())]
                .map(|(by, value)| (by.into(), value.to_owned()))
        });
        let metrics = vec![items::HELD, score::COVERAGE];
        Some(Computes { metrics, slices: slices.collect(), open: false })
    }

    fn whole(_: &Entry<Attack>) -> Option<&'static str> {
        Some("its attacks share one server and one time limit")
    }

    async fn start(
        entry: &Entry<Attack>,
        context: &RunContext<'_>,
    ) -> Result<Start<Attack>, EvalError> {
        let Common { timeout_ms, start_timeout_ms, .. } = entry.common;
        let timeouts = Some((timeout_ms, start_timeout_ms));
        let config = Config { timeouts, ..entry.config.clone() };
        let target = live::target(config.server.as_ref(), config.builtin.as_deref(), None)?;
        let given: Vec<PathBuf> =
            config.roots.iter().map(|root| context.folder.join(root)).collect();
        let are_given = !given.is_empty();
        let roots = if are_given { given } else { folders_in(&target, context.folder) };
        let site = CanarySite::prepare(&roots, are_given).await.map_err(|error| {
            EvalError::config(format!("the canaries cannot be planted: {error}"))
        })?;
        let options = karat_mcp::Options {
            grace: GRACE,
            ..live::session_options(&entry.common, context.folder, config.recorder.as_ref())
        };
        let bait = [(SECRET_NAME, site.env_token.as_str())];
        let live = LiveServer::start(&within_reach(&target, &site), &options, &bait).await?;
        let tools = live.tools().await?;
        let (chosen, skipped) = live::choose(&tools, &config.tools, config.allow_destructive)?;
        let mut reference = live.reference(&tools);
        reference.settings.insert("flood".to_owned(), config.flood.to_string());
        let mut around = live.known_values(context.folder).await;
        if are_given {
            around.folders =
                roots.iter().filter_map(|root| std::path::absolute(root).ok()).collect();
        }
        let mut shown = live.shown_spec().clone();
        // Without the folders of the canaries, which are gone after the run.
        shown.isolate = match &target {
            Target::Spec(spec) => spec.isolate.clone(),
            Target::Demo => None,
        };
        let system = AttackSystem {
            shown,
            access: access(&target, live.has_bait()),
            live,
            site,
            unused: probe::unused_values(
                &config.set,
                tools.iter().filter_map(Definition::input_schema),
            ),
            tools: chosen,
            skipped,
            successes: entry.data.successes.clone(),
            around,
            deadline: Deadline::after(config.time_limit.map(|limit| limit.0)),
            config,
            is_late: AtomicBool::new(false),
            memory: Mutex::default(),
            progress: Arc::clone(&context.progress),
        };
        Ok(Start::Live { system: Arc::new(system), reference })
    }

    fn questions(
        entry: &Entry<Attack>,
        system: &AttackSystem,
        known: &mut Vec<Outcome<Vec<AttackResult>>>,
    ) -> Result<Questions<Attack>, EvalError> {
        // An attack that was not made, or not completed, is made again.
        known.retain(|outcome| match &outcome.outcome {
            Kept::Answer(results) => {
                let is_complete = |one: &AttackResult| one.status != AttackStatus::NotExecuted;
                !results.is_empty() && results.iter().all(is_complete)
            }
            Kept::Failure { .. } => false,
        });
        let (on_server, on_tools): (Vec<_>, Vec<_>) =
            entry.data.attacks.iter().copied().partition(|attack| attack.is_on_server());
        let question = |tool: Option<&Arc<Definition>>, attack: &'static KnownAttack| {
            let id = match tool {
                Some(tool) => format!("{}/{}", attack.id(), tool.name()),
                None => attack.id().to_owned(),
            };
            (id, Arc::new(Question { tool: tool.cloned(), attack }))
        };
        let of_server = on_server.iter().map(|attack| question(None, attack));
        let of_tools = system
            .tools
            .iter()
            .flat_map(|tool| on_tools.iter().map(move |attack| question(Some(tool), attack)));
        Ok(of_server.chain(of_tools).collect())
    }

    fn options(_: &Entry<Attack>) -> Options {
        // Each call has its own time limit; an attack of many calls may take long.
        Options { timeout: Duration::MAX, ..Options::default() }
    }

    async fn finish(
        _: &Entry<Attack>,
        system: &AttackSystem,
        questions: &Questions<Attack>,
        outcomes: &mut Vec<Outcome<Vec<AttackResult>>>,
    ) -> Result<Facts, EvalError> {
        let AttackSystem { live, site, access, skipped, unused, is_late, memory, config, .. } =
            system;
        let memory = memory.lock().await;
        // What the time limit left out is left out of the controls too: they must not take longer than the run.
        let is_made = |outcome: &&Outcome<Vec<AttackResult>>| match &outcome.outcome {
            Kept::Answer(results) => {
                results.iter().any(|one| one.status != AttackStatus::NotExecuted)
            }
            Kept::Failure { .. } => false,
        };
        let made: BTreeSet<String> =
            outcomes.iter().filter(is_made).map(|outcome| outcome.id.clone()).collect();
        let made: Vec<(Option<Arc<Definition>>, &'static KnownAttack)> = questions
            .iter()
            .filter(|(id, _)| made.contains(id))
            .map(|(_, question)| (question.tool.clone(), question.attack))
            .collect();
        let mut unproven: Vec<&mut AttackResult> = outcomes.iter_mut().flat_map(unproven).collect();
        let ids = unproven.iter().map(|result| result.id()).collect();
        let _ = tokio::time::timeout(memory.wait_for(&ids), config.stop.made()).await;
        for result in &mut unproven {
            if let Some(evidence) = memory.late_evidence(&result.id(), site) {
                result.status = AttackStatus::Broken;
                result.evidence = Some(evidence);
                (result.why, result.has_stopped) = (None, false);
            } else if result.status == AttackStatus::Held
                && let Some(why) = memory.doubt(result)
            {
                result.status = AttackStatus::NotExecuted;
                result.why = Some(why);
            }
        }
        let controls = controls::run(&made, site, *access).await;
        let is_late = is_late.load(Ordering::Relaxed);
        let mut live = live.finish(skipped, memory.lost.clone(), is_late).await;
        live.warnings.extend(unused.iter().cloned());
        Ok(Facts { live, controls })
    }

    fn score(observed: &Observations<'_, Attack>) -> Result<Scored, EvalError> {
        score::score(observed)
    }
}

/// The results that a late proof may change.
fn unproven(outcome: &mut Outcome<Vec<AttackResult>>) -> Vec<&mut AttackResult> {
    match &mut outcome.outcome {
        Kept::Answer(results) => {
            let is_proven =
                |status| matches!(status, AttackStatus::Broken | AttackStatus::NotJudged);
            results.iter_mut().filter(|one| !is_proven(one.status)).collect()
        }
        Kept::Failure { .. } => Vec::new(),
    }
}

/// The folders among the arguments of a command: servers of files get their roots there.
fn folders_in(target: &Target, folder: &Path) -> Vec<PathBuf> {
    let Target::Spec(spec) = target else { return Vec::new() };
    let base = folder.join(spec.cwd.clone().unwrap_or_default());
    let words = spec.command.iter().flatten().skip(1);
    words.map(|word| base.join(word)).filter(|path| path.is_dir()).collect()
}

/// The server with the canaries in its sandbox, if it has one: an attack that is held only because the
/// canary is invisible would prove nothing about the server.
fn within_reach(target: &Target, site: &CanarySite) -> Target {
    let mut target = target.clone();
    if let Target::Spec(spec) = &mut target
        && let Some(isolation) = spec.isolate.as_mut().filter(|one| one.engine != Engine::None)
    {
        isolation.write.push(site.folder().to_owned());
        isolation.write.extend(site.sibling_folder().map(Path::to_owned));
    }
    target
}

fn access(target: &Target, has_secret: bool) -> Access {
    let Target::Spec(spec) = target else {
        return Access { is_local: true, has_loopback: true, has_secret };
    };
    let has_loopback = spec.isolate.as_ref().is_none_or(|isolation| match isolation.engine {
        Engine::None => true,
        Engine::Bwrap => isolation.network,
        Engine::Docker => false,
    });
    Access { is_local: is_local(spec), has_loopback, has_secret }
}

/// Returns whether the server runs on this machine.
fn is_local(spec: &ServerSpec) -> bool {
    let Some(url) = &spec.url else { return true };
    let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
    let place = rest.split(['/', '?']).next().unwrap_or_default();
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|host| {
        place.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
    })
}
