//! Gradient-boosted trees for two classes: small, deterministic, and enough for some dozens of
//! features of some thousands of entries.

/// Trees in the sum.
const ROUNDS: usize = 150;
/// The share of each tree that is added.
const RATE: f64 = 0.1;
/// Splits between the root and a leaf.
const DEPTH: usize = 3;
/// The most thresholds of a feature.
const THRESHOLDS: usize = 32;
/// The fewest entries on either side of a split.
const LEAST: usize = 10;
/// The penalty on the weight of leaves.
const PENALTY: f64 = 1.0;

/// A sum of trees.
pub(super) struct Trees {
    start: f64,
    trees: Vec<Node>,
    /// The loss that each feature saved.
    pub(super) gains: Vec<f64>,
}

enum Node {
    Leaf(f64),
    Split { feature: usize, threshold: f64, below: Box<Node>, above: Box<Node> },
}

impl Node {
    fn value(&self, features: &[f64]) -> f64 {
        match self {
            Node::Leaf(value) => *value,
            Node::Split { feature, threshold, below, above } => {
                let side = if features[*feature] <= *threshold { below } else { above };
                side.value(features)
            }
        }
    }
}

/// The state of a round: gradient and curvature of the loss of each entry.
struct Round<'a> {
    features: &'a [Vec<f64>],
    thresholds: &'a [Vec<f64>],
    gradient: Vec<f64>,
    curvature: Vec<f64>,
}

/// The sums over some entries.
#[derive(Clone, Copy, Default)]
struct Sums {
    gradient: f64,
    curvature: f64,
    entries: usize,
}

impl Sums {
    fn add(&mut self, other: Sums) {
        self.gradient += other.gradient;
        self.curvature += other.curvature;
        self.entries += other.entries;
    }

    fn without(self, other: Sums) -> Sums {
        Sums {
            gradient: self.gradient - other.gradient,
            curvature: self.curvature - other.curvature,
            entries: self.entries - other.entries,
        }
    }

    fn quality(self) -> f64 {
        self.gradient * self.gradient / (self.curvature + PENALTY)
    }
}

impl Trees {
    /// Learns from the entries at `places`.
    pub(super) fn fit(features: &[Vec<f64>], truth: &[bool], places: &[usize]) -> Trees {
        let width = features.first().map_or(0, Vec::len);
        let thresholds: Vec<Vec<f64>> =
            (0..width).map(|feature| thresholds(features, places, feature)).collect();
        let positives = places.iter().filter(|place| truth[**place]).count() as f64;
        let share = (positives / places.len().max(1) as f64).clamp(0.01, 0.99);
        let start = libm::log(share / (1.0 - share));
        let mut scores = vec![start; features.len()];
        let mut model = Trees { start, trees: Vec::new(), gains: vec![0.0; width] };
        for _ in 0..ROUNDS {
            let mut round = Round {
                features,
                thresholds: &thresholds,
                gradient: vec![0.0; features.len()],
                curvature: vec![0.0; features.len()],
            };
            for place in places {
                let p = super::words::logistic(scores[*place]);
                round.gradient[*place] = f64::from(u8::from(truth[*place])) - p;
                round.curvature[*place] = (p * (1.0 - p)).max(1e-6);
            }
            let tree = round.grow(places, DEPTH, &mut model.gains);
            for place in places {
                scores[*place] += tree.value(&features[*place]);
            }
            model.trees.push(tree);
        }
        model
    }

    /// The log-odds that an entry is an attack.
    pub(super) fn score(&self, features: &[f64]) -> f64 {
        self.start + self.trees.iter().map(|tree| tree.value(features)).sum::<f64>()
    }
}

/// The values between which a feature may be split: all of them where they are few, quantiles elsewhere.
fn thresholds(features: &[Vec<f64>], places: &[usize], feature: usize) -> Vec<f64> {
    let mut values: Vec<f64> = places.iter().map(|place| features[*place][feature]).collect();
    values.sort_by(f64::total_cmp);
    let mut distinct = values.clone();
    distinct.dedup();
    if distinct.len() > THRESHOLDS {
        distinct = (1..THRESHOLDS).map(|part| values[part * values.len() / THRESHOLDS]).collect();
        distinct.dedup();
    }
    distinct
}

impl Round<'_> {
    fn sums(&self, place: usize) -> Sums {
        Sums { gradient: self.gradient[place], curvature: self.curvature[place], entries: 1 }
    }

    fn grow(&self, places: &[usize], depth: usize, gains: &mut [f64]) -> Node {
        let mut all = Sums::default();
        places.iter().for_each(|place| all.add(self.sums(*place)));
        let leaf = Node::Leaf(RATE * all.gradient / (all.curvature + PENALTY));
        if depth == 0 {
            return leaf;
        }
        let Some((gain, feature, threshold)) = self.best(places, all) else { return leaf };
        gains[feature] += gain;
        let (below, above): (Vec<usize>, Vec<usize>) =
            places.iter().partition(|place| self.features[**place][feature] <= threshold);
        Node::Split {
            feature,
            threshold,
            below: Box::new(self.grow(&below, depth - 1, gains)),
            above: Box::new(self.grow(&above, depth - 1, gains)),
        }
    }

    /// The split that reduces the loss most; the first of those that are alike.
    fn best(&self, places: &[usize], all: Sums) -> Option<(f64, usize, f64)> {
        let mut best: Option<(f64, usize, f64)> = None;
        for (feature, thresholds) in self.thresholds.iter().enumerate() {
            let mut bins = vec![Sums::default(); thresholds.len() + 1];
            for place in places {
                let value = self.features[*place][feature];
                bins[thresholds.partition_point(|limit| *limit < value)].add(self.sums(*place));
            }
            let mut below = Sums::default();
            for (bin, threshold) in bins.iter().zip(thresholds) {
                below.add(*bin);
                let above = all.without(below);
                if below.entries < LEAST || above.entries < LEAST {
                    continue;
                }
                let gain = below.quality() + above.quality() - all.quality();
                if gain > 1e-9 && best.is_none_or(|(most, ..)| gain > most) {
                    best = Some((gain, feature, *threshold));
                }
            }
        }
        best
    }
}
