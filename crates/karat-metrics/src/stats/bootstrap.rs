//! Bootstrap intervals for means of per-item scores and for other statistics of items.
//!
//! Items (or clusters of items) are drawn again with replacement by [`Draws`], so a seed fixes the
//! result to the last bit. If all values are equal the interval is their mean and has no width (scipy
//! agrees for the percentile method and returns NaN for BCa): the bootstrap cannot see what the sample does
//! not contain, and for a rate of 0 or 1 [`wilson`](super::wilson) or
//! [`clopper_pearson`](super::clopper_pearson) is the better choice. Values whose sum is too large for a
//! number are scaled down by a power of two; an end that is too large is infinite.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use super::mean::{all_equal, mean_of_huge};
use super::random::Draws;
use super::special::normal;
use super::{Interval, QuantileMethod, all_finite, allowed_miss, length, mean, quantile_of_sorted};
use crate::{Score, Undefined};

/// 2^-66: as many numbers as fit in memory, of any size, do not overflow when they are summed.
const SMALLER: f64 = f64::from_bits((1023 - 66) << 52);

/// The largest number of resamples that bootstrap and permutation accept.
pub const MAX_RESAMPLES: u32 = 1_000_000;

/// The construction of an interval from the resampled statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BootstrapMethod {
    /// Their quantiles. Never leaves the range of the metric.
    #[default]
    Percentile,
    /// Their quantiles mirrored at the estimate. May leave the range of the metric.
    Basic,
    /// Their quantiles, shifted for bias and skewness (Efron's BCa). The most accurate for skewed
    /// scores, the most erratic for small samples of few distinct values.
    Bca,
}

/// The settings of a bootstrap.
///
/// The default is 2,000 percentile resamples at 95 % from seed 0. Percentile, because it is defined
/// for every sample and keeps a rate within 0..1; 2,000, because the ends then wander by about 6 % of
/// a standard error between seeds, at a few milliseconds for some hundred items.
///
/// ```
/// use karat_metrics::stats::{Bootstrap, BootstrapMethod};
///
/// let scores = [0.0, 0.5, 1.0, 1.0, 0.5, 0.25];
/// let bootstrap = Bootstrap { seed: 7, method: BootstrapMethod::Bca, ..Bootstrap::default() };
/// let interval = bootstrap.mean(&scores)?;
/// assert!(interval.low > 0.2 && interval.high < 0.9);
/// assert_eq!(bootstrap.mean(&scores)?, interval);
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bootstrap {
    /// The number of times that the sample is drawn again, up to a million.
    pub resamples: usize,
    /// The seed of the draws.
    pub seed: u64,
    /// The confidence level, between 0 and 1.
    pub confidence: f64,
    /// The construction of the interval.
    pub method: BootstrapMethod,
}

impl Default for Bootstrap {
    fn default() -> Bootstrap {
        Bootstrap {
            resamples: 2_000,
            seed: 0,
            confidence: 0.95,
            method: BootstrapMethod::Percentile,
        }
    }
}

impl Bootstrap {
    /// Returns an interval for the mean of independent items.
    ///
    /// # Errors
    /// If there are fewer than two values, one is not finite, or a setting is out of range.
    pub fn mean(&self, xs: &[f64]) -> Result<Interval, Undefined> {
        self.check(xs.len())?;
        all_finite(xs)?;
        if all_equal(xs) {
            return self.point(xs[0]);
        }
        if may_overflow(xs.iter().copied(), xs.len()) {
            return self.mean(&smaller(xs)).map(larger);
        }
        let means = match drawn(self.seed, xs.len(), self.resamples) {
            Some(indices) => {
                let mut means = sums(xs, &indices);
                means.truncate(self.resamples);
                means.iter_mut().for_each(|sum| *sum /= length(xs.len()));
                means
            }
            None => {
                let mut draws = Draws::from_seed(self.seed);
                let mut sum = || xs.iter().map(|_| xs[draws.index(xs.len())]).sum::<f64>();
                (0..self.resamples).map(|_| sum() / length(xs.len())).collect()
            }
        };
        self.interval(mean(xs)?, means, || leave_one_out_means(xs))
    }

