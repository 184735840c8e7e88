"""Tests of the comparison itself: above all, that it refuses to compare different numbers."""

import contextlib
import hashlib
import io
import json
import math
import os
import sys
import tempfile
import unittest
from pathlib import Path

import agreement
import compare
import data
import karat_output
import measure
from measure import Command, Usage


def command(name, *means):
    return Command(name, [], None, means=list(means))


class Agreement(unittest.TestCase):
    def test_equal_numbers_pass(self):
        agreement.require([command("karat", {"map": 0.25}), command("peer", {"map": 0.25 + 1e-12})], ["map"])

    def test_a_different_missing_or_undefined_number_fails(self):
        for wrong in ({"map": 0.25 + 1e-8}, {}, {"map": None}, {"map": math.nan}, {"map": "0.25"}):
            with self.subTest(wrong=wrong), self.assertRaises(agreement.Disagreement):
                agreement.require([command("karat", wrong), command("peer", {"map": 0.25})], ["map"])

    def test_a_metric_that_nobody_computed_fails(self):
        with self.assertRaises(agreement.Disagreement):
            agreement.require([command("karat", {}), command("peer", {})], ["map"])

    def test_the_means_known_beforehand_must_be_found(self):
        agreement.require_known([command("karat", {"mrr": 0.5, "map": 0.1})], {"mrr": 0.5})
        with self.assertRaisesRegex(agreement.Disagreement, "maker of the data"):
            agreement.require_known([command("karat", {"mrr": 0.4})], {"mrr": 0.5})

    def test_a_later_round_counts_too(self):
        with self.assertRaisesRegex(agreement.Disagreement, "round 2"):
            agreement.require([command("karat", {"map": 0.5}, {"map": 0.6}), command("peer", {"map": 0.5})], ["map"])


class Page(unittest.TestCase):
    REPORT = {
        "karat": "karat 0.1.0", "peers": {"ragas": "1.2"}, "python": "3.12.1", "rounds": 3, "smallest_measurable_mb": 10,
        "machine": {"processor": "a processor", "cores": 2},
        "comparisons": [{"title": "Calls", "rows": [{"tool": "karat", "cpu_s": 0.5, "peak_mb": 10, "ratio": 1.0},
                                                    {"tool": "ragas", "cpu_s": 5, "peak_mb": 250, "ratio": 10.0}]}],
    }

    def test_figures_are_between_the_marks_and_the_rest_stays(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder, "page.md")
            page.write_text("a\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nb\n")
            made = compare.markdown(self.REPORT).join(compare.parted(page))
            self.assertTrue(made.startswith("a\n<!-- figures: begin -->\n\nkarat 0.1.0, ragas 1.2;"), made)
            self.assertTrue(made.endswith("| ragas | 5.00 | 250 | 10.0 |\n\n<!-- figures: end -->\nb\n"), made)
            self.assertIn("| karat | 0.50 | ≤ 10 | 1.0 |", made)
            page.write_text("no marks")
            with self.assertRaises(measure.Failed):
                compare.parted(page)


