"""A running network as a value: all that a simulation of it is made from, and a JSON file.  Pure.

    {"at_s": 1763487600.0, "overlay": "tree", "links": [["B1", "B2"]], "sample_s": 10.0,
     "brokers": [{"id": "B1", "output_bandwidth_bytes_s": 1e6}, ...],
     "clients": [{"name": "paul", "broker": "B1", "advertisements": [
                   {"id": "paul/a1", "filter": "class = 'TICK' and n is a number",
                    "publications": [{"at_s": 0.02, "content": {"class": "TICK", "n": 1},
                                      "frame_bytes": 96}, ...]}]},
                 {"name": "alice", "broker": "B2", "subscriptions": ["class = 'TICK'"]}],
     "first": {"brokers": {"B1": {"publications_per_s": 50, "matching_delay_s": 0.0002, ...}},
               "deliveries_per_s": 50, "hops": 1.0, "delay_s": {"mean": 0.002, ...}},
     "second": {...}}

`publications` are a sample of `sample_s` seconds with the times since its beginning; a rehearsal
repeats it.  What was measured `first` sets the simulation; `second`, measured at other times, shows
how far it is off.  A file without `second` is complete, its error is then that of `first`.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from godwit.content.values import CheckedValue
from godwit.errors import UsageError
from godwit.overlay.topology import Topology, topology
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import PlacementSettings

NotNegative = Annotated[float, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(gt=0)]


class SampledPublication(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at_s: NotNegative
    """Since the beginning of the sample."""

    content: dict[str, CheckedValue]
    frame_bytes: Annotated[int, msgspec.Meta(ge=1)]
    """What one copy of it takes on a connection."""


class SampledAdvertisement(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    filter: str
    publications: tuple[SampledPublication, ...] = ()


class SnapshotClient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    name: str
    broker: str
    subscriptions: tuple[str, ...] = ()
    """Filters."""

    advertisements: tuple[SampledAdvertisement, ...] = ()


class SnapshotBroker(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    id: str
    output_bandwidth_bytes_s: Positive
    limits_output: bool = False
    """It sends no more than that; others only measure their use of it."""


class LoadReading(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The load of a broker, as it measured it."""

    publications_per_s: NotNegative = 0.0
    matching_delay_s: NotNegative = 0.0
    input_utilisation: NotNegative = 0.0
    output_utilisation: NotNegative = 0.0
    output_bytes_per_s: NotNegative = 0.0


class DelayFigures(msgspec.Struct, frozen=True, kw_only=True):
    """Of deliveries, from acceptance by the first broker to the subscriber."""

    mean: NotNegative = 0.0
    p10: NotNegative = 0.0
    p50: NotNegative = 0.0
    p99: NotNegative = 0.0


class MeasuredInterval(msgspec.Struct, frozen=True, kw_only=True):
    brokers: dict[str, LoadReading]
    deliveries_per_s: NotNegative
    hops: NotNegative
    """Mean of all deliveries."""

    delay_s: DelayFigures


class NetworkSnapshot(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    at_s: float = 0.0
    overlay: str = "tree"
    overlay_settings: dict[str, Any] = {}
    links: tuple[tuple[str, str], ...]
    """Of a tree, or the primary ones of a mesh; in clusters they follow from the settings."""

    brokers: tuple[SnapshotBroker, ...]
    clients: tuple[SnapshotClient, ...]
    sample_s: Positive
    placement: PlacementSettings | None = None
    balancing: BalancingSettings | None = None
    first: MeasuredInterval
    second: MeasuredInterval | None = None
    profiles: Gathered | None = None
    """As `godwit croc gather` writes them, where brokers record profiles."""

    notes: tuple[str, ...] = ()
    """What is missing in it."""

    @property
    def topology(self) -> Topology:
        return topology([each.id for each in self.brokers], self.links)

    @property
    def broker_names(self) -> list[str]:
        return [each.id for each in self.brokers]


def check_snapshot(snapshot: NetworkSnapshot) -> NetworkSnapshot:
    """The snapshot, or UsageError with the entry that is wrong."""
    names = snapshot.broker_names
    for a, b in snapshot.links:
        for end in (a, b):
            if end not in names:
                raise UsageError(f"link {a}-{b}: the snapshot has no broker {end!r}")
    if len(set(names)) != len(names):
        raise UsageError("the snapshot has two brokers of the same id")
    seen: set[str] = set()
    for client in snapshot.clients:
        if client.broker not in names:
            raise UsageError(
                f"client {client.name!r} is at {client.broker!r}, which is not among the brokers"
            )
        if client.name in seen:
            raise UsageError(f"the snapshot has two clients with the name {client.name!r}")
        seen.add(client.name)
    return snapshot


def decode_snapshot(document: bytes) -> NetworkSnapshot:
    try:
        return check_snapshot(msgspec.json.decode(document, type=NetworkSnapshot))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"not a snapshot of `godwit whatif --save`: {error}") from None
