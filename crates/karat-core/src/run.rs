//! Asking a system every question and keeping its answers.
//!
//! `collect` is the only loop that talks to a system; it knows nothing about scores. It asks with
//! bounded concurrency, enforces time limits, retries what is worth retrying, and passes each outcome
//! to its [`Listener`]s, of which the journal is the first: an outcome counts once it is on disk.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::task::JoinSet;

use karat_io::{Failure, FailureClass};

use crate::journal::{Entry, JournalError, Outcome};

/// Something that can be asked one question at a time.
pub trait System: Send + Sync + 'static {
    /// The question.
    type Question: Send + Sync + 'static;
    /// The answer: raw facts, not scores.
    type Answer: Serialize + DeserializeOwned + Send + 'static;

    /// Asks one question. `run` counts from 0 and is for systems that want a seed for each run.
    fn ask(
        &self,
        run: u32,
        question: &Self::Question,
    ) -> impl Future<Output = Result<Self::Answer, Failure>> + Send;
}

/// This many invalid answers before the first valid one end a run: the adapter speaks another language.
pub(crate) const INVALID_IN_A_ROW: usize = 5;

/// A system that asks for a longer pause than this is not waited for.
pub(crate) const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The way to ask.
#[derive(Clone, Debug)]
pub struct Options {
    /// The number of times each question is asked.
    pub runs: u32,
    /// The number of questions that are under way at once.
    pub concurrency: usize,
    /// The time an answer may take.
    pub timeout: Duration,
    /// The number of times a failed question is asked again.
    pub retries: u32,
    /// The time to wait before the first retry; doubled for each further one.
    pub backoff: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            runs: 1,
            concurrency: 1,
            timeout: Duration::from_secs(30),
            retries: 0,
            backoff: Duration::from_millis(200),
        }
    }
}

/// An event of a run.
#[derive(Debug)]
pub enum Event<'a, A> {
    /// Asking begins.
    Started {
        /// The number of answers there will be.
        total: usize,
        /// The number that the journal already held.
        resumed: usize,
    },
    /// One more outcome is known.
    Answered(&'a Entry<A>),
    /// All outcomes are known.
    Finished,
}

/// Receives the events of a run; never reaches back.
pub trait Listener<A> {
    /// Handles one event.
    ///
    /// # Errors
    /// If the run must not go on, for instance because an outcome cannot be written down.
    fn on(&mut self, event: &Event<'_, A>) -> Result<(), RunError>;
}

/// The progress of a run for a person: the events without the answers, and what a system reports
/// while it works on a long question.
pub trait Progress: Send + Sync {
    /// Asking begins with this many answers to come, some of them already known.
    fn started(&self, total: usize, resumed: usize);
    /// A system is working on this (a tool, a step).
    fn working(&self, _on: &str) {}
    /// A long step of the run begins, before or between the answers.
    fn stage(&self, _what: &str) {}
    /// One more outcome is known.
    fn answered(&self, id: &str, failed: bool);
    /// All outcomes are known.
    fn finished(&self);
}

/// Shows no progress.
pub struct Silent;

impl Progress for Silent {
    fn started(&self, _: usize, _: usize) {}
    fn answered(&self, _: &str, _: bool) {}
    fn finished(&self) {}
}

/// Passes the events of a run on to a [`Progress`].
pub(crate) struct ProgressListener<'a>(pub(crate) &'a dyn Progress);

impl<A> Listener<A> for ProgressListener<'_> {
    fn on(&mut self, event: &Event<'_, A>) -> Result<(), RunError> {
        match event {
            Event::Started { total, resumed } => self.0.started(*total, *resumed),
            Event::Answered(entry) => {
                let failed = matches!(entry.outcome, Outcome::Failure { .. });
                self.0.answered(&entry.id, failed);
            }
            Event::Finished => self.0.finished(),
        }
        Ok(())
    }
}

