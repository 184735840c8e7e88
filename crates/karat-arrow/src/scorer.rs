//! Batches in, scored batches out.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;
use karat_agent::{CallMetric, Tasks, Tools, pipeline};
use karat_metrics::ranking::Measure;

use crate::options::Plan;
use crate::rows::Rows;
use crate::schema::{self, check_version};
use crate::traces::Traces;
use crate::{Error, Kind, Options, rankings, verdicts};

/// Scores batches of one kind. It can be used from several threads at once.
#[derive(Debug)]
pub struct Scorer {
    plan: Plan,
    schema: SchemaRef,
    rows: Of,
}

/// The scorer of one kind of rows.
#[derive(Debug)]
enum Of {
    Traces(Box<Traces>),
    Rankings(Vec<Measure>),
    Verdicts,
}

impl Scorer {
    /// Checks the settings.
    ///
    /// # Errors
    /// If a metric is not known, or a setting is out of range.
    pub fn new(kind: Kind, options: Options) -> Result<Scorer, Error> {
        let plan = Plan::new(kind, options)?;
        let ids = plan.metrics.iter().map(|metric| metric.id.as_str());
        let rows = match kind {
            Kind::Traces => {
                let peers = match plan.options.metrics.is_empty() {
                    true => CallMetric::usual(),
                    false => ids.filter_map(|id| id.parse().ok()).collect(),
                };
                Of::Traces(Box::new(Traces::new(peers)))
            }
            Kind::Rankings => Of::Rankings(ids.filter_map(|id| id.parse().ok()).collect()),
            Kind::Verdicts => Of::Verdicts,
        };
        Ok(Scorer { schema: schema::scored(&plan), plan, rows })
    }

    /// Takes the tools that were on offer, for traces that do not name them. Partial results of other
    /// tools merge unless [`Options::context`] says that they differ.
    #[must_use]
    pub fn with_tools(mut self, tools: Tools) -> Scorer {
        if let Of::Traces(traces) = &mut self.rows {
            traces.tools = tools;
        }
        self
    }

    /// Takes tasks, for traces that have no expectation of their own; see [`with_tools`](Self::with_tools).
    #[must_use]
    pub fn with_tasks(mut self, tasks: Tasks) -> Scorer {
        if let Of::Traces(traces) = &mut self.rows {
            traces.tasks = Some(tasks);
        }
        self
    }

    /// The kind of the rows.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.plan.kind
    }

    /// The settings.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.plan.options
    }

    /// The schema of scored batches.
    #[must_use]
    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Scores every row. The scored rows are in the order of the rows.
    ///
    /// # Errors
    /// If a column is missing or has another type, a value is null where none may be, or a row cannot be
    /// scored and [`Options::max_errors`] is 0.
    pub fn score(&self, batch: &RecordBatch) -> Result<RecordBatch, Error> {
        check_version(batch.schema_ref(), schema::input_name(self.plan.kind))?;
        let mut out = Rows::new(&self.plan, batch.num_rows());
        match &self.rows {
            Of::Traces(traces) => traces.score(&self.plan, batch, &mut out)?,
            Of::Rankings(measures) => {
                rankings::score(measures, &self.plan.options.group, batch, &mut out)?;
            }
            Of::Verdicts => verdicts::score(&self.plan.options.group, batch, &mut out)?,
        }
        out.finish(self.schema())
    }

    /// Scores the rows of many batches, on all processors. The scored rows are in the order of the rows, in
    /// batches of their own. Few batches are held at a time.
    ///
    /// # Errors
    /// As [`Scorer::score`]; of several, the first one. Also if a batch cannot be read.
    pub fn score_all<E>(
        &self,
        batches: impl IntoIterator<Item = Result<RecordBatch, E>>,
    ) -> Result<Vec<RecordBatch>, Error>
    where
        Error: From<E>,
    {
        let (mut scored, mut held) = (Vec::new(), Vec::new());
        for batch in batches {
            let batch = batch?;
            let rows = batch.num_rows();
            // An empty batch is scored too: its columns may be wrong.
            for start in (0..rows.max(1)).step_by(SHARE) {
                held.push((start, batch.slice(start, SHARE.min(rows - start))));
            }
            if held.len() >= MAX_HELD {
                self.score_shares(&mut held, &mut scored)?;
            }
        }
        self.score_shares(&mut held, &mut scored)?;
        Ok(scored)
    }

    fn score_shares(
        &self,
        held: &mut Vec<(usize, RecordBatch)>,
        scored: &mut Vec<RecordBatch>,
    ) -> Result<(), Error> {
        let score = |(start, share): &(usize, RecordBatch)| {
            self.score(share).map_err(|error| error.after_rows(*start))
        };
        for share in pipeline::map(held, score) {
            scored.push(share?);
        }
        held.clear();
        Ok(())
    }
}

/// The number of rows that a thread takes at a time.
const SHARE: usize = 1 << 15;
/// The number of such shares that are scored together.
const MAX_HELD: usize = 32;
