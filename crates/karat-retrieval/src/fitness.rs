//! Fitness for optimisers: what would search find if these descriptions were others?
//!
//! One JSON line in, one out. In: `{"id"?, "overrides": {"server:tool": "new description"},
//! "queries": ["q-1", …]}`, or `"split": "train"` instead of queries, or neither for all. Out: the
//! score of each query, their mean, what was ranked, and what is in the way, as data and as a sentence.
//! `{"texts": ["server:tool", …]}` answers with the texts as they are.
//! A line that cannot be answered gives `{"error": …}`, and the next one is read. The golden queries
//! are read once and only compared with; their digest is in every answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use karat_io::text::first_few;
use karat_metrics::ranking::Measure;
use karat_metrics::stats;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dataset::{Dataset, Query, Tool};
use crate::engines::reworded::{EditableEngine, Reworded};
use crate::engines::terms::Stems;
use crate::engines::{self, Builtin};
use crate::ranking::{Ranked, Ranking};
use crate::score;
use karat_core::error::EvalError;

/// The name of the protocol, in the first line.
pub(crate) const SCHEMA: &str = "karat.fitness/1";
/// The number of candidates that are kept: an optimiser often comes back to a candidate it has tried.
const KEPT: usize = 8;
/// The number of tools that rank above the right one are named.
const NAMED: usize = 3;

/// The request in one line.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Request {
    id: Option<Value>,
    overrides: BTreeMap<String, Value>,
    queries: Option<Vec<String>>,
    split: Option<String>,
    texts: Option<Vec<String>>,
}

/// The replacement for a tool's texts in the corpus.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Override {
    title: Option<String>,
    description: Option<String>,
    /// The descriptions of parameters, by their names.
    parameters: BTreeMap<String, String>,
}

/// One query's part of the answer.
#[derive(Debug, Serialize)]
struct Scored<'a> {
    id: &'a str,
    score: Option<f64>,
    ranking: Vec<String>,
    /// The relevant tool that ranks lowest; none if all are before the others.
    obstacle: Option<Obstacle>,
    feedback: String,
}

/// The reason that a relevant tool is not at the top.
#[derive(Debug, Serialize)]
struct Obstacle {
    tool_id: String,
    /// Its rank; none if it is not among the results.
    rank: Option<usize>,
    /// The less relevant tools above it.
    outranked_by: Vec<String>,
    /// The words of the query that its name, title and description do not have.
    missing_words: Vec<String>,
}

/// The way candidates are judged.
pub struct Options {
    /// The built-in engine.
    pub engine: String,
    /// Its weights, if it needs any.
    pub weights: Option<PathBuf>,
    /// The score of a query.
    pub measure: Measure,
    /// The number of results that are asked for.
    pub limit: usize,
}

/// Answers fitness requests over one dataset.
pub struct Fitness {
    dataset: Dataset,
    options: Options,
    builtin: &'static Builtin,
    stems: Stems,
    engine: EditableEngine,
    indexes: VecDeque<(BTreeMap<String, Override>, Arc<Index>)>,
}

/// A candidate: the tools that are reworded, and a search over all.
struct Index {
    reworded: BTreeMap<usize, Tool>,
    searching: Reworded,
}

impl Fitness {
    /// Indexes the corpus as it is.
    ///
    /// # Errors
    /// If there is no such engine, or it cannot be built.
    pub fn new(dataset: Dataset, options: Options) -> Result<Fitness, EvalError> {
        let builtin =
            engines::find(&options.engine).ok_or_else(|| engines::unknown(&options.engine))?;
        let engine = EditableEngine::build(builtin, &dataset.tools, options.weights.as_deref())?;
        let (stems, indexes) = (Stems::new(), VecDeque::new());
        Ok(Fitness { dataset, options, builtin, stems, engine, indexes })
    }

