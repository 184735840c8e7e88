//! The file format of suites, JSON or YAML, and its checks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use karat_core::dataset::Digest;
use karat_core::expect::{MatcherSpec, Texts, one_or_several};
use karat_io::input::{self, Format, InputError, Limits};
use karat_io::json_path::JsonPath;
use serde::Deserialize;
use serde::de::{Deserializer, Error, Unexpected, Visitor};
use serde_json::{Map, Value};

use super::headers::{Header, HeaderFile};
use super::notices::{Notice, NoticeFile, NoticeFiles};
use super::relations::RelationFile;
use super::snapshot::Store;
use super::tasks::TaskPlan;
use super::texts::{self, TextCase, Wanted};
use super::{Case, Ending, Feature, Step, Suite, TARGET, variables};

/// The largest number of attempts of a case: each is kept and judged by itself.
const MAX_REPEAT: u32 = 100_000;
/// The largest number of attempts under way at once.
const MAX_CONCURRENCY: usize = 10_000;

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct SuiteFile {
    name: Option<String>,
    #[serde(default, rename = "description")]
    _description: Option<String>,
    #[serde(default, alias = "server")]
    mcp_server: Option<Value>,
    target: Option<f64>,
    repeat: Option<u32>,
    #[serde(default)]
    hide_private: bool,
    #[serde(default)]
    setup: Vec<StepFile>,
    #[serde(default)]
    teardown: Vec<StepFile>,
    #[serde(alias = "cases")]
    test_cases: Vec<CaseFile>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StepFile {
    tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    method: Option<String>,
    input: Map<String, Value>,
    expect: Expectations,
    error: Option<ErrorFile>,
    notifications: NoticeFiles,
    headers: BTreeMap<String, HeaderFile>,
    task: Option<TaskPlan>,
    save: BTreeMap<String, String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CaseFile {
    #[serde(alias = "name")]
    id: Option<String>,
    #[serde(alias = "description")]
    about: Option<String>,
    tags: BTreeSet<String>,
    tool: Option<String>,
    resource: Option<String>,
    prompt: Option<String>,
    method: Option<String>,
    input: InputFile,
    expected: Option<String>,
    expected_output_contains: Option<Texts>,
    expected_error: Option<bool>,
    expected_behavior: Option<Behavior>,
    expect: Expectations,
    error: Option<ErrorFile>,
    save: BTreeMap<String, String>,
    notifications: NoticeFiles,
    headers: BTreeMap<String, HeaderFile>,
    task: Option<TaskPlan>,
    relations: Relations,
    setup: Vec<StepFile>,
    then: Vec<StepFile>,
    teardown: Vec<StepFile>,
    max_latency_ms: Option<u64>,
    repeat: Option<u32>,
    concurrency: Option<usize>,
    class: Option<String>,
    weight: Option<u32>,
}

/// The arguments of a call, or a text for every tool that takes one.
enum InputFile {
    Arguments(Map<String, Value>),
    Text(String),
}

impl Default for InputFile {
    fn default() -> InputFile {
        InputFile::Arguments(Map::new())
    }
}

impl<'de> Deserialize<'de> for InputFile {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<InputFile, D::Error> {
        match Value::deserialize(from)? {
            Value::Object(arguments) => Ok(InputFile::Arguments(arguments)),
            Value::String(text) => Ok(InputFile::Text(text)),
            _ => Err(D::Error::custom(
                "`input` must be an object with the arguments of the tool, or a text for every tool \
                 that takes one",
            )),
        }
    }
}

/// The demand of a security case. Both mean that the call must not succeed.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Behavior {
    Reject,
    Deny,
}

/// One matcher or a list of them.
#[derive(Default)]
struct Expectations(Vec<MatcherSpec>);

impl<'de> Deserialize<'de> for Expectations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Expectations, D::Error> {
        one_or_several(from, "a matcher or a list of matchers").map(Expectations)
    }
}

/// One relation or a list of them.
#[derive(Default)]
struct Relations(Vec<RelationFile>);

impl<'de> Deserialize<'de> for Relations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Relations, D::Error> {
        one_or_several(from, "a relation or a list of relations").map(Relations)
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

