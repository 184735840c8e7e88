//! The questions of `karat init`, for somebody at a terminal who gave no flags. Plain numbered lists;
//! a number or a name will do, and nothing at all takes the first.

use std::io::{self, BufRead as _, IsTerminal as _, Read as _};

use clap::ValueEnum;

use crate::cli::{Ci, InitArgs, User};
use crate::exit::Stop;
use crate::face::Terminal;

/// The longest answer that is read.
const LONGEST: u64 = 1_000;
/// How often a question is asked.
const TRIES: usize = 3;

/// Whose project it is, and which CI it has: from the flags or, at a terminal, from the user.
pub(super) fn complete(arguments: &InitArgs, terminal: &Terminal) -> Result<(User, Vec<Ci>), Stop> {
    let named = arguments.url.is_some() || !arguments.command.is_empty();
    let user = match arguments.user {
        Some(user) => Some(user),
        // Only a server is started or has an address.
        None => named.then_some(User::Server),
    };
    let ask = user.is_none();
    let user = match user {
        Some(user) => user,
        None if terminal.json() || !io::stdin().is_terminal() || !io::stdout().is_terminal() => {
            return Err(Stop::bad_input(format!(
                "say whose project it is with --for: {}",
                names::<User>().join(", ")
            )));
        }
        None => one("What do you make?", terminal)?,
    };
    if named && user != User::Server {
        return Err(Stop::bad_input("a command or --url goes with --for server alone"));
    }
    let mut ci = arguments.ci.clone();
    if ci.is_empty() {
        ci = if ask { several("Which CI shall run it?", terminal)? } else { vec![Ci::Github] };
    }
    if ci.len() > 1 && ci.contains(&Ci::None) {
        return Err(Stop::bad_input("--ci none goes with no other --ci"));
    }
    ci.sort_unstable();
    ci.dedup();
    Ok((user, ci))
}

fn names<T: ValueEnum>() -> Vec<String> {
    let named = T::value_variants().iter().filter_map(ValueEnum::to_possible_value);
    named.map(|value| value.get_name().to_owned()).collect()
}

fn one<T: ValueEnum>(question: &str, terminal: &Terminal) -> Result<T, Stop> {
    asked::<T, T>(question, "1", terminal, chosen)
}

fn several<T: ValueEnum>(question: &str, terminal: &Terminal) -> Result<Vec<T>, Stop> {
    asked::<T, Vec<T>>(question, "1, or several with commas", terminal, |answer| {
        answer.split(',').map(chosen).collect()
    })
}

/// Asks until the answer can be understood, but not for ever.
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
    for _ in 0..TRIES {
        terminal.print(&format!("[{usual}] "))?;
        let mut answer = String::new();
        let read = io::stdin().lock().take(LONGEST).read_line(&mut answer);
        if !matches!(read, Ok(1..)) {
            break;
        }
        if let Some(found) = understood(answer.trim()) {
            return Ok(found);
        }
        terminal.print("Give a number or a name from the list.\n")?;
    }
    Err(Stop::bad_input("there was no answer, so nothing was written"))
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
