//! The place of the ranked ids in an answer: the part that HTTP endpoints and MCP tools share.
//!
//! A search answers with JSON of its own shape. A project says where the results are in it, how an
//! id of the corpus (`server:tool`) is made of a result, and, if it likes, where the score is. An
//! answer that is not of that shape is an invalid answer, never an empty ranking: only a list that
//! is there and has nothing in it is empty.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use karat_io::exchange::quoted;
use karat_io::input;
use karat_io::json_path::JsonPath;
use karat_io::{Failure, FailureClass};
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::ids::{Found, IdRule, ListPath, Naming};
use crate::dataset::Dataset;
use crate::ranking::{Ranked, Ranking};
use karat_core::tokens;

/// The most results of one answer that are looked at.
const MAX_RESULTS: usize = 100_000;

/// `answer = { … }`: how an answer is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AnswerConfig {
    /// A path to a text that itself holds JSON, such as `content[0].text`; the other paths then
    /// start inside it. With a `*` in it, all texts that it finds form one list.
    pub json_at: Option<String>,
    /// A path to the results, such as `results[*]`. Without it, the answer itself is the list.
    pub ids: Option<String>,
    /// The rule that makes an id of a result, such as `{server_name}:{tool.name}`, each place a path into
    /// the result; or one path alone. Several rules are tried in turn, and the first that finds all
    /// of its parts counts. Without any: a text is an id, and an object has it in `tool_id`.
    pub id: Rules,
    /// The separator of server and tool in the ids of the system, if it is not `:`.
    pub separator: Option<String>,
    /// Texts that the ids of the system begin with and those of the corpus do not, such as `mcp__`.
    pub strip: Rules,
    /// A JSON file of ids: those of the system, each with that of the corpus.
    pub alias: Option<PathBuf>,
    /// A path from a result to its score. It is recorded; the order is that of the list.
    pub score: Option<String>,
    /// A regular expression that finds the ids in an answer that is text and not JSON: by its groups
    /// `server` and `tool`, or else by its first group or all of it.
    pub pattern: Option<String>,
    /// A path to an error: if anything is there, the search has refused.
    pub error: Option<String>,
    /// A path to the cursor of the next page, which is asked for with `{cursor}`.
    pub next: Option<String>,
    /// The most results that the system gives at once: `{limit}` is never more than that.
    pub page_size: Option<usize>,
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
    /// Set if `json_at` means every text that it finds.
    every_text: bool,
    list: ListPath,
    rules: Vec<IdRule>,
    naming: Naming,
    score: Option<JsonPath>,
    pattern: Option<Regex>,
    error: Option<JsonPath>,
    next: Option<JsonPath>,
    pub(super) page_size: Option<usize>,
    /// Set if requests name the place of their first result.
    pub(super) by_offset: bool,
    count_tokens: bool,
}

/// A part of the results, and where the next one is.
#[derive(Debug, PartialEq)]
pub struct Page {
    /// The results.
    pub ranking: Ranking,
    /// The cursor of the next page, if there is one.
    pub next: Option<Value>,
}

impl AnswerConfig {
    /// Finds what is wrong with the paths and rules before anything is asked.
    ///
    /// # Errors
    /// A description of the problem.
    pub(crate) fn check(&self) -> Result<(), String> {
        let optional = |path: &Option<String>| path.as_deref().map(JsonPath::parse).transpose();
        optional(&self.json_at)?;
        optional(&self.score)?;
        optional(&self.error)?;
        optional(&self.next)?;
        self.pattern()?;
        if self.pattern.is_some() && (self.ids.is_some() || !self.id.0.is_empty()) {
            return Err("pattern is for text; ids and id are for JSON".to_owned());
        }
        if self.page_size == Some(0) {
            return Err("page_size must be at least 1".to_owned());
        }
        ListPath::parse(self.ids.as_deref())?;
        self.id.0.iter().try_for_each(|rule| IdRule::parse(rule).map(|_| ()))?;
        if self.separator.as_deref() == Some("") {
            return Err("separator is empty".to_owned());
        }
        Ok(())
    }

    fn pattern(&self) -> Result<Option<Regex>, String> {
        let build = |text: &String| {
            let built = RegexBuilder::new(text).size_limit(1 << 20).multi_line(true).build();
            built.map_err(|error| format!("pattern: {error}"))
        };
        self.pattern.as_ref().map(build).transpose()
    }

