//! The threat corpus: labelled tool definitions.
//!
//! Reads Karat's own lines (`entries/*.jsonl` of a frozen dataset, or a file) and the public mcpproxy
//! corpora as they are: `{version, entries: [{id, description, label, category, provenance}]}` and the
//! same with `server`, `tool` and `peers`. What comes out of [`Dataset::open`] is sound: every label is
//! known, ids are unique and sorted, so that nothing downstream depends on the order of files. Whether
//! the corpus may be published is another question, and [`crate::audit`] answers it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use karat_core::dataset::{
    Contents, Dataset as Frozen, DatasetFiles, Digest, Fingerprint, canonical,
};
use karat_core::report::DatasetRef;
pub use karat_detectors::{Peer, Tool};
use karat_io::input::{self, Format, InputError, Limits};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::audit::{Finding, Rule};
use karat_core::error::EvalError;

/// The category of benign entries that look like an attack.
pub const HARD_NEGATIVE: &str = "hard_negative";
/// The category of benign entries that look like nothing in particular.
pub(crate) const PLAIN_BENIGN: &str = "benign";

/// The label of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Label {
    /// A scanner should flag it.
    Malicious,
    /// A scanner should stay quiet.
    Benign,
}

impl Label {
    /// The name as used in files and reports.
    pub fn name(self) -> &'static str {
        match self {
            Label::Malicious => "malicious",
            Label::Benign => "benign",
        }
    }

    fn parse(text: &str) -> Option<Label> {
        [Label::Malicious, Label::Benign].into_iter().find(|label| label.name() == text)
    }
}

/// The origin and licence of an entry.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    /// `self-authored`, or the name of the corpus it was taken from.
    #[serde(default)]
    pub source: String,
    /// The licence, as an SPDX id where there is one.
    #[serde(default, alias = "licence")]
    pub license: String,
}

/// One labelled entry of the corpus.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Its id, unique in the dataset.
    pub id: String,
    /// The label.
    pub label: Label,
    /// The kind of attack, `hard_negative` or `benign`; empty where the file gives none.
    pub category: String,
    /// The attack that a hard negative looks like.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resembles: Option<String>,
    /// The place where in the definition the telling part is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The server that offers the tool; empty where the file names none.
    pub server: String,
    /// The definition under test.
    pub tool: Tool,
    /// Other tools that are connected.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub peers: Vec<Peer>,
    /// The definition as it was first approved.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<Tool>,
    /// The result of a call of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
    /// The instructions of the server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// `train`, `dev` or `test`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// The language of the text, such as `en`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The reason for the label, for a reviewer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// The place where it comes from; `None` where the file does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provenance: Option<Provenance>,
}

impl Sample {
    /// An ordinary tool without doubt, from another corpus.
    pub(crate) fn plain(id: impl Into<String>, server: impl Into<String>, tool: Tool) -> Sample {
        Sample {
            id: id.into(),
            label: Label::Benign,
            category: PLAIN_BENIGN.to_owned(),
            resembles: None,
            surface: None,
            server: server.into(),
            tool,
            peers: Vec::new(),
            before: None,
            result: None,
            instructions: None,
            split: None,
            language: None,
            notes: None,
            provenance: None,
        }
    }

    /// Returns whether a scanner should flag it.
    pub fn is_malicious(&self) -> bool {
        self.label == Label::Malicious
    }

    /// Returns whether it is benign and looks like an attack.
    pub fn is_hard_negative(&self) -> bool {
        self.label == Label::Benign && self.category == HARD_NEGATIVE
    }
}

/// A threat corpus.
#[derive(Clone, Debug)]
pub struct Dataset {
    /// The name in the report.
    pub reference: DatasetRef,
    /// The entries, sorted by id.
    pub samples: Vec<Sample>,
    /// Entries that had to be left out, for the audit; empty in a dataset that may be measured on.
    pub refused: Vec<Finding>,
    /// Entries that can be measured on but look like mistakes, for the audit.
    pub odd: Vec<Finding>,
    /// File, and line where there are lines, of each entry.
    pub places: BTreeMap<String, String>,
}

