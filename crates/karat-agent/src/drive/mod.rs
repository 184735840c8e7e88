//! Driving an agent: tasks × models × settings × runs over live MCP servers, every exchange recorded.
//!
//! An agent is a model behind an endpoint, or a plan in the task, in one loop: ask, call what it asks
//! to call, tell it what came back, until it answers or a budget is spent. Everything that comes from
//! outside (what the model said, what a tool returned, how long it took) goes through one place, the
//! [`World`], so a recording can stand in for it and the same traces come out.

mod model;
mod offer;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

pub use self::model::{Api, Model, Said};
use self::offer::Offer;
use self::world::OUT_OF_TIME;
pub(crate) use self::world::ask;
pub use self::world::{Exchange, Recording, Starter, World};
use crate::error::AgentError;
use crate::tasks::{Task, Tasks};
use crate::trace::{Arguments, CallError, CallMade, Failed, Setting, Trace, Turns};

/// What is run, how often, and within which bounds.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The models.
    pub models: Vec<Model>,
    /// How often each task is run.
    pub runs: u32,
    /// With what at hand.
    pub settings: Vec<Setting>,
    /// Servers that are of no use, for [`Setting::Distractors`].
    pub distractors: Vec<String>,
    /// What a run may cost.
    pub budget: Budget,
    /// How many runs are under way at once.
    pub concurrency: usize,
    /// What the model is told first.
    pub system: Option<String>,
}

/// What one run may cost.
#[derive(Clone, Copy, Debug)]
pub struct Budget {
    /// How often the model is asked.
    pub turns: u32,
    /// How many tokens it may use.
    pub tokens: Option<u64>,
    /// How long everything may take.
    pub time: Duration,
    /// How much it may cost, by the prices of the model.
    pub cost: Option<f64>,
}

impl Default for Budget {
    /// 20 turns, 5 minutes.
    fn default() -> Self {
        Budget { turns: 20, tokens: None, time: Duration::from_secs(300), cost: None }
    }
}

/// One run of one task, before it is made.
#[derive(Clone, Debug)]
pub struct Job {
    /// Which task.
    pub task: Arc<Task>,
    /// Which model.
    pub model: Arc<Model>,
    /// With what at hand.
    pub setting: Setting,
    /// Which run, from 1.
    pub run: u32,
}

impl Job {
    /// What tells it apart in a recording.
    pub fn key(&self) -> Value {
        json!({"id": self.task.id, "model": self.model.name, "setting": self.setting, "run": self.run})
    }
}

/// Every run that the settings ask for, in order.
///
/// # Errors
/// When a task cannot be run so.
pub fn jobs(tasks: &Tasks, settings: &Settings) -> Result<Vec<Job>, AgentError> {
    let mut jobs = Vec::new();
    for task in tasks.iter() {
        let task = Arc::new(task.clone());
        if task.inputs.is_empty() {
            return Err(AgentError::Usage(format!("task {:?} has no input to ask", task.id)));
        }
        for model in &settings.models {
            if model.api == Api::Scripted && task.plan.is_none() {
                return Err(AgentError::Usage(format!(
                    "task {:?} has no plan for the scripted agent; name a model with --endpoint, or \
                     add a plan",
                    task.id
                )));
            }
            let model = Arc::new(model.clone());
            for setting in &settings.settings {
                for run in 1..=settings.runs {
                    let (task, model) = (Arc::clone(&task), Arc::clone(&model));
                    jobs.push(Job { task, model, setting: *setting, run });
                }
            }
        }
    }
    Ok(jobs)
}

