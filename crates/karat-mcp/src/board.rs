//! Who waits for which answer, and what else the server did.
//!
//! Every message of the server comes here, whatever it travelled on. Answers go to whoever waits for
//! their id, requests are answered by the policies, and everything that should not have come is
//! counted in [`Conduct`]. Nobody waits for a server that is gone.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Serialize;
use serde_json::Value;
use tokio::sync::oneshot;

use crate::error::{CallError, quoted};
use crate::limits::Limits;
use crate::policy::Policies;
use crate::record::{Recorder, Side, Track};
use crate::redact::Redactor;
use crate::wire::{self, Fault, FaultKind, Incoming};

/// How many requests that nobody waits for any more are remembered.
const GIVEN_UP_KEPT: usize = 1_024;
/// How many progress notifications are kept for one request.
const PROGRESS_KEPT: usize = 1_000;

/// What a server did beside answering: faults that no single call shows, and what it told and asked.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Conduct {
    /// Lines on stdout or events that are not JSON.
    pub noise: u64,
    /// The first of them.
    pub first_noise: Option<String>,
    /// Messages that are JSON but not JSON-RPC.
    pub malformed: u64,
    /// Messages that are not UTF-8.
    pub not_utf8: u64,
    /// Messages beyond the limits of size or depth.
    pub oversized: u64,
    /// Answers to requests that were never sent.
    pub unknown_ids: u64,
    /// Answers to requests that were answered already.
    pub repeated_answers: u64,
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
    /// Requests of the server that were refused.
    pub requests_refused: u64,
}

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
    ended: Option<CallError>,
}

/// The switchboard of one session.
pub(crate) struct Board {
    next: AtomicU64,
    state: Mutex<State>,
    pub(crate) limits: Limits,
    pub(crate) redactor: Redactor,
    pub(crate) policies: Policies,
    track: Option<Track>,
}

impl Board {
    pub(crate) fn new(limits: Limits, policies: Policies, redactor: Redactor) -> Board {
        let (next, state) = (AtomicU64::new(1), Mutex::default());
        Board { next, state, limits, redactor, policies, track: None }
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
        Ok(Waiting { board: self, id, receiver })
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
        self.state().conduct.oversized += 1;
        if let Some(track) = &self.track {
            track.message(Side::Server, start, &self.redactor);
        }
        self.fail(wire::id_in(start).as_ref(), &error, arrived);
    }

    /// Takes a message in. What comes back must be sent to the server.
    pub(crate) fn receive(&self, bytes: &[u8], arrived: Instant) -> Vec<Vec<u8>> {
        if let Some(track) = &self.track {
            track.message(Side::Server, bytes, &self.redactor);
        }
        let mut replies = Vec::new();
        for message in wire::read(bytes, &self.limits) {
            match message {
                Ok(Incoming::Answer { id, outcome }) => self.answered(&id, outcome, arrived),
                Ok(Incoming::Notification { method, params }) => self.told(&method, params),
                Ok(Incoming::Request { id, method, params }) => {
                    replies.push(self.asked(&id, &method, &params));
                }
                Err(fault) => self.fault(&fault, bytes, arrived),
            }
        }
        replies
    }

    fn answered(&self, id: &Value, outcome: Result<Value, CallError>, arrived: Instant) {
        let outcome = outcome.map_err(|error| self.redacted(error));
        let mut state = self.state();
        let number = match id {
            // Only an error may come without an id: the server could not read the request.
            Value::Null if outcome.is_err() && state.waiting.len() == 1 => {
                state.waiting.keys().next().copied()
            }
            id => id.as_u64(),
        };
        if let Some(slot) = number.and_then(|number| state.waiting.remove(&number)) {
            drop(state);
            deliver(slot, outcome, arrived);
            return;
        }
        let given_up = number.and_then(|id| state.given_up.iter().position(|late| *late == id));
        if let Some(at) = given_up {
            state.given_up.remove(at);
            state.conduct.late_answers += 1;
        } else if number.is_some_and(|id| id > 0 && id < self.next.load(Ordering::Relaxed)) {
            state.conduct.repeated_answers += 1;
        } else {
            state.conduct.unknown_ids += 1;
        }
    }

