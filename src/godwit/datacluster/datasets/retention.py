"""Retention: how long records are kept, by their age and by the size of the dataset.  Pure.

A file expires when all its records are too old, or while the dataset is too large.  Records that a
channel has yet to read are kept.  A dataset with a key has no retention: it keeps the latest record
of each key, and does not grow with time.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from godwit.datacluster.datasets.files import StoredFile


class Retention(msgspec.Struct, frozen=True):
    age_s_max: float | None = None
    size_bytes_max: int | None = None


def expired(
    files: Sequence[StoredFile], retention: Retention, *, horizon: int, now_s: float
) -> list[StoredFile]:
    """The files that have expired, of `files` in the order of their batches.

    Batches above the `horizon` are still needed.
    """
    found = []
    size_bytes = sum(file.size_bytes for file in files)
    for file in files:
        is_old = retention.age_s_max is not None and file.newest_s < now_s - retention.age_s_max
        is_over = retention.size_bytes_max is not None and size_bytes > retention.size_bytes_max
        if file.last_batch > horizon or not (is_old or is_over):
            break
        found.append(file)
        size_bytes -= file.size_bytes
    return found
