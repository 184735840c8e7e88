//! Corpora and queries of others, as Karat's own files.
//!
//! Tools come from JSON or JSON Lines, from the result of `tools/list`, or as the documents of a BEIR
//! dataset or of TREC; queries from JSON Lines, BEIR or lines of `id<TAB>text`, their labels from the
//! same lines or from qrels. The rules are few and said: a grade above 2 becomes 2, below 0 becomes 0,
//! and a document without a server belongs to the one that is named.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::error::EvalError;
use karat_io::input::{self, InputError, Limits};
use karat_io::text::count;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::dataset::MAX_RELEVANCE;

/// The imported data, ready to be written.
#[derive(Debug, Default, PartialEq)]
pub struct Imported {
    /// The tools, as a corpus file has them.
    pub tools: Vec<Value>,
    /// The queries, as a golden file has them.
    pub queries: Vec<Value>,
    /// Items that were left out or changed on the way.
    pub notes: Vec<String>,
}

/// The files to read.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    /// Tools or documents; a folder is a BEIR dataset.
    pub corpus: &'a Path,
    /// Queries, if they are not in the folder.
    pub queries: Option<&'a Path>,
    /// Labels, if the queries do not have them.
    pub qrels: Option<&'a Path>,
    /// The server of tools that name none.
    pub server: &'a str,
}

/// Reads the files.
///
/// # Errors
/// If one is not valid, or a label names a tool that is not there.
pub fn import(source: &Source<'_>) -> Result<Imported, EvalError> {
    let mut imported = Imported::default();
    let beir = source.corpus.is_dir();
    let inside = |name: &str| source.corpus.join(name);
    let corpus = if beir { inside("corpus.jsonl") } else { source.corpus.to_owned() };
    let (mut ids, mut known) = (BTreeMap::new(), BTreeSet::new());
    for (index, record) in tools(&corpus)?.into_iter().enumerate() {
        let tool = tool(&corpus, index, record, source.server)?;
        if !known.insert(tool.id.clone()) || ids.insert(tool.given, tool.id.clone()).is_some() {
            return Err(InputError::invalid(&corpus, tool.id, "duplicate tool id").into());
        }
        imported.tools.push(tool.value);
    }
    if imported.tools.is_empty() {
        return Err(InputError::invalid(&corpus, "tools", "no tools in the file").into());
    }
    let queries = match source.queries {
        Some(path) => Some(path.to_owned()),
        None => beir.then(|| inside("queries.jsonl")),
    };
    let Some(queries) = queries else { return Ok(imported) };
    let qrels = match source.qrels {
        Some(path) => Some(path.to_owned()),
        None => beir.then(|| inside("qrels/test.tsv")),
    };
    let mut labels = qrels.as_deref().map(read_qrels).transpose()?.unwrap_or_default();
    let (mut unlabelled, mut seen) = (0, BTreeSet::new());
    for mut query in read_queries(&queries)? {
        query.labels.extend(labels.remove(&query.id).unwrap_or_default());
        // BEIR lists the queries of every split; those without a label are of another one.
        if query.labels.is_empty() && qrels.is_some() {
            unlabelled += 1;
            continue;
        }
        if !seen.insert(query.id.clone()) {
            return Err(InputError::invalid(&queries, query.id, "duplicate query id").into());
        }
        imported.queries.push(query.value(&queries, &ids)?);
    }
    if unlabelled > 0 {
        imported.notes.push(format!("{} without a label left out", count(unlabelled, "query")));
    }
    if let Some((id, _)) = labels.first_key_value() {
        let message = format!("labels {} queries that do not exist", labels.len());
        let path = qrels.as_deref().unwrap_or(&queries);
        return Err(InputError::invalid(path, id.as_str(), message).into());
    }
    Ok(imported)
}

