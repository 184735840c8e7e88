//! Wrong tools and those that were expected in their place.

use karat_metrics::calls::expected::Presence;

use super::calls::Calls;
use crate::trace::Trace;
use crate::trace::expectation::Wanted;

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
    let mut met = vec![false; all.len()];
    let mut used = vec![false; made.len()];
    // Right calls first, then right tools with wrong arguments.
    for full in [true, false] {
        for (number, call) in made.iter().enumerate() {
            if used[number] {
                continue;
            }
            let fits = |position: &usize| {
                let (_, wanted) = all[*position];
                !met[*position]
                    && match full {
                        true => wanted.accepts(call),
                        false => wanted.name == call.name,
                    }
            };
            if let Some(position) = (0..all.len()).find(fits) {
                met[position] = true;
                used[number] = true;
            }
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