    /// Returns an interval for the mean of items that come in clusters (all tools of one server, all
    /// variants of one attack): whole clusters are drawn, and the mean is over all items drawn.
    ///
    /// `clusters[i]` identifies the cluster of `xs[i]`; any numbers will do.
    ///
    /// ```
    /// use karat_metrics::stats::Bootstrap;
    ///
    /// let scores = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0];
    /// let servers = [1, 1, 1, 2, 2, 2, 3, 3, 3];
    /// let bootstrap = Bootstrap::default();
    /// let clustered = bootstrap.clustered_mean(&scores, &servers)?;
    /// assert!(clustered.width() > bootstrap.mean(&scores)?.width());
    /// # Ok::<(), karat_metrics::Undefined>(())
    /// ```
    ///
    /// # Errors
    /// As [`mean`](Self::mean), and if the lists differ in length or there is only one cluster.
    pub fn clustered_mean(&self, xs: &[f64], clusters: &[usize]) -> Result<Interval, Undefined> {
        if xs.len() != clusters.len() {
            return Err(Undefined("every value needs a cluster"));
        }
        all_finite(xs)?;
        if may_overflow(xs.iter().copied(), xs.len()) {
            return self.clustered_mean(&smaller(xs), clusters).map(larger);
        }
        let mut by_name: BTreeMap<usize, (f64, f64)> = BTreeMap::new();
        for (x, cluster) in xs.iter().zip(clusters) {
            let (sum, count) = by_name.entry(*cluster).or_default();
            *sum += x;
            *count += 1.0;
        }
        let groups: Vec<(f64, f64)> = by_name.into_values().collect();
        if groups.len() > 1 && all_equal(xs) {
            self.check(groups.len())?;
            return self.point(xs[0]);
        }
        self.pooled_mean(&groups)
    }

    /// As [`clustered_mean`](Self::clustered_mean), from the sum and the number of values of each
    /// cluster.
    ///
    /// ```
    /// use karat_metrics::stats::Bootstrap;
    ///
    /// let bootstrap = Bootstrap::default();
    /// let listed = bootstrap.clustered_mean(&[1.0, 0.5, 0.0], &[1, 1, 2])?;
    /// assert_eq!(bootstrap.pooled_mean(&[(1.5, 2.0), (0.0, 1.0)])?, listed);
    /// # Ok::<(), karat_metrics::Undefined>(())
    /// ```
    ///
    /// Clusters whose means differ by rounding alone give a point.
    ///
    /// # Errors
    /// As there, and if a number of values is below 1 or not finite.
    pub fn pooled_mean(&self, groups: &[(f64, f64)]) -> Result<Interval, Undefined> {
        let counts = 1.0..=f64::MAX;
        if groups.iter().any(|(sum, count)| !sum.is_finite() || !counts.contains(count)) {
            return Err(Undefined("a cluster has no values, or one that is not finite"));
        }
        if groups.len() == 1 {
            return Err(Undefined("a single cluster shows no spread between clusters"));
        }
        self.check(groups.len())?;
        if may_overflow(groups.iter().map(|(sum, count)| sum.abs().max(*count)), groups.len()) {
            // The same factor for both leaves their quotient as it is.
            let groups: Vec<(f64, f64)> =
                groups.iter().map(|(sum, count)| (sum * SMALLER, count * SMALLER)).collect();
            return self.interval_of_groups(&groups);
        }
        self.interval_of_groups(groups)
    }

    fn interval_of_groups(&self, groups: &[(f64, f64)]) -> Result<Interval, Undefined> {
        let observed = pooled_mean(groups.iter().copied());
        let rounding = 1e-15 * observed.abs();
        if groups.iter().all(|(sum, count)| (sum / count - observed).abs() <= rounding) {
            return self.point(observed);
        }
        let means = match drawn(self.seed, groups.len(), self.resamples) {
            Some(indices) => {
                let mut means = pooled_means(groups, &indices);
                means.truncate(self.resamples);
                means
            }
            None => {
                let mut draws = Draws::from_seed(self.seed);
                let mut pooled =
                    || pooled_mean(groups.iter().map(|_| groups[draws.index(groups.len())]));
                (0..self.resamples).map(|_| pooled()).collect()
            }
        };
        self.interval(observed, means, || {
            (0..groups.len())
                .map(|left_out| {
                    let kept = groups.iter().enumerate().filter(|(i, _)| *i != left_out);
                    pooled_mean(kept.map(|(_, group)| *group))
                })
                .collect()
        })
    }

