//! One run of a task: ask the model, make the calls that it asks for, pass back the results, until it
//! answers or a budget is spent.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Map, Value, json};

use super::model::{self, Api, Said};
use super::offer::{self, Offer};
use super::world::{Connection, Mismatch, OUT_OF_TIME};
use super::{Config, Job};
use crate::trace::{Arguments, CallError, CallMade, Failed, Setting, Trace, Turns};

/// A run in progress.
pub(super) struct Conversation<'j> {
    job: &'j Job,
    config: &'j Config,
    /// The models and servers of this run.
    pub(super) connection: Connection,
    trace: Trace,
    messages: Vec<Value>,
    elapsed_ms: f64,
}

/// The next step.
enum Next {
    Ask,
    Done,
    OutOfTime,
}

impl<'j> Conversation<'j> {
    /// `run` counts from 1.
    pub(super) fn new(job: &'j Job, run: u32, config: &'j Config, connection: Connection) -> Self {
        let task = &job.task;
        let mut trace = Trace::of(task.id.clone());
        trace.run = run;
        trace.model = Some(job.model.name.clone());
        trace.setting = job.setting;
        trace.turns = if task.inputs.len() > 1 { Turns::Multi } else { Turns::Single };
        trace.case.clone_from(&task.case);
        trace.tags.clone_from(&task.tags);
        trace.servers.clone_from(&task.servers);
        trace.input = task.inputs.first().cloned();
        trace.expect.clone_from(&task.expect);
        Conversation { job, config, connection, trace, messages: Vec::new(), elapsed_ms: 0.0 }
    }

    /// Holds the conversation to its end. Failures of models and servers are part of the trace.
    ///
    /// # Errors
    /// If a recording does not have what is asked for.
    pub(super) async fn hold(&mut self) -> Result<Trace, Mismatch> {
        let offer = match self.offer().await? {
            Ok(offer) => offer,
            Err(error) => return Ok(self.fail("server", error)),
        };
        let mut inputs = self.job.task.inputs.iter();
        if let Some(system) = &self.config.system {
            self.messages.push(json!({"role": "system", "content": system}));
        }
        self.add_input(inputs.next());
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
                    Some(input) => self.add_input(Some(input)),
                    None => break,
                },
                Next::OutOfTime => {
                    self.trace.stopped = Some("time".to_owned());
                    break;
                }
            }
        }
        if let Err(error) = self.read_state(&offer).await? {
            return Ok(self.fail("state", error));
        }
        self.trace.usage.duration_ms = Some(self.elapsed_ms);
        self.trace.messages = std::mem::take(&mut self.messages);
        Ok(self.trace.clone())
    }

    fn add_input(&mut self, input: Option<&String>) {
        if let Some(input) = input {
            // An earlier answer does not answer this message.
            self.trace.output = None;
            self.messages.push(json!({"role": "user", "content": input}));
        }
    }

    fn spent(&self, asked: u32) -> Option<&'static str> {
        let budget = &self.config.budget;
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

    /// The remaining time.
    fn left(&self) -> Duration {
        let spent = Duration::try_from_secs_f64(self.elapsed_ms / 1000.0).unwrap_or(Duration::MAX);
        self.config.budget.agent_timeout.0.saturating_sub(spent)
    }

    /// The error of a budget on tokens if the endpoint does not report its usage.
    fn not_counted(&self) -> Option<CallError> {
        let (budget, usage) = (&self.config.budget, &self.trace.usage);
        let option = match (budget.tokens, budget.cost) {
            (Some(_), _) => "--max-tokens",
            (None, Some(_)) => "--max-cost",
            (None, None) => return None,
        };
        let counted = usage.input_tokens.is_some() && usage.output_tokens.is_some();
        (!counted).then(|| CallError {
            class: "no_usage".to_owned(),
            message: format!("{option} cannot be enforced: the endpoint does not report its usage"),
        })
    }

    /// Ends a run that could not be made: it has no scores, and is counted.
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
    ) -> Result<Result<Value, CallError>, Mismatch> {
        let exchange = self.connection.exchange(kind, request, &self.job.model, within).await?;
        self.elapsed_ms += exchange.ms;
        Ok(exchange.outcome())
    }

    async fn offer(&mut self) -> Result<Result<Offer, CallError>, Mismatch> {
        let mut offer = Offer::default();
        let mut servers: Vec<String> = Vec::new();
        if self.job.setting.has_tools() {
            servers.extend(self.job.task.servers.iter().cloned());
        }
        if self.job.setting == Setting::Distractors {
            servers.extend(self.config.distractors.iter().cloned());
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
        // The time of an agent does not include that of starting servers.
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
    ) -> Result<Result<Said, CallError>, Mismatch> {
        let model = std::sync::Arc::clone(&self.job.model);
        let said = if model.api == Api::Scripted {
            model::scripted(&self.job.task, self.job.setting, number)
        } else {
            let request = model.request(&self.messages, offer, u64::from(self.trace.run));
            match self.exchange("model", request, Some(self.left())).await? {
                Ok(answer) => model.read(&answer),
                Err(error) => Err(error),
            }
        };
        let Ok(said) = said else { return Ok(said) };
        let usage = &mut self.trace.usage;
        // A sum with an unknown part is not known.
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

    /// Makes the calls that the model asks for.
    async fn act(&mut self, said: Said, offer: &Offer) -> Result<Next, Mismatch> {
        self.messages.push(said.message());
        if said.calls.is_empty() {
            // An empty answer is an answer: it was recorded, and it is wrong.
            self.trace.output = Some(said.text.unwrap_or_default());
            return Ok(Next::Done);
        }
        // A model that still calls has not answered yet.
        self.trace.output = None;
        for (id, name, arguments) in said.calls {
            if self.left().is_zero() {
                return Ok(Next::OutOfTime);
            }
            let call = self.call(&name, &arguments, offer).await?;
            let text = match (&call.error, &call.result) {
                (Some(error), None) => format!("Error: {}", error.message),
                (_, Some(result)) => offer::text(result),
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
    ) -> Result<CallMade, Mismatch> {
        let start = self.elapsed_ms;
        let mut call = CallMade { arguments: Arguments::written(arguments), ..CallMade::default() };
        let Some((server, tool)) = offer.find(name) else {
            call.name = name.to_owned();
            call.error = Some(CallError {
                class: "unknown_tool".to_owned(),
                message: format!("no tool {name:?}"),
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

    /// Reads the state that the run left. A run whose state cannot be read is not scored.
    async fn read_state(&mut self, offer: &Offer) -> Result<Result<(), CallError>, Mismatch> {
        if self.job.task.state_calls.is_empty() || !self.job.setting.has_tools() {
            return Ok(Ok(()));
        }
        let spent = self.elapsed_ms;
        let mut state = Map::new();
        for call in &self.job.task.state_calls {
            let server = call.server.clone().or_else(|| offer.only_server());
            let request = json!({"server": server, "tool": call.tool, "arguments": call.arguments});
            match self.exchange("call", request, None).await? {
                Ok(result) => state.insert(call.name.clone(), offer::data(&result)),
                Err(CallError { class, message }) => {
                    let (name, tool) = (&call.name, &call.tool);
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
