//! What else a trace is scored by: where it first goes wrong, whether it runs in a loop, and the
//! definitions of the metrics that the agent evaluation counts.
//!
//! Formulas over calls stand here as functions; what is only counted (answers that hold, tokens) is
//! counted by the evaluation and defined here, beside the rest.

use std::collections::BTreeSet;

use super::expected::{Expected, ExpectedCall, Presence, Step};
use super::{Call, Equality, classes};
use crate::registry::{Better, Metric};

/// How often the same call makes a loop.
const REPEATED: usize = 3;
/// How many readings of an expectation are followed at once.
const READINGS: usize = 4096;

/// Where the first wrong call stands.
pub const FIRST_ERROR: Metric = Metric {
    id: "calls.first_error",
    summary: "Where the first wrong call stands",
    formula: "the position, from 1, of the first call that no reading of the expectation allows there; one past the last call if the agent only stopped too early",
    better: Better::Higher,
    undefined: "the calls are as expected, or none were expected",
    notes: "Ours. Averaged over the traces that go wrong, so it says how far they come and not how many they are: read it beside `calls.exact`.",
};

/// The share of traces in which a forbidden call was made.
pub const FORBIDDEN: Metric = Metric {
    id: "calls.forbidden",
    summary: "The share of traces in which a forbidden call was made",
    formula: "traces with a forbidden call ÷ traces that forbid any",
    better: Better::Lower,
    undefined: "no trace forbids a call, or it is not known with which arguments a tool was called that is forbidden with some",
    notes: "",
};

/// The share of traces in which the agent ran in a loop.
pub const LOOP: Metric = Metric {
    id: "calls.loop",
    summary: "The share of traces in which the agent ran in a loop",
    formula: "traces in which the same call with the same arguments was made three times or more, or two or more calls were at once repeated as a block ÷ traces with calls",
    better: Better::Lower,
    undefined: "no trace has a call",
    notes: "Ours. Calls are the same by JSON equality. A trace whose calls are exactly the expected ones is no loop.",
};

/// How often one tool was called instead of another.
pub const CONFUSION: Metric = Metric {
    id: "calls.confusion",
    summary: "How often one tool was called instead of another",
    formula: "times that a wrong tool was called where the right one is missing ÷ times that the right one was required",
    better: Better::Lower,
    undefined: "no tool was called instead of another",
    notes: "Ours, one figure for each pair of tools, in the slices by `confusion`. Right calls and right tools with wrong arguments are taken away first; what is left over of the calls is paired with what is missing, in order.",
};

/// The share of calls whose tool was offered.
pub const TOOL_NAME_VALIDITY: Metric = Metric {
    id: "mcpbench.tool_name_validity",
    summary: "The share of calls whose tool was offered",
    formula: "calls of offered tools ÷ calls, averaged over traces",
    better: Better::Higher,
    undefined: "no call was made, or the tools are not known",
    notes: "A rule-based metric of MCP-Bench (arXiv 2508.20453).",
};

/// The share of calls whose arguments fit the tool's input schema.
pub const SCHEMA_COMPLIANCE: Metric = Metric {
    id: "mcpbench.schema_compliance",
    summary: "The share of calls whose arguments fit the tool's input schema",
    formula: "calls of offered tools with valid arguments ÷ calls of offered tools, averaged over traces",
    better: Better::Higher,
    undefined: "no call was made, the tools are not known, or no arguments were recorded",
    notes: "As MCP-Bench computes it: 0 where every call is of a tool that was not offered; any object fits a tool without a schema, and nothing fits a schema that cannot be used. JSON Schema 2020-12 unless the schema declares another dialect; `format` does not decide. Arguments that are not JSON do not fit; ones that were not recorded are left out. Not to be confused with `gauge.compliance`.",
};

/// The share of calls that did not fail.
pub const EXECUTION_SUCCESS: Metric = Metric {
    id: "mcpbench.execution_success",
    summary: "The share of calls that did not fail",
    formula: "calls that ended without an error ÷ calls whose end was recorded, averaged over traces",
    better: Better::Higher,
    undefined: "no call was made, or no end was recorded",
    notes: "An MCP result with `isError` is an error. MCP-Bench divides by all calls; the two agree where the end of every call was recorded, as it is in MCP-Bench.",
};

/// The share of answers that are as expected.
pub const ANSWER_CORRECT: Metric = Metric {
    id: "answer.correct",
    summary: "The share of answers that are as expected",
    formula: "traces whose answer every matcher accepts ÷ traces that expect an answer",
    better: Better::Higher,
    undefined: "no trace expects an answer",
    notes: "",
};

