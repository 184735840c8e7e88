//! Labelled tool definitions, as the detection evaluation reads them.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::writer::{Writer, quoted};
use crate::{Benchmark, ImportError};

/// The category of definitions that are not an attack.
pub(crate) const BENIGN: &str = "benign";

/// A labelled definition.
pub(crate) struct Threat<'a> {
    pub(crate) id: String,
    pub(crate) malicious: bool,
    /// The kind of attack, or [`BENIGN`].
    pub(crate) category: &'a str,
    pub(crate) server: &'a str,
    pub(crate) tool: Value,
    /// The definition before it was changed.
    pub(crate) before: Option<Value>,
}

/// The labelled definitions of a benchmark, written to its dataset.
pub(crate) struct Threats {
    source: &'static str,
    licence: &'static str,
    ids: BTreeSet<String>,
}

impl Threats {
    pub(crate) fn new(benchmark: &Benchmark) -> Threats {
        let Benchmark { title, licence, .. } = benchmark;
        Threats { source: title, licence, ids: BTreeSet::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// Adds a definition; one whose id is known gets a number.
    pub(crate) fn add(
        &mut self,
        writer: &mut Writer,
        threat: Threat<'_>,
    ) -> Result<(), ImportError> {
        let mut id = threat.id.clone();
        let mut number = 1;
        while !self.ids.insert(id.clone()) {
            number += 1;
            id = format!("{}#{number}", threat.id);
        }
        let label = if threat.malicious { "malicious" } else { "benign" };
        writer.count(if threat.malicious { "attacks" } else { "benign definitions" }, 1);
        let mut row = json!({
            "id": id, "label": label, "category": threat.category, "server": threat.server,
            "tool": threat.tool,
            "provenance": {"source": self.source, "license": self.licence},
        });
        if let Some(before) = threat.before {
            row["before"] = before;
        }
        writer.line("entries/definitions.jsonl", &row)
    }

    /// Adds an entry that measures the built-in detectors.
    pub(crate) fn finish(&self, writer: &mut Writer) {
        if !self.is_empty() {
            let system = format!("{{ builtin = {} }}", quoted("builtin"));
            writer.entry(
                "detection",
                "builtin",
                &[("dataset", writer.dataset()), ("system", system)],
            );
        }
    }
}

/// A category: the letters and digits of a text in lower case, `_` between its words.
pub(crate) fn category(text: &str) -> String {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let name = words.map(str::to_lowercase).collect::<Vec<_>>().join("_");
    if name.is_empty() { "unnamed".to_owned() } else { name }
}
