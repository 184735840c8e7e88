//! Notifications that a call must lead to: progress, log messages, changed lists, updated resources.
//!
//! They are counted from the moment at which the call was sent; for the call of a case, from the start of its
//! setup, since a subscription that is made there may be answered at once.

use std::time::Duration;

use karat_core::expect::{Answer, Matcher, MatcherSpec, one_or_several};
use serde::Deserialize;
use serde::de::Deserializer;
use serde_json::{Value, json};

/// The time that notifications have after the answer, in milliseconds, unless a suite says otherwise.
const WITHIN_MS: u64 = 1_000;
/// The longest such time.
const MAX_WITHIN_MS: u64 = 600_000;
const PREFIX: &str = "notifications/";

/// An expectation of notifications, as a suite has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct NoticeFile {
    method: String,
    count: Option<u64>,
    at_least: Option<u64>,
    at_most: Option<u64>,
    #[serde(default, deserialize_with = "matchers")]
    expect: Vec<MatcherSpec>,
    within_ms: Option<u64>,
}

fn matchers<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<MatcherSpec>, D::Error> {
    one_or_several(from, "a matcher or a list of matchers")
}

/// One or several expectations of notifications.
#[derive(Default)]
pub(super) struct NoticeFiles(pub(super) Vec<NoticeFile>);

impl<'de> Deserialize<'de> for NoticeFiles {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<NoticeFiles, D::Error> {
        one_or_several(from, "an expected notification or a list of them").map(NoticeFiles)
    }
}

/// An expectation of notifications.
#[derive(Debug)]
pub struct Notice {
    method: String,
    at_least: u64,
    at_most: Option<u64>,
    matchers: Vec<Matcher>,
    /// The matchers as they are written, for digests: compiled ones show neither all of themselves nor one order.
    written: String,
    pub(crate) within: Duration,
}

impl NoticeFile {
    /// Checks the expectation.
    ///
    /// # Errors
    /// If it could not fail, or contradicts itself.
    pub(super) fn compile(self) -> Result<Notice, String> {
        let short = self.method.strip_prefix(PREFIX).unwrap_or(&self.method);
        if short.is_empty() {
            return Err("`method` is empty".to_owned());
        }
        let (at_least, at_most) = match (self.count, self.at_least, self.at_most) {
            (Some(count), None, None) => (count, Some(count)),
            (Some(_), ..) => return Err("`count` goes without `at_least` and `at_most`".to_owned()),
            (None, None, Some(most)) => (0, Some(most)),
            (None, least, most) => (least.unwrap_or(1), most),
        };
        if at_most.is_some_and(|most| most < at_least) {
            return Err("`at_most` is less than `at_least`".to_owned());
        }
        if at_least == 0 && at_most.is_none() {
            return Err("`at_least: 0` cannot fail".to_owned());
        }
        let within_ms = self.within_ms.unwrap_or(WITHIN_MS);
        if within_ms > MAX_WITHIN_MS {
            return Err(format!("`within_ms` must be at most {MAX_WITHIN_MS}"));
        }
        let matchers = self.expect.iter().map(MatcherSpec::compile).collect::<Result<_, _>>()?;
        let written = format!("{:?}", self.expect);
        let (method, within) = (format!("{PREFIX}{short}"), Duration::from_millis(within_ms));
        Ok(Notice { method, at_least, at_most, matchers, written, within })
    }
}

impl Notice {
    /// Everything that decides how long notifications are waited for, for the digest of a case's requests.
    pub(crate) fn waiting(&self) -> Value {
        let Notice { method, at_least, at_most, written, within, .. } = self;
        json!([method, at_least, at_most, written, within.as_secs_f64()])
    }

    /// Returns whether nothing that may still come can change the judgement. With a largest number, only time
    /// shows that no more came.
    pub(crate) fn is_settled(&self, seen: &[Value]) -> bool {
        let count = self.count(seen);
        match self.at_most {
            Some(most) => count > most,
            None => count >= self.at_least,
        }
    }