/// The share of traces that left the expected state.
pub const STATE_REACHED: Metric = Metric {
    id: "state.reached",
    summary: "The share of traces that left the expected state",
    formula: "traces for whose end state every assertion holds ÷ traces that expect a state",
    better: Better::Higher,
    undefined: "no trace expects a state, or none was recorded",
    notes: "",
};

/// The share of tasks that were done.
pub const TASK_SUCCESS: Metric = Metric {
    id: "task.success",
    summary: "The share of tasks that were done",
    formula: "traces in which the expected answer and state hold and nothing forbidden was called ÷ traces that expect anything; where neither answer nor state is expected, the calls must be exactly the expected ones",
    better: Better::Higher,
    undefined: "nothing is expected, or nothing is known to be wrong and something was not recorded",
    notes: "",
};

/// How often the agent makes the right calls without being told.
pub const PROACTIVITY: Metric = Metric {
    id: "gauge.proactivity",
    summary: "How often the agent makes the right calls without being told",
    formula: "tasks in which every required call was made as expected ÷ tasks that need a tool and do not instruct one",
    better: Better::Higher,
    undefined: "no such task",
    notes: "A dimension of MCPGauge (arXiv 2508.12566). Extra calls cost nothing here.",
};

/// How often the agent uses the tool that it was told to use.
pub const COMPLIANCE: Metric = Metric {
    id: "gauge.compliance",
    summary: "How often the agent uses the tool that it was told to use",
    formula: "tasks in which the instructed tool was called without an error and as expected ÷ tasks that instruct one",
    better: Better::Higher,
    undefined: "no task instructs a tool",
    notes: "A dimension of MCPGauge. It is about following an instruction; `mcpbench.schema_compliance` is about arguments.",
};

/// How often the agent calls a tool that it does not need.
pub const UNNEEDED_CALL: Metric = Metric {
    id: "gauge.unneeded_call",
    summary: "How often the agent calls a tool that it does not need",
    formula: "tasks in which a call was made ÷ tasks that need no tool",
    better: Better::Lower,
    undefined: "every task needs a tool, or does not say",
    notes: "",
};

/// What the tools are good for.
pub const EFFECTIVENESS: Metric = Metric {
    id: "gauge.effectiveness",
    summary: "What the tools are good for",
    formula: "mean of (`task.success` with tools − without), over tasks that were tried both ways",
    better: Better::Higher,
    undefined: "no task was tried both ways",
    notes: "A dimension of MCPGauge; from −1 to 1. Each task weighs the same however often it was run: its runs with tools are averaged, and so are those without. So are all `gauge` metrics with tools and without.",
};

/// `task.success` with tools, over the tasks that were tried both ways.
pub const SUCCESS_WITH_TOOLS: Metric = Metric {
    id: "gauge.success_with_tools",
    summary: "`task.success` with tools, over the tasks that were tried both ways",
    formula: "share of its runs in which a task is done, averaged over tasks",
    better: Better::Higher,
    undefined: "no task was tried both ways",
    notes: "",
};

/// `task.success` without tools.
pub const SUCCESS_WITHOUT_TOOLS: Metric = Metric {
    id: "gauge.success_without_tools",
    summary: "`task.success` without tools",
    formula: "share of its runs in which a task is done, averaged over tasks",
    better: Better::Higher,
    undefined: "no task was tried without tools",
    notes: "",
};

/// The tokens that tools cost on top.
pub const OVERHEAD_TOKENS: Metric = Metric {
    id: "gauge.overhead_tokens",
    summary: "The tokens that tools cost on top",
    formula: "mean of (tokens with tools − without), over tasks that were tried both ways",
    better: Better::Lower,
    undefined: "no task was tried both ways with tokens recorded",
    notes: "A dimension of MCPGauge; negative where tools save.",
};

/// The tokens with tools for each one without.
pub const OVERHEAD_TOKENS_RATIO: Metric = Metric {
    id: "gauge.overhead_tokens_ratio",
    summary: "The tokens with tools for each one without",
    formula: "sum of tokens with tools ÷ sum without, over tasks that were tried both ways",
    better: Better::Lower,
    undefined: "no task was tried both ways with tokens recorded, or none was used without tools",
    notes: "",
};

/// The tokens of a run with tools, over the tasks that were tried both ways.
pub const TOKENS_WITH_TOOLS: Metric = Metric {
    id: "gauge.tokens_with_tools",
    summary: "The tokens of a run with tools, over the tasks that were tried both ways",
    formula: "mean over tasks",
    better: Better::Lower,
    undefined: "no such task",
    notes: "",
};

/// The tokens of a run without tools.
pub const TOKENS_WITHOUT_TOOLS: Metric = Metric {
    id: "gauge.tokens_without_tools",
    summary: "The tokens of a run without tools",
    formula: "mean over tasks",
    better: Better::Lower,
    undefined: "no task was tried without tools, or nothing was recorded",
    notes: "",
};

