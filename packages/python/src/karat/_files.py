"""Parquet files in pieces, which the workers of an engine read by themselves.

An engine that reads the files hands every row from process to process on its way to the scorer (Spark also
turns it into a row of its own and back). Where the rows are wanted as they are in the files, it is enough to
hand out the names of the files: a piece is some row groups of one file, and a worker reads the columns it
needs from it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Union

from ._errors import KaratError
from ._karat import input_schema

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Paths", "Piece", "batches", "pieces"]

Paths = Union[str, "os.PathLike[str]", Iterable[Union[str, "os.PathLike[str]"]]]
# An address, and the numbers of row groups.
Piece = tuple[str, list[int]]

# Enough that starting a task costs nothing, and few enough that a lost worker loses little.
PIECE_ROWS = 250_000
BATCH_ROWS = 16_384


def _opened(address: str) -> tuple[Any, str]:
    from pyarrow import fs

    if "://" not in address:
        address = os.path.abspath(address)
    # The names that Hadoop has for what pyarrow calls s3.
    for name in ("s3a://", "s3n://"):
        if address.startswith(name):
            address = "s3://" + address[len(name) :]
    system, path = fs.FileSystem.from_uri(address)
    return system, path


def _listed(address: str) -> Iterator[tuple[Any, str, str]]:
    """The files of an address, each with its file system and an address of its own."""
    from pyarrow import fs

    system, path = _opened(address)
    found = system.get_file_info(path)
    scheme = address.split("://")[0] + "://" if "://" in address else ""
    if found.type == fs.FileType.File:
        yield system, path, address
        return
    if found.type != fs.FileType.Directory:
        raise KaratError(f"{address}: there is no such file or folder")
    inside = system.get_file_info(fs.FileSelector(path, recursive=True))
    files = sorted(info.path for info in inside if info.type == fs.FileType.File)
    # Engines put their marks next to the data: `_SUCCESS`, `.part-0.crc`.
    files = [file for file in files if not os.path.basename(file).startswith(("_", "."))]
    if not files:
        raise KaratError(f"{address}: the folder has no files")
    for file in files:
        yield system, file, scheme + file


def pieces(paths: Paths) -> list[Piece]:
    """Row groups of files or of all files in folders, in pieces of about a quarter of a million rows."""
    import pyarrow
    from pyarrow import parquet

    addresses = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    found: list[Piece] = []
    for address in addresses:
        for system, path, full in _listed(os.fspath(address)):
            with system.open_input_file(path) as file:
                try:
                    metadata = parquet.read_metadata(file)
                except pyarrow.ArrowInvalid as error:
                    raise KaratError(f"{full}: {error}", file=full) from error
            groups: list[int] = []
            rows = 0
            for group in range(metadata.num_row_groups):
                groups.append(group)
                rows += metadata.row_group(group).num_rows
                if rows >= PIECE_ROWS:
                    found.append((full, groups))
                    groups, rows = [], 0
            # An empty table is still a file with a row group.
            if rows:
                found.append((full, groups))
    if not found:
        raise KaratError("the files have no rows")
    return found


def columns(names: Iterable[str], kind: str, group: str = "group") -> list[str]:
    """Those of the names that the kind is scored from, in their order."""
    names = list(names)
    known = {*input_schema(kind).names} - {"group"} | {group}
    # Next to a whole trace nothing else is read.
    if kind == "traces" and "trace" in names:
        known = {"id", "trace", group}
    return [name for name in names if name in known]


def batches(piece: Piece, kind: str, group: str = "group") -> Iterator[pyarrow.RecordBatch]:
    """The rows of a piece, with the columns that the kind is scored from."""
    from pyarrow import parquet

    address, groups = piece
    system, path = _opened(address)
    with system.open_input_file(path) as source, parquet.ParquetFile(source) as file:
        wanted = columns(file.schema_arrow.names, kind, group)
        yield from file.iter_batches(batch_size=BATCH_ROWS, row_groups=groups, columns=wanted, use_threads=False)
