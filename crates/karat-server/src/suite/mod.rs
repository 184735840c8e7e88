//! A suite: what to call, and what must come back.
//!
//! The plain form that people already have is read as it is:
//! `{"mcp_server": …, "test_cases": [{"tool", "input", "expected_output_contains", "max_latency_ms"}]}`.
//! Beyond it stand matchers, kinds of errors, set-up and tear-down calls, values passed from one call
//! to a later one, and repetition. What is wrong with a suite is found when it is read, before a
//! server is started: a case that could not fail is refused.

pub mod matcher;
pub mod server;
pub mod snapshot;
pub mod variables;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_io::input::{self, Format, InputError, Limits};
use karat_io::json_path::JsonPath;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Deserializer, MapAccess, SeqAccess, Unexpected, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::observation::Role;

use self::matcher::{Matcher, Prepared};
use self::snapshot::{Snapshots, Store};

/// The success rate that a server is held to where the suite says nothing.
pub const TARGET: f64 = 0.95;

/// How often a case may be repeated: every repetition is kept and judged by itself.
const MOST_REPEATED: u32 = 100_000;
/// How many repetitions may be under way at once.
const MOST_AT_ONCE: usize = 10_000;

/// A suite that has been read and found sound.
#[derive(Debug)]
pub struct Suite {
    /// Its name; the file's where it gives none.
    pub name: String,
    /// The digest of the file, and of the snapshots that it wants.
    pub digest: Digest,
    /// The file.
    pub path: PathBuf,
    /// The server, as written; a command line can give another.
    pub server: Option<Value>,
    /// The success rate that is demanded.
    pub target: f64,
    /// Calls before the first case.
    pub setup: Vec<Arc<Step>>,
    /// Calls after the last case.
    pub teardown: Vec<Step>,
    /// The cases, in the order of the file.
    pub cases: Vec<Arc<Case>>,
}

/// One case: a call, and what must come of it.
#[derive(Debug)]
pub struct Case {
    /// Its id, unique in the suite.
    pub id: String,
    /// What it is for, in words.
    pub about: Option<String>,
    /// What chooses it on a command line.
    pub tags: BTreeSet<String>,
    /// The call.
    pub step: Step,
    /// Calls before it.
    pub setup: Vec<Step>,
    /// Calls after it whose expectations count too: what the call left behind.
    pub then: Vec<Step>,
    /// Calls after it that only clean up.
    pub teardown: Vec<Step>,
    /// The latest that the answer may come, in milliseconds.
    pub max_latency_ms: Option<u64>,
    /// How often it is run.
    pub repeat: u32,
    /// How many of its repetitions are under way at once.
    pub concurrency: usize,
    /// The class of attack, for a security case.
    pub class: Option<String>,
    /// Whether the tool must be there for the error that is expected: what does not exist rejects
    /// nothing.
    pub needs_tool: bool,
    /// How often it comes under load, compared with the others.
    pub weight: u32,
}

impl Case {
    /// Every call of the case, in the order in which they are made.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        self.setup.iter().chain([&self.step]).chain(&self.then).chain(&self.teardown)
    }

    /// Puts in what is stored of the snapshots.
    fn fill(&mut self, file: &Path, stored: &Snapshots) {
        let parts: [(Role, &mut [Step]); 3] = [
            (Role::Setup, &mut self.setup),
            (Role::Call, std::slice::from_mut(&mut self.step)),
            (Role::Then, &mut self.then),
        ];
        for (role, steps) in parts {
            for (number, step) in steps.iter_mut().enumerate() {
                let wanted = step.matchers.iter_mut().filter_map(Prepared::snapshot_mut);
                for (at, snapshot) in wanted.enumerate() {
                    let value = stored.get(&snapshot_name(role, number, at)).cloned();
                    snapshot.fill(file.to_owned(), value);
                }
            }
        }
    }
}

