//! Scores of traces: each row is a run of an agent, as columns or as one document.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use arrow_array::RecordBatch;
use karat_agent::scores::by_metric;
use karat_agent::trace::{
    Arguments, CallError, CallMade, Expectation, Failed, Outcome, Setting, Usage,
};
use karat_agent::{CallMetric, Tasks, Tools, Trace, TraceScorer};
use karat_metrics::MetricId;
use karat_metrics::calls::json::Reader;
use karat_metrics::calls::{self, Call};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::columns::{Columns, Fields, Lists, Number, Text, Truth};
use crate::options::Plan;
use crate::rows::{Row, Rows};
use crate::{Error, Kind};

const CALLS: &str = "list<struct<name: utf8, arguments: utf8 (JSON), server: utf8>>";
/// The number of expectations that are kept for later rows.
const MAX_EXPECTATIONS: usize = 1 << 14;

/// Expectations by their columns: most tables have many rows for each task.
type Expectations = Mutex<HashMap<Vec<u8>, Arc<Expectation>>>;

/// Scores traces.
#[derive(Debug)]
pub(crate) struct Traces {
    peers: Vec<CallMetric>,
    /// The tools that were on offer.
    pub(crate) tools: Tools,
    /// The tasks, for traces that have no expectation of their own.
    pub(crate) tasks: Option<Tasks>,
    expectations: Expectations,
}

impl Traces {
    /// Computes Karat's own scores, and these of peers.
    pub(crate) fn new(peers: Vec<CallMetric>) -> Traces {
        Traces { peers, tools: Tools::default(), tasks: None, expectations: Mutex::default() }
    }

    /// Scores every row.
    pub(crate) fn score(
        &self,
        plan: &Plan,
        batch: &RecordBatch,
        out: &mut Rows<'_>,
    ) -> Result<(), Error> {
        let columns = Columns::of(Kind::Traces, batch);
        let groups = columns.text(&plan.options.group)?;
        let source = Source::of(&columns)?;
        let trace_scorer = TraceScorer::new(&self.tools, &self.peers);
        let place = |id: &MetricId| trace_scorer.ids().iter().position(|known| known == id);
        let places: Vec<Option<usize>> =
            plan.metrics.iter().map(|metric| place(&metric.id)).collect();
        let plain = source.columns().zip(self.metrics_of_calls(plan));
        let (mut called, mut expected) = (Vec::new(), Vec::new());
        for number in 0..batch.num_rows() {
            let group = groups.as_ref().and_then(|groups| groups.get(number));
            if let Some((columns, metrics)) = &plain
                && columns.plain_calls(number, &mut called, &mut expected).is_some()
            {
                let id = columns.ids.get(number).unwrap_or_default();
                let row = Row { number, id, group, latency_ms: columns.duration_ms(number) };
                out.setting.append_value(Setting::default().name());
                let score = |metric: &&CallMetric| by_metric(metric, &called, &expected).ok();
                out.push(row, metrics.iter().map(score));
                continue;
            }
            let read = source.read(number, &self.expectations)?;
            let mut trace = match read {
                Ok(trace) => trace,
                Err(message) => {
                    let id = source.id(number).unwrap_or_default();
                    out.setting.append_null();
                    let row = Row { number, id, group, latency_ms: None };
                    out.push_failed(row, &message, [])?;
                    continue;
                }
            };
            let own_id = trace.id.clone();
            if let Some(tasks) = &self.tasks {
                tasks.complete(&mut trace);
            }
            let id = source.id(number).unwrap_or(&own_id);
            let row = Row { number, id, group, latency_ms: trace.usage.duration_ms };
            out.setting.append_value(trace.setting.name());
            if let Some(Failed { class, message }) = &trace.failed {
                let colon = if message.is_empty() { "" } else { ": " };
                let message = format!("the run could not be made: {class}{colon}{message}");
                out.push_failed(row, &message, [])?;
                continue;
            }
            let scored = trace_scorer.score(&trace);
            let value = |place: &Option<usize>| scored.scores.get((*place)?).copied()??.ok();
            out.push(row, places.iter().map(value));
        }
        Ok(())
    }

