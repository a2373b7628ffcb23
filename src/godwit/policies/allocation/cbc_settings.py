"""Settings of CBC.  They are also the table `[profiling]` of network files."""

from __future__ import annotations

import msgspec

from godwit.errors import UsageError
from godwit.profile.bit_vector import LENGTH, LENGTH_MAX


class ProfilingSettings(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, omit_defaults=True
):
    """The table `[profiling]` of network files."""

    enabled: bool = True
    """Whether brokers record what they deliver.  Without the table they do not."""

    vector_length: int = LENGTH
    """Of each publisher, so many of its last publications count (the thesis's Lbv)."""

    vectors_max: int = 200_000
    """Bit vectors in the memory of one broker; beyond that, those that have received nothing for
    the longest time are dropped.  A vector of 1,280 bits takes about 500 bytes."""

    def __post_init__(self) -> None:
        if not 1 <= self.vector_length <= LENGTH_MAX:
            raise UsageError(f"vector_length is {self.vector_length}; it must be 1 to {LENGTH_MAX}")
        if self.vectors_max < 1:
            raise UsageError(f"vectors_max is {self.vectors_max}; it must be 1 or more")
