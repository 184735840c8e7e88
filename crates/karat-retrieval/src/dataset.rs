//! The frozen tool corpus and the golden queries.
//!
//! Reads Karat's own dataset folders and the public mcpproxy files as they are: a corpus
//! `{version, tools: [{tool_id, server, tool, description, schema}]}` and a golden set
//! `{corpus_version, queries: [{id, query, labels: [{tool_id, relevance}]}]}`. What comes out is
//! checked: ids are unique, every label points to a tool of the corpus or is listed as dangling, and
//! everything is sorted by id, so that nothing downstream depends on the order of files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::dataset::{
    Contents, Dataset as Frozen, DatasetFiles, Digest, Fingerprint, canonical,
};
use karat_core::report::DatasetRef;
use karat_core::tool::Corpus;
pub use karat_core::tool::Tool;
use karat_io::input::{self, Format, InputError, Limits};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::skills;
use karat_core::error::EvalError;

/// The highest relevance grade of a label.
pub(crate) const MAX_RELEVANCE: u8 = 2;

/// One golden query.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Query {
    /// Its id, unique in the dataset.
    pub id: String,
    /// The text of the query.
    pub query: String,
    /// The tools that answer it, and which look as if they did.
    pub labels: Vec<Label>,
    /// `direct`, `paraphrase`, `near_duplicate`, `multi`, or a kind of one's own.
    pub kind: Option<String>,
    /// `train`, `dev` or `test`.
    pub split: Option<String>,
    /// Notes for a reviewer.
    pub notes: Option<String>,
    /// False if nothing is to be found: the right answer is an empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub should_trigger: Option<bool>,
    /// Its position among the queries: in a golden file by place, in a folder by id.
    #[serde(skip)]
    pub place: usize,
}

/// A query as a file has it.
#[derive(Deserialize)]
pub(crate) struct RawQuery {
    id: Option<String>,
    query: String,
    #[serde(default)]
    labels: Vec<Label>,
    kind: Option<String>,
    split: Option<String>,
    notes: Option<String>,
    should_trigger: Option<bool>,
    /// Instead of labels: the skill that the query is about.
    skill: Option<String>,
}

impl RawQuery {
    /// The query at a place of its file. One about a skill labels it: as the right one, or as the one that
    /// must not fire.
    pub(crate) fn at(self, place: usize) -> Query {
        let mut labels = self.labels;
        labels.extend(self.skill.map(|name| Label {
            tool_id: skills::id(&name),
            relevance: if self.should_trigger == Some(false) { 0 } else { MAX_RELEVANCE },
        }));
        Query {
            id: self.id.unwrap_or_else(|| format!("q{}", place + 1)),
            query: self.query,
            labels,
            kind: self.kind,
            split: self.split,
            notes: self.notes,
            should_trigger: self.should_trigger,
            place,
        }
    }
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
#[derive(Clone, Debug, Default)]
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
    /// The versions that corpus and golden set give themselves.
    pub versions: Versions,
    /// The content of all, part by part.
    pub contents: Contents,
}

/// The versions in the files of a dataset, where they have any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Versions {
    /// Of the corpus.
    pub corpus: Option<String>,
    /// Of the golden set.
    pub golden: Option<String>,
    /// The version of the corpus that the golden set was made for.
    pub made_for: Option<String>,
}

#[derive(Deserialize)]
struct RawGolden {
    version: Option<String>,
    corpus_version: Option<String>,
    queries: Vec<RawQuery>,
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
            builder.add(path.as_str(), &shown, |_| {
                Ok(input::decode(&name, &frozen.bytes(path, &limits)?, &limits)?)
            })?;
        }
        let mut dataset = builder.finish(Some(frozen.reference()), Labels::MustExist)?;
        for (place, query) in dataset.queries.iter_mut().enumerate() {
            query.place = place;
        }
        Ok(dataset)
    }

    /// Reads a folder that is not frozen yet, to see that its labels point to its tools.
    ///
    /// # Errors
    /// If a file is not valid, or a label names a tool that is not there.
    pub fn check_folder(folder: &Path) -> Result<Dataset, EvalError> {
        let files = DatasetFiles::Folder(folder.to_owned());
        let mut builder = Builder::default();
        for path in files.paths()? {
            builder.add(path.as_str(), &files.label(path.as_str()), |shown| {
                Ok(input::read_text(shown, &Limits::default())?)
            })?;
        }
        builder.finish(None, Labels::MustExist)
    }

    /// Reads a corpus file, or a folder of skills, and a golden file, in any of the known formats.
    pub fn from_files(corpus: &Path, golden: &Path, labels: Labels) -> Result<Dataset, EvalError> {
        let limits = Limits::default();
        let golden_text = input::read_text(golden, &limits)?;
        let mut builder = Builder::default();
        match corpus.is_dir() {
            true => skills::add(corpus, &mut builder.corpus)?,
            false => builder.corpus.add(corpus, &input::read_text(corpus, &limits)?)?,
        }
        builder.add_golden(golden, &golden_text)?;
        let name = |path: &Path| {
            path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default()
        };
        builder.versions.golden.get_or_insert_with(|| name(golden));
        let mut dataset = builder.finish(None, labels)?;
        dataset.reference.id = format!("{}+{}", name(corpus), name(golden));
        Ok(dataset)
    }

    /// Returns whether any query says whether something should be found.
    pub(crate) fn has_triggers(&self) -> bool {
        self.queries.iter().any(|query| query.should_trigger.is_some())
    }

    /// The query with this id.
    pub(crate) fn query(&self, id: &str) -> Option<&Query> {
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
    versions: Versions,
}

