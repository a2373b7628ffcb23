"""Rows into Parquet: what goes in comes out, whole files only, in bounded memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from godwit.errors import UsageError
from godwit.trace import rows as in_rows
from godwit.trace.background import Action
from godwit.trace.schema import TABLES
from godwit.trace.writer import TraceWriter


class AtOnce:
    """Does everything when it is asked for; nothing, while it is lazy."""

    def __init__(self) -> None:
        self.is_lazy = False

    def run(self, action: Action) -> bool:
        if not self.is_lazy:
            action()
        return not self.is_lazy

    def finish(self) -> None:
        pass


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def rows(folder: Path) -> list[dict[str, Any]]:
    found = sorted(folder.glob("[!_]*.parquet"))
    return [row for file in found for row in pq.read_table(file).to_pylist()]


def decision(number: int) -> tuple[Any, ...]:
    return (float(number), "B1", "policy", "moved", f"s{number}", "B1", None, "{}")


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        for number in range(3):
            writer.decisions.add(decision(number))
        assert writer.rows == 3
    assert rows(tmp_path / "decisions") == [
        dict(zip(TABLES["decisions"].names, decision(number), strict=True)) for number in range(3)
    ]


def test_every_table_has_the_declared_columns_even_without_rows(tmp_path: Path) -> None:
    TraceWriter(tmp_path).close()
    assert files(tmp_path) == sorted(TABLES)
    for name, schema in TABLES.items():
        assert pq.read_table(tmp_path / name / "00000.parquet").schema.equals(schema)


def test_a_row_with_a_cell_too_few_is_refused(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer, pytest.raises(ValueError, match="7 cells for 8 columns"):
        writer.decisions.add(decision(0)[:-1])
    assert rows(tmp_path / "decisions") == []


def test_texts_may_be_empty_or_absent(tmp_path: Path) -> None:
    with TraceWriter(tmp_path) as writer:
        writer.decisions.add((0.0, "", None, "", None, "Zürich", "", "x"))
    (row,) = rows(tmp_path / "decisions")
    assert list(row.values()) == [0.0, "", None, "", None, "Zürich", "", "x"]


def test_files_are_closed_on_the_way_and_only_closed_ones_have_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(in_rows, "ROWS_PER_GROUP", 2)
    monkeypatch.setattr(in_rows, "ROWS_PER_PACK", 1)
    with TraceWriter(tmp_path, prefix="B1-", rows_per_file=4, worker=AtOnce()) as writer:
        shown = []
        for number in range(7):
            writer.decisions.add(decision(number))
            shown.append(files(tmp_path / "decisions"))
        assert writer.rows == 7
    assert shown == [
        [],
        *[["_B1-00000.parquet"]] * 2,
        *[["B1-00000.parquet"]] * 2,
        *[["B1-00000.parquet", "_B1-00001.parquet"]] * 2,
    ]
    assert files(tmp_path / "decisions") == ["B1-00000.parquet", "B1-00001.parquet"]
    assert [row["subject"] for row in rows(tmp_path / "decisions")] == [f"s{n}" for n in range(7)]
    assert pq.ParquetFile(tmp_path / "decisions" / "B1-00000.parquet").num_row_groups == 2


def test_no_more_than_a_row_group_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_rows, "ROWS_PER_GROUP", 10)
    monkeypatch.setattr(in_rows, "ROWS_PER_PACK", 3)
    with TraceWriter(tmp_path) as writer:
        decisions = writer.decisions
        for number in range(99):
            decisions.add(decision(number))
            assert decisions._collected < 10 + 3
            assert len(decisions.cells) < 3 * 8
            assert all(len(texts) < 10 + 3 for texts in decisions._texts.values())
            if number % 7 == 0:  # Rotating in the middle of a group does no harm.
                writer.rotate()
                assert decisions._collected == 0
        assert writer.rows == 99
    found = [row["subject"] for row in rows(tmp_path / "decisions")]
    assert found == [f"s{number}" for number in range(99)]


def test_what_was_rotated_can_be_seen(tmp_path: Path) -> None:
    with TraceWriter(tmp_path, worker=AtOnce()) as writer:
        writer.decisions.add(decision(1))
        assert rows(tmp_path / "decisions") == []
        writer.rotate()
        assert len(rows(tmp_path / "decisions")) == 1
        writer.rotate()
        writer.decisions.add(decision(2))
    assert files(tmp_path / "decisions") == ["00000.parquet", "00001.parquet"]
    assert files(tmp_path / "gauges") == ["00000.parquet"]


def test_rows_that_nobody_writes_are_counted(tmp_path: Path) -> None:
    worker = AtOnce()
    with TraceWriter(tmp_path, worker=worker) as writer:
        writer.decisions.add(decision(1))
        worker.is_lazy = True
        writer.rotate()
        assert (writer.rows, writer.rows_lost) == (1, 1)
        worker.is_lazy = False
        writer.decisions.add(decision(2))
    assert writer.rows_lost == 1
    assert [row["subject"] for row in rows(tmp_path / "decisions")] == ["s2"]


def test_two_writers_share_a_folder(tmp_path: Path) -> None:
    for prefix in ("B1-", "B2-"):
        with TraceWriter(tmp_path, prefix=prefix) as writer:
            writer.decisions.add(decision(1))
    assert files(tmp_path / "decisions") == ["B1-00000.parquet", "B2-00000.parquet"]


def test_a_folder_that_cannot_be_is_an_error_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write a trace to"):
        TraceWriter(tmp_path / "file")


def test_every_type_of_the_schema_can_be_packed() -> None:
    for schema in TABLES.values():
        assert {field.type for field in schema} <= in_rows.FORMATS.keys()


def test_to_write_a_trace_needs_no_pandas() -> None:
    """It takes half a second to load, in every broker that is traced."""
    program = """
import sys
from pathlib import Path
from tests.trace.test_writer import decision
from godwit.trace.writer import TraceWriter
with TraceWriter(Path(sys.argv[1])) as writer:
    writer.decisions.add(decision(1))
assert "pandas" not in sys.modules
"""
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(  # noqa: S603  Our own.
            [sys.executable, "-c", program, folder], cwd=Path(__file__).parents[2], check=False
        )
    assert done.returncode == 0
