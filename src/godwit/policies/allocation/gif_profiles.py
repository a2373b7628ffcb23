"""The profiles of GIFs as matrices, a matrix of words for each publisher.

Paper    Cheung, thesis 6.2.3: "S is the number of subscriptions" or, with GIFs, of unlike ones.

A GIF has a row in the matrix of each publisher that it received something of.  Rows of GIFs that
are gone are used again.

Tested   tests/policies/allocation/test_gif_poset.py: against sets.
"""

from __future__ import annotations

import numpy as np

from godwit.policies.allocation.closeness import Ints
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable

#: Rows of a new matrix, and entries of a new index; they double when they are full.
FIRST_SIZE = 64
ABSENT = -1


class GifProfiles:
    def __init__(self, table: PublisherTable) -> None:
        self._words = table.words
        self._matrices: dict[int, np.ndarray[tuple[int, int], np.dtype[np.uint64]]] = {}
        self._owners: dict[int, Ints] = {}
        self._rows: dict[int, Ints] = {}
        """By publisher and GIF; ABSENT if it has none."""

        self._used: dict[int, int] = {}
        self._unused: dict[int, list[int]] = {}
        self.profiles: list[PackedProfile] = []
        self.cardinalities: Ints = np.zeros(FIRST_SIZE, np.int64)
        self.is_alive = np.zeros(FIRST_SIZE, np.bool_)

    def __len__(self) -> int:
        """GIFs so far, also those that are gone."""
        return len(self.profiles)

    def add(self, profile: PackedProfile) -> int:
        gif = len(self.profiles)
        self.profiles.append(profile)
        if gif >= len(self.cardinalities):
            self.cardinalities = np.concatenate(
                (self.cardinalities, np.zeros_like(self.cardinalities))
            )
            self.is_alive = np.concatenate((self.is_alive, np.zeros_like(self.is_alive)))
        self.cardinalities[gif] = profile.count
        self.is_alive[gif] = True
        for p, words in profile.blocks.items():
            row = self._new_row(p)
            self._matrices[p][row] = words
            self._owners[p][row] = gif
            self._row_index(p, gif)[gif] = row
        return gif

    def _new_row(self, p: int) -> int:
        if p not in self._matrices:
            self._matrices[p] = np.zeros((FIRST_SIZE, self._words[p]), np.uint64)
            self._owners[p] = np.full(FIRST_SIZE, ABSENT, np.int64)
            self._rows[p] = np.full(FIRST_SIZE, ABSENT, np.int64)
            self._used[p], self._unused[p] = 0, []
        if self._unused[p]:
            return self._unused[p].pop()
        row = self._used[p]
        self._used[p] += 1
        if row >= len(self._owners[p]):
            matrix = self._matrices[p]
            self._matrices[p] = np.concatenate((matrix, np.zeros_like(matrix)))
            self._owners[p] = np.concatenate((self._owners[p], np.full(row, ABSENT, np.int64)))
        return row

    def _row_index(self, p: int, gif: int) -> Ints:
        rows = self._rows[p]
        if gif >= len(rows):
            more = max(gif + 1, 2 * len(rows)) - len(rows)
            rows = self._rows[p] = np.concatenate((rows, np.full(more, ABSENT, np.int64)))
        return rows

    def remove(self, gif: int) -> None:
        self.is_alive[gif] = False
        for p in self.profiles[gif].blocks:
            row = int(self._rows[p][gif])
            self._rows[p][gif] = ABSENT
            self._owners[p][row] = ABSENT
            self._unused[p].append(row)

    # -- common bits ---------------------------------------------------------------------------

    def common(self, profile: PackedProfile, gifs: Ints) -> Ints:
        """|profile AND GIF| for each of these."""
        found = np.zeros(len(gifs), np.int64)
        for p, words in profile.blocks.items():
            index = self._rows.get(p)
            if index is None:
                continue
            inside = gifs < len(index)
            rows = np.where(inside, index[np.where(inside, gifs, 0)], ABSENT)
            present = rows >= 0
            if present.all():
                found += np.bitwise_count(self._matrices[p][rows] & words).sum(
                    axis=1, dtype=np.int64
                )
            elif present.any():
                both = np.bitwise_count(self._matrices[p][rows[present]] & words)
                found[present] += both.sum(axis=1, dtype=np.int64)
        return found

    def sharing(self, profile: PackedProfile) -> tuple[Ints, Ints]:
        """All GIFs with a common publisher, ascending, and |profile AND GIF| of each."""
        gifs, counts = [], []
        for p, words in profile.blocks.items():
            if p not in self._used:
                continue
            used = self._used[p]
            owners = self._owners[p][:used]
            alive = owners >= 0
            gifs.append(owners[alive])
            both = np.bitwise_count(self._matrices[p][:used] & words).sum(axis=1, dtype=np.int64)
            counts.append(both[alive])
        if not gifs:
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        found, inverse = np.unique(np.concatenate(gifs), return_inverse=True)
        total = np.zeros(len(found), np.int64)
        np.add.at(total, inverse, np.concatenate(counts))
        return found, total

    @property
    def alive(self) -> Ints:
        return np.flatnonzero(self.is_alive[: len(self.profiles)])