/// The reason why there are no observations.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The system was lost; what it had answered is in the journal.
    #[error("the system was lost at item {id}: {message}")]
    Lost {
        /// The item that was being asked.
        id: String,
        /// A description of the failure.
        message: String,
    },
    /// Nothing but invalid answers came.
    #[error(
        "the first {INVALID_IN_A_ROW} answers are all invalid, so the other {left} were skipped \
         (item {id}: {message})"
    )]
    Invalid {
        /// The item of the last of them.
        id: String,
        /// The mistake in its answer.
        message: String,
        /// The number of questions that were not asked.
        left: usize,
    },
    /// The journal failed.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// There was nothing to ask.
    #[error("nothing to measure: the dataset has no items")]
    Nothing,
}

/// Items without a usable answer.
#[derive(Clone, Debug, PartialEq)]
pub struct Failures {
    /// The number of them.
    pub failed: usize,
    /// The total.
    pub asked: usize,
    /// The item of the first.
    pub id: String,
    /// The reason why it has none.
    pub message: String,
}

impl Failures {
    /// The failures of a run; `None` if every answer can be used. A failure has no answer; of an answer,
    /// `problem` says why it cannot be used.
    pub fn of<A>(
        entries: &[Entry<A>],
        problem: impl Fn(&str, &A) -> Option<String>,
    ) -> Option<Failures> {
        let lacking = entries.iter().filter_map(|entry| {
            let message = match &entry.outcome {
                Outcome::Failure { class, message } => Some(format!("{class}: {message}")),
                Outcome::Answer(answer) => problem(&entry.id, answer),
            };
            message.map(|message| (entry.id.clone(), message))
        });
        Failures::among(entries.len(), lacking)
    }

    /// The failures among `asked` items, by id and reason; `None` without any.
    pub fn among(
        asked: usize,
        mut lacking: impl Iterator<Item = (String, String)>,
    ) -> Option<Failures> {
        let (id, message) = lacking.next()?;
        Some(Failures { failed: 1 + lacking.count(), asked, id, message })
    }

    /// Returns whether they are more than the share `allowed`. That everything failed is never allowed.
    pub fn exceed(&self, allowed: f64) -> bool {
        self.failed == self.asked || self.failed as f64 > allowed * self.asked as f64
    }
}

