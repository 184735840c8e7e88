"""pytrec_eval as its documentation uses it: parse both files, evaluate, average.

`peer_pytrec_eval.py QRELS RUN MEASURE...` prints the means and the CPU seconds from opening the
files to the last mean, without interpreter start and imports.
"""

import json
import sys
import time

import pytrec_eval


def main():
    qrels_path, run_path, *measures = sys.argv[1:]
    began = time.process_time()
    with open(qrels_path) as file:
        qrels = pytrec_eval.parse_qrel(file)
    with open(run_path) as file:
        run = pytrec_eval.parse_run(file)
    loaded = time.process_time()
    per_query = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    means = {
        measure: pytrec_eval.compute_aggregated_measure(measure, [query[measure] for query in per_query.values()])
        for measure in measures
    }
    done = time.process_time()
    print(json.dumps({"means": means, "load_cpu_s": loaded - began, "work_cpu_s": done - began}))


if __name__ == "__main__":
    main()
