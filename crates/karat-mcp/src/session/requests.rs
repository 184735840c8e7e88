//! The requests of an open session, and their answers.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use reqwest::header::{HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Awaited, CallOptions, Link, Session, within};
use crate::error::CallError;
use crate::headers::ResponseHead;
use crate::http::{Post, Posted};
use crate::parameter_headers::ParameterHeaders;
use crate::pending_calls::{Delivered, PendingCall};
use crate::reply::{Definition, Reply};
use crate::wire;

/// Maximum number of rounds in which a server asks for more input before it answers a call.
const MAX_ROUNDS: usize = 10;

/// The extension of revision 2026-07-28 by which a server answers a call with a task.
pub const TASKS_EXTENSION: &str = "io.modelcontextprotocol/tasks";

/// A request, with the parts of it that headers repeat.
pub(super) struct Outgoing<'a, P> {
    pub(super) method: &'a str,
    pub(super) name: Option<&'a str>,
    pub(super) headers: &'a [(HeaderName, HeaderValue)],
    pub(super) params: P,
    pub(super) timeout: Duration,
    pub(super) progress: bool,
    pub(super) head: Option<&'a ResponseHead>,
    /// True if it declares the tasks extension.
    pub(super) tasks: bool,
}

#[derive(Serialize)]
struct WithMeta<'a, P> {
    #[serde(flatten)]
    params: P,
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    meta: Option<Meta<'a>>,
}

#[derive(Serialize)]
struct Meta<'a> {
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    fixed: Option<&'a Map<String, Value>>,
    #[serde(rename = "progressToken", skip_serializing_if = "Option::is_none")]
    progress: Option<u64>,
}

#[derive(Serialize)]
struct CallParams<'a> {
    name: &'a str,
    arguments: &'a Map<String, Value>,
    #[serde(rename = "inputResponses", skip_serializing_if = "Option::is_none")]
    input_responses: Option<&'a Map<String, Value>>,
    #[serde(rename = "requestState", skip_serializing_if = "Option::is_none")]
    request_state: Option<&'a Value>,
}

/// Answers to a server that asks for input before it answers a call.
#[derive(Default)]
struct Input {
    responses: Option<Map<String, Value>>,
    state: Option<Value>,
}

#[derive(Serialize)]
struct ListParams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    cursor: Option<&'a str>,
}

