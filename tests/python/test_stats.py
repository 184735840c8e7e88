"""Statistics have the values of scipy."""

import random
import threading
import time

import pytest

import karat
from common import near, vectors


def test_intervals_of_rates_are_those_of_the_peers():
    compared = 0
    for case in vectors("stats_ci"):
        if case["kind"] != "binomial_ci":
            continue
        given = case["successes"], case["n"], case["confidence"]
        for name, interval in [
            ("wilson", karat.wilson(*given)),
            ("clopper_pearson", karat.clopper_pearson(*given)),
            ("jeffreys", karat.jeffreys(*given)),
        ]:
            low, high = case["expected"][name]
            assert near(interval.low, low, 1e-9) and near(interval.high, high, 1e-9), (case["id"], name)
            compared += 1
    assert compared > 30
    assert karat.wilson(45, 50).contains(0.9)
    assert near(karat.clopper_pearson_upper(0, 59), 1 - 0.05 ** (1 / 59))
    assert near(karat.clopper_pearson_lower(59, 59), 0.05 ** (1 / 59))


def test_paired_tests_are_those_of_scipy():
    from scipy import stats

    draw = random.Random(5)
    a = [draw.random() for _ in range(40)]
    b = [x - 0.1 + 0.2 * draw.random() for x in a]
    peer = stats.ttest_rel(a, b)
    found = karat.paired_t(a, b)
    assert near(found.t, peer.statistic, 1e-9) and near(found.p, peer.pvalue, 1e-9)
    interval = peer.confidence_interval(0.9)
    ours = karat.paired_t(a, b, confidence=0.9).interval
    assert near(ours.low, interval.low, 1e-9) and near(ours.high, interval.high, 1e-9)
    for alternative in ("greater", "less"):
        peer = stats.ttest_rel(a, b, alternative=alternative)
        assert near(karat.paired_t(a, b, alternative=alternative).p, peer.pvalue, 1e-9)
    peer = stats.wilcoxon(a, b)
    found = karat.wilcoxon(a, b)
    assert near(found.statistic, peer.statistic) and near(found.p, peer.pvalue, 1e-9) and found.exact
    # Four against none: both tails of a fair coin.
    assert near(karat.mcnemar([True] * 4, [False] * 4), stats.binomtest(0, 4).pvalue)
    assert near(karat.sign_test([1.0] * 5, [0.0] * 5), stats.binomtest(0, 5).pvalue)
    few = stats.permutation_test((a[:8], b[:8]), lambda x, y: (x - y).mean(), permutation_type="samples", vectorized=False)
    assert near(karat.permutation(a[:8], b[:8]).p, few.pvalue, 1e-9)
    assert not karat.permutation(a, b, seed=1).exact
    assert karat.permutation(a, b, seed=1) == karat.permutation(a, b, seed=1)


def test_clusters_widen_a_bootstrap_interval_and_their_order_does_not_matter():
    scores = [1.0, 1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0]
    servers = list("aaabbbccc")
    wide, narrow = karat.cluster_bootstrap(scores, servers), karat.bootstrap(scores)
    assert wide.high - wide.low > narrow.high - narrow.low
    pairs = sorted(zip(scores, servers), key=lambda pair: pair[1], reverse=True)
    assert karat.cluster_bootstrap([x for x, _ in pairs], [c for _, c in pairs]) == wide
    many = [n * 0.37 % 1 for n in range(60)]
    names = [n % 12 for n in range(60)]
    assert karat.cluster_bootstrap(many, names, seed=9) != karat.cluster_bootstrap(many, names)
    with pytest.raises(karat.Undefined, match="single cluster"):
        karat.cluster_bootstrap([1.0, 0.0], ["a", "a"])


def test_corrections_are_those_of_scipy():
    from scipy import stats

    p = [0.01, 0.04, 0.03, 0.2]
    assert all(near(x, y) for x, y in zip(karat.benjamini_hochberg(p), stats.false_discovery_control(p)))
    assert all(near(x, y) for x, y in zip(karat.holm(p), [0.04, 0.09, 0.09, 0.2]))
    assert karat.bonferroni(p) == [0.04, 0.16, 0.12, 0.8]


def test_repeated_runs():
    assert near(karat.pass_at_k(5, 2, 2), 1 - 3 / 10)
    assert near(karat.pass_hat_k(5, 4, 2), 6 / 10)
    with pytest.raises(karat.Undefined):
        karat.pass_at_k(2, 1, 3)


def test_wrong_settings_are_refused():
    with pytest.raises(karat.Undefined, match="length"):
        karat.paired_t([1.0, 2.0], [1.0])
    with pytest.raises(karat.KaratError, match="alternative"):
        karat.paired_t([1.0, 2.0], [1.0, 3.0], alternative="more")
    with pytest.raises(karat.KaratError):
        karat.wilson(5, 3)
    with pytest.raises(ValueError):
        karat.mcnemar([True], [True, False])


def test_other_threads_run_during_the_work():
    values = [float(n % 7) for n in range(20_000)]
    # The same work alone, to know that it is long enough to be seen.
    began = time.perf_counter()
    karat.bootstrap(values, seed=11, resamples=3_000)
    alone = time.perf_counter() - began
    ticks, done = [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    other = threading.Thread(target=tick)
    other.start()
    began = time.perf_counter()
    karat.bootstrap(values, seed=12, resamples=3_000)
    ended = time.perf_counter()
    done.set()
    other.join()
    during = [tick for tick in ticks if began < tick < ended]
    # With the lock held there would be none in the middle half.
    quarter = (ended - began) / 4
    assert alone > 0.02
    assert [tick for tick in during if began + quarter < tick < ended - quarter]
