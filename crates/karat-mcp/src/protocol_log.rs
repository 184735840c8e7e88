//! Everything that a server sent apart from its answers.
//!
//! Violations of the protocol that no single call shows are counted by kind, with the first example of
//! each, and can be described in a report. Nothing here judges: a server that answers well and breaks
//! the protocol elsewhere passes with warnings.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karat_io::text::clip;
use serde::Serialize;

/// Columns of an example in a warning.
const QUOTED: usize = 200;
/// Kinds of violations in the message of a call without an answer.
const MAX_NAMED: usize = 2;

/// Something that a server should not have sent or done, ordered by how much it says about a call without
/// an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Violation {
    /// An answer to a request that was never sent.
    UnknownId,
    /// An error without an id, so that it cannot be matched to a request.
    WithoutId,
    /// A message beyond the limits of size or depth.
    Oversized,
    /// A message that is not UTF-8.
    NotUtf8,
    /// A message that is JSON but not JSON-RPC.
    Malformed,
    /// A line on stdout, an event or a body that is not JSON.
    Noise,
    /// A message that strict readers of JSON refuse; it was read with replacements.
    Repaired,
    /// A progress notification without a token of a pending call, or whose progress does not grow.
    Progress,
    /// A request of the server that was refused.
    Refused,
    /// A second answer to the same request.
    Repeated,
    /// A batch, in a revision that does not have batches.
    Batch,
    /// A kept-alive connection that the server closed without notice.
    Hangup,
}

impl fmt::Display for Violation {
    /// The action of the server in the past tense, to follow "the server".
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Violation::UnknownId => "answered a request that was never sent",
            Violation::WithoutId => "sent an error without an id",
            Violation::Oversized => "sent a message beyond the limits of size or depth",
            Violation::NotUtf8 => "sent a message that is not UTF-8",
            Violation::Malformed => "sent JSON that is not a JSON-RPC message",
            Violation::Noise => "sent output that is not JSON",
            Violation::Repaired => "sent JSON that strict readers refuse",
            Violation::Progress => "misused progress notifications",
            Violation::Refused => "sent a request that was refused",
            Violation::Repeated => "answered the same request twice",
            Violation::Batch => "sent a batch, which this protocol revision does not have",
            Violation::Hangup => "closed a keep-alive connection without notice",
        })
    }
}

/// The occurrences of one kind of violation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Occurrences {
    /// Their number.
    pub count: u64,
    /// The first one: printable, short and without secrets.
    pub first: String,
    /// The position of the last one among all violations.
    #[serde(skip)]
    last: u64,
}

/// The violations of a server, and its notifications and requests.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ProtocolLog {
    /// The violations by kind.
    pub violations: BTreeMap<Violation, Occurrences>,
    /// Their total number.
    #[serde(skip)]
    total: u64,
    /// Answers that came after their time-out.
    pub late_answers: u64,
    /// All notifications.
    pub notifications: u64,
    /// Notifications that a list has changed.
    pub list_changed: u64,
    /// Progress notifications.
    pub progress: u64,
    /// Log messages.
    pub log_messages: u64,
    /// Requests of the server that a policy answered.
    pub requests_answered: u64,
}

impl ProtocolLog {
    /// The number of violations of this kind.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use serde_json::{Value, json};
    /// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
    /// # struct Echo;
    /// # impl Respond for Echo {
    /// #     async fn call(&self, _: &Context, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(json!({"content": [{"type": "text", "text": arguments["text"]}]}))
    /// #     }
    /// # }
    /// # let tools = ["echo", "other"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    /// # let offer = Offer { name: "echo".to_owned(), tools: tools.to_vec(), ..Offer::default() };
    /// # let (client, server) = tokio::io::duplex(1 << 16);
    /// # let (from_client, mut to_client) = tokio::io::split(server);
    /// # let (read, write) = tokio::io::split(client);
    /// use karat_mcp::{Options, Session, Violation};
    /// use tokio::io::AsyncWriteExt as _;
    ///
    /// // A server that prints a line before it speaks.
    /// to_client.write_all(b"ready\n").await?;
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// let session = Session::over(read, write, None, &Options::default()).await?;
    /// let log = session.protocol_log();
    /// assert_eq!(log.count(Violation::Noise), 1);
    /// assert_eq!(log.first(Violation::Noise), Some("ready"));
    /// assert_eq!(log.count(Violation::UnknownId), 0);
    /// # Ok(()) }
    /// ```
    pub fn count(&self, kind: Violation) -> u64 {
        self.violations.get(&kind).map_or(0, |seen| seen.count)
    }

