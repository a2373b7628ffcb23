"""Digests of rows, for equality between runs."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

#: Digests are below this; their sum over a run is exact in a float.
DIGEST_BELOW = 1_000_003


def digest(*columns: Column | str) -> Column:
    """A number for each row, from the values of these columns."""
    return F.pmod(F.xxhash64(*columns), F.lit(DIGEST_BELOW))