impl Builder {
    /// Adds a file of a dataset folder, by the folder it is in.
    fn add(
        &mut self,
        path: &str,
        shown: &Path,
        text: impl Fn(&Path) -> Result<String, EvalError>,
    ) -> Result<(), EvalError> {
        match path.split_once('/').map(|(folder, _)| folder) {
            Some("tools") => self.corpus.add(shown, &text(shown)?)?,
            Some("golden") => self.add_golden(shown, &text(shown)?)?,
            Some("groups") => self.add_groups(shown, &text(shown)?)?,
            _ => {}
        }
        Ok(())
    }

    fn add_golden(&mut self, path: &Path, text: &str) -> Result<(), InputError> {
        let queries: Vec<RawQuery> = match format(path)? {
            format if format.is_list(text) => input::parse(path, text, format)?,
            format => {
                let golden: RawGolden = input::parse(path, text, format)?;
                self.versions.golden = golden.version;
                self.versions.made_for = golden.corpus_version;
                golden.queries
            }
        };
        for query in queries {
            let query = query.at(self.queries.len());
            if query.should_trigger == Some(false)
                && let Some(label) = query.labels.iter().find(|label| label.relevance > 0)
            {
                let message =
                    format!("should_trigger is false, and {} is labelled as right", label.tool_id);
                return Err(InputError::invalid(path, query.id.as_str(), message));
            }
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

    /// Checks what was read. Without a name of its own, the data is named by its content.
    fn finish(self, frozen: Option<DatasetRef>, labels: Labels) -> Result<Dataset, EvalError> {
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
        let tools: Vec<Tool> = self.corpus.tools.into_values().collect();
        let queries: Vec<Query> = self.queries.into_values().map(|(_, query)| query).collect();
        let contents = contents(&tools, &queries);
        let reference = frozen.unwrap_or_else(|| DatasetRef {
            id: String::new(),
            version: "file".to_owned(),
            digest: whole(&contents).to_string(),
        });
        Ok(Dataset {
            reference,
            versions: Versions { corpus: self.corpus.version, ..self.versions },
            contents,
            tools,
            queries,
            groups: self.groups.into_iter().map(|(_, group)| group).collect(),
            dangling,
        })
    }
}

/// The content of every tool and query: everything that can change an answer or a score.
fn contents(tools: &[Tool], queries: &[Query]) -> Contents {
    let tool = |tool: &Tool| {
        let mut text = String::new();
        for part in [
            &json!(tool.title),
            &json!(tool.description),
            &tool.input_schema,
            tool.output_schema.as_ref().unwrap_or(&Value::Null),
            tool.annotations.as_ref().unwrap_or(&Value::Null),
        ] {
            canonical::write(part, &mut text);
            text.push('\n');
        }
        (tool.tool_id.clone(), Fingerprint::of(text.as_bytes()))
    };
    let query = |query: &Query| {
        let labels: BTreeMap<&str, u8> =
            query.labels.iter().map(|label| (label.tool_id.as_str(), label.relevance)).collect();
        let mut value = json!([query.query, query.kind, query.split, labels]);
        if let (Some(should), Some(parts)) = (query.should_trigger, value.as_array_mut()) {
            parts.push(json!(should));
        }
        (query.id.clone(), Fingerprint::of(canonical::text(&value).as_bytes()))
    };
    Contents {
        corpus: tools.iter().map(tool).collect(),
        items: queries.iter().map(query).collect(),
    }
}

/// One digest for the content of all parts, in whatever order and layout they were written.
fn whole(contents: &Contents) -> Digest {
    let mut lines = String::new();
    for (part, parts) in [("corpus", &contents.corpus), ("items", &contents.items)] {
        for (id, fingerprint) in parts {
            lines.push_str(&format!("{part}\0{id}\0{}\n", String::from(*fingerprint)));
        }
    }
    Digest::of(lines.as_bytes())
}
