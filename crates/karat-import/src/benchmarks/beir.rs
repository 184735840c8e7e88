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
    let mut judged = judgements(source, qrels, writer)?;
    for query in source.list::<Text>(queries, expected)? {
        let Some(mut labels) = judged.remove(&query.id) else {
            writer.skip("a query without a judgement in this split");
            continue;
        };
        let all = labels.len();
        labels.retain(|document, _| found.has(document));
        let lost = (all - labels.len()) as u64;
        writer.skip_many("a judgement of a document that is not in corpus.jsonl", lost);
        found.query(writer, &query.id, &query.text, &labels, None)?;
    }
    let lost = judged.values().map(|labels| labels.len() as u64).sum();
    writer.skip_many("a judgement of a query that is not in queries.jsonl", lost);
    found.finish(writer)
}

/// The grades of each query, by tool.
fn judgements(
    source: &Source,
    file: &File,
    writer: &mut Writer,
) -> Result<BTreeMap<String, BTreeMap<String, i64>>, ImportError> {
    let mut judged: BTreeMap<String, BTreeMap<String, i64>> = BTreeMap::new();
    for (at, line) in source.text(file)?.lines().enumerate() {
        let cells: Vec<&str> = line.split('\t').collect();
        if line.trim().is_empty() || (at == 0 && cells.first() == Some(&"query-id")) {
            continue;
        }
        let read = match cells.as_slice() {
            [query, document, grade] => {
                grade.trim().parse::<i64>().ok().map(|grade| (*query, *document, grade))
            }
            _ => None,
        };
        let Some((query, document, grade)) = read else {
            let expected = "lines of query, document and grade, divided by tabs";
            let found = format!("line {}: {line}", at + 1);
            return Err(ImportError::unexpected(&file.path, expected, found));
        };
        let labels = judged.entry(query.to_owned()).or_default();
        let document = format!("corpus:{document}");
        if labels.get(&document).is_some_and(|known| *known != grade) {
            let expected = "one grade of each query and document";
            let found = format!("another one on line {}: {line}", at + 1);
            return Err(ImportError::unexpected(&file.path, expected, found));
        }
        if labels.insert(document, grade).is_some() {
            writer.skip("a judgement that comes twice");
        }
    }
    if judged.is_empty() {
        let expected = "lines of query, document and grade, divided by tabs";
        return Err(ImportError::unexpected(&file.path, expected, "none: half a download?"));
    }
    Ok(judged)
}
