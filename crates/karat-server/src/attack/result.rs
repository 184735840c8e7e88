//! The result of an attack, and the reason if nothing was shown by it.

use karat_core::observed::{AttackEvidence, AttackStatus};
use serde::{Deserialize, Serialize};

use super::attacks::KnownAttack;
use super::parameters::Parameter;

/// The result of one attack through one parameter.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AttackResult {
    /// The attack.
    pub attack: String,
    /// The tool; empty if the attack is on the server as a whole.
    pub tool: String,
    /// The parameter, if the attack goes through one.
    pub parameter: Option<String>,
    /// The place of the parameter in the tool's definition, as a JSON pointer.
    pub at: String,
    /// The status.
    pub status: AttackStatus,
    /// The number of attempts.
    pub attempts: u64,
    /// The attempt that worked, or the last one.
    pub evidence: Option<AttackEvidence>,
    /// The reason if it was not executed or does not apply.
    pub why: Option<String>,
    /// True if it was not executed because the tool stopped working during the run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_stopped: bool,
    /// A command line that makes the attack again.
    pub again: String,
}

impl AttackResult {
    pub(super) fn new(
        attack: &KnownAttack,
        tool: &str,
        parameter: Option<&Parameter>,
    ) -> AttackResult {
        let at = parameter.map(|parameter| {
            let name = parameter.outer.replace('~', "~0").replace('/', "~1");
            format!("/inputSchema/properties/{name}")
        });
        AttackResult {
            attack: attack.id().to_owned(),
            tool: tool.to_owned(),
            parameter: parameter.map(|parameter| parameter.name.clone()),
            at: at.unwrap_or_default(),
            status: AttackStatus::NotExecuted,
            attempts: 0,
            evidence: None,
            why: None,
            has_stopped: false,
            again: String::new(),
        }
    }

    /// Notes that attempts proved nothing.
    pub(super) fn set_unreached(&mut self, unreached: Unreached) {
        self.status = AttackStatus::NotExecuted;
        self.why = Some(unreached.why(&self.tool));
        self.has_stopped = unreached == Unreached::Stopped;
    }

    /// The id of the item in the report.
    #[must_use]
    pub(crate) fn id(&self) -> String {
        if self.tool.is_empty() {
            return self.attack.clone();
        }
        let through = self.parameter.iter().map(|parameter| format!("/{parameter}"));
        format!("{}/{}{}", self.attack, self.tool, through.collect::<String>())
    }
}

/// The way in which a tool fails, so that attempts which fail like it prove nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Unreached {
    /// It fails with plain arguments too, and did not before.
    Stopped,
    /// It fails with plain arguments too, and always did.
    FailsAlike,
}

impl Unreached {
    fn why(self, tool: &str) -> String {
        match self {
            Unreached::Stopped => format!(
                "{tool} stopped working: it fails with plain arguments now, in the same words as with the \
                 attack, and did not before"
            ),
            Unreached::FailsAlike => format!(
                "{tool} fails in the same words with and without the attack, so nothing shows that it came \
                 through; give valid values with --set NAME=VALUE or --from-recording FILE"
            ),
        }
    }
}
