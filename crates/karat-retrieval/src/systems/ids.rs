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
    /// The path to the first list, from a member of it to the next one, and at last to the result.
    parts: Vec<JsonPath>,
    every: bool,
}

impl ListPath {
    pub(super) fn parse(written: Option<&str>) -> Result<ListPath, String> {
        let written = written.unwrap_or("$");
        let mut parts = JsonPath::parse(written)?.between_stars();
        let every = parts.len() > 1;
        // Without a `*` the path leads to the list itself.
        if !every {
            parts.extend(JsonPath::parse("$")?.between_stars());
        }
        Ok(ListPath { written: written.to_owned(), parts, every })
    }

    /// The results, in order.
    ///
    /// # Errors
    /// If any list is missing, or any member of the last one has no result. A missing list is not an empty one.
    pub(super) fn results<'v>(&self, value: &'v Value) -> Result<Vec<Found<'v>>, Failure> {
        // The members of the lists so far, each with the value that holds the list it is in.
        let mut found = vec![Found { result: value, parent: value }];
        for (number, part) in self.parts.iter().enumerate() {
            let lists = number + 1 < self.parts.len();
            let mut next = Vec::new();
            for Found { result: holder, parent } in found {
                let inner = match part.find(holder).as_slice() {
                    [inner] => *inner,
                    _ => {
                        let message = format!("the answer has no {}", self.written);
                        return Err(invalid(&format!("{message}: {}", shown(holder))));
                    }
                };
                let of_list = |result| Found { result, parent: holder };
                match inner {
                    inner if !lists => next.push(Found { result: inner, parent }),
                    // Some languages write an empty list as null.
                    Value::Null => {}
                    Value::Array(items) => next.extend(items.iter().map(of_list)),
                    Value::Object(fields) if self.every => {
                        next.extend(fields.values().map(of_list));
                    }
                    other => {
                        let message = format!("{} is not a list: {}", self.written, shown(other));
                        return Err(invalid(&message));
                    }
                }
            }
            found = next;
        }
        Ok(found)
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
