//! Partial results: sums of scored rows that merge exactly.

use std::collections::{BTreeSet, HashMap};

use arrow_array::RecordBatch;
use hdrhistogram::Histogram;
use karat_core::partition::Partition;
use karat_core::report::Report;
use karat_io::text::{clip, printable};

use crate::bytes::{Reader, Writer};
use crate::columns::{Columns, Number, Text, Truth};
use crate::options::Plan;
use crate::schema::{self, check_version};
use crate::totals::{Sum, Total};
use crate::{Error, Kind, Options, report};

/// The version that must have made all partial results of a report.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The longest time in the histogram, in microseconds: a day.
const MAX_MICROS: u64 = 86_400_000_000;
const MAX_SHOWN: usize = 200;

/// The sums of scored rows: counts, exact sums by metric and group, times, and counted scores.
///
/// Partial results of any division of the rows, merged in any order, are equal and give the same
/// report. Memory grows with the number of groups (and, for verdicts, of distinct scores), both bounded
/// by [`Options`], and not with the number of rows. After an error the partial result must not be used
/// further: it may hold some rows of the batch.
#[derive(Clone, Debug)]
pub struct Partial {
    pub(crate) plan: Plan,
    /// The parts whose rows are in it; none if the rows were not divided by id.
    parts: Option<(u32, BTreeSet<Partition>)>,
    pub(crate) rows: u64,
    pub(crate) failed: u64,
    /// The failed row with the smallest id, and its message.
    pub(crate) failure: Option<(String, String)>,
    /// Traces without tools, which are in no mean.
    pub(crate) without_tools: u64,
    /// Rows that have a group.
    pub(crate) grouped: u64,
    /// One for each metric of the plan.
    pub(crate) totals: Vec<Total>,
    /// The number of each group.
    groups: HashMap<String, usize>,
    /// The sums of the first group, metric by metric, then those of the second.
    sums: Vec<Sum>,
    pub(crate) times: Times,
    pub(crate) scores: Scores,
}

/// Times of rows.
#[derive(Clone, Debug, Default)]
pub(crate) struct Times {
    histogram: Option<Histogram<u64>>,
    pub(crate) max_ms: f64,
}

/// Scores of verdicts, counted.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Scores {
    /// By the bits of the score: the attacks and the benign entries that have it.
    pub(crate) counts: HashMap<u64, (u64, u64)>,
    /// True if there were more distinct scores than are counted; none is kept then.
    pub(crate) too_many: bool,
    /// Verdicts with a score, and without.
    pub(crate) with: u64,
    pub(crate) without: u64,
}

impl Partial {
    /// An empty partial result.
    ///
    /// # Errors
    /// If the options are not valid.
    pub fn new(kind: Kind, options: &Options) -> Result<Partial, Error> {
        let plan = Plan::new(kind, options.clone())?;
        Ok(Partial {
            totals: vec![Total::default(); plan.metrics.len()],
            plan,
            parts: None,
            rows: 0,
            failed: 0,
            failure: None,
            without_tools: 0,
            grouped: 0,
            groups: HashMap::new(),
            sums: Vec::new(),
            times: Times::default(),
            scores: Scores::default(),
        })
    }

