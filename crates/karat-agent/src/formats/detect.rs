//! The format of a document, by its keys; and the names of known kinds of files that hold no traces.

use serde_json::Value;

use super::TraceFormat;
use super::chat::{CONVERSATIONS, state};
use super::dialog::{pieces, unknown_kind};
use crate::trace::fields::{Fields, is_list, is_object, list, typed};

/// The format of a document; none if it is not known.
pub(crate) fn detect(text: &str) -> Option<TraceFormat> {
    if is_list(text) {
        return match is_conversation(text) {
            true => Some(TraceFormat::Messages),
            false => detect(list(text).ok()?.first()?),
        };
    }
    let mut fields = Fields::parse(text).ok()?;
    let mut has = |keys: &[&str]| fields.any(keys).is_some();
    if has(&["resourceSpans", "resource_spans", "batches", "resourceLogs", "resource_logs"])
        || has(&["resourceMetrics", "resource_metrics", "scopeSpans"])
    {
        return Some(TraceFormat::Otlp);
    }
    let word = |key: &str| -> Option<String> {
        typed(Fields::parse(text).ok()?.raw(key).unwrap_or("null")).ok()
    };
    if word("schema").is_some_and(|schema| schema.starts_with("karat.recording/")) {
        return Some(TraceFormat::McpRecording);
    }
    if has(&["run_type"]) {
        return Some(TraceFormat::Langsmith);
    }
    if matches!(word("object").as_deref(), Some("trace" | "trace.span")) {
        return Some(TraceFormat::OpenaiAgents);
    }
    if has(&["root_span_id"]) && has(&["span_attributes", "span_parents", "is_root"]) {
        return Some(TraceFormat::Braintrust);
    }
    if has(&["op_name"]) && has(&["trace_id"]) {
        return Some(TraceFormat::Weave);
    }
    let kind = word("type").unwrap_or_default();
    if has(&["projectHash"]) || kind == "init" && has(&["session_id"]) && has(&["model"]) {
        return Some(TraceFormat::GeminiCli);
    }
    let exported = fields.raw("info").and_then(|info| Fields::parse(info).ok());
    let mut has = |keys: &[&str]| fields.any(keys).is_some();
    if has(&["sessionID"]) && (has(&["part"]) || kind == "error")
        || has(&["messages"]) && exported.is_some_and(|info| info.has("id") && info.has("time"))
    {
        return Some(TraceFormat::Opencode);
    }
    let is_opik_span = ["general", "tool", "llm", "guardrail"].contains(&kind.as_str())
        && has(&["trace_id"])
        && !has(&["span_id", "context", "attributes"]);
    let is_opik_trace =
        has(&["project_id", "project_name"]) && has(&["start_time"]) && has(&["input", "output"]);
    if is_opik_span || is_opik_trace {
        return Some(TraceFormat::Opik);
    }
    if has(&["payload"]) && has(&["timestamp"]) {
        return Some(TraceFormat::Codex);
    }
    if matches!(kind.split_once('.'), Some(("thread" | "turn" | "item", _))) {
        return Some(TraceFormat::Codex);
    }
    let claude = ["summary", "file-history-snapshot", "queue-operation", "ai-title", "mode"];
    let printed = ["system", "user", "assistant", "result"].contains(&kind.as_str());
    if has(&["sessionId"]) && has(&["uuid", "message", "leafUuid"])
        || has(&["session_id"]) && printed
        || claude.contains(&kind.as_str())
    {
        return Some(TraceFormat::ClaudeCode);
    }
    let observations = [
        "GENERATION",
        "SPAN",
        "EVENT",
        "TOOL",
        "AGENT",
        "CHAIN",
        "RETRIEVER",
        "EMBEDDING",
        "EVALUATOR",
        "GUARDRAIL",
    ];
    if has(&["observations"]) || (has(&["traceId"]) && observations.contains(&kind.as_str())) {
        return Some(TraceFormat::Langfuse);
    }
    let ids = |text: &str| {
        let fields = Fields::parse(text).ok();
        fields.is_some_and(|mut fields| {
            fields.any(&["trace_id", "traceId", "context.trace_id"]).is_some()
                && fields.any(&["span_id", "spanId", "context.span_id"]).is_some()
        })
    };
    let context = fields.any(&["context", "spanContext"]).filter(|text| is_object(text));
    if ids(text) || context.is_some_and(ids) {
        return Some(TraceFormat::Otlp);
    }
    let data = fields.raw("data");
    // A trace of MLflow has its spans inside.
    let inside = data.filter(|data| is_object(data)).map(Fields::parse);
    if inside.is_some_and(|inside| inside.is_ok_and(|inside| inside.has("spans"))) {
        return Some(TraceFormat::Otlp);
    }
    // A page of an API: what is in it decides.
    if let Some(data) = data.filter(|data| is_list(data)) {
        return detect(list(data).ok()?.first()?);
    }
    // The pages of some have other names, which are too common to decide by themselves.
    let mut pages = Fields::parse(text).ok()?;
    for (name, format) in [
        ("events", TraceFormat::Braintrust),
        ("rows", TraceFormat::Braintrust),
        ("calls", TraceFormat::Weave),
        ("content", TraceFormat::Opik),
        ("spans", TraceFormat::Opik),
    ] {
        let inside = pages.raw(name).filter(|text| is_list(text)).and_then(|all| list(all).ok());
        let first = inside.and_then(|all| all.first().copied());
        if first.filter(|first| is_object(first)).and_then(detect) == Some(format) {
            return Some(format);
        }
    }
    let mut has = |keys: &[&str]| fields.any(keys).is_some();
    if has(&["eval"]) && has(&["samples", "results", "plan", "status"]) {
        return Some(TraceFormat::Inspect);
    }
    if has(&["reference_tool_calls"]) {
        return Some(TraceFormat::Ragas);
    }
    if has(&["tools_called", "toolsCalled", "expected_tools", "expectedTools"]) {
        return Some(TraceFormat::Deepeval);
    }
    if has(&["calls"]) {
        return Some(TraceFormat::Native);
    }
    if has(&["request"]) || (has(&["custom_id"]) && has(&["body", "response", "params", "result"]))
    {
        return Some(TraceFormat::Openai);
    }
    let mut fields = Fields::parse(text).ok()?;
    let found = fields.any(&CONVERSATIONS).or_else(|| state(&mut fields)?.raw("messages"))?;
    if is_conversation(found) {
        let blocks = found.contains("\"tool_use\"") || found.contains("\"tool_result\"");
        return Some(if blocks { TraceFormat::Anthropic } else { TraceFormat::Openai });
    }
    None
}