/// How alike the calls of two runs of a task are.
pub const SIMILARITY: Metric = Metric {
    id: "calls.similarity",
    summary: "How alike the calls of two runs of a task are",
    formula: "(calls that stayed + ½ · calls that moved + ¼ · calls with other arguments) ÷ calls of the longer run, mean over tasks",
    better: Better::Higher,
    undefined: "the two runs have no task in common",
    notes: "1 where neither run calls anything. Says that something changed, not whether for the better.",
};

/// The tokens of a run with tools.
pub const RUN_TOKENS: Metric = Metric {
    id: "run.tokens",
    summary: "The tokens of a run with tools",
    formula: "mean over traces",
    better: Better::Lower,
    undefined: "not recorded",
    notes: "",
};

/// The milliseconds that tools cost on top.
pub const OVERHEAD_MS: Metric = Metric {
    id: "gauge.overhead_ms",
    summary: "The milliseconds that tools cost on top",
    formula: "mean of (milliseconds with tools − without), over tasks that were tried both ways",
    better: Better::Lower,
    undefined: "no task was tried both ways with milliseconds recorded",
    notes: "A dimension of MCPGauge; negative where tools save.",
};

/// The milliseconds with tools for each one without.
pub const OVERHEAD_MS_RATIO: Metric = Metric {
    id: "gauge.overhead_ms_ratio",
    summary: "The milliseconds with tools for each one without",
    formula: "sum of milliseconds with tools ÷ sum without, over tasks that were tried both ways",
    better: Better::Lower,
    undefined: "no task was tried both ways with milliseconds recorded, or none was used without tools",
    notes: "",
};

/// The milliseconds of a run with tools, over the tasks that were tried both ways.
pub const MS_WITH_TOOLS: Metric = Metric {
    id: "gauge.ms_with_tools",
    summary: "The milliseconds of a run with tools, over the tasks that were tried both ways",
    formula: "mean over tasks",
    better: Better::Lower,
    undefined: "no such task",
    notes: "",
};

/// The milliseconds of a run without tools.
pub const MS_WITHOUT_TOOLS: Metric = Metric {
    id: "gauge.ms_without_tools",
    summary: "The milliseconds of a run without tools",
    formula: "mean over tasks",
    better: Better::Lower,
    undefined: "no task was tried without tools, or nothing was recorded",
    notes: "",
};

/// The milliseconds of a run with tools.
pub const RUN_MS: Metric = Metric {
    id: "run.ms",
    summary: "The milliseconds of a run with tools",
    formula: "mean over traces",
    better: Better::Lower,
    undefined: "not recorded",
    notes: "",
};

/// How far tasks were completed, in the opinion of a model.
pub const TASK_COMPLETION: Metric = Metric {
    id: "judge.task_completion",
    summary: "How far tasks were completed, in the opinion of a model",
    formula: "mean of the votes from 0 to 1 on each unit of a conversation, averaged over units, then over traces",
    better: Better::Higher,
    undefined: "no votes were recorded",
    notes: "An opinion: the report names judge and prompt, and no gate uses it unless it is named. Votes outside 0 to 1 are held to it; no unit is skipped.",
};

/// How far a judge agrees with itself.
pub const AGREEMENT: Metric = Metric {
    id: "judge.agreement",
    summary: "How far a judge agrees with itself",
    formula: "share of the votes on a unit that are on the side of the majority (0.5 and above, or below), averaged over units, then over traces",
    better: Better::Higher,
    undefined: "no votes were recorded",
    notes: "1 with a single vote: ask for several.",
};

/// `calls.first_error`: the position, from 1, of the first call that is not as expected; `None` if all
/// are.
pub fn first_error(expected: &Expected<'_>, called: &[Call<'_>]) -> Option<usize> {
    let mut readings = BTreeSet::from([Reading { step: 0, met: 0 }]);
    for (position, call) in (1..).zip(called) {
        readings = readings
            .iter()
            .flat_map(|reading| reading.skips(expected))
            .flat_map(|reading| reading.after(expected, call))
            .take(READINGS)
            .collect();
        if readings.is_empty() {
            return Some(position);
        }
    }
    let done = |reading: &Reading| {
        reading.skips(expected).into_iter().any(|reading| reading.step == expected.steps.len())
    };
    if readings.iter().any(done) { None } else { Some(called.len() + 1) }
}

/// How far an expectation has been met: the steps that are behind, and which calls of a group are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Reading {
    step: usize,
    met: u64,
}

