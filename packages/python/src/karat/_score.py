"""Reports of rows that Python has, of files, and of Arrow data."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

from . import _karat, arrow
from ._errors import KaratError
from ._program import run
from ._report import Report

__all__ = ["score_rankings", "score_traces", "score_verdicts"]

# The most rows whose scores are kept as items of the report, unless the caller decides.
MAX_ITEMS = 100_000
# The rows that are made into a batch at a time.
CHUNK = 8_192

Path = Union[str, "os.PathLike[str]"]
Rows = Iterable[Mapping[str, Any]]
Source = Union[Path, Rows, arrow.ArrowData]


def score_traces(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    name: str = "traces",
    items: bool | None = None,
    **options: Any,
) -> Report:
    """The report of traces.

    `source` is Arrow data (see `karat.arrow.input_schema("traces")`), a Parquet file, a list of traces as
    dictionaries in Karat's trace format, or a file in any format that `karat agent score` reads.

    `items` keeps the scores of each trace in the report, which comparing needs; without it they are kept
    for up to 100,000. The other options are those of `karat.arrow.score`.
    """
    if isinstance(source, (str, os.PathLike)) and not _is_parquet(source):
        wanted = [word for id in metrics or [] for word in ("--metric", id)]
        return _by_program(["agent", "score", os.fspath(source), "--name", name, *wanted], options)
    return _scored("traces", source, metrics, name, items, options)


def score_rankings(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    name: str = "rankings",
    items: bool | None = None,
    dataset: str | None = None,
    corpus: Path | None = None,
    golden: Path | None = None,
    **options: Any,
) -> Report:
    """The report of rankings.

    `source` is Arrow data (see `karat.arrow.input_schema("rankings")`), a Parquet file, or rows with `id`,
    `ranked` (ids, best first) and `relevant` (a mapping from id to grade, or the relevant ids) as a list or
    as a file of JSON lines. With `dataset`, or `corpus` and `golden`, it is a file of rankings that is
    scored against them, as `karat retrieval score` does.
    """
    if dataset is not None or corpus is not None or golden is not None:
        words = ["retrieval", "score", "--rankings", _needs_path(source)]
        for flag, value in (("--dataset", dataset), ("--corpus", corpus), ("--golden", golden)):
            words += [] if value is None else [flag, os.fspath(value)]
        return _by_program(words, options)
    return _scored("rankings", source, metrics, name, items, options)


def score_verdicts(
    source: Source,
    *,
    metrics: Sequence[str] | None = None,
    name: str = "verdicts",
    items: bool | None = None,
    corpus: Path | None = None,
    **options: Any,
) -> Report:
    """The report of verdicts.

    `source` is Arrow data (see `karat.arrow.input_schema("verdicts")`), a Parquet file, or rows with `id`,
    `label` (`malicious` or `benign`), `verdict` (`flag`, `pass`, `unsupported`, or true and false),
    optionally `score`, `category` and `group`, as a list or as a file of JSON lines. With `corpus` it is a
    file of verdicts that is scored against a labelled corpus, as `karat detection score` does.
    """
    if corpus is not None:
        words = ["detection", "score", "--verdicts", _needs_path(source), "--corpus", os.fspath(corpus)]
        return _by_program(words, options)
    return _scored("verdicts", source, metrics, name, items, options)


def _is_parquet(path: Path) -> bool:
    return os.fspath(path).endswith(".parquet")


def _needs_path(source: Source) -> str:
    if not isinstance(source, (str, os.PathLike)):
        raise KaratError("a file is needed here; rows carry their labels themselves")
    return os.fspath(source)


def _by_program(words: list[str], options: Mapping[str, Any]) -> Report:
    if options:
        raise KaratError(f"a file is scored by the program, which does not take: {', '.join(options)}")
    with tempfile.TemporaryDirectory() as folder:
        # Only `agent score` writes a report folder of its own.
        out = ["--out", folder] if words[0] == "agent" else []
        [found] = (Report(json.loads(one)) for one in _karat.read_reports("karat", run([*words, *out, "--json"])))
    return found


def _scored(
    kind: arrow.Kind,
    source: Source,
    metrics: Sequence[str] | None,
    name: str,
    items: bool | None,
    options: Mapping[str, Any],
) -> Report:
    settings = arrow._settings({"metrics": list(metrics or []), "name": name, **options})
    partial = _karat.Partial(kind, settings)
    most = {None: MAX_ITEMS, True: sys.maxsize, False: 0}[items]
    kept: list[_karat.Table] | None
    if isinstance(source, (str, os.PathLike)) and _is_parquet(source):
        table = partial.add_parquet(os.fspath(source), most)
        kept = None if table is None else [table]
    else:
        kept = []
        scorer = arrow._scorer(kind, settings)
        for batch in _batches(kind, source):
            scored = scorer.score(batch)
            partial.add_scored(scored)
            if kept is not None:
                kept.append(scored)
                kept = kept if partial.rows <= most else None
    report = partial.report()
    return Report(json.loads(_karat.with_items(report, kept) if kept else report))


def _batches(kind: arrow.Kind, source: Source) -> Iterator[arrow.ArrowData]:
    if isinstance(source, (str, os.PathLike)):
        path = os.fspath(source)
        yield from _chunks(kind, _lines(path), path)
    elif isinstance(source, (arrow.ArrowStream, arrow.ArrowArray)):
        yield source
    else:
        yield from _chunks(kind, ((None, row) for row in source), None)


def _lines(path: str) -> Iterator[tuple[int | None, Mapping[str, Any]]]:
    """The objects of a file of JSON lines, with their lines."""
    try:
        with open(path, encoding="utf-8") as file:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    row = json.loads(line)
                except ValueError as error:
                    raise KaratError(f"{path}:{number}: {error}", file=path, line=number) from error
                yield number, row
    except (OSError, UnicodeDecodeError) as error:
        raise KaratError(f"{path}: cannot be read: {error}", file=path) from error


def _chunks(
    kind: arrow.Kind, rows: Iterable[tuple[int | None, Mapping[str, Any]]], path: str | None
) -> Iterator[_karat.Batch]:
    columns: list[tuple[Any, ...]] = []
    for position, (line, row) in enumerate(rows):
        place = f"row {position}" if path is None else f"{path}:{line}"
        columns.append(_COLUMNS[kind](_Row(row, place, path, line)))
        if len(columns) == CHUNK:
            yield _made(kind, columns)
            columns = []
    if columns:
        yield _made(kind, columns)


def _made(kind: arrow.Kind, columns: list[tuple[Any, ...]]) -> _karat.Batch:
    make = {"traces": _karat.trace_rows, "rankings": _karat.ranking_rows, "verdicts": _karat.verdict_rows}
    made: _karat.Batch = make[kind](*map(list, zip(*columns)))  # type: ignore[operator]
    return made


class _Row:
    """A row, and the place to name when a field is wrong."""

    def __init__(self, row: Any, place: str, file: str | None, line: int | None) -> None:
        self.place, self.file, self.line = place, file, line
        if not isinstance(row, Mapping):
            raise self.wrong(f"a mapping is needed, and this is a {type(row).__name__}")
        self.row = row

    def wrong(self, message: str) -> KaratError:
        id = self.row.get("id") if hasattr(self, "row") else None
        named = f" (id {id!r})" if isinstance(id, str) else ""
        return KaratError(
            f"{self.place}{named}: {message}", file=self.file, line=self.line, id=id if isinstance(id, str) else None
        )

    def text(self, key: str) -> str:
        value = self.row.get(key)
        if not isinstance(value, str):
            found = "is missing" if value is None else f"is a {type(value).__name__}"
            raise self.wrong(f"`{key}` {found}; every row needs it as text")
        return value

    def text_or_none(self, key: str) -> str | None:
        return None if self.row.get(key) is None else self.text(key)

    def number_or_none(self, key: str) -> float | None:
        value = self.row.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.wrong(f"`{key}` is a {type(value).__name__}, not a number")
        return float(value)

    def listed(self, key: str) -> list[str]:
        value = self.row.get(key)
        if isinstance(value, (str, Mapping)) or not isinstance(value, Iterable):
            raise self.wrong(f"`{key}` must be a list of ids")
        ids = list(value)
        if not all(isinstance(id, str) for id in ids):
            raise self.wrong(f"`{key}` has an id that is not a text")
        return ids

    def graded(self, key: str) -> list[tuple[str, int]]:
        value = self.row.get(key)
        if not isinstance(value, Mapping):
            return [(id, 1) for id in self.listed(key)]
        for id, grade in value.items():
            if not isinstance(id, str) or isinstance(grade, bool) or not isinstance(grade, int):
                raise self.wrong(f"`{key}` must map ids to whole grades, and has {id!r}: {grade!r}")
        return list(value.items())


def _trace(row: _Row) -> tuple[Any, ...]:
    try:
        text = json.dumps(row.row, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise row.wrong(str(error)) from error
    return row.text("id"), row.text_or_none("group"), text


def _ranking(row: _Row) -> tuple[Any, ...]:
    return row.text("id"), row.text_or_none("group"), row.listed("ranked"), row.graded("relevant")


def _verdict(row: _Row) -> tuple[Any, ...]:
    verdict = row.row.get("verdict")
    if isinstance(verdict, bool):
        said: str | None = "flag" if verdict else "pass"
    else:
        said = row.text_or_none("verdict")
    return (
        row.text("id"),
        row.text_or_none("group"),
        row.text("label"),
        row.text_or_none("category"),
        said,
        row.number_or_none("score"),
    )


_COLUMNS = {"traces": _trace, "rankings": _ranking, "verdicts": _verdict}
