//! Relations between the answers to related calls: they must hold whatever the right answer is.
//!
//! A relation of a case becomes further calls after its own, which are judged against it: the same arguments in
//! another order, a filter that changes nothing, a narrower question, growing limits, pages. Sessions next to
//! each other must not see each other's values.

use std::collections::BTreeSet;

use karat_core::expect::{Answer, equal};
use karat_io::json_path::JsonPath;
use karat_io::text::{clip, printable};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::observation::{Attempt, Called, Outcome, Role};

/// The largest number of repetitions and of steps of a growing parameter.
const MAX_STEPS: usize = 100;
/// The largest number of pages.
pub(crate) const MAX_PAGES: usize = 200;
/// The maximum number of concurrent sessions.
const MAX_SESSIONS: usize = 32;
/// The columns of a value in a reason.
const SHOWN: usize = 160;

/// A relation as a suite has it: exactly one of the first seven keys.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RelationFile {
    reordered: Option<bool>,
    repeated: Option<usize>,
    same_with: Option<Map<String, Value>>,
    subset_with: Option<Map<String, Value>>,
    growing: Option<GrowingFile>,
    pages: Option<PagesFile>,
    isolated: Option<IsolatedFile>,
    /// The compared part of the answer.
    at: Option<String>,
    /// Parts of it that may differ.
    ignore: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrowingFile {
    parameter: String,
    values: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PagesFile {
    parameter: String,
    next: String,
    #[serde(default)]
    with: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IsolatedFile {
    parameter: String,
    #[serde(default = "two")]
    sessions: usize,
    read: String,
    #[serde(default)]
    input: Map<String, Value>,
}

fn two() -> usize {
    2
}

/// A relation of a call to the call of its case.
#[derive(Debug)]
pub struct Relation {
    kind: Kind,
    at: Option<JsonPath>,
    ignore: Vec<JsonPath>,
    /// The relation for reasons, such as `reordered`.
    name: &'static str,
}

#[derive(Debug)]
enum Kind {
    Same,
    Subset,
    /// All entries of the call before it, unless it is the first.
    Growing {
        is_first: bool,
    },
    Pages(Pages),
    Isolated(Isolated),
}

/// The way to ask for pages.
#[derive(Debug)]
pub(crate) struct Pages {
    pub(crate) parameter: String,
    pub(crate) next: JsonPath,
}

/// Sessions that each write a mark of their own, and then read.
#[derive(Debug)]
pub(crate) struct Isolated {
    pub(crate) parameter: String,
    pub(crate) sessions: usize,
    pub(crate) read: String,
    pub(crate) input: Map<String, Value>,
}

/// The input of a further call, and its relation.
pub(super) type Related = (Map<String, Value>, Relation);

impl RelationFile {
    /// The further calls of the relation.
    ///
    /// # Errors
    /// If it is not one relation, or cannot be judged.
    pub(super) fn compile(self, input: &Map<String, Value>) -> Result<Vec<Related>, String> {
        let given = [
            self.reordered.is_some(),
            self.repeated.is_some(),
            self.same_with.is_some(),
            self.subset_with.is_some(),
            self.growing.is_some(),
            self.pages.is_some(),
            self.isolated.is_some(),
        ];
        if given.iter().filter(|is_given| **is_given).count() != 1 {
            return Err("a relation has exactly one of `reordered`, `repeated`, `same_with`, \
                        `subset_with`, `growing`, `pages` and `isolated`"
                .to_owned());
        }
        let path = |text: &String| JsonPath::parse(text).map_err(|why| format!("{text}: {why}"));
        let at = self.at.as_ref().map(path).transpose()?;
        let ignore: Vec<JsonPath> = self.ignore.iter().map(path).collect::<Result<_, _>>()?;
        let needs_list =
            self.subset_with.is_some() || self.growing.is_some() || self.pages.is_some();
        if needs_list && at.is_none() {
            return Err("`at` must be the path of the list in the answer".to_owned());
        }
        if self.isolated.is_some() && (at.is_some() || !ignore.is_empty()) {
            return Err("`isolated` takes neither `at` nor `ignore`".to_owned());
        }
        let relation = |kind: Kind, name: &'static str| Relation {
            kind,
            at: at.clone(),
            ignore: ignore.clone(),
            name,
        };
        let with = |more: &Map<String, Value>| {
            let mut changed = input.clone();
            changed.extend(more.clone());
            changed
        };
        let differs = |more: &Map<String, Value>, key: &str| match with(more) == *input {
            true => Err(format!("`{key}` changes no argument")),
            false => Ok(with(more)),
        };
        if let Some(is_on) = self.reordered {
            if !is_on || input.len() < 2 {
                return Err("`reordered: true` needs a call with two or more arguments".to_owned());
            }
            let reordered = input.iter().rev().map(|(key, value)| (key.clone(), value.clone()));
            return Ok(vec![(reordered.collect(), relation(Kind::Same, "reordered"))]);
        }
        if let Some(times) = self.repeated {
            if times == 0 || times > MAX_STEPS {
                return Err(format!("`repeated` must be between 1 and {MAX_STEPS}"));
            }
            let again = |_| (input.clone(), relation(Kind::Same, "repeated"));
            return Ok((0..times).map(again).collect());
        }
        if let Some(more) = &self.same_with {
            return Ok(vec![(differs(more, "same_with")?, relation(Kind::Same, "same_with"))]);
        }
        if let Some(more) = &self.subset_with {
            let input = differs(more, "subset_with")?;
            return Ok(vec![(input, relation(Kind::Subset, "subset_with"))]);
        }
        if let Some(GrowingFile { parameter, values }) = self.growing {
            let grow = values.windows(2).all(|pair| pair[0].as_f64() < pair[1].as_f64());
            if values.len() < 2 || values.len() > MAX_STEPS || !grow {
                return Err(format!(
                    "`growing`: `values` must be 2 to {MAX_STEPS} numbers, each larger than the one before"
                ));
            }
            let step = |(at, value): (usize, Value)| {
                let more = Map::from_iter([(parameter.clone(), value)]);
                (with(&more), relation(Kind::Growing { is_first: at == 0 }, "growing"))
            };
            return Ok(values.into_iter().enumerate().map(step).collect());
        }
        if let Some(PagesFile { parameter, next, with: more }) = self.pages {
            let pages = Pages { parameter, next: path(&next)? };
            return Ok(vec![(with(&more), relation(Kind::Pages(pages), "pages"))]);
        }
        let Some(IsolatedFile { parameter, sessions, read, input: reading }) = self.isolated else {
            return Err("the relation is empty".to_owned());
        };
        if !(2..=MAX_SESSIONS).contains(&sessions) {
            return Err(format!("`isolated`: `sessions` must be between 2 and {MAX_SESSIONS}"));
        }
        if read.is_empty() || parameter.is_empty() {
            return Err(
                "`isolated` needs `parameter` and `read`, the tool that shows the value".to_owned()
            );
        }
        let isolated = Isolated { parameter, sessions, read, input: reading };
        Ok(vec![(input.clone(), relation(Kind::Isolated(isolated), "isolated"))])
    }
}

impl Relation {
    /// The way to ask for pages, if it is about pages.
    pub(crate) fn pages(&self) -> Option<&Pages> {
        match &self.kind {
            Kind::Pages(pages) => Some(pages),
            _ => None,
        }
    }

    /// The calls that it makes beyond its own, for the digest of a case's questions.
    pub(crate) fn calls(&self) -> Value {
        let Relation { kind, name, .. } = self;
        match kind {
            Kind::Pages(Pages { parameter, next }) => {
                json!([name, parameter, format!("{next:?}")])
            }
            Kind::Isolated(Isolated { parameter, sessions, read, input }) => {
                json!([name, parameter, sessions, read, input])
            }
            // The order of the arguments is the only thing that such a call changes.
            Kind::Same | Kind::Subset | Kind::Growing { .. } => json!([name]),
        }
    }

    /// The sessions, if it is about concurrent sessions.
    pub(crate) fn isolated(&self) -> Option<&Isolated> {
        match &self.kind {
            Kind::Isolated(isolated) => Some(isolated),
            _ => None,
        }
    }

    /// The reason for which the relation does not hold. `number` is that of its calls in `then`.
    pub(crate) fn broken(&self, attempt: &Attempt, number: usize) -> Option<String> {
        let own = |called: &&Called| (called.role, called.number) == (Role::Then, number);
        let calls: Vec<&Called> = attempt.calls.iter().filter(own).collect();
        let why = match &self.kind {
            Kind::Isolated(isolated) => isolated.broken(&calls),
            Kind::Same => self.same(attempt, &calls),
            Kind::Subset => self.subset(attempt, &calls),
            Kind::Growing { is_first } => {
                let before = number.checked_sub(1).filter(|_| !is_first);
                let before = before.and_then(|number| attempt.find(Role::Then, number));
                self.growing(before, &calls)
            }
            Kind::Pages(_) => self.add_up(attempt, &calls),
        };
        why.err().map(|why| format!("{}: {why}", self.name))
    }

    /// The compared part of an answer.
    fn part(&self, called: &Called) -> Result<Value, String> {
        let result = match &called.outcome {
            Outcome::Result { result } if !called.outcome.is_tool_error() => result,
            other => return Err(format!("a call ended with {other}")),
        };
        let mut part = match &self.at {
            Some(path) => {
                let found = Answer::new(result).data_at(path);
                found.ok_or("no value at the path `at`")?
            }
            None => comparable(result),
        };
        for path in &self.ignore {
            path.find_mut(&mut part).into_iter().for_each(|value| *value = Value::Null);
        }
        Ok(part)
    }

    fn list(&self, called: &Called) -> Result<Vec<Value>, String> {
        match self.part(called)? {
            Value::Array(entries) => Ok(entries),
            _ => Err("what is at the path `at` is not a list".to_owned()),
        }
    }

    fn same(&self, attempt: &Attempt, calls: &[&Called]) -> Result<(), String> {
        let first = self.part(attempt.call().ok_or("the call was not made")?)?;
        for called in calls {
            let other = self.part(called)?;
            if !equal(&first, &other) {
                return Err(format!("the answer was {}, and is {}", shown(&first), shown(&other)));
            }
        }
        Ok(())
    }

    fn subset(&self, attempt: &Attempt, calls: &[&Called]) -> Result<(), String> {
        let all = self.list(attempt.call().ok_or("the call was not made")?)?;
        for called in calls {
            contained(&self.list(called)?, &all)?;
        }
        Ok(())
    }

    /// Entries do not get fewer with a larger value, and none is lost.
    fn growing(&self, before: Option<&Called>, calls: &[&Called]) -> Result<(), String> {
        let fewer = before.map_or(Ok(Vec::new()), |before| self.list(before))?;
        for called in calls {
            contained(&fewer, &self.list(called)?)?;
        }
        Ok(())
    }

    fn add_up(&self, attempt: &Attempt, calls: &[&Called]) -> Result<(), String> {
        let all = self.list(attempt.call().ok_or("the call was not made")?)?;
        let mut joined = Vec::new();
        for called in calls {
            joined.extend(self.list(called)?);
        }
        if calls.len() >= MAX_PAGES {
            return Err(format!("there are {MAX_PAGES} pages or more"));
        }
        if calls.len() < 2 {
            return Err("there is only one page; ask for smaller ones with `with`".to_owned());
        }
        if joined.len() == all.len() && joined.iter().zip(&all).all(|(a, b)| equal(a, b)) {
            return Ok(());
        }
        contained(&all, &joined)?;
        contained(&joined, &all)?;
        Err(format!(
            "{} pages have {} entries in another order or number than the {} of the whole",
            calls.len(),
            joined.len(),
            all.len()
        ))
    }
}

impl Isolated {
    /// The calls are those that write, one of each session, and then those that read.
    fn broken(&self, calls: &[&Called]) -> Result<(), String> {
        if calls.len() != 2 * self.sessions {
            return Err(format!(
                "only {} of {} calls could be made",
                calls.len(),
                2 * self.sessions
            ));
        }
        let (writing, reading) = calls.split_at(self.sessions);
        let mark = |called: &&Called| {
            called.arguments.get(&self.parameter).and_then(Value::as_str).map(str::to_owned)
        };
        let marks: Vec<String> = writing.iter().filter_map(mark).collect();
        if let Some(called) = calls.iter().find(|called| !called.outcome.is_answer()) {
            return Err(format!("a call ended with {}", called.outcome));
        }
        for (number, called) in reading.iter().enumerate() {
            let text = match &called.outcome {
                Outcome::Result { result } => result.to_string(),
                other => other.to_string(),
            };
            let holds = |mark: &String| text.contains(mark.as_str());
            let foreign = marks.iter().enumerate().find(|(at, mark)| *at != number && holds(mark));
            if let Some((other, _)) = foreign {
                return Err(format!(
                    "session {} sees what session {} wrote: {}",
                    number + 1,
                    other + 1,
                    shown(&Value::from(text))
                ));
            }
            if !marks.get(number).is_some_and(holds) {
                return Err(format!(
                    "session {} does not see its own write, so nothing is known about others: {}",
                    number + 1,
                    shown(&Value::from(text))
                ));
            }
        }
        Ok(())
    }
}

/// An answer without what is about the message and not about its content.
fn comparable(result: &Value) -> Value {
    let mut result = result.clone();
    if let Some(fields) = result.as_object_mut() {
        for key in ["_meta", "ttlMs", "cacheScope"] {
            fields.shift_remove(key);
        }
    }
    result
}

/// Every entry of one list is in the other, as often.
fn contained(part: &[Value], whole: &[Value]) -> Result<(), String> {
    let mut used = BTreeSet::new();
    for entry in part {
        let found = (0..whole.len()).find(|at| !used.contains(at) && equal(&whole[*at], entry));
        match found {
            Some(at) => used.insert(at),
            None => {
                return Err(format!(
                    "{} is in one list of {} entries and not in the other of {}",
                    shown(entry),
                    part.len(),
                    whole.len()
                ));
            }
        };
    }
    Ok(())
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    clip(&printable(&text), SHOWN).into_owned()
}