    /// Returns an interval for any statistic of n items, which is given the indices of the items drawn.
    ///
    /// A resample on which the statistic is undefined (precision with nothing flagged) is left out.
    ///
    /// ```
    /// use karat_metrics::stats::{self, Bootstrap};
    ///
    /// let latencies = [12.0, 15.0, 11.0, 30.0, 14.0, 12.0, 13.0];
    /// let interval = Bootstrap::default().statistic(latencies.len(), |drawn| {
    ///     stats::median(&drawn.iter().map(|index| latencies[*index]).collect::<Vec<_>>())
    /// })?;
    /// assert!(interval.contains(13.0));
    /// # Ok::<(), karat_metrics::Undefined>(())
    /// ```
    ///
    /// # Errors
    /// If there are fewer than two items or more than 2³² − 1, a setting is out of range, or the statistic
    /// is undefined or not finite on the items themselves, undefined on more than half of the resamples, or
    /// not finite on one of them.
    pub fn statistic(
        &self,
        n: usize,
        mut statistic: impl FnMut(&[usize]) -> Score,
    ) -> Result<Interval, Undefined> {
        self.check_items(n)?;
        let mut indices: Vec<usize> = (0..n).collect();
        let observed = statistic(&indices)?;
        let mut resampled = Vec::with_capacity(self.resamples);
        self.each_resample(&mut indices, &mut |drawn| resampled.extend(statistic(drawn)));
        if resampled.len() * 2 < self.resamples {
            return Err(Undefined("undefined on most resamples"));
        }
        all_finite(&resampled)?;
        self.interval(observed, resampled, || {
            (0..n)
                .filter_map(|left_out| {
                    let kept: Vec<usize> = (0..n).filter(|i| *i != left_out).collect();
                    statistic(&kept).ok()
                })
                .collect()
        })
    }

    /// Returns percentile intervals for several statistics of the same draws, at the cost of drawing
    /// once.
    ///
    /// Each is the one that [`statistic`](Self::statistic) returns with
    /// [`BootstrapMethod::Percentile`], whatever the method of `self`.
    ///
    /// ```
    /// use karat_metrics::stats::{self, Bootstrap};
    ///
    /// let scores = [0.0, 0.5, 1.0, 1.0, 0.5, 0.25];
    /// let [mean, median] = Bootstrap::default().statistics(scores.len(), |drawn| {
    ///     let drawn: Vec<f64> = drawn.iter().map(|index| scores[*index]).collect();
    ///     [stats::mean(&drawn), stats::median(&drawn)]
    /// });
    /// assert!(mean?.width() < median?.width());
    /// # Ok::<(), karat_metrics::Undefined>(())
    /// ```
    pub fn statistics<const N: usize>(
        &self,
        n: usize,
        mut statistics: impl FnMut(&[usize]) -> [Score; N],
    ) -> [Result<Interval, Undefined>; N] {
        if let Err(reason) = self.check_items(n) {
            return [Err(reason); N];
        }
        let mut indices: Vec<usize> = (0..n).collect();
        let observed = statistics(&indices);
        let mut resampled: [Vec<f64>; N] = std::array::from_fn(|_| Vec::new());
        self.each_resample(&mut indices, &mut |drawn| {
            for (values, value) in resampled.iter_mut().zip(statistics(drawn)) {
                values.extend(value);
            }
        });
        let percentile = Bootstrap { method: BootstrapMethod::Percentile, ..*self };
        let mut observed = observed.into_iter();
        resampled.map(|values| {
            let observed = observed.next().unwrap_or(Err(Undefined("no values")))?;
            if values.len() * 2 < self.resamples {
                return Err(Undefined("undefined on most resamples"));
            }
            all_finite(&values)?;
            percentile.interval(observed, values, Vec::new)
        })
    }

