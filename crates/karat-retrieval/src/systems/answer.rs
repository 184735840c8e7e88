//! Where in an answer the ranked ids are: the part that HTTP endpoints and MCP tools share.
//!
//! A search answers with JSON of its own shape. A project says where the results stand in it, how an
//! id of the corpus (`server:tool`) is made of a result, and, if it likes, where the score is. An
//! answer that is not of that shape is an invalid answer, never an empty ranking: only a list that
//! is there and has nothing in it is empty.

use std::collections::HashSet;

use karat_io::exchange::quoted;
use karat_io::input;
use karat_io::json_path::JsonPath;
use karat_io::template::{Template, plain};
use karat_io::{Failure, FailureClass};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::dataset::Dataset;
use crate::system::{Ranked, Ranking};
use karat_core::tokens;

/// The most results of one answer that are looked at.
const MOST_RESULTS: usize = 100_000;

/// `answer = { … }`: how an answer is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerConfig {
    /// A path to a text that itself holds JSON, such as `content[0].text`; the other paths then
    /// start inside it.
    #[serde(default)]
    pub json_at: Option<String>,
    /// A path to the results, such as `results[*]`. Without it, the answer itself is the list.
    #[serde(default)]
    pub ids: Option<String>,
    /// How an id is made of a result, such as `{server_name}:{tool.name}`, each place a path into
    /// the result; or one path alone. Several rules are tried in turn, and the first that finds all
    /// of its parts counts. Without any: a text is an id, and an object has it in `tool_id`.
    #[serde(default)]
    pub id: Rules,
    /// What stands between server and tool in the ids of the system, where that is not `:`.
    #[serde(default)]
    pub separator: Option<String>,
    /// A path from a result to its score. It is recorded; the order is that of the list.
    #[serde(default)]
    pub score: Option<String>,
}

/// One rule or several.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "OneOrMany", into = "OneOrMany")]
pub struct Rules(pub Vec<String>);

#[derive(Clone, Serialize, Deserialize)]
#[serde(untagged)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

impl From<OneOrMany> for Rules {
    fn from(rules: OneOrMany) -> Rules {
        match rules {
            OneOrMany::One(rule) => Rules(vec![rule]),
            OneOrMany::Many(rules) => Rules(rules),
        }
    }
}

impl From<Rules> for OneOrMany {
    fn from(Rules(mut rules): Rules) -> OneOrMany {
        match (rules.pop(), rules.is_empty()) {
            (Some(only), true) => OneOrMany::One(only),
            (last, _) => OneOrMany::Many(rules.into_iter().chain(last).collect()),
        }
    }
}

/// Reads answers by one [`AnswerConfig`].
#[derive(Debug)]
pub struct AnswerReader {
    json_at: Option<JsonPath>,
    list: ListPath,
    rules: Vec<IdRule>,
    separator: Option<String>,
    score: Option<JsonPath>,
    corpus: HashSet<String>,
    count_tokens: bool,
}

#[derive(Debug)]
struct ListPath {
    written: String,
    path: JsonPath,
    /// The path as far as its first `*`: what must be there even if the list is empty.
    head: JsonPath,
    every: bool,
}

#[derive(Debug)]
struct IdRule {
    template: Template,
    places: Vec<(String, JsonPath)>,
}

impl AnswerConfig {
    /// Finds what is wrong with the paths and rules before anything is asked.
    ///
    /// # Errors
    /// What is wrong, in words.
    pub fn check(&self) -> Result<(), String> {
        let optional = |path: &Option<String>| path.as_deref().map(JsonPath::parse).transpose();
        optional(&self.json_at)?;
        optional(&self.score)?;
        ListPath::parse(self.ids.as_deref())?;
        self.id.0.iter().try_for_each(|rule| IdRule::parse(rule).map(|_| ()))?;
        if self.separator.as_deref() == Some("") {
            return Err("separator is empty".to_owned());
        }
        Ok(())
    }

    /// What the report says of it: the rules are part of what was measured.
    pub fn settings(&self) -> impl Iterator<Item = (String, String)> {
        [
            ("answer.json_at", self.json_at.clone()),
            ("answer.ids", self.ids.clone()),
            ("answer.id", (!self.id.0.is_empty()).then(|| self.id.0.join(" | "))),
            ("answer.separator", self.separator.clone()),
        ]
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
    }
}

impl AnswerReader {
    /// Prepares the reader. The corpus is needed where a separator leaves open which of its places
    /// divides an id. `count_tokens` counts what each answer costs in a model's context.
    ///
    /// # Errors
    /// As [`AnswerConfig::check`].
    pub fn new(
        config: &AnswerConfig,
        dataset: &Dataset,
        count_tokens: bool,
    ) -> Result<AnswerReader, String> {
        config.check()?;
        let optional = |path: &Option<String>| path.as_deref().map(JsonPath::parse).transpose();
        Ok(AnswerReader {
            json_at: optional(&config.json_at)?,
            list: ListPath::parse(config.ids.as_deref())?,
            rules: config.id.0.iter().map(|rule| IdRule::parse(rule)).collect::<Result<_, _>>()?,
            separator: config.separator.clone(),
            score: optional(&config.score)?,
            corpus: dataset.tools.iter().map(|tool| tool.tool_id.clone()).collect(),
            count_tokens,
        })
    }

