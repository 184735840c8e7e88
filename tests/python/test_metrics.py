"""Metrics have the values of the peers, for every case of the vectors."""

import math
import struct

import pytest

import karat
from common import near, vectors

TREC = {"recip_rank": "mrr", "map": "map", "ndcg": "ndcg", "Rprec": "rprec"}
CUT = {"P": "p", "recall": "recall", "success": "success", "ndcg_cut": "ndcg", "map_cut": "map"}


def measure_of(name):
    if name in TREC:
        return TREC[name]
    stem, _, cut = name.rpartition("_")
    return f"{CUT[stem]}@{cut}" if stem in CUT and cut.isdigit() else None


def ties_at_32_bits(scores):
    """True if scores differ that pytrec_eval, which rounds them to 32 bits, takes for equal."""
    return len(set(scores)) > len({struct.pack("f", score) for score in scores})


def test_rankings_are_scored_as_trec_eval_does():
    compared = 0
    for case in vectors("trec_eval"):
        for query, expected in case["expected"]["per_query"].items():
            if ties_at_32_bits(case["run"].get(query, {}).values()):
                continue
            names = {name: measure_of(name) for name in expected if measure_of(name) and name != "Rprec"}
            found = karat.metrics.rank(
                case["run"].get(query, {}),
                case["qrels"].get(query, {}),
                names.values(),
                relevance_level=case["relevance_level"],
                judged_only=case["judged_docs_only"],
            )
            for name, measure in names.items():
                if found[measure] is not None:
                    assert near(found[measure], expected[name]), (case["id"], query, name)
                    compared += 1
    assert compared > 2000


def test_the_named_functions_are_those_of_the_peer():
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="installed by tests/python/run")
    qrel, run = {"q": {"a": 2, "b": 1, "c": 0}}, {"q": {"x": 0.9, "a": 0.8, "c": 0.7, "b": 0.6}}
    measures = {"recall_2", "P_2", "ndcg_cut_3", "recip_rank", "map", "success_1"}
    peer = pytrec_eval.RelevanceEvaluator(qrel, measures).evaluate(run)["q"]
    results, relevant = run["q"], qrel["q"]
    assert karat.recall_at(results, relevant, 2) == peer["recall_2"]
    assert karat.precision_at(results, relevant, 2) == peer["P_2"]
    assert near(karat.ndcg(results, relevant, 3), peer["ndcg_cut_3"])
    assert karat.mrr(results, relevant) == peer["recip_rank"]
    assert near(karat.average_precision(results, relevant), peer["map"])
    assert karat.hit_at(results, relevant, 1) == peer["success_1"]
    # An ordered list, and relevant ids without grades.
    assert karat.recall_at(["x", "a", "c", "b"], {"a", "b"}, 2) == 0.5
    assert karat.recall_at(("x", "a"), iter(["a"]), 2) == 1.0


def test_calls_are_scored_as_ragas_does():
    for case in vectors("ragas_tool_calls"):
        called = [call for message in case["messages"] for call in message.get("tool_calls") or []]
        reference, expected = case["reference_tool_calls"], case["expected"]
        found = {
            "collections_accuracy_strict": karat.ragas_tool_call_accuracy(called, reference),
            "collections_accuracy_unordered": karat.ragas_tool_call_accuracy(called, reference, strict_order=False),
            "collections_f1": karat.ragas_tool_call_f1(called, reference),
        }
        for name, value in found.items():
            if isinstance(expected[name], float):
                assert near(value, expected[name]), (case["id"], name)


def test_calls_are_scored_as_deepeval_does():
    compared = 0
    for case in vectors("deepeval_tool_correctness"):
        # Tools of MCP servers are not told apart from functions here.
        if any(call.get("type") == "MCP" for call in case["tools_called"] + case["expected_tools"]):
            continue
        for setting, expected in case["expected"].items():
            mode, compares, *more = setting.split("|")
            if more or not isinstance(expected.get("score"), float):
                continue
            found = karat.tool_correctness(
                case["tools_called"],
                case["expected_tools"],
                exact="exact" in mode,
                ordered="ordered" in mode,
                input="input" in compares,
                output="output" in compares,
            )
            assert near(found, expected["score"]), (case["id"], setting)
            compared += 1
    assert compared > 2000


