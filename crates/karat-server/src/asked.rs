//! The requests of the cases of a suite, as digests: recorded answers are judged by a later version of the suite
//! only where it makes the same requests.
//!
//! A digest covers the calls and the parts of their answers that are kept, and of the expectations only those of
//! notifications, which decide how long these are waited for. The arguments are those of the suite, before values
//! are put in: where the calls that save these values are the same, so are the values. Nothing is taken out before
//! hashing, so a suite gives the same digests whether or not the secrets of its server are known; the digest of the
//! whole suite is in every report already.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use karat_core::dataset::{Digest, canonical};
use karat_mcp::{Definition, Redactor};
use serde_json::{Value, json};

use crate::observation::Asked;
use crate::plan;
use crate::secrets;
use crate::suite::notices::Notice;
use crate::suite::{Case, Step, Suite};

/// The digests of a suite.
#[derive(Debug)]
pub(crate) struct Fingerprints {
    /// For the calls before the first case, and the session.
    pub(crate) session: Digest,
    /// For each case, in their order.
    pub(crate) cases: Vec<Digest>,
}

impl Fingerprints {
    /// The digests of a suite and of its cases, with the cases made for tools.
    pub(crate) fn of(suite: &Suite, cases: &[Arc<Case>]) -> Fingerprints {
        // The case that saved a value last, by the name of the value. Values of the setup are not in here: their
        // digest is of the session.
        let mut savers: BTreeMap<&str, Digest> = BTreeMap::new();
        let mut digests = Vec::with_capacity(cases.len());
        for case in cases {
            let needs = plan::needs(case);
            let values: BTreeMap<&str, Option<String>> = needs
                .iter()
                .map(|name| (name.as_str(), savers.get(name.as_str()).map(Digest::to_string)))
                .collect();
            let digest = canonical::digest(&json!({
                "setup": steps(&case.setup),
                "call": step(&case.step),
                "then": steps(&case.then),
                "teardown": steps(&case.teardown),
                "repeat": case.repeat,
                "concurrency": case.concurrency,
                "values": values,
            }));
            digests.push(digest);
            let saved = case.steps().flat_map(|step| step.save.keys());
            savers.extend(saved.map(|name| (name.as_str(), digest)));
        }
        Fingerprints { session: session(suite), cases: digests }
    }
}

/// The requests of a case with these digests. `tools` are those that the server has listed by now.
pub(crate) fn asked(
    case: &Case,
    (session, calls): (Digest, Digest),
    tools: &BTreeMap<String, Definition>,
    redactor: &Redactor,
) -> Asked {
    let declares = |tool: &Definition| tool.output_schema().is_some();
    let listed = tools_of(case).into_iter().filter_map(|name| tools.get_key_value(name));
    let quoted = secrets::quoted(case, redactor);
    Asked {
        session,
        calls,
        tools: listed.map(|(name, tool)| (name.clone(), declares(tool))).collect(),
        has_secrets: !quoted.is_empty(),
        quoted,
    }
}

/// The tools that a case calls.
fn tools_of(case: &Case) -> BTreeSet<&str> {
    let isolated = case.steps().filter_map(|step| step.relation.as_ref()?.isolated());
    let called = case.steps().filter_map(Step::called_tool);
    called.chain(isolated.map(|one| one.read.as_str())).collect()
}

/// The digest of the conditions for all cases. Of the server only the settings of its sessions: which server is
/// measured is not up to the suite.
fn session(suite: &Suite) -> Digest {
    let server = |key: &str| suite.server.as_ref().and_then(|server| server.get(key));
    let setup: Vec<Value> = suite.setup.iter().map(|one| step(one)).collect();
    canonical::digest(&json!({
        "setup": setup,
        "hide_private": suite.hides_private,
        "policies": server("policies"),
        "protocol": server("protocol"),
    }))
}

fn steps(all: &[Step]) -> Vec<Value> {
    all.iter().map(step).collect()
}

/// A call and the parts of its answer that are kept.
fn step(step: &Step) -> Value {
    let Step { feature, tool, input, save, notices, headers, task, relation, .. } = step;
    let save: BTreeMap<&String, String> =
        save.iter().map(|(name, path)| (name, format!("{path:?}"))).collect();
    // The whole expectation of notifications decides how long they are waited for.
    let notices: Vec<Value> = notices.iter().map(Notice::waiting).collect();
    let headers: BTreeSet<&str> = headers.iter().map(|header| header.name()).collect();
    json!({
        "feature": feature,
        "tool": tool,
        "input": input,
        "save": save,
        "notifications": notices,
        "headers": headers,
        "task": task.as_ref().map(|task| json!({"ttl_ms": task.ttl_ms, "cancel": task.cancel})),
        "relation": relation.as_ref().map(|relation| relation.calls()),
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn digest(case: &str) -> Digest {
        let suite = format!("cases: [{case}]");
        let suite = Suite::parse(Path::new("s.yaml"), suite.as_bytes()).unwrap();
        Fingerprints::of(&suite, &suite.cases).cases[0]
    }

    #[test]
    fn a_digest_covers_the_expected_notifications_and_no_other_expectation() {
        let case = "{tool: t, expect: {schema: {properties: {a: {type: string}}}}, notifications: {method: progress, \
                    expect: {schema: {properties: {a: {type: string}, b: {}, c: {}, d: {}, e: {}}}}}}";
        for _ in 0..8 {
            assert_eq!(digest(case), digest(case));
        }
        let (answer, notification) = case.split_once("notifications").unwrap();
        let changed = |text: &str| text.replace("type: string", "type: number");
        assert_eq!(
            digest(&format!("{}notifications{notification}", changed(answer))),
            digest(case)
        );
        assert_ne!(
            digest(&format!("{answer}notifications{}", changed(notification))),
            digest(case)
        );
        assert_ne!(digest(&case.replace("progress,", "progress, within_ms: 5,")), digest(case));
    }
}