    /// The metrics, if all of them look at calls alone. Rows with nothing else are then scored as they are
    /// in the columns, which is many times as fast as making traces of them.
    fn metrics_of_calls(&self, plan: &Plan) -> Option<Vec<&CallMetric>> {
        let is_own = |metric: &CallMetric| {
            matches!(metric, CallMetric::Exact | CallMetric::Alignment | CallMetric::F1)
        };
        let of =
            |id: &MetricId| self.peers.iter().find(|metric| !is_own(metric) && metric.id() == *id);
        if self.tasks.is_some() {
            return None;
        }
        plan.metrics.iter().map(|metric| of(&metric.id)).collect()
    }
}

/// A mistake of one row.
type Read = Result<Trace, String>;

/// The columns that traces are read from.
enum Source<'b> {
    Documents { ids: Option<Text<'b>>, traces: Text<'b> },
    Columns(Box<TraceColumns<'b>>),
}

struct TraceColumns<'b> {
    ids: Text<'b>,
    tasks: Option<Text<'b>>,
    settings: Option<Text<'b>>,
    calls: Calls<'b>,
    expected_calls: Option<Calls<'b>>,
    expect: Option<Text<'b>>,
    output: Option<Text<'b>>,
    state: Option<Text<'b>>,
    passed: Option<Truth<'b>>,
    score: Option<Number<'b>>,
    tokens: [Option<Number<'b>>; 4],
    duration_ms: Option<Number<'b>>,
    cost: Option<Number<'b>>,
    stopped: Option<Text<'b>>,
    failed: Option<Text<'b>>,
}

impl<'b> Source<'b> {
    fn of(columns: &Columns<'b>) -> Result<Source<'b>, Error> {
        if columns.find("trace").is_some() {
            let ids = columns.text("id")?;
            return Ok(Source::Documents { ids, traces: columns.full_text("trace")? });
        }
        let calls = Calls::of("calls", columns.need("calls", CALLS)?)?;
        let calls = calls.ok_or_else(|| Error::Null { column: "calls".to_owned(), row: 0 })?;
        let expected = columns.find("expected_calls");
        let expected = expected.map(|array| Calls::of("expected_calls", array)).transpose()?;
        Ok(Source::Columns(Box::new(TraceColumns {
            ids: columns.full_text("id")?,
            tasks: columns.text("task")?,
            settings: columns.text("setting")?,
            calls,
            expected_calls: expected.flatten(),
            expect: columns.text("expect")?,
            output: columns.text("output")?,
            state: columns.text("state")?,
            passed: columns.truth("passed")?,
            score: columns.number("score")?,
            tokens: [
                columns.number("input_tokens")?,
                columns.number("output_tokens")?,
                columns.number("cached_tokens")?,
                columns.number("reasoning_tokens")?,
            ],
            duration_ms: columns.number("duration_ms")?,
            cost: columns.number("cost")?,
            stopped: columns.text("stopped")?,
            failed: columns.text("failed")?,
        })))
    }

    /// The columns, unless rows are documents.
    fn columns(&self) -> Option<&TraceColumns<'b>> {
        match self {
            Source::Columns(columns) => Some(columns),
            Source::Documents { .. } => None,
        }
    }

    /// The id of a row, if it has a column for it.
    fn id(&self, row: usize) -> Option<&str> {
        match self {
            Source::Documents { ids, .. } => ids.as_ref().and_then(|ids| ids.get(row)),
            Source::Columns(columns) => columns.ids.get(row),
        }
    }

    fn read(&self, row: usize, known: &Expectations) -> Result<Read, Error> {
        match self {
            Source::Documents { traces, .. } => {
                let text = traces.get(row).unwrap_or_default();
                Ok(Trace::parse(text).map_err(|error| format!("trace: {error}")))
            }
            Source::Columns(columns) => columns.read(row, known),
        }
    }
}

