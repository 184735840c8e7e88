//! Values in the order of time, and their changes.
//!
//! A series is one metric of one subject on one dataset, identified by its digest: a value on other
//! data is another series, and a change is always between two values of the same one.

use karat_core::report::{Better, DatasetRef, Interval};
use serde::Serialize;

use crate::model::{Entry, State, Subject, Value};

/// One metric of one subject on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Series<'a> {
    /// The entry of the project.
    #[serde(flatten)]
    pub subject: &'a Subject,
    /// The metric.
    pub metric: &'a str,
    /// The direction of improvement.
    pub better: Better,
    /// The dataset.
    pub dataset: &'a DatasetRef,
    /// The values, the earliest first.
    pub points: Vec<Point<'a>>,
}

/// One value of a series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Point<'a> {
    /// The run.
    pub run: i64,
    /// The start of the run.
    pub started: &'a str,
    /// The commit of the project.
    pub commit: Option<&'a str>,
    /// The branch of the project.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub branch: Option<&'a str>,
    /// The first line of the commit's message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit_subject: Option<&'a str>,
    /// The result of the entry.
    pub state: State,
    /// The value; none if it is undefined.
    pub value: Option<f64>,
    /// The change from the value before.
    pub delta: Option<f64>,
    /// The number of items behind it.
    pub n: i64,
    /// The interval of the value.
    pub interval: Option<&'a Interval>,
    /// The reason for which there is no value.
    pub undefined: Option<&'a str>,
    /// Its place among the entries that the series are made of.
    #[serde(skip)]
    pub place: usize,
}

/// The series of a metric over entries of one subject, in the order of their first values.
pub fn of<'a>(entries: impl IntoIterator<Item = &'a Entry>, metric: &str) -> Vec<Series<'a>> {
    let mut series: Vec<Series<'a>> = Vec::new();
    for (place, entry) in entries.into_iter().enumerate() {
        let (Some(value), Some(dataset)) = (entry.value(metric), &entry.dataset) else { continue };
        let known = series.iter().position(|one| one.dataset.digest == dataset.digest);
        let at = known.unwrap_or_else(|| {
            series.push(Series {
                subject: &entry.subject,
                metric: &value.metric,
                better: value.better,
                dataset,
                points: Vec::new(),
            });
            series.len() - 1
        });
        if let Some(one) = series.get_mut(at) {
            let point = one.next(entry, value, place);
            one.points.push(point);
        }
    }
    series
}

impl<'a> Series<'a> {
    fn next(&self, entry: &'a Entry, value: &'a Value, place: usize) -> Point<'a> {
        let before = self.points.iter().rev().find_map(|point| point.value);
        Point {
            run: entry.run,
            started: &entry.started,
            commit: entry.commit.as_deref(),
            branch: entry.branch.as_deref(),
            commit_subject: entry.commit_subject.as_deref(),
            state: entry.state,
            value: value.value,
            delta: value.value.zip(before).map(|(now, then)| now - then),
            n: value.n,
            interval: value.interval.as_ref(),
            undefined: value.undefined.as_deref(),
            place,
        }
    }

    /// The defined values, in order.
    pub(crate) fn values(&self) -> Vec<f64> {
        self.points.iter().filter_map(|point| point.value).collect()
    }
}
