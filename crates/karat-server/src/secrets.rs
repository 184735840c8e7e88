//! The secrets of a server where a run is judged again without it, and the strings of cases that quote them.
//!
//! A run knows every secret of its server and hides it. Later some may be unknown: one from the command line, from a
//! variable that is not set now, from a login. So a run notes, as digests, the strings of each case with the secrets
//! removed. Only if all of them come out the same again are the secrets of that case known.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::Digest;
use karat_io::interpolate::{self, InterpolateError, Variables};
use karat_io::redact::HIDDEN;
use karat_mcp::{Redactor, ServerSpec};

use crate::suite::{Case, Suite, server};

/// The secrets that a suite names for its server and that are known here.
#[derive(Debug, Default)]
pub(crate) struct SuiteSecrets {
    /// Hides those that are known.
    pub(crate) redactor: Redactor,
    /// The reasons for which others are not known.
    pub(crate) unknown: BTreeSet<String>,
}

impl SuiteSecrets {
    /// The secrets that a suite in this folder names, with variables from the environment.
    pub(crate) fn of(suite: &Suite, folder: &Path) -> SuiteSecrets {
        let Some(written) = &suite.server else { return SuiteSecrets::default() };
        match server::find(written, folder) {
            Ok(found) => SuiteSecrets::in_spec(found.spec, folder),
            Err(why) => SuiteSecrets { unknown: BTreeSet::from([why]), ..SuiteSecrets::default() },
        }
    }

    fn in_spec(mut spec: ServerSpec, folder: &Path) -> SuiteSecrets {
        if let Some(redactor) = spec.redactor(Some(folder)) {
            return SuiteSecrets { redactor, unknown: BTreeSet::new() };
        }
        // One variable that is not set must not keep the other secrets from being hidden.
        let unknown = leave_out_unknown(&mut spec, folder);
        let redactor = spec.redactor(Some(folder)).unwrap_or_default();
        SuiteSecrets { redactor, unknown }
    }
}

/// Leaves out the values of a spec whose variables are not known; returns the reasons.
fn leave_out_unknown(spec: &mut ServerSpec, folder: &Path) -> BTreeSet<String> {
    let variables = Variables::new(&interpolate::environment, folder);
    let mut unknown = BTreeSet::new();
    let mut is_known = |text: &str| match variables.interpolate(text) {
        Ok(_) => true,
        Err(why) => {
            unknown.insert(match why {
                // Its message quotes the value, which may have a secret in it.
                InterpolateError::Unclosed { .. } => {
                    "a value of mcp_server has a `${` without a `}`".to_owned()
                }
                why => why.to_string(),
            });
            false
        }
    };
    spec.env.retain(|_, value| is_known(value));
    spec.headers.retain(|_, value| is_known(value));
    // The other words keep their places: the one before says whether a word is a secret.
    for word in spec.command.iter_mut().flatten().filter(|word| !is_known(word)) {
        "-".clone_into(word);
    }
    if let Some(url) = spec.url.as_mut().filter(|url| !is_known(url)) {
        "http://127.0.0.1".clone_into(url);
    }
    let has_login = spec.auth.as_ref().is_none_or(|auth| {
        [&auth.client_secret, &auth.access_token, &auth.refresh_token]
            .into_iter()
            .flatten()
            .all(|value| is_known(value))
    });
    if !has_login {
        spec.auth = None;
    }
    // Places of this machine, which are not secrets.
    (spec.cwd, spec.ca_file, spec.isolate, spec.policies) = (None, None, None, None);
    unknown
}

/// The strings of a case that quote secrets, as digests without the secrets, each with its number.
pub(crate) fn quoted(case: &Case, redactor: &Redactor) -> BTreeMap<Digest, u64> {
    // Every string of the case is in this form of it, the expected ones too, each in quotes.
    let texts = format!("{case:?}");
    let hidden = redactor.hide(&texts);
    let mut quoted: BTreeMap<&str, u64> = BTreeMap::new();
    for piece in hidden.split('"').filter(|piece| piece.contains(HIDDEN)) {
        *quoted.entry(piece).or_default() += 1;
    }
    // A snapshot, for one, may have the mark of a secret that was hidden earlier.
    for piece in texts.split('"') {
        if let Some(number) = quoted.get_mut(piece) {
            *number = number.saturating_sub(1);
        }
    }
    let quoted = quoted.into_iter().filter(|(_, number)| *number > 0);
    quoted.map(|(piece, number)| (Digest::of(piece.as_bytes()), number)).collect()
}

