//! The attempts through one parameter that proved nothing, with everything that is needed to judge them.

use super::attempts::Attempt;
use crate::observation::Outcome;

/// The attempts that proved nothing.
#[derive(Default)]
pub(super) struct FailedAttempts<'a> {
    pub(super) answers: Vec<(&'a Attempt, Outcome)>,
    /// True if one was not refused as invalid.
    pub(super) is_accepted: bool,
    /// True if a page that redirects was requested.
    pub(super) is_redirected: bool,
    /// The number of attempts that failed in the words of the plain call.
    pub(super) same: u64,
    pub(super) contacts: Contacts,
}

/// The contacts with the listener that no number connects with an attempt.
#[derive(Default)]
pub(super) struct Contacts {
    /// The number of connections that were judged.
    pub(super) since: usize,
    /// The reason for which a contact shows neither that the attack worked nor that it was held.
    pub(super) doubt: Option<Doubt>,
}

/// The reason for which a contact with the listener shows nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doubt {
    /// There was one contact, and none when the attempt was made again.
    Once,
    /// There are contacts without the attack too.
    Always,
    /// The tool connects and sends nothing.
    Silent,
    /// The answer has the page, and there was no contact.
    Shown,
}

impl Doubt {
    pub(super) fn why(self, tool: &str) -> String {
        match self {
            Doubt::Once => format!(
                "the listener on 127.0.0.1 was called during an attempt and not when it was made again, so \
                 the call may not be from {tool}"
            ),
            Doubt::Always => format!(
                "the listener on 127.0.0.1 is called without the attack too, so nothing shows whether {tool} \
                 calls it"
            ),
            Doubt::Silent => format!(
                "{tool} connects to an address of this machine and sends no request, so nothing shows \
                 whether it would fetch a page"
            ),
            Doubt::Shown => {
                format!(
                    "{tool} answers with a page of this machine that it fetched at another time"
                )
            }
        }
    }
}