/// Asks every question in every run, but for those that `known` already answers. The outcomes come
/// back in the order of run, then question, whatever the order in which they arrived.
///
/// # Errors
/// If nothing is to be asked, the system is lost, or a listener ends the run.
pub async fn collect<S: System>(
    system: Arc<S>,
    questions: &[(String, Arc<S::Question>)],
    options: &Options,
    known: Vec<Entry<S::Answer>>,
    listeners: &mut [&mut (dyn Listener<S::Answer> + Send)],
) -> Result<Vec<Entry<S::Answer>>, RunError> {
    if questions.is_empty() {
        return Err(RunError::Nothing);
    }
    let total = questions.len() * options.runs as usize;
    let answers = |entry: &Entry<S::Answer>| matches!(entry.outcome, Outcome::Answer(_));
    let mut understood = known.iter().any(answers);
    let mut invalid = 0;
    let mut known: HashMap<(u32, String), Entry<S::Answer>> =
        known.into_iter().map(|entry| ((entry.run, entry.id.clone()), entry)).collect();

    let mut slots: Vec<Option<Entry<S::Answer>>> = Vec::with_capacity(total);
    let mut open = Vec::new();
    for run in 0..options.runs {
        for (id, question) in questions {
            let entry = known.remove(&(run, id.clone()));
            if entry.is_none() {
                open.push((slots.len(), run, id.clone(), Arc::clone(question)));
            }
            slots.push(entry);
        }
    }
    let mut notify = |event: Event<'_, S::Answer>| -> Result<(), RunError> {
        listeners.iter_mut().try_for_each(|listener| listener.on(&event))
    };
    notify(Event::Started { total, resumed: total - open.len() })?;

    let mut waiting = open.into_iter();
    let mut under_way = JoinSet::new();
    loop {
        while under_way.len() < options.concurrency.max(1) {
            let Some((slot, run, id, question)) = waiting.next() else { break };
            let system = Arc::clone(&system);
            let options = options.clone();
            under_way.spawn(async move {
                let (outcome, nanos) = ask(&*system, run, &question, &options).await;
                (slot, run, id, outcome, nanos)
            });
        }
        let Some(joined) = under_way.join_next().await else { break };
        let (slot, run, id, outcome, nanos) = match joined {
            Ok(done) => done,
            Err(error) => {
                return Err(RunError::Lost {
                    id: "?".to_owned(),
                    message: format!("the adapter stopped: {error}"),
                });
            }
        };
        let outcome = match outcome {
            Ok(answer) => Outcome::Answer(answer),
            Err(failure) if failure.lost => {
                return Err(RunError::Lost { id, message: failure.message });
            }
            Err(failure) => Outcome::Failure {
                class: failure.class.name().to_owned(),
                message: failure.message,
            },
        };
        let entry = Entry { run, id, nanos, outcome };
        notify(Event::Answered(&entry))?;
        match &entry.outcome {
            Outcome::Failure { class, message }
                if class == FailureClass::InvalidAnswer.name() && !understood =>
            {
                invalid += 1;
                let left = waiting.len() + under_way.len();
                if invalid == INVALID_IN_A_ROW && left > 0 {
                    let (id, message) = (entry.id, message.clone());
                    return Err(RunError::Invalid { id, message, left });
                }
            }
            _ => understood = true,
        }
        slots[slot] = Some(entry);
    }
    notify(Event::Finished)?;
    Ok(slots.into_iter().flatten().collect())
}

async fn ask<S: System>(
    system: &S,
    run: u32,
    question: &S::Question,
    options: &Options,
) -> (Result<S::Answer, Failure>, u64) {
    retry(options, || async {
        let answer = tokio::time::timeout(options.timeout, system.ask(run, question)).await;
        answer.unwrap_or_else(|_| {
            let message = format!("no answer within {:?}", options.timeout);
            Err(Failure::new(FailureClass::Timeout, message))
        })
    })
    .await
}

/// Attempts something until it succeeds, fails for good, or was tried again as often as the options
/// allow. Returns the last result and its time in nanoseconds; the time limit is left to the attempt.
pub async fn retry<A, F: Future<Output = Result<A, Failure>>>(
    options: &Options,
    mut attempt: impl FnMut() -> F,
) -> (Result<A, Failure>, u64) {
    let mut tries = 0;
    loop {
        let started = Instant::now();
        let answer = attempt().await;
        let nanos = u64::try_from(started.elapsed().as_nanos()).unwrap_or(u64::MAX);
        let wait = match &answer {
            Err(failure) if tries < options.retries => pause(failure, tries, options),
            _ => None,
        };
        let Some(wait) = wait else { return (answer.map_err(|why| hinted(why, options)), nanos) };
        tokio::time::sleep(wait).await;
        tries += 1;
    }
}

/// Says how to ask a busy system again, where that was not asked for.
fn hinted(mut failure: Failure, options: &Options) -> Failure {
    if failure.retry_after.is_some() && options.retries == 0 {
        failure.message.push_str("; set `retries` to retry a busy system");
    }
    failure
}

