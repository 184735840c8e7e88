"""Karat on Spark: data frames are scored where they are, with `mapInArrow`.

    import karat.spark

    report = karat.spark.report("s3a://bucket/traces/", kind="traces")
    rows = spark.read.parquet("s3a://bucket/traces/")
    report = karat.spark.report(rows.where("day = '2026-11-17'"), kind="traces")
    karat.spark.score(rows, kind="traces").write.parquet("s3a://bucket/scores/")

An address of Parquet files is faster than a data frame of them: the Python workers read the files, and Spark
need not turn them into its rows and back. Every task gives one partial result when it is complete, so that a
task of a lost executor is run again and nothing is counted twice. The executors need this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Union

from ._files import Paths, batches, columns, pieces
from .arrow import Kind, Partial, merge, scored_schema
from .arrow import score as _score

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from ._report import Report

    Rows = Union[DataFrame, Paths]

__all__ = ["partial", "report", "score"]

COLUMN = "partial"
# Partial results are merged on this many executors first, so that few of them reach the driver.
MERGERS = 8


def score(rows: DataFrame, *, kind: Kind, **options: Any) -> DataFrame:
    """The scores of each row, as a data frame."""
    import pyarrow
    from pyspark.sql.pandas.types import from_arrow_schema

    def scored(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        for batch in batches:
            yield _score(batch, kind=kind, **options)

    fields = from_arrow_schema(pyarrow.schema(scored_schema(kind, **options)))
    return _needed(rows, kind, options).mapInArrow(scored, fields)


def partial(rows: Rows, *, kind: Kind, **options: Any) -> Partial:
    """The partial result of all rows: those of a data frame, or of Parquet files, or of all files in folders."""

    def parts(found: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = Partial(kind, **options)
        for batch in found:
            made.add(batch)
        yield _row(made)

    def merged(found: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = Partial(kind, **options)
        for batch in found:
            for value in batch[COLUMN]:
                made.merge(Partial.from_bytes(value.as_py()))
        yield _row(made)

    schema = f"{COLUMN} binary"
    if hasattr(rows, "mapInArrow"):
        made = _needed(rows, kind, options).mapInArrow(parts, schema)
    else:
        from pyspark.sql import SparkSession

        divided = pieces(rows)
        group = options.get("group", "group")

        def files(found: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
            numbers = (number.as_py() for batch in found for number in batch["id"])
            return parts(batch for number in numbers for batch in batches(divided[number], kind, group))

        # A task for each piece.
        numbers = SparkSession.builder.getOrCreate().range(0, len(divided), 1, len(divided))
        made = numbers.mapInArrow(files, schema)
    found = made.repartition(MERGERS).mapInArrow(merged, schema)
    return merge(Partial.from_bytes(bytes(row[COLUMN])) for row in found.collect())


def _needed(rows: DataFrame, kind: Kind, options: dict[str, Any]) -> DataFrame:
    """The data frame without columns that nothing is scored from: they need not be read."""
    wanted = columns(rows.columns, kind, options.get("group", "group"))
    # In backticks, for a dot in a name is a path to Spark.
    return rows.select(*(f"`{name}`" for name in wanted)) if wanted and len(wanted) < len(rows.columns) else rows


def _row(made: Partial) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.record_batch({COLUMN: pyarrow.array([made.to_bytes()], pyarrow.binary())})


def report(rows: Rows, *, kind: Kind, **options: Any) -> Report:
    """The report of all rows: that of one process, to the last digit."""
    return partial(rows, kind=kind, **options).report()