/// How a snapshot is called in its file: the call it is of, and which of its snapshots.
#[must_use]
pub fn snapshot_name(role: Role, number: usize, at: usize) -> String {
    match role {
        Role::Call => format!("call.{}", at + 1),
        Role::Setup => format!("setup {}.{}", number + 1, at + 1),
        Role::Then => format!("then {}.{}", number + 1, at + 1),
        Role::Teardown => format!("teardown {}.{}", number + 1, at + 1),
    }
}

/// One call with what is expected and kept of it.
#[derive(Debug)]
pub struct Step {
    /// The tool.
    pub tool: String,
    /// Its arguments, with `${name}` where values go in.
    pub input: Map<String, Value>,
    /// How the call must end.
    pub ending: Ending,
    /// What must stand in the answer.
    pub matchers: Vec<Prepared>,
    /// What is kept of the answer, by name.
    pub save: BTreeMap<String, JsonPath>,
}

impl Step {
    /// The saved values that go into its arguments.
    #[must_use]
    pub fn names(&self) -> BTreeSet<String> {
        let mut names = Vec::new();
        self.input.values().for_each(|value| variables::names(value, &mut names));
        names.into_iter().collect()
    }

    /// Whether a snapshot is expected of its answer.
    #[must_use]
    pub fn wants_snapshot(&self) -> bool {
        self.matchers.iter().any(Prepared::is_snapshot)
    }
}

/// How a call must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// With a result that is no error.
    Success,
    /// With any error: of the tool, or of the protocol.
    AnyError,
    /// With a result that says `isError`.
    ToolError,
    /// With a protocol error, of this code where one is given.
    ProtocolError(Option<i64>),
    /// However it likes, as long as it ends.
    Whatever,
}

/// Why a suite cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// The file cannot be read.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file is a suite, and something in it is wrong.
    #[error("{path}: {place}: {message}")]
    Wrong {
        /// The file.
        path: String,
        /// The case and the part of it.
        place: String,
        /// What is wrong.
        message: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    description: Option<String>,
    #[serde(default, alias = "server")]
    mcp_server: Option<Value>,
    #[serde(default)]
    target: Option<f64>,
    #[serde(default)]
    repeat: Option<u32>,
    #[serde(default)]
    setup: Vec<StepFile>,
    #[serde(default)]
    teardown: Vec<StepFile>,
    #[serde(alias = "cases")]
    test_cases: Vec<CaseFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepFile {
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    expect: Expectations,
    #[serde(default)]
    error: Option<ErrorFile>,
    #[serde(default)]
    save: BTreeMap<String, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    #[serde(default, alias = "name")]
    id: Option<String>,
    #[serde(default, alias = "description")]
    about: Option<String>,
    #[serde(default)]
    tags: BTreeSet<String>,
    tool: String,
    #[serde(default)]
    input: Map<String, Value>,
    #[serde(default)]
    expected_output_contains: Option<matcher::Texts>,
    #[serde(default)]
    expected_error: Option<bool>,
    #[serde(default)]
    expected_behavior: Option<Behavior>,
    #[serde(default)]
    expect: Expectations,
    #[serde(default)]
    error: Option<ErrorFile>,
    #[serde(default)]
    save: BTreeMap<String, String>,
    #[serde(default)]
    setup: Vec<StepFile>,
    #[serde(default)]
    then: Vec<StepFile>,
    #[serde(default)]
    teardown: Vec<StepFile>,
    #[serde(default)]
    max_latency_ms: Option<u64>,
    #[serde(default)]
    repeat: Option<u32>,
    #[serde(default)]
    concurrency: Option<usize>,
    #[serde(default)]
    class: Option<String>,
    #[serde(default)]
    weight: Option<u32>,
}

/// What a security case demands. Both mean that the call must not go through.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Behavior {
    Reject,
    Deny,
}

/// One matcher or a list of them. Read by hand: of an untagged enum the error would only say that
/// nothing fitted, and not which key is wrong.
#[derive(Default)]
struct Expectations(Vec<Matcher>);

impl<'de> Deserialize<'de> for Expectations {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Expectations, D::Error> {
        struct OneOrSeveral;

        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Expectations;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a matcher or a list of matchers")
            }