/// An entry as files write it: anything may be missing, and the audit says what.
#[derive(Deserialize)]
struct RawSample {
    id: String,
    #[serde(default)]
    label: String,
    #[serde(default)]
    category: String,
    resembles: Option<String>,
    surface: Option<String>,
    #[serde(default)]
    server: String,
    description: Option<String>,
    tool: Option<RawTool>,
    #[serde(default)]
    peers: Vec<RawPeer>,
    before: Option<RawTool>,
    result: Option<Value>,
    instructions: Option<String>,
    split: Option<String>,
    language: Option<String>,
    notes: Option<String>,
    provenance: Option<Provenance>,
    /// Keys that mean nothing here.
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

/// A definition with the keys that mean nothing in it.
#[derive(Deserialize)]
struct RawTool {
    #[serde(flatten)]
    tool: Tool,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

#[derive(Deserialize)]
struct RawPeer {
    #[serde(default)]
    server: String,
    tool: RawTool,
    #[serde(flatten)]
    others: BTreeMap<String, IgnoredAny>,
}

impl RawSample {
    /// The paths of keys that mean nothing, wherever a scanner would look.
    fn unknown_keys(&self) -> Vec<String> {
        let mut unknown = Vec::new();
        let mut add = |place: &str, keys: &BTreeMap<String, IgnoredAny>| {
            let remark = |key: &&String| key.starts_with("x_");
            unknown
                .extend(keys.keys().filter(|key| !remark(key)).map(|key| format!("{place}{key}")));
        };
        add("", &self.others);
        for (place, tool) in [("tool.", &self.tool), ("before.", &self.before)] {
            if let Some(tool) = tool {
                add(place, &tool.others);
            }
        }
        for (number, peer) in self.peers.iter().enumerate() {
            add(&format!("peers[{number}]."), &peer.others);
            add(&format!("peers[{number}].tool."), &peer.tool.others);
        }
        unknown
    }
}

/// A corpus in one document: an object, or a bare list of entries.
struct RawCorpus {
    version: Option<String>,
    entries: Vec<RawSample>,
}

impl<'de> Deserialize<'de> for RawCorpus {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawCorpus, D::Error> {
        #[derive(Deserialize)]
        struct Whole {
            #[serde(default, alias = "corpus_version")]
            version: Option<String>,
            entries: Vec<RawSample>,
        }
        struct Shape;
        impl<'de> Visitor<'de> for Shape {
            type Value = RawCorpus;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("a corpus: an object with `entries`, or a list of entries")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RawCorpus, A::Error> {
                let Whole { version, entries } =
                    Whole::deserialize(MapAccessDeserializer::new(map))?;
                Ok(RawCorpus { version, entries })
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<RawCorpus, A::Error> {
                let entries = Vec::deserialize(SeqAccessDeserializer::new(list))?;
                Ok(RawCorpus { version: None, entries })
            }
        }
        deserializer.deserialize_any(Shape)
    }
}

impl Dataset {
    /// Reads the `entries/` of a frozen dataset after its digests have been verified.
    ///
    /// # Errors
    /// If a file is not what the manifest says, cannot be read, or holds an entry that cannot be
    /// measured on: an unknown label, an id that is listed twice, nothing to look at.
    pub fn open(files: DatasetFiles) -> Result<Dataset, EvalError> {
        Self::open_for_audit(files)?.sound()
    }

    /// As [`Dataset::open`], with unusable entries listed in `refused` instead of an error.
    ///
    /// # Errors
    /// If a file is not what the manifest says or cannot be read.
    pub fn open_for_audit(files: DatasetFiles) -> Result<Dataset, EvalError> {
        let frozen = Frozen::of(files)?;
        let limits = Limits::default();
        let mut builder = Builder::default();
        for path in frozen.manifest().files.keys() {
            if path.as_str().split_once('/').is_some_and(|(folder, _)| folder == "entries") {
                let shown = frozen.files().label(path.as_str());
                let bytes = frozen.bytes(path, &limits)?;
                let text = input::decode(&shown.to_string_lossy(), &bytes, &limits)?;
                builder.add(&shown, &text)?;
            }
        }
        Ok(builder.finish(frozen.reference()))
    }