/// Makes every run, and hands out each as it is done, with its exchanges.
///
/// # Errors
/// When a recording does not have what is asked for.
pub async fn run(
    jobs: Vec<Job>,
    settings: &Settings,
    world: &World,
    on_done: &mut dyn FnMut(&Job, &Trace, &[Exchange]),
) -> Result<Vec<Trace>, AgentError> {
    let slots = Arc::new(Semaphore::new(settings.concurrency.max(1)));
    let settings = Arc::new(settings.clone());
    let mut running = JoinSet::new();
    for job in jobs {
        let (slots, settings) = (Arc::clone(&slots), Arc::clone(&settings));
        let world = world.clone();
        running.spawn(async move {
            // The semaphore is never closed.
            let _slot = slots.acquire_owned().await;
            let mut conversation = Conversation::new(&job, &settings, world.enter(&job));
            let trace = conversation.hold().await;
            let exchanges = conversation.inside.close().await;
            (job, trace, exchanges)
        });
    }
    let mut traces = Vec::new();
    while let Some(done) = running.join_next().await {
        let (job, trace, exchanges) =
            done.map_err(|error| AgentError::NotMeasured(format!("a run was lost: {error}")))?;
        let trace = trace?;
        on_done(&job, &trace, &exchanges);
        traces.push(trace);
    }
    traces.sort_by(|a, b| a.key().cmp(&b.key()));
    Ok(traces)
}

/// One run under way.
struct Conversation<'j> {
    job: &'j Job,
    settings: &'j Settings,
    inside: world::Inside,
    trace: Trace,
    messages: Vec<Value>,
    elapsed_ms: f64,
}

/// What comes next.
enum Next {
    Ask,
    Done,
    OutOfTime,
}

impl<'j> Conversation<'j> {
    fn new(job: &'j Job, settings: &'j Settings, inside: world::Inside) -> Self {
        let task = &job.task;
        let mut trace = Trace::of(task.id.clone());
        trace.run = job.run;
        trace.model = Some(job.model.name.clone());
        trace.setting = job.setting;
        trace.turns = if task.inputs.len() > 1 { Turns::Multi } else { Turns::Single };
        trace.case.clone_from(&task.case);
        trace.tags.clone_from(&task.tags);
        trace.servers.clone_from(&task.servers);
        trace.input = task.inputs.first().cloned();
        trace.expect.clone_from(&task.expect);
        Conversation { job, settings, inside, trace, messages: Vec::new(), elapsed_ms: 0.0 }
    }

    /// Holds the conversation to its end. What goes wrong outside is part of the trace.
    async fn hold(&mut self) -> Result<Trace, AgentError> {
        let offer = match self.offer().await? {
            Ok(offer) => offer,
            Err(error) => return Ok(self.fail("server", error)),
        };
        let mut inputs = self.job.task.inputs.iter();
        if let Some(system) = &self.settings.system {
            self.messages.push(json!({"role": "system", "content": system}));
        }
        self.hear(inputs.next());
        let mut asked = 0;
        loop {
            if let Some(spent) = self.spent(asked) {
                self.trace.stopped = Some(spent.to_owned());
                break;
            }
            asked += 1;
            let said = match self.ask(&offer, asked).await? {
                Ok(said) => said,
                Err(error) if error.class == OUT_OF_TIME => {
                    self.trace.stopped = Some("time".to_owned());
                    break;
                }
                Err(error) => return Ok(self.fail("endpoint", error)),
            };
            match self.act(said, &offer).await? {
                Next::Ask => {}
                Next::Done => match inputs.next() {
                    Some(input) => self.hear(Some(input)),
                    None => break,
                },
                Next::OutOfTime => {
                    self.trace.stopped = Some("time".to_owned());
                    break;
                }
            }
        }
        if let Err(error) = self.look(&offer).await? {
            return Ok(self.fail("state", error));
        }
        self.trace.usage.duration_ms = Some(self.elapsed_ms);
        self.trace.messages = std::mem::take(&mut self.messages);
        Ok(self.trace.clone())
    }

    fn hear(&mut self, input: Option<&String>) {
        if let Some(input) = input {
            // What was said before is no answer to this.
            self.trace.output = None;
            self.messages.push(json!({"role": "user", "content": input}));
        }
    }

