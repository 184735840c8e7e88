//! The requests without an answer, and the messages of the server.
//!
//! Every message of the server comes here, whatever the transport. Answers go to the call with their id,
//! requests are answered by the policies, and violations of the protocol are counted in the
//! [`ProtocolLog`]. A message without an id fails no call, unless it is the body of the response to that
//! call's POST. When the server is gone, every pending call fails.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use karat_io::redact::Redactor;
use memchr::memmem;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::error::{CallError, quoted};
use crate::limits::Limits;
use crate::policy::Policies;
use crate::protocol_log::{ProtocolLog, Violation, ViolationSink};
use crate::record::{Recorder, Side, Track};
use crate::revision::Revision;
use crate::wire::{self, Fault, FaultKind, Incoming};

/// Timed-out requests that are remembered, so that their answers count as late.
const MAX_GIVEN_UP: usize = 1_024;
/// Progress tokens that are remembered: notifications may come after the answer.
const MAX_TOKENS: usize = 1_024;
/// Progress notifications that are kept for one request.
const MAX_PROGRESS: usize = 1_000;
/// Bytes of a message that are read for an example.
const EXAMPLE_BYTES: usize = 1_000;

/// An answer with its arrival time and the progress before it.
pub(crate) struct Delivered {
    pub(crate) outcome: Result<Value, CallError>,
    pub(crate) arrived: Instant,
    pub(crate) progress: Vec<Value>,
}

/// Notifications that are kept for a caller that looks at them, and their bytes.
const MAX_KEPT: usize = 1_000;
const MAX_KEPT_BYTES: usize = 1 << 20;

struct Slot {
    sender: oneshot::Sender<Delivered>,
    progress: Vec<Value>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Slot>,
    given_up: VecDeque<u64>,
    tokens: Tokens,
    inbox: Inbox,
    log: ProtocolLog,
    /// Bytes outside of messages since the last answer to a pending call.
    noise: usize,
    ended: Option<CallError>,
}

impl State {
    /// The pending call with this id. Its answer proves that the server sends more than noise.
    fn take(&mut self, id: u64) -> Option<Slot> {
        let slot = self.waiting.remove(&id)?;
        self.noise = 0;
        Some(slot)
    }
}

/// The requests that asked for progress, the latest ones.
#[derive(Default)]
struct Tokens {
    known: HashSet<u64>,
    order: VecDeque<u64>,
}

impl Tokens {
    fn give(&mut self, token: u64) {
        if self.order.len() == MAX_TOKENS
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        self.order.push_back(token);
        self.known.insert(token);
    }
}

/// The latest notifications, if anyone looks at them.
#[derive(Default)]
struct Inbox {
    kept: VecDeque<(u64, usize, Value)>,
    bytes: usize,
    /// The number of notifications so far.
    total: u64,
}

impl Inbox {
    fn add(&mut self, method: &str, params: &Value) {
        let message = json!({"method": method, "params": params});
        let bytes = message.to_string().len();
        self.total += 1;
        // A single one beyond the limit is counted and not kept.
        if bytes > MAX_KEPT_BYTES {
            return;
        }
        self.bytes += bytes;
        self.kept.push_back((self.total, bytes, message));
        while self.kept.len() > MAX_KEPT || self.bytes > MAX_KEPT_BYTES {
            let Some((_, bytes, _)) = self.kept.pop_front() else { return };
            self.bytes -= bytes;
        }
    }
}

/// The pending calls of one session.
pub(crate) struct PendingCalls {
    next: AtomicU64,
    state: Mutex<State>,
    pub(crate) limits: Limits,
    pub(crate) redactor: Redactor,
    pub(crate) policies: Policies,
    sink: ViolationSink,
    revision: OnceLock<Revision>,
    track: Option<Track>,
    keeps_notifications: bool,
}

impl PendingCalls {
    pub(crate) fn new(limits: Limits, policies: Policies, redactor: Redactor) -> PendingCalls {
        let (next, state) = (AtomicU64::new(1), Mutex::default());
        let (sink, revision) = (ViolationSink::default(), OnceLock::new());
        let (track, keeps_notifications) = (None, false);
        PendingCalls {
            next,
            state,
            limits,
            redactor,
            policies,
            sink,
            revision,
            track,
            keeps_notifications,
        }
    }

