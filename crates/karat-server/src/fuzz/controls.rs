//! Simulated servers of known quality, judged on the same inputs as the real one.

use karat_core::report::{Control, Measured};
use karat_metrics::metric;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::case::{Case, Validity};
use super::judge::{Flaw, Judge};
use super::rules::{ACCEPTED, COERCED, CRASH, EXTRA};
use crate::observation::Outcome;
use crate::probe::rate;

/// The flaws that the judge found in simulated servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ControlTally {
    cases: u64,
    invalid: u64,
    /// Invalid inputs that a server which accepts everything was caught with.
    caught_accepting: u64,
    /// Inputs that a server which always crashes was caught with.
    caught_crashing: u64,
    /// Inputs that a server which refuses everything was blamed for.
    blamed_refusing: u64,
}

impl ControlTally {
    /// Judges the answers of the simulated servers to one input.
    pub(super) fn simulate(&mut self, judge: &Judge<'_>, tool: &str, case: &Case) {
        let flaws = |outcome: &Outcome| judge.flaws(tool, &case.arguments, &case.validity, outcome);
        let accepted = Outcome::Result { result: json!({"content": []}) };
        let refused = Outcome::Result { result: json!({"content": [], "isError": true}) };
        let crashed = Outcome::Crash { why: String::new() };
        let is_of = |flaw: &Flaw, ids: &[&str]| ids.contains(&flaw.rule.id);
        let caught = [ACCEPTED.id, COERCED.id, EXTRA.id];
        let accepting = flaws(&accepted).iter().any(|flaw| is_of(flaw, &caught));
        let crashing = flaws(&crashed).iter().any(|flaw| is_of(flaw, &[CRASH.id]));
        self.cases += 1;
        self.invalid += u64::from(matches!(case.validity, Validity::Invalid { .. }));
        self.caught_accepting += u64::from(accepting);
        self.caught_crashing += u64::from(crashing);
        self.blamed_refusing += u64::from(!flaws(&refused).is_empty());
    }

    /// Adds the counts of another tool.
    pub(super) fn add(&mut self, other: &ControlTally) {
        self.cases += other.cases;
        self.invalid += other.invalid;
        self.caught_accepting += other.caught_accepting;
        self.caught_crashing += other.caught_crashing;
        self.blamed_refusing += other.blamed_refusing;
    }

    pub(super) fn controls(&self) -> Vec<Control> {
        let control = |name: &str, expected: &str, metric: Measured, ok: bool| Control {
            name: name.to_owned(),
            expected: expected.to_owned(),
            metrics: vec![metric],
            ok,
        };
        let none = "no such input";
        let rejected = self.invalid.saturating_sub(self.caught_accepting);
        vec![
            control(
                "accepts-all",
                "a server that accepts every input is caught with every invalid one",
                rate(metric!("schema.rejects_invalid"), rejected, self.invalid, none),
                self.caught_accepting == self.invalid,
            ),
            control(
                "ends-on-all",
                "a server that crashes on every input is caught with every one",
                rate(metric!("crash_rate"), self.caught_crashing, self.cases, none),
                self.caught_crashing == self.cases,
            ),
            control(
                "refuses-all",
                "a server that answers every input with a tool error has no flaw",
                rate(metric!("crash_rate"), self.blamed_refusing, self.cases, none),
                self.blamed_refusing == 0,
            ),
        ]
    }
}
