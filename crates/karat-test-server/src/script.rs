//! The language of scripts. README.md documents it for authors of tests.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A server.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Script {
    /// The name in `serverInfo`; `test` if not set.
    pub(crate) name: Option<String>,
    /// The version in `serverInfo`; `1` if not set.
    pub(crate) version: Option<String>,
    /// The revision in the answer to `initialize`; that of the client if not set.
    pub(crate) revision: Option<String>,
    /// The capabilities; `{tools: {}}` if not set.
    pub(crate) capabilities: Option<Value>,
    /// A file to which `start`, and the tool and the argument `id` of each call, are appended.
    pub(crate) log: Option<String>,
    /// Runs each call on a thread of its own.
    pub(crate) concurrent: bool,
    /// Refuses requests over HTTP whose `Host` or `Origin` is not its own.
    pub(crate) own_host: bool,
    /// Refuses calls over HTTP with an `Mcp-Param-…` header that is not the value of an argument, and requests about
    /// a task without its id in the `Mcp-Name` header.
    pub(crate) own_params: bool,
    /// Replacements in the text of every message, such as `[["/", "\\/"]]`.
    pub(crate) replace: Vec<(String, String)>,
    /// Steps before the first message is read.
    pub(crate) start: Vec<Step>,
    /// Steps after the input has ended.
    pub(crate) end: Vec<Step>,
    /// Steps for methods other than `tools/call`; `other` for all that are not named.
    pub(crate) methods: BTreeMap<String, Vec<Step>>,
    /// The tools.
    pub(crate) tools: Vec<Tool>,
}

/// A tool: its definition and its behaviour.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Tool {
    /// The steps of a call; `[echo]` if not set.
    #[serde(rename = "do", default)]
    pub(crate) steps: Option<Vec<Step>>,
    /// Lists the tool only once this variable is set.
    pub(crate) listed_when: Option<String>,
    /// All other keys. `inputSchema` is `{type: object}` if it is not set.
    #[serde(flatten)]
    pub(crate) definition: Map<String, Value>,
}

/// One step. A step that answers does not end the list.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Step {
    /// Answers with the arguments as text.
    Echo,
    /// Answers with a text.
    Text(String),
    /// Answers with a result.
    Result(Value),
    /// Answers with a tool error.
    Fail(String),
    /// Answers with a protocol error: `{code, message, data}`.
    Error(Value),
    /// Answers as without a script.
    Default,
    /// The id of the following answers; `text` makes the id of the request a string.
    AnswerAs(Value),
    /// Sends any JSON.
    Message(Value),
    /// Sends a notification.
    Notify(Notify),
    /// Sends a progress notification, if the client asked for it.
    Progress(Progress),
    /// Sends a request and waits for its answer, which is then `${answer}`.
    Ask(Notify),
    /// Writes a line that need not be a message.
    Line(String),
    /// Writes text without a line end.
    Raw(String),
    /// Writes bytes, given in hexadecimal.
    Hex(String),
    /// Writes a character many times.
    Fill(Fill),
    /// Writes to stderr.
    Stderr(String),
    /// Waits for a number of milliseconds; a list is used in turn.
    WaitMs(Value),
    /// Waits for ever.
    Hang,
    /// Ends the process with this code.
    Exit(i32),
    /// Repeats steps.
    Repeat(Repeat),
    /// Repeats steps without end.
    Forever(Vec<Step>),
    /// Holds the call until this many are held, and then continues them, the last one first.
    Hold(usize),
    /// Runs a command and saves its output without the final line end.
    Run(Run),
    /// Starts a process in the background, with the output of this one; its id is then `${child}`.
    Spawn(Vec<String>),
    /// Writes a file at once.
    Write(Write),
    /// Sets variables.
    Set(BTreeMap<String, Value>),
    /// Chooses steps by a condition.
    When(Box<When>),
    /// Answers with a tool error and ends the call if the arguments do not match a schema.
    Check(Value),
    /// Keeps things by id.
    Store(Store),
    /// Answers with an HTTP status and no body.
    Status(String),
    /// Writes the bytes of an HTTP response.
    Http(String),
    /// Closes the HTTP connection.
    Close,
}

/// A message with a method.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notify {
    pub(crate) method: String,
    pub(crate) params: Option<Value>,
}

/// A progress notification.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
    pub(crate) progress: f64,
    pub(crate) total: Option<f64>,
}

/// A character, many times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fill {
    pub(crate) with: char,
    /// A number or a placeholder for one.
    pub(crate) bytes: Value,
}

/// Steps, many times.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Repeat {
    pub(crate) times: u64,
    #[serde(rename = "do")]
    pub(crate) steps: Vec<Step>,
}

/// A command whose output is saved.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Run {
    pub(crate) command: Vec<String>,
    pub(crate) save: String,
}

/// A file to write.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Write {
    pub(crate) file: String,
    pub(crate) text: String,
}

/// A condition: all keys that are set must hold.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct When {
    /// The request has this argument (or parameter, in `methods`).
    pub(crate) argument: Option<String>,
    /// This variable is set.
    pub(crate) variable: Option<String>,
    /// This is the n-th request of the tool or method.
    pub(crate) count: Option<u64>,
    /// This is at least the n-th start that the log shows.
    pub(crate) min_start: Option<u64>,
    /// This is at most the n-th start that the log shows.
    pub(crate) max_start: Option<u64>,
    /// The arguments hold a negative number at any depth.
    pub(crate) negative: bool,
    /// The parameters of the request, all of them, match this schema. Placeholders are filled in.
    pub(crate) request: Option<Value>,
    /// The request has more than this many bytes.
    pub(crate) bytes_above: Option<usize>,
    pub(crate) then: Vec<Step>,
    pub(crate) otherwise: Vec<Step>,
}

/// An action on the things that the server keeps. Every action answers.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Store {
    /// Keeps a new thing: `{"id": "id1"}`.
    Create,
    /// `{"id": …}` for the argument `id`, or a tool error.
    Get,
    /// Forgets the thing with the argument `id`, or a tool error.
    Delete,
    /// `{"count": …}`.
    Count,
}