/// The records of a file: lines, a list, or the tools of an object, as `tools/list` answers.
fn records(path: &Path) -> Result<Vec<Map<String, Value>>, InputError> {
    let text = input::read_text(path, &Limits::default())?;
    let format = input::Format::of(path)
        .ok_or_else(|| InputError::UnknownFormat { path: path.to_owned() })?;
    let value: Value = match format {
        input::Format::JsonLines => Value::Array(input::parse(path, &text, format)?),
        format => input::parse(path, &text, format)?,
    };
    let list = match value {
        Value::Array(list) => list,
        mut value => match listed(&mut value) {
            Some(list) => list,
            None => return Err(InputError::invalid(path, "tools", "no list of tools")),
        },
    };
    let object = |(index, value): (usize, Value)| match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(InputError::invalid(path, format!("[{index}]"), "is not an object")),
    };
    list.into_iter().enumerate().map(object).collect()
}

/// The tools of a file, which may be answers to `tools/list` in lines, one for each page.
fn tools(path: &Path) -> Result<Vec<Map<String, Value>>, InputError> {
    let mut all = Vec::new();
    for (index, record) in records(path)?.into_iter().enumerate() {
        let is_tool =
            ["name", "tool", "tool_id", "_id"].iter().any(|key| record.contains_key(*key));
        let mut page = Value::Object(record);
        let tools = if is_tool { None } else { listed(&mut page) };
        for tool in tools.unwrap_or_else(|| vec![page]) {
            match tool {
                Value::Object(fields) => all.push(fields),
                _ => {
                    let place = format!("[{index}].tools");
                    return Err(InputError::invalid(path, place, "a tool is not an object"));
                }
            }
        }
    }
    Ok(all)
}

/// Takes the tools out of an answer to `tools/list`, with or without its envelope.
fn listed(value: &mut Value) -> Option<Vec<Value>> {
    let at = ["/tools", "/result/tools"].into_iter();
    let mut found = at.filter(|at| value.pointer(at).is_some_and(Value::is_array));
    match value.pointer_mut(found.next()?)?.take() {
        Value::Array(list) => Some(list),
        _ => None,
    }
}

struct ImportedTool {
    /// The id in the source.
    given: String,
    /// The id in the corpus.
    id: String,
    value: Value,
}

fn tool(
    path: &Path,
    index: usize,
    mut record: Map<String, Value>,
    server: &str,
) -> Result<ImportedTool, InputError> {
    let mut text = |names: &[&str]| {
        let found = names.iter().find_map(|name| record.remove(*name).filter(|v| !v.is_null()))?;
        match found {
            Value::String(text) => Some(text),
            Value::Number(number) => Some(number.to_string()),
            _ => None,
        }
    };
    let given = text(&["tool_id", "_id", "docid", "doc_id"]);
    let own = text(&["server", "server_name"]);
    let name = text(&["tool", "name"]);
    let description = text(&["description", "text", "contents"]).unwrap_or_default();
    let title = text(&["title"]).filter(|title| !title.is_empty());
    let (server, name) = match (own, name, given.as_deref().and_then(|id| id.split_once(':'))) {
        (Some(server), Some(name), _) => (server, name),
        (None, None, Some((server, name))) => (server.to_owned(), name.to_owned()),
        (own, name, _) => match name.or_else(|| given.clone()) {
            Some(name) => (own.unwrap_or_else(|| server.to_owned()), name),
            None => {
                let message = match clipped(&description) {
                    shown if shown.is_empty() => "the tool has neither name nor id".to_owned(),
                    shown => format!("the tool has neither name nor id: {shown:?}"),
                };
                return Err(InputError::invalid(path, format!("[{index}]"), message));
            }
        },
    };
    let schema = ["input_schema", "inputSchema", "schema", "parameters"];
    let schema = schema.iter().find_map(|key| record.remove(*key)).unwrap_or(Value::Null);
    let mut value = json!({"server": server, "tool": name, "description": description});
    for (key, found) in [
        ("title", json!(title)),
        ("input_schema", schema),
        ("output_schema", record.remove("outputSchema").unwrap_or(Value::Null)),
        ("annotations", record.remove("annotations").unwrap_or(Value::Null)),
    ] {
        if !found.is_null() {
            value[key] = found;
        }
    }
    let id = format!("{server}:{name}");
    Ok(ImportedTool { given: given.unwrap_or_else(|| id.clone()), id, value })
}

