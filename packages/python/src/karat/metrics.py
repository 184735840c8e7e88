"""Metrics of one sample: rankings, tool calls, verdicts.

A metric that has no value raises `karat.Undefined` with the reason; it is never 0 and never NaN. Many
samples at once are scored by `karat.score_rankings` and the like, or by `karat.arrow`.

    >>> import karat
    >>> karat.recall_at(["news", "weather", "forecast"], {"weather": 2, "forecast": 1}, k=2)
    0.5
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, Union

from . import _karat
from ._errors import Undefined

__all__ = [
    "Confusion",
    "accuracy",
    "average_precision",
    "average_precision_score",
    "balanced_accuracy",
    "brier_score",
    "calls_alignment",
    "calls_exact",
    "calls_f1",
    "cohen_kappa",
    "definitions",
    "f1",
    "fpr",
    "hit_at",
    "log_loss",
    "mcc",
    "mrr",
    "ndcg",
    "precision",
    "precision_at",
    "ragas_tool_call_accuracy",
    "ragas_tool_call_f1",
    "rank",
    "recall",
    "recall_at",
    "recall_at_fpr",
    "roc_auc",
    "tool_correctness",
    "tool_permission",
]

Results = Union[Sequence[str], Mapping[str, float]]
"""Ids, best first; or a score for each id, sorted as trec_eval does (ties by id, descending)."""
Relevant = Union[Mapping[str, int], Iterable[str]]
"""A grade for each judged id (0 is a judged non-relevant one), or the relevant ids."""
Calls = Iterable[object]
"""Calls in order. Each is a mapping with `name` and `arguments`, a pair of both, a name alone, or an
object with such attributes: the `ToolCall` of RAGAS and of DeepEval."""


def rank(
    results: Results,
    relevant: Relevant,
    measures: Iterable[str],
    *,
    relevance_level: int = 1,
    judged_only: bool = False,
    float32: bool = False,
) -> dict[str, float | None]:
    """Scores one ranking by any ranking measures, such as `recall@5`; None where one is undefined.

    `relevance_level` is the lowest grade that counts as relevant, `judged_only` leaves results without a
    judgement out, and `float32` compares scores at the precision of pytrec_eval.
    """
    names = list(measures)
    found = _karat.ranking_scores(results, relevant, names, relevance_level, judged_only, float32)
    return {name: value for name, (value, _) in zip(names, found)}


def _one(results: Results, relevant: Relevant, measure: str) -> float:
    [(value, reason)] = _karat.ranking_scores(results, relevant, [measure], 1, False, False)
    if value is None:
        raise Undefined(reason or "undefined")
    return value


def recall_at(results: Results, relevant: Relevant, k: int) -> float:
    """The share of the relevant ids that are among the first k results."""
    return _one(results, relevant, f"recall@{k}")


def precision_at(results: Results, relevant: Relevant, k: int) -> float:
    """The share of the first k results that are relevant."""
    return _one(results, relevant, f"p@{k}")


def hit_at(results: Results, relevant: Relevant, k: int) -> float:
    """1 if a relevant id is among the first k results, otherwise 0."""
    return _one(results, relevant, f"success@{k}")


def ndcg(results: Results, relevant: Relevant, k: int | None = None, *, exponential: bool = False) -> float:
    """nDCG of the first k results: linear gains as trec_eval, or exponential ones."""
    name = "ndcg_exp" if exponential else "ndcg"
    return _one(results, relevant, name if k is None else f"{name}@{k}")


def mrr(results: Results, relevant: Relevant, k: int | None = None) -> float:
    """1 / the rank of the first relevant result; 0 without one."""
    return _one(results, relevant, "mrr" if k is None else f"mrr@{k}")


def average_precision(results: Results, relevant: Relevant, k: int | None = None) -> float:
    """The mean of the precisions at the ranks of the relevant ids (MAP is its mean over queries)."""
    return _one(results, relevant, "map" if k is None else f"map@{k}")


def ragas_tool_call_accuracy(called: Calls, reference: Calls, *, strict_order: bool = True) -> float:
    """`ToolCallAccuracy` of RAGAS, value for value."""
    suffix = "" if strict_order else "_unordered"
    return _karat.call_score(f"ragas.tool_call_accuracy{suffix}", called, reference)[0]


def ragas_tool_call_f1(called: Calls, reference: Calls) -> float:
    """`ToolCallF1` of RAGAS, value for value."""
    return _karat.call_score("ragas.tool_call_f1", called, reference)[0]


def tool_correctness(
    called: Calls,
    expected: Calls,
    *,
    ordered: bool = False,
    exact: bool = False,
    input: bool = False,
    output: bool = False,
) -> float:
    """The score of DeepEval's `ToolCorrectnessMetric`.

    `ordered` is its `should_consider_ordering`, `exact` its `should_exact_match`; `input` and `output` say
    which parameters are compared in addition to the names. The type of a tool (function or MCP) is not
    compared.
    """
    mode = "+".join([name for name, on in (("exact", exact), ("ordered", ordered)) if on]) or "default"
    compared = "+".join(["name"] + [name for name, on in (("input", input), ("output", output)) if on])
    return _karat.call_score(f"deepeval.tool_correctness|{mode}|{compared}", called, expected)[0]


def tool_permission(
    called: Calls, *, allowed: Iterable[str] | None = None, denied: Iterable[str] | None = None
) -> float:
    """The share of calls that are permitted, as DeepEval's `ToolPermissionMetric`."""
    return _karat.permission_score(
        called, None if allowed is None else set(allowed), None if denied is None else set(denied)
    )