    /// The first line: what is measured, by what.
    pub fn hello(&self) -> Value {
        let splits: BTreeSet<&str> =
            self.dataset.queries.iter().filter_map(|query| query.split.as_deref()).collect();
        json!({
            "schema": SCHEMA,
            "dataset": self.dataset.reference,
            "engine": self.builtin.name,
            "metric": self.options.measure.to_string(),
            "limit": self.options.limit,
            "tools": self.dataset.tools.len(),
            "queries": self.dataset.queries.len(),
            "splits": splits,
        })
    }

    /// Answers one line. Whatever is wrong with it is said in the answer.
    pub fn answer(&mut self, line: &str) -> Value {
        let id =
            serde_json::from_str::<Value>(line).ok().and_then(|value| value.get("id").cloned());
        let mut answer = match self.evaluate(line) {
            Ok(answer) => answer,
            Err(message) => json!({ "error": message }),
        };
        if let (Some(id), Some(fields)) = (id, answer.as_object_mut()) {
            fields.insert("id".to_owned(), id);
        }
        answer
    }

    fn evaluate(&mut self, line: &str) -> Result<Value, String> {
        if !line.trim_start().starts_with('{') {
            return Err("the request is not a JSON object".to_owned());
        }
        let request: Request = karat_io::input::parse_json("the request", line.as_bytes())
            .map_err(|error| error.to_string())?;
        let _ = request.id;
        if let Some(ids) = &request.texts {
            return self.texts(ids);
        }
        let overrides = self.overrides(request.overrides)?;
        let index = self.index(overrides);
        let queries = self.select(request.queries, request.split)?;
        let results: Vec<Scored<'_>> =
            queries.into_iter().map(|query| self.score(&index, query)).collect();
        let scores: BTreeMap<&str, Option<f64>> =
            results.iter().map(|result| (result.id, result.score)).collect();
        let defined: Vec<f64> = results.iter().filter_map(|result| result.score).collect();
        Ok(json!({
            "digest": self.dataset.reference.digest,
            "metric": self.options.measure.to_string(),
            "mean": stats::mean(&defined).ok(),
            "scores": scores,
            "results": results,
        }))
    }

    fn overrides(
        &self,
        given: BTreeMap<String, Value>,
    ) -> Result<BTreeMap<String, Override>, String> {
        given
            .into_iter()
            .map(|(id, value)| {
                if self.dataset.tool(&id).is_none() {
                    return Err(format!("overrides: the corpus has no tool {id:?}"));
                }
                let change = match value {
                    Value::String(text) => {
                        Override { description: Some(text), ..Override::default() }
                    }
                    Value::Object(fields) => serde_json::from_value(Value::Object(fields))
                        .map_err(|error| format!("overrides: {id}: {error}"))?,
                    _ => {
                        return Err(format!(
                            "overrides: {id}: give a description, or an object with title, \
                             description and parameters"
                        ));
                    }
                };
                if let Some(unknown) = self.unknown_parameter(&id, &change) {
                    return Err(format!("overrides: {id} has no parameter {unknown:?}"));
                }
                Ok((id, change))
            })
            .collect()
    }

    /// The index of a candidate: the one that is there, or a new one.
    fn index(&mut self, overrides: BTreeMap<String, Override>) -> Arc<Index> {
        if let Some(at) = self.indexes.iter().position(|(known, _)| *known == overrides)
            && let Some(found) = self.indexes.remove(at)
        {
            let index = Arc::clone(&found.1);
            self.indexes.push_front(found);
            return index;
        }
        let mut reworded = BTreeMap::new();
        for (id, change) in &overrides {
            let place = self.dataset.tools.binary_search_by(|tool| tool.tool_id.cmp(id));
            if let Ok(place) = place {
                reworded.insert(place, change.apply(&self.dataset.tools[place]));
            }
        }
        let searching = self.engine.reworded(reworded.iter().map(|(place, tool)| (*place, tool)));
        let index = Arc::new(Index { reworded, searching });
        self.indexes.push_front((overrides, Arc::clone(&index)));
        self.indexes.truncate(KEPT);
        index
    }