    /// Reads one corpus file in any of the known formats.
    ///
    /// # Errors
    /// If it cannot be read, or holds an entry that cannot be measured on.
    pub fn from_file(path: &Path) -> Result<Dataset, EvalError> {
        Self::from_file_for_audit(path)?.sound()
    }

    /// As [`Dataset::from_file`], with unusable entries listed in `refused` instead of an error.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn from_file_for_audit(path: &Path) -> Result<Dataset, EvalError> {
        let text = input::read_text(path, &Limits::default())?;
        let mut builder = Builder::default();
        let version = builder.add(path, &text)?;
        let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned());
        Ok(builder.finish(DatasetRef {
            id: stem.unwrap_or_default(),
            version: version.unwrap_or_else(|| "file".to_owned()),
            digest: Digest::of(text.as_bytes()).to_string(),
        }))
    }

    /// The same corpus with plain benign entries from elsewhere (`from`), under a digest of both.
    ///
    /// # Errors
    /// If an id is in both.
    pub(crate) fn with_plain_benign(
        mut self,
        plain: Vec<Sample>,
        from: &DatasetRef,
    ) -> Result<Dataset, EvalError> {
        self.samples.extend(plain);
        self.samples.sort_by(|a, b| a.id.cmp(&b.id));
        if let Some(pair) = self.samples.windows(2).find(|pair| pair[0].id == pair[1].id) {
            return Err(EvalError::Config(format!(
                "system: the id {} is in both {} and {}",
                pair[0].id, self.reference.id, from.id
            )));
        }
        let digests = format!("{} {}", self.reference.digest, from.digest);
        self.reference = DatasetRef {
            id: format!("{}+{}", self.reference.id, from.id),
            version: format!("{}+{}", self.reference.version, from.version),
            digest: Digest::of(digests.as_bytes()).to_string(),
        };
        Ok(self)
    }

    /// The content of each entry: everything that can change a verdict or a score, in whatever layout it
    /// is written.
    pub fn contents(&self) -> Contents {
        let item = |sample: &Sample| {
            let content = json!([
                sample.label,
                sample.category,
                sample.resembles,
                sample.surface,
                sample.server,
                sample.tool,
                sample.peers,
                sample.before,
                sample.result,
                sample.instructions,
                sample.split,
                sample.language,
            ]);
            (sample.id.clone(), Fingerprint::of(canonical::text(&content).as_bytes()))
        };
        Contents { corpus: BTreeMap::new(), items: self.samples.iter().map(item).collect() }
    }

    /// The entry with this id.
    pub fn sample(&self, id: &str) -> Option<&Sample> {
        let found = self.samples.binary_search_by(|sample| sample.id.as_str().cmp(id)).ok()?;
        self.samples.get(found)
    }

    fn sound(self) -> Result<Dataset, EvalError> {
        // A scanner that never sees a part of an entry cannot be held to it.
        let refused: Vec<&Finding> = self.refused.iter().chain(&self.odd).collect();
        match refused.first() {
            None => Ok(self),
            Some(finding) => {
                let more = match refused.len() - 1 {
                    0 => String::new(),
                    more => format!(" (and {more} more)"),
                };
                Err(EvalError::config(format!("{}: {finding}{more}", self.reference.id)))
            }
        }
    }
}

/// Collects files and remembers where each id came from, for the messages.
#[derive(Default)]
struct Builder {
    samples: BTreeMap<String, (PathBuf, Sample)>,
    refused: Vec<Finding>,
    odd: Vec<Finding>,
    places: BTreeMap<String, String>,
}

impl Builder {
    fn add(&mut self, path: &Path, text: &str) -> Result<Option<String>, InputError> {
        let format =
            Format::of(path).ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
        let (version, entries) = match format {
            Format::JsonLines => (None, input::parse::<Vec<RawSample>>(path, text, format)?),
            _ => {
                let corpus: RawCorpus = input::parse(path, text, format)?;
                (corpus.version, corpus.entries)
            }
        };
        let lines: Vec<usize> = match format {
            Format::JsonLines => {
                let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
                lines.map(|(number, _)| number + 1).collect()
            }
            _ => Vec::new(),
        };
        for (number, raw) in entries.into_iter().enumerate() {
            let line = lines.get(number).map(|line| format!(":{line}")).unwrap_or_default();
            let place = format!("{}{line}", path.display());
            self.places.entry(raw.id.clone()).or_insert(place);
            self.add_sample(path, raw);
        }
        Ok(version)
    }

