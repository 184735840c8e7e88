//! Who waits for which answer, and what else the server did.
//!
//! Every message of the server comes here, whatever it travelled on. Answers go to whoever waits for
//! their id, requests are answered by the policies, and everything that should not have come is
//! counted in [`Conduct`]: what has no id is charged to no call, unless it is the very answer to the
//! call's POST. Nobody waits for a server that is gone.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

use karat_io::redact::Redactor;
use memchr::memmem;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::conduct::{Conduct, Oddity, Witness};
use crate::error::{CallError, quoted};
use crate::limits::Limits;
use crate::policy::Policies;
use crate::record::{Recorder, Side, Track};
use crate::revision::Revision;
use crate::wire::{self, Fault, FaultKind, Incoming};

/// How many requests that nobody waits for any more are remembered.
const GIVEN_UP_KEPT: usize = 1_024;
/// How many progress notifications are kept for one request.
const PROGRESS_KEPT: usize = 1_000;
/// How much of a message is looked at for an example.
const EXAMPLE: usize = 1_000;

/// An answer as it is handed to whoever waits.
pub(crate) struct Delivered {
    pub(crate) outcome: Result<Value, CallError>,
    pub(crate) arrived: Instant,
    pub(crate) progress: Vec<Value>,
}

struct Slot {
    sender: oneshot::Sender<Delivered>,
    progress: Vec<Value>,
}

#[derive(Default)]
struct State {
    waiting: HashMap<u64, Slot>,
    given_up: VecDeque<u64>,
    conduct: Conduct,
    /// Bytes that were no messages, since the last answer that somebody waited for.
    noise: usize,
    ended: Option<CallError>,
}

impl State {
    /// Whoever waits for this answer. It shows that the server does more than to make noise.
    fn take(&mut self, id: u64) -> Option<Slot> {
        let slot = self.waiting.remove(&id)?;
        self.noise = 0;
        Some(slot)
    }
}

/// The switchboard of one session.
pub(crate) struct Board {
    next: AtomicU64,
    state: Mutex<State>,
    pub(crate) limits: Limits,
    pub(crate) redactor: Redactor,
    pub(crate) policies: Policies,
    witness: Witness,
    revision: OnceLock<Revision>,
    track: Option<Track>,
}

impl Board {
    pub(crate) fn new(limits: Limits, policies: Policies, redactor: Redactor) -> Board {
        let (next, state) = (AtomicU64::new(1), Mutex::default());
        let (witness, revision) = (Witness::default(), OnceLock::new());
        Board { next, state, limits, redactor, policies, witness, revision, track: None }
    }

    /// As [`Board::new`], with everything but answers counted for others to see.
    pub(crate) fn seen_by(self, witness: &Witness) -> Board {
        Board { witness: witness.clone(), ..self }
    }

    /// From now on messages are of this revision.
    pub(crate) fn speak(&self, revision: Revision) {
        let _ = self.revision.set(revision);
    }

    /// As [`Board::new`], with every message recorded.
    pub(crate) fn recorded(self, recorder: Option<&Recorder>, server: &str) -> Board {
        let track = recorder.map(|recorder| recorder.track(server));
        Board { track, ..self }
    }

