"""The reads that are in progress, so that no file is deleted under a reader."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class Readers:
    def __init__(self) -> None:
        self._began_s: dict[int, float] = {}
        self._numbers = itertools.count()
        self._lock = threading.Lock()

    @contextmanager
    def reading(self, now_s: float) -> Iterator[None]:
        with self._lock:
            number = next(self._numbers)
            self._began_s[number] = now_s
        try:
            yield
        finally:
            with self._lock:
                del self._began_s[number]

    def safe_before_s(self, at_most_s: float) -> float:
        """Files dropped before this time have no reader: all reads in progress began later."""
        with self._lock:
            return min(at_most_s, *self._began_s.values()) if self._began_s else at_most_s
