//! Karat's command line. This file lists the commands; each is in a separate file under `commands/`, and
//! only this file decides the exit code.
//!
//! It is a library for the sake of the build: the compiler begins with a library as soon as it knows the
//! types of the crates below, and with a program only when all of them are compiled.

mod browser;
mod bundled;
mod cli;
mod commands;
mod exit;
mod project;
mod terminal;
mod version;
mod work;

use std::io::Write as _;
use std::process::ExitCode;

use karat_core::kind::Evaluation;

use crate::cli::{
    AgentCommand, BaselineCommand, Command, DetectionArgs, DetectionCommand, ResilienceCommand,
    RetrievalArgs, RetrievalCommand, ScoreCommand, ServerCommand,
};
use crate::exit::{Exit, Stop};
use crate::terminal::Terminal;

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    karat_io::watcher::watch_or_be_watched();
    karat_io::platform::keep_descriptors();
    karat_io::process::end_all_on_panic();
    karat_io::platform::adopt_orphans();
    karat_server::detect::install(commands::server::inspect);
    karat_mcp::auth::install_prompt(commands::server::show_prompt);
    let exit = ended(match version::is_asked_for(std::env::args_os()) {
        true => terminal::printed(terminal::write_out(version::verbose().as_bytes()))
            .map(|()| Exit::Pass),
        false => match cli::parse(std::env::args_os().collect()) {
            Ok((cli, hints)) => {
                let terminal = Terminal::new(cli.global);
                for hint in hints {
                    terminal.renamed(&hint.earlier, &hint.present);
                }
                run(&cli.command, &terminal)
            }
            Err(answer) => answered(&answer),
        },
    });
    karat_io::process::end_all();
    karat_io::watcher::dismiss();
    ExitCode::from(exit.code())
}

/// Prints help or the version, or the mistake in the arguments.
fn answered(answer: &clap::Error) -> Result<Exit, Stop> {
    let written = answer.print().and_then(|()| std::io::stdout().flush());
    if answer.use_stderr() {
        return Ok(Exit::BadInput);
    }
    terminal::printed(written).map(|()| Exit::Pass)
}

/// The exit of a command, with its message if it ended early.
fn ended(done: Result<Exit, Stop>) -> Exit {
    done.unwrap_or_else(|stop| {
        if !stop.message.is_empty() {
            terminal::complain(&stop.message);
        }
        stop.exit
    })
}

