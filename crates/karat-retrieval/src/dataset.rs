//! The frozen tool corpus and the golden queries.
//!
//! Reads Karat's own dataset folders and the public mcpproxy files as they are: a corpus
//! `{version, tools: [{tool_id, server, tool, description, schema}]}` and a golden set
//! `{corpus_version, queries: [{id, query, labels: [{tool_id, relevance}]}]}`. What comes out is
//! checked: ids are unique, every label points to a tool of the corpus or is listed as dangling, and
//! everything is sorted by id, so that nothing downstream depends on the order of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::{Dataset as Frozen, DatasetFiles, Digest};
use karat_core::report::DatasetRef;
use karat_core::tool::Corpus;
pub use karat_core::tool::Tool;
use karat_io::input::{self, Format, InputError, Limits};
use serde::{Deserialize, Serialize};

use karat_core::error::EvalError;

/// The highest relevance grade of a label.
pub const MAX_RELEVANCE: u8 = 2;

/// One golden query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Query {
    /// Its id, unique in the dataset.
    pub id: String,
    /// The text of the query.
    pub query: String,
    /// The tools that answer it, and which look as if they did.
    pub labels: Vec<Label>,
    /// `direct`, `paraphrase`, `near_duplicate` or `multi`.
    #[serde(default)]
    pub kind: Option<String>,
    /// `train`, `dev` or `test`.
    #[serde(default)]
    pub split: Option<String>,
    /// Notes for a reviewer.
    #[serde(default)]
    pub notes: Option<String>,
    /// Its position among the queries: in a golden file by place, in a folder by id.
    #[serde(skip)]
    pub place: usize,
}

/// A judgement: 2 the right tool, 1 useful, 0 looks right and is wrong.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Label {
    /// The tool.
    pub tool_id: String,
    /// The way relevant.
    pub relevance: u8,
}

/// Tools of different servers that do the same job.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Group {
    /// Its id.
    pub id: String,
    /// Its tools.
    pub tools: Vec<String>,
    /// The reason they are a group.
    #[serde(default)]
    pub why: Option<String>,
}

/// A label whose tool the corpus does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dangling {
    /// The query that is labelled.
    pub query: String,
    /// The tool that is not there.
    pub tool_id: String,
}

/// The treatment of labels whose tool is not in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Labels {
    /// It is an error: the files do not belong together.
    MustExist,
    /// They are kept and listed: a tool has vanished from a corpus that lives. It cannot be found,
    /// so its query loses recall, and the gate fails.
    MayDangle,
}

/// A corpus with its golden queries.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The name in the report.
    pub reference: DatasetRef,
    /// The tools, sorted by id.
    pub tools: Vec<Tool>,
    /// The queries, sorted by id.
    pub queries: Vec<Query>,
    /// Declared groups of near-duplicates.
    pub groups: Vec<Group>,
    /// Labels without a tool, by query.
    pub dangling: Vec<Dangling>,
}

#[derive(Deserialize)]
struct RawGolden {
    queries: Vec<Query>,
}

impl Dataset {
    /// Reads a dataset folder after its digests have been verified: `tools/`, `golden/`, `groups/`.
    pub fn open(files: DatasetFiles) -> Result<Dataset, EvalError> {
        let frozen = Frozen::of(files)?;
        let limits = Limits::default();
        let mut builder = Builder::default();
        for path in frozen.manifest().files.keys() {
            let shown = frozen.files().label(path.as_str());
            let name = shown.to_string_lossy();
            let text = || -> Result<String, EvalError> {
                Ok(input::decode(&name, &frozen.bytes(path, &limits)?, &limits)?)
            };
            match path.as_str().split_once('/').map(|(folder, _)| folder) {
                Some("tools") => builder.corpus.add(&shown, &text()?)?,
                Some("golden") => builder.add_golden(&shown, &text()?)?,
                Some("groups") => builder.add_groups(&shown, &text()?)?,
                _ => {}
            }
        }
        let mut dataset = builder.finish(frozen.reference(), Labels::MustExist)?;
        for (place, query) in dataset.queries.iter_mut().enumerate() {
            query.place = place;
        }
        Ok(dataset)
    }

