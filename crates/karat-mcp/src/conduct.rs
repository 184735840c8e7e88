//! What a server did beside answering.
//!
//! Whatever no single call shows is counted here, by kind and with the first example of each, and is
//! told in words that can stand in a report. Nothing here judges: a server that answers well and is
//! untidy beside it passes with a remark.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use karat_io::text::clip;
use serde::Serialize;

/// How much of an example stands in a remark.
const QUOTED: usize = 200;
/// How many kinds stand in the message of a call that has no answer.
const NAMED: usize = 2;

/// Something that a server should not have sent or done; those first that say most about a call without
/// an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Oddity {
    /// An answer to a request that was never sent.
    UnknownId,
    /// An error without an id: nobody can say which request it is about.
    WithoutId,
    /// A message beyond the limits of size or depth.
    Oversized,
    /// A message that is not UTF-8.
    NotUtf8,
    /// A message that is JSON but not JSON-RPC.
    Malformed,
    /// A line on stdout, an event or a body that is not JSON.
    Noise,
    /// A request of the server that was refused.
    Refused,
    /// An answer to a request that was answered already.
    Repeated,
    /// Several messages in one, where the revision knows no batches.
    Batch,
    /// A kept connection that the server closed without saying so.
    Hangup,
}

impl Oddity {
    /// What the server did, in the past tense.
    fn words(self) -> &'static str {
        match self {
            Oddity::UnknownId => "sent an answer to a request that was never sent",
            Oddity::WithoutId => "sent an error without an id",
            Oddity::Oversized => "sent a message beyond the limits of size or depth",
            Oddity::NotUtf8 => "sent a message that is not UTF-8",
            Oddity::Malformed => "sent JSON that is no message",
            Oddity::Noise => "sent output that is no message",
            Oddity::Refused => "sent a request that was refused",
            Oddity::Repeated => "sent a second answer to the same request",
            Oddity::Batch => "sent a batch, which its revision does not know,",
            Oddity::Hangup => "closed a kept connection without a word",
        }
    }
}

/// How often something odd came.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Seen {
    /// How often.
    pub count: u64,
    /// What came first: printable, short and without secrets.
    pub first: String,
    /// The number of the last one among all oddities.
    #[serde(skip)]
    last: u64,
}

/// What a server did beside answering: faults that no single call shows, and what it told and asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conduct {
    /// What should not have come.
    pub odd: BTreeMap<Oddity, Seen>,
    /// All of it.
    #[serde(skip)]
    total: u64,
    /// Answers that came after their time-out.
    pub late_answers: u64,
    /// Notifications in all.
    pub notifications: u64,
    /// Notifications that a list has changed.
    pub list_changed: u64,
    /// Notifications of progress.
    pub progress: u64,
    /// Log messages.
    pub log_messages: u64,
    /// Requests of the server that a policy answered.
    pub requests_answered: u64,
}

impl Conduct {
    /// How often this came.
    pub fn count(&self, kind: Oddity) -> u64 {
        self.odd.get(&kind).map_or(0, |seen| seen.count)
    }

    /// What came first of this kind.
    pub fn first(&self, kind: Oddity) -> Option<&str> {
        self.odd.get(&kind).map(|seen| seen.first.as_str())
    }

    /// One remark for each kind of thing that should not have come. Answers that came too late are not
    /// among them: their calls say so.
    pub fn remarks(&self) -> Vec<String> {
        let remark = |(kind, seen): (&Oddity, &Seen)| {
            let times = match seen.count {
                1 => "once".to_owned(),
                count => format!("{count} times"),
            };
            let example = match seen.first.as_str() {
                "" => String::new(),
                first if seen.count == 1 => format!(": {}", clip(first, QUOTED)),
                first => format!("; the first: {}", clip(first, QUOTED)),
            };
            format!("the server {} {times}{example}", kind.words())
        };
        self.odd.iter().map(remark).collect()
    }

    /// How much of it there is, to be handed to [`Conduct::since`].
    pub(crate) fn total(&self) -> u64 {
        self.total
    }

    /// What came since there was so much of it, as the rest of a message; empty if nothing did.
    pub(crate) fn since(&self, total: u64) -> String {
        let recent = self.odd.iter().filter(|(_, seen)| seen.last > total).take(NAMED);
        let words: Vec<String> = recent
            .map(|(kind, seen)| match seen.first.as_str() {
                "" => kind.words().to_owned(),
                first => format!("{} ({})", kind.words(), clip(first, QUOTED)),
            })
            .collect();
        if words.is_empty() { String::new() } else { format!("; it {}", words.join(" and ")) }
    }

    /// Counts something odd. The example is only needed for the first of its kind.
    pub(crate) fn add(&mut self, kind: Oddity, example: Option<&str>) {
        self.total += 1;
        let seen = self.odd.entry(kind).or_insert_with(|| Seen {
            first: example.unwrap_or_default().to_owned(),
            ..Seen::default()
        });
        seen.count += 1;
        seen.last = self.total;
    }
}

/// What all sessions of a run did, added up: those that were lost and begun anew as well. Clones share
/// it, so sessions that are begun with clones of the same options do.
#[derive(Clone, Debug, Default)]
pub struct Witness(Arc<Mutex<Conduct>>);

impl Witness {
    /// What was seen so far.
    pub fn conduct(&self) -> Conduct {
        self.lock().clone()
    }

    /// How often a session was told that a list has changed.
    pub fn list_changes(&self) -> u64 {
        self.lock().list_changed
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Conduct> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_one_remark_with_its_count_and_its_first_example() {
        let mut conduct = Conduct::default();
        conduct.add(Oddity::Noise, Some("Listening!"));
        conduct.add(Oddity::Noise, None);
        conduct.add(Oddity::UnknownId, Some("\"3\""));
        conduct.late_answers = 7;
        assert_eq!(
            conduct.remarks(),
            [
                "the server sent an answer to a request that was never sent once: \"3\"",
                "the server sent output that is no message 2 times; the first: Listening!",
            ]
        );
    }

    #[test]
    fn a_message_names_what_came_since_and_nothing_older() {
        let mut conduct = Conduct::default();
        conduct.add(Oddity::UnknownId, Some("99"));
        let before = conduct.total();
        assert_eq!(conduct.since(before), "");
        conduct.add(Oddity::Noise, Some("thinking"));
        assert_eq!(conduct.since(before), "; it sent output that is no message (thinking)");
    }
}