def test_calls_come_as_dictionaries_pairs_names_and_objects():
    class ToolCall:
        name = "add"
        args = {"a": 1}

    expected = [{"name": "add", "arguments": {"a": 1}}]
    for call in ({"name": "add", "args": {"a": 1}}, ("add", {"a": 1}), ToolCall(), ("add", '{"a": 1}')):
        assert karat.calls_exact([call], expected), call
    assert not karat.calls_exact(["add"], expected)
    assert karat.calls_f1([{"name": "add", "input_parameters": {"a": 1.0}}], expected) == 1.0
    assert karat.tool_permission(["read", "delete"], denied=["delete"]) == 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (3, r"called\[0\] is a int, which is not a call"),
        ({"arguments": {}}, r"called\[0\] has no `name`"),
        (("add", [1]), "are a list, not a mapping"),
        (("add", {"when": object()}), "a object, which JSON does not have"),
        (("add", {"x": math.nan}), "NaN"),
        (("add", {1: 2}), "a key that is not a string"),
        (("add", "{broken"), "arguments of called"),
    ],
)
def test_a_call_that_is_none_is_refused(call, message):
    with pytest.raises(karat.KaratError, match=message):
        karat.calls_f1([call], [])


def test_a_list_that_contains_itself_is_refused():
    endless = []
    endless.append(endless)
    with pytest.raises(karat.KaratError, match="nested deeper"):
        karat.calls_f1([("add", {"x": endless})], [])


def test_verdicts_are_scored_as_sklearn_does():
    from sklearn import metrics as sklearn

    truth = [True, False, True, True, False, False, True, False] * 5
    flagged = [True, True, False, True, False, False, True, True] * 4 + [False] * 8
    scores = [n / 40 for n in range(40)]
    assert near(karat.precision(truth, flagged), sklearn.precision_score(truth, flagged))
    assert near(karat.recall(truth, flagged), sklearn.recall_score(truth, flagged))
    assert near(karat.f1(truth, flagged), sklearn.f1_score(truth, flagged))
    assert near(karat.accuracy(truth, flagged), sklearn.accuracy_score(truth, flagged))
    assert near(karat.balanced_accuracy(truth, flagged), sklearn.balanced_accuracy_score(truth, flagged))
    assert near(karat.mcc(truth, flagged), sklearn.matthews_corrcoef(truth, flagged))
    assert near(karat.cohen_kappa(truth, flagged), sklearn.cohen_kappa_score(truth, flagged))
    assert near(karat.roc_auc(truth, scores), sklearn.roc_auc_score(truth, scores))
    assert near(karat.roc_auc(truth, scores, max_fpr=0.3), sklearn.roc_auc_score(truth, scores, max_fpr=0.3))
    assert near(karat.average_precision_score(truth, scores), sklearn.average_precision_score(truth, scores))
    assert near(karat.brier_score(truth, scores), sklearn.brier_score_loss(truth, scores))
    inner = [min(max(score, 0.01), 0.99) for score in scores]
    assert near(karat.log_loss(truth, inner), sklearn.log_loss(truth, inner), 1e-9)


def test_a_metric_without_a_value_says_why():
    with pytest.raises(karat.Undefined, match="no negative entries"):
        karat.fpr([True], [True])
    with pytest.raises(karat.KaratError, match="differ in length: 1 and 2"):
        karat.precision([True], [True, False])
    with pytest.raises(karat.KaratError, match="listed twice"):
        karat.recall_at(["a", "a"], ["a"], 1)
    with pytest.raises(karat.KaratError, match="did you mean"):
        karat.metrics.rank(["a"], ["a"], ["recal@5"])
    with pytest.raises(karat.KaratError, match="a list of ids"):
        karat.recall_at("abc", ["a"], 1)
    assert karat.metrics.rank(["a"], ["a"], ["hard_negative_rate"]) == {"hard_negative_rate": None}


def test_every_metric_is_described():
    known = {one.id: one for one in karat.definitions()}
    assert known["recall@k"].better == "higher" and known["fpr"].better == "lower"
    assert all(one.summary and one.formula for one in known.values())