    /// Reads the bytes of an answer, which must be JSON. The tokens are those of all of it.
    ///
    /// # Errors
    /// An `invalid_answer` that says what is not as agreed.
    pub fn read(&self, bytes: &[u8]) -> Result<Ranking, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|_| invalid("the answer is not UTF-8"))?;
        let value = json(text)?;
        let ranking = self.read_value(&value)?;
        Ok(Ranking { answer_tokens: self.tokens(text), ..ranking })
    }

    /// Reads an answer that is JSON already, such as `structuredContent`. No tokens are counted: only
    /// the caller knows what a model would see; [`AnswerReader::tokens`] counts that.
    ///
    /// # Errors
    /// An `invalid_answer` that says what is not as agreed.
    pub fn read_value(&self, value: &Value) -> Result<Ranking, Failure> {
        let inner;
        let value = match &self.json_at {
            None => value,
            Some(path) => match path.find(value).as_slice() {
                [Value::String(text)] => {
                    inner = json(text)?;
                    &inner
                }
                [other] => {
                    return Err(invalid(&format!("no text holds the JSON: {}", shown(other))));
                }
                found => {
                    let message = format!("{} texts hold the JSON, instead of one", found.len());
                    return Err(invalid(&message));
                }
            },
        };
        let results = self.list.results(value)?;
        if results.len() > MOST_RESULTS {
            return Err(invalid(&format!("the answer has {} results", results.len())));
        }
        let ranked = results.into_iter().map(|result| self.ranked(result));
        ranked.collect::<Result<Vec<Ranked>, Failure>>().map(Ranking::new)
    }

    /// What a text costs in a model's context, if that is counted.
    pub fn tokens(&self, text: &str) -> Option<u64> {
        self.count_tokens.then(|| tokens::count(text))
    }

    fn ranked(&self, result: &Value) -> Result<Ranked, Failure> {
        let id = self.id(result).ok_or_else(|| {
            invalid(&format!("no id can be made of the result {}", shown(result)))
        })?;
        let score = self.score.as_ref().and_then(|path| path.find(result).first()?.as_f64());
        Ok(Ranked { tool_id: self.with_colon(id), score })
    }

    fn id(&self, result: &Value) -> Option<String> {
        if self.rules.is_empty() {
            let id = result.get("tool_id").unwrap_or(result);
            return id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        }
        self.rules.iter().find_map(|rule| rule.apply(result))
    }

    /// Puts `:` between server and tool: where that gives a tool of the corpus, else at the first
    /// separator, so that an unknown tool is still shown as what it claims to be.
    fn with_colon(&self, id: String) -> String {
        let Some(separator) = &self.separator else { return id };
        if self.corpus.contains(&id) {
            return id;
        }
        let divided: Vec<String> = id
            .match_indices(separator.as_str())
            .map(|(at, _)| format!("{}:{}", &id[..at], &id[at + separator.len()..]))
            .collect();
        let known = divided.iter().find(|id| self.corpus.contains(*id));
        known.or(divided.first()).cloned().unwrap_or(id)
    }
}

impl ListPath {
    fn parse(written: Option<&str>) -> Result<ListPath, String> {
        let written = written.unwrap_or("$");
        let star = [written.find("[*]"), written.find(".*")].into_iter().flatten().min();
        Ok(ListPath {
            path: JsonPath::parse(written)?,
            head: JsonPath::parse(&written[..star.unwrap_or(written.len())])?,
            every: star.is_some(),
            written: written.to_owned(),
        })
    }

    fn results<'v>(&self, value: &'v Value) -> Result<Vec<&'v Value>, Failure> {
        let heads = self.head.find(value);
        match heads.as_slice() {
            [] => Err(invalid(&format!("the answer has no {}: {}", self.written, shown(value)))),
            // Some languages write an empty list as null.
            [Value::Null] => Ok(Vec::new()),
            [Value::Array(items)] if !self.every => Ok(items.iter().collect()),
            [Value::Array(_) | Value::Object(_)] if self.every => Ok(self.path.find(value)),
            _ => Err(invalid(&format!("{} is no list: {}", self.written, shown(heads[0])))),
        }
    }
}

impl IdRule {
    fn parse(rule: &str) -> Result<IdRule, String> {
        let template = if rule.contains('{') {
            Template::parse(rule)?
        } else {
            Template::parse(&format!("{{{rule}}}"))?
        };
        let places = template
            .placeholders()
            .map(|place| Ok((place.to_owned(), JsonPath::parse(place)?)))
            .collect::<Result<Vec<_>, String>>()?;
        if places.is_empty() {
            return Err(format!("the id rule {rule:?} names no field of a result"));
        }
        Ok(IdRule { template, places })
    }