    /// Reads a corpus file and a golden file, in any of the known formats.
    pub fn from_files(corpus: &Path, golden: &Path, labels: Labels) -> Result<Dataset, EvalError> {
        let limits = Limits::default();
        let corpus_text = input::read_text(corpus, &limits)?;
        let golden_text = input::read_text(golden, &limits)?;
        let mut builder = Builder::default();
        builder.corpus.add(corpus, &corpus_text)?;
        builder.add_golden(golden, &golden_text)?;
        let name = |path: &Path| {
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let digests = [&corpus_text, &golden_text].map(|text| Digest::of(text.as_bytes()));
        let digest = Digest::of(format!("{} {}", digests[0], digests[1]).as_bytes());
        let reference = DatasetRef {
            id: format!("{}+{}", name(corpus), name(golden)),
            version: "file".to_owned(),
            digest: digest.to_string(),
        };
        builder.finish(reference, labels)
    }

    /// The query with this id.
    pub fn query(&self, id: &str) -> Option<&Query> {
        let found = self.queries.binary_search_by(|query| query.id.as_str().cmp(id));
        found.ok().map(|n| &self.queries[n])
    }

    /// The tool with this id.
    pub fn tool(&self, id: &str) -> Option<&Tool> {
        self.tools
            .binary_search_by(|tool| tool.tool_id.as_str().cmp(id))
            .ok()
            .map(|n| &self.tools[n])
    }
}

fn format(path: &Path) -> Result<Format, InputError> {
    Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })
}

/// Collects files and remembers where each id came from, for the error messages.
#[derive(Default)]
struct Builder {
    corpus: Corpus,
    queries: BTreeMap<String, (std::path::PathBuf, Query)>,
    groups: Vec<(std::path::PathBuf, Group)>,
}

impl Builder {
    fn add_golden(&mut self, path: &Path, text: &str) -> Result<(), InputError> {
        let queries: Vec<Query> = match format(path)? {
            Format::JsonLines => input::parse(path, text, Format::JsonLines)?,
            format => input::parse::<RawGolden>(path, text, format)?.queries,
        };
        for mut query in queries {
            query.place = self.queries.len();
            if query.query.trim().is_empty() {
                return Err(InputError::invalid(path, query.id.as_str(), "the query is empty"));
            }
            let mut labelled = BTreeSet::new();
            for label in &query.labels {
                if label.relevance > MAX_RELEVANCE {
                    let message = format!(
                        "relevance {} of {}; grades go from 0 to {MAX_RELEVANCE}",
                        label.relevance, label.tool_id
                    );
                    return Err(InputError::invalid(path, query.id.as_str(), message));
                }
                if !labelled.insert(&label.tool_id) {
                    let message = format!("labels {} twice", label.tool_id);
                    return Err(InputError::invalid(path, query.id.as_str(), message));
                }
            }
            let id = query.id.clone();
            if self.queries.insert(id.clone(), (path.to_owned(), query)).is_some() {
                return Err(InputError::invalid(path, id.as_str(), "duplicate query id"));
            }
        }
        Ok(())
    }

    fn add_groups(&mut self, path: &Path, text: &str) -> Result<(), InputError> {
        let groups: Vec<Group> = input::parse(path, text, format(path)?)?;
        self.groups.extend(groups.into_iter().map(|group| (path.to_owned(), group)));
        Ok(())
    }

    fn finish(self, reference: DatasetRef, labels: Labels) -> Result<Dataset, EvalError> {
        let mut dangling = Vec::new();
        for (path, query) in self.queries.values() {
            for label in &query.labels {
                if self.corpus.tools.contains_key(&label.tool_id) {
                    continue;
                }
                if labels == Labels::MustExist {
                    let message = format!("labels {}, which is not in the corpus", label.tool_id);
                    return Err(InputError::invalid(path, query.id.as_str(), message).into());
                }
                dangling.push(Dangling { query: query.id.clone(), tool_id: label.tool_id.clone() });
            }
        }
        let mut seen = BTreeSet::new();
        for (path, group) in &self.groups {
            if !seen.insert(&group.id) {
                return Err(
                    InputError::invalid(path, group.id.as_str(), "duplicate group id").into()
                );
            }
            if let Some(unknown) =
                group.tools.iter().find(|id| !self.corpus.tools.contains_key(*id))
            {
                let message = format!("names {unknown}, which is not in the corpus");
                return Err(InputError::invalid(path, group.id.as_str(), message).into());
            }
        }
        Ok(Dataset {
            reference,
            tools: self.corpus.tools.into_values().collect(),
            queries: self.queries.into_values().map(|(_, query)| query).collect(),
            groups: self.groups.into_iter().map(|(_, group)| group).collect(),
            dangling,
        })
    }
}