/// The time to wait before asking again; none if that makes no sense.
fn pause(failure: &Failure, attempt: u32, options: &Options) -> Option<Duration> {
    let worth_it = failure.class.worth_retrying() || failure.retry_after.is_some();
    let backoff = options.backoff.saturating_mul(1 << attempt.min(10));
    let asked = failure.retry_after.unwrap_or_default();
    (worth_it && !failure.lost && asked <= MAX_PAUSE).then(|| backoff.max(asked))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Answers with the length of the question; fails on the words it was given.
    struct Lengths {
        asked: Mutex<Vec<String>>,
        fail_first: Mutex<HashMap<String, Failure>>,
        fail_always: HashMap<String, Failure>,
    }

    impl Lengths {
        fn new() -> Lengths {
            Lengths {
                asked: Mutex::default(),
                fail_first: Mutex::default(),
                fail_always: HashMap::new(),
            }
        }
    }

    impl System for Lengths {
        type Question = String;
        type Answer = usize;

        async fn ask(&self, _: u32, question: &String) -> Result<usize, Failure> {
            self.asked.lock().unwrap().push(question.clone());
            if let Some(failure) = self.fail_first.lock().unwrap().remove(question) {
                return Err(failure);
            }
            if let Some(failure) = self.fail_always.get(question) {
                return Err(failure.clone());
            }
            if question == "hang" {
                std::future::pending::<()>().await;
            }
            // Later questions finish earlier, so that order must be restored.
            tokio::time::sleep(Duration::from_millis(20u64.saturating_sub(question.len() as u64)))
                .await;
            Ok(question.len())
        }
    }

    fn questions(words: &[&str]) -> Vec<(String, Arc<String>)> {
        words.iter().map(|word| (format!("id-{word}"), Arc::new((*word).to_owned()))).collect()
    }

    #[tokio::test]
    async fn outcomes_come_back_in_order_whatever_finished_first() {
        let options = Options { runs: 2, concurrency: 4, ..Options::default() };
        let words = ["a", "bb", "ccc", "dddd"];
        let entries =
            collect(Arc::new(Lengths::new()), &questions(&words), &options, vec![], &mut [])
                .await
                .unwrap();
        let found: Vec<_> = entries.iter().map(|e| (e.run, e.id.as_str())).collect();
        assert_eq!(found.len(), 8);
        assert!(found.is_sorted());
        assert_eq!(entries[2].outcome, Outcome::Answer(3));
    }

    #[tokio::test]
    async fn what_is_known_is_not_asked_again() {
        let system = Arc::new(Lengths::new());
        let known =
            vec![Entry { run: 0, id: "id-bb".into(), nanos: 1, outcome: Outcome::Answer(99) }];
        let entries = collect(
            Arc::clone(&system),
            &questions(&["a", "bb"]),
            &Options::default(),
            known,
            &mut [],
        )
        .await
        .unwrap();
        assert_eq!(*system.asked.lock().unwrap(), ["a"]);
        assert_eq!(entries[1].outcome, Outcome::Answer(99));
    }

    #[tokio::test]
    async fn a_passing_fault_is_retried_and_a_refusal_is_not() {
        let mut system = Lengths::new();
        system
            .fail_first
            .lock()
            .unwrap()
            .insert("a".into(), Failure::new(FailureClass::Transport, "reset"));
        system.fail_always.insert("bb".into(), Failure::new(FailureClass::Refused, "no"));
        let system = Arc::new(system);
        let options =
            Options { retries: 2, backoff: Duration::from_millis(1), ..Options::default() };
        let entries =
            collect(Arc::clone(&system), &questions(&["a", "bb"]), &options, vec![], &mut [])
                .await
                .unwrap();
        assert_eq!(entries[0].outcome, Outcome::Answer(1));
        assert!(
            matches!(&entries[1].outcome, Outcome::Failure { class, .. } if class == "refused")
        );
        assert_eq!(*system.asked.lock().unwrap(), ["a", "a", "bb"]);
    }

    #[test]
    fn a_busy_system_is_asked_again_when_it_said_and_not_much_later() {
        let options = Options { backoff: Duration::from_millis(200), ..Options::default() };
        let busy = |seconds| Failure {
            retry_after: Some(Duration::from_secs(seconds)),
            ..Failure::new(FailureClass::Refused, "HTTP 429")
        };
        assert_eq!(pause(&busy(3), 0, &options), Some(Duration::from_secs(3)));
        assert_eq!(pause(&busy(0), 1, &options), Some(Duration::from_millis(400)));
        assert_eq!(pause(&busy(3_600), 0, &options), None);
        let refused = Failure::new(FailureClass::Refused, "HTTP 500");
        assert_eq!(pause(&refused, 0, &options), None);
        assert_eq!(pause(&Failure::lost("gone"), 0, &options), None);
    }

    #[tokio::test]
    async fn a_hanging_question_is_a_timeout_and_the_rest_goes_on() {
        let options = Options { timeout: Duration::from_millis(60), ..Options::default() };
        let entries = collect(
            Arc::new(Lengths::new()),
            &questions(&["hang", "a"]),
            &options,
            vec![],
            &mut [],
        )
        .await
        .unwrap();
        assert!(
            matches!(&entries[0].outcome, Outcome::Failure { class, .. } if class == "timeout")
        );
        assert_eq!(entries[1].outcome, Outcome::Answer(1));
    }

    #[tokio::test]
    async fn a_lost_system_ends_the_run_and_names_the_item() {
        let mut system = Lengths::new();
        system.fail_always.insert("bb".into(), Failure::lost("exit status 1"));
        let error = collect(
            Arc::new(system),
            &questions(&["a", "bb"]),
            &Options::default(),
            vec![],
            &mut [],
        )
        .await
        .unwrap_err();
        assert!(error.to_string().contains("id-bb"), "{error}");
    }

    #[tokio::test]
    async fn an_adapter_of_another_shape_is_not_asked_everything() {
        let mut system = Lengths::new();
        for n in 0..20 {
            let wrong = Failure::new(FailureClass::InvalidAnswer, "a list instead of an object");
            system.fail_always.insert(format!("q{n}"), wrong);
        }
        let words: Vec<String> = (0..20).map(|n| format!("q{n}")).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (system, options) = (Arc::new(system), Options::default());
        let asked = questions(&words);
        let ended = collect(Arc::clone(&system), &asked, &options, vec![], &mut []).await;
        let message = ended.unwrap_err().to_string();
        assert!(message.contains("first 5") && message.contains("a list instead"), "{message}");
        assert_eq!(system.asked.lock().unwrap().len(), INVALID_IN_A_ROW);
        // After one valid answer the others are failures of their own items.
        let known = Entry { run: 0, id: "id-q0".into(), nanos: 1, outcome: Outcome::Answer(1) };
        let ended = collect(system, &asked, &options, vec![known], &mut []).await;
        assert_eq!(ended.unwrap().len(), 20);
    }

    #[tokio::test]
    async fn nothing_to_ask_is_an_error() {
        let asked =
            collect(Arc::new(Lengths::new()), &[], &Options::default(), vec![], &mut []).await;
        assert!(matches!(asked, Err(RunError::Nothing)));
    }

    #[test]
    fn only_more_than_the_allowed_share_is_an_excess() {
        let outcome = |n: usize| match n {
            0 => Outcome::Failure { class: "timeout".to_owned(), message: "late".to_owned() },
            n => Outcome::Answer(n),
        };
        let entries: Vec<Entry<usize>> = (0..4)
            .map(|n| Entry { run: 0, id: format!("q{n}"), nanos: 0, outcome: outcome(n) })
            .collect();
        let unusable = |_: &str, answer: &usize| (*answer == 3).then(|| "three".to_owned());
        let failures = Failures::of(&entries, unusable).unwrap();
        assert_eq!((failures.failed, failures.asked), (2, 4));
        assert_eq!((failures.id.as_str(), failures.message.as_str()), ("q0", "timeout: late"));
        assert!(failures.exceed(0.4) && !failures.exceed(0.5));
        assert_eq!(Failures::of(&entries[1..3], unusable), None);
        // Whatever is allowed, something must have an answer.
        assert!(Failures::of(&entries[..1], unusable).unwrap().exceed(1.0));
    }
}