impl Reading {
    /// This reading, and those that leave out what may be left out.
    fn skips(self, expected: &Expected<'_>) -> Vec<Reading> {
        let mut all = vec![self];
        let mut at = self;
        while let Some(step) = expected.steps.get(at.step) {
            let open = |(number, call): (usize, &ExpectedCall<'_>)| {
                call.presence == Presence::Required && !at.has_met(number)
            };
            let blocked = match step {
                Step::Call(call) => call.presence == Presence::Required,
                Step::AnyOrder(calls) => calls.iter().enumerate().any(open),
            };
            if blocked {
                break;
            }
            at = Reading { step: at.step + 1, met: 0 };
            all.push(at);
        }
        all
    }

    /// The readings under which the next call is this one.
    fn after(self, expected: &Expected<'_>, call: &Call<'_>) -> Vec<Reading> {
        match expected.steps.get(self.step) {
            None => Vec::new(),
            Some(Step::Call(wanted)) => {
                let next = Reading { step: self.step + 1, met: 0 };
                if wanted.accepts(call) { vec![next] } else { Vec::new() }
            }
            Some(Step::AnyOrder(calls)) => calls
                .iter()
                .enumerate()
                .take(64)
                .filter(|(number, wanted)| !self.has_met(*number) && wanted.accepts(call))
                .map(|(number, _)| Reading { met: self.met | 1 << number, ..self })
                .collect(),
        }
    }

    /// Of a group of more than 64 calls, those beyond are never open: no task has such.
    fn has_met(self, number: usize) -> bool {
        number >= 64 || self.met & (1 << number) != 0
    }
}

/// Whether an agent ran in a loop; see [`LOOP`].
pub fn has_loop(called: &[Call<'_>]) -> bool {
    let (classes, _, count) = classes::of(called, &[], Equality::Json);
    let mut counts = vec![0_usize; count];
    for class in &classes {
        counts[*class] += 1;
        if counts[*class] >= REPEATED {
            return true;
        }
    }
    (2..=classes.len() / 2).any(|length| has_block(&classes, length))
}

/// Whether a block of this length is followed by itself.
fn has_block(classes: &[usize], length: usize) -> bool {
    let mut alike = 0;
    for (earlier, later) in classes.iter().zip(&classes[length..]) {
        alike = if earlier == later { alike + 1 } else { 0 };
        if alike == length {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::json;
    use super::*;

    fn call<'a>(name: &'a str, arguments: &'a str) -> Call<'a> {
        Call::new(name, json::Reader::new(arguments).read_object().unwrap())
    }

    fn calls(names: &'static str) -> Vec<Call<'static>> {
        names.split(' ').filter(|name| !name.is_empty()).map(|name| call(name, "{}")).collect()
    }

    #[test]
    fn the_first_wrong_call_is_found() {
        let expected = Expected::from(&calls("a b c")[..]);
        assert_eq!(first_error(&expected, &calls("a b c")), None);
        assert_eq!(first_error(&expected, &calls("a x c")), Some(2));
        assert_eq!(first_error(&expected, &calls("a b")), Some(3));
        assert_eq!(first_error(&expected, &calls("")), Some(1));
        assert_eq!(first_error(&expected, &calls("a b c d")), Some(4));
    }

    #[test]
    fn a_choice_is_followed_in_every_reading() {
        let required = |name| ExpectedCall::from(&call(name, "{}"));
        let optional = |name| ExpectedCall { presence: Presence::Optional, ..required(name) };
        let expected = Expected {
            steps: vec![
                Step::Call(optional("a")),
                Step::AnyOrder(vec![required("a"), required("b"), optional("o")]),
                Step::Call(required("c")),
            ],
        };
        for good in ["a b c", "b a c", "a a b c", "a b o c"] {
            assert_eq!(first_error(&expected, &calls(good)), None, "{good}");
        }
        assert_eq!(first_error(&expected, &calls("a c")), Some(2));
        assert_eq!(first_error(&expected, &calls("a b o o c")), Some(4));
        assert_eq!(first_error(&expected, &calls("a b")), Some(3));
    }

    #[test]
    fn a_loop_is_a_call_made_thrice_or_a_block_repeated() {
        assert!(!has_loop(&calls("")));
        assert!(!has_loop(&calls("a a")));
        assert!(has_loop(&calls("a b a c a")));
        assert!(has_loop(&calls("x a b a b")));
        assert!(!has_loop(&calls("a b c a")));
        let other = [call("f", r#"{"x":1}"#), call("f", r#"{"x":2}"#), call("f", r#"{"x":3}"#)];
        assert!(!has_loop(&other));
        let same = [call("f", r#"{"x":1}"#), call("f", r#"{"x":1.0}"#), call("f", r#"{"x":1}"#)];
        assert!(has_loop(&same));
    }
}
