"""What channels need of stored datasets: their records up to a batch, and those of some batches."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Protocol

from pyspark.sql import DataFrame

from godwit.datacluster.dataset import Dataset


class Snapshots(Protocol):
    def dataset(self, name: str) -> Dataset:
        """Its definition (names are not case-sensitive); UsageError if there is none."""
        ...

    def names(self) -> list[str]: ...

    def last_batch(self, name: str) -> int:
        """The last batch that is stored; 0 if nothing has arrived yet."""
        ...

    def reading(self) -> AbstractContextManager[None]:
        """Files that frames made herein refer to are not deleted before its end."""
        ...

    def frame(self, name: str, *, through: int) -> DataFrame:
        """Its columns and `_batch`, `_position`, `_accepted_s`: all records up to that batch.

        Of a dataset with a key, the latest record of each key.
        """
        ...

    def new(self, name: str, *, after: int, through: int) -> DataFrame:
        """The same columns, of the records of the batches `after + 1 ... through`, all of them."""
        ...
