//! Wrong tools and those that were expected in their place.

use std::collections::{HashMap, VecDeque};

use karat_metrics::calls::expected::Presence;

use super::calls::Calls;
use crate::trace::Trace;
use crate::trace::expected_calls::Wanted;

/// The number of comparisons of arguments. Beyond it, the calls that are left are compared by their tools
/// alone: a trace with this many calls of one tool is a loop.
const MAX_COMPARISONS: usize = 1_000_000;

/// One tool in place of another.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Confusion {
    /// The tool that was called.
    pub(crate) called: String,
    /// The tool that was expected.
    pub(crate) expected: String,
}

impl std::fmt::Display for Confusion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} instead of {}", self.called, self.expected)
    }
}

/// The confusions of one trace.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Confusions {
    /// The pairs of tools.
    pub(crate) pairs: Vec<Confusion>,
    /// The tools that were required, once for each call.
    pub(crate) required: Vec<String>,
}

/// Finds confusions: right calls and right tools are taken away, and the rest is paired in order.
pub(crate) fn confusions(trace: &Trace) -> Confusions {
    let Some(expect) = trace.expect.as_deref().filter(|expect| expect.calls.is_some()) else {
        return Confusions::default();
    };
    let calls = Calls::of(trace, Some(expect));
    if !trace.setting.has_tools() || !calls.has_arguments {
        return Confusions::default();
    }
    let all: Vec<Wanted<'_>> = expect.all_calls().collect();
    let made = &calls.made;
    // By tool, the expected calls that are not met yet, in their order.
    let mut open: HashMap<&str, VecDeque<usize>> = HashMap::new();
    for (position, (_, wanted)) in all.iter().enumerate() {
        open.entry(wanted.name.as_ref()).or_default().push_back(position);
    }
    let mut met = vec![false; all.len()];
    let mut used = vec![false; made.len()];
    // Right calls first, then right tools with wrong arguments.
    let mut comparisons = 0;
    for (number, call) in made.iter().enumerate() {
        let Some(places) = open.get_mut(&*call.name) else { continue };
        comparisons += places.len();
        if comparisons > MAX_COMPARISONS {
            break;
        }
        if let Some(at) = places.iter().position(|position| all[*position].1.accepts(call)) {
            met[places[at]] = true;
            used[number] = true;
            places.remove(at);
        }
    }
    for (call, used) in made.iter().zip(&mut used).filter(|(_, used)| !**used) {
        if let Some(position) = open.get_mut(&*call.name).and_then(VecDeque::pop_front) {
            met[position] = true;
            *used = true;
        }
    }
    let required = |position: &usize| all[*position].1.presence == Presence::Required;
    let missing = (0..all.len()).filter(|position| !met[*position]).filter(required);
    let extra = (0..made.len()).filter(|number| !used[*number]);
    let pairs = extra.zip(missing).map(|(number, position)| Confusion {
        called: trace.calls[number].shown(),
        expected: all[position].0.shown(),
    });
    Confusions {
        pairs: pairs.collect(),
        required: expect.required().map(|(tool, _)| tool.shown()).collect(),
    }
}