    fn told(&self, method: &str, params: Value) {
        let mut state = self.state();
        state.conduct.notifications += 1;
        match method {
            "notifications/progress" => {
                state.conduct.progress += 1;
                let token = params.get("progressToken").and_then(Value::as_u64);
                if let Some(slot) = token.and_then(|token| state.waiting.get_mut(&token))
                    && slot.progress.len() < PROGRESS_KEPT
                {
                    slot.progress.push(params);
                }
            }
            "notifications/message" => state.conduct.log_messages += 1,
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => state.conduct.list_changed += 1,
            _ => {}
        }
    }

    fn asked(&self, id: &Value, method: &str, params: &Value) -> Vec<u8> {
        let answer = self.policies.answer(method, params);
        let mut state = self.state();
        match answer {
            Ok(_) => state.conduct.requests_answered += 1,
            Err(_) => state.conduct.requests_refused += 1,
        }
        drop(state);
        let reply = wire::answer(id, &answer);
        self.sent(&reply);
        reply
    }

    fn fault(&self, fault: &Fault, bytes: &[u8], arrived: Instant) {
        let mut state = self.state();
        let conduct = &mut state.conduct;
        match fault.kind {
            FaultKind::NotJson => {
                conduct.noise += 1;
                if conduct.first_noise.is_none() {
                    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(1_000)]);
                    conduct.first_noise = Some(quoted(&self.redactor.hide(&text)));
                }
            }
            FaultKind::NotUtf8 => conduct.not_utf8 += 1,
            FaultKind::TooDeep => conduct.oversized += 1,
            FaultKind::NotJsonRpc => conduct.malformed += 1,
        }
        let noise = conduct.noise + conduct.not_utf8 + conduct.malformed;
        drop(state);
        if fault.kind != FaultKind::NotJson {
            self.fail(fault.id.as_ref(), &fault.error, arrived);
        }
        if noise > self.limits.noise {
            let why = format!("it sent more than {} lines that are no messages", self.limits.noise);
            self.end(&CallError::Closed { why });
        }
    }

    /// Gives an error to whoever waits for the id; without one, to the only one who waits.
    fn fail(&self, id: Option<&Value>, error: &CallError, arrived: Instant) {
        let mut state = self.state();
        let id = match id {
            Some(id) => id.as_u64(),
            None if state.waiting.len() == 1 => state.waiting.keys().next().copied(),
            None => None,
        };
        let Some(slot) = id.and_then(|id| state.waiting.remove(&id)) else { return };
        drop(state);
        deliver(slot, Err(self.redacted(error.clone())), arrived);
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

fn deliver(slot: Slot, outcome: Result<Value, CallError>, arrived: Instant) {
    // A receiver that is gone timed out at this very moment.
    let _ = slot.sender.send(Delivered { outcome, arrived, progress: slot.progress });
}

/// Somebody who waits for an answer.
pub(crate) struct Waiting<'b> {
    board: &'b Board,
    id: u64,
    receiver: oneshot::Receiver<Delivered>,
}

impl Waiting<'_> {
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
        board.receive(message.to_string().as_bytes(), Instant::now())
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
        assert_eq!(
            (conduct.repeated_answers, conduct.late_answers, conduct.unknown_ids),
            (1, 1, 2)
        );
    }

    #[test]
    fn requests_of_the_server_are_answered_by_policy() {
        let board = board();
        let replies = say(&board, &json!({"jsonrpc": "2.0", "id": "s1", "method": "ping"}));
        assert_eq!(replies, [br#"{"jsonrpc":"2.0","id":"s1","result":{}}"#.to_vec()]);
        let refused =
            say(&board, &json!({"jsonrpc": "2.0", "id": 5, "method": "sampling/createMessage"}));
        assert!(String::from_utf8_lossy(&refused[0]).contains("refused"));
        assert_eq!(board.conduct().requests_refused, 1);
    }

    #[test]
    fn noise_without_end_ends_the_session() {
        let board = Board::new(
            Limits { noise: 3, ..Limits::default() },
            Policies::default(),
            Redactor::default(),
        );
        for _ in 0..4 {
            board.receive(b"Server is listening!", Instant::now());
        }
        assert!(matches!(board.wait_for(1), Err(CallError::Closed { .. })));
        assert_eq!(board.conduct().first_noise.as_deref(), Some("Server is listening!"));
    }

    #[test]
    fn an_error_without_an_id_is_for_the_only_one_who_waits() {
        let board = board();
        let id = board.next_id();
        let mut waiting = board.wait_for(id).unwrap();
        say(
            &board,
            &json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "?"}}),
        );
        assert!(matches!(
            waiting.try_answer().unwrap().outcome,
            Err(CallError::Protocol { code: -32700, .. })
        ));
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
