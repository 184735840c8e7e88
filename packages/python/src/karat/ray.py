"""Karat on Ray Data: datasets are scored where they are, by a pool of actors.

    import karat.ray, ray

    rows = ray.data.read_parquet("s3://bucket/traces/")
    karat.ray.score(rows, kind="traces").write_parquet("s3://bucket/scores/")
    report = karat.ray.report(rows, kind="traces")

Every block gives a partial result of its own, so that a block of a lost worker is scored again and nothing
is counted twice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .arrow import Kind, Partial, merge
from .arrow import score as _score

if TYPE_CHECKING:
    import pyarrow
    from ray.data import Dataset

    from ._report import Report

__all__ = ["partial", "report", "score"]

COLUMN = "partial"


class _Scores:
    def __init__(self, kind: Kind, options: dict[str, Any]) -> None:
        self.kind = kind
        self.options = options

    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        return _score(rows, kind=self.kind, **self.options)


class _Partials(_Scores):
    def __call__(self, rows: pyarrow.Table) -> pyarrow.Table:
        import pyarrow

        made = Partial(self.kind, **self.options).add(rows)
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
    return _mapped(rows, _Scores, kind, options, workers, batch_size, map_batches)


def partial(
    rows: Dataset,
    *,
    kind: Kind,
    workers: int = 2,
    batch_size: int | None = 65_536,
    map_batches: dict[str, Any] | None = None,
    **options: Any,
) -> Partial:
    """The partial result of all rows."""
    made = _mapped(rows, _Partials, kind, options, workers, batch_size, map_batches)
    found = (
        Partial.from_bytes(value.as_py())
        for batch in made.iter_batches(batch_format="pyarrow", batch_size=None)
        for value in batch[COLUMN]
    )
    return merge(found)


def report(rows: Dataset, *, kind: Kind, **options: Any) -> Report:
    """The report of all rows: that of one process, to the last digit. It takes what `partial` takes."""
    return partial(rows, kind=kind, **options).report()