    fn select(
        &self,
        ids: Option<Vec<String>>,
        split: Option<String>,
    ) -> Result<Vec<&Query>, String> {
        let queries = &self.dataset.queries;
        let chosen: Vec<&Query> = match (ids, split) {
            (Some(_), Some(_)) => return Err("queries and split cannot be combined".to_owned()),
            (Some(ids), None) => ids
                .iter()
                .map(|id| {
                    queries
                        .binary_search_by(|query| query.id.as_str().cmp(id))
                        .map(|at| &queries[at])
                        .map_err(|_| format!("queries: the golden set has no query {id:?}"))
                })
                .collect::<Result<_, _>>()?,
            (None, Some(split)) => {
                let in_split = |query: &&Query| query.split.as_deref() == Some(split.as_str());
                let chosen: Vec<&Query> = queries.iter().filter(in_split).collect();
                if chosen.is_empty() {
                    return Err(format!("split: no query has the split {split:?}"));
                }
                chosen
            }
            (None, None) => queries.iter().collect(),
        };
        if chosen.is_empty() {
            return Err("queries: nothing to score".to_owned());
        }
        Ok(chosen)
    }

    fn score<'a>(&self, index: &Index, query: &'a Query) -> Scored<'a> {
        let limit = self.options.limit;
        let ranked = self.engine.search(&index.searching, &query.query, limit);
        let obstacle = self.obstacle(index, query, &ranked);
        let feedback = self.feedback(obstacle.as_ref());
        let ranking: Vec<String> = ranked.iter().map(|ranked| ranked.tool_id.clone()).collect();
        let judged = score::judged(query, &Ranking::new(ranked));
        let score = judged.ok().and_then(|judged| judged.score(self.options.measure).ok());
        Scored { id: &query.id, score, ranking, obstacle, feedback }
    }

    /// The relevant tool that ranks lowest, the more relevant one first.
    fn obstacle(&self, index: &Index, query: &Query, ranked: &[Ranked]) -> Option<Obstacle> {
        let rank = |id: &str| ranked.iter().position(|ranked| ranked.tool_id == id);
        let relevance = |id: &str| {
            query.labels.iter().find(|label| label.tool_id == id).map_or(0, |label| label.relevance)
        };
        let relevant = query.labels.iter().filter(|label| label.relevance > 0);
        // Above a tool may rank those that are at least as relevant.
        let above = |id: &str, at: usize| -> Vec<String> {
            let others = ranked[..at].iter().map(|ranked| &ranked.tool_id);
            others.filter(|other| relevance(other) < relevance(id)).cloned().collect()
        };
        let (label, at, outranked_by) = relevant
            .map(|label| {
                let at = rank(&label.tool_id);
                let above = above(&label.tool_id, at.unwrap_or(ranked.len()));
                (label, at, above)
            })
            .filter(|(_, at, above)| at.is_none() || !above.is_empty())
            .max_by_key(|(label, at, _)| (label.relevance, at.unwrap_or(usize::MAX)))?;
        Some(Obstacle {
            tool_id: label.tool_id.clone(),
            rank: at.map(|at| at + 1),
            outranked_by,
            missing_words: self.missing_words(index, query, &label.tool_id),
        })
    }

    /// The same in one sentence.
    fn feedback(&self, obstacle: Option<&Obstacle>) -> String {
        let Some(Obstacle { tool_id, rank, outranked_by, missing_words }) = obstacle else {
            return "every relevant tool is ranked before all others".to_owned();
        };
        let place = match rank {
            Some(rank) => format!("ranked {rank}"),
            None => format!("not among the first {}", self.options.limit),
        };
        let mut sentence = format!("{tool_id} is relevant but {place}");
        if !outranked_by.is_empty() {
            sentence.push_str("; outranked by ");
            sentence.push_str(&first_few(outranked_by, NAMED));
        }
        if !missing_words.is_empty() {
            let words = missing_words.join(", ");
            sentence.push_str(&format!("; query words missing from its description: {words}"));
        }
        sentence
    }

    /// The texts of tools as the corpus has them.
    fn texts(&self, ids: &[String]) -> Result<Value, String> {
        let text = |id: &String| {
            let unknown = || format!("texts: the corpus has no tool {id:?}");
            let tool = self.dataset.tool(id).ok_or_else(unknown)?;
            let parameters: BTreeMap<&String, &Value> =
                parameters(tool).map(|(name, schema)| (name, &schema["description"])).collect();
            let texts = json!({
                "title": tool.title,
                "description": tool.description,
                "parameters": parameters,
            });
            Ok((id.clone(), texts))
        };
        let texts = ids.iter().map(text).collect::<Result<serde_json::Map<_, _>, String>>()?;
        Ok(json!({ "texts": texts }))
    }

    /// A parameter that is given a description and that the tool does not have.
    fn unknown_parameter<'c>(&self, id: &str, change: &'c Override) -> Option<&'c String> {
        let tool = self.dataset.tool(id)?;
        let known: BTreeSet<&String> = parameters(tool).map(|(name, _)| name).collect();
        change.parameters.keys().find(|name| !known.contains(name))
    }

    /// The words of the query whose stems the tool's name, title and description do not have.
    fn missing_words(&self, index: &Index, query: &Query, id: &str) -> Vec<String> {
        let tools = &self.dataset.tools;
        let place = tools.binary_search_by(|tool| tool.tool_id.as_str().cmp(id));
        let Ok(place) = place else { return Vec::new() };
        let tool = index.reworded.get(&place).unwrap_or(&tools[place]);
        let title = tool.title.as_deref().unwrap_or_default();
        let said = [tool.server.as_str(), &tool.tool, title, &tool.description].join(" ");
        let said: BTreeSet<String> =
            self.stems.of(&said).into_iter().map(|(_, stem)| stem).collect();
        let mut seen = BTreeSet::new();
        self.stems
            .of(&query.query)
            .into_iter()
            .filter(|(_, stem)| !said.contains(stem) && seen.insert(stem.clone()))
            .map(|(word, _)| word)
            .collect()
    }
}