    /// Also keeps the latest notifications.
    pub(crate) fn keeping_notifications(self, keeps_notifications: bool) -> PendingCalls {
        PendingCalls { keeps_notifications, ..self }
    }

    /// The number of notifications so far, for [`PendingCalls::notifications_since`].
    pub(crate) fn notification_count(&self) -> u64 {
        self.state().inbox.total
    }

    /// The notifications after the first `count`, as far as they are kept, without secrets.
    pub(crate) fn notifications_since(&self, count: u64) -> Vec<Value> {
        let state = self.state();
        let later = state.inbox.kept.iter().filter(|(number, ..)| *number > count);
        let mut found: Vec<Value> = later.map(|(.., message)| message.clone()).collect();
        drop(state);
        found.iter_mut().for_each(|message| self.redactor.hide_in(message));
        found
    }

    /// Also counts everything but answers in a sink that sessions share.
    pub(crate) fn reporting_to(self, sink: &ViolationSink) -> PendingCalls {
        PendingCalls { sink: sink.clone(), ..self }
    }

    /// Sets the negotiated revision.
    pub(crate) fn set_revision(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// Also records every message.
    pub(crate) fn recorded(self, recorder: Option<&Recorder>, server: &str) -> PendingCalls {
        let track = recorder.map(|recorder| recorder.track(server));
        PendingCalls { track, ..self }
    }

    /// Records a message to the server.
    pub(crate) fn sent(&self, bytes: &[u8]) {
        if let Some(track) = &self.track {
            track.message(Side::Client, bytes, &self.redactor);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if this request has no answer yet.
    pub(crate) fn is_awaited(&self, id: u64) -> bool {
        self.state().waiting.contains_key(&id)
    }

    /// A fresh id.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn protocol_log(&self) -> ProtocolLog {
        self.state().log.clone()
    }

    /// All violations so far, as the end of a message.
    pub(crate) fn describe_violations(&self) -> String {
        self.state().log.since(0)
    }

    /// Counts a violation that a transport noticed.
    pub(crate) fn violation(&self, kind: Violation) {
        self.count_violation(&mut self.state(), kind, String::new);
    }

    /// The reason for the end of the session, if it has ended.
    pub(crate) fn ended(&self) -> Option<CallError> {
        self.state().ended.clone()
    }

    /// Remembers that a request asks for progress under its id.
    pub(crate) fn give_token(&self, id: u64) {
        self.state().tokens.give(id);
    }

    /// Adds a pending call with this id. If it is dropped early, its answer counts as late.
    pub(crate) fn register(&self, id: u64) -> Result<PendingCall<'_>, CallError> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        state.waiting.insert(id, Slot { sender, progress: Vec::new() });
        Ok(PendingCall { calls: self, id, receiver, violations_before: state.log.total() })
    }

    /// Ends the session and fails every pending call. Only the first reason counts.
    pub(crate) fn end(&self, why: &CallError) {
        let waiting: Vec<Slot> = {
            let mut state = self.state();
            if state.ended.is_none() {
                state.ended = Some(why.clone());
                if let Some(track) = &self.track {
                    track.ended(&why.to_string());
                }
            }
            state.waiting.drain().map(|(_, slot)| slot).collect()
        };
        for slot in waiting {
            deliver(slot, Err(why.clone()), Instant::now());
        }
    }

    /// Takes the start of a message that is larger than the limit.
    pub(crate) fn oversized(&self, start: &[u8], arrived: Instant) {
        let error = CallError::TooLarge { limit: self.limits.message_bytes, what: "bytes" };
        if let Some(track) = &self.track {
            track.message(Side::Server, start, &self.redactor);
        }
        let mut state = self.state();
        self.count_violation(&mut state, Violation::Oversized, || text(start));
        let id = wire::id_in(start).as_ref().and_then(wire::id_number);
        if let Some(slot) = id.or_else(|| only_one(&state, start)).and_then(|id| state.take(id)) {
            drop(state);
            deliver(slot, Err(error), arrived);
        }
    }

    /// Takes a message. `body_of` is the request whose response has this message as its whole body; only
    /// that request fails if the message has no id. Returns replies to send to the server.
    pub(crate) fn receive(
        &self,
        bytes: &[u8],
        arrived: Instant,
        body_of: Option<u64>,
    ) -> Vec<Vec<u8>> {
        if let Some(track) = &self.track {
            track.message(Side::Server, bytes, &self.redactor);
        }
        let wire::Read { messages, repaired } = wire::read(bytes, &self.limits);
        if let Some(note) = repaired {
            self.count_violation(&mut self.state(), Violation::Repaired, || note);
        }
        if bytes.first() == Some(&b'[') && !matches!(messages[..], [Err(_)]) {
            self.batched(bytes);
        }
        let mut replies = Vec::new();
        for message in messages {
            match message {
                Ok(Incoming::Answer { id, outcome }) => {
                    self.answered(&id, outcome, arrived, body_of);
                }
                Ok(Incoming::Notification { method, params }) => self.notified(&method, params),
                Ok(Incoming::Request { id, method, params }) => {
                    replies.push(self.requested(&id, &method, &params));
                }
                Err(fault) => self.fault(&fault, bytes, arrived, body_of),
            }
        }
        replies
    }

    fn batched(&self, bytes: &[u8]) {
        if self.revision.get() != Some(&Revision::V2025_03_26) {
            self.count_violation(&mut self.state(), Violation::Batch, || text(bytes));
        }
    }

    fn answered(
        &self,
        id: &Value,
        outcome: Result<Value, CallError>,
        arrived: Instant,
        body_of: Option<u64>,
    ) {
        let outcome = outcome.map_err(|error| self.redacted(error));
        let number = match id {
            // Only an error may have no id: the server could not read the request.
            Value::Null if outcome.is_err() => body_of,
            id => wire::id_number(id),
        };
        let mut state = self.state();
        if let Some(slot) = number.and_then(|number| state.take(number)) {
            drop(state);
            deliver(slot, outcome, arrived);
            return;
        }
        let given_up = number.and_then(|id| state.given_up.iter().position(|late| *late == id));
        if let Some(at) = given_up {
            state.given_up.remove(at);
            self.count(&mut state, |log| log.late_answers += 1);
        } else if number.is_some_and(|id| id > 0 && id < self.next.load(Ordering::Relaxed)) {
            self.count_violation(&mut state, Violation::Repeated, || format!("id {id}"));
        } else if let (Value::Null, Err(error)) = (id, &outcome) {
            self.count_violation(&mut state, Violation::WithoutId, || error.to_string());
        } else {
            self.count_violation(&mut state, Violation::UnknownId, || format!("id {id}"));
        }
    }

    fn notified(&self, method: &str, params: Value) {
        let mut state = self.state();
        if self.keeps_notifications {
            state.inbox.add(method, &params);
        }
        let counted: fn(&mut ProtocolLog) = match method {
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(wire::id_number);
                let is_given = token.is_some_and(|token| state.tokens.known.contains(&token));
                let slot =
                    token.filter(|_| is_given).and_then(|token| state.waiting.get_mut(&token));
                let value = |params: &Value| params.get("progress").and_then(Value::as_f64);
                let grows = match slot.as_ref().and_then(|slot| slot.progress.last()) {
                    Some(last) => value(last) < value(&params),
                    None => value(&params).is_some(),
                };
                let wrong = (!is_given || !grows).then(|| params.to_string());
                if let Some(slot) = slot.filter(|slot| slot.progress.len() < MAX_PROGRESS) {
                    slot.progress.push(params);
                }
                if let Some(wrong) = wrong {
                    self.count_violation(&mut state, Violation::Progress, || wrong);
                }
                |log| log.progress += 1
            }
            "notifications/message" => |log| log.log_messages += 1,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => |log| log.list_changed += 1,
            _ => |_| {},
        };
        self.count(&mut state, |log| {
            log.notifications += 1;
            counted(log);
        });
    }

