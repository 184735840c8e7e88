//! `karat resilience`: agents and defences under attack.

use std::collections::BTreeMap;

use karat_core::evaluation::Evaluation as _;
use karat_core::evaluation::{Common, Entry, report_recorded};
use karat_core::kind::Evaluation;
use karat_core::project::Root;
use karat_core::report::SystemRef;
use karat_resilience::agents::AgentKind;
use karat_resilience::attack::Surface;
use karat_resilience::defence::DefenceConfig;
use karat_resilience::recordings::{self, Filter, Format};
use karat_resilience::set::Selection;
use karat_resilience::{Config, ModelConfig, Resilience, split_runs};

use crate::bundled::Embedded;
use crate::cli::{
    CheckArgs, ModelApi, ResilienceRunArgs, ResilienceScoreArgs, RunFormat, ScriptedAgent,
    WorldArgs,
};
use crate::commands::agent::check_endpoint;
use crate::commands::agent::score::policy;
use crate::commands::server::target;
use crate::commands::{check, each};
use crate::exit::{Exit, Stop};
use crate::project;
use crate::terminal::Terminal;

/// Scores recorded runs.
pub(crate) fn score(arguments: &ResilienceScoreArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let format = match arguments.format {
        RunFormat::Agentdojo => Format::AgentDojo,
        RunFormat::Asb => Format::Asb,
        RunFormat::Native => Format::Native,
    };
    let gate = policy(&arguments.rules, &[], arguments.max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    let filter = Filter {
        attacks: arguments.attacks.clone(),
        suites: arguments.suites.clone(),
        pipelines: arguments.pipelines.clone(),
        benchmark: arguments.benchmark.clone(),
    };
    let read = recordings::read(&arguments.path, format, &filter)?;
    let reports = split_runs(read, format, arguments.pool).map(|data| {
        let attack =
            data.runs.iter().find_map(|run| run.attack.clone()).filter(|_| !arguments.pool);
        let name = match attack {
            Some(attack) => format!("{} {attack}", data.pipeline),
            None => data.pipeline.clone(),
        };
        let system = SystemRef {
            kind: "file".to_owned(),
            name: data.pipeline.clone(),
            version: None,
            settings: BTreeMap::new(),
        };
        let common = Common { gate: gate.clone(), ..Common::named(name) };
        let entry = Entry::<Resilience> { common, config: Config::default(), data };
        let repeats = entry.data.repeats();
        Ok(report_recorded(&entry, Vec::new(), system, repeats)?)
    });
    each::conclude(reports, &gate, &arguments.outputs, terminal)
}

/// Measures the entries of the project, or the run that the command line describes.
pub(crate) fn run(arguments: &ResilienceRunArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let ResilienceRunArgs { check, given, worlds } = arguments;
    let named = check.project.is_some() || check.bundled || check.only.is_some();
    if named && given.any() {
        return Err(Stop::bad_input(
            "PROJECT, --bundled and --only select entries of a project and cannot be combined with options \
             that describe a run",
        ));
    }
    if !given.any() {
        if named || project::is_near() {
            return check::one(&Evaluation::Resilience, check, terminal);
        }
        terminal.say(&format!(
            "note: no {} in this folder or its parents; measuring the agent `hijacked` in the bundled worlds",
            project::FILE
        ));
    }
    in_worlds(worlds, check, terminal)
}

/// Lets an agent work in worlds, through a defence.
fn in_worlds(arguments: &WorldArgs, check: &CheckArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let gate = policy(&arguments.rules, &[], arguments.max_errors)?;
    gate.validate().map_err(Stop::bad_input)?;
    let surfaces = arguments.surfaces.iter().map(|name| {
        Surface::of(name).ok_or_else(|| {
            let known = Surface::ALL.map(Surface::name).join(", ");
            Stop::bad_input(format!("--surface: unknown surface {name:?}; expected one of {known}"))
        })
    });
    let surfaces = surfaces.collect::<Result<Vec<_>, _>>()?;
    let env = target::pairs(&arguments.env, '=', "-e", "KEY=VALUE")?;
    let agent_command = arguments.agent_command.as_deref().map(|text| {
        shlex::split(text)
            .ok_or_else(|| Stop::bad_input(format!("--agent-command: unclosed quote in {text:?}")))
    });
    let agent_command = agent_command.transpose()?;
    if let Some(endpoint) = &arguments.endpoint {
        check_endpoint(endpoint)?;
    }
    let command = arguments.command.clone();
    let (proxy, guard) =
        if arguments.guard { (Vec::new(), command) } else { (command, Vec::new()) };
    let config = Config {
        dataset: Some(arguments.dataset.clone()),
        agent: match arguments.agent {
            ScriptedAgent::Diligent => AgentKind::Diligent,
            ScriptedAgent::Hijacked => AgentKind::Hijacked,
            ScriptedAgent::Gullible => AgentKind::Gullible,
        },
        defence: DefenceConfig {
            name: arguments.defence.clone(),
            proxy,
            guard,
            url: arguments.url.clone(),
            env,
        },
        select: Selection {
            worlds: arguments.worlds.clone(),
            styles: arguments.styles.clone(),
            surfaces,
            attacks: Some(arguments.attacks as usize),
        },
        agent_command: agent_command.unwrap_or_default(),
        model: arguments.model.as_ref().map(|name| ModelConfig {
            name: name.clone(),
            endpoint: arguments.endpoint.clone().unwrap_or_default(),
            api: Some(
                if arguments.api == ModelApi::Openai { "openai" } else { "anthropic" }.to_owned(),
            ),
            key_env: arguments.key_env.clone(),
        }),
        agent_timeout: Some(arguments.agent_timeout),
        replay: arguments.replay.clone(),
        record: arguments.record.clone(),
        ..Config::default()
    };
    let mut common = Common {
        gate,
        runs: arguments.runs.into(),
        concurrency: arguments.concurrency.into(),
        timeout_ms: arguments.timeout.as_millis(),
        ..Common::named(format!("{}-{}", config.agent_name(), config.defence.label()))
    };
    Resilience::check(&config, &mut common)?;
    let data = Resilience::load(&config, &common, &Root::in_folder(".", &Embedded))?;
    let project = project::of_any(Entry::<Resilience> { common, config, data });
    check::carry_out(&project, check, terminal)
}
