//! BEIR: `corpus.jsonl`, `queries.jsonl` and `qrels/<split>.tsv`.

use std::collections::BTreeMap;

use serde::Deserialize;

use crate::retrieval::Corpus;
use crate::source::{File, Source};
use crate::writer::Writer;
use crate::{Benchmark, ImportError};

pub(crate) const BENCHMARK: Benchmark = Benchmark {
    name: "beir",
    title: "A dataset in the format of BEIR",
    needs: "corpus.jsonl, queries.jsonl, qrels/test.tsv (or dev.tsv, train.tsv)",
    licence: "differs by dataset; see its own page",
    restricted: true,
    becomes: "retrieval: documents as tools, judgements as labels",
    checked_by: "counts of documents, queries and judgements",
    import,
};

#[derive(Deserialize)]
struct Text {
    #[serde(rename = "_id")]
    id: String,
    title: Option<String>,
    text: String,
}

fn import(source: &Source, writer: &mut Writer) -> Result<(), ImportError> {
    let named = |name: &str| source.files().find(|file| file.base() == name);
    let splits = ["test.tsv", "dev.tsv", "train.tsv"];
    let qrels = splits.iter().find_map(|name| named(name));
    let (Some(corpus), Some(queries), Some(qrels)) =
        (named("corpus.jsonl"), named("queries.jsonl"), qrels)
    else {
        return Err(source.nothing(BENCHMARK.needs));
    };
    writer.note(format!("judgements of {}", qrels.name));
    let expected = "lines of {\"_id\", \"title\", \"text\"}";
    let mut found = Corpus::default();
    for document in source.list::<Text>(corpus, expected)? {
        let title = document.title.unwrap_or_default();
        let description = format!("{title} {}", document.text);
        found.tool(writer, "corpus", &document.id, description.trim(), None)?;
    }
    let judged = judgements(source, qrels)?;
    for query in source.list::<Text>(queries, expected)? {
        match judged.get(&query.id) {
            Some(labels) => found.query(writer, &query.id, &query.text, labels, None)?,
            None => writer.skip("a query without a judgement in this split"),
        }
    }
    found.finish(writer)
}

/// The grades of each query, by tool.
fn judgements(
    source: &Source,
    file: &File,
) -> Result<BTreeMap<String, BTreeMap<String, i64>>, ImportError> {
    let mut judged: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for (at, line) in source.text(file)?.lines().enumerate() {
        let cells: Vec<&str> = line.split('\t').collect();
        if line.trim().is_empty() || (at == 0 && cells.first() == Some(&"query-id")) {
            continue;
        }
        let grade = cells.get(2).and_then(|cell| cell.trim().parse::<i64>().ok());
        let (Some(query), Some(document), Some(grade)) = (cells.first(), cells.get(1), grade)
        else {
            let expected = "lines of query, document and grade, divided by tabs";
            let found = format!("line {}: {line}", at + 1);
            return Err(ImportError::unexpected(&file.path, expected, found));
        };
        let labels = judged.entry((*query).to_owned()).or_default();
        labels.insert(format!("corpus:{document}"), grade);
    }
    Ok(judged)
}
