//! The alignment of two lists of calls: two runs of a task, or an expectation and a run.
//!
//! The common start (and, of very long lists, the common end) is put aside; between them the pairing of
//! the greatest worth is searched that keeps the order of both lists. A call that is left over on both
//! sides was moved.

use std::collections::BTreeMap;

use karat_core::observed::{Difference, Step};

/// The weight of a call that is the same, at its place.
pub(crate) const SAME: f64 = 1.0;
/// The weight of a call that is the same, at another place.
pub(crate) const MOVED: f64 = 0.5;
/// The weight of a call of the same tool with other arguments.
pub(crate) const CHANGED: f64 = 0.25;

/// The number of calls that are aligned with as many others; beyond, a run is not a trajectory but a
/// loop.
pub(crate) const MAX_ALIGNED: usize = 2000;

/// The worth of a pair of calls that are the same, and of calls that differ in arguments.
pub(crate) const FULL: u32 = 4;
pub(crate) const PART: u32 = 1;

/// The number of calls at the start and at the end that are the same on both sides.
#[derive(Clone, Copy, Default)]
pub(crate) struct Common {
    start: usize,
    end: usize,
}

impl Common {
    /// None if there are too many calls between them to be aligned.
    pub(crate) fn of(n: usize, m: usize, worth: &dyn Fn(usize, usize) -> u32) -> Option<Self> {
        let shorter = n.min(m);
        let start = (0..shorter).take_while(|&at| worth(at, at) == FULL).count();
        let fits = |n: usize, m: usize| n.saturating_mul(m) <= MAX_ALIGNED * MAX_ALIGNED;
        if fits(n - start, m - start) {
            return Some(Common { start, end: 0 });
        }
        // Only if necessary: the end may contain the best partner of an earlier call.
        let left = shorter - start;
        let end = (1..=left).take_while(|&back| worth(n - back, m - back) == FULL).count();
        fits(n - start - end, m - start - end).then_some(Common { start, end })
    }
}

/// Two lists of calls, by the names of their tools, and the comparison of any two of them.
pub(crate) struct Sides<'a> {
    pub(crate) before: Vec<String>,
    pub(crate) after: Vec<String>,
    /// [`FULL`], [`PART`], or 0 for calls of different tools.
    pub(crate) worth: &'a dyn Fn(usize, usize) -> u32,
    /// The arguments that differ between two calls of one tool.
    pub(crate) differences: &'a dyn Fn(usize, usize) -> Vec<Difference>,
}

impl Sides<'_> {
    /// The place of each call in the alignment, and the sum of the weights.
    pub(crate) fn align(&self, common: Common) -> (Vec<Step>, f64) {
        let (before, after) = (&self.before, &self.after);
        let pairs = self.pairs(common);
        let mut partner = vec![None; after.len()];
        let mut left: Vec<usize> = Vec::new();
        for (i, pair) in pairs.iter().enumerate() {
            match pair {
                Some(j) => partner[*j] = Some(i),
                None => left.push(i),
            }
        }
        let moved = self.moved(&partner, &mut left);
        let mut steps = Vec::new();
        let mut sum = 0.0;
        let mut missing = left.into_iter().peekable();
        let gone = |i: usize| Step::Missing { tool: before[i].clone(), at: i + 1 };
        for (j, tool) in after.iter().enumerate() {
            // A missing call is listed before the call that followed it.
            if let Some(i) = partner[j] {
                while let Some(earlier) = missing.next_if(|earlier| *earlier < i) {
                    steps.push(gone(earlier));
                }
            }
            let (step, weight) = self.step(j, tool.clone(), partner[j], moved.get(&j).copied());
            steps.push(step);
            sum += weight;
        }
        steps.extend(missing.map(gone));
        (steps, sum)
    }

    /// For each call of the first side its partner.
    fn pairs(&self, Common { start, end }: Common) -> Vec<Option<usize>> {
        let (n, m) = (self.before.len(), self.after.len());
        let within = |i, j| (self.worth)(i + start, j + start);
        let between = best_pairs(n - start - end, m - start - end, &within);
        let mut pairs: Vec<Option<usize>> = (0..start).map(Some).collect();
        pairs.extend(between.into_iter().map(|pair| pair.map(|j| j + start)));
        pairs.extend((m - end..m).map(Some));
        pairs
    }

    /// Finds calls that were moved: by the place on the second side, that on the first.
    fn moved(&self, partner: &[Option<usize>], left: &mut Vec<usize>) -> BTreeMap<usize, usize> {
        let mut moved: BTreeMap<usize, usize> = BTreeMap::new();
        left.retain(|&i| {
            let free = |j: &usize| {
                partner[*j].is_none() && !moved.contains_key(j) && (self.worth)(i, *j) == FULL
            };
            match (0..partner.len()).find(free) {
                Some(j) => {
                    moved.insert(j, i);
                    false
                }
                None => true,
            }
        });
        moved
    }

    fn step(
        &self,
        j: usize,
        tool: String,
        partner: Option<usize>,
        moved: Option<usize>,
    ) -> (Step, f64) {
        let to = j + 1;
        match (partner, moved) {
            (Some(i), _) if (self.worth)(i, j) == FULL => {
                (Step::Same { tool, from: i + 1, to }, SAME)
            }
            (Some(i), _) => {
                let arguments = (self.differences)(i, j);
                (Step::Changed { tool, from: i + 1, to, arguments }, CHANGED)
            }
            (None, Some(i)) => (Step::Moved { tool, from: i + 1, to }, MOVED),
            (None, None) => (Step::Inserted { tool, at: to }, 0.0),
        }
    }
}

/// For each call of the first side its partner, both orders kept, at the greatest worth. Of equal
/// choices the one that pairs earlier calls with earlier ones.
fn best_pairs(n: usize, m: usize, worth: &dyn Fn(usize, usize) -> u32) -> Vec<Option<usize>> {
    let width = m + 1;
    let mut best = vec![0_u32; (n + 1) * width];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            let skip = best[(i + 1) * width + j].max(best[i * width + j + 1]);
            let pair = match worth(i, j) {
                0 => 0,
                worth => worth + best[(i + 1) * width + j + 1],
            };
            best[i * width + j] = skip.max(pair);
        }
    }
    let mut pairs = vec![None; n];
    let (mut i, mut j) = (0, 0);
    while i < n && j < m {
        let here = best[i * width + j];
        let worth = worth(i, j);
        if worth > 0 && here == worth + best[(i + 1) * width + j + 1] {
            pairs[i] = Some(j);
            i += 1;
            j += 1;
        } else if here == best[(i + 1) * width + j] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}