class Data(unittest.TestCase):
    def made(self, kind, *sizes):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        return kind(folder.name, *sizes)

    def test_the_bytes_are_the_same_everywhere(self):
        qrels, run = self.made(data.rankings, 50, 20)["files"]
        (samples,) = self.made(data.conversations, 50)["files"]
        self.assertEqual(
            [file["sha256"][:16] for file in (qrels, run, samples)],
            ["7a554c32e44e01c3", "621da878420b924b", "43f47aca3d9433b2"],
        )

    def test_a_file_is_made_once_and_again_when_damaged(self):
        with tempfile.TemporaryDirectory() as folder:
            made = data.conversations(folder, 5)
            (first,) = made["files"]
            before = os.stat(first["path"]).st_mtime_ns
            self.assertEqual(data.conversations(folder, 5), made)
            self.assertEqual(os.stat(first["path"]).st_mtime_ns, before)
            with open(first["path"], "a", encoding="utf-8") as file:
                file.write("x")
            self.assertEqual(data.conversations(folder, 5), made)
            self.assertEqual(hashlib.sha256(Path(first["path"]).read_bytes()).hexdigest(), first["sha256"])
            self.assertFalse([name for name in os.listdir(folder) if name.endswith(".part")])

    def test_a_query_has_no_tool_twice_and_falling_scores(self):
        qrels, run = self.made(data.rankings, 200, 100)["files"]
        by_query = {}
        for line in Path(run["path"]).read_text().splitlines():
            query, _, tool, rank, score, _ = line.split()
            by_query.setdefault(query, []).append((tool, int(rank), float(score)))
        self.assertEqual(list(by_query), sorted(by_query))
        for results in by_query.values():
            tools, ranks, scores = zip(*results, strict=True)
            self.assertEqual(len(set(tools)), 100)
            self.assertEqual(ranks, tuple(range(1, 101)))
            self.assertEqual(list(scores), sorted(set(scores), reverse=True))
        judged = [tuple(line.split()) for line in Path(qrels["path"]).read_text().splitlines()]
        self.assertEqual(len({(query, tool) for query, _, tool, _ in judged}), len(judged))
        self.assertEqual({grade for *_, grade in judged}, {"0", "1", "2"})

    def test_the_calls_are_equal_wrong_reordered_and_missing(self):
        (samples,) = self.made(data.conversations, 500)["files"]
        kinds = set()
        for line in Path(samples["path"]).read_text(encoding="utf-8").splitlines():
            sample = json.loads(line)
            made, expected = sample["user_input"][1]["tool_calls"], sample["reference_tool_calls"]
            self.assertEqual(len(expected), 3)
            if made == expected:
                kinds.add("equal")
            elif len(made) < 3:
                kinds.add("missing")
            elif sorted(map(json.dumps, made)) == sorted(map(json.dumps, expected)):
                kinds.add("reordered")
            else:
                kinds.add("wrong")
        self.assertEqual(kinds, {"equal", "missing", "reordered", "wrong"})


class Measuring(unittest.TestCase):
    def run_python(self, program):
        with tempfile.TemporaryDirectory() as folder:
            return measure.run_once([sys.executable, "-I", "-S", "-c", program], folder)

    def test_memory_and_output_are_those_of_the_command(self):
        usage, output = self.run_python("block = b'x' * 50_000_000; print('done')")
        self.assertEqual(output, "done\n")
        self.assertGreater(usage.peak_mb, 50)
        self.assertLess(usage.peak_mb, 100)
        self.assertGreater(usage.cpu_s, 0)

    def test_a_failing_command_is_an_error_with_its_last_words(self):
        with self.assertRaisesRegex(measure.Failed, "(?s)ended with 3.*no such file"):
            self.run_python("import sys; sys.stderr.write('no such file'); sys.exit(3)")

    def test_a_command_that_is_not_there_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(measure.Failed, "No such file"):
            measure.run_once([os.path.join(folder, "absent")], folder)

    def test_unreadable_output_is_an_error(self):
        one = Command("karat", [sys.executable, "-c", "print('{}')"], lambda output: (karat_output.means(output), None))
        with tempfile.TemporaryDirectory() as folder, self.assertRaisesRegex(measure.Failed, "cannot be read"):
            measure.interleave([one], 1, folder, lambda text: None)


class Output(unittest.TestCase):
    def test_both_shapes_of_karats_json_are_read(self):
        trec = {"means": {"evaluated": {"map": 0.5}, "judged": {"map": 0.4}}}
        report = {"metrics": [{"id": "map", "value": 0.5, "n": 2}]}
        for document in (trec, {"means": {"map": 0.5}}, report):
            self.assertEqual(karat_output.means(json.dumps(document)), {"map": 0.5})

    def test_the_best_round_counts_and_work_stands_apart(self):
        karat = Command("karat", [], None, usages=[Usage(0.4, 12, 1), Usage(0.2, 14, 1)])
        peer = Command("peer", [], None, usages=[Usage(3.0, 99, 1, 2.0), Usage(4.0, 98, 1, 1.0)])
        rows = compare.table_rows([karat, peer], with_karat=True)
        self.assertEqual([row["cpu_s"] for row in rows], [0.2, 1.0, 3.0])
        self.assertEqual([row["peak_mb"] for row in rows], [12, 98, 98])
        self.assertEqual([round(row["ratio"], 9) for row in rows], [1.0, 5.0, 15.0])
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            compare.print_table("Title", rows, smallest_mb=12)
        self.assertRegex(printed.getvalue(), r"karat +0\.200 +<= 12 +1\.0\n")


if __name__ == "__main__":
    unittest.main()
