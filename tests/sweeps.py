"""How much of a sweep over random seeds a test run covers.

`make test` covers a part of every sweep, so that it stays short; `make sweep` covers all of it.
"""

from __future__ import annotations

import os

IS_WHOLE = os.environ.get("GODWIT_SWEEP") == "all"


def seeds(part: int, *, whole: int) -> int:
    """How many seeds to try."""
    assert part <= whole
    return whole if IS_WHOLE else part