            fn visit_u64<E: Error>(self, code: u64) -> Result<ErrorFile, E> {
                match i64::try_from(code) {
                    Ok(code) => self.visit_i64(code),
                    Err(_) => Err(E::invalid_value(Unexpected::Unsigned(code), &self)),
                }
            }

            fn visit_str<E: Error>(self, kind: &str) -> Result<ErrorFile, E> {
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

/// Reads a suite from the content of its file, with its snapshots if there is a store.
pub(super) fn read(
    path: &Path,
    bytes: Vec<u8>,
    store: Option<&Store>,
) -> Result<Suite, InputError> {
    let limits = Limits::default();
    let text = input::decode(&path.to_string_lossy(), &bytes, &limits)?;
    let format =
        Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
    let mut file = if text.trim_start().starts_with(['[', '-']) {
        let test_cases = input::parse_with(path, &text, format, &limits)?;
        SuiteFile { test_cases, ..SuiteFile::default() }
    } else {
        input::parse_with(path, &text, format, &limits)?
    };
    let reader = Reader { path };
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let target = file.target.unwrap_or(TARGET);
    if !(0.0..=1.0).contains(&target) {
        return Err(reader.invalid("target", "must be between 0 and 1"));
    }
    let setup = reader.steps("setup", file.setup)?;
    let teardown = reader.steps("teardown", file.teardown)?;
    reader.refuse_snapshots("setup", &setup)?;
    reader.refuse_snapshots("teardown", &teardown)?;
    let mut digested = bytes.clone();
    let mut ids = BTreeSet::new();
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    let mut cases = Vec::with_capacity(file.test_cases.len());
    let mut texts = Vec::new();
    for case in std::mem::take(&mut file.test_cases) {
        let named = [&case.tool, &case.resource, &case.prompt, &case.method];
        let name = named.into_iter().flatten().next().map_or("text", String::as_str);
        let number = numbers.entry(name.to_owned()).or_default();
        *number += 1;
        let id = case.id.clone().unwrap_or_else(|| format!("{name}-{number}"));
        if id.trim().is_empty() {
            return Err(
                reader.invalid("cases", format!("the id of case {} is empty", ids.len() + 1))
            );
        }
        if !ids.insert(id.clone()) {
            return Err(reader.invalid(&id, "duplicate id: an earlier case has it"));
        }
        if matches!(case.input, InputFile::Text(_)) {
            texts.push(reader.text(id, case, file.repeat.unwrap_or(1))?);
            continue;
        }
        let mut case = reader.case(id, case, file.repeat.unwrap_or(1))?;
        if let Some(store) = store
            && case.expects_snapshot()
        {
            let stored = store.read(&case.id)?;
            case.fill(&store.file(&case.id), &stored);
            // Another snapshot is another expectation, so the suite is another one too.
            digested.extend(serde_json::to_vec(&(&case.id, &stored)).unwrap_or_default());
        }
        cases.push(Arc::new(case));
    }
    let suite = Suite {
        name: file.name.or(stem).unwrap_or_default(),
        digest: Digest::of(&digested),
        path: path.to_owned(),
        server: file.mcp_server,
        target,
        hides_private: file.hide_private,
        setup: setup.into_iter().map(Arc::new).collect(),
        teardown,
        cases,
        texts,
        bytes,
    };
    reader.check_names(&suite)?;
    Ok(suite)
}

/// Every text in arguments, one on each line.
fn texts_in(arguments: &Map<String, Value>) -> String {
    let texts = arguments.values().filter_map(Value::as_str);
    texts.collect::<Vec<_>>().join("\n")
}

struct Reader<'a> {
    path: &'a Path,
}

impl Reader<'_> {
    fn invalid(&self, place: &str, message: impl Into<String>) -> InputError {
        InputError::invalid(self.path, place, message)
    }

    fn steps(&self, place: &str, steps: Vec<StepFile>) -> Result<Vec<Step>, InputError> {
        steps
            .into_iter()
            .enumerate()
            .map(|(index, step)| {
                let place = format!("{place} {}", index + 1);
                let ending = step.error.as_ref().map_or(Ending::Success, |error| error.0);
                let named = [step.tool, step.resource, step.prompt, step.method];
                let request = self.request(&place, named, step.input)?;
                let mut made = self.step(&place, request, ending, &step.expect.0, step.save)?;
                made.notices = self.notices(&place, step.notifications)?;
                made.headers = self.headers(&place, step.headers)?;
                made.task = self.task(&place, &made, step.task)?;
                Ok(made)
            })
            .collect()
    }

