"""The same traces by one process, by Ray with two workers and by Spark with two, one of which is killed:
`scale.py ROWS [FOLDER] [--engines ray,spark,ray-rows,spark-rows]`. Fails unless all reports are the same to the
last digit. The workers read the files; with `-rows` the engine reads them and hands the rows on.

Needs the wheel with ray[data], pyspark and a Java that it supports. Prints the throughput of each, and the
largest memory of a worker in the first third of the time and in all. The data is made in FOLDER unless it is
there.
"""

import argparse
import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import time

import karat
import karat.arrow

HERE = pathlib.Path(__file__).resolve().parent
# Large enough that batches cost nothing, small enough that memory stays flat.
BATCH = 65_536


class Workers(threading.Thread):
    """Watches the memory of processes whose command line has a word, and kills one of them if asked."""

    def __init__(self, word, kill_after=None):
        super().__init__(daemon=True)
        self.word, self.kill_after = word, kill_after
        self.samples, self.killed = [], None
        self.ended = threading.Event()

    def processes(self):
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
                    if self.word in words:
                        yield int(entry.name), int((entry / "status").read_text().split("VmRSS:")[1].split()[0])
                except (OSError, IndexError, ValueError):
                    continue

    def run(self):
        since = None
        while not self.ended.wait(0.1):
            for pid, kilobytes in self.processes():
                self.samples.append((time.monotonic(), kilobytes))
                since = since or time.monotonic()
                if self.kill_after is not None and self.killed is None and time.monotonic() - since > self.kill_after:
                    os.kill(pid, signal.SIGKILL)
                    self.killed = pid

    def largest(self):
        """The largest memory in the first third of the time, and in all."""
        if not self.samples:
            return 0, 0
        first, last = self.samples[0][0], self.samples[-1][0]
        early = max(kilobytes for at, kilobytes in self.samples if at <= first + (last - first) / 3)
        return early, max(kilobytes for _, kilobytes in self.samples)

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()


def comparable(report):
    document = report.to_dict()
    document.pop("environment")
    return json.dumps(document, indent=1)


def by_process(folder):
    """One process, batch by batch."""
    import pyarrow.dataset

    made = karat.Partial("traces")
    for batch in pyarrow.dataset.dataset(folder).to_batches(batch_size=BATCH, batch_readahead=2, fragment_readahead=1):
        made.add(batch)
    return made.report()


def by_ray(folder, kill, rows):
    import ray

    import karat.ray

    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, object_store_memory=800_000_000)
    try:
        with Workers("ray::MapWorker", 4 if kill else None) as workers:
            began = time.perf_counter()
            source = ray.data.read_parquet(str(folder)) if rows else folder
            # Where Ray reads the files, its tasks need a processor too.
            report = karat.ray.report(source, kind="traces", map_batches={"num_cpus": 0.5 if rows else 1})
            seconds = time.perf_counter() - began
        return report, seconds, workers.largest(), workers.killed
    finally:
        ray.shutdown()


def by_spark(folder, kill, rows):
    from pyspark.sql import SparkSession

    import karat.spark

    # The workers take the variable, whatever the session says.
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    spark = (
        SparkSession.builder.master("local-cluster[2,1,1024]")
        .appName("karat")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.pyspark.python", sys.executable)
        .config("spark.ui.enabled", "false")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "10000")
        .config("spark.sql.files.maxPartitionBytes", str(32 << 20))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("ERROR")
    try:
        # The Java process of an executor is killed with its tasks; the Python workers are measured.
        with Workers("CoarseGrainedExecutorBackend", 8 if kill else None) as workers, Workers("pyspark.daemon") as memory:
            began = time.perf_counter()
            report = karat.spark.report(spark.read.parquet(str(folder)) if rows else folder, kind="traces")
            seconds = time.perf_counter() - began
        return report, seconds, memory.largest(), workers.killed
    finally:
        spark.stop()


def one_process(folder):
    """In a process of its own, so that its memory can be read."""
    program = (
        "import sys, time, json, threading; sys.path.insert(0, sys.argv[2]); import scale\n"
        "watch = scale.Workers(sys.argv[3]); watch.__enter__()\n"
        "began = time.perf_counter(); report = scale.by_process(sys.argv[1]); took = time.perf_counter() - began\n"
        "watch.__exit__(); print(json.dumps([report.to_dict(), took, watch.largest()]))"
    )
    mark = f"one-process-{os.getpid()}"
    ended = subprocess.run([sys.executable, "-c", program, str(folder), str(HERE), mark], capture_output=True, text=True, check=True)
    document, seconds, kilobytes = json.loads(ended.stdout)
    return karat.Report(document), seconds, kilobytes


def main():
    arguments = argparse.ArgumentParser()
    arguments.add_argument("rows", type=int)
    arguments.add_argument("folder", type=pathlib.Path, nargs="?")
    arguments.add_argument("--engines", default="ray,spark")
    arguments = arguments.parse_args()
    engines = arguments.engines.split(",")
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or pathlib.Path(made) / "traces"
        if not folder.exists():
            subprocess.run([sys.executable, HERE / "make_traces.py", folder, str(arguments.rows)], check=True)
        reports = {}

        def note(name, report, seconds, kilobytes, more=""):
            reports[name] = comparable(report)
            speed = arguments.rows / seconds
            early, largest = (number / 1024 for number in kilobytes)
            print(f"{name:28} {seconds:7.1f} s {speed:11,.0f} traces/s  {early:6.0f} to {largest:6.0f} MB {more}", flush=True)

        note("one process", *one_process(folder))
        for name in engines:
            engine, _, rows = name.partition("-")
            run = {"ray": by_ray, "spark": by_spark}[engine]
            for kill in (False, True):
                report, seconds, kilobytes, killed = run(folder, kill, rows == "rows")
                if kill and not killed:
                    sys.exit(f"{name}: no worker was there long enough to be killed; give more rows")
                more = f"worker {killed} killed" if kill else ""
                note(f"{name}, 2 workers" + (", 1 killed" if kill else ""), report, seconds, kilobytes, more)
        parts = [karat.Partial("traces") for _ in range(100)]
        import pyarrow.dataset

        batches = pyarrow.dataset.dataset(folder).to_batches(batch_size=1_000)
        for number, batch in zip(range(200), batches):
            parts[number % 100].add(batch)
        began = time.perf_counter()
        merged = karat.merge(parts)
        print(f"100 partial results of {merged.rows} rows merged in {time.perf_counter() - began:.3f} s")
        different = [name for name, report in reports.items() if report != reports["one process"]]
        if different:
            sys.exit(f"the report differs: {', '.join(different)}")
        print(f"{len(reports)} reports are the same to the last digit")


if __name__ == "__main__":
    main()