    /// Fills `indices` with the draws of each resample in turn.
    fn each_resample(&self, indices: &mut [usize], resample: &mut dyn FnMut(&[usize])) {
        let n = indices.len();
        let Some(kept) = drawn(self.seed, n, self.resamples) else {
            let mut draws = Draws::from_seed(self.seed);
            for _ in 0..self.resamples {
                indices.fill_with(|| draws.index(n));
                resample(indices);
            }
            return;
        };
        for number in 0..self.resamples {
            let block = &kept[number / LANES * LANES * n..][..LANES * n];
            for (index, row) in indices.iter_mut().zip(block.as_chunks::<LANES>().0) {
                *index = row[number % LANES] as usize;
            }
            resample(indices);
        }
    }

    /// Returns the interval that follows from means that were resampled elsewhere (see
    /// [`resampled_means`]), by this method and confidence; `resamples` and `seed` are ignored.
    ///
    /// # Errors
    /// If either list is empty or has a value that is not finite.
    pub fn from_means(&self, xs: &[f64], means: &[f64]) -> Result<Interval, Undefined> {
        all_finite(means)?;
        if means.is_empty() {
            return Err(Undefined("no resamples"));
        }
        let observed = mean(xs)?;
        if all_equal(xs) {
            return self.point(observed);
        }
        if may_overflow(xs.iter().copied(), xs.len()) {
            return self.from_means(&smaller(xs), &smaller(means)).map(larger);
        }
        self.interval(observed, means.to_vec(), || leave_one_out_means(xs))
    }

    /// The interval of values that do not differ.
    fn point(&self, mean: f64) -> Result<Interval, Undefined> {
        allowed_miss(self.confidence)?;
        Ok(Interval { low: mean, high: mean })
    }

    fn check_items(&self, n: usize) -> Result<(), Undefined> {
        match u32::try_from(n) {
            Ok(_) => self.check(n),
            Err(_) => Err(Undefined("more items than can be drawn")),
        }
    }

    fn check(&self, n: usize) -> Result<(), Undefined> {
        match n {
            0 => return Err(Undefined("no values")),
            1 => return Err(Undefined("a single value has no spread")),
            _ => {}
        }
        match self.resamples {
            0 => Err(Undefined("no resamples")),
            count if count > MAX_RESAMPLES as usize => {
                Err(Undefined("more than a million resamples"))
            }
            _ => Ok(()),
        }
    }

    fn interval(
        &self,
        observed: f64,
        mut resampled: Vec<f64>,
        leave_one_out: impl FnOnce() -> Vec<f64>,
    ) -> Result<Interval, Undefined> {
        let tail = allowed_miss(self.confidence)? / 2.0;
        all_finite(&[observed])?;
        match self.method {
            BootstrapMethod::Bca => resampled.sort_unstable_by(f64::total_cmp),
            _ => sort_ends(&mut resampled, tail),
        }
        let at = |q| quantile_of_sorted(&resampled, q, QuantileMethod::Linear);
        let (low, high) = (at(tail)?, at(1.0 - tail)?);
        if resampled.first() == resampled.last() {
            return Ok(Interval { low, high });
        }
        match self.method {
            BootstrapMethod::Percentile => Ok(Interval { low, high }),
            BootstrapMethod::Basic => {
                let twice = 2.0 * observed;
                let mirrored = |end: f64| match twice.is_finite() {
                    true => twice - end,
                    false => observed + (observed - end),
                };
                Ok(Interval { low: mirrored(high), high: mirrored(low) })
            }
            BootstrapMethod::Bca => {
                let bias = normal::quantile(share_below(&resampled, observed));
                let acceleration = acceleration(&leave_one_out());
                let shifted = |z: f64| {
                    let sum = bias + z;
                    normal::upper_tail(-(bias + sum / (1.0 - acceleration * sum)))
                };
                let z = normal::upper_quantile(tail);
                let (from, to) = (shifted(-z), shifted(z));
                if from.is_nan() || to.is_nan() || from > to {
                    return Err(Undefined("the estimate is outside its resamples"));
                }
                Ok(Interval { low: at(from)?, high: at(to)? })
            }
        }
    }
}

/// Returns `true` if a sum of n of these values, whichever they are, might be too large for a number.
fn may_overflow(values: impl Iterator<Item = f64>, n: usize) -> bool {
    values.fold(0.0, |largest: f64, x| largest.max(x.abs())) * length(n) > f64::MAX / 4.0
}

fn smaller(xs: &[f64]) -> Vec<f64> {
    xs.iter().map(|x| x * SMALLER).collect()
}

