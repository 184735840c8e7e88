//! Questions to a person, shown by the program that uses this crate.

use std::fmt;
use std::sync::OnceLock;

use super::failure::AuthError;

/// Something that a person must do to log in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Prompt {
    /// Open this address in a browser of this machine.
    Browser {
        /// The address.
        url: String,
    },
    /// Open this address in any browser and enter the code.
    Device {
        /// The address.
        url: String,
        /// The code.
        code: String,
    },
}

impl fmt::Display for Prompt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Prompt::Browser { url } => write!(f, "to log in, open {url}"),
            Prompt::Device { url, code } => {
                write!(f, "to log in, open {url} and enter the code {code}")
            }
        }
    }
}

static PROMPT: OnceLock<fn(&Prompt)> = OnceLock::new();

/// Sets the function that shows prompts, once. Without one, logins that need a person are refused.
///
/// ```
/// karat_mcp::auth::install_prompt(|prompt| eprintln!("{prompt}"));
/// ```
pub fn install_prompt(show: fn(&Prompt)) {
    let _ = PROMPT.set(show);
}

pub(super) fn prompt(prompt: &Prompt) -> Result<(), AuthError> {
    let Some(show) = PROMPT.get() else {
        return Err(AuthError::new("this program cannot ask a person to log in"));
    };
    show(prompt);
    Ok(())
}
