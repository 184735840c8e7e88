//! The questions of `karat init`, at a terminal and without `--for`. Plain numbered lists: the answer is a
//! number or a name, and an empty answer takes the first or the suggested one.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use clap::ValueEnum;

use crate::cli::{Ci, InitArgs, User};
use crate::commands::init::ci::builds_karat;
use crate::commands::init::origin::Origin;
use crate::commands::init::starters::Target;
use crate::exit::Stop;
use crate::terminal::Terminal;

/// The longest answer that is read.
const MAX_ANSWER_BYTES: u64 = 1_000;
/// The number of times a question is asked.
const TRIES: usize = 3;

/// The kind of project, its CI, and where that gets Karat from, if it is known.
pub(super) struct Answers {
    pub(super) user: User,
    pub(super) target: Target,
    pub(super) ci: Vec<Ci>,
    pub(super) origin: Option<Origin>,
}

/// The answers: from the flags or, at a terminal, from the user.
pub(super) fn complete(
    arguments: &InitArgs,
    given_target: Target,
    terminal: &Terminal,
) -> Result<Answers, Stop> {
    let given = arguments.karat_from.as_deref().map(Origin::parse).transpose();
    let given = given.map_err(|why| Stop::bad_input(format!("--karat-from: {why}")))?;
    let named = arguments.url.is_some() || !arguments.command.is_empty();
    let user = match arguments.user {
        Some(user) => Some(user),
        // A command or URL suggests a server.
        None => named.then_some(User::Server),
    };
    let ask = user.is_none();
    let user = match user {
        Some(user) => user,
        None if terminal.json() || !io::stdin().is_terminal() || !io::stdout().is_terminal() => {
            return Err(Stop::bad_input(format!(
                "choose the kind of project with --for: {}",
                names::<User>().join(", ")
            )));
        }
        None => one("What are you testing?", terminal)?,
    };
    if named && user == User::Agent {
        return Err(Stop::bad_input(
            "--for agent scores recorded traces and takes no command or --url; to run an agent, use \
             `karat agent run`",
        ));
    }
    if given_target.has_folder() && user != User::Server {
        return Err(Stop::bad_input(
            "--cwd requires --for server; a search or scanner is started in the folder of the project",
        ));
    }
    let target = match ask && !named && user != User::Agent {
        true => how_started(user, terminal)?,
        false => given_target,
    };
    target.suits(user).map_err(|why| Stop::bad_input(format!("--url: {why}")))?;
    let mut ci = arguments.ci.clone();
    if ci.is_empty() {
        ci = if ask { several("Which CI?", terminal)? } else { vec![Ci::Github] };
    }
    if ci.len() > 1 && ci.contains(&Ci::None) {
        return Err(Stop::bad_input("--ci none cannot be combined with another --ci"));
    }
    ci.sort_unstable();
    ci.dedup();
    let builds = ci.iter().copied().any(builds_karat);
    let origin = match given {
        Some(_) if !builds => {
            return Err(Stop::bad_input("--karat-from requires --ci github or gitlab"));
        }
        Some(origin) => Some(origin),
        None if !builds => None,
        None if ask => where_from(terminal)?,
        None => Origin::of_this_program(),
    };
    Ok(Answers { user, target, ci, origin })
}

/// The command or URL of the user's system; an empty answer takes the built-in one.
fn how_started(user: User, terminal: &Terminal) -> Result<Target, Stop> {
    let (question, usual) = match user {
        User::Server => {
            ("How is your server reached? A command that starts it, or its URL.", "the demo server")
        }
        User::Proxy => (
            "How is your search called? A program that answers JSON Lines, or a URL with {query} in it.",
            "the built-in engine",
        ),
        _ => {
            ("How is your scanner started? A program that answers JSON Lines.", "the built-in one")
        }
    };
    terminal.print(&format!("{question}\n"))?;
    answer(usual, terminal, |line| {
        let target = Target::parse(line)?;
        target.suits(user).map(|()| target)
    })
}

/// The source of Karat for CI; an empty answer takes the known one.
fn where_from(terminal: &Terminal) -> Result<Option<Origin>, Stop> {
    let known = Origin::of_this_program();
    terminal.print("From which repository does CI clone Karat?\n")?;
    let usual = known.as_ref().map_or("decide later".to_owned(), Origin::text);
    answer(&usual, terminal, |answer| match answer {
        "" => Ok(known.clone()),
        _ => Origin::parse(answer).map(Some),
    })
}

fn names<T: ValueEnum>() -> Vec<String> {
    let named = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    named.map(|value| value.get_name().to_owned()).collect()
}

fn one<T: ValueEnum>(question: &str, terminal: &Terminal) -> Result<T, Stop> {
    asked::<T, T>(question, "1", terminal, chosen)
}

fn several<T: ValueEnum>(question: &str, terminal: &Terminal) -> Result<Vec<T>, Stop> {
    asked::<T, Vec<T>>(question, "1; separate several with commas", terminal, |answer| {
        answer.split(',').map(chosen).collect()
    })
}

/// Asks for elements of a list.
fn asked<T: ValueEnum, R>(
    question: &str,
    usual: &str,
    terminal: &Terminal,
    understood: fn(&str) -> Option<R>,
) -> Result<R, Stop> {
    let mut text = format!("{question}\n");
    for (number, value) in T::value_variants().iter().enumerate() {
        let Some(value) = value.to_possible_value() else { continue };
        let help = value.get_help().map(ToString::to_string).unwrap_or_default();
        text.push_str(&format!("  {}  {:<11} {help}\n", number + 1, value.get_name()));
    }
    terminal.print(&text)?;
    answer(usual, terminal, |answer| {
        understood(answer).ok_or_else(|| "Enter a number or a name from the list.".to_owned())
    })
}

/// Reads answers until one can be understood, but not for ever.
fn answer<R>(
    usual: &str,
    terminal: &Terminal,
    understood: impl Fn(&str) -> Result<R, String>,
) -> Result<R, Stop> {
    for _ in 0..TRIES {
        terminal.print(&format!("[{usual}] "))?;
        let mut answer = String::new();
        let read = io::stdin().lock().take(MAX_ANSWER_BYTES).read_line(&mut answer);
        if !matches!(read, Ok(1..)) {
            break;
        }
        match understood(answer.trim()) {
            Ok(found) => return Ok(found),
            Err(why) => terminal.print(&format!("{why}\n"))?,
        }
    }
    Err(Stop::bad_input("no answer; nothing was written"))
}

/// A number from 1, a name, or nothing for the first.
fn chosen<T: ValueEnum>(answer: &str) -> Option<T> {
    let answer = answer.trim();
    let variants = T::value_variants();
    match answer.parse::<usize>() {
        Ok(number) => variants.get(number.checked_sub(1)?).cloned(),
        Err(_) if answer.is_empty() => variants.first().cloned(),
        Err(_) => T::from_str(answer, true).ok(),
    }
}
