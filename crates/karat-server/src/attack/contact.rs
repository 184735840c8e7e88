//! Judges contacts with the listener that no number connects with an attempt, and finds out whether a tool calls this
//! machine at all.
//!
//! Only the server is given the port, but any program of this machine may find it, and a call may be late from an earlier
//! attempt. Such a contact counts if it comes again with the attack and not with a plain call.
//!
//! The stand-in for a cloud's metadata is an address of this machine with the path of metadata. That nothing asked for
//! it says something of metadata only if the tool asks for other pages here; otherwise it may refuse this machine, or
//! fetch nothing.

use std::time::Duration;

use karat_mcp::Definition;

use super::attacks::Technique;
use super::attempts::{Attempt, Plan, Planner, Proof};
use super::failed_attempts::{Contacts, Doubt};
use super::judgement::{CALLED, side_effect};
use super::listener::Contact;
use super::pages::{Page, Place};
use super::result::AttackResult;
use super::runner::AttackRunner;
use super::target::AttackTarget;
use crate::probe::encodings::find_encoded;
use crate::probe::live::CallResult;
use crate::probe::reaction;

/// The time after a call in which the listener may still learn of a connection that was made during it.
const AFTER: Duration = Duration::from_millis(20);
/// The time without a contact after which late calls of earlier attempts are over, and the number of such times.
const QUIET: Duration = Duration::from_millis(300);
const MAX_QUIET: usize = 5;

/// The evidence of a contact that is not a request.
const CALLED_OTHERWISE: &str =
    "the listener on 127.0.0.1 was called, in another protocol than plain HTTP (such as TLS)";