    /// A message of ours is on its way.
    pub(crate) fn sent(&self, bytes: &[u8]) {
        if let Some(track) = &self.track {
            track.message(Side::Client, bytes, &self.redactor);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether somebody waits for the answer to this request.
    pub(crate) fn is_awaited(&self, id: u64) -> bool {
        self.state().waiting.contains_key(&id)
    }

    /// A fresh id.
    pub(crate) fn next_id(&self) -> u64 {
        self.next.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn conduct(&self) -> Conduct {
        self.state().conduct.clone()
    }

    /// Everything odd that came so far, as the rest of a message.
    pub(crate) fn oddities(&self) -> String {
        self.state().conduct.since(0)
    }

    /// Counts something odd that was seen elsewhere.
    pub(crate) fn saw(&self, kind: Oddity) {
        self.odd(&mut self.state(), kind, String::new);
    }

    /// Why the session is over, if it is.
    pub(crate) fn ended(&self) -> Option<CallError> {
        self.state().ended.clone()
    }

    /// Waits for the answer with this id; dropped early, the answer counts as late.
    pub(crate) fn wait_for(&self, id: u64) -> Result<Waiting<'_>, CallError> {
        let (sender, receiver) = oneshot::channel();
        let mut state = self.state();
        if let Some(why) = &state.ended {
            return Err(why.clone());
        }
        state.waiting.insert(id, Slot { sender, progress: Vec::new() });
        Ok(Waiting { board: self, id, receiver, odd_before: state.conduct.total() })
    }

    /// The session is over: everybody who waits learns why. Only the first reason counts.
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

    /// The bytes of a message that is larger than the limit, of which only the start was kept.
    pub(crate) fn oversized(&self, start: &[u8], arrived: Instant) {
        let error = CallError::TooLarge { limit: self.limits.message_bytes, what: "bytes" };
        if let Some(track) = &self.track {
            track.message(Side::Server, start, &self.redactor);
        }
        let mut state = self.state();
        self.odd(&mut state, Oddity::Oversized, || text(start));
        let id = wire::id_in(start).as_ref().and_then(Value::as_u64);
        if let Some(slot) = id.or_else(|| only_one(&state, start)).and_then(|id| state.take(id)) {
            drop(state);
            deliver(slot, Err(error), arrived);
        }
    }

    /// Takes a message in. `body_of` is the request that it is the whole answer to by the way on which it
    /// came: only then is it charged with what has no id. What comes back must be sent to the server.
    pub(crate) fn receive(
        &self,
        bytes: &[u8],
        arrived: Instant,
        body_of: Option<u64>,
    ) -> Vec<Vec<u8>> {
        if let Some(track) = &self.track {
            track.message(Side::Server, bytes, &self.redactor);
        }
        let messages = wire::read(bytes, &self.limits);
        if bytes.first() == Some(&b'[') && !matches!(messages[..], [Err(_)]) {
            self.batched(bytes);
        }
        let mut replies = Vec::new();
        for message in messages {
            match message {
                Ok(Incoming::Answer { id, outcome }) => {
                    self.answered(&id, outcome, arrived, body_of);
                }
                Ok(Incoming::Notification { method, params }) => self.told(&method, params),
                Ok(Incoming::Request { id, method, params }) => {
                    replies.push(self.asked(&id, &method, &params));
                }
                Err(fault) => self.fault(&fault, bytes, arrived, body_of),
            }
        }
        replies
    }

    fn batched(&self, bytes: &[u8]) {
        if self.revision.get() != Some(&Revision::V2025_03_26) {
            self.odd(&mut self.state(), Oddity::Batch, || text(bytes));
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
            // Only an error may come without an id: the server could not read the request.
            Value::Null if outcome.is_err() => body_of,
            id => id.as_u64(),
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
            self.count(&mut state, |conduct| conduct.late_answers += 1);
        } else if number.is_some_and(|id| id > 0 && id < self.next.load(Ordering::Relaxed)) {
            self.odd(&mut state, Oddity::Repeated, || format!("id {id}"));
        } else if let (Value::Null, Err(error)) = (id, &outcome) {
            self.odd(&mut state, Oddity::WithoutId, || error.to_string());
        } else {
            self.odd(&mut state, Oddity::UnknownId, || format!("id {id}"));
        }
    }

    fn told(&self, method: &str, params: Value) {
        let mut state = self.state();
        let counted: fn(&mut Conduct) = match method {
            "notifications/progress" => {
                let token = params.get("progressToken").and_then(Value::as_u64);
                if let Some(slot) = token.and_then(|token| state.waiting.get_mut(&token))
                    && slot.progress.len() < PROGRESS_KEPT
                {
                    slot.progress.push(params);
                }
                |conduct| conduct.progress += 1
            }
            "notifications/message" => |conduct| conduct.log_messages += 1,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => |conduct| conduct.list_changed += 1,
            _ => |_| {},
        };
        self.count(&mut state, |conduct| {
            conduct.notifications += 1;
            counted(conduct);
        });
    }

    fn asked(&self, id: &Value, method: &str, params: &Value) -> Vec<u8> {
        let answer = self.policies.answer(method, params);
        let mut state = self.state();
        match answer {
            Ok(_) => self.count(&mut state, |conduct| conduct.requests_answered += 1),
            Err(_) => self.odd(&mut state, Oddity::Refused, || method.to_owned()),
        }
        drop(state);
        let reply = wire::answer(id, &answer);
        self.sent(&reply);
        reply
    }

    fn fault(&self, fault: &Fault, bytes: &[u8], arrived: Instant, body_of: Option<u64>) {
        let kind = match fault.kind {
            FaultKind::NotJson => Oddity::Noise,
            FaultKind::NotUtf8 => Oddity::NotUtf8,
            FaultKind::TooDeep => Oddity::Oversized,
            FaultKind::NotJsonRpc => Oddity::Malformed,
        };
        let mut state = self.state();
        self.odd(&mut state, kind, || text(bytes));
        let mut id = fault.id.as_ref().and_then(Value::as_u64).or(body_of);
        if fault.kind == FaultKind::TooDeep {
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
            let why = format!("it sent more than {limit} bytes that are no messages");
            self.end(&CallError::Closed { why });
        }
    }

    /// Counts something, for this session and for whoever looks at all of them.
    fn count(&self, state: &mut State, change: impl Fn(&mut Conduct)) {
        change(&mut state.conduct);
        change(&mut self.witness.lock());
    }

    fn odd(&self, state: &mut State, kind: Oddity, example: impl FnOnce() -> String) {
        let first = state.conduct.count(kind) == 0;
        let example = first.then(|| quoted(&self.redactor.hide(&example())));
        self.count(state, |conduct| conduct.add(kind, example.as_deref()));
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
            if state.given_up.len() == GIVEN_UP_KEPT {
                state.given_up.pop_front();
            }
            state.given_up.push_back(id);
        }
    }
}

/// The start of bytes, as an example.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(EXAMPLE)]).into_owned()
}