            fn visit_unit<E>(self) -> Result<Expectations, E> {
                Ok(Expectations::default())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Expectations, A::Error> {
                let matcher = Matcher::deserialize(MapAccessDeserializer::new(map))?;
                Ok(Expectations(vec![matcher]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Expectations, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Expectations)
            }
        }

        deserializer.deserialize_any(OneOrSeveral)
    }
}

/// `error: any`, `error: tool`, `error: protocol`, `error: -32602`, `error: allowed`.
struct ErrorFile(Ending);

impl<'de> Deserialize<'de> for ErrorFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<ErrorFile, D::Error> {
        struct KindOrCode;

        impl Visitor<'_> for KindOrCode {
            type Value = ErrorFile;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("any, tool, protocol, allowed, or the code of a protocol error")
            }

            fn visit_i64<E>(self, code: i64) -> Result<ErrorFile, E> {
                Ok(ErrorFile(Ending::ProtocolError(Some(code))))
            }

            fn visit_u64<E: serde::de::Error>(self, code: u64) -> Result<ErrorFile, E> {
                match i64::try_from(code) {
                    Ok(code) => self.visit_i64(code),
                    Err(_) => Err(E::invalid_value(Unexpected::Unsigned(code), &self)),
                }
            }

            fn visit_str<E: serde::de::Error>(self, kind: &str) -> Result<ErrorFile, E> {
                let ending = match kind {
                    "any" => Ending::AnyError,
                    "tool" => Ending::ToolError,
                    "protocol" => Ending::ProtocolError(None),
                    "allowed" => Ending::Whatever,
                    other => return Err(E::invalid_value(Unexpected::Str(other), &self)),
                };
                Ok(ErrorFile(ending))
            }
        }

        from.deserialize_any(KindOrCode)
    }
}

impl Suite {
    /// Reads a suite, JSON or YAML.
    ///
    /// # Errors
    /// The file cannot be read, or something in it is wrong.
    pub fn load(path: &Path) -> Result<Suite, SuiteError> {
        let bytes = input::read_bytes(path, &Limits::default())?;
        Suite::read(path, &bytes, Some(&Store::beside(path)))
    }

    /// Reads a suite from the bytes of a file; the name says whether it is JSON or YAML. There are no
    /// snapshots beside it.
    ///
    /// # Errors
    /// As [`Suite::load`].
    pub fn parse(path: &Path, bytes: &[u8]) -> Result<Suite, SuiteError> {
        Suite::read(path, bytes, None)
    }

    fn read(path: &Path, bytes: &[u8], store: Option<&Store>) -> Result<Suite, SuiteError> {
        let limits = Limits::default();
        let text = input::decode(&path.to_string_lossy(), bytes, &limits)?;
        let format =
            Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        let file: SuiteFile = input::parse_with(path, &text, format, &limits)?;
        let reader = Reader { path };
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        let name = file.name.or(stem).unwrap_or_default();
        drop(file.description);
        let target = file.target.unwrap_or(TARGET);
        if !(0.0..=1.0).contains(&target) {
            return Err(reader.wrong("target", "a rate lies between 0 and 1"));
        }
        let repeat = file.repeat.unwrap_or(1);
        let setup = reader.steps("setup", file.setup)?;
        let teardown = reader.steps("teardown", file.teardown)?;
        reader.no_snapshots("setup", &setup)?;
        reader.no_snapshots("teardown", &teardown)?;
        let setup = setup.into_iter().map(Arc::new).collect();
        let mut digested = bytes.to_vec();
        let mut ids = BTreeSet::new();
        let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
        let mut cases = Vec::with_capacity(file.test_cases.len());
        for case in file.test_cases {
            let number = numbers.entry(case.tool.clone()).or_default();
            *number += 1;
            let id = case.id.clone().unwrap_or_else(|| format!("{}-{number}", case.tool));
            if !ids.insert(id.clone()) {
                return Err(reader.wrong(&id, "a case of this id stands earlier in the file"));
            }
            let mut case = reader.case(id, case, repeat)?;
            if let Some(store) = store
                && case.steps().any(Step::wants_snapshot)
            {
                let stored = store.read(&case.id)?;
                case.fill(&store.file(&case.id), &stored);
                // Another snapshot is another expectation, so the suite is another one too.
                digested.extend(serde_json::to_vec(&(&case.id, &stored)).unwrap_or_default());
            }
            cases.push(Arc::new(case));
        }
        let suite = Suite {
            name,
            digest: Digest::of(&digested),
            path: path.to_owned(),
            server: file.mcp_server,
            target,
            setup,
            teardown,
            cases,
        };
        reader.names_are_known(&suite)?;
        Ok(suite)
    }
}