    fn requested(&self, id: &Value, method: &str, params: &Value) -> Vec<u8> {
        let answer = self.policies.answer(method, params);
        let mut state = self.state();
        match answer {
            Ok(_) => self.count(&mut state, |log| log.requests_answered += 1),
            Err(_) => self.count_violation(&mut state, Violation::Refused, || method.to_owned()),
        }
        drop(state);
        let reply = wire::answer(id, &answer);
        self.sent(&reply);
        reply
    }

    fn fault(&self, fault: &Fault, bytes: &[u8], arrived: Instant, body_of: Option<u64>) {
        let kind = match fault.kind {
            FaultKind::NotJson => Violation::Noise,
            FaultKind::NotUtf8 => Violation::NotUtf8,
            FaultKind::TooDeep => Violation::Oversized,
            FaultKind::NotJsonRpc => Violation::Malformed,
        };
        let mut state = self.state();
        self.count_violation(&mut state, kind, || text(bytes));
        let mut id = fault.id.as_ref().and_then(wire::id_number).or(body_of);
        if matches!(fault.kind, FaultKind::TooDeep | FaultKind::NotJson) {
            id = id.or_else(|| only_one(&state, bytes));
        }
        if let Some(slot) = id.and_then(|id| state.take(id)) {
            drop(state);
            deliver(slot, Err(self.redacted(fault.error.clone())), arrived);
            return;
        }
        state.noise = state.noise.saturating_add(bytes.len());
        let endless = state.noise > self.limits.noise_bytes;
        drop(state);
        if endless {
            let limit = self.limits.noise_bytes;
            let why = format!("it sent more than {limit} bytes that are not messages");
            self.end(&CallError::Closed { why });
        }
    }