    /// An empty partial result of one part of the rows, divided by id as `--partition` does: rows of
    /// other parts are refused, and so are reports of fewer or more parts than there are.
    ///
    /// # Errors
    /// If the options are not valid.
    pub fn of_part(kind: Kind, options: &Options, part: Partition) -> Result<Partial, Error> {
        let parts = Some((part.parts(), BTreeSet::from([part])));
        Ok(Partial { parts, ..Partial::new(kind, options)? })
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

    /// The number of rows, those that failed included.
    #[must_use]
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// Adds scored rows, as [`Scorer::score`](crate::Scorer::score) returned them.
    ///
    /// # Errors
    /// If the columns are not those of scored rows, a row belongs to another part, or there are too many
    /// groups.
    pub fn add(&mut self, scored: &RecordBatch) -> Result<(), Error> {
        check_version(scored.schema_ref(), schema::scored_name(self.plan.kind))?;
        let columns = Columns::of(self.plan.kind, scored);
        let rows = Scored::of(&columns, &self.plan)?;
        let groups = self.number_groups(&rows, scored.num_rows())?;
        for (row, group) in groups.iter().enumerate() {
            self.note(row, &rows);
            if rows.is_scored(row) {
                self.grouped += u64::from(group.is_some());
            }
        }
        let stride = self.plan.metrics.len();
        for (place, values) in rows.metrics.iter().enumerate() {
            let total = &mut self.totals[place];
            for (row, group) in groups.iter().enumerate() {
                let value = values.get(row).filter(|value| value.is_finite());
                match (value, rows.carries(place, row)) {
                    (Some(value), true) => {
                        // -0 is 0: which of them is the smallest must not depend on the order.
                        let value = value + 0.0;
                        total.note(value);
                        match group {
                            Some(group) => self.sums[group * stride + place].add(value),
                            None => total.add_alone(value),
                        }
                    }
                    (None, true) if !self.plan.metrics[place].is_optional => total.left_out += 1,
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// The number of each row's group, new groups included.
    fn number_groups(
        &mut self,
        rows: &Scored<'_>,
        count: usize,
    ) -> Result<Vec<Option<usize>>, Error> {
        let part = self.parts.as_ref().filter(|(_, parts)| parts.len() == 1);
        let part = part.and_then(|(_, parts)| parts.first().copied());
        let mut numbers = Vec::with_capacity(count);
        for row in 0..count {
            let id = rows.ids.get(row).unwrap_or_default();
            if let Some(part) = part.filter(|part| !part.holds(id)) {
                let id = printable(&clip(id, MAX_SHOWN)).into_owned();
                return Err(Error::ForeignRow { row, id, part: part.to_string() });
            }
            numbers.push(match rows.groups.get(row) {
                None => None,
                Some(group) => Some(self.group(group)?),
            });
        }
        Ok(numbers)
    }

    fn group(&mut self, name: &str) -> Result<usize, Error> {
        if let Some(number) = self.groups.get(name) {
            return Ok(*number);
        }
        let (number, limit) = (self.groups.len(), self.plan.options.max_groups);
        if number >= limit {
            return Err(Error::TooManyGroups { limit });
        }
        self.groups.insert(name.to_owned(), number);
        self.sums.resize((number + 1) * self.plan.metrics.len(), Sum::default());
        Ok(number)
    }

    /// Everything of a row but its metrics.
    fn note(&mut self, row: usize, rows: &Scored<'_>) {
        self.rows += 1;
        if let Some(message) = rows.errors.get(row) {
            self.failed += 1;
            let id = rows.ids.get(row).unwrap_or_default();
            self.fail(printable(&clip(id, MAX_SHOWN)).into_owned(), message.to_owned());
        } else if !rows.is_scored(row) {
            self.without_tools += 1;
        }
        self.times.add(rows.latencies.get(row));
        if let Some(malicious) = rows.malicious(row) {
            let has_verdict = rows.has_verdict(row);
            match rows.scores.as_ref().and_then(|scores| scores.get(row)) {
                Some(score) if score.is_finite() => {
                    self.scores.add(score, malicious, self.plan.options.max_scores);
                }
                _ => self.scores.without += u64::from(has_verdict),
            }
        }
    }

    fn fail(&mut self, id: String, message: String) {
        let failure = (id, message);
        if self.failure.as_ref().is_none_or(|first| failure < *first) {
            self.failure = Some(failure);
        }
    }

    /// Adds another partial result.
    ///
    /// # Errors
    /// If it is of another kind or other settings, has a part that is in this one too, or there are too
    /// many groups.
    pub fn merge(&mut self, other: Partial) -> Result<(), Error> {
        self.check_same(&other)?;
        match (&mut self.parts, other.parts) {
            (None, None) => {}
            (Some((of, parts)), Some((other_of, other_parts))) => {
                if *of != other_of {
                    let (left, right) = (of.to_string(), other_of.to_string());
                    return Err(Error::Foreign { what: "the number of parts", left, right });
                }
                if let Some(twice) = parts.intersection(&other_parts).next() {
                    return Err(Error::DuplicatePart { part: twice.to_string() });
                }
                parts.extend(other_parts);
            }
            (own, _) => {
                let (with, without) = ("rows of a part".to_owned(), "rows of no part".to_owned());
                let (left, right) = if own.is_some() { (with, without) } else { (without, with) };
                return Err(Error::Foreign { what: "their division", left, right });
            }
        }
        let stride = self.plan.metrics.len();
        let mut names: Vec<(&String, &usize)> = other.groups.iter().collect();
        // Room is made in one order, so that a failure is the same whichever it is.
        names.sort_unstable();
        for (name, number) in names {
            let own = self.group(name)?;
            let sums = &other.sums[number * stride..(number + 1) * stride];
            for (sum, more) in self.sums[own * stride..].iter_mut().zip(sums) {
                sum.merge(more);
            }
        }
        for (total, more) in self.totals.iter_mut().zip(&other.totals) {
            total.merge(more);
        }
        self.rows += other.rows;
        self.failed += other.failed;
        self.without_tools += other.without_tools;
        self.grouped += other.grouped;
        if let Some((id, message)) = other.failure {
            self.fail(id, message);
        }
        self.times.merge(&other.times);
        self.scores.merge(&other.scores, self.plan.options.max_scores);
        Ok(())
    }

    fn check_same(&self, other: &Partial) -> Result<(), Error> {
        if self.plan.kind != other.plan.kind {
            let (left, right) = (self.plan.kind.to_string(), other.plan.kind.to_string());
            return Err(Error::Foreign { what: "the kind of rows", left, right });
        }
        if self.plan.options != other.plan.options {
            let (left, right) = differing(&self.plan.options, &other.plan.options);
            return Err(Error::Foreign { what: "their options", left, right });
        }
        Ok(())
    }

    /// The report over all rows.
    ///
    /// # Errors
    /// If parts are missing, too many rows failed, or no metric has a value.
    pub fn report(self) -> Result<Report, Error> {
        if let Some((of, parts)) = &self.parts {
            let present: BTreeSet<u32> = parts.iter().map(|part| part.number()).collect();
            let missing: Vec<u32> = (1..=*of).filter(|part| !present.contains(part)).collect();
            if let Some(first) = missing.first() {
                let first = format!("hash:{first}/{of}");
                return Err(Error::MissingParts { of: *of, missing: missing.len(), first });
            }
        }
        report::report(&self)
    }

    /// The sums of the groups that have values of this metric, in the order of the groups' names.
    pub(crate) fn group_sums(&self, order: &[usize], place: usize) -> Vec<&Sum> {
        let stride = self.plan.metrics.len();
        let sums = order.iter().map(|group| &self.sums[group * stride + place]);
        sums.filter(|sum| sum.n > 0).collect()
    }

    /// The sums of one group.
    pub(crate) fn sums_of(&self, group: usize) -> &[Sum] {
        let stride = self.plan.metrics.len();
        &self.sums[group * stride..(group + 1) * stride]
    }

    /// The numbers of the groups, in the order of their names.
    pub(crate) fn group_order(&self) -> Vec<usize> {
        self.names_in_order().into_iter().map(|(_, number)| number).collect()
    }

    fn names_in_order(&self) -> Vec<(&str, usize)> {
        let mut names: Vec<(&str, usize)> =
            self.groups.iter().map(|(name, number)| (name.as_str(), *number)).collect();
        names.sort_unstable();
        names
    }

    /// The partial result as bytes, the same for equal ones.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.text(VERSION);
        out.text(self.plan.kind.name());
        // Nothing in the options can fail to be written: they are texts and finite numbers.
        out.text(&serde_json::to_string(&self.plan.options).unwrap_or_default());
        match &self.parts {
            None => out.count(0),
            Some((of, parts)) => {
                out.count(u64::from(*of));
                out.count(parts.len() as u64);
                parts.iter().for_each(|part| out.count(u64::from(part.number())));
            }
        }
        for count in [self.rows, self.failed, self.without_tools, self.grouped] {
            out.count(count);
        }
        let (id, message) = self.failure.clone().unwrap_or_default();
        out.text(&id);
        out.text(&message);
        self.totals.iter().for_each(|total| total.write(&mut out));
        out.count(self.groups.len() as u64);
        for (name, number) in self.names_in_order() {
            out.text(name);
            self.sums_of(number).iter().for_each(|sum| sum.write(&mut out));
        }
        self.times.write(&mut out);
        self.scores.write(&mut out);
        out.finish()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote. Merging refuses it if its rows or settings are
    /// others.
    ///
    /// # Errors
    /// If it was damaged, or made by another version.
    pub fn from_bytes(bytes: &[u8]) -> Result<Partial, Error> {
        let mut from = Reader::new(bytes)?;
        let version = from.text()?;
        if version != VERSION {
            let (found, expected) = (format!("karat {version}"), format!("karat {VERSION}"));
            return Err(Error::PartialVersion { found, expected });
        }
        let kind: Kind = from.text()?.parse()?;
        let options: Options = serde_json::from_str(from.text()?)
            .map_err(|error| Error::Damaged(format!("its options: {error}")))?;
        let mut partial = Partial::new(kind, &options)?;
        let of = u32::try_from(from.count()?).map_err(|_| from.damaged("a part"))?;
        if of > 0 {
            let mut parts = BTreeSet::new();
            for _ in 0..from.length(1)? {
                let part = format!("hash:{}/{of}", from.count()?);
                parts.insert(part.parse().map_err(|_| from.damaged("a part"))?);
            }
            // Without one, nothing has checked how many there are.
            if parts.is_empty() {
                return Err(from.damaged("a part"));
            }
            partial.parts = Some((of, parts));
        }
        partial.rows = from.rows()?;
        partial.failed = from.rows()?;
        partial.without_tools = from.rows()?;
        partial.grouped = from.rows()?;
        let (id, message) = (from.text()?.to_owned(), from.text()?.to_owned());
        partial.failure = (partial.failed > 0).then_some((id, message));
        for total in &mut partial.totals {
            *total = Total::read(&mut from)?;
        }
        for _ in 0..from.length(1 + partial.plan.metrics.len())? {
            let number = partial.group(from.text()?)?;
            for place in 0..partial.plan.metrics.len() {
                let place = number * partial.plan.metrics.len() + place;
                partial.sums[place] = Sum::read(&mut from)?;
            }
        }
        partial.times = Times::read(&mut from)?;
        partial.scores = Scores::read(&mut from)?;
        from.end()?;
        Ok(partial)
    }
}

/// The first option that differs, on both sides.
fn differing(left: &Options, right: &Options) -> (String, String) {
    let fields = |options: &Options| serde_json::to_value(options).unwrap_or_default();
    let (left, right) = (fields(left), fields(right));
    let names = left.as_object().into_iter().flat_map(|fields| fields.keys());
    let name = names.into_iter().find(|name| left.get(name.as_str()) != right.get(name.as_str()));
    let name = name.map(String::as_str).unwrap_or_default();
    let shown = |value: Option<&serde_json::Value>| {
        let text = value.map(ToString::to_string).unwrap_or_default();
        format!("{name} = {}", printable(&clip(&text, MAX_SHOWN)))
    };
    (shown(left.get(name)), shown(right.get(name)))
}

/// The columns of scored rows.
struct Scored<'b> {
    kind: Kind,
    ids: Text<'b>,
    groups: Text<'b>,
    errors: Text<'b>,
    latencies: Number<'b>,
    settings: Option<Text<'b>>,
    malicious: Option<Truth<'b>>,
    hard_negative: Option<Truth<'b>>,
    scores: Option<Number<'b>>,
    metrics: Vec<Number<'b>>,
}

impl<'b> Scored<'b> {
    fn of(columns: &Columns<'b>, plan: &Plan) -> Result<Scored<'b>, Error> {
        let text = |name: &str| Text::of(name, columns.need(name, "text")?);
        let number = |name: &str| Number::of(name, columns.need(name, "a number")?);
        let truth = |name: &str| Truth::of(name, columns.need(name, "bool")?);
        let is_verdicts = plan.kind == Kind::Verdicts;
        Ok(Scored {
            kind: plan.kind,
            ids: columns.full_text("id")?,
            groups: text("group")?,
            errors: text("error")?,
            latencies: number("latency_ms")?,
            settings: (plan.kind == Kind::Traces).then(|| text("setting")).transpose()?,
            malicious: is_verdicts.then(|| truth("malicious")).transpose()?,
            hard_negative: is_verdicts.then(|| truth("hard_negative")).transpose()?,
            scores: is_verdicts.then(|| number("score")).transpose()?,
            metrics: plan
                .metrics
                .iter()
                .map(|metric| number(&metric.id))
                .collect::<Result<_, _>>()?,
        })
    }

    /// True if the row has scores that count: not for a run that failed, nor for one without tools.
    fn is_scored(&self, row: usize) -> bool {
        match &self.settings {
            None => true,
            Some(settings) => {
                self.errors.get(row).is_none() && settings.get(row) != Some("without_tools")
            }
        }
    }

    fn malicious(&self, row: usize) -> Option<bool> {
        self.malicious.as_ref().and_then(|column| column.get(row))
    }

    /// True if a verdict flags or passes: coverage is the last metric.
    fn has_verdict(&self, row: usize) -> bool {
        self.metrics.last().and_then(|coverage| coverage.get(row)) == Some(1.0)
    }

    /// True if a metric applies to a row; it may still be undefined.
    fn carries(&self, place: usize, row: usize) -> bool {
        match self.kind {
            Kind::Traces => self.is_scored(row),
            Kind::Rankings => true,
            Kind::Verdicts => {
                let Some(malicious) = self.malicious(row) else { return false };
                let hard = self.hard_negative.as_ref().and_then(|column| column.get(row));
                // In the order of karat_detection::score::RATES.
                match place {
                    0 => malicious,
                    2 => hard == Some(true),
                    4 => true,
                    _ => !malicious,
                }
            }
        }
    }
}

impl Times {
    fn add(&mut self, ms: Option<f64>) {
        let Some(ms) = ms.filter(|ms| ms.is_finite() && *ms >= 0.0) else { return };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and saturating is what is wanted"
        )]
        let micros = (ms * 1e3).round() as u64;
        self.record(micros.min(MAX_MICROS), 1);
        self.max_ms = self.max_ms.max(ms);
    }

    fn record(&mut self, micros: u64, count: u64) {
        if self.histogram.is_none() {
            self.histogram = Histogram::new_with_bounds(1, MAX_MICROS, 3).ok();
        }
        if let Some(histogram) = &mut self.histogram {
            histogram.saturating_record_n(micros, count);
        }
    }

    fn merge(&mut self, other: &Times) {
        for (micros, count) in other.recorded() {
            self.record(micros, count);
        }
        self.max_ms = self.max_ms.max(other.max_ms);
    }

    /// The times in microseconds and how often each occurs; three digits of each are kept.
    pub(crate) fn recorded(&self) -> impl Iterator<Item = (u64, u64)> {
        let values = self.histogram.iter().flat_map(|histogram| histogram.iter_recorded());
        values.map(|value| (value.value_iterated_to(), value.count_at_value()))
    }

    /// The number of times, and the quantiles in milliseconds.
    pub(crate) fn quantiles(&self, shares: [f64; 3]) -> Option<(u64, [f64; 3])> {
        let histogram = self.histogram.as_ref().filter(|histogram| !histogram.is_empty())?;
        let at = |share: f64| histogram.value_at_quantile(share) as f64 / 1e3;
        Some((histogram.len(), shares.map(at)))
    }

    fn write(&self, out: &mut Writer) {
        out.number(self.max_ms);
        out.count(self.recorded().count() as u64);
        for (micros, count) in self.recorded() {
            out.count(micros);
            out.count(count);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Times, Error> {
        let mut times = Times { histogram: None, max_ms: from.number()? };
        if !times.max_ms.is_finite() {
            return Err(from.damaged("a time"));
        }
        for _ in 0..from.length(2)? {
            let (micros, count) = (from.count()?, from.rows()?);
            times.record(micros, count);
        }
        Ok(times)
    }
}

impl Scores {
    fn add(&mut self, score: f64, malicious: bool, limit: usize) {
        self.with += 1;
        // -0 and 0 are one score.
        let (attacks, benign) = if malicious { (1, 0) } else { (0, 1) };
        self.count((score + 0.0).to_bits(), (attacks, benign), limit);
    }

    fn count(&mut self, score: u64, (attacks, benign): (u64, u64), limit: usize) {
        if self.too_many {
            return;
        }
        let known = self.counts.entry(score).or_default();
        known.0 += attacks;
        known.1 += benign;
        if self.counts.len() > limit {
            self.too_many = true;
            self.counts = HashMap::new();
        }
    }

    fn merge(&mut self, other: &Scores, limit: usize) {
        self.with += other.with;
        self.without += other.without;
        if other.too_many {
            self.too_many = true;
            self.counts = HashMap::new();
        }
        for (score, counts) in &other.counts {
            self.count(*score, *counts, limit);
        }
    }

    /// The scores from the highest down, each with its attacks and benign entries.
    pub(crate) fn descending(&self) -> Vec<(f64, u64, u64)> {
        let each = self.counts.iter();
        let mut all: Vec<(f64, u64, u64)> = each
            .map(|(bits, (attacks, benign))| (f64::from_bits(*bits), *attacks, *benign))
            .collect();
        all.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        all
    }

    fn write(&self, out: &mut Writer) {
        out.count(u64::from(self.too_many));
        out.count(self.with);
        out.count(self.without);
        out.count(self.counts.len() as u64);
        for (score, attacks, benign) in self.descending() {
            out.number(score);
            out.count(attacks);
            out.count(benign);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Scores, Error> {
        let too_many = from.count()? == 1;
        let mut scores = Scores { too_many, ..Scores::default() };
        scores.with = from.rows()?;
        scores.without = from.rows()?;
        for _ in 0..from.length(10)? {
            let (score, counts) = (from.number()?, (from.rows()?, from.rows()?));
            if !score.is_finite() {
                return Err(from.damaged("a score"));
            }
            scores.counts.insert(score.to_bits(), counts);
        }
        Ok(scores)
    }
}