struct Reader<'a> {
    path: &'a Path,
}

impl Reader<'_> {
    fn wrong(&self, place: &str, message: impl Into<String>) -> SuiteError {
        SuiteError::Wrong {
            path: self.path.display().to_string(),
            place: place.to_owned(),
            message: message.into(),
        }
    }

    fn steps(&self, place: &str, steps: Vec<StepFile>) -> Result<Vec<Step>, SuiteError> {
        steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| {
                let place = format!("{place} {}", index + 1);
                let ending = step.error.as_ref().map_or(Ending::Success, |error| error.0);
                self.step(&place, step.tool, step.input, ending, &step.expect.0, step.save)
            })
            .collect()
    }

    /// What cleans up, and what comes before all cases, is judged by nobody.
    fn no_snapshots(&self, place: &str, steps: &[Step]) -> Result<(), SuiteError> {
        match steps.iter().any(Step::wants_snapshot) {
            true => Err(self.wrong(place, "a snapshot is of a case, its setup or its then")),
            false => Ok(()),
        }
    }

    fn step(
        &self,
        place: &str,
        tool: String,
        input: Map<String, Value>,
        ending: Ending,
        matchers: &[Matcher],
        save: BTreeMap<String, String>,
    ) -> Result<Step, SuiteError> {
        if tool.is_empty() {
            return Err(self.wrong(place, "tool is empty"));
        }
        let matchers = matchers
            .iter()
            .enumerate()
            .map(|(index, matcher)| {
                let place = format!("{place}: expectation {}", index + 1);
                matcher.prepare().map_err(|message| self.wrong(&place, message))
            })
            .collect::<Result<_, _>>()?;
        let save = save
            .into_iter()
            .map(|(name, path)| match JsonPath::parse(&path) {
                Ok(path) => Ok((name, path)),
                Err(message) => Err(self.wrong(&format!("{place}: save {name}"), message)),
            })
            .collect::<Result<_, _>>()?;
        Ok(Step { tool, input, ending, matchers, save })
    }

    fn case(&self, id: String, case: CaseFile, repeat: u32) -> Result<Case, SuiteError> {
        let ending = self.ending(&id, &case)?;
        let needs_tool = case.expected_behavior.is_some() || ending == Ending::ToolError;
        let mut matchers = case.expect.0;
        if let Some(texts) = case.expected_output_contains {
            matchers.push(Matcher { contains: Some(texts), ..Matcher::default() });
        }
        let repeat = case.repeat.unwrap_or(repeat);
        let concurrency = case.concurrency.unwrap_or(1);
        if repeat == 0 || concurrency == 0 {
            return Err(self.wrong(&id, "repeat and concurrency are at least 1"));
        }
        if repeat > MOST_REPEATED || concurrency > MOST_AT_ONCE {
            return Err(self.wrong(
                &id,
                format!(
                    "repeat is at most {MOST_REPEATED} and concurrency at most {MOST_AT_ONCE}; \
                     karat server load makes more calls"
                ),
            ));
        }
        let step = self.step(&id, case.tool, case.input, ending, &matchers, case.save)?;
        let teardown = self.steps(&format!("{id}: teardown"), case.teardown)?;
        self.no_snapshots(&format!("{id}: teardown"), &teardown)?;
        Ok(Case {
            about: case.about,
            tags: case.tags,
            step,
            setup: self.steps(&format!("{id}: setup"), case.setup)?,
            then: self.steps(&format!("{id}: then"), case.then)?,
            teardown,
            max_latency_ms: case.max_latency_ms,
            repeat,
            concurrency,
            class: case.class,
            needs_tool,
            weight: case.weight.unwrap_or(1),
            id,
        })
    }

    /// The plain form and ours can both say how a call ends; they must not say different things.
    fn ending(&self, id: &str, case: &CaseFile) -> Result<Ending, SuiteError> {
        let stated = [
            case.expected_error
                .map(|wanted| if wanted { Ending::AnyError } else { Ending::Success }),
            case.expected_behavior.map(|_| Ending::AnyError),
            case.error.as_ref().map(|error| error.0),
        ];
        let mut stated = stated.into_iter().flatten();
        let first = stated.next().unwrap_or(Ending::Success);
        if stated.any(|other| other != first) {
            return Err(self.wrong(
                id,
                "expected_error, expected_behavior and error contradict each other; keep one",
            ));
        }
        Ok(first)
    }

    /// Every `${name}` has been saved by an earlier call.
    fn names_are_known(&self, suite: &Suite) -> Result<(), SuiteError> {
        let mut known: BTreeSet<&str> = BTreeSet::new();
        let visit = |place: &str, step: &Step, known: &BTreeSet<&str>| match step
            .names()
            .iter()
            .find(|name| !known.contains(name.as_str()))
        {
            Some(name) => {
                Err(self.wrong(place, format!("${{{name}}} is saved by no earlier call")))
            }
            None => Ok(()),
        };
        for step in &suite.setup {
            visit("setup", step, &known)?;
            known.extend(step.save.keys().map(String::as_str));
        }
        for case in &suite.cases {
            // What a case saves lives on: later cases may build on it.
            for step in case.steps() {
                visit(&case.id, step, &known)?;
                known.extend(step.save.keys().map(String::as_str));
            }
        }
        suite.teardown.iter().try_for_each(|step| visit("teardown", step, &known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(name: &str, text: &str) -> Result<Suite, SuiteError> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        Suite::load(&path)
    }

    fn message(text: &str) -> String {
        load("suite.yaml", text).unwrap_err().to_string()
    }

    #[test]
    fn the_plain_form_is_read_as_it_is() {
        let suite = load(
            "plain.json",
            r#"{"mcp_server": "node server.js", "test_cases": [
                {"tool": "get_weather", "input": {"city": "Bern"}, "expected_output_contains": "temperature", "max_latency_ms": 2000},
                {"tool": "invalid_tool", "input": {}, "expected_error": true}
            ]}"#,
        )
        .unwrap();
        assert_eq!(suite.name, "plain");
        assert_eq!(suite.target, TARGET);
        let ids: Vec<&str> = suite.cases.iter().map(|case| case.id.as_str()).collect();
        assert_eq!(ids, ["get_weather-1", "invalid_tool-1"]);
        assert_eq!(suite.cases[0].step.matchers.len(), 1);
        assert_eq!(suite.cases[0].max_latency_ms, Some(2000));
        assert_eq!(suite.cases[1].step.ending, Ending::AnyError);
    }

    #[test]
    fn a_misspelt_matcher_is_named() {
        for expect in ["{contain: x}", "[{equals: 1}, {contain: x}]"] {
            let told = message(&format!("cases:\n  - {{tool: a, expect: {expect}}}\n"));
            assert!(told.contains("unknown key `contain`"), "{told}");
        }
        assert!(message("cases:\n  - {tool: a, expect: 3}\n").contains("a matcher or a list"));
    }

    #[test]
    fn errors_are_told_apart() {
        let suite = load(
            "errors.yaml",
            "cases:\n  - {tool: a, error: tool}\n  - {tool: b, error: -32602}\n  - {tool: c, error: protocol}\n  - {tool: d, expected_behavior: deny}\n  - {tool: e}\n",
        )
        .unwrap();
        let endings: Vec<Ending> = suite.cases.iter().map(|case| case.step.ending).collect();
        assert_eq!(
            endings,
            [
                Ending::ToolError,
                Ending::ProtocolError(Some(-32602)),
                Ending::ProtocolError(None),
                Ending::AnyError,
                Ending::Success
            ]
        );
    }

    #[test]
    fn values_pass_from_one_call_to_a_later_one_only() {
        let good = "cases:\n  - {tool: create, save: {id: $.id}, then: [{tool: get, input: {id: '${id}'}, expect: {contains: x}}]}\n";
        assert!(load("good.yaml", good).is_ok());
        let bad = "cases:\n  - {id: first, tool: get, input: {id: '${id}'}}\n  - {tool: create, save: {id: $.id}}\n";
        assert!(
            message(bad).contains("first: ${id} is saved by no earlier call"),
            "{}",
            message(bad)
        );
    }

    #[test]
    fn what_is_wrong_is_said_with_its_place() {
        for (text, expected) in [
            (
                "cases:\n  - {tool: a, expect: {contains: ''}}\n",
                "a-1: expectation 1: contains: an empty text",
            ),
            ("cases:\n  - {tool: a, id: x}\n  - {tool: b, id: x}\n", "x: a case of this id"),
            ("cases:\n  - {tool: a, repeat: 0}\n", "a-1: repeat and concurrency"),
            ("repeat: 4294967295\ncases:\n  - {tool: a}\n", "a-1: repeat is at most 100000"),
            ("cases:\n  - {tool: a, concurrency: 10001}\n", "concurrency at most 10000"),
            (
                "cases:\n  - {tool: a, expected_error: false, error: tool}\n",
                "contradict each other",
            ),
            ("target: 95\ncases: []\n", "target: a rate lies between 0 and 1"),
            ("cases:\n  - {tool: a, save: {x: 'a['}}\n", "save x"),
            ("cases:\n  - {tool: a, expect: {snapshot: {redact: ['a[']}}}\n", "is not a path"),
            (
                "teardown: [{tool: a, expect: {snapshot: true}}]\ncases:\n  - {tool: a}\n",
                "teardown: a snapshot is of a case",
            ),
            ("cases:\n  - {tool: a, expcted: 1}\n", "expcted"),
            (
                "cases:\n  - {tool: a, expect: {contains: 12}}\n",
                "suite.yaml:2:24: invalid type: integer `12`, expected a text or a list of texts",
            ),
            (
                "cases:\n  - {tool: a, error: foo}\n",
                "\"foo\", expected any, tool, protocol, allowed, or the code of a protocol error",
            ),
            (
                "cases:\n  - {tool: a, error: 99999999999999999999}\n",
                "expected any, tool, protocol, allowed, or the code of a protocol error",
            ),
            ("cases:\n  - {tool: a, expect: {snapshot: {redct: []}}}\n", "unknown key `redct`"),
            (
                "cases:\n  - {tool: a, expect: {snapshot: 3}}\n",
                "expected true, or an object with redact and redact_matches",
            ),
            (
                "cases:\n  - {tool: a, expect: {exists: true}}\n",
                "a-1: expectation 1: exists: every",
            ),
            (
                "cases:\n  - {tool: a, then: [{tool: a, expect: {one_of: []}}]}\n",
                "a-1: then 1: expectation 1: one_of",
            ),
            (
                "cases:\n  - {tool: a, expect: {json: $.v, equals: 123456789012345678901234567891}}\n",
                "a-1: expectation 1: equals: 1.2345678901234568e+29 is beyond 64 bits",
            ),
        ] {
            let found = message(text);
            assert!(found.contains(expected), "{text}: {found}");
        }
    }

    #[test]
    fn a_snapshot_is_part_of_what_is_expected() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.yaml");
        std::fs::write(&path, "cases:\n  - {id: a, tool: t, expect: {snapshot: true}}\n").unwrap();
        let without = Suite::load(&path).unwrap().digest;
        let snapshots = Snapshots::from([("call.1".to_owned(), "x".into())]);
        Store::beside(&path).write("a", &snapshots).unwrap();
        assert_ne!(Suite::load(&path).unwrap().digest, without);
        std::fs::write(Store::beside(&path).file("a"), "{}").unwrap();
        assert!(Suite::load(&path).is_err());
    }
}
