//! From the results in an answer to ids of the corpus.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use karat_io::Failure;
use karat_io::input::{self, Limits};
use karat_io::json_path::JsonPath;
use karat_io::template::{Template, plain};
use serde_json::Value;

use super::answer::{AnswerConfig, invalid, shown};
use crate::dataset::Dataset;

/// A result, and the value that holds the list it is in.
#[derive(Clone, Copy)]
pub(super) struct Found<'v> {
    pub(super) result: &'v Value,
    parent: &'v Value,
}

/// The place of the results in an answer.
#[derive(Debug)]
pub(super) struct ListPath {
    written: String,
    /// The path to the values that hold the lists: all but the last list.
    outer: JsonPath,
    inner: JsonPath,
    /// The path as far as its first `*`: what must be there even if the list is empty.
    head: JsonPath,
    every: bool,
}

impl ListPath {
    pub(super) fn parse(written: Option<&str>) -> Result<ListPath, String> {
        let written = written.unwrap_or("$");
        let stars = |text: &str| [text.find("[*]"), text.find(".*")].into_iter().flatten().min();
        let star = stars(written);
        // Of `servers[*].tools[*]`, the outer path is `servers[*]` and the inner one `tools[*]`.
        let last = written.rfind("[*]").max(written.rfind(".*")).unwrap_or(0);
        let outer = match written[..last].rfind("[*]") {
            Some(at) => at + "[*]".len(),
            None => 0,
        };
        Ok(ListPath {
            outer: JsonPath::parse(&written[..outer])?,
            inner: JsonPath::parse(written[outer..].trim_start_matches('.'))?,
            head: JsonPath::parse(&written[..star.unwrap_or(written.len())])?,
            every: star.is_some(),
            written: written.to_owned(),
        })
    }

    pub(super) fn results<'v>(&self, value: &'v Value) -> Result<Vec<Found<'v>>, Failure> {
        let heads = self.head.find(value);
        match heads.as_slice() {
            [] => Err(invalid(&format!("the answer has no {}: {}", self.written, shown(value)))),
            // Some languages write an empty list as null.
            [Value::Null] => Ok(Vec::new()),
            [Value::Array(items)] if !self.every => {
                Ok(items.iter().map(|result| Found { result, parent: value }).collect())
            }
            [Value::Array(_) | Value::Object(_)] if self.every => {
                let of = |parent| {
                    let results = self.inner.find(parent).into_iter();
                    results.map(move |result| Found { result, parent })
                };
                Ok(self.outer.find(value).into_iter().flat_map(of).collect())
            }
            _ => Err(invalid(&format!("{} is not a list: {}", self.written, shown(heads[0])))),
        }
    }
}

/// The rule that makes an id of a result. A place that begins with `^.` is of its parent.
#[derive(Debug)]
pub(super) struct IdRule {
    template: Template,
    places: Vec<(String, JsonPath)>,
}

impl IdRule {
    pub(super) fn parse(rule: &str) -> Result<IdRule, String> {
        let template = if rule.contains('{') {
            Template::parse(rule)?
        } else {
            Template::parse(&format!("{{{rule}}}"))?
        };
        let path = |place: &str| JsonPath::parse(place.strip_prefix("^.").unwrap_or(place));
        let places = template
            .placeholders()
            .map(|place| Ok((place.to_owned(), path(place)?)))
            .collect::<Result<Vec<_>, String>>()?;
        if places.is_empty() {
            return Err(format!("the id rule {rule:?} names no field of a result"));
        }
        Ok(IdRule { template, places })
    }

    /// The id, if there is one text or number for each place.
    pub(super) fn apply(&self, found: Found<'_>) -> Option<String> {
        let part = |name: &str| {
            let (_, path) = self.places.iter().find(|(place, _)| place == name)?;
            let value = if name.starts_with("^.") { found.parent } else { found.result };
            match path.find(value).as_slice() {
                [part @ (Value::String(_) | Value::Number(_))] => Some(plain(part)),
                _ => None,
            }
        };
        self.template.fill(|name| part(name).filter(|part| !part.is_empty()).ok_or(())).ok()
    }
}

/// The way a system writes the ids of the corpus.
#[derive(Debug)]
pub(super) struct Naming {
    alias: HashMap<String, String>,
    strip: Vec<String>,
    separator: Option<String>,
    corpus: HashSet<String>,
}

impl Naming {
    pub(super) fn new(
        config: &AnswerConfig,
        dataset: &Dataset,
        folder: &Path,
    ) -> Result<Naming, String> {
        let load = |path: &Path| input::load(&folder.join(path), &Limits::default());
        let alias = config.alias.as_deref().map(load).transpose();
        Ok(Naming {
            alias: alias.map_err(|error| format!("alias: {error}"))?.unwrap_or_default(),
            strip: config.strip.0.clone(),
            separator: config.separator.clone(),
            corpus: dataset.tools.iter().map(|tool| tool.tool_id.clone()).collect(),
        })
    }

    /// The id of the corpus that a system's id means: by the list of aliases, without its prefix, and
    /// with `:` between server and tool, where that gives a tool of the corpus, else at the first
    /// separator, so that an unknown tool is still shown as what it claims to be.
    pub(super) fn corpus_id(&self, id: String) -> String {
        if let Some(alias) = self.alias.get(&id) {
            return alias.clone();
        }
        if self.corpus.contains(&id) {
            return id;
        }
        let stripped = self.strip.iter().find_map(|prefix| id.strip_prefix(prefix.as_str()));
        let id = stripped.map_or(id.clone(), str::to_owned);
        let Some(separator) = self.separator.as_ref().filter(|_| !self.corpus.contains(&id)) else {
            return id;
        };
        let divided: Vec<String> = id
            .match_indices(separator.as_str())
            .map(|(at, _)| format!("{}:{}", &id[..at], &id[at + separator.len()..]))
            .collect();
        let known = divided.iter().find(|id| self.corpus.contains(*id));
        known.or(divided.first()).cloned().unwrap_or(id)
    }
}