impl TraceColumns<'_> {
    /// Reads the calls of a row as they are, unless it has more that matters or one of them needs a closer
    /// look.
    fn plain_calls<'t>(
        &'t self,
        row: usize,
        called: &mut Vec<Call<'t>>,
        expected: &mut Vec<Call<'t>>,
    ) -> Option<()> {
        let more = [&self.settings, &self.expect, &self.state, &self.failed];
        if more.into_iter().any(|column| at(column, row).is_some()) {
            return None;
        }
        self.calls.plain(row, called)?;
        self.expected_calls.as_ref()?.plain(row, expected)
    }

    /// The duration of a row; data frames write a missing number as NaN.
    fn duration_ms(&self, row: usize) -> Option<f64> {
        let column = self.duration_ms.as_ref()?;
        column.get(row).filter(|number| number.is_finite())
    }

    fn read(&self, row: usize, known: &Expectations) -> Result<Read, Error> {
        let calls = self.calls.made(row)?;
        let expect = match self.expectation(row, known)? {
            Ok(expect) => expect,
            Err(message) => return Ok(Err(message)),
        };
        Ok(self.rest(row, calls, expect))
    }

    fn rest(&self, row: usize, calls: Vec<CallMade>, expect: Option<Arc<Expectation>>) -> Read {
        let text = |column: &Option<Text<'_>>| {
            column.as_ref().and_then(|column| column.get(row)).map(str::to_owned)
        };
        // Data frames write a missing number as NaN.
        let number = |column: &Option<Number<'_>>| {
            column.as_ref().and_then(|column| column.get(row)).filter(|number| number.is_finite())
        };
        let count =
            |column: &Option<Number<'_>>| column.as_ref().and_then(|column| column.count(row));
        let setting = match self.settings.as_ref().and_then(|column| column.get(row)) {
            None => Setting::default(),
            Some(name) => [Setting::WithTools, Setting::WithoutTools, Setting::Distractors]
                .into_iter()
                .find(|setting| setting.name() == name)
                .ok_or_else(|| {
                    format!("setting {name:?} should be with_tools, without_tools or distractors")
                })?,
        };
        let state = match self.state.as_ref().and_then(|column| column.get(row)) {
            None => None,
            Some(json) => Some(
                serde_json::from_str::<Value>(json)
                    .map_err(|error| format!("state is not JSON: {error}"))?,
            ),
        };
        let passed = self.passed.as_ref().and_then(|column| column.get(row));
        let outcome = Outcome { score: number(&self.score), passed };
        let id = text(&self.tasks).or_else(|| self.ids.get(row).map(str::to_owned));
        let [input_tokens, output_tokens, cached_tokens, reasoning_tokens] =
            [0, 1, 2, 3].map(|place| count(&self.tokens[place]));
        Ok(Trace {
            id: id.unwrap_or_default(),
            run: 1,
            setting,
            calls,
            output: text(&self.output),
            state,
            outcome: (outcome != Outcome::default()).then_some(outcome),
            usage: Usage {
                input_tokens,
                output_tokens,
                cached_tokens,
                reasoning_tokens,
                duration_ms: number(&self.duration_ms),
                cost: number(&self.cost),
            },
            stopped: text(&self.stopped),
            failed: text(&self.failed).map(|class| Failed { class, message: String::new() }),
            expect,
            ..Trace::default()
        })
    }

    /// The expectation of a row, from `expect` or from `expected_calls`.
    fn expectation(
        &self,
        row: usize,
        known: &Expectations,
    ) -> Result<Result<Option<Arc<Expectation>>, String>, Error> {
        let stated = self.expect.as_ref().and_then(|column| column.get(row));
        let calls = self.expected_calls.as_ref();
        let calls = calls.and_then(|calls| Some((calls, calls.lists.range(row)?)));
        match (stated, calls) {
            (None, None) => Ok(Ok(None)),
            (Some(_), Some(_)) => Ok(Err("give `expect` or `expected_calls`, not both".to_owned())),
            (Some(text), None) => {
                let key = [b"e", text.as_bytes()].concat();
                Ok(cached(known, key, || Ok(text.to_owned())))
            }
            (None, Some((calls, range))) => {
                let key = calls.key(row, range.clone())?;
                Ok(cached(known, key, || calls.expectation(range)))
            }
        }
    }
}

/// An expectation that an earlier row had, or this text read as one.
fn cached(
    known: &Expectations,
    key: Vec<u8>,
    text: impl FnOnce() -> Result<String, String>,
) -> Result<Option<Arc<Expectation>>, String> {
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(found) = known.get(&key) {
        return Ok(Some(Arc::clone(found)));
    }
    let read = Expectation::parse(&text()?).map_err(|error| error.within("expect").to_string())?;
    let read = Arc::new(read);
    if known.len() >= MAX_EXPECTATIONS {
        known.clear();
    }
    known.insert(key, Arc::clone(&read));
    Ok(Some(read))
}