    /// The id, if the result has one text or number for each place.
    fn apply(&self, result: &Value) -> Option<String> {
        let part = |name: &str| {
            let (_, path) = self.places.iter().find(|(place, _)| place == name)?;
            match path.find(result).as_slice() {
                [part @ (Value::String(_) | Value::Number(_))] => Some(plain(part)),
                _ => None,
            }
        };
        self.template.fill(|name| part(name).filter(|part| !part.is_empty()).ok_or(())).ok()
    }
}

fn json(text: &str) -> Result<Value, Failure> {
    input::parse_json("the answer", text.as_bytes())
        .map_err(|error| invalid(&format!("the answer is no JSON ({error}): {}", quoted(text))))
}

fn shown(value: &Value) -> String {
    quoted(&value.to_string())
}

fn invalid(message: &str) -> Failure {
    Failure::new(FailureClass::InvalidAnswer, message)
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;
    use serde_json::json;

    use super::*;
    use crate::dataset::Tool;

    fn dataset(ids: &[&str]) -> Dataset {
        let tool = |id: &&str| {
            let (server, tool) = id.split_once(':').unwrap();
            Tool {
                tool_id: (*id).to_owned(),
                server: server.to_owned(),
                tool: tool.to_owned(),
                title: None,
                description: String::new(),
                input_schema: Value::Null,
                output_schema: None,
                annotations: None,
            }
        };
        Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: ids.iter().map(tool).collect(),
            queries: Vec::new(),
            groups: Vec::new(),
            dangling: Vec::new(),
        }
    }

    fn reader(config: Value) -> AnswerReader {
        let config: AnswerConfig = serde_json::from_value(config).unwrap();
        AnswerReader::new(&config, &dataset(&["a:b", "my__srv:do_it"]), false).unwrap()
    }

    fn ids(reader: &AnswerReader, answer: &Value) -> Vec<String> {
        let ranking = reader.read(answer.to_string().as_bytes()).unwrap();
        ranking.ranked.into_iter().map(|ranked| ranked.tool_id).collect()
    }

    #[test]
    fn ids_are_made_of_the_fields_of_each_result() {
        let reader = reader(json!({
            "ids": "results[*]", "id": ["{server_name}:{tool.name}", "name"], "score": "score"
        }));
        let answer = json!({"results": [
            {"server_name": "a", "tool": {"name": "b"}, "score": 2.5},
            {"name": "c:d"}
        ]});
        assert_eq!(ids(&reader, &answer), ["a:b", "c:d"]);
        let ranking = reader.read_value(&answer).unwrap();
        assert_eq!(ranking.ranked[0].score, Some(2.5));
    }

    #[test]
    fn json_inside_a_text_and_plain_lists_are_read() {
        let inside = reader(json!({"json_at": "content[0].text", "ids": "tools[*]", "id": "name"}));
        let answer = json!({"content": [{"text": "{\"tools\": [{\"name\": \"a:b\"}]}"}]});
        assert_eq!(ids(&inside, &answer), ["a:b"]);
        assert_eq!(ids(&reader(json!({})), &json!(["a:b", {"tool_id": "c:d"}])), ["a:b", "c:d"]);
        assert_eq!(ids(&reader(json!({"ids": "x"})), &json!({"x": ["a:b"]})), ["a:b"]);
    }

    #[test]
    fn a_separator_divides_where_the_corpus_has_the_tool() {
        let reader = reader(json!({"separator": "__"}));
        let answer = json!(["a__b", "my__srv__do_it", "no__such__tool", "a:b"]);
        assert_eq!(ids(&reader, &answer), ["a:b", "my__srv:do_it", "no:such__tool", "a:b"]);
    }

    #[test]
    fn an_empty_list_is_empty_and_a_missing_one_is_invalid() {
        let reader = reader(json!({"ids": "results[*]", "id": "name"}));
        for empty in [json!({"results": []}), json!({"results": null})] {
            assert!(ids(&reader, &empty).is_empty());
        }
        for (answer, words) in [
            ("{\"error\": \"index gone\"}", "no results[*]: {\"error\":\"index gone\"}"),
            ("{\"results\": \"none\"}", "is no list"),
            ("{\"results\": [{\"title\": 1}]}", "no id can be made of the result {\"title\":1}"),
            ("<html>busy</html>", "no JSON"),
            ("", "no JSON"),
        ] {
            let failure = reader.read(answer.as_bytes()).unwrap_err();
            assert_eq!(failure.class, FailureClass::InvalidAnswer, "{answer}");
            assert!(failure.message.contains(words), "{answer}: {}", failure.message);
        }
        assert!(reader.read(b"\xff").is_err());
    }

    #[test]
    fn rules_that_cannot_work_are_refused_before_anything_is_asked() {
        for config in [
            json!({"ids": "a..b"}),
            json!({"id": "{a"}),
            json!({"id": ["ok", "{}"]}),
            json!({"separator": ""}),
            json!({"score": "["}),
        ] {
            let config: AnswerConfig = serde_json::from_value(config.clone()).unwrap();
            assert!(config.check().is_err(), "{config:?}");
        }
    }
}
