//! The condition that a search for the largest load keeps, such as `p99<200ms`.

use serde::Deserialize;

use super::tally::CallStats;
use karat_io::time::Time;

/// The share of errors at which no load holds, unless the condition is about errors.
const MAX_ERRORS: f64 = 0.01;

/// A condition such as `p99<200ms`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(try_from = "String")]
pub struct Condition {
    subject: Subject,
    limit: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Subject {
    Quantile(f64),
    Max,
    ErrorRate,
}

impl Condition {
    /// Parses `p50<20ms`, `p99.9<1s`, `max<2s` or `error_rate<0.5%`.
    ///
    /// # Errors
    /// If it has another form.
    pub fn parse(text: &str) -> Result<Condition, String> {
        let wrong = || format!("{text:?}: write it as p99<200ms, max<1s or error_rate<1%");
        let (subject, limit) = text.split_once('<').ok_or_else(wrong)?;
        let limit = limit.trim_start_matches('=').trim();
        let subject = match subject.trim() {
            "max" => Subject::Max,
            "error_rate" | "errors" => Subject::ErrorRate,
            quantile => {
                let share = quantile.strip_prefix('p').and_then(|share| share.parse::<f64>().ok());
                let share = share.filter(|share| *share > 0.0 && *share < 100.0);
                Subject::Quantile(share.ok_or_else(wrong)? / 100.0)
            }
        };
        let limit = match subject {
            Subject::ErrorRate => match limit.strip_suffix('%') {
                Some(percent) => percent.trim().parse::<f64>().ok().map(|percent| percent / 100.0),
                None => limit.parse::<f64>().ok(),
            },
            _ => limit.parse().ok().map(|Time(time)| time.as_nanos() as f64 / 1e6),
        };
        let limit = limit.filter(|limit| limit.is_finite() && *limit > 0.0).ok_or_else(wrong)?;
        Ok(Condition { subject, limit })
    }

    /// The reason for which it does not hold, if it does not.
    pub(super) fn broken(&self, found: &CallStats) -> Option<String> {
        let errors = found.error_rate()?;
        let value = match self.subject {
            Subject::Quantile(share) => found.times.quantile_ms(share),
            Subject::Max => found.times.max_ms(),
            Subject::ErrorRate => Some(errors),
        };
        if self.subject != Subject::ErrorRate && errors > MAX_ERRORS {
            return Some(format!("{:.1} % errors", errors * 100.0));
        }
        match value {
            Some(value) if value < self.limit => None,
            Some(value) => Some(format!("{self} does not hold: {value:.3}")),
            None => Some("no call was answered".to_owned()),
        }
    }
}

impl TryFrom<String> for Condition {
    type Error = String;

    fn try_from(text: String) -> Result<Condition, String> {
        Condition::parse(&text)
    }
}

impl std::fmt::Display for Condition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.subject {
            Subject::Quantile(share) => write!(f, "p{} < {} ms", share * 100.0, self.limit),
            Subject::Max => write!(f, "max < {} ms", self.limit),
            Subject::ErrorRate => write!(f, "error_rate < {}", self.limit),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_parsed_with_their_units() {
        for (text, shown) in [
            ("p99<200ms", "p99 < 200 ms"),
            ("p99.9 <= 1s", "p99.9 < 1000 ms"),
            ("max<500us", "max < 0.5 ms"),
            ("error_rate<1%", "error_rate < 0.01"),
        ] {
            assert_eq!(Condition::parse(text).map(|read| read.to_string()), Ok(shown.to_owned()));
        }
        for wrong in ["p99", "p99<200", "p0<1ms", "p100<1ms", "q<1ms", "p99<-1ms", "p99<xs", ""] {
            assert!(Condition::parse(wrong).is_err(), "{wrong}");
        }
    }
}