/// A column of lists of calls.
struct Calls<'b> {
    column: &'static str,
    lists: Lists<'b>,
    names: Text<'b>,
    arguments: Option<Text<'b>>,
    servers: Option<Text<'b>>,
    results: Option<Text<'b>>,
    errors: Option<Text<'b>>,
}

impl<'b> Calls<'b> {
    fn of(
        column: &'static str,
        array: &'b arrow_array::ArrayRef,
    ) -> Result<Option<Calls<'b>>, Error> {
        let Some(lists) = Lists::of(column, array, CALLS)? else { return Ok(None) };
        let fields = Fields::of(&format!("{column}[]"), lists.values, CALLS)?;
        Ok(Some(Calls {
            column,
            names: fields.need_text(Kind::Traces, "name")?,
            arguments: fields.text("arguments")?,
            servers: fields.text("server")?,
            results: fields.text("result")?,
            errors: fields.text("error")?,
            lists,
        }))
    }

    fn name(&self, row: usize, place: usize) -> Result<&str, Error> {
        let column = || format!("{}[].name", self.column);
        self.names.get(place).ok_or_else(|| Error::Null { column: column(), row })
    }

    /// Replaces `calls` by those of a row, if each has a name and an object of arguments, and no server.
    fn plain<'t>(&'t self, row: usize, calls: &mut Vec<Call<'t>>) -> Option<()> {
        calls.clear();
        for place in self.lists.range(row)? {
            if at(&self.servers, place).is_some() {
                return None;
            }
            let mut reader = Reader::new(at(&self.arguments, place)?);
            let arguments = calls::Arguments::read(&mut reader).ok()?;
            reader.end().ok()?;
            calls.push(Call::new(self.names.get(place)?, arguments));
        }
        Some(())
    }

    /// The calls that a row made.
    fn made(&self, row: usize) -> Result<Vec<CallMade>, Error> {
        let null = || Error::Null { column: self.column.to_owned(), row };
        let range = self.lists.range(row).ok_or_else(null)?;
        let mut calls = Vec::with_capacity(range.len());
        for place in range {
            let mut call = CallMade::named(self.name(row, place)?);
            if let Some(server) = at(&self.servers, place) {
                call.server = Some(server.to_owned());
            }
            if let Some(arguments) = at(&self.arguments, place) {
                call.arguments = Arguments::written(arguments);
            }
            call.result = at(&self.results, place).map(|text| {
                serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
            });
            call.error = at(&self.errors, place)
                .map(|text| CallError { class: "error".to_owned(), message: text.to_owned() });
            calls.push(call);
        }
        Ok(calls)
    }

    /// Bytes that are different for different calls.
    fn key(&self, row: usize, range: Range<usize>) -> Result<Vec<u8>, Error> {
        let mut key = b"c".to_vec();
        for place in range {
            let name = Some(self.name(row, place)?);
            for text in [name, at(&self.arguments, place), at(&self.servers, place)] {
                let length = text.map_or(u64::MAX, |text| text.len() as u64);
                key.extend(length.to_le_bytes());
                key.extend(text.unwrap_or_default().as_bytes());
            }
        }
        Ok(key)
    }

    /// The calls as an expectation of Karat's own format.
    fn expectation(&self, range: Range<usize>) -> Result<String, String> {
        let quoted = |text: &str| Value::from(text).to_string();
        let mut calls = Vec::with_capacity(range.len());
        for (number, place) in range.enumerate() {
            let name = self.names.get(place).unwrap_or_default();
            let mut call = format!("{{\"name\":{}", quoted(name));
            if let Some(server) = at(&self.servers, place) {
                call.push_str(&format!(",\"server\":{}", quoted(server)));
            }
            if let Some(arguments) = at(&self.arguments, place) {
                // As it is written: a parsed value would lose the order of keys and the kinds of numbers.
                serde_json::from_str::<IgnoredAny>(arguments).map_err(|error| {
                    format!("expected_calls[{number}].arguments is not JSON: {error}")
                })?;
                call.push_str(&format!(",\"arguments\":{arguments}"));
            }
            call.push('}');
            calls.push(call);
        }
        Ok(format!("{{\"calls\":[{}]}}", calls.join(",")))
    }
}

fn at<'t>(column: &'t Option<Text<'_>>, place: usize) -> Option<&'t str> {
    column.as_ref().and_then(|column| column.get(place))
}
