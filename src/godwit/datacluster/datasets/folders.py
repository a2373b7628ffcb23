"""The folders of a data cluster.  Files are written aside, synced, then renamed.

    catalog.db
    logs/<dataset>          its log
    checkpoints/<dataset>   the checkpoint of the streaming query that ingests it
    data/<dataset>          its files; data/staging while they are written

Datasets appear by number.  A file that no row of the catalog names was left by a crash.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pyarrow.parquet as pq

from godwit.datacluster.datasets.files import StoredFile
from godwit.datacluster.disk import sync
from godwit.datacluster.model.dataset import ACCEPTED, BATCH, POSITION


class Folders:
    def __init__(self, root: Path) -> None:
        self.root = root.resolve()
        self._data = self.root / "data"
        self._staging = self._data / "staging"
        self._staging.mkdir(parents=True, exist_ok=True)

    def log(self, dataset: int) -> Path:
        return self.root / "logs" / str(dataset)

    def checkpoint(self, dataset: int) -> Path:
        return self.root / "checkpoints" / str(dataset)

    def path(self, file: StoredFile) -> Path:
        return self._data / file.path

    def uri(self, file: StoredFile) -> str:
        return self.path(file).as_uri()

    @contextmanager
    def staging(self) -> Iterator[Path]:
        """A new path for writing; what is left there afterwards is deleted."""
        path = self._staging / uuid.uuid4().hex
        try:
            yield path
        finally:
            shutil.rmtree(path, ignore_errors=True)

    def publish(self, dataset: int, staged: Path, *, is_base: bool = False) -> list[StoredFile]:
        """Sync the files of a staging folder and give them their final names.

        They count only when the catalog names them.
        """
        folder = self._data / str(dataset)
        folder.mkdir(exist_ok=True)
        published = []
        for written in sorted(staged.glob("*.parquet")):
            name = f"{dataset}/{uuid.uuid4().hex}.parquet"
            described = _described(written, name, is_base=is_base)
            if described is None:
                continue
            sync(written)
            written.rename(self._data / name)
            published.append(described)
        sync(folder)
        sync(self._data)
        return published

    def delete(self, paths: Sequence[str]) -> None:
        for path in paths:
            (self._data / path).unlink(missing_ok=True)

    def delete_dataset(self, dataset: int) -> None:
        """Delete its log and checkpoint; its files are deleted when they have no reader."""
        shutil.rmtree(self.log(dataset), ignore_errors=True)
        self.delete_checkpoint(dataset)

    def delete_checkpoint(self, dataset: int) -> None:
        shutil.rmtree(self.checkpoint(dataset), ignore_errors=True)

    def sweep(self, named: set[str]) -> None:
        """Delete files that a crash has left.  Nothing may be written meanwhile."""
        for staged in self._staging.iterdir():
            shutil.rmtree(staged, ignore_errors=True)
        for file in self._data.glob("*/*.parquet"):
            if file.relative_to(self._data).as_posix() not in named:
                file.unlink()


def _described(path: Path, name: str, *, is_base: bool) -> StoredFile | None:
    """The entry for a file, from its footer; None if it is empty."""
    metadata = pq.read_metadata(path)
    if not metadata.num_rows:
        return None
    bounds: dict[str, tuple[float, float]] = {}
    places = {metadata.schema.column(i).path: i for i in range(metadata.num_columns)}
    for column in (BATCH, POSITION, ACCEPTED):
        groups = range(metadata.num_row_groups)
        found = [metadata.row_group(g).column(places[column]).statistics for g in groups]
        bounds[column] = (min(each.min for each in found), max(each.max for each in found))
    return StoredFile(
        path=name,
        first_batch=int(bounds[BATCH][0]),
        last_batch=int(bounds[BATCH][1]),
        last_position=int(bounds[POSITION][1]),
        rows=metadata.num_rows,
        size_bytes=path.stat().st_size,
        newest_s=bounds[ACCEPTED][1],
        is_base=is_base,
    )