/// The interval of the values that [`smaller`] scaled down.
fn larger(interval: Interval) -> Interval {
    Interval { low: interval.low / SMALLER, high: interval.high / SMALLER }
}

/// Sorts as much of both ends as the quantiles at `tail` from them need; what is between is in no order.
fn sort_ends(values: &mut [f64], tail: f64) {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "at most n / 2")]
    let reach = (length(values.len()) * tail).ceil() as usize + 2;
    if values.len() < 2 * reach + 2 {
        values.sort_unstable_by(f64::total_cmp);
        return;
    }
    values.select_nth_unstable_by(reach, f64::total_cmp);
    values[..reach].sort_unstable_by(f64::total_cmp);
    let from = values.len() - reach;
    values[reach..].select_nth_unstable_by(from - reach, f64::total_cmp);
    values[from..].sort_unstable_by(f64::total_cmp);
}

/// The number of resamples that are summed at once: their sums do not wait for each other.
const LANES: usize = 8;
/// The most draws that are kept, of one bootstrap and of all.
const MAX_KEPT: usize = 1 << 21;
const MAX_KEPT_OF_ALL: usize = 1 << 22;

/// The draws of a bootstrap, [`LANES`] resamples at a time: the first draw of each, then the second.
struct Drawn {
    seed: u64,
    n: usize,
    resamples: usize,
    indices: Rc<[u32]>,
}

thread_local! {
    /// The draws of the last bootstraps, the latest first. Reports have many metrics and slices of as many
    /// items, pairs of systems have almost as many, and the draws of a seed are always the same.
    static LAST: RefCell<VecDeque<Drawn>> = const { RefCell::new(VecDeque::new()) };
}

/// The draws of a seed; none if they are too many to be kept.
fn drawn(seed: u64, n: usize, resamples: usize) -> Option<Rc<[u32]>> {
    let rows = resamples.div_ceil(LANES).checked_mul(LANES)?;
    if u32::try_from(n).is_err() || rows.checked_mul(n)? > MAX_KEPT {
        return None;
    }
    LAST.with_borrow_mut(|last| {
        let same = |drawn: &Drawn| (drawn.seed, drawn.n, drawn.resamples) == (seed, n, resamples);
        if let Some(at) = last.iter().position(same) {
            let found = last.remove(at)?;
            let indices = Rc::clone(&found.indices);
            last.push_front(found);
            return Some(indices);
        }
        let mut indices = vec![0; rows * n];
        let mut draws = Draws::from_seed(seed);
        for resample in 0..resamples {
            let block = resample / LANES * LANES * n;
            for at in 0..n {
                let index = draws.index(n);
                indices[block + at * LANES + resample % LANES] = u32::try_from(index).ok()?;
            }
        }
        let indices: Rc<[u32]> = indices.into();
        let kept =
            |last: &VecDeque<Drawn>| last.iter().map(|drawn| drawn.indices.len()).sum::<usize>();
        while kept(last) + indices.len() > MAX_KEPT_OF_ALL && last.pop_back().is_some() {}
        last.push_front(Drawn { seed, n, resamples, indices: Rc::clone(&indices) });
        Some(indices)
    })
}

/// The sum of each resample, every one in the order of its draws.
fn sums(xs: &[f64], indices: &[u32]) -> Vec<f64> {
    let mut sums = Vec::with_capacity(indices.len() / xs.len());
    for block in indices.chunks_exact(LANES * xs.len()) {
        let mut lanes = [0.0; LANES];
        for drawn in block.as_chunks::<LANES>().0 {
            for (sum, index) in lanes.iter_mut().zip(drawn) {
                *sum += xs[*index as usize];
            }
        }
        sums.extend(lanes);
    }
    sums
}

/// The pooled mean of each resample of groups, every one in the order of its draws.
fn pooled_means(groups: &[(f64, f64)], indices: &[u32]) -> Vec<f64> {
    let mut means = Vec::with_capacity(indices.len() / groups.len());
    for block in indices.chunks_exact(LANES * groups.len()) {
        let mut lanes = [(0.0, 0.0); LANES];
        for drawn in block.as_chunks::<LANES>().0 {
            for ((sum, count), index) in lanes.iter_mut().zip(drawn) {
                let group = groups[*index as usize];
                *sum += group.0;
                *count += group.1;
            }
        }
        means.extend(lanes.map(|(sum, count)| sum / count));
    }
    means
}