fn clipped(text: &str) -> String {
    karat_io::text::clip(&karat_io::text::printable(text), 60).into_owned()
}

/// A query and its labels, by the ids of the source.
#[derive(Default)]
struct ImportedQuery {
    id: String,
    text: String,
    labels: Vec<(String, i64)>,
    rest: Map<String, Value>,
}

impl ImportedQuery {
    fn value(self, path: &Path, ids: &BTreeMap<String, String>) -> Result<Value, InputError> {
        let mut labels: BTreeMap<&str, u8> = BTreeMap::new();
        let known: BTreeSet<&str> = ids.values().map(String::as_str).collect();
        for (given, grade) in &self.labels {
            let id = ids.get(given).map(String::as_str).or(known.get(given.as_str()).copied());
            let Some(id) = id else {
                let message = format!("labels {given:?}, which is not in the corpus");
                return Err(InputError::invalid(path, self.id, message));
            };
            let grade = u8::try_from((*grade).clamp(0, i64::from(MAX_RELEVANCE))).unwrap_or(0);
            if let Some(other) = labels.insert(id, grade)
                && other != grade
            {
                let message = format!("labels {given:?} twice, with {other} and with {grade}");
                return Err(InputError::invalid(path, self.id, message));
            }
        }
        let labels = labels.into_iter();
        let labels: Vec<Value> =
            labels.map(|(id, grade)| json!({"tool_id": id, "relevance": grade})).collect();
        let mut value = json!({"id": self.id, "query": self.text, "labels": labels});
        if let Some(fields) = value.as_object_mut() {
            fields.extend(self.rest);
        }
        Ok(value)
    }
}

/// A label as files have it: an id alone is right.
#[derive(Deserialize)]
#[serde(untagged)]
enum RawLabel {
    Id(String),
    Graded {
        #[serde(alias = "id", alias = "doc_id")]
        tool_id: String,
        #[serde(default, alias = "grade", alias = "score")]
        relevance: Option<i64>,
    },
}

fn read_queries(path: &Path) -> Result<Vec<ImportedQuery>, InputError> {
    let is =
        |ending: &str| path.extension().is_some_and(|found| found.eq_ignore_ascii_case(ending));
    if is("tsv") || is("txt") {
        let text = input::read_text(path, &Limits::default())?;
        let line = |(number, line): (usize, &str)| match line.split_once('\t') {
            Some((id, text)) => {
                Ok(ImportedQuery { id: id.into(), text: text.into(), ..ImportedQuery::default() })
            }
            None => {
                let place = format!("line {}", number + 1);
                Err(InputError::invalid(path, place, "is not an id, a tab and the query"))
            }
        };
        return text
            .lines()
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty())
            .map(line)
            .collect();
    }
    let query = |(index, mut record): (usize, Map<String, Value>)| {
        let id = ["id", "_id", "query_id", "qid"].iter().find_map(|key| record.remove(*key));
        let id = match id {
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            _ => format!("q{}", index + 1),
        };
        let text = ["query", "text", "question"].iter().find_map(|key| record.remove(*key));
        let Some(Value::String(text)) = text else {
            return Err(InputError::invalid(path, id, "has no query"));
        };
        let given = ["labels", "relevant", "qrels"].iter().find_map(|key| record.remove(*key));
        let labels = match given {
            None | Some(Value::Null) => Vec::new(),
            Some(Value::Object(grades)) => grades
                .into_iter()
                .map(|(id, grade)| (id, grade.as_i64().unwrap_or(i64::from(MAX_RELEVANCE))))
                .collect(),
            Some(list) => serde_json::from_value::<Vec<RawLabel>>(list)
                .map_err(|error| InputError::invalid(path, id.as_str(), error.to_string()))?
                .into_iter()
                .map(|label| match label {
                    RawLabel::Id(id) => (id, i64::from(MAX_RELEVANCE)),
                    RawLabel::Graded { tool_id, relevance } => {
                        (tool_id, relevance.unwrap_or(i64::from(MAX_RELEVANCE)))
                    }
                })
                .collect(),
        };
        let mut rest = Map::new();
        for key in ["kind", "split", "notes"] {
            rest.extend(record.remove(key).filter(Value::is_string).map(|v| (key.to_owned(), v)));
        }
        Ok(ImportedQuery { id, text, labels, rest })
    };
    records(path)?.into_iter().enumerate().map(query).collect()
}

