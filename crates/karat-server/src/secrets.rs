//! The secrets of a server where a run is judged again without it, and the strings of cases that quote them.
//!
//! A run knows every secret of its server and hides it. Later some may be unknown: one from the command line, from a
//! variable that is not set now, from a login. So a run notes, as digests, the strings of each case with the secrets
//! removed. Only if all of them come out the same again are the secrets of that case known.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::str::Chars;
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::journal::{Entry, Outcome};
use karat_io::interpolate::{self, InterpolateError, Variables};
use karat_io::redact::HIDDEN;
use karat_mcp::{Redactor, ServerSpec};

use crate::observation::{CaseRun, Feature};
use crate::suite::{Case, Suite, server};

/// The name of a resource, prompt or method that is not shown.
const NOT_SHOWN: &str = "(not shown)";

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
        let mut unknown = leave_out_unknown(&mut spec, folder);
        let redactor = spec.redactor(Some(folder)).unwrap_or_else(|| {
            unknown.insert("mcp_server is not valid".to_owned());
            Redactor::default()
        });
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
    if let Some(auth) = &mut spec.auth {
        let secrets = [&mut auth.client_secret, &mut auth.access_token, &mut auth.refresh_token];
        for value in secrets.into_iter().flatten().filter(|value| !is_known(value)) {
            "-".clone_into(value);
        }
        // Not secrets, wherever they are from; some must be there.
        auth.client_id = auth.client_id.take().map(|_| "-".to_owned());
        auth.private_key = auth.private_key.take().map(|_| "-".into());
        (auth.client_metadata, auth.issuer, auth.scopes) = (None, None, Vec::new());
    }
    // Places of this machine, which are not secrets.
    (spec.cwd, spec.ca_file, spec.isolate, spec.policies) = (None, None, None, None);
    unknown
}

/// The strings of a case that quote secrets, as digests without the secrets, each with its number.
pub(crate) fn quoted(case: &Case, redactor: &Redactor) -> BTreeMap<Digest, u64> {
    let mut quoted: BTreeMap<Digest, u64> = BTreeMap::new();
    // Every string of the case is in this form of it, the expected ones too.
    for text in strings(&format!("{case:?}")) {
        // A snapshot, for one, may have the mark of a secret that was hidden earlier, which does not count.
        if let Cow::Owned(hidden) = redactor.hide(&text)
            && hidden != text
        {
            *quoted.entry(Digest::of(hidden.as_bytes())).or_default() += 1;
        }
    }
    quoted
}

/// The strings in the debug form of a value, without their escapes, and the text between them.
fn strings(debug: &str) -> Vec<String> {
    let mut all = Vec::new();
    let mut text = String::new();
    let (mut rest, mut is_quoted) = (debug.chars(), false);
    while let Some(c) = rest.next() {
        match c {
            '"' => {
                all.push(std::mem::take(&mut text));
                is_quoted = !is_quoted;
            }
            '\\' if is_quoted => text.extend(unescaped(&mut rest)),
            c => text.push(c),
        }
    }
    all.push(text);
    all
}

/// The character that is written after a backslash.
fn unescaped(rest: &mut Chars<'_>) -> Option<char> {
    match rest.next()? {
        'n' => Some('\n'),
        't' => Some('\t'),
        'r' => Some('\r'),
        '0' => Some('\0'),
        'u' => {
            let (number, behind) = rest.as_str().strip_prefix('{')?.split_once('}')?;
            *rest = behind.chars();
            char::from_u32(u32::from_str_radix(number, 16).ok()?)
        }
        c => Some(c),
    }
}

/// The cases of a suite as a run names them: without secrets in their ids and addresses.
pub(crate) fn without_secrets(cases: Vec<Arc<Case>>, redactor: &Redactor) -> Vec<Arc<Case>> {
    let ids = hidden_ids(cases.iter().map(|case| case.id.as_str()), redactor);
    let renamed = cases.into_iter().zip(ids).map(|(case, id)| {
        let name = redactor.hide(&case.name).into_owned();
        match id == case.id && name == case.name {
            true => case,
            false => Arc::new(Case { id, name, ..Case::clone(&case) }),
        }
    });
    renamed.collect()
}

