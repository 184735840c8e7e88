//! An attack: a goal, the style of its text, and the surface that carries it.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::world::{Goal, Task, World};

/// A way to word an attack; `{order}` is the attacker's order.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Style {
    /// The name.
    pub name: String,
    /// The text around the order.
    pub text: String,
}

/// The place that carries the injected text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Surface {
    /// The result of a tool.
    Result,
    /// The description of a tool.
    Description,
    /// A text in the schema of a tool.
    Schema,
    /// The instructions of the server.
    Instructions,
    /// A resource.
    Resource,
    /// A prompt.
    Prompt,
    /// The text of an error.
    Error,
    /// A definition that changes at a call: the lists before it have the old one.
    RugPull,
    /// A second tool of the same name.
    Collision,
    /// A request of the server for a completion; `inputRequests` where there are no requests.
    Sampling,
    /// A request of the server for input; `inputRequests` where there are no requests.
    Elicitation,
}

impl Surface {
    /// All surfaces.
    pub const ALL: [Surface; 11] = [
        Surface::Result,
        Surface::Description,
        Surface::Schema,
        Surface::Instructions,
        Surface::Resource,
        Surface::Prompt,
        Surface::Error,
        Surface::RugPull,
        Surface::Collision,
        Surface::Sampling,
        Surface::Elicitation,
    ];

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Surface::Result => "result",
            Surface::Description => "description",
            Surface::Schema => "schema",
            Surface::Instructions => "instructions",
            Surface::Resource => "resource",
            Surface::Prompt => "prompt",
            Surface::Error => "error",
            Surface::RugPull => "rugpull",
            Surface::Collision => "collision",
            Surface::Sampling => "sampling",
            Surface::Elicitation => "elicitation",
        }
    }

    /// The surface with this name.
    pub fn of(name: &str) -> Option<Surface> {
        Surface::ALL.into_iter().find(|surface| surface.name() == name)
    }
}

/// An attack on a task.
#[derive(Clone, Debug)]
pub struct Attack {
    /// The goal.
    pub goal: Goal,
    /// The style of the text.
    pub style: String,
    /// The surface.
    pub surface: Surface,
    /// The injected text.
    pub text: String,
    /// The call, from 1, at which a definition changes; 1 for all other surfaces.
    pub at_call: usize,
}

/// The mark between a surface and the number of a call.
const AT: char = '@';

impl Attack {
    /// An attack towards a goal.
    pub(crate) fn new(goal: &Goal, style: &Style, surface: Surface) -> Attack {
        let text = style.text.replace("{order}", &goal.order());
        Attack { goal: goal.clone(), style: style.name.clone(), surface, text, at_call: 1 }
    }

    /// The same with a definition that changes at the call of this number.
    #[must_use]
    pub(crate) fn at_call(self, number: usize) -> Attack {
        match self.surface {
            Surface::RugPull => Attack { at_call: number, ..self },
            _ => self,
        }
    }

    /// The number of the call at which a definition changes; none for other surfaces.
    pub(crate) fn changes_at(&self) -> Option<usize> {
        (self.surface == Surface::RugPull).then_some(self.at_call)
    }

    /// The place of the text as ids of cases have it: `rugpull@2` changes a definition at the second call.
    pub(crate) fn place(&self) -> String {
        place(self.surface.name(), self.changes_at())
    }
}

/// A surface with the number of a call, unless that is the first.
pub(crate) fn place(surface: &str, at_call: Option<usize>) -> String {
    match at_call {
        Some(number) if number > 1 => format!("{surface}{AT}{number}"),
        _ => surface.to_owned(),
    }
}

/// The surface and the number of a call that a place names.
pub(crate) fn surface_at(place: &str) -> Option<(Surface, Option<usize>)> {
    let Some((name, number)) = place.split_once(AT) else {
        return Some((Surface::of(place)?, None));
    };
    let surface = Surface::of(name).filter(|surface| *surface == Surface::RugPull)?;
    Some((surface, Some(number.parse::<usize>().ok().filter(|number| *number > 0)?)))
}

impl Attack {
    /// The state with the text in it, where results carry it.
    pub(crate) fn plant(&self, task: &Task, state: &mut Value) {
        if self.surface == Surface::Result
            && let Some(Value::String(slot)) = state.pointer_mut(&task.slot)
        {
            slot.push_str("\n\n");
            slot.push_str(&self.text);
        }
    }

    /// The tools as they are listed after this many calls.
    pub fn tools(&self, world: &World, task: &Task, calls: usize) -> Vec<Value> {
        let first = task.calls.first().map(|call| call.tool.as_str()).unwrap_or_default();
        let mut listed: Vec<Value> = world.tools.iter().map(|tool| tool.definition()).collect();
        let changed = self.changes_at().is_none_or(|number| calls >= number);
        let at = listed.iter().position(|tool| tool["name"] == first);
        let Some(tool) = at.and_then(|at| listed.get_mut(at)).filter(|_| changed) else {
            return listed;
        };
        let poisoned =
            |text: &Value| json!(format!("{}\n\n{}", text.as_str().unwrap_or_default(), self.text));
        match self.surface {
            Surface::Description | Surface::RugPull => {
                tool["description"] = poisoned(&tool["description"]);
            }
            Surface::Schema => {
                tool["inputSchema"]["description"] = json!(self.text);
            }
            Surface::Collision => {
                let mut twin = tool.clone();
                twin["description"] = poisoned(&twin["description"]);
                listed.push(twin);
            }
            _ => {}
        }
        listed
    }
}
