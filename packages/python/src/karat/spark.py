"""Karat on Spark: data frames are scored where they are, with `mapInArrow`.

    import karat.spark

    rows = spark.read.parquet("s3a://bucket/traces/")
    karat.spark.score(rows, kind="traces").write.parquet("s3a://bucket/scores/")
    report = karat.spark.report(rows, kind="traces")

Every task gives one partial result when it is complete, so that a task of a lost executor is run again and
nothing is counted twice. The executors need this package.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from .arrow import Kind, Partial, merge, scored_schema
from .arrow import score as _score

if TYPE_CHECKING:
    import pyarrow
    from pyspark.sql import DataFrame

    from ._report import Report

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

    columns = from_arrow_schema(pyarrow.schema(scored_schema(kind, **options)))
    return rows.mapInArrow(scored, columns)


def partial(rows: DataFrame, *, kind: Kind, **options: Any) -> Partial:
    """The partial result of all rows."""

    def parts(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = Partial(kind, **options)
        for batch in batches:
            made.add(batch)
        yield _row(made)

    def merged(batches: Iterator[pyarrow.RecordBatch]) -> Iterator[pyarrow.RecordBatch]:
        made = Partial(kind, **options)
        for batch in batches:
            for value in batch[COLUMN]:
                made.merge(Partial.from_bytes(value.as_py()))
        yield _row(made)

    schema = f"{COLUMN} binary"
    found = rows.mapInArrow(parts, schema).repartition(MERGERS).mapInArrow(merged, schema)
    return merge(Partial.from_bytes(bytes(row[COLUMN])) for row in found.collect())


def _row(made: Partial) -> pyarrow.RecordBatch:
    import pyarrow

    return pyarrow.record_batch({COLUMN: pyarrow.array([made.to_bytes()], pyarrow.binary())})


def report(rows: DataFrame, *, kind: Kind, **options: Any) -> Report:
    """The report of all rows: that of one process, to the last digit."""
    return partial(rows, kind=kind, **options).report()
