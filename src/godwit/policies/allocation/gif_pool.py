"""GIFs, groups of identical filters: one node for each distinct profile, with its units.

Paper    Cheung, thesis 6.2.3, optimisation 1.
Words    subscription unit -> AllocationUnit; GIF -> a number; its units, the lightest first.
Claim    Subscriptions are identical if they received the same publications, whatever their filters.
Tested   tests/policies/allocation/test_one_to_many.py.

GP1  Every unit of the pool is in the GIF of its profile, and no GIF is empty.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Sequence

from godwit.policies.allocation.gif_poset import GifPoset
from godwit.policies.allocation.gif_profiles import GifProfiles
from godwit.policies.allocation.packed_profiles import PackedProfile, PublisherTable
from godwit.policies.allocation.units import AllocationUnit


class GifPool:
    def __init__(self, units: Iterable[AllocationUnit], table: PublisherTable) -> None:
        self.profiles = GifProfiles(table)
        self.poset = GifPoset(self.profiles)
        self._units: dict[int, list[tuple[float, int, AllocationUnit]]] = {}
        self._by_key: dict[tuple[tuple[int, bytes], ...], int] = {}
        for unit in units:
            self.add(unit)

    def __iter__(self) -> Iterator[int]:
        return iter(self._units)

    def __contains__(self, gif: int) -> bool:
        return gif in self._units

    def __len__(self) -> int:
        return len(self._units)

    def units(self, gif: int) -> list[AllocationUnit]:
        """The lightest first; of equals the lower number."""
        return [unit for _, _, unit in self._units[gif]]

    def count(self, gif: int) -> int:
        return len(self._units[gif])

    def lightest(self, gif: int) -> AllocationUnit:
        return self._units[gif][0][2]

    def profile(self, gif: int) -> PackedProfile:
        return self.profiles.profiles[gif]

    def cardinality(self, gif: int) -> int:
        return int(self.profiles.cardinalities[gif])

    def add(self, unit: AllocationUnit) -> tuple[int, bool]:
        """The GIF that the unit is in, and whether it is a new one."""
        key = unit.profile.key
        gif = self._by_key.get(key)
        is_new = gif is None
        if gif is None:
            gif = self.poset.add(unit.profile)
            self._by_key[key] = gif
            self._units[gif] = []
        insort(self._units[gif], (unit.bandwidth_bytes_s, unit.number, unit))
        return gif, is_new

    def take(self, gif: int, units: Sequence[AllocationUnit]) -> None:
        """Units leave a GIF; it is gone with the last one."""
        gone = {unit.number for unit in units}
        left = [entry for entry in self._units[gif] if entry[1] not in gone]
        if left:
            self._units[gif] = left
        else:
            del self._units[gif]
            del self._by_key[self.profile(gif).key]
            self.poset.remove(gif)