    /// Teardown calls, and calls before all cases, belong to no case that could fail.
    fn refuse_snapshots(&self, place: &str, steps: &[Step]) -> Result<(), InputError> {
        match steps.iter().any(Step::expects_snapshot) {
            true => Err(self.invalid(
                place,
                "a snapshot can be expected only in a case, in its setup and in its then",
            )),
            false => Ok(()),
        }
    }

    /// The part of the server that is asked for: the values of `tool`, `resource`, `prompt` and `method`.
    fn request(
        &self,
        place: &str,
        named: [Option<String>; 4],
        mut input: Map<String, Value>,
    ) -> Result<(Feature, String, Map<String, Value>), InputError> {
        let features = [Feature::Tool, Feature::Resource, Feature::Prompt, Feature::Method];
        let mut named = named.into_iter().zip(features).filter_map(|(name, feature)| {
            let name = name?;
            Some((feature, name))
        });
        let Some((feature, name)) = named.next() else {
            let message = "missing `tool`, `resource`, `prompt` or `method`";
            return Err(self.invalid(place, message));
        };
        if let Some((other, _)) = named.next() {
            let (one, other) = (feature.name(), other.name());
            return Err(self.invalid(place, format!("keep either `{one}` or `{other}`")));
        }
        if name.is_empty() {
            return Err(self.invalid(place, format!("`{}` is empty", feature.name())));
        }
        if feature == Feature::Resource {
            if !input.is_empty() {
                let message = "a resource takes no `input`; write its parameters into the URI";
                return Err(self.invalid(place, message));
            }
            input.insert("uri".to_owned(), Value::from(name.as_str()));
        }
        let instead = match name.as_str() {
            "tools/call" => Some("`tool`"),
            "resources/read" => Some("`resource`"),
            "prompts/get" => Some("`prompt`"),
            _ => None,
        };
        if let (Feature::Method, Some(instead)) = (feature, instead) {
            return Err(self.invalid(place, format!("for {name} use {instead}")));
        }
        if feature == Feature::Method && name.starts_with("notifications/") {
            return Err(self.invalid(place, "a notification has no answer that could be expected"));
        }
        Ok((feature, name, input))
    }

    fn step(
        &self,
        place: &str,
        (feature, tool, input): (Feature, String, Map<String, Value>),
        ending: Ending,
        matchers: &[MatcherSpec],
        save: BTreeMap<String, String>,
    ) -> Result<Step, InputError> {
        if !feature.is_tool() && matches!(ending, Ending::ToolError | Ending::Denied) {
            let message =
                "`error: tool` and `expected_behavior` are for tools; use `error: protocol`";
            return Err(self.invalid(place, message));
        }
        input
            .values()
            .try_for_each(|value| variables::names(value, &mut Vec::new()))
            .map_err(|error| self.invalid(&format!("{place}: input"), error.to_string()))?;
        let matchers = matchers
            .iter()
            .enumerate()
            .map(|(index, matcher)| {
                let place = format!("{place}: expectation {}", index + 1);
                matcher.compile().map_err(|message| self.invalid(&place, message))
            })
            .collect::<Result<_, _>>()?;
        let save = save
            .into_iter()
            .map(|(name, path)| match JsonPath::parse(&path) {
                Ok(path) => Ok((name, path)),
                Err(message) => Err(self.invalid(&format!("{place}: save {name}"), message)),
            })
            .collect::<Result<_, _>>()?;
        let asked = (ending == Ending::Denied).then(|| texts_in(&input));
        Ok(Step { feature, ending, matchers, save, asked, ..Step::plain(&tool, input) })
    }

    fn notices(&self, place: &str, files: NoticeFiles) -> Result<Vec<Notice>, InputError> {
        let compile = |(index, file): (usize, NoticeFile)| {
            let place = format!("{place}: notification {}", index + 1);
            file.compile().map_err(|message| self.invalid(&place, message))
        };
        files.0.into_iter().enumerate().map(compile).collect()
    }