    /// The reason for which the notifications are not the expected ones.
    pub(crate) fn unmet(&self, seen: &[Value]) -> Option<String> {
        let (count, method) = (self.count(seen), &self.method);
        if count >= self.at_least && self.at_most.is_none_or(|most| count <= most) {
            return None;
        }
        let wanted = match (self.at_least, self.at_most) {
            (least, Some(most)) if least == most => format!("{least}"),
            (0, Some(most)) => format!("at most {most}"),
            (least, None) => format!("at least {least}"),
            (least, Some(most)) => format!("{least} to {most}"),
        };
        let of_method = seen.iter().filter(|one| self.is_of(one)).count();
        let others = match self.matchers.is_empty() {
            true => String::new(),
            false => format!(" that match, of {of_method}"),
        };
        let first = self.first_mismatch(seen).map(|why| format!(" (first: {why})"));
        Some(format!(
            "{method}: {count} came{others}, expected {wanted}{}",
            first.unwrap_or_default()
        ))
    }

    fn is_of(&self, notification: &Value) -> bool {
        notification.get("method").and_then(Value::as_str) == Some(self.method.as_str())
    }

    fn mismatch(&self, notification: &Value) -> Option<String> {
        let params = notification.get("params").unwrap_or(&Value::Null);
        let answer = Answer::new(params);
        self.matchers.iter().find_map(|matcher| matcher.check(&answer).err())
    }

    fn first_mismatch(&self, seen: &[Value]) -> Option<String> {
        seen.iter().filter(|one| self.is_of(one)).find_map(|one| self.mismatch(one))
    }

    fn count(&self, seen: &[Value]) -> u64 {
        let of_method = seen.iter().filter(|one| self.is_of(one));
        of_method.filter(|one| self.mismatch(one).is_none()).count() as u64
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn notice(text: &str) -> Result<Notice, String> {
        let file: NoticeFile = serde_json::from_str(text).map_err(|error| error.to_string())?;
        file.compile()
    }

    #[test]
    fn notifications_are_counted_by_method_and_content() {
        let progress =
            |value: u64| json!({"method": "notifications/progress", "params": {"progress": value}});
        let other = json!({"method": "notifications/message", "params": {"level": "info"}});
        let seen = [progress(1), other, progress(2)];
        for (text, holds) in [
            (r#"{"method": "progress"}"#, true),
            (r#"{"method": "notifications/progress", "count": 2}"#, true),
            (r#"{"method": "progress", "count": 1}"#, false),
            (r#"{"method": "progress", "at_least": 3}"#, false),
            (r#"{"method": "progress", "at_most": 1}"#, false),
            (r#"{"method": "resources/updated", "at_most": 0}"#, true),
            (
                r#"{"method": "progress", "count": 1, "expect": {"json": "$.progress", "equals": 2}}"#,
                true,
            ),
            (r#"{"method": "message", "expect": {"json": "$.level", "equals": "error"}}"#, false),
            (r#"{"method": "tools/list_changed"}"#, false),
        ] {
            let unmet = notice(text).unwrap().unmet(&seen);
            assert_eq!(unmet.is_none(), holds, "{text}: {unmet:?}");
        }
        let wrong =
            notice(r#"{"method": "message", "expect": {"json": "$.level", "equals": "error"}}"#);
        assert_eq!(
            wrong.unwrap().unmet(&seen).unwrap(),
            "notifications/message: 0 came that match, of 1, expected at least 1 (first: $.level is \
             \"info\", expected \"error\")"
        );
    }

    #[test]
    fn what_cannot_fail_is_refused() {
        for text in [
            r#"{"method": ""}"#,
            r#"{"method": "progress", "at_least": 0}"#,
            r#"{"method": "progress", "count": 1, "at_most": 2}"#,
            r#"{"method": "progress", "at_least": 3, "at_most": 2}"#,
            r#"{"method": "progress", "within_ms": 600001}"#,
            r#"{"method": "progress", "expect": {"contains": ""}}"#,
            r#"{"method": "progress", "times": 1}"#,
        ] {
            assert!(notice(text).is_err(), "{text}");
        }
    }
}