/// Returns the mean of each resample whose indices are given, for intervals that must not depend on
/// our draws. Their [`sample_std`](super::sample_std) is the bootstrap standard error.
///
/// ```
/// use karat_metrics::stats::{Bootstrap, resampled_means};
///
/// let scores = [0.0, 0.5, 1.0];
/// let means = resampled_means(&scores, &[[0, 1, 1], [2, 2, 1], [0, 1, 2]])?;
/// assert_eq!(means[2], 0.5);
/// assert!(Bootstrap::default().from_means(&scores, &means)?.contains(0.5));
/// # Ok::<(), karat_metrics::Undefined>(())
/// ```
///
/// # Errors
/// If a value is not finite, a resample is empty, or an index lies outside the sample.
pub fn resampled_means<R: AsRef<[usize]>>(
    xs: &[f64],
    indices: &[R],
) -> Result<Vec<f64>, Undefined> {
    all_finite(xs)?;
    indices
        .iter()
        .map(|resample| {
            let resample = resample.as_ref();
            let mut sum = 0.0;
            for index in resample {
                sum += xs.get(*index).ok_or(Undefined("an index lies outside the sample"))?;
            }
            if resample.is_empty() {
                Err(Undefined("an empty resample"))
            } else if sum.is_finite() {
                Ok(sum / length(resample.len()))
            } else {
                Ok(mean_of_huge(resample.iter().map(|index| &xs[*index])))
            }
        })
        .collect()
}

fn leave_one_out_means(xs: &[f64]) -> Vec<f64> {
    let sum: f64 = xs.iter().sum();
    xs.iter().map(|x| (sum - x) / (length(xs.len()) - 1.0)).collect()
}

fn pooled_mean(groups: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) = groups.fold((0.0, 0.0), |(sum, count), (s, c)| (sum + s, count + c));
    sum / count
}

/// The share of the resampled values below the observed one, ties counted half. Values that differ by
/// rounding only are ties: their sums were taken in another order.
fn share_below(sorted: &[f64], observed: f64) -> f64 {
    let scale = sorted.iter().fold(observed.abs(), |scale, x| scale.max(x.abs()));
    let below = sorted.partition_point(|x| *x < observed - 1e-12 * scale);
    let up_to = sorted.partition_point(|x| *x <= observed + 1e-12 * scale);
    length(below + up_to) / (2.0 * length(sorted.len()))
}

