"""How much of a sweep over random seeds a test run covers.

`make test` covers a part of every sweep, so that it stays short; `make sweep` covers all of it.
"""

from __future__ import annotations

import os

import pytest

IS_WHOLE = os.environ.get("GODWIT_SWEEP") == "all"
#: For tests that take minutes, and whose subject another test covers in short.
in_sweeps = pytest.mark.skipif(not IS_WHOLE, reason="`make sweep` runs it")


def seeds(part: int, *, whole: int) -> int:
    """How many seeds to try."""
    assert part <= whole
    return whole if IS_WHOLE else part