/// Returns whether a text is a list of messages.
pub(crate) fn is_conversation(text: &str) -> bool {
    let Ok(all) = list(text) else { return false };
    let is_message = |text: &&str| {
        let value = serde_json::from_str::<Value>(text).ok();
        value.is_some_and(|value| value.get("messages").is_none() && pieces(&value).is_some())
    };
    // Providers add kinds of items; the first is a message of the user or instructions.
    let is_item = |text: &&str| {
        serde_json::from_str::<Value>(text).is_ok_and(|value| unknown_kind(&value).is_some())
    };
    let mut start = all.iter().take(3);
    start.next().is_some_and(is_message) && start.all(|one| is_message(one) || is_item(one))
}

/// The kind of a document that is not a trace, for a message.
pub(crate) fn describe(text: &str) -> Option<&'static str> {
    let mut fields = Fields::parse(text).ok()?;
    let mut has = |keys: &[&str]| keys.iter().all(|key| fields.raw(key).is_some());
    if has(&["reports"]) || has(&["metrics", "items"]) {
        return Some("a report of Karat; traces are in the files that it was made from");
    }
    if has(&["user_task_id", "injection_task_id"]) || has(&["suite_name", "pipeline_name"]) {
        return Some("a run of AgentDojo; `karat import` reads these");
    }
    if has(&["result", "input_token_count"]) || has(&["id", "ground_truth"]) {
        return Some("a file of BFCL; `karat import` reads these");
    }
    if has(&["accuracy", "correct_count"]) {
        return Some("a score file of BFCL, which has no calls");
    }
    if has(&["resourceMetrics"]) {
        return Some("OpenTelemetry metrics, which have no data on single runs");
    }
    if has(&["score", "reason"]) || has(&["judge", "vote"]) {
        return Some("verdicts of a judge; pass them with --verdicts");
    }
    if has(&["expect"]) || has(&["tasks"]) {
        return Some("tasks; pass them with --tasks, in addition to the traces");
    }
    if has(&["tools"]) {
        return Some("a list of tools; pass it with --tools, in addition to the traces");
    }
    None
}