fn run(command: &Command, terminal: &Terminal) -> Result<Exit, Stop> {
    match command {
        Command::Check(arguments) if arguments.watch => commands::watch::run(arguments, terminal),
        Command::Check(arguments) => commands::check::all(arguments, terminal),
        Command::Retrieval(RetrievalArgs { command: Some(command), .. }) => match command {
            RetrievalCommand::Run(run) => match run.given.any() {
                true => commands::search::run(&run.search, &run.check, terminal),
                false => commands::check::one(&Evaluation::Retrieval, &run.check, terminal),
            },
            RetrievalCommand::Score(arguments) => commands::retrieval::score(arguments, terminal),
            RetrievalCommand::Trec(arguments) => commands::trec::score(arguments, terminal),
            RetrievalCommand::ExportTrec(arguments) => {
                commands::retrieval::export_trec(arguments, terminal)
            }
            RetrievalCommand::ServeFitness(arguments) => {
                commands::retrieval::serve_fitness(arguments, terminal)
            }
        },
        Command::Retrieval(RetrievalArgs { command: None, check }) => {
            terminal.renamed("karat retrieval", "karat retrieval run");
            commands::check::one(&Evaluation::Retrieval, check, terminal)
        }
        Command::Detection(DetectionArgs { command: Some(command), .. }) => match command {
            DetectionCommand::Run(arguments) => commands::detection::run(arguments, terminal),
            DetectionCommand::Score(arguments) => commands::detection::score(arguments, terminal),
        },
        Command::Detection(DetectionArgs { command: None, check }) => {
            terminal.renamed("karat detection", "karat detection run");
            commands::check::one(&Evaluation::Detection, check, terminal)
        }
        Command::Server(command) => server(command, terminal),
        Command::Agent(AgentCommand::Score(arguments)) => {
            commands::agent::score(arguments, terminal)
        }
        Command::Agent(AgentCommand::Run(arguments)) => commands::agent::run(arguments, terminal),
        Command::Agent(AgentCommand::Judge(arguments)) => {
            commands::agent::judge(arguments, terminal)
        }
        Command::Agent(AgentCommand::Diff(arguments)) => commands::agent::diff(arguments, terminal),
        Command::Agent(AgentCommand::Listen(arguments)) => {
            commands::agent::listen(arguments, terminal)
        }
        Command::Agent(AgentCommand::Upgrade(arguments)) => {
            commands::agent::upgrade(arguments, terminal)
        }
        Command::Agent(AgentCommand::Suggest(arguments)) => {
            commands::agent::suggest(arguments, terminal)
        }
        Command::Agent(AgentCommand::Check(arguments)) => {
            terminal.renamed("karat agent check", "karat agent run");
            commands::check::one(&Evaluation::Agent, arguments, terminal)
        }
        Command::Resilience(ResilienceCommand::Score(arguments)) => {
            commands::resilience::score(arguments, terminal)
        }
        Command::Resilience(ResilienceCommand::Run(arguments)) => {
            commands::resilience::run(arguments, terminal)
        }
        Command::Score(ScoreCommand::Trec(arguments)) => {
            terminal.renamed("karat score trec", "karat retrieval trec");
            commands::trec::score(arguments, terminal)
        }
        Command::Corpus(command) => commands::corpus::run(command, terminal),
        Command::Import(arguments) => commands::import::run(arguments, terminal),
        Command::Merge(arguments) => commands::merge::run(arguments, terminal),
        Command::Compare(arguments) => commands::compare::run(arguments, terminal),
        Command::Comment(arguments) => commands::comment::run(arguments, terminal),
        Command::Baseline(BaselineCommand::Update(arguments)) => {
            commands::baseline::update(arguments, terminal)
        }
        Command::Baseline(BaselineCommand::Show(arguments)) => {
            commands::baseline::show(arguments, terminal)
        }
        Command::Show(arguments) => commands::show::run(arguments, terminal),
        Command::History(arguments) => commands::history::run(arguments, terminal),
        Command::Serve(arguments) => commands::serve::run(arguments, terminal),
        Command::Mcp(arguments) => commands::mcp::run(arguments),
        Command::Init(arguments) => commands::init::run(arguments, terminal),
        Command::Demo(arguments) => commands::demo::tour(arguments, terminal),
        Command::DemoServer(arguments) => commands::demo::serve(arguments, terminal),
        Command::Metrics(arguments) => commands::metrics::run(arguments, terminal),
        Command::Schema(arguments) => commands::schema::run(arguments, terminal),
        Command::Completions(arguments) => commands::pages::completions(arguments, terminal),
        Command::Man => commands::pages::man(terminal),
    }
}

fn server(command: &ServerCommand, terminal: &Terminal) -> Result<Exit, Stop> {
    match command {
        ServerCommand::Run(arguments) => {
            commands::check::one(&Evaluation::Server, arguments, terminal)
        }
        ServerCommand::Test(arguments) => commands::server::test(arguments, terminal),
        ServerCommand::Score(arguments) => commands::server::score(arguments, terminal),
        ServerCommand::Load(arguments) => commands::server::load(arguments, terminal),
        ServerCommand::Lint(arguments) => commands::server::lint(arguments, terminal),
        ServerCommand::Scan(arguments) => commands::server::scan(arguments, terminal),
        ServerCommand::Fuzz(arguments) => commands::server::fuzz(arguments, terminal),
        ServerCommand::Attack(arguments) => commands::server::attack(arguments, terminal),
        ServerCommand::Call(arguments) => commands::server::call(arguments, terminal),
        ServerCommand::Suggest(arguments) => commands::server::suggest(arguments, terminal),
        ServerCommand::Propose(arguments) => commands::server::propose(arguments, terminal),
        ServerCommand::Record(arguments) => commands::server::record(arguments, terminal),
        ServerCommand::Distil(arguments) => commands::server::distil(arguments, terminal),
        ServerCommand::Drift(arguments) => commands::server::drift(arguments, terminal),
        ServerCommand::Migration(arguments) => commands::server::migration(arguments, terminal),
        ServerCommand::Login(arguments) => commands::server::login(arguments, terminal),
        ServerCommand::Logout(arguments) => commands::server::logout(arguments, terminal),
    }
}