    /// Changes the log of this session and the shared one.
    fn count(&self, state: &mut State, change: impl Fn(&mut ProtocolLog)) {
        change(&mut state.log);
        change(&mut self.sink.lock());
    }

    fn count_violation(
        &self,
        state: &mut State,
        kind: Violation,
        example: impl FnOnce() -> String,
    ) {
        let first = state.log.count(kind) == 0;
        let example = first.then(|| quoted(&self.redactor.hide(&example())));
        self.count(state, |log| log.add(kind, example.as_deref()));
    }

    fn redacted(&self, error: CallError) -> CallError {
        match error {
            CallError::Protocol { code, message, mut data } => {
                data.iter_mut().for_each(|data| self.redactor.hide_in(data));
                CallError::Protocol { code, message: self.redactor.hidden(message), data }
            }
            CallError::Invalid { why } => CallError::Invalid { why: self.redactor.hidden(why) },
            other => other,
        }
    }

    fn give_up(&self, id: u64) {
        let mut state = self.state();
        if state.waiting.remove(&id).is_some() {
            if state.given_up.len() == MAX_GIVEN_UP {
                state.given_up.pop_front();
            }
            state.given_up.push_back(id);
        }
    }
}

/// The start of a message as an example.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXAMPLE_BYTES)]).into_owned()
}

/// The only pending call, if the start of a message shows that it is an answer. The id of an answer that is
/// too large to be kept may come after the result.
fn only_one(state: &State, start: &[u8]) -> Option<u64> {
    let start = &start[..start.len().min(EXAMPLE_BYTES)];
    let holds = |name: &[u8]| memmem::find(start, name).is_some();
    let is_answer = start.starts_with(b"{")
        && holds(b"\"jsonrpc\"")
        && (holds(b"\"result\"") || holds(b"\"error\""))
        && !holds(b"\"method\"");
    (is_answer && state.waiting.len() == 1).then(|| state.waiting.keys().next().copied())?
}

fn deliver(slot: Slot, outcome: Result<Value, CallError>, arrived: Instant) {
    // If the receiver is gone, the call has just timed out.
    let _ = slot.sender.send(Delivered { outcome, arrived, progress: slot.progress });
}

/// A request without an answer.
pub(crate) struct PendingCall<'c> {
    calls: &'c PendingCalls,
    id: u64,
    receiver: oneshot::Receiver<Delivered>,
    violations_before: u64,
}