/// Labels by query, from TREC (`query 0 document grade`) or BEIR (`query document grade`, with a head).
fn read_qrels(path: &Path) -> Result<BTreeMap<String, Vec<(String, i64)>>, InputError> {
    let text = input::read_text(path, &Limits::default())?;
    let mut labels: BTreeMap<String, Vec<(String, i64)>> = BTreeMap::new();
    for (number, line) in text.lines().enumerate() {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (query, document, grade) = match fields.as_slice() {
            [] => continue,
            // The head of a BEIR file. A line of TREC has four fields, and none is a head.
            [_, _, grade] if number == 0 && grade.parse::<i64>().is_err() => continue,
            [query, document, grade] | [query, _, document, grade] => (query, document, grade),
            _ => {
                let message = "expected a query, a document and a grade";
                return Err(InputError::invalid(path, format!("line {}", number + 1), message));
            }
        };
        match grade.parse::<i64>() {
            Ok(grade) => {
                labels
                    .entry((*query).to_owned())
                    .or_default()
                    .push(((*document).to_owned(), grade));
            }
            Err(_) => {
                let message = format!("{grade:?} is not a grade");
                return Err(InputError::invalid(path, format!("line {}", number + 1), message));
            }
        }
    }
    Ok(labels)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &str)]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        folder
    }

    #[test]
    fn lines_with_labels_of_their_own_are_read() {
        let folder = folder(&[
            (
                "tools.jsonl",
                "{\"server\":\"a\",\"name\":\"b\",\"description\":null,\"inputSchema\":{\"type\":\"object\"}}\n{\"tool_id\":\"c:d\",\"description\":\"x\"}\n",
            ),
            (
                "queries.jsonl",
                "{\"id\":\"q\",\"query\":\"find\",\"relevant\":[{\"tool_id\":\"a:b\",\"grade\":1},\"c:d\"],\"kind\":\"easy\"}\n",
            ),
        ]);
        let (corpus, queries) =
            (folder.path().join("tools.jsonl"), folder.path().join("queries.jsonl"));
        let source = Source { corpus: &corpus, queries: Some(&queries), qrels: None, server: "s" };
        let imported = import(&source).unwrap();
        assert_eq!(imported.tools[1], json!({"server": "c", "tool": "d", "description": "x"}));
        assert_eq!(imported.tools[0]["input_schema"], json!({"type": "object"}));
        assert_eq!(imported.queries[0]["kind"], "easy");
        assert_eq!(
            imported.queries[0]["labels"],
            json!([{"tool_id": "a:b", "relevance": 1}, {"tool_id": "c:d", "relevance": 2}])
        );
    }

    #[test]
    fn a_beir_folder_gives_documents_queries_and_labels() {
        let folder = folder(&[
            (
                "corpus.jsonl",
                "{\"_id\":\"d1\",\"title\":\"T\",\"text\":\"words\"}\n{\"_id\":\"d2\",\"title\":\"\",\"text\":\"more\"}\n",
            ),
            (
                "queries.jsonl",
                "{\"_id\":\"1\",\"text\":\"find\"}\n{\"_id\":\"2\",\"text\":\"other split\"}\n",
            ),
            ("qrels/test.tsv", "query-id\tcorpus-id\tscore\n1\td1\t3\n1\td2\t0\n"),
        ]);
        let source =
            Source { corpus: folder.path(), queries: None, qrels: None, server: "scifact" };
        let imported = import(&source).unwrap();
        assert_eq!(imported.tools[0]["title"], "T");
        assert_eq!(
            imported.queries,
            [json!({"id": "1", "query": "find", "labels": [
                {"tool_id": "scifact:d1", "relevance": 2}, {"tool_id": "scifact:d2", "relevance": 0}]})]
        );
        assert_eq!(imported.notes, ["1 query without a label left out"]);
    }

    #[test]
    fn trec_files_and_a_list_of_tools_are_read_and_mistakes_are_named() {
        let folder = folder(&[
            (
                "list.json",
                "{\"jsonrpc\":\"2.0\",\"result\":{\"tools\":[{\"name\":\"b\",\"description\":\"x\"}]}}",
            ),
            ("topics.tsv", "301\tfind it\n"),
            ("qrels.txt", "301 0 a:b 1\n"),
            ("bad.txt", "301 0 a:b 1\n301 0 nothing 1\n"),
            ("grade.txt", "301 0 a:b x\n301 0 a:b 1\n"),
            ("twice.txt", "301 0 a:b 1\n301 0 a:b 0\n"),
            ("other.txt", "301 0 a:b 1\n999 0 a:b 1\n"),
        ]);
        let at = |name: &str| folder.path().join(name);
        let (corpus, queries) = (at("list.json"), at("topics.tsv"));
        let run = |qrels: &str| {
            let qrels = at(qrels);
            let source = Source {
                corpus: &corpus,
                queries: Some(&queries),
                qrels: Some(&qrels),
                server: "a",
            };
            import(&source).map_err(|error| error.to_string())
        };
        let imported = run("qrels.txt").unwrap();
        assert_eq!(imported.queries[0]["labels"], json!([{"tool_id": "a:b", "relevance": 1}]));
        assert!(run("bad.txt").unwrap_err().contains("nothing"));
        assert!(
            run("grade.txt").unwrap_err().contains("line 1"),
            "a first line is not always a head"
        );
        let twice = run("twice.txt").unwrap_err();
        assert!(twice.contains("a:b") && twice.contains("twice"), "{twice}");
        assert!(run("other.txt").unwrap_err().contains("999"));
    }

    fn corpus(name: &str, text: &str) -> Result<Imported, String> {
        let folder = folder(&[(name, text)]);
        let corpus = folder.path().join(name);
        let source = Source { corpus: &corpus, queries: None, qrels: None, server: "a" };
        import(&source).map_err(|error| error.to_string())
    }

    #[test]
    fn pages_of_a_list_are_one_corpus() {
        let page = |name: &str| {
            format!("{{\"id\":1,\"result\":{{\"tools\":[{{\"name\":\"{name}\"}}]}}}}\n")
        };
        let imported = corpus("pages.jsonl", &[page("b"), page("c")].concat()).unwrap();
        let names: Vec<&Value> = imported.tools.iter().map(|tool| &tool["tool"]).collect();
        assert_eq!(names, ["b", "c"]);
    }

    #[test]
    fn a_corpus_that_could_not_be_measured_is_not_written() {
        for (name, text, words) in [
            ("t.jsonl", "{\"name\":\"b\"}\n{\"name\":\"c\"}\n{\"name\":\"b\"}\n", "a:b: duplicate"),
            ("t.jsonl", "", "no tool"),
            ("t.json", "{\"tools\":[]}", "no tool"),
            ("t.json", "[{\"name\":\"b\"},{\"description\":\"x\"}]", "[1]: the tool has neither"),
            ("t.json", "[{\"tools\":[3]}]", "[0].tools: a tool is not"),
        ] {
            let error = corpus(name, text).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
