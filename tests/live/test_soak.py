"""Ten seconds of what `python -m benchmarks.soak` does for minutes."""

from __future__ import annotations

import uvloop
from benchmarks.soak import soak

from godwit.overlay.topology import chain

SECONDS = 10.0
PER_S = 1_000.0
GROWTH_BYTES_MAX = 16 * 1024 * 1024


def test_steady_publications_while_connections_break_at_random() -> None:
    soaked = uvloop.run(
        soak(chain(2), seconds=SECONDS, per_s=PER_S, breaks_per_s=4.0, sample_s=2.0, seed=1)
    )

    assert soaked.oracle.is_satisfied, f"seed 1: {soaked.oracle.violations}"
    assert (soaked.duplicates, soaked.restarts) == (0, 0)
    assert soaked.oracle.deliveries > soaked.oracle.publications > 1_000
    assert soaked.samples[-1].broken > 10
    assert soaked.growth_bytes < GROWTH_BYTES_MAX, soaked.samples