impl PendingCall<'_> {
    /// The violations since the request, as the end of a message.
    pub(crate) fn describe_violations(&self) -> String {
        self.calls.state().log.since(self.violations_before)
    }

    /// Waits for the answer.
    pub(crate) async fn answer(&mut self) -> Delivered {
        match (&mut self.receiver).await {
            Ok(delivered) => delivered,
            // Unreachable as long as every slot gets an outcome before it is dropped.
            Err(_) => Delivered {
                outcome: Err(CallError::Closed { why: "the session ended".to_owned() }),
                arrived: Instant::now(),
                progress: Vec::new(),
            },
        }
    }

    /// The answer, if it has arrived.
    pub(crate) fn try_answer(&mut self) -> Option<Delivered> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for PendingCall<'_> {
    fn drop(&mut self) {
        self.calls.give_up(self.id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls() -> PendingCalls {
        PendingCalls::new(Limits::default(), Policies::default(), Redactor::default())
    }

    fn say(calls: &PendingCalls, message: &Value) -> Vec<Vec<u8>> {
        calls.receive(message.to_string().as_bytes(), Instant::now(), None)
    }

    #[test]
    fn answers_are_matched_in_any_order() {
        let calls = calls();
        let (one, two) = (calls.next_id(), calls.next_id());
        let mut first = calls.register(one).unwrap();
        let mut second = calls.register(two).unwrap();
        say(&calls, &json!({"jsonrpc": "2.0", "id": two, "result": "b"}));
        say(&calls, &json!({"jsonrpc": "2.0", "id": one, "result": "a"}));
        assert_eq!(first.try_answer().unwrap().outcome, Ok(json!("a")));
        assert_eq!(second.try_answer().unwrap().outcome, Ok(json!("b")));
    }

    #[test]
    fn repeated_late_and_unknown_answers_are_counted_separately() {
        let calls = calls();
        let id = calls.next_id();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": 1});
        let mut waiting = calls.register(id).unwrap();
        say(&calls, &answer);
        assert!(waiting.try_answer().is_some());
        drop(waiting);
        say(&calls, &answer);
        let late = calls.next_id();
        drop(calls.register(late).unwrap());
        say(&calls, &json!({"jsonrpc": "2.0", "id": late, "result": 1}));
        say(&calls, &json!({"jsonrpc": "2.0", "id": 999, "result": 1}));
        say(&calls, &json!({"jsonrpc": "2.0", "id": "1", "result": 1}));
        let log = calls.protocol_log();
        let (repeated, unknown) = (Violation::Repeated, Violation::UnknownId);
        assert_eq!((log.count(repeated), log.late_answers), (1, 1));
        assert_eq!((log.count(unknown), log.first(unknown)), (2, Some("id 999")));
    }

    #[test]
    fn requests_of_the_server_are_answered_by_policy() {
        let calls = calls();
        let replies = say(&calls, &json!({"jsonrpc": "2.0", "id": "s1", "method": "ping"}));
        assert_eq!(replies, [br#"{"jsonrpc":"2.0","id":"s1","result":{}}"#.to_vec()]);
        let refused =
            say(&calls, &json!({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage"}));
        assert!(String::from_utf8_lossy(&refused[0]).contains("refused"));
        let log = calls.protocol_log();
        assert_eq!(log.first(Violation::Refused), Some("sampling/createMessage"));
        assert_eq!((log.count(Violation::Refused), log.requests_answered), (1, 1));
    }

    const NOISE: &[u8] = b"Server is listening!";

    fn with_little_room_for_noise() -> PendingCalls {
        let limits = Limits { noise_bytes: 3 * NOISE.len(), ..Limits::default() };
        PendingCalls::new(limits, Policies::default(), Redactor::default())
    }

    #[test]
    fn endless_noise_ends_the_session() {
        let calls = with_little_room_for_noise();
        for _ in 0..4 {
            calls.receive(NOISE, Instant::now(), None);
        }
        assert!(matches!(calls.register(1), Err(CallError::Closed { .. })));
        assert_eq!(calls.protocol_log().first(Violation::Noise), Some("Server is listening!"));
    }

    #[test]
    fn noise_between_answers_does_not_end_the_session() {
        let calls = with_little_room_for_noise();
        for _ in 0..1_000 {
            let id = calls.next_id();
            let mut waiting = calls.register(id).unwrap();
            calls.receive(NOISE, Instant::now(), None);
            say(&calls, &json!({"jsonrpc": "2.0", "id": id, "result": 1}));
            assert!(waiting.try_answer().is_some());
        }
        assert_eq!(calls.protocol_log().count(Violation::Noise), 1_000);
    }

    #[test]
    fn a_message_without_an_id_fails_no_call() {
        let calls = calls();
        let id = calls.next_id();
        let mut waiting = calls.register(id).unwrap();
        let error = json!({"code": -32601, "message": "no such method"});
        for message in [
            json!({"jsonrpc": "2.0", "id": null, "error": error}),
            json!({"jsonrpc": "2.0", "error": error}),
            json!({"level": 30, "msg": "handling"}),
            json!(42),
            json!([]),
        ] {
            say(&calls, &message);
            assert!(waiting.try_answer().is_none(), "{message}");
        }
        let log = calls.protocol_log();
        assert_eq!((log.count(Violation::WithoutId), log.count(Violation::Malformed)), (2, 3));
        let described = waiting.describe_violations();
        assert!(described.contains("-32601: no such method"), "{described}");
        assert!(described.contains("handling"), "{described}");
        say(&calls, &json!({"jsonrpc": "2.0", "id": id, "result": 1}));
        assert_eq!(waiting.try_answer().unwrap().outcome, Ok(json!(1)));
    }

    #[test]
    fn a_message_without_an_id_fails_the_call_whose_response_it_is() {
        for body in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
            r#"{"error":"out of order"}"#,
            "<html>",
        ] {
            let calls = calls();
            let (other, asked) = (calls.next_id(), calls.next_id());
            let mut unrelated = calls.register(other).unwrap();
            let mut waiting = calls.register(asked).unwrap();
            calls.receive(body.as_bytes(), Instant::now(), Some(asked));
            assert!(waiting.try_answer().unwrap().outcome.is_err(), "{body}");
            assert!(unrelated.try_answer().is_none(), "{body}");
        }
    }

    #[test]
    fn an_oversized_answer_fails_its_call() {
        let huge = |start: &str| {
            let calls = calls();
            let id = calls.next_id();
            let mut waiting = calls.register(id).unwrap();
            calls.oversized(start.as_bytes(), Instant::now());
            waiting.try_answer().is_some()
        };
        assert!(huge(r#"{"jsonrpc":"2.0","id":1,"result":""#));
        assert!(huge(r#"{"jsonrpc":"2.0","result":{"content":""#));
        assert!(!huge(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"result":"#));
        assert!(!huge(r#"{"level":30,"msg":""#));
        assert!(!huge("xxxxxxxxxxxxxxxxxx"));
    }

    #[test]
    fn batches_are_violations_in_revisions_without_them() {
        let counted = |revision: Option<Revision>| {
            let calls = calls();
            revision.into_iter().for_each(|revision| calls.set_revision(revision));
            say(&calls, &json!([{"jsonrpc": "2.0", "method": "x"}]));
            calls.receive(b"[INFO] ready", Instant::now(), None);
            calls.protocol_log().count(Violation::Batch)
        };
        assert_eq!(counted(Some(Revision::V2025_03_26)), 0);
        assert_eq!(counted(Some(Revision::V2025_11_25)), 1);
        assert_eq!(counted(None), 1);
    }

    #[test]
    fn a_sink_adds_up_all_sessions() {
        let sink = ViolationSink::default();
        for text in ["one", "two"] {
            let calls = calls().reporting_to(&sink);
            calls.receive(text.as_bytes(), Instant::now(), None);
            say(&calls, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        }
        let log = sink.log();
        assert_eq!((log.count(Violation::Noise), log.first(Violation::Noise)), (2, Some("one")));
        assert_eq!(sink.list_changes(), 2);
    }

    #[test]
    fn progress_is_returned_with_the_answer() {
        let calls = calls();
        let id = calls.next_id();
        calls.give_token(id);
        let mut waiting = calls.register(id).unwrap();
        let params = json!({"progressToken": id, "progress": 1});
        say(
            &calls,
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
        );
        say(&calls, &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert_eq!(waiting.try_answer().unwrap().progress, [params]);
        assert_eq!(calls.protocol_log().count(Violation::Progress), 0);
    }

    #[test]
    fn progress_that_falls_or_was_not_asked_for_is_a_violation() {
        let counted = |all: &[Value]| {
            let calls = calls();
            let (asked, silent) = (calls.next_id(), calls.next_id());
            calls.give_token(asked);
            let _waiting = [calls.register(asked).unwrap(), calls.register(silent).unwrap()];
            for params in all {
                let method = "notifications/progress";
                say(&calls, &json!({"jsonrpc": "2.0", "method": method, "params": params}));
            }
            calls.protocol_log().count(Violation::Progress)
        };
        let step =
            |token: Value, progress: Value| json!({"progressToken": token, "progress": progress});
        assert_eq!(counted(&[step(json!(1), json!(1)), step(json!(1.0), json!(2.5))]), 0);
        assert_eq!(counted(&[step(json!(1), json!(2)), step(json!(1), json!(1))]), 1);
        assert_eq!(counted(&[step(json!("mine"), json!(1)), step(json!(99), json!(1))]), 2);
        assert_eq!(counted(&[step(json!(1), json!("half"))]), 1);
        // The second request is pending too, but asked for no progress.
        assert_eq!(counted(&[step(json!(2), json!(1))]), 1);
    }

    #[test]
    fn the_latest_notifications_are_kept_for_those_who_look() {
        let say_all = |calls: &PendingCalls| {
            for number in 0..MAX_KEPT + 5 {
                let params = json!({"data": number});
                say(
                    calls,
                    &json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}),
                );
            }
        };
        let silent = calls();
        say_all(&silent);
        assert_eq!(silent.notifications_since(0), [json!(null); 0]);
        let keeping = calls().keeping_notifications(true);
        say_all(&keeping);
        let count = keeping.notification_count();
        assert_eq!(keeping.notifications_since(0).len(), MAX_KEPT);
        let last = json!({"method": "notifications/message", "params": {"data": MAX_KEPT + 4}});
        assert_eq!(keeping.notifications_since(count - 1), [last]);
        let huge = "x".repeat(MAX_KEPT_BYTES);
        say(&keeping, &json!({"jsonrpc": "2.0", "method": "n", "params": {"data": huge}}));
        assert_eq!(keeping.notifications_since(count), [json!(null); 0]);
    }

    #[test]
    fn an_answer_is_read_as_other_clients_read_it() {
        for (text, expected) in [
            (r#"{"jsonrpc":"2.0","id":1,"result":"\ud83c"}"#, json!("\u{fffd}")),
            (r#"{"jsonrpc":"2.0","id":1,"result":NaN}"#, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1,"result":[1e999]}"#, json!([f64::MAX])),
            ("\u{feff}{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":2}", json!(2)),
            (r#"{"jsonrpc":"2.0","id":1.0,"result":2}"#, json!(2)),
        ] {
            let calls = calls();
            let mut waiting = calls.register(calls.next_id()).unwrap();
            calls.receive(text.as_bytes(), Instant::now(), None);
            let answer = waiting.try_answer().expect(text);
            assert_eq!(answer.outcome, Ok(expected), "{text}");
            let notes = u64::from(!text.contains("1.0"));
            assert_eq!(calls.protocol_log().count(Violation::Repaired), notes, "{text}");
        }
    }

    #[test]
    fn a_broken_answer_to_a_pending_call_fails_it_at_once() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":undefined}}"#,
            r#"{"jsonrpc":"2.0","result":{"a":'x'},"id":1}"#,
            r#"{"jsonrpc":"2.0","result":{"a":"an "inner" quote"},"id":1}"#,
            r#"{"jsonrpc":"2.0","error":{"code":1,"message":"cut off"#,
        ] {
            let calls = calls();
            let mut waiting = calls.register(calls.next_id()).unwrap();
            calls.receive(text.as_bytes(), Instant::now(), None);
            let answer = waiting.try_answer().expect(text);
            assert!(matches!(answer.outcome, Err(CallError::Invalid { .. })), "{text}");
        }
    }
}