/// The parameters of a tool with their schemas.
fn parameters(tool: &Tool) -> impl Iterator<Item = (&String, &Value)> {
    tool.input_schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

impl Override {
    fn apply(&self, tool: &Tool) -> Tool {
        let mut tool = tool.clone();
        if let Some(description) = &self.description {
            tool.description.clone_from(description);
        }
        if self.title.is_some() {
            tool.title.clone_from(&self.title);
        }
        for (name, description) in &self.parameters {
            if let Some(Value::Object(schema)) =
                tool.input_schema.get_mut("properties").and_then(|all| all.get_mut(name))
            {
                schema.insert("description".to_owned(), json!(description));
            }
        }
        tool
    }
}

#[cfg(test)]
mod tests {
    use karat_core::report::DatasetRef;

    use super::*;
    use crate::dataset::Label;

    fn fitness() -> Fitness {
        let tool = |id: &str, description: &str| {
            let (server, tool) = id.split_once(':').unwrap();
            Tool {
                tool_id: id.to_owned(),
                server: server.to_owned(),
                tool: tool.to_owned(),
                description: description.to_owned(),
                ..Tool::default()
            }
        };
        let query = |id: &str, text: &str, relevant: &str, split: &str| Query {
            id: id.to_owned(),
            query: text.to_owned(),
            labels: vec![Label { tool_id: relevant.to_owned(), relevance: 2 }],
            split: Some(split.to_owned()),
            ..Query::default()
        };
        let dataset = Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: vec![
                tool("git:open", "Make an issue."),
                tool("jira:open", "Make a ticket for a defect."),
                Tool {
                    input_schema: json!({"properties": {"to": {"description": "The recipient."}}}),
                    ..tool("mail:send", "Send a letter.")
                },
            ],
            queries: vec![
                query("a", "report a defect", "git:open", "train"),
                query("b", "write letters", "mail:send", "test"),
            ],
            groups: Vec::new(),
            dangling: Vec::new(),
            versions: Default::default(),
            contents: Default::default(),
        };
        let options = Options {
            engine: "bm25".to_owned(),
            weights: None,
            measure: Measure::known("mrr@10"),
            limit: 10,
        };
        Fitness::new(dataset, options).unwrap()
    }

    #[test]
    fn a_better_description_scores_better_and_the_sentence_says_what_was_missing() {
        let mut fitness = fitness();
        let before = fitness.answer(r#"{"queries": ["a"]}"#);
        assert_eq!((&before["mean"], &before["digest"]), (&0.0.into(), &"x".into()));
        assert_eq!(
            before["results"][0]["feedback"],
            "git:open is relevant but not among the first 10; outranked by jira:open; query words \
             missing from its description: report, defect"
        );
        let better = r#"{"overrides": {"git:open": "Report a defect."}, "split": "train"}"#;
        let after = fitness.answer(better);
        assert_eq!(after["mean"], 1.0);
        assert_eq!(fitness.answer(better), after, "the same from the kept index");
        assert_eq!(fitness.answer(r#"{"queries": ["a"]}"#), before, "nothing was kept of it");
    }

    #[test]
    fn parameters_can_be_reworded_and_the_texts_can_be_asked_for() {
        let mut fitness = fitness();
        let texts = fitness.answer(r#"{"id": 3, "texts": ["mail:send"]}"#);
        let expected = json!({"title": null, "description": "Send a letter.",
                              "parameters": {"to": "The recipient."}});
        assert_eq!((&texts["id"], &texts["texts"]["mail:send"]), (&3.into(), &expected));
        let line = r#"{"overrides": {"mail:send": {"parameters": {"to": "A defect to report."}}}, "queries": ["a"]}"#;
        let answer = fitness.answer(line);
        let ranking = answer["results"][0]["ranking"].as_array().unwrap();
        assert!(ranking.contains(&json!("mail:send")), "{answer}");
        let obstacle = &answer["results"][0]["obstacle"];
        assert_eq!(obstacle["tool_id"], "git:open");
        assert_eq!(obstacle["missing_words"], json!(["report", "defect"]));
    }

    #[test]
    fn tools_ranked_above_are_named() {
        let mut fitness = fitness();
        let line = r#"{"id": 7, "overrides": {"git:open": {"description": "Some other text with a defect in it."}, "jira:open": "report a defect"}, "queries": ["a"]}"#;
        let answer = fitness.answer(line);
        assert_eq!(answer["id"], 7);
        let feedback = answer["results"][0]["feedback"].as_str().unwrap();
        assert!(
            feedback.starts_with("git:open is relevant but ranked 2; outranked by jira:open"),
            "{feedback}"
        );
        assert_eq!(answer["scores"]["a"], 0.5);
    }

    #[test]
    fn what_cannot_be_answered_is_said_and_the_next_line_is_read() {
        let mut fitness = fitness();
        for (line, words) in [
            ("{", "cut off"),
            (r#"{"id": 1, "overrides": {"no:tool": "x"}}"#, "no:tool"),
            (r#"{"overrides": {"git:open": 3}}"#, "git:open: give a description"),
            (r#"{"overrides": {"git:open": {"parameters": {"x": "y"}}}}"#, "no parameter \"x\""),
            (r#"{"texts": ["no:tool"]}"#, "no:tool"),
            ("[]", "not a JSON object"),
            (r#"{"overrides": {"git:open": {"name": "x"}}}"#, "name"),
            (r#"{"queries": ["zz"]}"#, "zz"),
            (r#"{"queries": []}"#, "nothing"),
            (r#"{"split": "no"}"#, "no"),
            (r#"{"split": "train", "queries": ["a"]}"#, "cannot be combined"),
            (r#"{"quaries": ["a"]}"#, "quaries"),
        ] {
            let answer = fitness.answer(line);
            let error = answer["error"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
            assert!(error.contains(words), "{line}: {error}");
        }
        assert_eq!(fitness.answer("{}")["scores"].as_object().unwrap().len(), 2);
    }
}
