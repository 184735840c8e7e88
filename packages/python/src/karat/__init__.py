"""Karat: measures agents, tool search and scanners, and compares measurements.

    import karat

    karat.recall_at(["news", "weather"], {"weather": 2}, k=1)      # metrics of one sample
    karat.score_rankings(rows)                                      # a report of many
    karat.compare(before, after)                                    # item by item, with tests
    karat.check("karat.toml")                                       # the project's gates

`karat.arrow` scores batches and merges partial results, `karat.ray` and `karat.spark` do so on a cluster,
and `karat.golden` and `karat.assert_no_regression` are for pytest. The command `karat` is installed too.
"""

from __future__ import annotations

from . import arrow, metrics, stats
from ._errors import KaratError, Undefined
from ._golden import assert_no_regression, golden
from ._karat import __version__
from ._program import check, find_program
from ._report import Check, Comparison, Delta, Item, Metric, Report, compare, load
from ._score import score_rankings, score_traces, score_verdicts
from .arrow import Partial, merge
from .metrics import *  # noqa: F403
from .stats import *  # noqa: F403

__all__ = [
    "Check",
    "Comparison",
    "Delta",
    "Item",
    "KaratError",
    "Metric",
    "Partial",
    "Report",
    "Undefined",
    "__version__",
    "arrow",
    "assert_no_regression",
    "check",
    "compare",
    "find_program",
    "golden",
    "load",
    "merge",
    "metrics",
    "score_rankings",
    "score_traces",
    "score_verdicts",
    "stats",
    *metrics.__all__,
    *stats.__all__,
]