impl Session {
    /// All tools, in the order of the server.
    ///
    /// # Errors
    /// If the server does not answer, the answer is invalid, or there are too many pages.
    pub fn tools(&self) -> Awaited<'_, Result<Vec<Definition>, CallError>> {
        Box::pin(async move {
            match self.list("tools/list", "tools").await {
                Ok(tools) => {
                    let define = |(at, raw): (usize, Value)| {
                        Definition::new(raw)
                            .map_err(|why| CallError::invalid(format!("tool {}: {why}", at + 1)))
                    };
                    let tools: Result<Vec<Definition>, CallError> =
                        tools.into_iter().enumerate().map(define).collect();
                    if self.meta.is_some()
                        && let Ok(tools) = &tools
                    {
                        *self.parameters.lock().unwrap_or_else(PoisonError::into_inner) =
                            ParameterHeaders::of(tools);
                    }
                    tools
                }
                // A server without tools need not know the method.
                Err(CallError::Protocol { code: -32601, .. })
                    if self.server.capabilities.get("tools").is_none() =>
                {
                    Ok(Vec::new())
                }
                Err(error) => Err(error),
            }
        })
    }

    /// All entries of a list over all its pages, such as `prompts` of `prompts/list`. No further page is
    /// requested once they have taken longer than `start_timeout` and `call_timeout`.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use karat_mcp::{Options, Session};
    /// # use serde_json::{Value, json};
    /// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
    /// # struct Echo;
    /// # impl Respond for Echo {
    /// #     async fn call(&self, _: &Context, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(json!({"content": [{"type": "text", "text": arguments["text"]}]}))
    /// #     }
    /// #     async fn request(&self, _: &Context, method: &str, _: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(match method {
    /// #             "prompts/list" => json!({"prompts": [{"name": "greeting"}]}),
    /// #             _ => json!({"messages": []}),
    /// #         })
    /// #     }
    /// # }
    /// # let tools = ["echo", "other"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    /// # let offer = Offer { name: "echo".to_owned(), tools: tools.to_vec(), ..Offer::default() };
    /// # let (client, server) = tokio::io::duplex(1 << 16);
    /// # let (from_client, to_client) = tokio::io::split(server);
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// # let (read, write) = tokio::io::split(client);
    /// # let session = Session::over(read, write, None, &Options::default()).await?;
    /// let prompts = session.list("prompts/list", "prompts").await?;
    /// assert_eq!(prompts, [json!({"name": "greeting"})]);
    /// # Ok(()) }
    /// ```
    /// # Errors
    /// As [`Session::tools`].
    pub fn list<'a>(
        &'a self,
        method: &'a str,
        field: &'a str,
    ) -> Awaited<'a, Result<Vec<Value>, CallError>> {
        Box::pin(async move {
            let limits = &self.calls.limits;
            let max_time = self.options.start_timeout.max(self.options.call_timeout);
            let started = Instant::now();
            let mut entries = Vec::new();
            let mut bytes = 0_usize;
            let mut cursor: Option<String> = None;
            for number in 0..limits.pages {
                if number > 0 && started.elapsed() > max_time {
                    let seconds = max_time.as_secs_f64();
                    let said = format!(": {number} pages of {method} took more than {seconds} s");
                    return Err(CallError::Timeout { said });
                }
                let params = ListParams { cursor: cursor.as_deref() };
                let mut page = self.ask(method, None, params).await?;
                let Some(Value::Array(found)) = page.get_mut(field).map(Value::take) else {
                    let why = format!("the answer to {method} has no list `{field}`");
                    return Err(CallError::invalid(why));
                };
                bytes = found.iter().map(size).fold(bytes, usize::saturating_add);
                if bytes > limits.list_bytes {
                    return Err(CallError::TooLarge {
                        limit: limits.list_bytes,
                        what: "bytes in a list",
                    });
                }
                entries.extend(found);
                if entries.len() > limits.entries {
                    return Err(CallError::TooLarge { limit: limits.entries, what: "entries" });
                }
                let next = match page.get_mut("nextCursor").map(Value::take) {
                    None | Some(Value::Null) => return Ok(entries),
                    Some(Value::String(next)) => next,
                    Some(_) => return Err(CallError::invalid("`nextCursor` is not a string")),
                };
                if cursor.as_ref() == Some(&next) {
                    let why = format!("{method} does not end: the server repeats its cursor");
                    return Err(CallError::invalid(why));
                }
                cursor = Some(next);
            }
            Err(CallError::TooLarge { limit: limits.pages, what: "pages" })
        })
    }

    /// Calls a tool.
    ///
    /// # Errors
    /// If there is no result. A result with `isError` is a result.
    pub fn call<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
    ) -> Awaited<'a, Result<Reply, CallError>> {
        self.call_with(tool, arguments, CallOptions::default())
    }

    /// Calls a tool with settings of its own.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use karat_mcp::{Options, Session};
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
    /// # let (from_client, to_client) = tokio::io::split(server);
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// # let (read, write) = tokio::io::split(client);
    /// # let session = Session::over(read, write, None, &Options::default()).await?;
    /// use karat_mcp::CallOptions;
    ///
    /// let Value::Object(arguments) = json!({"text": "hello"}) else { unreachable!() };
    /// let options = CallOptions { progress: true, ..CallOptions::default() };
    /// let reply = session.call_with("echo", &arguments, options).await?;
    /// assert_eq!(reply.texts(), ["hello"]);
    /// // This tool sends no progress.
    /// assert!(reply.progress.is_empty());
    /// # Ok(()) }
    /// ```
    /// # Errors
    /// As [`Session::call`].
    pub fn call_with<'a>(
        &'a self,
        tool: &'a str,
        arguments: &'a Map<String, Value>,
        options: CallOptions,
    ) -> Awaited<'a, Result<Reply, CallError>> {
        Box::pin(async move {
            let started = Instant::now();
            let logins = || self.login.as_ref().map_or(Duration::ZERO, |login| login.paused());
            let before = logins();
            let headers = self.parameter_headers(tool, arguments);
            let mut input = Input::default();
            let mut progress = Vec::new();
            let mut rounds = 0;
            loop {
                let answer = self
                    .exchange(Outgoing {
                        method: "tools/call",
                        name: Some(tool),
                        headers: &headers,
                        params: CallParams {
                            name: tool,
                            arguments,
                            input_responses: input.responses.as_ref(),
                            request_state: input.state.as_ref(),
                        },
                        timeout: options.timeout.unwrap_or(self.options.call_timeout),
                        progress: options.progress,
                        head: options.head.as_ref(),
                        tasks: options.tasks,
                    })
                    .await?;
                let raw = answer.outcome?;
                if !raw.is_object() {
                    return Err(CallError::invalid("the result of the call is not an object"));
                }
                progress.extend(answer.progress);
                rounds += 1;
                if rounds < MAX_ROUNDS
                    && let Some(more) = self.requested_input(&raw)
                {
                    input = more;
                    continue;
                }
                return Ok(Reply {
                    is_error: raw.get("isError").and_then(Value::as_bool).unwrap_or(false),
                    raw,
                    latency: answer
                        .arrived
                        .saturating_duration_since(started)
                        .saturating_sub(logins().saturating_sub(before)),
                    progress,
                });
            }
        })
    }

    /// The answers to a result that asks for input, if the policies answer all of it.
    fn requested_input(&self, raw: &Value) -> Option<Input> {
        if self.meta.is_none() || raw.get("resultType")?.as_str()? != "input_required" {
            return None;
        }
        let mut responses = Map::new();
        for (key, request) in
            raw.get("inputRequests").and_then(Value::as_object).into_iter().flatten()
        {
            responses.insert(key.clone(), self.input_response(request).ok()?);
        }
        Some(Input { responses: Some(responses), state: raw.get("requestState").cloned() })
    }

    /// The answer of the policies to a request that came with a result, as `{method, params}`.
    ///
    /// # Errors
    /// If the policies refuse it, with the reason.
    pub fn input_response(&self, request: &Value) -> Result<Value, String> {
        let method = request.get("method").and_then(Value::as_str).unwrap_or_default();
        let params = request.get("params").unwrap_or(&Value::Null);
        self.calls.policies.answer(method, params).map_err(|(_, why)| why)
    }

    fn parameter_headers(
        &self,
        tool: &str,
        arguments: &Map<String, Value>,
    ) -> Vec<(HeaderName, HeaderValue)> {
        if self.meta.is_none() {
            return Vec::new();
        }
        self.parameters.lock().unwrap_or_else(PoisonError::into_inner).headers(tool, arguments)
    }

    /// Sends any other request.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use karat_mcp::{Options, Session};
    /// # use serde_json::{Map, Value, json};
    /// # use karat_mcp::serve::{self, Context, Offer, ProtocolError, Respond};
    /// # struct Echo;
    /// # impl Respond for Echo {
    /// #     async fn call(&self, _: &Context, _: &str, arguments: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(json!({"content": [{"type": "text", "text": arguments["text"]}]}))
    /// #     }
    /// #     async fn request(&self, _: &Context, method: &str, _: &Value) -> Result<Value, ProtocolError> {
    /// #         Ok(match method {
    /// #             "prompts/list" => json!({"prompts": [{"name": "greeting"}]}),
    /// #             _ => json!({"messages": []}),
    /// #         })
    /// #     }
    /// # }
    /// # let tools = ["echo", "other"].map(|name| json!({"name": name, "inputSchema": {"type": "object"}}));
    /// # let offer = Offer { name: "echo".to_owned(), tools: tools.to_vec(), ..Offer::default() };
    /// # let (client, server) = tokio::io::duplex(1 << 16);
    /// # let (from_client, to_client) = tokio::io::split(server);
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// # let (read, write) = tokio::io::split(client);
    /// # let session = Session::over(read, write, None, &Options::default()).await?;
    /// let params = Map::from_iter([("name".to_owned(), json!("greeting"))]);
    /// let prompt = session.request("prompts/get", &params).await?;
    /// assert_eq!(prompt["messages"], json!([]));
    /// # Ok(()) }
    /// ```
    /// # Errors
    /// If there is no result.
    pub fn request<'a>(
        &'a self,
        method: &'a str,
        params: &'a Map<String, Value>,
    ) -> Awaited<'a, Result<Value, CallError>> {
        self.request_with(method, params, CallOptions::default())
    }

    /// Sends any other request with settings of its own.
    ///
    /// # Errors
    /// As [`Session::request`].
    pub fn request_with<'a>(
        &'a self,
        method: &'a str,
        params: &'a Map<String, Value>,
        options: CallOptions,
    ) -> Awaited<'a, Result<Value, CallError>> {
        Box::pin(async move {
            let is_of_task = method.starts_with("tasks/");
            // A gateway routes the requests about a task by its id.
            let key = ["name", "uri"].into_iter().find(|key| params.contains_key(*key));
            let key = key.or_else(|| is_of_task.then_some("taskId"));
            let name = key.and_then(|key| params.get(key)).and_then(Value::as_str);
            let outgoing = Outgoing {
                method,
                name,
                headers: &[],
                params,
                timeout: options.timeout.unwrap_or(self.options.call_timeout),
                progress: options.progress,
                head: options.head.as_ref(),
                tasks: options.tasks || is_of_task,
            };
            self.exchange(outgoing).await?.outcome
        })
    }

    /// Sends a notification.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # use karat_mcp::{Options, Session};
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
    /// # let (from_client, to_client) = tokio::io::split(server);
    /// # tokio::spawn(serve::over(offer, Echo, from_client, to_client));
    /// # let (read, write) = tokio::io::split(client);
    /// # let session = Session::over(read, write, None, &Options::default()).await?;
    /// session.notify("notifications/roots/list_changed", None).await?;
    /// let params = json!({"requestId": 7, "reason": "no longer needed"});
    /// session.notify("notifications/cancelled", Some(&params)).await?;
    /// # Ok(()) }
    /// ```
    /// # Errors
    /// If it cannot be sent.
    pub fn notify<'a>(
        &'a self,
        method: &'a str,
        params: Option<&'a Value>,
    ) -> Awaited<'a, Result<(), CallError>> {
        Box::pin(async move {
            let bytes = wire::notification(method, params);
            match &self.link {
                Link::Stdio(link) => link.send(&bytes),
                Link::Http(link) => {
                    let post = Post {
                        bytes: &bytes,
                        id: None,
                        method,
                        name: None,
                        headers: &[],
                        head: None,
                    };
                    within(self.login.as_deref(), self.options.call_timeout, link.post(post))
                        .await
                        .ok_or_else(CallError::timeout)?
                        .map(|_| ())
                }
                Link::Sse(link) => {
                    tokio::time::timeout(self.options.call_timeout, link.post(&bytes))
                        .await
                        .map_err(|_| CallError::timeout())?
                }
            }
        })
    }

    async fn ask<P: Serialize>(
        &self,
        method: &str,
        name: Option<&str>,
        params: P,
    ) -> Result<Value, CallError> {
        let timeout = self.options.call_timeout;
        let outgoing = Outgoing {
            method,
            name,
            headers: &[],
            params,
            timeout,
            progress: false,
            head: None,
            tasks: false,
        };
        self.exchange(outgoing).await?.outcome
    }

    pub(super) async fn exchange<P: Serialize>(
        &self,
        outgoing: Outgoing<'_, P>,
    ) -> Result<Delivered, CallError> {
        let id = self.calls.next_id();
        let fixed = if outgoing.tasks { &self.tasks_meta } else { &self.meta };
        let meta = (fixed.is_some() || outgoing.progress)
            .then(|| Meta { fixed: fixed.as_ref(), progress: outgoing.progress.then_some(id) });
        let bytes = match meta {
            Some(meta) => {
                let params = WithMeta { params: outgoing.params, meta: Some(meta) };
                wire::request(id, outgoing.method, Some(params))
            }
            None => wire::request(id, outgoing.method, Some(outgoing.params)),
        };
        let post = Post {
            bytes: &bytes,
            id: Some(id),
            method: outgoing.method,
            name: outgoing.name,
            headers: outgoing.headers,
            head: outgoing.head,
        };
        if outgoing.progress {
            self.calls.give_token(id);
        }
        let mut waiting = self.calls.register(id)?;
        let answer = self.send_and_wait(&mut waiting, post);
        if let Some(answer) = within(self.login.as_deref(), outgoing.timeout, answer).await {
            return answer;
        }
        let said = waiting.describe_violations();
        drop(waiting);
        self.cancel(id);
        Err(CallError::Timeout { said })
    }

    async fn send_and_wait(
        &self,
        waiting: &mut PendingCall<'_>,
        post: Post<'_>,
    ) -> Result<Delivered, CallError> {
        let link = match &self.link {
            Link::Stdio(link) => {
                if let Err(error) = link.send(post.bytes) {
                    // The reason for its end says more than the failed write.
                    return match error {
                        CallError::Closed { .. } => Ok(waiting.answer().await),
                        other => Err(other),
                    };
                }
                return Ok(waiting.answer().await);
            }
            Link::Sse(link) => {
                link.post(post.bytes).await?;
                return Ok(waiting.answer().await);
            }
            Link::Http(link) => link,
        };
        let posting = link.post(post);
        tokio::pin!(posting);
        // The answer may come before its stream ends, or on another stream.
        let posted = tokio::select! {
            biased;
            answer = waiting.answer() => return Ok(answer),
            posted = &mut posting => posted,
        };
        if let Some(answer) = waiting.try_answer() {
            return Ok(answer);
        }
        match posted? {
            Posted::Accepted => Ok(waiting.answer().await),
            Posted::Finished => Err(CallError::invalid(format!(
                "the response does not hold an answer to the request{}",
                waiting.describe_violations()
            ))),
        }
    }

    /// Sends a cancellation.
    fn cancel(&self, id: u64) {
        let params = json!({"requestId": id, "reason": "no answer in time"});
        let bytes = wire::notification("notifications/cancelled", Some(&params));
        match &self.link {
            Link::Stdio(link) => {
                let _ = link.send(&bytes);
            }
            // In revisions without a handshake, closing the stream cancels.
            Link::Http(link) if self.meta.is_none() => {
                link.post_unattended(bytes, "notifications/cancelled");
            }
            Link::Http(_) => {}
            Link::Sse(link) => link.post_unattended(bytes),
        }
    }
}

/// The bytes of a value as compact JSON, without escapes.
fn size(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 4,
        Value::Number(_) => 8,
        Value::String(text) => text.len() + 2,
        Value::Array(items) => items.iter().map(|item| size(item) + 1).sum::<usize>() + 2,
        Value::Object(fields) => {
            fields.iter().map(|(key, field)| key.len() + 4 + size(field)).sum::<usize>() + 2
        }
    }
}