def calls_exact(called: Calls, expected: Calls) -> bool:
    """True if the calls are the expected ones, in order, with equal arguments (JSON equality)."""
    return _karat.call_score("calls.exact", called, expected)[0] == 1.0


def calls_alignment(called: Calls, expected: Calls) -> float:
    """The best alignment of the calls with the expected ones, from 0 to 1."""
    return _karat.call_score("calls.alignment", called, expected)[0]


def calls_f1(called: Calls, expected: Calls) -> float:
    """F1 over the calls as multisets, with JSON equality."""
    return _karat.call_score("calls.f1", called, expected)[0]


class Confusion(NamedTuple):
    """Counts of verdicts."""

    true_positives: int
    false_positives: int
    false_negatives: int
    true_negatives: int

    @classmethod
    def of(cls, truth: Sequence[bool], flagged: Sequence[bool]) -> Confusion:
        """Counts verdicts, entry by entry."""
        return cls(*_karat.confusion(truth, flagged))

    def metric(self, id: str) -> float:
        """A metric of counts by its id: `precision`, `recall`, `f1`, `fpr`, `mcc`, `kappa`, …"""
        return _karat.count_metric((self[0], self[1], self[2], self[3]), id)


def _counted(truth: Sequence[bool], flagged: Sequence[bool], id: str) -> float:
    return Confusion.of(truth, flagged).metric(id)


def precision(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The share of flagged entries that are positive."""
    return _counted(truth, flagged, "precision")


def recall(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The share of positive entries that are flagged."""
    return _counted(truth, flagged, "recall")


def f1(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The harmonic mean of precision and recall."""
    return _counted(truth, flagged, "f1")


def fpr(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The share of negative entries that are flagged."""
    return _counted(truth, flagged, "fpr")


def accuracy(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The share of entries with the right verdict."""
    return _counted(truth, flagged, "accuracy")


def balanced_accuracy(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """The mean of recall and specificity."""
    return _counted(truth, flagged, "balanced_accuracy")


def mcc(truth: Sequence[bool], flagged: Sequence[bool]) -> float:
    """Matthews' correlation coefficient."""
    return _counted(truth, flagged, "mcc")


def cohen_kappa(first: Sequence[bool], second: Sequence[bool]) -> float:
    """The agreement of two detectors beyond chance."""
    return _counted(first, second, "kappa")


def roc_auc(truth: Sequence[bool], scores: Sequence[float], *, max_fpr: float | None = None) -> float:
    """The area under the ROC curve; up to `max_fpr`, standardised as scikit-learn does."""
    return _karat.score_metric(truth, scores, "roc_auc", max_fpr)


def average_precision_score(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """The area under the precision-recall curve, as scikit-learn's `average_precision_score`."""
    return _karat.score_metric(truth, scores, "average_precision", None)


def brier_score(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """The mean squared error of probabilities."""
    return _karat.score_metric(truth, scores, "brier", None)


def log_loss(truth: Sequence[bool], scores: Sequence[float]) -> float:
    """The mean negative log-likelihood of probabilities."""
    return _karat.score_metric(truth, scores, "log_loss", None)


def recall_at_fpr(truth: Sequence[bool], scores: Sequence[float], ceiling: float) -> float:
    """The best recall of any threshold whose false-positive rate is at most `ceiling`."""
    return _karat.score_metric(truth, scores, "recall_at_fpr", ceiling)


class Definition(NamedTuple):
    """A metric that Karat knows."""

    id: str
    summary: str
    formula: str
    better: str


def definitions() -> list[Definition]:
    """Every metric that Karat knows, as `karat metrics` lists them."""
    return [Definition(*row) for row in _karat.metric_definitions()]