    fn headers(
        &self,
        place: &str,
        files: BTreeMap<String, HeaderFile>,
    ) -> Result<Vec<Header>, InputError> {
        let mut headers = Vec::new();
        for (name, file) in files {
            let compiled = file.compile(&name);
            headers
                .extend(compiled.map_err(|message| {
                    self.invalid(&format!("{place}: header {name}"), message)
                })?);
        }
        Ok(headers)
    }

    fn task(
        &self,
        place: &str,
        step: &Step,
        task: Option<TaskPlan>,
    ) -> Result<Option<TaskPlan>, InputError> {
        match task.is_some() && !step.feature.is_tool() {
            true => Err(self.invalid(place, "only the call of a tool can be a task")),
            false => Ok(task),
        }
    }

    /// The further calls that relations to the call of a case need.
    fn related(
        &self,
        id: &str,
        step: &Step,
        relations: Vec<RelationFile>,
    ) -> Result<Vec<Step>, InputError> {
        let mut steps = Vec::new();
        for (index, file) in relations.into_iter().enumerate() {
            let place = format!("{id}: relation {}", index + 1);
            if !step.feature.is_tool() || step.ending != Ending::Success {
                let message = "a relation needs the call of a tool that must succeed";
                return Err(self.invalid(&place, message));
            }
            let related =
                file.compile(&step.input).map_err(|message| self.invalid(&place, message))?;
            for (input, relation) in related {
                let request = (step.feature, step.tool.clone(), input);
                let made = self.step(&place, request, Ending::Success, &[], BTreeMap::new())?;
                steps.push(Step { relation: Some(relation), ..made });
            }
        }
        Ok(steps)
    }

    /// A case that is a text.
    fn text(&self, id: String, case: CaseFile, repeat: u32) -> Result<TextCase, InputError> {
        let ending = self.ending(&id, &case)?;
        let plain = case.resource.is_none()
            && case.prompt.is_none()
            && case.method.is_none()
            && case.expect.0.is_empty()
            && case.error.is_none()
            && case.save.is_empty()
            && case.setup.is_empty()
            && case.then.is_empty()
            && case.teardown.is_empty()
            && case.notifications.0.is_empty()
            && case.relations.0.is_empty()
            && case.headers.is_empty()
            && case.task.is_none()
            && case.concurrency.is_none();
        if !plain {
            let message = "with a text as `input` only `expected`, `expected_behavior`, \
                           `expected_error`, `expected_output_contains` and `max_latency_ms` go together";
            return Err(self.invalid(&id, message));
        }
        let InputFile::Text(text) = case.input else {
            return Err(self.invalid(&id, "`input` is not a text"));
        };
        let mut matchers = Vec::new();
        if let Some(expected) = case.expected.filter(|text| !texts::is_description(text)) {
            matchers.push(MatcherSpec::containing(Texts::one(expected)));
        }
        matchers.extend(case.expected_output_contains.map(MatcherSpec::containing));
        let compiled = matchers.iter().try_for_each(|matcher| matcher.compile().map(drop));
        compiled.map_err(|message| self.invalid(&id, message))?;
        let wanted = match ending {
            Ending::Denied | Ending::AnyError if matchers.is_empty() => Wanted::Denied,
            Ending::Success => Wanted::Answered(matchers),
            _ => return Err(self.invalid(&id, "a denial has no expected text")),
        };
        let (about, tags, tool) = (case.about, case.tags, case.tool);
        let (max_latency_ms, class) = (case.max_latency_ms, case.class);
        let repeat = case.repeat.unwrap_or(repeat);
        Ok(TextCase { id, about, tags, text, tool, wanted, max_latency_ms, class, repeat })
    }

