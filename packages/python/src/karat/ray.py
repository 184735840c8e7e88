"""Karat on Ray Data: datasets are scored where they are, by a pool of actors.

    import karat.ray, ray

    report = karat.ray.report("s3://bucket/traces/", kind="traces")
    rows = ray.data.read_parquet("s3://bucket/traces/")
    report = karat.ray.report(rows.filter(…), kind="traces")
    karat.ray.score(rows, kind="traces").write_parquet("s3://bucket/scores/")

An address of Parquet files is faster than a dataset of them: the actors read the files, and no row is handed
from one process to another. Every block gives a partial result of its own, so that a block of a lost worker
is scored again and nothing is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Union

from ._files import Paths, batches, columns, pieces
from .arrow import Kind, Partial, merge
from .arrow import score as _score

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from ._report import Report

    Rows = Union[Dataset, Paths]

__all__ = ["partial", "report", "score"]

COLUMN = "partial"


class _Scores:
    def __init__(self, kind: Kind, options: dict[str, Any]) -> None:
        self.kind = kind
        self.options = options
        self.group = options.get("group", "group")

    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        return _score(rows, kind=self.kind, **self.options)


class _Partials(_Scores):
    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        return _row(Partial(self.kind, **self.options).add(rows))


class _Files(_Scores):
    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        made = Partial(self.kind, **self.options)
        for row in rows.to_pylist():
            for batch in batches((row["path"], row["groups"]), self.kind, self.group):
                made.add(batch)
        return _row(made)


def _row(made: Partial) -> pyarrow.Table:
    import pyarrow

    return pyarrow.table({COLUMN: pyarrow.array([made.to_bytes()], pyarrow.large_binary())})


def _mapped(
    rows: Dataset,
    work: type[_Scores],
    kind: Kind,
    options: dict[str, Any],
    workers: int,
    batch_size: int | None,
    map_batches: dict[str, Any] | None,
) -> Dataset:
    from ray.data import ActorPoolStrategy

    return rows.map_batches(
        work,
        fn_constructor_args=(kind, options),
        batch_format="pyarrow",
        batch_size=batch_size,
        zero_copy_batch=True,
        **{"compute": ActorPoolStrategy(size=workers), **(map_batches or {})},
    )


def _needed(rows: Dataset, kind: Kind, options: dict[str, Any]) -> Dataset:
    """The dataset without columns that nothing is scored from, where they are known."""
    names = rows.columns(fetch_if_missing=False)
    wanted = columns(names or [], kind, options.get("group", "group"))
    return rows.select_columns(wanted) if names and wanted and len(wanted) < len(names) else rows


def score(
    rows: Dataset,
    *,
    kind: Kind,
    workers: int = 2,
    batch_size: int | None = 65_536,
    map_batches: dict[str, Any] | None = None,
    **options: Any,
) -> Dataset:
    """The scores of each row, as a dataset. `map_batches` has further arguments of that method, such as
    `num_cpus`, or a `compute` of your own."""
    return _mapped(_needed(rows, kind, options), _Scores, kind, options, workers, batch_size, map_batches)


def partial(
    rows: Rows,
    *,
    kind: Kind,
    workers: int = 2,
    batch_size: int | None = 65_536,
    map_batches: dict[str, Any] | None = None,
    **options: Any,
) -> Partial:
    """The partial result of all rows: those of a dataset, or of Parquet files, or of all files in folders."""
    from ray.data import Dataset, from_items

    if isinstance(rows, Dataset):
        made = _mapped(_needed(rows, kind, options), _Partials, kind, options, workers, batch_size, map_batches)
    else:
        items = [{"path": path, "groups": groups} for path, groups in pieces(rows)]
        # One piece at a time, so that the workers end together.
        files = from_items(items, override_num_blocks=len(items))
        made = _mapped(files, _Files, kind, options, workers, 1, map_batches)
    found = (
        Partial.from_bytes(value.as_py())
        for batch in made.iter_batches(batch_format="pyarrow", batch_size=None)
        for value in batch[COLUMN]
    )
    return merge(found)


def report(rows: Rows, *, kind: Kind, **options: Any) -> Report:
    """The report of all rows: that of one process, to the last digit. It takes what `partial` takes."""
    return partial(rows, kind=kind, **options).report()
