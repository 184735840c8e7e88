//! The spans that execute a tool, and the call in each.

use serde_json::Value;

use super::Span;
use crate::formats::dialog::{arguments_of, plain_text, result_value, structured};
use crate::formats::exact::restore_one;
use crate::trace::{CallError, CallMade};

const ARGUMENTS: [&str; 11] = [
    "gen_ai.tool.call.arguments",
    "gen_ai.tool.arguments",
    "gen_ai.tool.input",
    "gen_ai.tool.parameters",
    "mcp.request.arguments",
    "tool_arguments",
    "ai.toolCall.args",
    "gcp.vertex.agent.tool_call_args",
    "traceloop.entity.input",
    "input.value",
    // OpenInference defines it as the arguments; some libraries write the tool's schema here.
    "tool.parameters",
];
const RESULTS: [&str; 9] = [
    "gen_ai.tool.call.result",
    "gen_ai.tool.result",
    "gen_ai.tool.output",
    "tool_response",
    "ai.toolCall.result",
    "gcp.vertex.agent.tool_response",
    "gen_ai.tool.message",
    "traceloop.entity.output",
    "output.value",
];

/// Marks the spans of handoffs.
pub(super) const HANDOFF: &str = "openai_agents.handoff";

impl Span {
    pub(super) fn is_tool(&self) -> bool {
        // The results of parallel calls once more, as Google's ADK writes them; the step by which DSPy's agents
        // end; and the handoff of openai-agents, which is a call of the model and not a tool's name.
        let is_handoff =
            self.name.starts_with("handoff to ") && self.text(&["tool.name"]).is_none();
        if self.text(&["gen_ai.tool.name"]) == Some("(merged tools)")
            || self.name == "finish.__call__"
            || is_handoff
        {
            return false;
        }
        matches!(self.text(&["gen_ai.operation.name"]), Some("execute_tool" | "tool.execute"))
            || self.text(&["mcp.method.name"]) == Some("tools/call")
            || self.text(&["openinference.span.kind"]) == Some("TOOL")
            || self.text(&["traceloop.span.kind"]) == Some("tool")
            || self.text(&["ai.operationId"]) == Some("ai.toolCall")
    }

    /// Returns whether this is the record of a handoff, by openai-agents itself.
    pub(super) fn is_handoff(&self) -> bool {
        self.attributes.contains_key(HANDOFF)
    }

    pub(super) fn tool_name(&self) -> Option<&str> {
        let stated = [
            "gen_ai.tool.name",
            "tool.name",
            "mcp.tool.name",
            "ai.toolCall.name",
            "traceloop.entity.name",
        ];
        // By the conventions it ends the span's name too, and some SDKs have it only there.
        let in_name = || {
            let ends = ["tools/call ", "execute_tool "];
            let tool = ends.iter().find_map(|end| Some(self.name.rsplit_once(end)?.1.trim()));
            tool.filter(|tool| !tool.is_empty())
        };
        // Some instrumentations name the span after the tool, as a function that is called.
        let is_name = || {
            let named = self.text(&["openinference.span.kind"]) == Some("TOOL");
            let name = self.name.strip_suffix(".__call__").unwrap_or(&self.name);
            Some(name).filter(|name| named && !name.is_empty())
        };
        self.text(&stated).or_else(in_name).or_else(is_name)
    }

    /// The id of the model's call that this span executes.
    pub(super) fn call_id(&self) -> Option<String> {
        let stated = [
            "gen_ai.tool.call.id",
            "ai.toolCall.id",
            "tool_call.id",
            "tool.call.id",
            "tool_call_id",
        ];
        if let Some(id) = self.text(&stated) {
            return Some(id.to_owned());
        }
        // Inside what a framework passes to the tool, or got from it.
        let inside = |key: &&str| {
            let value = structured(self.attributes.get(*key)?);
            let value = value.get("output").filter(|inside| inside.is_object()).unwrap_or(&value);
            let kwargs = value.get("kwargs").unwrap_or(&Value::Null);
            let id = [value, kwargs].into_iter().find_map(|map| map.get("tool_call_id"));
            let call = (value.get("type").and_then(Value::as_str) == Some("tool_call"))
                .then(|| value.get("id"))
                .flatten();
            id.or(call).and_then(Value::as_str).map(str::to_owned)
        };
        ARGUMENTS.iter().chain(&RESULTS).find_map(inside)
    }

    pub(super) fn call(&self, first: u128) -> Option<CallMade> {
        let mut call = CallMade::named(self.tool_name()?);
        if let Some(server) = self.text(&["mcp.server.name", "karat.server"]) {
            call.server = Some(server.to_owned());
        }
        let mut recorded = ARGUMENTS.iter().filter_map(|key| self.anywhere(&[key]));
        if let Some(recorded) = recorded.find(|recorded| !is_schema(&structured(recorded))) {
            call.arguments = arguments_of(unwrapped(&structured(recorded)));
            recorded.as_str().iter().for_each(|text| restore_one(text, &mut call));
        }
        call.result = self.anywhere(&RESULTS).map(result_value);
        let class = self.text(&["error.type"]).map(str::to_owned);
        let failed = self.text(&["tool.status", "gen_ai.tool.status"]) == Some("error");
        if class.is_some() || self.failed.is_some() || failed {
            let said = || call.result.as_ref().map(plain_text).filter(|_| failed);
            let message = self.failed.clone().or_else(said).unwrap_or_default();
            call.error = Some(CallError { class: class.unwrap_or("error".into()), message });
        } else if call.result.is_none() && self.end > 0 && self.reports_errors() {
            // The span ended and says nothing of an error: the call went well, its result was left out.
            call.result = Some(Value::Null);
        }
        let milliseconds = |at: u128| at.saturating_sub(first) as f64 / 1e6;
        call.start_ms = Some(milliseconds(self.start));
        call.end_ms = (self.end >= self.start && self.end > 0).then(|| milliseconds(self.end));
        Some(call)
    }

    /// Returns whether the absence of an error means that there was none. MCP clients exist whose spans
    /// end alike whether or not the result had `isError`.
    fn reports_errors(&self) -> bool {
        self.succeeded || self.text(&["mcp.method.name"]).is_none()
    }
}

fn is_schema(value: &Value) -> bool {
    value.get("type").and_then(Value::as_str) == Some("object")
        && value.get("properties").is_some_and(Value::is_object)
}

/// The arguments inside what is wrapped around them.
fn unwrapped(value: &Value) -> &Value {
    let Value::Object(fields) = value else { return value };
    let inside = |key: &str| fields.get(key).filter(|inside| inside.is_object());
    let text = |key: &str| fields.get(key).filter(|inside| inside.is_string());
    // The name next to the arguments.
    if fields.contains_key("tool_name") && fields.contains_key("arguments") {
        return &fields["arguments"];
    }
    // LangChain's tool call, and the context that OpenLLMetry records with it.
    if fields.get("type").and_then(Value::as_str) == Some("tool_call")
        && let Some(args) = inside("args")
    {
        return args;
    }
    if fields.contains_key("input_str") && fields.contains_key("metadata") {
        return inside("inputs").or_else(|| text("input_str")).unwrap_or(value);
    }
    // A function as it was called, perhaps with options of the library. The names of arguments by position
    // are not known here.
    let by_position = |args: &Value| args.as_array().is_some_and(|args| !args.is_empty());
    let is_call = fields.contains_key("args") || fields.len() == 1;
    match inside("kwargs").filter(|_| is_call) {
        Some(_) if fields.get("args").is_some_and(by_position) => &Value::Null,
        Some(kwargs) => kwargs,
        None => value,
    }
}
