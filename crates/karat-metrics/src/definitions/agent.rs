//! Metrics of an agent's traces that count answers, states, tokens, time and opinions.

use crate::metric::{Better, Metric, MetricKind, Rank, Unit};

pub(crate) const METRICS: &[Metric] = &[
    Metric {
        id: "calls.forbidden",
        summary: "The share of traces in which a forbidden call was made",
        formula: "traces with a forbidden call ÷ traces that forbid any",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no trace forbids a call, or a tool that is forbidden with some arguments was called and its arguments were not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "calls.similarity",
        summary: "The similarity of the calls of two runs of a task",
        formula: "(calls that stayed + ½ · calls that moved + ¼ · calls with other arguments) ÷ calls of the longer run, mean over tasks",
        better: Better::Higher,
        unit: Unit::Share,
        rank: Some(Rank::new(140)),
        undefined: "the two runs have no task in common",
        notes: "1 if neither run calls anything. Shows that something changed, not whether it improved.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "calls.confusion",
        summary: "The share of required calls of one tool where another was called instead",
        formula: "times that a wrong tool was called where the right one is missing ÷ times that the right one was required",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no tool was called instead of another",
        notes: "Ours, one figure for each pair of tools, in the slices by `confusion`. Right calls, and right tools with wrong arguments, are removed first; the remaining calls are paired with the missing ones, in order.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "mcpbench.tool_name_validity",
        summary: "The share of calls whose tool was offered",
        formula: "calls of offered tools ÷ calls, averaged over traces",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no call was made, or the tools are not known",
        notes: "A rule-based metric of MCP-Bench (arXiv 2508.20453).",
        ..Metric::DEFAULT
    },
    Metric {
        id: "mcpbench.schema_compliance",
        summary: "The share of calls whose arguments fit the tool's input schema",
        formula: "calls of offered tools with valid arguments ÷ calls of offered tools, averaged over traces",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no call was made, the tools are not known, or no arguments were recorded",
        notes: "As MCP-Bench computes it: 0 where every call is of a tool that was not offered; any object fits a tool without a schema, and nothing fits a schema that cannot be used. JSON Schema 2020-12 unless the schema declares another dialect; `format` is not checked. Arguments that are not JSON do not fit; arguments that were not recorded are left out. Not to be confused with `gauge.compliance`.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "mcpbench.execution_success",
        summary: "The share of calls that did not fail",
        formula: "calls that ended without an error ÷ calls whose end was recorded, averaged over traces",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no call was made, or no end was recorded",
        notes: "An MCP result with `isError` is an error. MCP-Bench divides by all calls; the two agree where the end of every call was recorded, as it is in MCP-Bench.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "answer.correct",
        summary: "The share of answers that are as expected",
        formula: "traces whose answer every matcher accepts ÷ traces that expect an answer",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no trace expects an answer",
        ..Metric::DEFAULT
    },
    Metric {
        id: "state.reached",
        summary: "The share of traces that left the expected state",
        formula: "traces for whose end state every assertion holds ÷ traces that expect a state",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no trace expects a state, or none was recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "task.success",
        summary: "The share of tasks that were done",
        formula: "traces in which the expected answer and state hold and nothing forbidden was called ÷ traces that expect anything; where neither answer nor state is expected, the calls must be exactly the expected ones",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(100)),
        undefined: "nothing is expected, or nothing is known to be wrong and something was not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.proactivity",
        summary: "The share of tasks in which the agent makes the right calls without an instruction",
        formula: "tasks in which every required call was made as expected ÷ tasks that need a tool and do not instruct one",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(120)),
        undefined: "no such task",
        notes: "A dimension of MCPGauge (arXiv 2508.12566). Extra calls do not count.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.compliance",
        summary: "The share of tasks in which the agent uses the tool that it was instructed to use",
        formula: "tasks in which the instructed tool was called without an error and as expected ÷ tasks that instruct one",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        rank: Some(Rank::new(130)),
        undefined: "no task instructs a tool",
        notes: "A dimension of MCPGauge. It is about following an instruction; `mcpbench.schema_compliance` is about arguments.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.unneeded_call",
        summary: "The share of tasks without a need for tools in which the agent calls one",
        formula: "tasks in which a call was made ÷ tasks that need no tool",
        better: Better::Lower,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "every task needs a tool, or does not say",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.effectiveness",
        summary: "The gain in success from the tools",
        formula: "mean of (`task.success` with tools − without), over tasks that were tried both ways",
        better: Better::Higher,
        undefined: "no task was tried both ways",
        notes: "A dimension of MCPGauge; from −1 to 1. Each task has the same weight however often it was run: its runs with tools are averaged, and so are those without. So are all `gauge` metrics with tools and without.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.success_with_tools",
        summary: "`task.success` with tools, over the tasks that were tried both ways",
        formula: "share of its runs in which a task is done, averaged over tasks",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no task was tried both ways",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.success_without_tools",
        summary: "`task.success` without tools",
        formula: "share of its runs in which a task is done, averaged over tasks",
        better: Better::Higher,
        unit: Unit::Share,
        kind: MetricKind::Rate,
        undefined: "no task was tried without tools",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.overhead_tokens",
        summary: "The additional tokens with tools",
        formula: "mean of (tokens with tools − without), over tasks that were tried both ways",
        better: Better::Lower,
        unit: Unit::Tokens,
        undefined: "no task was tried both ways with tokens recorded",
        notes: "A dimension of MCPGauge; negative if tools save.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.overhead_tokens_ratio",
        summary: "The ratio of tokens with tools to those without",
        formula: "sum of tokens with tools ÷ sum without, over tasks that were tried both ways",
        better: Better::Lower,
        kind: MetricKind::Aggregate,
        undefined: "no task was tried both ways with tokens recorded, or none was used without tools",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.overhead_ms",
        summary: "The additional milliseconds with tools",
        formula: "mean of (milliseconds with tools − without), over tasks that were tried both ways",
        better: Better::Lower,
        unit: Unit::Milliseconds,
        undefined: "no task was tried both ways with milliseconds recorded",
        notes: "A dimension of MCPGauge; negative if tools save.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.overhead_ms_ratio",
        summary: "The ratio of milliseconds with tools to those without",
        formula: "sum of milliseconds with tools ÷ sum without, over tasks that were tried both ways",
        better: Better::Lower,
        kind: MetricKind::Aggregate,
        undefined: "no task was tried both ways with milliseconds recorded, or none was used without tools",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.tokens_with_tools",
        summary: "The tokens of a run with tools, over the tasks that were tried both ways",
        formula: "mean over tasks",
        better: Better::Lower,
        unit: Unit::Tokens,
        undefined: "no such task",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.tokens_without_tools",
        summary: "The tokens of a run without tools",
        formula: "mean over tasks",
        better: Better::Lower,
        unit: Unit::Tokens,
        undefined: "no task was tried without tools, or nothing was recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.ms_with_tools",
        summary: "The milliseconds of a run with tools, over the tasks that were tried both ways",
        formula: "mean over tasks",
        better: Better::Lower,
        unit: Unit::Milliseconds,
        undefined: "no such task",
        ..Metric::DEFAULT
    },
    Metric {
        id: "gauge.ms_without_tools",
        summary: "The milliseconds of a run without tools",
        formula: "mean over tasks",
        better: Better::Lower,
        unit: Unit::Milliseconds,
        undefined: "no task was tried without tools, or nothing was recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "run.tokens",
        summary: "The tokens of a run with tools",
        formula: "mean over traces",
        better: Better::Lower,
        unit: Unit::Tokens,
        undefined: "not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "run.ms",
        summary: "The milliseconds of a run with tools",
        formula: "mean over traces",
        better: Better::Lower,
        unit: Unit::Milliseconds,
        undefined: "not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "run.cost",
        summary: "The cost of a run with tools",
        formula: "the recorded cost, or tokens times the prices that were given; mean over traces",
        better: Better::Lower,
        unit: Unit::Number,
        undefined: "no cost was recorded, and no price of the model is known",
        notes: "In the currency of the record or of the price table. Cached input has its own price where one is given.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "run.cached_tokens",
        summary: "The input tokens of a run with tools that came from a cache",
        formula: "mean over traces",
        better: Better::Higher,
        unit: Unit::Tokens,
        undefined: "not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "run.reasoning_tokens",
        summary: "The output tokens of a run with tools that were reasoning",
        formula: "mean over traces",
        better: Better::Lower,
        unit: Unit::Tokens,
        undefined: "not recorded",
        ..Metric::DEFAULT
    },
    Metric {
        id: "outcome.score",
        summary: "The score of a run as another program judged it",
        formula: "mean of `score`, `reward` or `passed` over traces",
        better: Better::Higher,
        unit: Unit::Number,
        undefined: "no outcome was judged elsewhere",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.accuracy",
        summary: "Agreement of the judge with labels of people",
        formula: "traces on which both say passed or both say failed ÷ traces with a label and a verdict; the judge passes a trace with a mean vote of at least 0.5",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no trace has a label and a verdict",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.kappa",
        summary: "Cohen's kappa of the judge and labels of people: agreement beyond chance",
        formula: "(observed agreement − agreement by chance) ÷ (1 − agreement by chance)",
        better: Better::Higher,
        unit: Unit::Number,
        undefined: "no trace has a label and a verdict, or all of both are of one class",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.sensitivity",
        summary: "The share of runs which people passed that the judge passes too",
        formula: "passed by both ÷ passed by people",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no label says passed",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.specificity",
        summary: "The share of runs which people failed that the judge fails too",
        formula: "failed by both ÷ failed by people",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no label says failed",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.task_completion",
        summary: "The degree of task completion, in the opinion of a model",
        formula: "mean of the votes from 0 to 1 on each unit of a conversation, averaged over units, then over traces",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no votes were recorded",
        notes: "An opinion: the report names judge and prompt, and a gate uses it only if it is configured. Votes outside 0 to 1 are clamped; no unit is skipped.",
        ..Metric::DEFAULT
    },
    Metric {
        id: "judge.agreement",
        summary: "The agreement of a judge with itself",
        formula: "share of the votes on a unit that are on the side of the majority (0.5 and above, or below), averaged over units, then over traces",
        better: Better::Higher,
        unit: Unit::Share,
        undefined: "no votes were recorded",
        notes: "1 with a single vote: ask for several.",
        ..Metric::DEFAULT
    },
];