/// These ids without secrets, each still unique.
pub(crate) fn hidden_ids<'a>(
    ids: impl Iterator<Item = &'a str> + Clone,
    redactor: &Redactor,
) -> Vec<String> {
    let is_same = |id: &&str| redactor.hide(id) == *id;
    let mut taken: BTreeSet<String> = ids.clone().filter(is_same).map(str::to_owned).collect();
    let hidden = ids.map(|id| match redactor.hide(id) {
        same if same == id => id.to_owned(),
        hidden => free_id(&hidden, &mut taken),
    });
    hidden.collect()
}

/// This id, with a number if it is taken.
fn free_id(id: &str, taken: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{id}-{number}"));
    let mut free = std::iter::once(id.to_owned()).chain(numbered).filter(|id| !taken.contains(id));
    let id = free.next().unwrap_or_default();
    taken.insert(id.clone());
    id
}

/// Gives cases the ids that a run gave them, where these are without secrets that are not known here, by the digests of
/// their requests. An id that fits one which no case with its requests has does not stay: it may have such a secret.
pub(crate) fn with_recorded_ids(
    cases: Vec<Arc<Case>>,
    requests: &[Digest],
    answers: &[Entry<CaseRun>],
) -> Vec<Arc<Case>> {
    let mut taken: BTreeSet<String> = answers.iter().map(|answer| answer.id.clone()).collect();
    let mut marked: Vec<Marked<'_>> =
        answers.iter().filter_map(|answer| Marked::of(answer, &taken)).collect();
    if marked.is_empty() {
        return cases;
    }
    let is_open: Vec<bool> =
        cases.iter().map(|case| case.id.contains(HIDDEN) || !taken.contains(&case.id)).collect();
    let mut found: Vec<Option<String>> = vec![None; cases.len()];
    for (at, (case, requests)) in
        cases.iter().zip(requests).enumerate().filter(|(at, _)| is_open[*at])
    {
        let is_its = |one: &Marked<'_>| one.requests == Some(*requests) && one.fits(&case.id);
        let its = marked.iter().position(is_its);
        found[at] = its.map(|its| marked.remove(its).id.to_owned());
    }
    marked.iter().for_each(|one| _ = taken.remove(one.id));
    let renamed = cases.into_iter().zip(found).zip(is_open).map(|((case, found), is_open)| {
        let own = || marked.iter().find(|one| one.id == case.id);
        let fitting = || own().or_else(|| marked.iter().find(|one| one.fits(&case.id)));
        let id = match found {
            None if is_open => fitting().map(|one| free_id(one.id, &mut taken)),
            found => found,
        };
        match id {
            Some(id) => Arc::new(Case { id, ..Case::clone(&case) }),
            None => case,
        }
    });
    renamed.collect()
}

/// An id of a run with the mark of a secret.
struct Marked<'a> {
    id: &'a str,
    /// The same without the number that distinguishes it from another one.
    unnumbered: Option<&'a str>,
    requests: Option<Digest>,
}

