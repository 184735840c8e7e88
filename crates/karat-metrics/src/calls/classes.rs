//! Which of many calls are the same.
//!
//! Numbers calls so that two get one number exactly if an equality holds them the same. Takes time in
//! proportion to the number of calls, where comparing all pairs would not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Call, Equality};

/// Below this many pairs, comparing all of them is fastest and needs no memory.
pub(super) const FEW_PAIRS: usize = 256;

/// For each call the number of its class, and how many classes there are.
pub(super) fn of<'c, 'a: 'c>(
    calls: impl Iterator<Item = &'c Call<'a>>,
    equality: Equality,
) -> (Vec<usize>, usize) {
    // By hash, the first member and the number of each class that has it.
    let mut known: HashMap<u64, Vec<(&Call<'a>, usize)>> = HashMap::new();
    let mut count = 0;
    let classes = calls.map(|call| {
        let mut hasher = DefaultHasher::new();
        (&call.name, equality.object_hash(call.arguments())).hash(&mut hasher);
        let candidates = known.entry(hasher.finish()).or_default();
        let found = candidates.iter().find(|(first, _)| equality.calls(first, call));
        found.map(|(_, class)| *class).unwrap_or_else(|| {
            candidates.push((call, count));
            count += 1;
            count - 1
        })
    });
    (classes.collect(), count)
}
