"""The stored datasets as channels read them: up to a batch, or some batches only."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame

from godwit.datacluster.model.dataset import Dataset


class Snapshots(Protocol):
    def dataset(self, name: str) -> Dataset:
        """A definition; names are not case-sensitive.  UsageError if there is none."""
        ...

    def last_batch(self, name: str) -> int:
        """The last stored batch; 0 if there is none."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Within it, files of the frames that were made in it are not deleted."""
        ...

    def frame(self, name: str, *, through: int) -> DataFrame:
        """All records up to that batch: the columns and `_batch`, `_position`, `_accepted_s`.

        For a dataset with a key, the latest record of each key.
        """
        ...

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        """All records of the batches `after + 1 ... through`, with the same columns."""
        ...
