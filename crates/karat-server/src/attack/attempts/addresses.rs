//! Attempts to have the server call this machine, in every spelling of its address.

use super::{Attempt, Planner, Proof};
use crate::attack::pages::{Page, Place};
use crate::attack::parameters::Parameter;

impl Planner<'_> {
    /// The address of a page of the listener that no other attempt asks for.
    pub(in crate::attack) fn address(&self, host: &str, place: Place) -> (String, Page) {
        let page = Page { place, number: self.site.number() };
        (format!("http://{host}:{}{}", self.site.listener.port(), page.path()), page)
    }

    /// The spellings of this machine's own address: a filter may know some of them only.
    fn hosts(&self) -> Vec<(&'static str, &'static str)> {
        let mut hosts = vec![
            ("loopback", "127.0.0.1"),
            ("loopback by name", "localhost"),
            ("loopback, shortened", "127.1"),
            ("loopback as one number", "2130706433"),
            ("loopback in hexadecimal", "0x7f000001"),
            ("loopback as IPv6", "[::ffff:127.0.0.1]"),
            ("loopback after a user name", "user@127.0.0.1"),
            ("all addresses of this machine", "0.0.0.0"),
        ];
        if self.site.listener.has_v6() {
            hosts.push(("IPv6 loopback", "[::1]"));
        }
        hosts
    }

    pub(super) fn loopbacks(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut found = self.on_each_host(parameter, None, Place::Loopback, EVERYWHERE);
        found.extend(self.without_scheme(parameter, Place::Loopback, EVERYWHERE));
        if parameter.is_host() {
            let host = format!("127.0.0.1:{}", self.site.listener.port());
            let proofs = vec![Proof::Visited(EVERYWHERE)];
            found.push(self.sent(parameter, "loopback as a host", host, proofs));
        }
        found
    }

    pub(super) fn metadata(&self, parameter: &Parameter) -> Vec<Attempt> {
        let about = Some(METADATA_STAND_IN);
        let mut found = self.on_each_host(parameter, about, Place::Credentials, METADATA);
        let (url, page) = self.address("127.0.0.1", Place::Accounts);
        let accounts = self.sent(parameter, METADATA_STAND_IN, url, proofs(page, METADATA));
        found.insert(1, accounts);
        found.extend(self.without_scheme(parameter, Place::Credentials, METADATA));
        found
    }

    pub(super) fn redirects(&self, parameter: &Parameter) -> Vec<Attempt> {
        let mut found = self.on_each_host(parameter, Some("a redirect"), Place::Moved, LANDED);
        found.extend(self.without_scheme(parameter, Place::Moved, LANDED));
        found
    }

    /// An attempt for each spelling of this machine's address, described by the spelling unless `about` is given.
    fn on_each_host(
        &self,
        parameter: &Parameter,
        about: Option<&str>,
        place: Place,
        places: &'static [Place],
    ) -> Vec<Attempt> {
        let attempt = |(spelling, host): &(&str, &str)| {
            let (url, page) = self.address(host, place);
            self.sent(parameter, about.unwrap_or(spelling), url, proofs(page, places))
        };
        self.hosts().iter().map(attempt).collect()
    }

    /// The same without a scheme, for tools that add it themselves.
    fn without_scheme(
        &self,
        parameter: &Parameter,
        place: Place,
        places: &'static [Place],
    ) -> Option<Attempt> {
        if !parameter.is_host() {
            return None;
        }
        let (url, page) = self.address("127.0.0.1", place);
        let text = url.trim_start_matches("http://").to_owned();
        Some(self.sent(parameter, "loopback with a path", text, proofs(page, places)))
    }
}

/// The places whose pages show an attack also if the tool left the number out of the address.
const EVERYWHERE: &[Place] = &[
    Place::Loopback,
    Place::Credentials,
    Place::Accounts,
    Place::Moved,
    Place::Landed,
    Place::Orders,
    Place::Other,
];
const METADATA: &[Place] = &[Place::Credentials, Place::Accounts];
const LANDED: &[Place] = &[Place::Landed];

const METADATA_STAND_IN: &str = "a stand-in for metadata";

/// The proofs of a request for a page, or for the one that it redirects to.
fn proofs(page: Page, places: &'static [Place]) -> Vec<Proof> {
    let place = if page.place == Place::Moved { Place::Landed } else { page.place };
    vec![Proof::Called(Page { place, ..page }), Proof::Visited(places)]
}
