//! Fitness for optimisers: what would search find if these descriptions were others?
//!
//! One JSON line in, one out. In: `{"id"?, "overrides": {"server:tool": "new description"},
//! "queries": ["q-1", …]}`, or `"split": "train"` instead of queries, or neither for all. Out: the
//! score of each query, their mean, what was ranked, and a sentence that says the obstacle.
//! A line that cannot be answered gives `{"error": …}`, and the next one is read. The golden queries
//! are read once and only compared with; their digest is in every answer.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use karat_metrics::ranking::Measure;
use karat_metrics::stats;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::dataset::{Dataset, Query, Tool};
use crate::engines::terms::Stems;
use crate::engines::{self, Builtin, Engine};
use crate::score;
use crate::system::{Ranked, Ranking};
use karat_core::error::EvalError;

/// The name of the protocol, in the first line.
pub const SCHEMA: &str = "karat.fitness/1";
/// The number of indexes that are kept: an optimiser often comes back to a candidate it has tried.
const KEPT: usize = 8;
/// The number of tools that rank above the right one are named.
const NAMED: usize = 3;

/// The request in one line.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Request {
    #[serde(default)]
    id: Option<Value>,
    #[serde(default)]
    overrides: BTreeMap<String, Value>,
    #[serde(default)]
    queries: Option<Vec<String>>,
    #[serde(default)]
    split: Option<String>,
}

/// The replacement for a tool's description in the corpus.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    #[serde(default)]
    title: Option<String>,
    #[serde(default)]
    description: Option<String>,
}

/// One query's part of the answer.
#[derive(Debug, Serialize)]
struct Scored<'a> {
    id: &'a str,
    score: Option<f64>,
    ranking: Vec<String>,
    feedback: String,
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
    indexes: VecDeque<(BTreeMap<String, Override>, Arc<Index>)>,
}

struct Index {
    tools: Vec<Tool>,
    engine: Box<dyn Engine>,
}

