//! The content of a dataset, part by part.
//!
//! A dataset has items (queries with their labels) and a corpus that they are asked about (tools).
//! Each part has a fingerprint of its content, in whatever file and layout it is written. So scores
//! on two versions can still be compared item by item: an item that is the same is the same question,
//! and the parts of the corpus that changed can be named.

use std::borrow::Cow;
use std::collections::BTreeMap;

use karat_io::text::first_few;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::Digest;

/// The fingerprints of all parts of a dataset.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Contents {
    /// The corpus, by id.
    pub corpus: BTreeMap<String, Fingerprint>,
    /// The items, by id.
    pub items: BTreeMap<String, Fingerprint>,
}

/// The first 64 bits of the SHA-256 of a part's content: enough to see a change, not to sign one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Fingerprint(u64);

impl Fingerprint {
    /// The fingerprint of a canonical text.
    pub fn of(text: &[u8]) -> Fingerprint {
        Fingerprint(Digest::of(text).head())
    }
}

impl From<Fingerprint> for String {
    fn from(fingerprint: Fingerprint) -> String {
        format!("{:016x}", fingerprint.0)
    }
}

impl TryFrom<String> for Fingerprint {
    type Error = String;

    fn try_from(text: String) -> Result<Fingerprint, String> {
        let plain = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
        match u64::from_str_radix(&text, 16) {
            Ok(number) if text.len() == 16 && text.chars().all(plain) => Ok(Fingerprint(number)),
            _ => Err("a fingerprint has 16 lower-case hexadecimal digits".to_owned()),
        }
    }
}

impl JsonSchema for Fingerprint {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Fingerprint".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({"type": "string", "pattern": "^[0-9a-f]{16}$"})
    }
}

/// The way one set of parts differs from another, by id.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Changes {
    /// The parts that are new.
    pub added: Vec<String>,
    /// The parts that are gone.
    pub removed: Vec<String>,
    /// The parts whose content is another one.
    pub changed: Vec<String>,
}

impl Changes {
    /// The changes from one set of parts to another.
    pub(crate) fn between(
        before: &BTreeMap<String, Fingerprint>,
        after: &BTreeMap<String, Fingerprint>,
    ) -> Changes {
        let only = |these: &BTreeMap<String, Fingerprint>,
                    those: &BTreeMap<String, Fingerprint>| {
            these.keys().filter(|id| !those.contains_key(*id)).cloned().collect()
        };
        let changed = |(id, found): &(&String, &Fingerprint)| {
            before.get(*id).is_some_and(|earlier| earlier != *found)
        };
        Changes {
            added: only(after, before),
            removed: only(before, after),
            changed: after.iter().filter(changed).map(|(id, _)| id.clone()).collect(),
        }
    }

    /// Returns whether nothing changed.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty() && self.changed.is_empty()
    }
}

/// The way the data of one measurement differs from that of another.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DataChange {
    /// The changes of the corpus.
    pub corpus: Changes,
    /// The changes of the items: they are in no comparison.
    pub items: Changes,
    /// True if there is no corpus on either side, as for recorded runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_corpus: bool,
}

impl DataChange {
    /// The changes from one dataset to another.
    pub(crate) fn between(before: &Contents, after: &Contents) -> DataChange {
        let items = Changes::between(&before.items, &after.items);
        // Without a change this is the default, which comparisons leave out.
        let no_corpus = before.corpus.is_empty() && after.corpus.is_empty() && !items.is_empty();
        let corpus = Changes::between(&before.corpus, &after.corpus);
        DataChange { corpus, items, no_corpus }
    }

    /// The ids of items that are the same on both sides.
    pub(crate) fn is_same(&self, id: &str) -> bool {
        let Changes { added, removed, changed } = &self.items;
        let has = |ids: &Vec<String>| ids.binary_search_by(|one| one.as_str().cmp(id)).is_ok();
        !(has(added) || has(removed) || has(changed))
    }

    /// One line for each part that changed, naming at most `most` ids of a kind.
    pub fn lines(&self, most: usize) -> Vec<String> {
        let kinds = |changes: &Changes| -> Vec<String> {
            let Changes { added, removed, changed } = changes;
            [(changed, "changed"), (added, "added"), (removed, "removed")]
                .into_iter()
                .filter(|(ids, _)| !ids.is_empty())
                .map(|(ids, what)| format!("{} {what} ({})", ids.len(), first_few(ids, most)))
                .collect()
        };
        let mut lines = Vec::new();
        if !self.corpus.is_empty() {
            lines.push(format!("the corpus changed: {}", kinds(&self.corpus).join(", ")));
        }
        if !self.items.is_empty() {
            let kinds = kinds(&self.items).join(", ");
            let items = if self.no_corpus { "set of items" } else { "golden set" };
            lines.push(format!("the {items} changed: {kinds}; left out of the comparison"));
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn contents(corpus: &[(&str, &str)], items: &[(&str, &str)]) -> Contents {
        let parts = |parts: &[(&str, &str)]| {
            let part =
                |(id, text): &(&str, &str)| ((*id).to_owned(), Fingerprint::of(text.as_bytes()));
            parts.iter().map(part).collect()
        };
        Contents { corpus: parts(corpus), items: parts(items) }
    }

    #[test]
    fn what_changed_is_named_and_the_rest_is_the_same() {
        let before = contents(&[("a", "1"), ("b", "1")], &[("q1", "x"), ("q2", "x")]);
        let after = contents(&[("a", "2"), ("c", "1")], &[("q1", "y"), ("q2", "x"), ("q3", "x")]);
        let change = DataChange::between(&before, &after);
        assert_eq!(
            change.lines(5),
            [
                "the corpus changed: 1 changed (a), 1 added (c), 1 removed (b)",
                "the golden set changed: 1 changed (q1), 1 added (q3); left out of the comparison"
            ]
        );
        assert!(change.is_same("q2") && !change.is_same("q1") && !change.is_same("q3"));
        assert!(DataChange::between(&after, &after).lines(5).is_empty());
    }

    #[test]
    fn a_fingerprint_has_one_form() {
        let good = String::from(Fingerprint::of(b"abc"));
        assert_eq!(good, "ba7816bf8f01cfea");
        assert!(Fingerprint::try_from(good.clone()).is_ok());
        for bad in ["", "ba78", &good.to_uppercase(), "+a7816bf8f01cfea", &format!("{good}0")] {
            assert!(Fingerprint::try_from((*bad).to_owned()).is_err(), "{bad}");
        }
    }
}