/// Returns whether all strings that quoted secrets in the run come out the same with the secrets that are known now.
pub(crate) fn are_known(then: &BTreeMap<Digest, u64>, now: &BTreeMap<Digest, u64>) -> bool {
    // Without digests, in a journal of an earlier version, there is nothing to compare.
    !then.is_empty()
        && then.iter().all(|(piece, number)| now.get(piece).is_some_and(|known| known >= number))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;

    fn case(text: &str) -> Arc<Case> {
        let suite = format!("cases: [{{tool: t, {text}}}]");
        let suite = Suite::parse(Path::new("s.yaml"), suite.as_bytes()).unwrap();
        Arc::clone(&suite.cases[0])
    }

    fn redactor(secrets: &[&str]) -> Redactor {
        let mut redactor = Redactor::default();
        secrets.iter().for_each(|secret| redactor.add(secret));
        redactor
    }

    #[test]
    fn strings_come_out_the_same_only_if_all_their_secrets_are_known() {
        let all = redactor(&["first-secret-1", "other-secret-2"]);
        let case_of = |about: &str| {
            case(&format!("about: {about}, expect: {{equals: first-secret-1 other-secret-2}}"))
        };
        let then = quoted(&case_of("one"), &all);
        assert_eq!(then.len(), 1);
        assert!(are_known(&then, &quoted(&case_of("another"), &all)));
        for known in [&["first-secret-1"] as &[&str], &["other-secret-2"], &["third-secret-3"], &[]]
        {
            assert!(!are_known(&then, &quoted(&case_of("one"), &redactor(known))), "{known:?}");
        }
        // The mark itself is not a secret, and does not make up for one.
        assert!(quoted(&case("about: '[redacted]'"), &all).is_empty());
        let both =
            case("about: first-secret-1, tags: ['[redacted]'], expect: {equals: other-secret-2}");
        let then = quoted(&both, &all);
        assert!(are_known(&then, &then));
        assert!(!are_known(&then, &quoted(&both, &redactor(&["first-secret-1"]))));
    }

    #[test]
    fn a_variable_that_is_not_set_leaves_the_other_secrets_known() {
        let env = json!({"API_TOKEN": "first-secret-1", "OTHER": "${KARAT_TEST_IS_NOT_SET}"});
        let unclosed = json!({"command": "x", "env": {"API_TOKEN": "first-secret-1${"}});
        let secrets = SuiteSecrets::in_spec(server::read(&unclosed).unwrap(), Path::new("."));
        assert!(!format!("{:?}", secrets.unknown).contains("first-secret-1"));
        for written in [
            json!({"command": "x", "env": env}),
            json!({"command": ["x", "--api-key", "first-secret-1", "${KARAT_TEST_IS_NOT_SET}"]}),
            json!({"command": ["${KARAT_TEST_IS_NOT_SET}", "--api-key=first-secret-1"]}),
            json!({"url": "http://127.0.0.1", "headers": {"Authorization": "first-secret-1", "X": "${KARAT_TEST_IS_NOT_SET}"}}),
            json!({"url": "${KARAT_TEST_IS_NOT_SET}", "headers": {"Authorization": "first-secret-1"}}),
        ] {
            let spec = server::read(&written).unwrap();
            let secrets = SuiteSecrets::in_spec(spec, Path::new("."));
            assert_eq!(secrets.redactor.hide("a first-secret-1"), "a [redacted]", "{written}");
            let why: Vec<&String> = secrets.unknown.iter().collect();
            assert!(why.len() == 1 && why[0].contains("KARAT_TEST_IS_NOT_SET"), "{why:?}");
        }
    }
}