impl Fitness {
    /// Indexes the corpus as it is.
    ///
    /// # Errors
    /// When there is no such engine, or it cannot be built.
    pub fn new(dataset: Dataset, options: Options) -> Result<Fitness, EvalError> {
        let builtin =
            engines::find(&options.engine).ok_or_else(|| engines::unknown(&options.engine))?;
        let mut fitness =
            Fitness { dataset, options, builtin, stems: Stems::new(), indexes: VecDeque::new() };
        fitness.index(BTreeMap::new())?;
        Ok(fitness)
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
        let request: Request = karat_io::input::parse_json("the request", line.as_bytes())
            .map_err(|error| error.to_string())?;
        let _ = request.id;
        let overrides = self.overrides(request.overrides)?;
        let index = self.index(overrides).map_err(|error| error.to_string())?;
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
                    Value::String(text) => Override { title: None, description: Some(text) },
                    object => serde_json::from_value(object)
                        .map_err(|error| format!("overrides: {id}: {error}"))?,
                };
                Ok((id, change))
            })
            .collect()
    }

    /// The index of a candidate: the one that is there, or a new one.
    fn index(&mut self, overrides: BTreeMap<String, Override>) -> Result<Arc<Index>, EvalError> {
        if let Some(at) = self.indexes.iter().position(|(known, _)| *known == overrides)
            && let Some(found) = self.indexes.remove(at)
        {
            let index = Arc::clone(&found.1);
            self.indexes.push_front(found);
            return Ok(index);
        }
        let mut tools = self.dataset.tools.clone();
        for tool in &mut tools {
            let Some(change) = overrides.get(&tool.tool_id) else { continue };
            if let Some(description) = &change.description {
                tool.description.clone_from(description);
            }
            if change.title.is_some() {
                tool.title.clone_from(&change.title);
            }
        }
        let engine = (self.builtin.build)(&tools, self.options.weights.as_deref())?;
        let index = Arc::new(Index { tools, engine });
        self.indexes.push_front((overrides, Arc::clone(&index)));
        self.indexes.truncate(KEPT);
        Ok(index)
    }

    fn select(
        &self,
        ids: Option<Vec<String>>,
        split: Option<String>,
    ) -> Result<Vec<&Query>, String> {
        let queries = &self.dataset.queries;
        let chosen: Vec<&Query> = match (ids, split) {
            (Some(_), Some(_)) => return Err("give either queries or split".to_owned()),
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
            return Err("queries: there is nothing to score".to_owned());
        }
        Ok(chosen)
    }

    fn score<'a>(&self, index: &Index, query: &'a Query) -> Scored<'a> {
        let ranked = index.engine.search(&query.query, self.options.limit);
        let feedback = self.feedback(index, query, &ranked);
        let ranking: Vec<String> = ranked.iter().map(|ranked| ranked.tool_id.clone()).collect();
        let judged = score::judged(query, &Ranking::new(ranked));
        let score = judged.ok().and_then(|judged| judged.score(self.options.measure).ok());
        Scored { id: &query.id, score, ranking, feedback }
    }

    /// One sentence on the relevant tool that ranks lowest, the more relevant one first.
    fn feedback(&self, index: &Index, query: &Query, ranked: &[Ranked]) -> String {
        let rank = |id: &str| ranked.iter().position(|ranked| ranked.tool_id == id);
        let relevance = |id: &str| {
            query.labels.iter().find(|label| label.tool_id == id).map_or(0, |label| label.relevance)
        };
        let relevant = query.labels.iter().filter(|label| label.relevance > 0);
        // Above a tool may rank those that are at least as relevant.
        let above = |id: &str, at: usize| -> Vec<&str> {
            let others = ranked[..at].iter().map(|ranked| ranked.tool_id.as_str());
            others.filter(|other| relevance(other) < relevance(id)).collect()
        };
        let worst = relevant
            .map(|label| {
                let at = rank(&label.tool_id);
                let above = above(&label.tool_id, at.unwrap_or(ranked.len()));
                (label, at, above)
            })
            .filter(|(_, at, above)| at.is_none() || !above.is_empty())
            .max_by_key(|(label, at, _)| (label.relevance, at.unwrap_or(usize::MAX)));
        let Some((label, at, above)) = worst else {
            return "every relevant tool is ranked before all others".to_owned();
        };
        let place = match at {
            Some(at) => format!("ranked {}", at + 1),
            None => format!("not among the first {}", self.options.limit),
        };
        let mut sentence = format!("{} is relevant but {place}", label.tool_id);
        if !above.is_empty() {
            let named = above.iter().take(NAMED).copied().collect::<Vec<_>>().join(", ");
            let more = above.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            sentence.push_str(&format!("; outranked by {named}{more}"));
        }
        let missing = self.missing_words(index, query, &label.tool_id);
        if !missing.is_empty() {
            let words = missing.join(", ");
            sentence.push_str(&format!("; query words missing from its description: {words}"));
        }
        sentence
    }

    /// The words of the query whose stems the tool's name, title and description do not have.
    fn missing_words(&self, index: &Index, query: &Query, id: &str) -> Vec<String> {
        let tool = index.tools.binary_search_by(|tool| tool.tool_id.as_str().cmp(id));
        let Ok(tool) = tool.map(|at| &index.tools[at]) else { return Vec::new() };
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
                title: None,
                description: description.to_owned(),
                input_schema: Value::Null,
                output_schema: None,
                annotations: None,
            }
        };
        let query = |id: &str, text: &str, relevant: &str, split: &str| Query {
            id: id.to_owned(),
            query: text.to_owned(),
            labels: vec![Label { tool_id: relevant.to_owned(), relevance: 2 }],
            kind: None,
            split: Some(split.to_owned()),
            notes: None,
            place: 0,
        };
        let dataset = Dataset {
            reference: DatasetRef { id: "d".into(), version: "v1".into(), digest: "x".into() },
            tools: vec![
                tool("git:open", "Make an issue."),
                tool("jira:open", "Make a ticket for a defect."),
                tool("mail:send", "Send a letter."),
            ],
            queries: vec![
                query("a", "report a defect", "git:open", "train"),
                query("b", "write letters", "mail:send", "test"),
            ],
            groups: Vec::new(),
            dangling: Vec::new(),
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
    fn what_stands_above_is_named() {
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
            (r#"{"overrides": {"git:open": 3}}"#, "git:open"),
            (r#"{"overrides": {"git:open": {"name": "x"}}}"#, "name"),
            (r#"{"queries": ["zz"]}"#, "zz"),
            (r#"{"queries": []}"#, "nothing"),
            (r#"{"split": "no"}"#, "no"),
            (r#"{"split": "train", "queries": ["a"]}"#, "either"),
            (r#"{"quaries": ["a"]}"#, "quaries"),
        ] {
            let answer = fitness.answer(line);
            let error = answer["error"].as_str().unwrap_or_else(|| panic!("{line}: {answer}"));
            assert!(error.contains(words), "{line}: {error}");
        }
        assert_eq!(fitness.answer("{}")["scores"].as_object().unwrap().len(), 2);
    }
}