    fn add_sample(&mut self, path: &Path, raw: RawSample) {
        for key in raw.unknown_keys() {
            let message = format!(
                "the key {key:?} is unknown, and no scanner would see it; remove it, or let its \
                 name begin with \"x_\" if it is a remark"
            );
            self.odd.push(Finding::new(&raw.id, Rule::UnknownKey, message));
        }
        let Some(label) = Label::parse(&raw.label) else {
            let message = format!("the label is {:?}; it is malicious or benign", raw.label);
            return self.refused.push(Finding::new(&raw.id, Rule::UnknownLabel, message));
        };
        let said = raw.description.filter(|description| !description.trim().is_empty());
        let tool = match (raw.tool, said) {
            (Some(raw), None) => raw.tool,
            (Some(RawTool { tool, .. }), Some(said)) => {
                if said != tool.description {
                    let message = "the description next to the tool is one that no scanner would see; \
                                   move it into the tool, or call it \"notes\" if it is a remark";
                    self.odd.push(Finding::new(&raw.id, Rule::UnknownKey, message));
                }
                tool
            }
            (None, Some(description)) => Tool { description, ..Tool::default() },
            (None, None) => {
                let message = "has neither a tool nor a description";
                return self.refused.push(Finding::new(&raw.id, Rule::Empty, message));
            }
        };
        if let Some((first, _)) = self.samples.get(&raw.id) {
            let message = match first == path {
                true => format!("duplicate id (twice in {})", path.display()),
                false => format!("duplicate id (in {} and {})", first.display(), path.display()),
            };
            return self.refused.push(Finding::new(&raw.id, Rule::DuplicateId, message));
        }
        let sample = Sample {
            id: raw.id.clone(),
            label,
            category: raw.category,
            resembles: raw.resembles,
            surface: raw.surface,
            server: raw.server,
            tool,
            peers: raw
                .peers
                .into_iter()
                .map(|peer| Peer { server: peer.server, tool: peer.tool.tool })
                .collect(),
            before: raw.before.map(|before| before.tool),
            result: raw.result.map(|result| match result {
                Value::String(text) => text,
                other => other.to_string(),
            }),
            instructions: raw.instructions,
            split: raw.split,
            language: raw.language,
            notes: raw.notes,
            provenance: raw.provenance,
        };
        self.samples.insert(raw.id, (path.to_owned(), sample));
    }

    fn finish(self, reference: DatasetRef) -> Dataset {
        Dataset {
            reference,
            samples: self.samples.into_values().map(|(_, sample)| sample).collect(),
            refused: self.refused,
            odd: self.odd,
            places: self.places,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(id: &str) -> DatasetRef {
        DatasetRef { id: id.to_owned(), version: "v1".to_owned(), digest: format!("sha256:{id}") }
    }

    fn plain(id: &str) -> Vec<Sample> {
        vec![Sample::plain(id, "tools", Tool::default())]
    }

    #[test]
    fn plain_benign_entries_from_elsewhere_change_the_digest() {
        let dataset = Dataset {
            reference: named("corpus"),
            samples: plain("m-1"),
            refused: Vec::new(),
            odd: Vec::new(),
            places: BTreeMap::new(),
        };
        let from = named("tools");
        let joined = dataset.clone().with_plain_benign(plain("tools:a"), &from).unwrap();
        assert_eq!(joined.samples.len(), 2);
        assert_eq!(joined.reference.id, "corpus+tools");
        assert_ne!(joined.reference.digest, dataset.reference.digest);
        assert!(joined.sample("tools:a").is_some());
        assert!(dataset.with_plain_benign(plain("m-1"), &from).is_err());
    }
}