/// The only one who waits, where the start of a message shows that it is an answer but not to which
/// request: of an answer that is too large to be read, the id may stand behind the result.
fn only_one(state: &State, start: &[u8]) -> Option<u64> {
    let start = &start[..start.len().min(EXAMPLE)];
    let holds = |name: &[u8]| memmem::find(start, name).is_some();
    let is_answer = holds(b"\"jsonrpc\"") && holds(b"\"result\"") && !holds(b"\"method\"");
    (is_answer && state.waiting.len() == 1).then(|| state.waiting.keys().next().copied())?
}

fn deliver(slot: Slot, outcome: Result<Value, CallError>, arrived: Instant) {
    // A receiver that is gone timed out at this very moment.
    let _ = slot.sender.send(Delivered { outcome, arrived, progress: slot.progress });
}

/// Somebody who waits for an answer.
pub(crate) struct Waiting<'b> {
    board: &'b Board,
    id: u64,
    receiver: oneshot::Receiver<Delivered>,
    odd_before: u64,
}

impl Waiting<'_> {
    /// What odd things came since the wait began, as the rest of a message.
    pub(crate) fn oddities(&self) -> String {
        self.board.state().conduct.since(self.odd_before)
    }

    /// The answer.
    pub(crate) async fn answer(&mut self) -> Delivered {
        match (&mut self.receiver).await {
            Ok(delivered) => delivered,
            // The board hands every slot something before it lets go of it.
            Err(_) => Delivered {
                outcome: Err(CallError::Closed { why: "the session ended".to_owned() }),
                arrived: Instant::now(),
                progress: Vec::new(),
            },
        }
    }

    /// The answer, if it is there already.
    pub(crate) fn try_answer(&mut self) -> Option<Delivered> {
        self.receiver.try_recv().ok()
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.board.give_up(self.id);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn board() -> Board {
        Board::new(Limits::default(), Policies::default(), Redactor::default())
    }

    fn say(board: &Board, message: &Value) -> Vec<Vec<u8>> {
        board.receive(message.to_string().as_bytes(), Instant::now(), None)
    }

    #[test]
    fn answers_find_their_request_in_any_order() {
        let board = board();
        let (one, two) = (board.next_id(), board.next_id());
        let mut first = board.wait_for(one).unwrap();
        let mut second = board.wait_for(two).unwrap();
        say(&board, &json!({"jsonrpc": "2.0", "id": two, "result": "b"}));
        say(&board, &json!({"jsonrpc": "2.0", "id": one, "result": "a"}));
        assert_eq!(first.try_answer().unwrap().outcome, Ok(json!("a")));
        assert_eq!(second.try_answer().unwrap().outcome, Ok(json!("b")));
    }

    #[test]
    fn answers_that_nobody_asked_for_are_told_apart() {
        let board = board();
        let id = board.next_id();
        let answer = json!({"jsonrpc": "2.0", "id": id, "result": 1});
        let mut waiting = board.wait_for(id).unwrap();
        say(&board, &answer);
        assert!(waiting.try_answer().is_some());
        drop(waiting);
        say(&board, &answer);
        let late = board.next_id();
        drop(board.wait_for(late).unwrap());
        say(&board, &json!({"jsonrpc": "2.0", "id": late, "result": 1}));
        say(&board, &json!({"jsonrpc": "2.0", "id": 999, "result": 1}));
        say(&board, &json!({"jsonrpc": "2.0", "id": "1", "result": 1}));
        let conduct = board.conduct();
        let (repeated, unknown) = (Oddity::Repeated, Oddity::UnknownId);
        assert_eq!((conduct.count(repeated), conduct.late_answers), (1, 1));
        assert_eq!((conduct.count(unknown), conduct.first(unknown)), (2, Some("id 999")));
    }

    #[test]
    fn requests_of_the_server_are_answered_by_policy() {
        let board = board();
        let replies = say(&board, &json!({"jsonrpc": "2.0", "id": "s1", "method": "ping"}));
        assert_eq!(replies, [br#"{"jsonrpc":"2.0","id":"s1","result":{}}"#.to_vec()]);
        let refused =
            say(&board, &json!({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage"}));
        assert!(String::from_utf8_lossy(&refused[0]).contains("refused"));
        let conduct = board.conduct();
        assert_eq!(conduct.first(Oddity::Refused), Some("sampling/createMessage"));
        assert_eq!((conduct.count(Oddity::Refused), conduct.requests_answered), (1, 1));
    }

    const NOISE: &[u8] = b"Server is listening!";

    fn easily_annoyed() -> Board {
        let limits = Limits { noise_bytes: 3 * NOISE.len(), ..Limits::default() };
        Board::new(limits, Policies::default(), Redactor::default())
    }

    #[test]
    fn noise_without_end_ends_the_session() {
        let board = easily_annoyed();
        for _ in 0..4 {
            board.receive(NOISE, Instant::now(), None);
        }
        assert!(matches!(board.wait_for(1), Err(CallError::Closed { .. })));
        assert_eq!(board.conduct().first(Oddity::Noise), Some("Server is listening!"));
    }

    #[test]
    fn noise_between_answers_ends_nothing() {
        let board = easily_annoyed();
        for _ in 0..1_000 {
            let id = board.next_id();
            let mut waiting = board.wait_for(id).unwrap();
            board.receive(NOISE, Instant::now(), None);
            say(&board, &json!({"jsonrpc": "2.0", "id": id, "result": 1}));
            assert!(waiting.try_answer().is_some());
        }
        assert_eq!(board.conduct().count(Oddity::Noise), 1_000);
    }

    #[test]
    fn what_has_no_id_is_charged_to_nobody() {
        let board = board();
        let id = board.next_id();
        let mut waiting = board.wait_for(id).unwrap();
        let error = json!({"code": -32601, "message": "no such method"});
        for message in [
            json!({"jsonrpc": "2.0", "id": null, "error": error}),
            json!({"jsonrpc": "2.0", "error": error}),
            json!({"level": 30, "msg": "handling"}),
            json!(42),
            json!([]),
        ] {
            say(&board, &message);
            assert!(waiting.try_answer().is_none(), "{message}");
        }
        let conduct = board.conduct();
        assert_eq!((conduct.count(Oddity::WithoutId), conduct.count(Oddity::Malformed)), (2, 3));
        let told = waiting.oddities();
        assert!(told.contains("-32601: no such method") && told.contains("handling"), "{told}");
        say(&board, &json!({"jsonrpc": "2.0", "id": id, "result": 1}));
        assert_eq!(waiting.try_answer().unwrap().outcome, Ok(json!(1)));
    }

    #[test]
    fn what_is_the_body_of_an_answer_is_for_its_request() {
        for body in [
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}"#,
            r#"{"error":"out of order"}"#,
            "<html>",
        ] {
            let board = board();
            let (other, asked) = (board.next_id(), board.next_id());
            let mut innocent = board.wait_for(other).unwrap();
            let mut waiting = board.wait_for(asked).unwrap();
            board.receive(body.as_bytes(), Instant::now(), Some(asked));
            assert!(waiting.try_answer().unwrap().outcome.is_err(), "{body}");
            assert!(innocent.try_answer().is_none(), "{body}");
        }
    }

    #[test]
    fn an_answer_that_is_too_large_is_for_its_request() {
        let huge = |start: &str| {
            let board = board();
            let id = board.next_id();
            let mut waiting = board.wait_for(id).unwrap();
            board.oversized(start.as_bytes(), Instant::now());
            waiting.try_answer().is_some()
        };
        assert!(huge(r#"{"jsonrpc":"2.0","id":1,"result":""#));
        assert!(huge(r#"{"jsonrpc":"2.0","result":{"content":""#));
        assert!(!huge(r#"{"jsonrpc":"2.0","method":"notifications/message","params":{"result":"#));
        assert!(!huge(r#"{"level":30,"msg":""#));
        assert!(!huge("xxxxxxxxxxxxxxxxxx"));
    }

    #[test]
    fn batches_are_odd_where_the_revision_has_none() {
        let counted = |revision: Option<Revision>| {
            let board = board();
            revision.into_iter().for_each(|revision| board.speak(revision));
            say(&board, &json!([{"jsonrpc": "2.0", "method": "x"}]));
            board.receive(b"[INFO] ready", Instant::now(), None);
            board.conduct().count(Oddity::Batch)
        };
        assert_eq!(counted(Some(Revision::V2025_03_26)), 0);
        assert_eq!(counted(Some(Revision::V2025_11_25)), 1);
        assert_eq!(counted(None), 1);
    }

    #[test]
    fn one_witness_sees_all_sessions() {
        let witness = Witness::default();
        for text in ["one", "two"] {
            let board = board().seen_by(&witness);
            board.receive(text.as_bytes(), Instant::now(), None);
            say(&board, &json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
        }
        let conduct = witness.conduct();
        assert_eq!((conduct.count(Oddity::Noise), conduct.first(Oddity::Noise)), (2, Some("one")));
        assert_eq!(witness.list_changes(), 2);
    }

    #[test]
    fn progress_comes_with_the_answer() {
        let board = board();
        let id = board.next_id();
        let mut waiting = board.wait_for(id).unwrap();
        let params = json!({"progressToken": id, "progress": 1});
        say(
            &board,
            &json!({"jsonrpc": "2.0", "method": "notifications/progress", "params": params}),
        );
        say(&board, &json!({"jsonrpc": "2.0", "id": id, "result": {}}));
        assert_eq!(waiting.try_answer().unwrap().progress, [params]);
    }
}
