"""A profile as bytes: for tables, and for equality by hash.

    publisher (4 bytes), its words (8 bytes each), the next publisher, ...

Publishers ascend, and the number of words of each follows from its window, so two profiles are
equal exactly if their bytes are.  All numbers are little-endian.

Tested   tests/policies/large_allocation/test_profile_bytes.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from godwit.errors import UsageError
from godwit.policies.allocation.packed_profiles import PackedProfile, Words

INDEX_BYTES = 4
WORD_BYTES = 8


def encoded_block(p: int, words: bytes) -> bytes:
    """One publisher of a profile."""
    return p.to_bytes(INDEX_BYTES, "little") + words


def encoded(profile: PackedProfile) -> bytes:
    return b"".join(
        encoded_block(p, profile.blocks[p].astype("<u8", copy=False).tobytes())
        for p in sorted(profile.blocks)
    )


def decoded(data: bytes, words: Sequence[int]) -> PackedProfile:
    """`words` has the length of each publisher's block."""
    blocks: dict[int, Words] = {}
    place = 0
    while place < len(data):
        p = int.from_bytes(data[place : place + INDEX_BYTES], "little")
        place += INDEX_BYTES
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