    fn case(&self, id: String, case: CaseFile, repeat: u32) -> Result<Case, InputError> {
        let ending = self.ending(&id, &case)?;
        let needs_tool = case.expected_behavior.is_some() || ending == Ending::ToolError;
        let named = [case.tool, case.resource, case.prompt, case.method];
        let (true, InputFile::Arguments(input)) = (named.iter().any(Option::is_some), case.input)
        else {
            let message = "the case has no `tool`, `resource`, `prompt` or `method`; without one, `input` \
                           must be a text, which is sent to every tool that takes one";
            return Err(self.invalid(&id, message));
        };
        let request = self.request(&id, named, input)?;
        let mut matchers = case.expect.0;
        if let Some(expected) = case.expected.filter(|text| !texts::is_description(text)) {
            matchers.push(MatcherSpec::containing(Texts::one(expected)));
        }
        matchers.extend(case.expected_output_contains.map(MatcherSpec::containing));
        let repeat = case.repeat.unwrap_or(repeat);
        let concurrency = case.concurrency.unwrap_or(1);
        if repeat == 0 || concurrency == 0 {
            return Err(self.invalid(&id, "`repeat` and `concurrency` must be at least 1"));
        }
        if repeat > MAX_REPEAT || concurrency > MAX_CONCURRENCY {
            let message = format!(
                "`repeat` must be at most {MAX_REPEAT} and `concurrency` at most \
                 {MAX_CONCURRENCY}; for more calls use `karat server load`"
            );
            return Err(self.invalid(&id, message));
        }
        let mut step = self.step(&id, request, ending, &matchers, case.save)?;
        step.notices = self.notices(&id, case.notifications)?;
        step.headers = self.headers(&id, case.headers)?;
        step.task = self.task(&id, &step, case.task)?;
        let mut then = self.steps(&format!("{id}: then"), case.then)?;
        then.extend(self.related(&id, &step, case.relations.0)?);
        let setup = self.steps(&format!("{id}: setup"), case.setup)?;
        let notifies =
            setup.iter().chain([&step]).chain(&then).any(|step| !step.notices.is_empty());
        if concurrency > 1 && notifies {
            let message = "`notifications` and `concurrency` cannot be combined: a notification does not \
                           identify its call";
            return Err(self.invalid(&id, message));
        }
        let teardown = self.steps(&format!("{id}: teardown"), case.teardown)?;
        self.refuse_snapshots(&format!("{id}: teardown"), &teardown)?;
        Ok(Case {
            own_id: id.clone(),
            name: step.tool.clone(),
            about: case.about,
            tags: case.tags,
            step: Arc::new(step),
            setup: setup.into(),
            then: then.into(),
            teardown: teardown.into(),
            max_latency_ms: case.max_latency_ms,
            repeat,
            concurrency,
            class: case.class,
            needs_tool,
            any_of: false,
            weight: case.weight.unwrap_or(1),
            id,
        })
    }

    /// The expected outcome, which the plain form and ours write differently. They must agree.
    fn ending(&self, id: &str, case: &CaseFile) -> Result<Ending, InputError> {
        let stated = [
            case.expected_error
                .map(|wanted| if wanted { Ending::AnyError } else { Ending::Success }),
            case.expected_behavior.as_ref().map(|_| Ending::Denied),
            case.error.as_ref().map(|error| error.0),
        ];
        let mut stated = stated.into_iter().flatten();
        let first = stated.next().unwrap_or(Ending::Success);
        // A denial may be an error, so both can be said of one case: the stricter one counts.
        let is_denial = |one: Ending| matches!(one, Ending::AnyError | Ending::Denied);
        match stated.any(|other| other != first && !(is_denial(first) && is_denial(other))) {
            true => Err(self.invalid(
                id,
                "`expected_error`, `expected_behavior` and `error` contradict each other; keep one",
            )),
            false => Ok(first),
        }
    }

    /// Every `${name}` must have been saved by an earlier call.
    fn check_names(&self, suite: &Suite) -> Result<(), InputError> {
        let setup = suite.setup.iter().map(|step| ("setup", &**step));
        // A saved value is kept: later cases may build on it.
        let cases =
            suite.cases.iter().flat_map(|case| case.steps().map(|step| (case.id.as_str(), step)));
        let teardown = suite.teardown.iter().map(|step| ("teardown", step));
        let mut known: BTreeSet<&str> = BTreeSet::new();
        for (place, step) in setup.chain(cases).chain(teardown) {
            if let Some(name) = step.names().iter().find(|name| !known.contains(name.as_str())) {
                return Err(self.invalid(place, format!("no earlier call saves ${{{name}}}")));
            }
            known.extend(step.save.keys().map(String::as_str));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
