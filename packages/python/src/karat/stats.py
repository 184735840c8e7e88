"""Intervals, paired tests, bootstrap and corrections. The same arguments give the same digits everywhere.

    >>> import karat
    >>> karat.wilson(45, 50).low > 0.78
    True
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Literal, NamedTuple

from . import _karat

__all__ = [
    "Interval",
    "PairedT",
    "Permutation",
    "Wilcoxon",
    "benjamini_hochberg",
    "bonferroni",
    "bootstrap",
    "clopper_pearson",
    "clopper_pearson_lower",
    "clopper_pearson_upper",
    "cluster_bootstrap",
    "holm",
    "jeffreys",
    "mcnemar",
    "paired_t",
    "pass_at_k",
    "pass_hat_k",
    "permutation",
    "sign_test",
    "wilcoxon",
    "wilson",
]

Alternative = Literal["two-sided", "greater", "less"]


class Interval(NamedTuple):
    """A confidence interval."""

    low: float
    high: float

    def contains(self, value: float) -> bool:
        """True if the value is in the interval."""
        return self.low <= value <= self.high


class PairedT(NamedTuple):
    """The result of a paired t-test on a − b."""

    mean_difference: float
    t: float
    degrees: float
    p: float
    interval: Interval


class Wilcoxon(NamedTuple):
    """The result of a signed-rank test."""

    statistic: float
    p: float
    exact: bool


class Permutation(NamedTuple):
    """The result of a sign-flip test."""

    p: float
    exact: bool
    resamples: int


def wilson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Wilson's interval of a rate."""
    return Interval(*_karat.rate_interval("wilson", successes, n, confidence))


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """The exact two-sided interval of a rate."""
    return Interval(*_karat.rate_interval("clopper_pearson", successes, n, confidence))


def jeffreys(successes: int, n: int, confidence: float = 0.95) -> Interval:
    """Jeffreys' interval of a rate."""
    return Interval(*_karat.rate_interval("jeffreys", successes, n, confidence))


def clopper_pearson_upper(successes: int, n: int, confidence: float = 0.95) -> float:
    """The exact one-sided upper bound, which certifies a ceiling."""
    return _karat.rate_bound("upper", successes, n, confidence)


def clopper_pearson_lower(successes: int, n: int, confidence: float = 0.95) -> float:
    """The exact one-sided lower bound, which certifies a floor."""
    return _karat.rate_bound("lower", successes, n, confidence)


def paired_t(
    a: Sequence[float],
    b: Sequence[float],
    *,
    alternative: Alternative = "two-sided",
    confidence: float = 0.95,
) -> PairedT:
    """Student's t-test on the differences a − b."""
    mean, t, degrees, p, interval = _karat.paired_t(a, b, alternative, confidence)
    return PairedT(mean, t, degrees, p, Interval(*interval))


def wilcoxon(a: Sequence[float], b: Sequence[float], *, exact: bool = False) -> Wilcoxon:
    """The signed-rank test; the method as scipy chooses it, or exact also with ties."""
    return Wilcoxon(*_karat.wilcoxon(a, b, exact))


def mcnemar(a: Sequence[bool], b: Sequence[bool]) -> float:
    """McNemar's exact p-value for two systems that were right or wrong on the same items."""
    pairs = list(zip(a, b, strict=True))
    only_a = sum(1 for x, y in pairs if x and not y)
    only_b = sum(1 for x, y in pairs if y and not x)
    return _karat.mcnemar(only_a, only_b)


def sign_test(a: Sequence[float], b: Sequence[float]) -> float:
    """The exact p-value of the sign test."""
    return _karat.sign_test(a, b)


def permutation(
    a: Sequence[float],
    b: Sequence[float],
    *,
    alternative: Alternative = "two-sided",
    max_exact: int = 24,
    resamples: int = 20_000,
    seed: int = 0,
) -> Permutation:
    """The sign-flip test on a − b: exact where that is affordable, otherwise from seeded random signs."""
    return Permutation(*_karat.permutation(a, b, alternative, max_exact, resamples, seed))


def bootstrap(
    values: Sequence[float],
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: Literal["percentile", "basic", "bca"] = "percentile",
) -> Interval:
    """A bootstrap interval of the mean of independent values."""
    return Interval(*_karat.bootstrap(values, None, confidence, resamples, seed, method))


def cluster_bootstrap(
    values: Sequence[float],
    clusters: Iterable[Hashable],
    *,
    confidence: float = 0.95,
    resamples: int = 2_000,
    seed: int = 0,
    method: Literal["percentile", "basic", "bca"] = "percentile",
) -> Interval:
    """A bootstrap interval of the mean of values in clusters: whole clusters are drawn."""
    names = [str(cluster) for cluster in clusters]
    return Interval(*_karat.bootstrap(values, names, confidence, resamples, seed, method))


def holm(p: Sequence[float]) -> list[float]:
    """Holm's correction of p-values."""
    return _karat.correct("holm", p)


def bonferroni(p: Sequence[float]) -> list[float]:
    """Bonferroni's correction of p-values."""
    return _karat.correct("bonferroni", p)


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """The correction of Benjamini and Hochberg, for the false discovery rate."""
    return _karat.correct("benjamini_hochberg", p)


def pass_at_k(n: int, successes: int, k: int) -> float:
    """The chance that at least one of k attempts succeeds, from n attempts."""
    return _karat.pass_at_k(n, successes, k)


def pass_hat_k(n: int, successes: int, k: int) -> float:
    """pass^k: the chance that all of k attempts succeed, from n attempts."""
    return _karat.pass_hat_k(n, successes, k)