impl<T: AttackTarget> AttackRunner<'_, T> {
    /// The proof that an attempt called the listener, if the tool left the number out of the address or speaks another
    /// protocol.
    pub(super) async fn contacted(
        &mut self,
        tool: &Definition,
        attempt: &Attempt,
        called: &CallResult,
        contacts: &mut Contacts,
    ) -> Option<String> {
        let places = places(attempt)?;
        let listener = &self.site.listener;
        let is_shown =
            find_encoded(&reaction::text(&called.outcome), listener.page_token()).is_some();
        let contact = listener.contact(contacts.since, places);
        if self.known.is_none() || is_shown && contact == Some(Contact::Page) {
            return (contact == Some(Contact::Page)).then(|| CALLED.to_owned());
        }
        if contact.is_none_or(|contact| contact == Contact::Silent) {
            if is_shown && places.contains(&Place::Other) {
                contacts.doubt.get_or_insert(Doubt::Shown);
            }
            return None;
        }
        // Once no plain call has made a contact, one during another attempt is the second.
        if contacts.doubt == Some(Doubt::Once) {
            return contact.and_then(evidence).map(str::to_owned);
        }
        self.repeat(tool, &[attempt], places, contacts).await.map(|(_, _, saw)| saw)
    }

    /// The attempt that calls the listener late, or the doubt if the tool only connects to it, after all attempts.
    pub(super) async fn connected<'a>(
        &mut self,
        tool: &Definition,
        attempts: &'a [Attempt],
        contacts: &mut Contacts,
    ) -> Option<(&'a Attempt, CallResult, String)> {
        let places = attempts.first().and_then(places)?;
        if self.known.is_none() || contacts.doubt.is_some() {
            return None;
        }
        tokio::time::sleep(AFTER).await;
        self.site.listener.contact(contacts.since, places)?;
        let attempts: Vec<&Attempt> = attempts.iter().collect();
        self.repeat(tool, &attempts, places, contacts).await
    }

    /// Makes attempts again, after a plain call, until one of them makes a contact again.
    async fn repeat<'a>(
        &mut self,
        tool: &Definition,
        attempts: &[&'a Attempt],
        places: &[Place],
        contacts: &mut Contacts,
    ) -> Option<(&'a Attempt, CallResult, String)> {
        if contacts.doubt == Some(Doubt::Always) {
            return None;
        }
        contacts.doubt = Some(Doubt::Once);
        self.settle().await;
        let plain = self.plain_call(tool).await;
        contacts.since = self.site.listener.count();
        self.again_plain(tool, &plain.arguments).await;
        tokio::time::sleep(AFTER).await;
        if self.site.listener.contact(contacts.since, places).is_some() {
            contacts.doubt = Some(Doubt::Always);
            return None;
        }
        for attempt in attempts {
            if self.is_out_of_time() {
                return None;
            }
            contacts.since = self.site.listener.count();
            let called = self.target.call(tool.name(), attempt).await.ok()?;
            tokio::time::sleep(AFTER).await;
            // It may have come late before, with its number.
            if let Some(saw) = attempt.proofs.iter().find_map(|one| side_effect(one, self.site)) {
                return Some((attempt, called, saw));
            }
            match self.site.listener.contact(contacts.since, places) {
                Some(Contact::Silent) => {
                    contacts.doubt = Some(Doubt::Silent);
                    break;
                }
                Some(contact) => {
                    return evidence(contact).map(|saw| (*attempt, called, saw.to_owned()));
                }
                None => {}
            }
        }
        contacts.since = self.site.listener.count();
        None
    }

    /// Waits until there is no contact for a while.
    async fn settle(&self) {
        for _ in 0..MAX_QUIET {
            let before = self.site.listener.count();
            tokio::time::sleep(QUIET).await;
            if self.site.listener.count() == before {
                return;
            }
        }
    }

    /// Returns whether an attempt asked for a page that redirects. `since` is the number of earlier connections.
    pub(super) fn asks_for_redirect(&self, attempt: &Attempt, since: usize) -> bool {
        let listener = &self.site.listener;
        let asks = |proof: &Proof| match proof {
            Proof::Called(page) if page.place == Place::Landed => {
                listener.was_called(Page { place: Place::Moved, ..*page })
                    || listener.contact(since, &[Place::Moved]).is_some()
            }
            _ => false,
        };
        attempt.proofs.iter().any(asks)
    }

    /// Returns whether the tool calls this machine through the parameter of a result, with one of the attempts of
    /// `ssrf-loopback`, which are not judged here. Where that attack proved nothing, they are not made again.
    pub(super) async fn calls_this_machine(
        &mut self,
        tool: &Definition,
        result: &AttackResult,
    ) -> bool {
        if let Some(is_late) = self.memory.calls_late(result, self.site) {
            return is_late;
        }
        let known = self.plain_call(tool).await.known;
        let planner = Planner { tool, site: self.site, known: &known, access: self.access };
        let Plan::Through(ways) = planner.plan(Technique::Loopback) else { return false };
        let of_result = ways.into_iter().filter(|way| {
            way.parameter.as_ref().map(|parameter| &parameter.name) == result.parameter.as_ref()
        });
        for attempt in of_result.flat_map(|way| way.attempts) {
            if self.is_out_of_time() {
                return false;
            }
            let since = self.site.listener.count();
            if self.target.call(tool.name(), &attempt).await.is_err() {
                return false;
            }
            let is_called = |proof: &Proof| match proof {
                Proof::Visited(places) => {
                    self.site.listener.contact(since, places) == Some(Contact::Page)
                }
                proof => side_effect(proof, self.site).is_some(),
            };
            if attempt.proofs.iter().any(is_called) {
                return true;
            }
        }
        false
    }
}

/// The places where a contact without a number may be from an attempt; none if it calls no address.
fn places(attempt: &Attempt) -> Option<&'static [Place]> {
    attempt.proofs.iter().find_map(|proof| match proof {
        Proof::Visited(places) => Some(*places),
        _ => None,
    })
}

/// The evidence of a contact that came again.
fn evidence(contact: Contact) -> Option<&'static str> {
    match contact {
        Contact::Silent => None,
        Contact::Unreadable => Some(CALLED_OTHERWISE),
        Contact::Page => Some(CALLED),
    }
}

#[cfg(test)]
mod tests;