impl<'a> Marked<'a> {
    fn of(answer: &'a Entry<CaseRun>, recorded: &BTreeSet<String>) -> Option<Marked<'a>> {
        let id = answer.id.as_str();
        let unnumbered = id.rsplit_once('-').map(|(id, _)| id).filter(|id| recorded.contains(*id));
        let requests = match &answer.outcome {
            Outcome::Answer(run) => run.asked.as_ref().map(|asked| asked.calls),
            Outcome::Failure { .. } => None,
        };
        id.contains(HIDDEN).then_some(Marked { id, unnumbered, requests })
    }

    fn fits(&self, id: &str) -> bool {
        fits(self.id, id) || self.unnumbered.is_some_and(|own| fits(own, id))
    }
}

/// Returns whether a text is this one with something in the place of each mark of a secret.
fn fits(marked: &str, text: &str) -> bool {
    let Some((start, marked)) = marked.split_once(HIDDEN) else { return marked == text };
    let Some(rest) = text.strip_prefix(start) else { return false };
    let parts: Vec<&str> = marked.split(HIDDEN).collect();
    let Some((end, between)) = parts.split_last() else { return false };
    let Some(mut rest) = rest.strip_suffix(end) else { return false };
    for part in between {
        let Some((_, behind)) = rest.split_once(part) else { return false };
        rest = behind;
    }
    !rest.is_empty()
}

/// Gives cases that were not recorded ids without their addresses, in which secrets may be unknown.
pub(crate) fn without_addresses(
    cases: Vec<Arc<Case>>,
    recorded: &BTreeSet<&str>,
) -> Vec<Arc<Case>> {
    let renamed = (1..).zip(cases).map(|(number, case)| {
        let feature = case.step.feature;
        let is_known = recorded.contains(case.id.as_str());
        if feature.is_tool() || is_known || !case.id.starts_with(&case.step.tool) {
            return case;
        }
        let id = format!("{} {NOT_SHOWN}-{number}", feature.name());
        Arc::new(Case { id, ..Case::clone(&case) })
    });
    renamed.collect()
}

/// A case of which nothing is shown that the suite says, since secrets in it may be unknown.
pub(crate) fn withheld(case: &Case) -> Case {
    let name = match case.step.feature {
        Feature::Tool => case.name.clone(),
        Feature::Resource | Feature::Prompt | Feature::Method => NOT_SHOWN.to_owned(),
    };
    Case { name, about: None, tags: BTreeSet::new(), class: None, ..case.clone() }
}

/// Returns whether all strings that quoted secrets in the run come out the same with the secrets that are known now.
pub(crate) fn are_known(then: &BTreeMap<Digest, u64>, now: &BTreeMap<Digest, u64>) -> bool {
    // Without digests, in a journal of an earlier version, there is nothing to compare.
    !then.is_empty()
        && then.iter().all(|(piece, number)| now.get(piece).is_some_and(|known| known >= number))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::asked::{self, Fingerprints};

    fn case(text: &str) -> Arc<Case> {
        case_of(&format!("tool: t, {text}"))
    }

    fn case_of(text: &str) -> Arc<Case> {
        let suite = format!("cases: [{{{text}}}]");
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
    fn strings_are_read_from_the_debug_form_without_their_escapes() {
        let all =
            ["plain", "a \"quoted\" one", "back\\slash", "line\n\t\r\0", "\u{7f}\u{200b}\u{a0}é"];
        let found = strings(&format!("{all:?}"));
        let quoted: Vec<&str> = found.iter().skip(1).step_by(2).map(String::as_str).collect();
        assert_eq!(quoted, all);
        for secret in
            ["with\u{7f}delete-1", "zero\u{200b}width-2", "with\u{a0}blank-3", "with\u{1b}escape-4"]
        {
            let case = Case { about: Some(secret.to_owned()), ..Case::clone(&case("id: a")) };
            assert_eq!(quoted_number(&case, &redactor(&[secret])), 1, "{secret:?}");
        }
    }

    fn quoted_number(case: &Case, redactor: &Redactor) -> u64 {
        quoted(case, redactor).values().sum()
    }

    /// A case with this id that calls this tool.
    fn named(id: &str, tool: &str) -> Arc<Case> {
        let own = case_of(&format!("tool: {tool}"));
        Arc::new(Case { id: id.to_owned(), ..Case::clone(&own) })
    }

    fn ids(cases: &[Arc<Case>]) -> Vec<String> {
        cases.iter().map(|case| case.id.clone()).collect()
    }

    /// The ids of cases, each with the tool that it calls, where a run had these.
    fn found(cases: &[(&str, &str)], recorded: &[(&str, &str)]) -> Vec<String> {
        let suite = Suite::parse(Path::new("s.yaml"), b"cases: [{tool: t}]").unwrap();
        let cases: Vec<Arc<Case>> = cases.iter().map(|(id, tool)| named(id, tool)).collect();
        let then: Vec<Arc<Case>> = recorded.iter().map(|(id, tool)| named(id, tool)).collect();
        let digests = |cases: &[Arc<Case>]| Fingerprints::of(&suite, cases);
        let prints = digests(&then);
        let answer = |(case, calls): (&Arc<Case>, &Digest)| {
            let digests = (prints.session, *calls);
            let asked = asked::asked(case, digests, &BTreeMap::new(), &Redactor::default());
            let run = CaseRun { attempts: Vec::new(), asked: Some(asked) };
            Entry { run: 0, id: case.id.clone(), nanos: 0, outcome: Outcome::Answer(run) }
        };
        let answers: Vec<Entry<CaseRun>> = then.iter().zip(&prints.cases).map(answer).collect();
        let requests = digests(&cases).cases;
        ids(&with_recorded_ids(cases, &requests, &answers))
    }

    #[test]
    fn cases_have_the_ids_of_the_run_by_their_requests_and_none_with_a_secret_stays() {
        let recorded = [("a", "x"), ("b [redacted]", "y"), ("b [redacted]-2", "z")];
        let same = found(&[("a", "x"), ("b one", "y"), ("b two", "z")], &recorded);
        assert_eq!(same, ["a", "b [redacted]", "b [redacted]-2"]);
        let moved = found(&[("b two", "z"), ("b one", "y")], &recorded);
        assert_eq!(moved, ["b [redacted]-2", "b [redacted]"]);
        // Of two secrets one is known.
        let known = found(&[("b one", "y"), ("b [redacted]", "z")], &recorded);
        assert_eq!(known, ["b [redacted]", "b [redacted]-2"]);
        let new = [("b new", "q"), ("b one", "y"), ("b two", "z"), ("c", "q")];
        assert_eq!(found(&new, &recorded), ["b new", "b [redacted]", "b [redacted]-2", "c"]);
        // One of these has the secret, and it is not known which.
        let changed = [("b new", "q"), ("b one", "q"), ("b two", "z"), ("c", "q")];
        let expected = ["b [redacted]", "b [redacted]-3", "b [redacted]-2", "c"];
        assert_eq!(found(&changed, &recorded), expected);
        assert_eq!(found(&[("c", "x")], &recorded[..1]), ["c"]);
    }

    #[test]
    fn ids_are_without_secrets_and_stay_unique() {
        let cases =
            ["a", "b first-secret-1", "b other-secret-2", "c"].map(|id| named(id, "t")).to_vec();
        let all = redactor(&["first-secret-1", "other-secret-2"]);
        let hidden = without_secrets(cases, &all);
        assert_eq!(ids(&hidden), ["a", "b [redacted]", "b [redacted]-2", "c"]);
        let address = case_of("resource: 'note://first-secret-1'");
        let found = without_addresses(vec![case("about: x"), address], &BTreeSet::new());
        assert_eq!(ids(&found), ["t-1", "resource (not shown)-2"]);
        assert!(fits("[redacted] x [redacted]-1", "one x two-1"));
        for other in ["one x two-2", "one two-1", "x"] {
            assert!(!fits("[redacted] x [redacted]-1", other), "{other}");
        }
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
            json!({"url": "http://127.0.0.1", "auth": {"kind": "token", "access_token": "first-secret-1", "refresh_token": "${KARAT_TEST_IS_NOT_SET}"}}),
        ] {
            let spec = server::read(&written).unwrap();
            let secrets = SuiteSecrets::in_spec(spec, Path::new("."));
            assert_eq!(secrets.redactor.hide("a first-secret-1"), "a [redacted]", "{written}");
            let why: Vec<&String> = secrets.unknown.iter().collect();
            assert!(why.len() == 1 && why[0].contains("KARAT_TEST_IS_NOT_SET"), "{why:?}");
        }
        // Such a value is not a secret.
        let auth = json!({"kind": "client-credentials", "client_id": "${KARAT_TEST_IS_NOT_SET}", "client_secret": "first-secret-1"});
        let spec = server::read(&json!({"url": "http://127.0.0.1", "auth": auth})).unwrap();
        let secrets = SuiteSecrets::in_spec(spec, Path::new("."));
        assert_eq!(secrets.redactor.hide("a first-secret-1"), "a [redacted]");
        let spec = server::read(&json!({"url": "ftp://x", "headers": {"A": "first-secret-1"}}));
        assert!(
            spec.is_err()
                || !SuiteSecrets::in_spec(spec.unwrap(), Path::new(".")).unknown.is_empty()
        );
    }
}
