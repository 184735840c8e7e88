"""Parquet files in pieces, as the workers of Ray and Spark read them."""

import pyarrow
import pyarrow.parquet
import pytest

import karat
from common import ranking_table, rankings, without_environment
from karat import _files


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(_files, "PIECE_ROWS", 40)
    table = ranking_table(rankings(200))
    table = table.append_column("note", pyarrow.array(["not read"] * 200))
    (tmp_path / "day=1").mkdir()
    pyarrow.parquet.write_table(table.slice(0, 150), tmp_path / "day=1" / "a.parquet", row_group_size=25)
    pyarrow.parquet.write_table(table.slice(150), tmp_path / "b.parquet", row_group_size=25)
    (tmp_path / "_SUCCESS").write_text("")
    (tmp_path / ".b.parquet.crc").write_bytes(b"\0")
    return tmp_path


def test_all_pieces_together_are_all_rows(folder):
    whole = karat.Partial("rankings").add(ranking_table(rankings(200))).report()
    for paths in (folder, str(folder), f"file://{folder}", [folder / "b.parquet", str(folder / "day=1")]):
        pieces = _files.pieces(paths)
        assert len(pieces) == 4, pieces
        parts = []
        for piece in pieces:
            part = karat.Partial("rankings")
            for batch in _files.batches(piece, "rankings"):
                assert "note" not in batch.schema.names
                part.add(batch)
            parts.append(part)
        assert sorted(part.rows for part in parts) == [50, 50, 50, 50]
        assert without_environment(karat.merge(parts).report()) == without_environment(whole)


def test_only_columns_that_are_scored_are_read():
    names = ["id", "note", "ranked", "relevant", "group", "server"]
    assert _files.columns(names, "rankings") == ["id", "ranked", "relevant", "group"]
    assert _files.columns(names, "rankings", "server") == ["id", "ranked", "relevant", "server"]
    assert _files.columns(["id", "trace", "calls", "output"], "traces") == ["id", "trace"]


def test_what_cannot_be_read_is_named(tmp_path):
    with pytest.raises(karat.KaratError, match="no such file or folder"):
        _files.pieces(tmp_path / "none")
    with pytest.raises(karat.KaratError, match="the folder has no files"):
        _files.pieces(tmp_path)
    (tmp_path / "text.parquet").write_text("this is not Parquet at all")
    with pytest.raises(karat.KaratError, match="text.parquet") as raised:
        _files.pieces(tmp_path)
    assert raised.value.file.endswith("text.parquet")
    empty = ranking_table(rankings(1)).slice(0, 0)
    pyarrow.parquet.write_table(empty, tmp_path / "text.parquet")
    with pytest.raises(karat.KaratError, match="no rows"):
        _files.pieces(tmp_path)