/// Efron's acceleration, from the statistic with each item left out.
fn acceleration(leave_one_out: &[f64]) -> f64 {
    let centre = leave_one_out.iter().sum::<f64>() / length(leave_one_out.len());
    let largest = leave_one_out.iter().map(|x| (centre - x).abs()).fold(0.0, f64::max);
    if largest == 0.0 || !largest.is_finite() {
        return 0.0;
    }
    let (mut squares, mut cubes) = (0.0, 0.0);
    for x in leave_one_out {
        let u = (centre - x) / largest;
        squares += u * u;
        cubes += u * u * u;
    }
    cubes / (6.0 * squares * squares.sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_that_are_kept_give_the_same_interval() {
        let xs: Vec<f64> = (0..37).map(|i| f64::from(i % 5) / 3.0).collect();
        for (seed, resamples) in [(1, 2001), (2, 2001), (1, 2001), (1, 7)] {
            let bootstrap = Bootstrap { seed, resamples, ..Bootstrap::default() };
            let mut draws = Draws::from_seed(seed);
            let mut one = || xs.iter().map(|_| xs[draws.index(xs.len())]).sum::<f64>() / 37.0;
            let means: Vec<f64> = (0..resamples).map(|_| one()).collect();
            assert_eq!(bootstrap.mean(&xs), bootstrap.from_means(&xs, &means));
            let alone: Vec<usize> = (0..xs.len()).collect();
            assert_eq!(bootstrap.clustered_mean(&xs, &alone), bootstrap.mean(&xs));

            let (mut indices, mut visited) = (alone, Vec::new());
            bootstrap.each_resample(&mut indices, &mut |drawn| visited.extend_from_slice(drawn));
            let mut draws = Draws::from_seed(seed);
            let drawn: Vec<usize> = (0..resamples * 37).map(|_| draws.index(37)).collect();
            assert_eq!(visited, drawn);
        }
    }

    #[test]
    fn several_statistics_at_once_equal_each_one_alone() {
        let xs = [0.0, 1.0, 0.5, 0.25, 1.0, 0.0, 0.75];
        let bootstrap = Bootstrap { seed: 3, resamples: 200, ..Bootstrap::default() };
        let mean_of = |drawn: &[usize]| mean(&drawn.iter().map(|i| xs[*i]).collect::<Vec<_>>());
        let share_of = |drawn: &[usize]| {
            let ones = drawn.iter().filter(|i| xs[**i] == 1.0).count();
            if ones == 0 { Err(Undefined("no ones")) } else { Ok(ones as f64) }
        };
        let both = bootstrap.statistics(xs.len(), |drawn| [mean_of(drawn), share_of(drawn)]);
        assert_eq!(both[0], bootstrap.statistic(xs.len(), mean_of));
        assert_eq!(both[1], bootstrap.statistic(xs.len(), share_of));
        let never = bootstrap.statistics(xs.len(), |_| [Err(Undefined("never"))]);
        assert_eq!(never, [Err(Undefined("never"))]);
    }

    #[test]
    fn requests_that_cannot_be_met_are_rejected() {
        let bootstrap = Bootstrap::default();
        assert!(bootstrap.mean(&[]).is_err());
        assert!(bootstrap.mean(&[1.0]).is_err());
        assert!(bootstrap.mean(&[1.0, f64::NAN]).is_err());
        assert!(bootstrap.clustered_mean(&[1.0, 2.0], &[0]).is_err());
        assert!(bootstrap.clustered_mean(&[1.0, 2.0], &[5, 5]).is_err());
        for resamples in [0, usize::MAX] {
            assert!(Bootstrap { resamples, ..bootstrap }.mean(&[1.0, 2.0]).is_err());
        }
        assert!(Bootstrap { confidence: 1.0, ..bootstrap }.mean(&[1.0, 2.0]).is_err());
        assert!(resampled_means(&[1.0], &[vec![1]]).is_err());
        assert!(resampled_means(&[1.0], &[vec![]]).is_err());
    }

    #[test]
    fn clusters_of_one_item_are_the_plain_bootstrap() {
        let xs = [0.1, 0.5, 0.4, 0.9, 0.2];
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            let plain = bootstrap.mean(&xs).unwrap();
            let clustered = bootstrap.clustered_mean(&xs, &[0, 1, 2, 3, 4]).unwrap();
            assert!((plain.low - clustered.low).abs() < 1e-12, "{method:?}");
            assert!((plain.high - clustered.high).abs() < 1e-12, "{method:?}");
        }
    }

    #[test]
    fn items_that_repeat_within_clusters_widen_the_interval() {
        let distinct: Vec<f64> = (0..10).map(|i| f64::from(i % 2)).collect();
        let xs: Vec<f64> = distinct.iter().flat_map(|x| [*x; 20]).collect();
        let clusters: Vec<usize> = (0..10).flat_map(|cluster| [cluster; 20]).collect();
        let bootstrap = Bootstrap::default();
        let plain = bootstrap.mean(&xs).unwrap();
        let clustered = bootstrap.clustered_mean(&xs, &clusters).unwrap();
        assert!(clustered.width() > 3.0 * plain.width(), "{plain:?} {clustered:?}");
    }

    #[test]
    fn the_mean_as_a_general_statistic_gives_the_interval_of_the_mean() {
        let xs = [0.1, 0.5, 0.4, 0.9, 0.2, 0.3];
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            let general = bootstrap
                .statistic(xs.len(), |drawn| {
                    Ok(drawn.iter().map(|i| xs[*i]).sum::<f64>() / length(drawn.len()))
                })
                .unwrap();
            let plain = bootstrap.mean(&xs).unwrap();
            assert!((plain.low - general.low).abs() < 1e-12, "{method:?}");
            assert!((plain.high - general.high).abs() < 1e-12, "{method:?}");
        }
    }

    #[test]
    fn equal_values_give_a_point() {
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            for x in [1.0, 0.1, -0.3, 0.0, 5e-324, 1.7e308, f64::MIN] {
                let point = Ok(Interval { low: x, high: x });
                for n in [2, 3, 7, 100] {
                    let xs = vec![x; n];
                    assert_eq!(bootstrap.mean(&xs), point, "{method:?} {x} {n}");
                    assert_eq!(bootstrap.from_means(&xs, &[x, x]), point, "{method:?} {x} {n}");
                    let clusters: Vec<usize> = (0..n).map(|item| usize::from(item == 0)).collect();
                    let clustered = bootstrap.clustered_mean(&xs, &clusters);
                    assert_eq!(clustered, point, "{method:?} {x} {n}");
                }
            }
            // 0.1 and 0.3 / 3 differ by rounding.
            let pooled = bootstrap.pooled_mean(&[(0.1, 1.0), (0.1 + 0.2, 3.0)]).unwrap();
            assert!(pooled.width() == 0.0 && pooled.contains((0.1 + (0.1 + 0.2)) / 4.0));
            let impossible = Bootstrap { confidence: 1.0, ..bootstrap };
            assert!(impossible.mean(&[1.0; 7]).is_err());
            let impossible = Bootstrap { resamples: 0, ..bootstrap };
            assert!(impossible.mean(&[1.0; 7]).is_err());
            assert!(impossible.clustered_mean(&[1.0; 7], &[0, 1, 2, 3, 4, 5, 6]).is_err());
        }
    }

    #[test]
    fn the_largest_values_have_the_interval_of_others_scaled() {
        let plain = [1.7, 1.1, -1.3, 0.2, 1.6, 0.9, -0.4];
        let clusters = [0, 0, 1, 1, 2, 3, 3];
        let scale = f64::from_bits((1023 + 1023) << 52);
        let huge = plain.map(|x| x * scale);
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { method, ..Bootstrap::default() };
            let scaled = |interval: Interval| Interval {
                low: interval.low * scale,
                high: interval.high * scale,
            };
            assert_eq!(bootstrap.mean(&huge), bootstrap.mean(&plain).map(scaled), "{method:?}");
            assert_eq!(
                bootstrap.clustered_mean(&huge, &clusters),
                bootstrap.clustered_mean(&plain, &clusters).map(scaled),
                "{method:?}"
            );
        }
        let indices = [[0, 0, 0, 4, 4, 4, 0], [1, 2, 3, 4, 5, 6, 0], [2, 2, 2, 2, 2, 2, 6]];
        let interval = |xs: &[f64]| {
            Bootstrap::default().from_means(xs, &resampled_means(xs, &indices).unwrap()).unwrap()
        };
        let (huge, plain) = (interval(&huge), interval(&plain));
        assert!((huge.low / scale - plain.low).abs() < 1e-12, "{huge:?} {plain:?}");
        assert!((huge.high / scale - plain.high).abs() < 1e-12, "{huge:?} {plain:?}");
    }

    #[test]
    fn numbers_of_values_are_checked() {
        let bootstrap = Bootstrap::default();
        for count in [f64::NAN, f64::INFINITY, 0.5, 0.0, -1.0] {
            assert!(bootstrap.pooled_mean(&[(1.0, count), (1.0, 1.0)]).is_err(), "{count}");
        }
        let many = bootstrap.pooled_mean(&[(1e308, 1e308), (1e308, 1.7e308)]).unwrap();
        assert!(many.low > 0.5 && many.high == 1.0, "{many:?}");
        assert!(bootstrap.statistic(usize::MAX, |_| Ok(1.0)).is_err());
        assert_eq!(bootstrap.statistics(usize::MAX, |_| [Ok(1.0)]).map(|one| one.is_err()), [true]);
    }

    #[test]
    fn a_statistic_that_is_not_a_number_has_no_interval() {
        for method in [BootstrapMethod::Percentile, BootstrapMethod::Basic, BootstrapMethod::Bca] {
            let bootstrap = Bootstrap { method, resamples: 50, ..Bootstrap::default() };
            for bad in [f64::NAN, f64::INFINITY] {
                let mut calls = 0;
                // On the items themselves, and nowhere else.
                let found = bootstrap.statistic(5, |drawn| {
                    calls += 1;
                    Ok(if calls == 1 { bad } else { length(drawn[0]) })
                });
                assert!(found.is_err(), "{method:?} {bad}");
            }
        }
    }
}
