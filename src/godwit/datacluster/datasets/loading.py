"""Static datasets are loaded from a file of CSV, JSON lines or Parquet, completely or not at all.

    path --> rows as attributes and values --> fit the columns? --> one file, batch 0

Each load replaces the one before.  The first line of a CSV file names the columns; an empty field
is null, and booleans are `true` and `false`.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from godwit.datacluster.datasets.definitions import DatasetEntry
from godwit.datacluster.datasets.files import StoredFile
from godwit.datacluster.datasets.records import Content, RecordFitter
from godwit.datacluster.datasets.storage import Storage, latest
from godwit.datacluster.datasets.writing import write_files
from godwit.datacluster.model.dataset import Column, ColumnType, Dataset
from godwit.datacluster.model.schemas import spark_schema, stored
from godwit.errors import UsageError

ROWS_AT_A_TIME = 10_000


def load(storage: Storage, name: str, path: Path) -> int:
    """Replace the content of a static dataset by that of a file; the number of records.

    UsageError if the file cannot be read, or names the first record that does not fit.
    """
    entry = storage.definitions.entry(name)
    if not entry.dataset.is_static:
        raise UsageError(
            f"dataset {entry.dataset.name} is fed: only a STATIC dataset can be loaded"
        )
    read = _READERS.get(path.suffix.lower())
    if read is None:
        raise UsageError(f"{path.name}: the name must end in one of {', '.join(_READERS)}")
    with storage.folders.staging() as staged:
        try:
            rows = read(entry.dataset, path)
            _write(entry.dataset, rows, staged, of=path.name, now_s=storage.clock())
        except (OSError, UnicodeError, csv.Error, pa.ArrowInvalid) as error:
            raise UsageError(f"{path.name}: cannot be read: {error}") from None
        made = _published(storage, entry, staged)
    storage.replace(entry, storage.files.of(entry.id), made)
    return sum(file.rows for file in made)


def _published(storage: Storage, entry: DatasetEntry, staged: Path) -> list[StoredFile]:
    if entry.dataset.key is None:
        return storage.folders.publish(entry.id, staged)
    with storage.folders.staging() as deduplicated:
        frame = storage.spark.read.schema(spark_schema(entry.dataset)).parquet(staged.as_uri())
        write_files(latest(frame, entry.dataset), deduplicated)
        return storage.folders.publish(entry.id, deduplicated, is_base=True)


def _write(
    dataset: Dataset, rows: Iterator[Content], staged: Path, *, of: str, now_s: float
) -> None:
    schema, fitter = stored(dataset), RecordFitter(dataset)
    staged.mkdir()
    before = 0
    with pq.ParquetWriter(staged / "loaded.parquet", schema) as writer:
        while chunk := list(islice(rows, ROWS_AT_A_TIME)):
            fitted = fitter.fit(chunk, [now_s] * len(chunk))
            if fitted.reasons:
                place = min(fitted.reasons)
                raise UsageError(f"{of}: record {before + place + 1}: {fitted.reasons[place]}")
            positions = np.arange(before + 1, before + len(chunk) + 1, dtype=np.int64)
            batches = np.zeros(len(chunk), dtype=np.int64)
            columns = [*fitted.batch.columns, pa.array(positions), pa.array(batches)]
            writer.write_batch(pa.record_batch(columns, schema=schema))
            before += len(chunk)


def _csv(dataset: Dataset, path: Path) -> Iterator[Content]:
    with path.open(newline="", encoding="utf-8-sig") as file:
        reader = csv.DictReader(file)
        _check_columns(dataset.columns, reader.fieldnames or [], of=path.name)
        for row in reader:
            yield {
                column.name: _from_text(row[column.name], column.type) for column in dataset.columns
            }


def _json(_: Dataset, path: Path) -> Iterator[Content]:
    with path.open("rb") as file:
        for line in file:
            if line.strip():
                yield line


def _parquet(dataset: Dataset, path: Path) -> Iterator[Content]:
    with pq.ParquetFile(path) as file:
        _check_columns(dataset.columns, file.schema_arrow.names, of=path.name)
        names = [column.name for column in dataset.columns]
        for batch in file.iter_batches(ROWS_AT_A_TIME, columns=names):
            yield from batch.to_pylist()


_READERS: dict[str, Callable[[Dataset, Path], Iterator[Content]]] = {
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _json,
    ".parquet": _parquet,
}


def _check_columns(columns: Sequence[Column], found: Sequence[str], *, of: str) -> None:
    missing = [column.name for column in columns if column.name not in found]
    if missing:
        raise UsageError(f"{of}: column {missing[0]} is missing; the file has {', '.join(found)}")


def _from_text(text: str | None, kind: ColumnType) -> object:
    """A field of CSV as a value of a column; the text itself if it is not one."""
    if text is None or text == "":
        return None
    try:
        match kind:
            case ColumnType.BOOLEAN:
                return {"true": True, "false": False}.get(text.lower(), text)
            case ColumnType.INT | ColumnType.BIGINT:
                return int(text)
            case ColumnType.DOUBLE:
                return float(text)
            case _:
                return text
    except ValueError:
        return text
