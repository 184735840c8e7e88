//! `karat server login` and `logout`: tokens that are kept for later runs.

use std::ffi::OsStr;
use std::io::Write as _;
use std::sync::OnceLock;

use karat_io::text::printable;
use karat_mcp::Options;
use karat_mcp::auth::{self, Login, Prompt};
use serde_json::json;

use super::target;
use crate::browser;
use crate::cli::{Color, GlobalArgs, LoginArgs, LogoutArgs};
use crate::exit::{Exit, Stop};
use crate::terminal::{Terminal, for_log};
use crate::work::until_stopped;

/// Set if addresses are to be opened in the browser.
static OPENS: OnceLock<()> = OnceLock::new();

/// Shows the instructions for logging in, on stderr. Also with `--quiet`: the login waits for the person.
pub(crate) fn show_prompt(prompt: &Prompt) {
    let _ = writeln!(std::io::stderr(), "{}", for_log(&printable(&prompt.to_string())));
    if let (Some(()), Prompt::Browser { url } | Prompt::Device { url, .. }) = (OPENS.get(), prompt)
    {
        let options = GlobalArgs { quiet: false, verbose: false, json: false, color: Color::Never };
        browser::open(OsStr::new(url), &Terminal::new(options));
    }
}

/// Logs in and keeps the token.
pub(crate) fn login(arguments: &LoginArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let spec = target::needed(&arguments.target, terminal)?;
    if arguments.open {
        let _ = OPENS.set(());
    }
    let options = Options::default();
    let work = async { auth::login(&spec, &options).await.map_err(target::not_started) };
    let kept = until_stopped(work, "interrupted; not logged in")?;
    let lasts = match kept.can_refresh {
        true => "the token is refreshed when it expires",
        false => "the token cannot be refreshed: log in again when it expires",
    };
    terminal.say(&printable(&format!("logged in at {}; {lasts}", described(&kept))));
    Ok(Exit::Pass)
}

/// Forgets logins, or lists them.
pub(crate) fn logout(arguments: &LogoutArgs, terminal: &Terminal) -> Result<Exit, Stop> {
    let found = auth::logins(arguments.url.as_deref()).map_err(Stop::bad_input)?;
    if arguments.list && terminal.json() {
        let logins = found.iter().map(|one| json!({"server": one.server, "issuer": one.issuer}));
        let logins: Vec<_> = logins.collect();
        terminal.print_json(&json!({"schema": "karat.logins/1", "logins": logins}))?;
        return Ok(Exit::Pass);
    }
    if arguments.list {
        let line = |login: &Login| format!("{}\n", printable(&described(login)));
        terminal.print(&found.iter().map(line).collect::<String>())?;
        return Ok(Exit::Pass);
    }
    if found.is_empty() {
        let server = arguments.url.as_deref().map(|url| format!(" at {url}")).unwrap_or_default();
        return Err(Stop::bad_input(printable(&format!("no stored login{server}"))));
    }
    for login in &found {
        auth::logout(login).map_err(Stop::bad_input)?;
        terminal.say(&printable(&format!("deleted the login at {}", described(login))));
    }
    Ok(Exit::Pass)
}

fn described(login: &Login) -> String {
    format!("{} (token of {})", login.server, login.issuer)
}
