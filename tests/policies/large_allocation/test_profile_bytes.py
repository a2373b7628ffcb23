"""Profiles as bytes."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from godwit.errors import UsageError
from godwit.policies.allocation.packed_profiles import PackedProfile
from godwit.policies.large_allocation.profile_bytes import (
    decoded,
    decoded_counts,
    encoded,
    encoded_counts,
)

WORDS = (1, 2, 20)


def drawn(random: Random) -> PackedProfile:
    """Publishers in any order; few distinct words, so that equal profiles occur."""
    chosen = random.sample(range(len(WORDS)), random.randint(0, len(WORDS)))
    return PackedProfile(
        {p: np.array([random.choice((1, 2**63)) for _ in range(WORDS[p])], np.uint64)
         for p in chosen}
    )  # fmt: skip


def test_what_is_decoded_is_what_was_encoded() -> None:
    random = Random(1)
    for _ in range(200):
        profile = drawn(random)
        found = decoded(encoded(profile), WORDS)
        assert found.key == profile.key
        assert found.counts == profile.counts


def test_bytes_are_equal_exactly_if_profiles_are() -> None:
    random = Random(2)
    profiles = [drawn(random) for _ in range(150)]
    pairs = [(a, b) for a in profiles for b in profiles]
    assert any(a is not b and a.key == b.key for a, b in pairs)
    for a, b in pairs:
        assert (encoded(a) == encoded(b)) == (a.key == b.key)


def test_the_bytes_are_those_of_the_page() -> None:
    profile = PackedProfile({1: np.array([5, 2**63], np.uint64)})
    assert encoded(profile).hex() == "01000000" + "0500000000000000" + "0000000000000080"


def test_deliveries_are_in_the_order_of_publishers() -> None:
    profile = PackedProfile({2: np.ones(20, np.uint64), 0: np.ones(1, np.uint64)})
    counts = {2: 7, 0: 2**40}
    assert decoded_counts(encoded_counts(counts), profile) == counts


@pytest.mark.parametrize("cut", [3, 4, 11])
def test_bytes_that_end_too_early_are_refused(cut: int) -> None:
    data = encoded(PackedProfile({1: np.ones(2, np.uint64)}))
    with pytest.raises(UsageError, match="ends in the block of publisher"):
        decoded(data[:cut], WORDS)


def test_a_publisher_that_is_not_there_is_refused() -> None:
    data = encoded(PackedProfile({2: np.ones(20, np.uint64)}))
    with pytest.raises(UsageError, match="publisher 2; there are 2 publishers"):
        decoded(data, WORDS[:2])
