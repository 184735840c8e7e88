"""Batches in, batches out, and partial results that are merged exactly.

Everything that has the Arrow C interface is taken without a copy: batches and tables of pyarrow, data
frames of polars and pandas, readers. What comes back is of the same library.

    scored = karat.arrow.score(table, kind="rankings", metrics=["recall@5", "ndcg@10"])

    parts = []
    for batch in batches:                       # on any number of workers
        part = karat.arrow.Partial("rankings")
        part.add(batch)
        parts.append(part)
    report = karat.merge(parts).report()        # the same digits, however the rows were divided
"""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Iterable
from typing import Any, Literal, Protocol, TypeVar, Union, runtime_checkable

from . import _karat
from ._errors import KaratError
from ._karat import Batch, BatchSchema, Table
from ._report import Report

__all__ = ["Batch", "BatchSchema", "Kind", "Partial", "Table", "input_schema", "merge", "score", "scored_schema"]

Kind = Literal["traces", "rankings", "verdicts"]


@runtime_checkable
class ArrowStream(Protocol):
    """Anything with the Arrow C stream interface."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


@runtime_checkable
class ArrowArray(Protocol):
    """Anything with the Arrow C array interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...


ArrowData = Union[ArrowStream, ArrowArray]
Data = TypeVar("Data", bound=ArrowData)


def _settings(options: dict[str, Any]) -> str:
    try:
        return json.dumps(options, sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise KaratError(f"the options: {error}") from error


@functools.lru_cache(maxsize=64)
def _scorer(kind: Kind, settings: str) -> _karat.Scorer:
    return _karat.Scorer(kind, settings)


def input_schema(kind: Kind) -> BatchSchema:
    """The columns that a kind is scored from; `pyarrow.schema(input_schema("traces"))` is that of pyarrow."""
    return _karat.input_schema(kind)


def scored_schema(kind: Kind, **options: Any) -> BatchSchema:
    """The columns that `score` returns."""
    return _scorer(kind, _settings(options)).schema


def score(batch: Data, *, kind: Kind, **options: Any) -> Data:
    """Scores rows: an id, and a column for each metric.

    The options are `metrics` (ids; the usual ones without it), `cutoffs` for ids such as `recall@k`,
    `group` (the column whose rows belong together), `max_errors` (the share of rows that may be bad) and
    those of `Partial`.
    """
    scorer = _scorer(kind, _settings(options))
    one = hasattr(batch, "__arrow_c_array__")
    scored: Data = _like(batch, scorer.score_batch(batch) if one else scorer.score(batch))
    return scored


def _like(source: Any, scored: Batch | Table) -> Any:
    """The scores as the library of the source has them."""
    library = type(source).__module__.partition(".")[0]
    if library == "pyarrow":
        import pyarrow

        return pyarrow.record_batch(scored) if isinstance(scored, Batch) else pyarrow.table(scored)
    if library == "polars":
        import polars

        return polars.DataFrame(scored)
    if library == "pandas":
        import pyarrow

        return pyarrow.table(scored).to_pandas()
    return scored


class Partial:
    """A partial result: what the report needs of the rows that were added.

    Memory does not grow with the number of rows. Partial results with the same kind and options are merged
    in any order and give the report of one process, to the last digit. They can be pickled, and sent as
    bytes.
    """

    def __init__(self, kind: Kind, *, part: str | None = None, **options: Any) -> None:
        """`part`, such as `hash:2/8`, says that the rows are one part of all, divided by id as `--partition`
        does: rows of other parts are refused, and so is a report of missing or repeated parts."""
        self._partial = _karat.Partial(kind, _settings(options), part)

    @classmethod
    def from_bytes(cls, data: bytes) -> Partial:
        """Reads what `to_bytes` wrote."""
        made = cls.__new__(cls)
        made._partial = _karat.Partial.from_bytes(data)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Partial.from_bytes, (self.to_bytes(),)

    @property
    def kind(self) -> str:
        """The kind of the rows."""
        return self._partial.kind

    @property
    def rows(self) -> int:
        """The number of rows that were added."""
        return self._partial.rows

    def add(self, rows: ArrowData) -> Partial:
        """Scores rows and adds them."""
        self._partial.add(rows)
        return self

    def add_scored(self, rows: ArrowData) -> Partial:
        """Adds rows that `score` has scored with the same options."""
        self._partial.add_scored(rows)
        return self

    def add_parquet(self, path: str | os.PathLike[str]) -> Partial:
        """Scores the rows of a Parquet file, in flat memory, and adds them."""
        self._partial.add_parquet(os.fspath(path), 0)
        return self

    def merge(self, other: Partial) -> Partial:
        """Adds another partial result."""
        self._partial.merge(other._partial)
        return self

    def to_bytes(self) -> bytes:
        """The partial result as bytes, the same for the same rows."""
        return self._partial.to_bytes()

    def report(self) -> Report:
        """The report of everything that was added."""
        return Report(json.loads(self._partial.report()))


def merge(partials: Iterable[Partial]) -> Partial:
    """One partial result of several, in whatever order they come; none of them is changed."""
    merged: Partial | None = None
    for partial in partials:
        if merged is None:
            merged = Partial.from_bytes(partial.to_bytes())
        else:
            merged.merge(partial)
    if merged is None:
        raise KaratError("there is no partial result to merge")
    return merged
