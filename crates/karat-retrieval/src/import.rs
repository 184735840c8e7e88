//! Corpora and queries of others, as Karat's own files.
//!
//! Tools come from JSON or JSON Lines, from the result of `tools/list`, or as the documents of a BEIR
//! dataset or of TREC; queries from JSON Lines, BEIR or lines of `id<TAB>text`, their labels from the
//! same lines or from qrels. The rules are few and said: a grade above 2 becomes 2, below 0 becomes 0, a
//! tool without a grade is a right one, and a document without a server belongs to the one that is named.
//! A grade or a field of a label that cannot be read is refused: guessed, a wrong tool would become right.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use karat_core::error::EvalError;
use karat_io::input::{self, InputError, Limits};
use karat_io::text::count;
use serde_json::{Map, Value, json};

use crate::dataset::MAX_RELEVANCE;
use crate::skills;

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
        // The labels go to the first query with the id: a second one would only seem to have none.
        if !seen.insert(query.id.clone()) {
            return Err(InputError::invalid(&queries, query.id, "duplicate query id").into());
        }
        query.labels.extend(labels.remove(&query.id).unwrap_or_default());
        // BEIR lists the queries of every split; those without a label are of another one.
        if query.is_unlabelled() && qrels.is_some() {
            unlabelled += 1;
            continue;
        }
        imported.queries.push(query.value(&queries, &ids)?);
    }
    if unlabelled > 0 {
        imported.notes.push(format!("{} without a label left out", count(unlabelled, "query")));
    }
    if let Some((id, _)) = labels.first_key_value() {
        let what = match labels.len() {
            1 => "a query that does not".to_owned(),
            n => format!("{n} queries that do not"),
        };
        let message = format!("labels {what} exist");
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
    let mut text = |names: &[&'static str]| {
        let found = names
            .iter()
            .find_map(|name| Some((*name, record.remove(*name).filter(|value| !value.is_null())?)));
        match found {
            None => Ok(None),
            Some((_, Value::String(text))) => Ok(Some(text)),
            Some((_, Value::Number(number))) => Ok(Some(number.to_string())),
            Some((name, other)) => {
                let message = format!("`{name}` is not a text: {}", clipped(&other.to_string()));
                Err(InputError::invalid(path, format!("[{index}]"), message))
            }
        }
    };
    let given = text(&["tool_id", "_id", "docid", "doc_id"])?;
    let own = text(&["server", "server_name"])?;
    let name = text(&["tool", "name"])?;
    let description = text(&["description", "text", "contents"])?.unwrap_or_default();
    let title = text(&["title"])?.filter(|title| !title.is_empty());
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
    let mut first = |names: &[&str]| {
        let found = names.iter().find_map(|name| record.remove(*name).filter(|v| !v.is_null()));
        found.unwrap_or(Value::Null)
    };
    let mut value = json!({"server": server, "tool": name, "description": description});
    for (key, found) in [
        ("title", json!(title)),
        ("input_schema", first(&["input_schema", "inputSchema", "schema", "parameters"])),
        ("output_schema", first(&["output_schema", "outputSchema"])),
        ("annotations", first(&["annotations"])),
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
    /// Returns whether nothing says what should be found.
    fn is_unlabelled(&self) -> bool {
        self.labels.is_empty() && !TRIGGERS.iter().any(|key| self.rest.contains_key(*key))
    }

    fn value(self, path: &Path, ids: &BTreeMap<String, String>) -> Result<Value, InputError> {
        let mut labels: BTreeMap<&str, u8> = BTreeMap::new();
        let known: BTreeSet<&str> = ids.values().map(String::as_str).collect();
        let wrong = |message: String| Err(InputError::invalid(path, self.id.as_str(), message));
        for (given, grade) in &self.labels {
            let id = ids.get(given).map(String::as_str).or(known.get(given.as_str()).copied());
            let Some(id) = id else {
                return wrong(format!("labels {given:?}, which is not in the corpus"));
            };
            let grade = u8::try_from((*grade).clamp(0, i64::from(MAX_RELEVANCE))).unwrap_or(0);
            if let Some(other) = labels.insert(id, grade)
                && other != grade
            {
                return wrong(format!("labels {given:?} twice, with {other} and with {grade}"));
            }
        }
        let fires = self.rest.get(SHOULD_TRIGGER) != Some(&Value::Bool(false));
        if let Some(skill) = self.rest.get(SKILL).and_then(Value::as_str) {
            let id = skills::id(skill);
            if !known.contains(id.as_str()) {
                return wrong(format!(
                    "names the skill {skill:?}, but {id:?} is not in the corpus"
                ));
            }
            // The reader of golden files makes a label of it.
            if labels.contains_key(id.as_str()) {
                return wrong(format!(
                    "labels {id:?} and names it as `skill`; one of them is enough"
                ));
            }
        }
        if let Some((id, _)) = labels.iter().find(|(_, grade)| **grade > 0 && !fires) {
            return wrong(format!("should_trigger is false, and {id} is labelled as right"));
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

/// The skill that a query is about, instead of a label.
const SKILL: &str = "skill";
const SHOULD_TRIGGER: &str = "should_trigger";
/// The fields that say what should be found without a label.
const TRIGGERS: [&str; 2] = [SKILL, SHOULD_TRIGGER];

/// The grade of a tool that is listed without one.
const UNGRADED: i64 = MAX_RELEVANCE as i64;

/// The labels of a query: a bare id, an id with a grade, or the grades by id.
fn labels(given: Value) -> Result<Vec<(String, i64)>, String> {
    match given {
        Value::Null => Ok(Vec::new()),
        Value::Object(grades) => {
            let label = |(id, value): (String, Value)| grade(&id, &value).map(|grade| (id, grade));
            grades.into_iter().map(label).collect()
        }
        Value::Array(list) => list.into_iter().map(label).collect(),
        other => Err(format!("the labels are not a list: {}", clipped(&other.to_string()))),
    }
}

fn label(given: Value) -> Result<(String, i64), String> {
    let mut fields = match given {
        Value::String(id) => return Ok((id, UNGRADED)),
        Value::Object(fields) => fields,
        other => return Err(format!("a label is not an id: {}", clipped(&other.to_string()))),
    };
    let shown = clipped(&Value::Object(fields.clone()).to_string());
    let mut first = |names: [&str; 3]| names.into_iter().find_map(|name| fields.remove(name));
    let Some(Value::String(id)) = first(["tool_id", "id", "doc_id"]) else {
        return Err(format!("a label has no `tool_id`: {shown}"));
    };
    let grade = match first(["relevance", "grade", "score"]) {
        Some(value) => grade(&id, &value)?,
        None => UNGRADED,
    };
    match fields.keys().next() {
        None => Ok((id, grade)),
        Some(key) => Err(format!(
            "the label of {id:?} has the unknown field {key:?}; expected `tool_id` and `relevance`"
        )),
    }
}

/// A grade is a whole number, however it is written: 1 or 1.0.
fn grade(id: &str, value: &Value) -> Result<i64, String> {
    let found = value.as_i64().or_else(|| value.as_f64().and_then(whole));
    found.ok_or_else(|| {
        format!("the grade of {id:?} is not a whole number: {}", clipped(&value.to_string()))
    })
}

/// Far-off numbers end at the bounds of `i64`, and grades are clamped anyway.
#[expect(clippy::cast_possible_truncation, reason = "whole, and clamped to the bounds of i64")]
fn whole(number: f64) -> Option<i64> {
    (number.is_finite() && number.fract() == 0.0).then_some(number as i64)
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
        // A key with null says nothing, so the next name of the same field counts.
        let mut first = |names: &[&str]| {
            names.iter().find_map(|name| record.remove(*name).filter(|value| !value.is_null()))
        };
        let id = match first(&["id", "_id", "query_id", "qid"]) {
            Some(Value::String(id)) => id,
            Some(Value::Number(id)) => id.to_string(),
            None => format!("q{}", index + 1),
            Some(_) => {
                let message = "the id is neither a text nor a number";
                return Err(InputError::invalid(path, format!("[{index}]"), message));
            }
        };
        let Some(Value::String(text)) = first(&["query", "text", "question"]) else {
            return Err(InputError::invalid(path, id, "has no query"));
        };
        let labels = labels(first(&["labels", "relevant", "qrels"]).unwrap_or(Value::Null))
            .map_err(|message| InputError::invalid(path, id.as_str(), message))?;
        let mut rest = Map::new();
        for key in ["kind", "split", "notes", SKILL, SHOULD_TRIGGER] {
            let Some(value) = record.remove(key).filter(|value| !value.is_null()) else { continue };
            let (right, expected) = match key {
                SHOULD_TRIGGER => (value.is_boolean(), "true or false"),
                _ => (value.is_string(), "a text"),
            };
            if !right {
                let shown = clipped(&value.to_string());
                let message = format!("`{key}` is not {expected}: {shown}");
                return Err(InputError::invalid(path, id, message));
            }
            rest.insert(key.to_owned(), value);
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
            [_, _, grade] if number == 0 && grade.parse::<f64>().is_err() => continue,
            [query, document, grade] | [query, _, document, grade] => (query, document, grade),
            _ => {
                let message = "expected a query, a document and a grade";
                return Err(InputError::invalid(path, format!("line {}", number + 1), message));
            }
        };
        let Some(grade) = grade.parse::<f64>().ok().and_then(whole) else {
            let message = format!("{grade:?} is not a grade");
            return Err(InputError::invalid(path, format!("line {}", number + 1), message));
        };
        labels.entry((*query).to_owned()).or_default().push(((*document).to_owned(), grade));
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

    /// One query over the tools `s:a`, `s:b` and `skill:pdf`.
    fn query(fields: &Value) -> Result<Value, String> {
        let folder = folder(&[
            (
                "t.jsonl",
                "{\"tool_id\":\"s:a\"}\n{\"tool_id\":\"s:b\"}\n{\"tool_id\":\"skill:pdf\"}\n",
            ),
            ("q.json", &json!([fields]).to_string()),
        ]);
        let (corpus, queries) = (folder.path().join("t.jsonl"), folder.path().join("q.json"));
        let source = Source { corpus: &corpus, queries: Some(&queries), qrels: None, server: "s" };
        let imported = import(&source).map_err(|error| error.to_string())?;
        Ok(imported.queries[0].clone())
    }

    #[test]
    fn a_whole_grade_is_a_grade_however_it_is_written() {
        let expected =
            json!([{"tool_id": "s:a", "relevance": 1}, {"tool_id": "s:b", "relevance": 0}]);
        for labels in [
            json!({"s:a": 1.0, "s:b": 0.0}),
            json!({"s:a": 1, "s:b": -1}),
            json!([{"tool_id": "s:a", "relevance": 1.0}, {"id": "s:b", "grade": 0.0}]),
        ] {
            let found = query(&json!({"id": "q", "query": "x", "labels": labels})).unwrap();
            assert_eq!(found["labels"], expected);
        }
    }

    #[test]
    fn a_label_that_cannot_be_read_is_refused_and_never_a_right_answer() {
        for (labels, words) in [
            (json!({"s:a": 2, "s:b": "0"}), r#"the grade of "s:b" is not a whole number: "0""#),
            (json!({"s:b": 0.5}), r#"the grade of "s:b" is not a whole number: 0.5"#),
            (json!({"s:b": false}), "not a whole number: false"),
            (json!({"s:b": null}), "not a whole number: null"),
            (json!([{"tool_id": "s:b", "relevance": null}]), "not a whole number: null"),
            (
                json!([{"tool_id": "s:b", "relevence": 0}]),
                r#""s:b" has the unknown field "relevence""#,
            ),
            (json!([{"tool": "s:b", "relevance": 0}]), "has no `tool_id`"),
            (json!([["s:b", 0]]), r#"a label is not an id: ["s:b",0]"#),
            (json!("s:b"), "not a list"),
        ] {
            let error = query(&json!({"id": "q7", "query": "x", "labels": labels})).unwrap_err();
            assert!(error.contains("q7") && error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn a_field_that_is_null_leaves_its_place_to_the_next_name() {
        let fields = json!({"id": null, "_id": "b7", "query": null, "text": "x",
            "labels": null, "relevant": ["s:a"]});
        let found = query(&fields).unwrap();
        let expected =
            json!({"id": "b7", "query": "x", "labels": [{"tool_id": "s:a", "relevance": 2}]});
        assert_eq!(found, expected);
    }

    #[test]
    fn what_should_fire_is_imported_and_a_contradiction_refused() {
        let quiet = json!({"id": "q", "query": "x", "skill": "pdf", "should_trigger": false});
        let found = query(&quiet).unwrap();
        assert_eq!((&found["skill"], &found["should_trigger"]), (&json!("pdf"), &json!(false)));
        for (fields, words) in [
            (json!({"skill": "xls"}), "skill:xls"),
            (json!({"skill": "pdf", "labels": ["skill:pdf"]}), "one of them is enough"),
            (json!({"should_trigger": false, "labels": ["s:a"]}), "s:a is labelled as right"),
            (json!({"should_trigger": "no"}), "`should_trigger` is not true or false"),
            (json!({"kind": 3}), "`kind` is not a text: 3"),
            (json!({"id": ["q"]}), "the id is neither"),
        ] {
            let mut all = json!({"id": "q", "query": "x"});
            all.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
            let error = query(&all).unwrap_err();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn a_tool_keeps_all_that_can_be_measured_and_no_field_is_dropped_for_its_type() {
        let text = "{\"name\":\"b\",\"output_schema\":{\"type\":\"object\"}}\n{\"name\":\"c\",\"outputSchema\":{}}\n";
        let imported = corpus("t.jsonl", text).unwrap();
        assert_eq!(imported.tools[0]["output_schema"], json!({"type": "object"}));
        assert_eq!(imported.tools[1]["output_schema"], json!({}));
        let error = corpus("t.json", "[{\"name\":\"b\",\"description\":[\"x\"]}]").unwrap_err();
        assert!(error.contains(r#"[0]: `description` is not a text: ["x"]"#), "{error}");
    }

    #[test]
    fn a_first_line_with_a_number_is_a_label_and_not_a_head() {
        let folder = folder(&[
            ("t.jsonl", "{\"tool_id\":\"s:a\"}\n"),
            ("q.tsv", "1\tfind\n"),
            ("whole.tsv", "1\ts:a\t1.0\n"),
            ("half.tsv", "1\ts:a\t0.5\n"),
        ]);
        let at = |name: &str| folder.path().join(name);
        let (corpus, queries) = (at("t.jsonl"), at("q.tsv"));
        let run = |qrels: &str| {
            let (qrels, queries) = (at(qrels), Some(queries.as_path()));
            let source = Source { corpus: &corpus, queries, qrels: Some(&qrels), server: "s" };
            import(&source).map_err(|error| error.to_string())
        };
        let imported = run("whole.tsv").unwrap();
        assert_eq!(imported.queries[0]["labels"], json!([{"tool_id": "s:a", "relevance": 1}]));
        assert!(run("half.tsv").unwrap_err().contains("\"0.5\" is not a grade"));
    }

    #[test]
    fn labels_belong_to_exactly_one_query() {
        for (queries, words) in [
            ("1\tfind\n1\tsearch\n", "1: duplicate query id"),
            ("2\tfind\n", "labels a query that does not exist"),
        ] {
            let folder = folder(&[
                ("t.jsonl", "{\"tool_id\":\"s:a\"}\n"),
                ("q.tsv", queries),
                ("qrels.txt", "1 0 s:a 1\n"),
            ]);
            let at = |name: &str| folder.path().join(name);
            let (corpus, queries, qrels) = (at("t.jsonl"), at("q.tsv"), at("qrels.txt"));
            let source = Source {
                corpus: &corpus,
                queries: Some(&queries),
                qrels: Some(&qrels),
                server: "s",
            };
            let error = import(&source).unwrap_err().to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }
}
