//! Scoring and counting of one query after the other, and the summary.

use karat_metrics::Score;
use karat_metrics::ranking::{Averages, JudgedRanking, Mean, Measure, Rules};

use super::Options;
use super::error::TrecError;
use super::group::Rows;
use super::input::Input;
use super::join::{Join, Repeated};

/// The number of ids in a list of the summary.
const NAMED: usize = 5;

/// One query that was scored.
#[derive(Debug)]
pub struct QueryScores<'a> {
    /// The query.
    pub query: &'a str,
    /// The computed measures.
    pub measures: &'a [Measure],
    /// The values, in the order of the measures.
    pub scores: &'a [Score],
    /// The ranking that the values were computed from, with its counts.
    pub ranking: &'a JudgedRanking,
}

/// A set of queries: their number, and the ids of the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryList {
    /// The number of queries.
    pub count: usize,
    /// The ids of the first few.
    pub first: Vec<String>,
}

impl QueryList {
    fn add(&mut self, query: &[u8]) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(String::from_utf8_lossy(query).into_owned());
        }
    }
}

/// The means of a measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasureMeans {
    /// The measure.
    pub measure: Measure,
    /// Over the queries that are in both files (trec_eval without `-c`).
    pub over_evaluated: Mean,
    /// Over all judged queries, one that the run does not have counting as an empty list
    /// (trec_eval `-c`).
    pub over_all: Mean,
}

/// The contents of the files, and the means.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// The order of results, and the grades that counted as relevant.
    pub rules: Rules,
    /// Queries that have judgements.
    pub judged: usize,
    /// Queries that have results.
    pub in_run: usize,
    /// Queries that have both. With 0 nothing was measured, and the means over evaluated queries
    /// are undefined.
    pub evaluated: usize,
    /// Judged queries that the run does not have.
    pub missing: QueryList,
    /// Queries of the run without judgements. They are left out.
    pub unjudged: QueryList,
    /// Evaluated queries without a relevant document. Their values are 0, and they are in the means.
    pub without_relevant: usize,
    /// Results of the evaluated queries (trec_eval `num_ret`).
    pub retrieved: usize,
    /// Relevant documents of the evaluated queries (trec_eval `num_rel`).
    pub relevant: usize,
    /// Relevant documents of the missing queries (trec_eval `-c` counts them in `num_rel`).
    pub relevant_missing: usize,
    /// Relevant results of the evaluated queries (trec_eval `num_rel_ret`).
    pub relevant_retrieved: usize,
    /// The means, in the order of the measures in the options.
    pub means: Vec<MeasureMeans>,
}

impl Summary {
    /// Returns `true` if the mean of some measure over all judged queries differs from the one over the
    /// evaluated queries. Then show both.
    #[must_use]
    pub fn means_differ(&self) -> bool {
        self.means.iter().any(|means| means.over_evaluated.value() != means.over_all.value())
    }
}

/// Scores and counts queries.
pub(super) struct Evaluator<'a> {
    rules: Rules,
    qrels: &'a Input,
    run: &'a Input,
    per_query: &'a mut dyn FnMut(&QueryScores<'_>),
    join: Join,
    ranking: JudgedRanking,
    averages: Averages,
    summary: Summary,
}

impl<'a> Evaluator<'a> {
    pub(super) fn new(
        options: &Options,
        qrels: &'a Input,
        run: &'a Input,
        per_query: &'a mut dyn FnMut(&QueryScores<'_>),
    ) -> Self {
        let rules = options.rules;
        let summary = Summary {
            rules,
            judged: 0,
            in_run: 0,
            evaluated: 0,
            missing: QueryList::default(),
            unjudged: QueryList::default(),
            without_relevant: 0,
            retrieved: 0,
            relevant: 0,
            relevant_missing: 0,
            relevant_retrieved: 0,
            means: Vec::new(),
        };
        Self {
            rules,
            qrels,
            run,
            per_query,
            join: Join::default(),
            ranking: JudgedRanking::default(),
            averages: Averages::new(&options.measures),
            summary,
        }
    }

    /// Scores a query that is in both files.
    pub(super) fn evaluate(
        &mut self,
        query: &[u8],
        judged: Rows<'_, i64>,
        results: Rows<'_, f64>,
    ) -> Result<(), TrecError> {
        self.fill(query, judged, results)?;
        let summary = &mut self.summary;
        summary.judged += 1;
        summary.in_run += 1;
        summary.evaluated += 1;
        summary.without_relevant += usize::from(self.ranking.relevant_count() == 0);
        summary.retrieved += self.ranking.retrieved_count();
        summary.relevant += self.ranking.relevant_count();
        summary.relevant_retrieved += self.ranking.relevant_retrieved_count();
        self.averages.add_evaluated(&self.ranking);
        (self.per_query)(&QueryScores {
            query: &String::from_utf8_lossy(query),
            measures: self.averages.measures(),
            scores: self.averages.latest(),
            ranking: &self.ranking,
        });
        Ok(())
    }

    /// Scores a judged query that the run does not have.
    pub(super) fn missing(&mut self, query: &[u8], judged: Rows<'_, i64>) -> Result<(), TrecError> {
        self.fill(query, judged, Rows::NONE)?;
        self.averages.add_missing(&self.ranking);
        self.summary.judged += 1;
        self.summary.relevant_missing += self.ranking.relevant_count();
        self.summary.missing.add(query);
        Ok(())
    }

    /// Checks a query of the run that has no judgements: its lines must be valid too.
    pub(super) fn unjudged(
        &mut self,
        query: &[u8],
        results: Rows<'_, f64>,
    ) -> Result<(), TrecError> {
        self.fill(query, Rows::NONE, results)?;
        self.summary.in_run += 1;
        self.summary.unjudged.add(query);
        Ok(())
    }

    fn fill(
        &mut self,
        query: &[u8],
        judged: Rows<'_, i64>,
        results: Rows<'_, f64>,
    ) -> Result<(), TrecError> {
        let joined = self.join.fill(&mut self.ranking, query, judged, results, &self.rules);
        joined.map_err(|repeated| match repeated {
            Repeated::Judgement { line, problem } => self.qrels.line_error(line, problem),
            Repeated::Result { line, problem } => self.run.line_error(line, problem),
        })
    }

    pub(super) fn finish(self) -> Summary {
        let both = self.averages.over_evaluated().iter().zip(self.averages.over_all());
        let means = self.averages.measures().iter().zip(both);
        let means = means.map(|(measure, (over_evaluated, over_all))| MeasureMeans {
            measure: *measure,
            over_evaluated: *over_evaluated,
            over_all: *over_all,
        });
        Summary { means: means.collect(), ..self.summary }
    }
}
