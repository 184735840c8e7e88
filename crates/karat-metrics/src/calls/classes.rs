//! Classes of equal calls.
//!
//! Numbers calls so that two have the same number exactly if they are equal. Takes time in proportion
//! to the number of calls, where comparing all pairs would not.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::{Call, Equality, Object};

/// Below this many pairs, comparing all of them is fastest and needs no memory.
pub(super) const FEW_PAIRS: usize = 256;

/// The number of the class of each call of the first and the second list, and the number of classes.
pub(super) fn of(
    first: &[Call<'_>],
    second: &[Call<'_>],
    equality: Equality,
) -> (Vec<usize>, Vec<usize>, usize) {
    // By hash, the first member and the number of each class that has it.
    let mut known: HashMap<u64, Vec<(&str, &Object<'_>, usize)>> = HashMap::new();
    let mut count = 0;
    let first = first.iter().map(|call| (&*call.name, call.arguments()));
    let second = second.iter().map(|call| (&*call.name, call.arguments()));
    let mut class_of = |(name, arguments)| {
        let mut hasher = DefaultHasher::new();
        (name, equality.object_hash(arguments)).hash(&mut hasher);
        let candidates = known.entry(hasher.finish()).or_default();
        let same = |(known, others, _): &&(&str, &Object<'_>, usize)| {
            *known == name && equality.objects(others, arguments)
        };
        candidates.iter().find(same).map(|(_, _, class)| *class).unwrap_or_else(|| {
            candidates.push((name, arguments, count));
            count += 1;
            count - 1
        })
    };
    let first = first.map(&mut class_of).collect();
    let second = second.map(&mut class_of).collect();
    (first, second, count)
}