    /// The first violation of this kind.
    ///
    /// ```
    /// use karat_mcp::{ProtocolLog, Violation};
    ///
    /// assert_eq!(ProtocolLog::default().first(Violation::Noise), None);
    /// ```
    pub fn first(&self, kind: Violation) -> Option<&str> {
        self.violations.get(&kind).map(|seen| seen.first.as_str())
    }

    /// One warning for each kind of violation. Late answers are not among them: their calls report them.
    pub fn warnings(&self) -> Vec<String> {
        let warning = |(kind, seen): (&Violation, &Occurrences)| {
            let detail = match (seen.count, clip(&seen.first, QUOTED)) {
                (1, first) if first.is_empty() => String::new(),
                (1, first) => format!(" ({first})"),
                (count, first) if first.is_empty() => format!(" ({count} times)"),
                (count, first) => format!(" ({count} times; first: {first})"),
            };
            format!("the server {kind}{detail}")
        };
        self.violations.iter().map(warning).collect()
    }

    /// The total number of violations, for [`ProtocolLog::since`].
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// The violations since there were `total`, as the end of a message; empty if there were none.
    pub(crate) fn since(&self, total: u64) -> String {
        let recent = self.violations.iter().filter(|(_, seen)| seen.last > total).take(MAX_NAMED);
        let described: Vec<String> = recent
            .map(|(kind, seen)| match seen.first.as_str() {
                "" => kind.to_string(),
                first => format!("{kind} ({})", clip(first, QUOTED)),
            })
            .collect();
        if described.is_empty() {
            return String::new();
        }
        format!("; it {}", described.join(" and "))
    }

    /// Counts a violation. The example is only needed for the first of its kind.
    pub(crate) fn add(&mut self, kind: Violation, example: Option<&str>) {
        self.total += 1;
        let seen = self.violations.entry(kind).or_insert_with(|| Occurrences {
            first: example.unwrap_or_default().to_owned(),
            ..Occurrences::default()
        });
        seen.count += 1;
        seen.last = self.total;
    }
}

/// The sum of the protocol logs of several sessions, such as a lost one and its successor. Clones share it,
/// so all sessions that start with clones of the same options do.
#[derive(Clone, Debug, Default)]
pub struct ViolationSink(Arc<Mutex<ProtocolLog>>);

impl ViolationSink {
    /// The log so far.
    pub fn log(&self) -> ProtocolLog {
        self.lock().clone()
    }

    /// The number of notifications that a list has changed.
    pub fn list_changes(&self) -> u64 {
        self.lock().list_changed
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, ProtocolLog> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_one_warning_with_its_count_and_its_first_example() {
        let mut log = ProtocolLog::default();
        log.add(Violation::Noise, Some("Listening!"));
        log.add(Violation::Noise, None);
        log.add(Violation::UnknownId, Some("id \"3\""));
        log.add(Violation::Hangup, None);
        log.add(Violation::Hangup, None);
        log.late_answers = 7;
        assert_eq!(
            log.warnings(),
            [
                "the server answered a request that was never sent (id \"3\")",
                "the server sent output that is not JSON (2 times; first: Listening!)",
                "the server closed a keep-alive connection without notice (2 times)",
            ]
        );
    }

    #[test]
    fn a_message_names_recent_violations_only() {
        let mut log = ProtocolLog::default();
        log.add(Violation::UnknownId, Some("99"));
        let before = log.total();
        assert_eq!(log.since(before), "");
        log.add(Violation::Noise, Some("thinking"));
        assert_eq!(log.since(before), "; it sent output that is not JSON (thinking)");
    }
}
