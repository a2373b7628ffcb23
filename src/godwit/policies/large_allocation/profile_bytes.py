"""A profile as bytes: for tables, and for equality by hash.

    publisher (4 bytes), its words (8 bytes each), the next publisher, ...

Publishers ascend, and the number of words of each follows from its window, so two profiles are
equal exactly if their bytes are.  All numbers are little-endian.

Tested   tests/policies/large_allocation/test_profile_bytes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from struct import Struct

import numpy as np

from godwit.errors import UsageError
from godwit.policies.allocation.packed_profiles import PackedProfile, Words

INDEX = Struct("<I")
WORD_BYTES = 8


def encoded(profile: PackedProfile) -> bytes:
    return b"".join(
        part
        for p in sorted(profile.blocks)
        for part in (INDEX.pack(p), profile.blocks[p].astype("<u8", copy=False).tobytes())
    )


def decoded(data: bytes, words: Sequence[int]) -> PackedProfile:
    """`words` has the length of each publisher's block."""
    blocks: dict[int, Words] = {}
    place = 0
    while place < len(data):
        (p,) = INDEX.unpack_from(data, place)
        place += INDEX.size
        if p >= len(words) or place + WORD_BYTES * words[p] > len(data):
            raise UsageError(
                f"a profile of {len(data)} bytes ends in the block of publisher {p}; there are "
                f"{len(words)} publishers: make profiles and publishers from the same windows"
            )
        blocks[p] = np.frombuffer(data, "<u8", words[p], place).astype(np.uint64, copy=False)
        place += WORD_BYTES * words[p]
    return PackedProfile(blocks)


def encoded_counts(counts: Mapping[int, int]) -> bytes:
    """Deliveries by publisher, in the order of the profile's blocks."""
    return np.array([counts[p] for p in sorted(counts)], "<i8").tobytes()


def decoded_counts(data: bytes, profile: PackedProfile) -> dict[int, int]:
    values = np.frombuffer(data, "<i8").tolist()
    return dict(zip(sorted(profile.blocks), values, strict=True))
