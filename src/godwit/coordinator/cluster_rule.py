"""When the coordinator changes the number of clusters by itself: the settings, and the rule.  Pure.

Paper    Cluster-based pub/sub (document 003), section 3.2: the number with the least traffic, m*,
         follows from what is published and subscribed to (overlay/clusters/cluster_traffic.py).

    look back `hold_s`   p, s and r of that time, as all brokers have counted them
    change               if nothing has changed for so long, and the best number saves enough

A1  Between two changes there are at least `hold_s`, which are measured as a whole.
A2  Without publications nothing is changed: every number would do.

docs/coordinator.md explains each key.
"""

from __future__ import annotations

from typing import Annotated, NamedTuple

import msgspec

from godwit.overlay.clusters.cluster_traffic import ClusterLoad

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]


class ClusterTuningSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    every_s: Seconds = 30.0
    """How often the coordinator looks."""

    hold_s: Seconds = 600.0
    """For how long is measured, and nothing has changed, before the number of clusters changes."""

    gain: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.1
    """The share of the messages between brokers that another number must save."""

    dry_run: bool = False
    """Decide and log, but change nothing."""


class ClusterVerdict(NamedTuple):
    clusters: int | None
    """The number from now on; None to keep it."""

    why: str


def best_number(
    load: ClusterLoad, clusters: int, measured_s: float, settings: ClusterTuningSettings
) -> ClusterVerdict:
    """Which number to change to, and why, or why not."""
    if measured_s < settings.hold_s:
        return ClusterVerdict(None, f"measured for {measured_s:.0f} of {settings.hold_s:g} s")
    if not load.publications:
        return ClusterVerdict(None, f"nothing was published for {settings.hold_s:g} s")
    best = load.best_clusters
    if best == clusters:
        is_best = "1 cluster is" if clusters == 1 else f"{clusters} clusters are"
        return ClusterVerdict(None, f"{is_best} best")
    now = load.messages(clusters)
    saved = 1.0 - load.messages(best) / now if now else 0.0
    number = f"{best} cluster{'s' if best > 1 else ''} instead of {clusters}"
    text = f"{number} save {saved:.0%} of the messages"
    if saved < settings.gain:
        return ClusterVerdict(None, f"{text}: too few")
    return ClusterVerdict(best, text)