    /// The settings for the report: the rules are part of what was measured.
    pub(crate) fn settings(&self) -> impl Iterator<Item = (String, String)> {
        [
            ("answer.json_at", self.json_at.clone()),
            ("answer.ids", self.ids.clone()),
            ("answer.id", (!self.id.0.is_empty()).then(|| self.id.0.join(" | "))),
            ("answer.separator", self.separator.clone()),
            ("answer.strip", (!self.strip.0.is_empty()).then(|| self.strip.0.join(" | "))),
            ("answer.alias", self.alias.as_ref().map(|path| path.display().to_string())),
            ("answer.pattern", self.pattern.clone()),
            ("answer.next", self.next.clone()),
            ("answer.page_size", self.page_size.map(|size| size.to_string())),
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
    /// If the settings contradict each other or do not fit the corpus.
    pub fn new(
        config: &AnswerConfig,
        dataset: &Dataset,
        folder: &Path,
        count_tokens: bool,
    ) -> Result<AnswerReader, String> {
        config.check()?;
        let optional = |path: &Option<String>| path.as_deref().map(JsonPath::parse).transpose();
        Ok(AnswerReader {
            json_at: optional(&config.json_at)?,
            every_text: config.json_at.as_ref().is_some_and(|path| path.contains('*')),
            list: ListPath::parse(config.ids.as_deref())?,
            rules: config.id.0.iter().map(|rule| IdRule::parse(rule)).collect::<Result<_, _>>()?,
            naming: Naming::new(config, dataset, folder)?,
            score: optional(&config.score)?,
            pattern: config.pattern()?,
            error: optional(&config.error)?,
            next: optional(&config.next)?,
            page_size: config.page_size,
            by_offset: false,
            count_tokens,
        })
    }

    /// Reads the bytes of an answer, which must be JSON unless there is a pattern for texts. The tokens
    /// are those of all of it.
    ///
    /// # Errors
    /// An `invalid_answer` that says what is not as agreed.
    pub fn read(&self, bytes: &[u8]) -> Result<Page, Failure> {
        let text = std::str::from_utf8(bytes).map_err(|_| {
            let packed = match bytes {
                [0x1f, 0x8b, ..] => ": it is compressed with gzip, which was not requested",
                [0x28, 0xb5, 0x2f, 0xfd, ..] => {
                    ": it is compressed with zstd, which was not requested"
                }
                _ => "",
            };
            invalid(&format!("the answer is not UTF-8{packed}"))
        })?;
        let mut page = match &self.pattern {
            Some(pattern) => Page { ranking: self.read_text(pattern, text)?, next: None },
            None => self.read_value(&json(text)?)?,
        };
        page.ranking.answer_tokens = self.tokens(text);
        Ok(page)
    }

    /// The ids that a pattern finds in a text, each once: a text may name a tool again.
    fn read_text(&self, pattern: &Regex, text: &str) -> Result<Ranking, Failure> {
        let mut seen = HashSet::new();
        let mut ranked = Vec::new();
        for found in pattern.captures_iter(text).take(MAX_RESULTS) {
            let part = |name: &str| found.name(name).map(|part| part.as_str());
            let id = match (part("server"), part("tool")) {
                (Some(server), Some(tool)) => format!("{server}:{tool}"),
                (_, tool) => {
                    let first = tool.or_else(|| found.get(1).map(|part| part.as_str()));
                    first.unwrap_or(&found[0]).to_owned()
                }
            };
            let tool_id = self.naming.corpus_id(id);
            if seen.insert(tool_id.clone()) {
                ranked.push(Ranked { tool_id, score: None });
            }
        }
        Ok(Ranking::new(ranked))
    }

    /// Reads an answer that is JSON already, such as `structuredContent`. No tokens are counted: only
    /// the caller knows what a model would see; [`AnswerReader::tokens`] counts that.
    ///
    /// # Errors
    /// An `invalid_answer` that says what is not as agreed.
    pub(crate) fn read_value(&self, value: &Value) -> Result<Page, Failure> {
        self.refusal(value)?;
        let inner;
        let value = match &self.json_at {
            None => value,
            Some(path) => match path.find(value).as_slice() {
                texts if self.every_text => {
                    // No text in a list is an empty list; no list is not.
                    if texts.is_empty() && path.find_listed(value).is_err() {
                        return Err(invalid(&format!("no text holds the JSON: {}", shown(value))));
                    }
                    let texts = texts.iter().map(|text| match text {
                        Value::String(text) => json(text),
                        other => Err(invalid(&format!("no text holds the JSON: {}", shown(other)))),
                    });
                    inner = Value::Array(texts.collect::<Result<_, _>>()?);
                    &inner
                }
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
        if self.json_at.is_some() {
            self.refusal(value)?;
        }
        let results = self.list.results(value)?;
        if results.len() > MAX_RESULTS {
            return Err(invalid(&format!("the answer has {} results", results.len())));
        }
        let ranked = results.into_iter().map(|result| self.ranked(result));
        let ranked = ranked.collect::<Result<Vec<Ranked>, Failure>>()?;
        let next = self.next.as_ref().and_then(|path| path.find(value).first().copied().cloned());
        let next =
            next.filter(|next| !matches!(next, Value::Null | Value::Bool(false)) && *next != "");
        Ok(Page { ranking: Ranking::new(ranked), next })
    }

    /// An answer that says that it failed: `success: false`, or something at the path of errors.
    fn refusal(&self, value: &Value) -> Result<(), Failure> {
        let found = match &self.error {
            Some(path) => path.find(value).into_iter().find(|found| {
                let nothing = [json!(null), json!(false), json!(""), json!([]), json!({})];
                !nothing.contains(*found)
            }),
            None if value.get("success") == Some(&Value::Bool(false)) => {
                Some(value.get("error").or(value.get("message")).unwrap_or(value))
            }
            None => None,
        };
        match found {
            None => Ok(()),
            Some(Value::String(text)) => Err(Failure::new(FailureClass::Refused, quoted(text))),
            Some(other) => Err(Failure::new(FailureClass::Refused, shown(other))),
        }
    }

    /// The tokens of a text, if they are counted.
    pub(crate) fn tokens(&self, text: &str) -> Option<u64> {
        self.count_tokens.then(|| tokens::count(text))
    }

    fn ranked(&self, found: Found<'_>) -> Result<Ranked, Failure> {
        let result = found.result;
        let id = self.id(found).ok_or_else(|| {
            invalid(&format!("no id can be made of the result {}", shown(result)))
        })?;
        let score = self.score.as_ref().and_then(|path| path.find(result).first()?.as_f64());
        Ok(Ranked { tool_id: self.naming.corpus_id(id), score })
    }

    fn id(&self, found: Found<'_>) -> Option<String> {
        if self.rules.is_empty() {
            let id = found.result.get("tool_id").unwrap_or(found.result);
            return id.as_str().filter(|id| !id.is_empty()).map(str::to_owned);
        }
        self.rules.iter().find_map(|rule| rule.apply(found))
    }
}

fn json(text: &str) -> Result<Value, Failure> {
    input::parse_json("the answer", text.as_bytes())
        .map_err(|error| invalid(&format!("the answer is not JSON ({error}): {}", quoted(text))))
}

pub(super) fn shown(value: &Value) -> String {
    quoted(&value.to_string())
}

pub(super) fn invalid(message: &str) -> Failure {
    Failure::new(FailureClass::InvalidAnswer, message)
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;

    use super::*;
    use crate::dataset::Tool;

    fn dataset(ids: &[&str]) -> Dataset {
        let tool = |id: &&str| {
            let (server, tool) = id.split_once(':').unwrap();
            Tool {
                tool_id: (*id).to_owned(),
                server: server.to_owned(),
                tool: tool.to_owned(),
                ..Tool::default()
            }
        };
        Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: ids.iter().map(tool).collect(),
            ..Dataset::default()
        }
    }

    fn reader(config: Value) -> AnswerReader {
        let config: AnswerConfig = serde_json::from_value(config).unwrap();
        let known = dataset(&["a:b", "my__srv:do_it"]);
        AnswerReader::new(&config, &known, Path::new("."), false).unwrap()
    }

    fn ids(reader: &AnswerReader, answer: &Value) -> Vec<String> {
        let page = reader.read(answer.to_string().as_bytes()).unwrap();
        page.ranking.ranked.into_iter().map(|ranked| ranked.tool_id).collect()
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
        let page = reader.read_value(&answer).unwrap();
        assert_eq!(page.ranking.ranked[0].score, Some(2.5));
    }

    #[test]
    fn json_inside_a_text_and_plain_lists_are_read() {
        let inside = reader(json!({"json_at": "content[0].text", "ids": "tools[*]", "id": "name"}));
        let answer = json!({"content": [{"text": "{\"tools\": [{\"name\": \"a:b\"}]}"}]});
        assert_eq!(ids(&inside, &answer), ["a:b"]);
        let every = reader(json!({"json_at": "content[*].text", "id": "name"}));
        let answer =
            json!({"content": [{"text": "{\"name\": \"a:b\"}"}, {"text": "{\"name\": \"c:d\"}"}]});
        assert_eq!(ids(&every, &answer), ["a:b", "c:d"]);
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
            ("{\"results\": \"none\"}", "is not a list"),
            ("{\"results\": [{\"title\": 1}]}", "no id can be made of the result {\"title\":1}"),
            ("<html>busy</html>", "not JSON"),
            ("", "not JSON"),
        ] {
            let failure = reader.read(answer.as_bytes()).unwrap_err();
            assert_eq!(failure.class, FailureClass::InvalidAnswer, "{answer}");
            assert!(failure.message.contains(words), "{answer}: {}", failure.message);
        }
        assert!(reader.read(b"\xff").is_err());
    }

    #[test]
    fn a_missing_list_within_an_answer_is_invalid_and_nothing_is_dropped_from_it() {
        let nested = reader(json!({"ids": "servers[*].tools[*]", "id": "{^.name}:{name}"}));
        let named = reader(json!({"ids": "results[*].id"}));
        let texts = reader(json!({"json_at": "content[*].text", "id": "name"}));
        let lists = [
            (
                &nested,
                json!({"servers": [{"name": "a", "tools": null}, {"name": "d", "tools": []}]}),
            ),
            (&nested, json!({"servers": []})),
            (&named, json!({"results": []})),
            (&texts, json!({"content": []})),
        ];
        for (reader, empty) in lists {
            assert!(ids(reader, &empty).is_empty(), "{empty}");
        }
        let git = json!({"name": "git", "error": "index gone"});
        let one = json!({"name": "a", "tools": [{"name": "b"}]});
        for (reader, answer, words) in [
            (&nested, json!({"servers": [git]}), "no servers[*].tools[*]: {\"name\":\"git\""),
            (&nested, json!({"servers": [one, git]}), "no servers[*].tools[*]"),
            (&nested, json!({"servers": [{"name": "a", "tools": 3}]}), "is not a list: 3"),
            (&named, json!({"results": [{"id": "a:b"}, {"title": "x"}]}), "no results[*].id"),
            (&named, json!({"results": [{"id": null}]}), "no id can be made of the result null"),
            (&texts, json!({"error": "index gone"}), "no text holds the JSON"),
        ] {
            let failure = reader.read(answer.to_string().as_bytes()).unwrap_err();
            assert_eq!(failure.class, FailureClass::InvalidAnswer, "{answer}");
            assert!(failure.message.contains(words), "{words}: {}", failure.message);
        }
    }

    #[test]
    fn prefixes_parents_and_patterns_lead_to_ids() {
        let prefixed = reader(json!({"strip": "mcp__", "separator": "__"}));
        assert_eq!(
            ids(&prefixed, &json!(["mcp__a__b", "mcp__my__srv__do_it"])),
            ["a:b", "my__srv:do_it"]
        );
        let nested = reader(json!({"ids": "servers[*].tools[*]", "id": "{^.name}:{name}"}));
        let answer = json!({"servers": [
            {"name": "a", "tools": [{"name": "b"}, {"name": "c"}]}, {"name": "d", "tools": []},
            {"name": "e", "tools": [{"name": "f"}]}
        ]});
        assert_eq!(ids(&nested, &answer), ["a:b", "a:c", "e:f"]);
        let text = reader(json!({"pattern": "^- `(?<server>[^/`]+)/(?<tool>[^`]+)`"}));
        let found =
            text.read(b"Found:\n- `a/b`: does it\n- `my__srv/do_it`\n- `a/b` again\n").unwrap();
        let found: Vec<String> = found.ranking.ranked.into_iter().map(|one| one.tool_id).collect();
        assert_eq!(found, ["a:b", "my__srv:do_it"]);
        assert!(text.read(b"nothing").unwrap().ranking.ranked.is_empty());
    }

    #[test]
    fn an_error_in_the_answer_is_a_refusal_and_never_an_empty_list() {
        let plain = reader(json!({"ids": "results"}));
        let said = json!({"success": false, "error": "index \u{1b}gone", "results": []});
        let failure = plain.read_value(&said).unwrap_err();
        assert_eq!(failure.class, FailureClass::Refused);
        assert!(failure.message.contains("index") && !failure.message.contains('\u{1b}'));
        let own = reader(json!({"ids": "results", "error": "meta.problem"}));
        let said = json!({"meta": {"problem": {"code": 7}}, "results": []});
        assert_eq!(own.read_value(&said).unwrap_err().class, FailureClass::Refused);
        assert!(own.read_value(&json!({"meta": {"problem": null}, "results": []})).is_ok());
    }

    #[test]
    fn a_cursor_leads_to_the_next_page() {
        let reader = reader(json!({"ids": "r", "next": "next_cursor", "page_size": 2}));
        let next = |answer: Value| reader.read_value(&answer).unwrap().next;
        assert_eq!(next(json!({"r": ["a:b"], "next_cursor": "x"})), Some(json!("x")));
        for last in [json!(null), json!(""), json!(false)] {
            assert_eq!(next(json!({"r": [], "next_cursor": last})), None);
        }
        assert_eq!(next(json!({"r": []})), None);
    }

    #[test]
    fn rules_that_cannot_work_are_refused_before_anything_is_asked() {
        for config in [
            json!({"ids": "a..b"}),
            json!({"id": "{a"}),
            json!({"id": ["ok", "{}"]}),
            json!({"separator": ""}),
            json!({"score": "["}),
            json!({"pattern": "("}),
            json!({"pattern": "a", "ids": "b"}),
            json!({"page_size": 0}),
        ] {
            let config: AnswerConfig = serde_json::from_value(config.clone()).unwrap();
            assert!(config.check().is_err(), "{config:?}");
        }
    }
}