    fn spent(&self, asked: u32) -> Option<&'static str> {
        let budget = &self.settings.budget;
        let (tokens, cost) = (self.trace.usage.tokens(), self.trace.usage.cost);
        let beyond = |most: Option<u64>| most.zip(tokens).is_some_and(|(most, used)| used >= most);
        if asked >= budget.turns {
            Some("turns")
        } else if beyond(budget.tokens) {
            Some("tokens")
        } else if self.left().is_zero() {
            Some("time")
        } else if budget.cost.zip(cost).is_some_and(|(most, used)| used >= most) {
            Some("cost")
        } else {
            None
        }
    }

    /// The time that is left to the agent.
    fn left(&self) -> Duration {
        let spent = Duration::try_from_secs_f64(self.elapsed_ms / 1000.0).unwrap_or(Duration::MAX);
        self.settings.budget.time.saturating_sub(spent)
    }

    /// What is wrong where a budget counts tokens and the endpoint does not say how many it used.
    fn not_counted(&self) -> Option<CallError> {
        let (budget, usage) = (&self.settings.budget, &self.trace.usage);
        let option = match (budget.tokens, budget.cost) {
            (Some(_), _) => "--max-tokens",
            (None, Some(_)) => "--max-cost",
            (None, None) => return None,
        };
        let counted = usage.input_tokens.is_some() && usage.output_tokens.is_some();
        (!counted).then(|| CallError {
            class: "no_usage".to_owned(),
            message: format!("{option} cannot be kept: the endpoint does not state its usage"),
        })
    }

    /// A run that could not be made: it has no scores, and is counted.
    fn fail(&mut self, stopped: &str, error: CallError) -> Trace {
        self.trace.stopped = Some(stopped.to_owned());
        self.trace.failed = Some(Failed { class: error.class, message: error.message });
        self.trace.messages = std::mem::take(&mut self.messages);
        self.trace.clone()
    }

    async fn exchange(
        &mut self,
        kind: &'static str,
        request: Value,
        within: Option<Duration>,
    ) -> Result<Result<Value, CallError>, AgentError> {
        let exchange = self.inside.exchange(kind, request, &self.job.model, within).await?;
        self.elapsed_ms += exchange.ms;
        Ok(exchange.outcome())
    }

    async fn offer(&mut self) -> Result<Result<Offer, CallError>, AgentError> {
        let mut offer = Offer::default();
        let mut servers: Vec<String> = Vec::new();
        if self.job.setting.has_tools() {
            servers.extend(self.job.task.servers.iter().cloned());
        }
        if self.job.setting == Setting::Distractors {
            servers.extend(self.settings.distractors.iter().cloned());
        }
        // A server that is named twice is one server.
        let mut known = BTreeSet::new();
        servers.retain(|server| known.insert(server.clone()));
        for server in servers {
            match self.exchange("tools", json!({"server": server}), None).await? {
                Ok(tools) => offer.add(&server, &tools),
                Err(error) => return Ok(Err(error)),
            }
        }
        // Starting servers is not what an agent's time is spent on.
        self.elapsed_ms = 0.0;
        if self.job.setting.has_tools() {
            self.trace.tools = Some(offer.definitions());
        }
        Ok(Ok(offer))
    }

    async fn ask(
        &mut self,
        offer: &Offer,
        number: u32,
    ) -> Result<Result<Said, CallError>, AgentError> {
        let model = Arc::clone(&self.job.model);
        let said = if model.api == Api::Scripted {
            model::scripted(&self.job.task, self.job.setting, number)
        } else {
            let request = model.request(&self.messages, offer, u64::from(self.job.run));
            match self.exchange("model", request, Some(self.left())).await? {
                Ok(answer) => model.read(&answer),
                Err(error) => Err(error),
            }
        };
        let Ok(said) = said else { return Ok(said) };
        let usage = &mut self.trace.usage;
        // A sum with an unknown part is unknown.
        let sum = |sum: Option<u64>, tokens: Option<u64>| match number {
            1 => tokens,
            _ => Some(sum?.saturating_add(tokens?)),
        };
        usage.input_tokens = sum(usage.input_tokens, said.input_tokens);
        usage.output_tokens = sum(usage.output_tokens, said.output_tokens);
        usage.cost = model.cost(usage);
        match self.not_counted() {
            Some(error) if model.api != Api::Scripted => Ok(Err(error)),
            _ => Ok(Ok(said)),
        }
    }

    /// Does what the model asks for.
    async fn act(&mut self, said: Said, offer: &Offer) -> Result<Next, AgentError> {
        self.messages.push(said.message());
        if said.calls.is_empty() {
            self.trace.output = Some(said.text.unwrap_or_default()).filter(|text| !text.is_empty());
            return Ok(Next::Done);
        }
        // Whoever still calls has not answered yet.
        self.trace.output = None;
        for (id, name, arguments) in said.calls {
            if self.left().is_zero() {
                return Ok(Next::OutOfTime);
            }
            let call = self.call(&name, &arguments, offer).await?;
            let text = match (&call.error, &call.result) {
                (Some(error), None) => format!("Error: {}", error.message),
                (_, Some(result)) => offer::words(result),
                (None, None) => String::new(),
            };
            self.messages.push(json!({"role": "tool", "tool_call_id": id, "content": text}));
            let cut_off = call.error.as_ref().is_some_and(|error| error.class == OUT_OF_TIME);
            self.trace.calls.push(call);
            if cut_off {
                return Ok(Next::OutOfTime);
            }
        }
        Ok(Next::Ask)
    }

    async fn call(
        &mut self,
        name: &str,
        arguments: &str,
        offer: &Offer,
    ) -> Result<CallMade, AgentError> {
        let start = self.elapsed_ms;
        let mut call = CallMade { arguments: Arguments::written(arguments), ..CallMade::default() };
        let Some((server, tool)) = offer.find(name) else {
            call.name = name.to_owned();
            call.error = Some(CallError {
                class: "unknown_tool".to_owned(),
                message: format!("there is no tool {name:?}"),
            });
            return Ok(call);
        };
        call.name = tool.to_owned();
        call.server = Some(server.to_owned());
        let Some(Value::Object(given)) = call.arguments.value() else {
            call.error = Some(CallError {
                class: "invalid_arguments".to_owned(),
                message: "the arguments are not a JSON object".to_owned(),
            });
            return Ok(call);
        };
        let request = json!({"server": server, "tool": tool, "arguments": given});
        match self.exchange("call", request, Some(self.left())).await? {
            Ok(result) => call.result = Some(result),
            Err(error) => call.error = Some(error),
        }
        call.start_ms = Some(start);
        call.end_ms = Some(self.elapsed_ms);
        Ok(call)
    }

    /// Looks at what the run left behind. What cannot be looked at is not known to be gone: then the run
    /// is not scored.
    async fn look(&mut self, offer: &Offer) -> Result<Result<(), CallError>, AgentError> {
        if self.job.task.state_calls.is_empty() || !self.job.setting.has_tools() {
            return Ok(Ok(()));
        }
        let spent = self.elapsed_ms;
        let mut state = Map::new();
        for look in &self.job.task.state_calls {
            let server = look.server.clone().or_else(|| offer.only_server());
            let request = json!({"server": server, "tool": look.tool, "arguments": look.arguments});
            match self.exchange("call", request, None).await? {
                Ok(result) => state.insert(look.name.clone(), offer::data(&result)),
                Err(CallError { class, message }) => {
                    let (name, tool) = (&look.name, &look.tool);
                    let message =
                        format!("the state {name:?} cannot be read by {tool:?}: {message}");
                    return Ok(Err(CallError { class, message }));
                }
            };
        }
        self.trace.state = Some(Value::Object(state));
        self.elapsed_ms = spent;
        Ok(Ok(()))
    }
}

/// How many runs failed, by class; the first message of each.
pub fn failures(traces: &[Trace]) -> BTreeMap<String, (u64, String)> {
    let mut failures: BTreeMap<String, (u64, String)> = BTreeMap::new();
    for failed in traces.iter().filter_map(|trace| trace.failed.as_ref()) {
        let entry = failures.entry(failed.class.clone()).or_insert((0, failed.message.clone()));
        entry.0 += 1;
    }
    failures
}
