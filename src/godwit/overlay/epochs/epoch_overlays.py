"""The overlay of each epoch: how publications are routed in it, and its settings.

A shape says both, or neither: then they are those of the epoch before.  Brokers tell shapes with
both to those that restart, whose configuration may be of another kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from msgspec.structs import replace

from godwit.broker.routing import Place, Routing
from godwit.content.link_messages import NetworkShape
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import links_left
from godwit.overlay.epochs.epoch_places import is_outside, place_in

#: Makes the router of one epoch.
MakeRouting: TypeAlias = Callable[[Place], Routing]
#: What a broker outside an epoch has there: it waits, whatever the others do.
WAITING = "tree"


class OverlayKind(NamedTuple):
    name: str
    """Empty if it is that of the configuration."""

    settings: Mapping[str, Any]


class EpochOverlays:
    def __init__(
        self, place: Place, make: MakeRouting, find: Callable[[str], MakeRouting] | None
    ) -> None:
        """`make` is the overlay of the configuration; `find` returns others by their names."""
        self._place = place
        self._make = make
        self._find = find
        self._kind = OverlayKind("", place.settings)

    def completed(self, shape: NetworkShape) -> NetworkShape:
        """The shape with its overlay and settings.  Raises UsageError if they do not fit it."""
        if is_outside(shape, self._place.broker):
            return shape
        if not shape.overlay:
            shape = replace(shape, overlay=self._kind.name, settings=dict(self._kind.settings))
        if "clusters" in shape.settings:
            links = links_left(shape.settings)
            if {(a, b) if a < b else (b, a) for a, b in shape.links} != links:
                raise UsageError(f"the links of epoch {shape.epoch} are not those of its clusters")
        return shape

    def routing(self, shape: NetworkShape) -> Routing:
        """The router of a completed shape."""
        place, name = place_in(shape, self._place), shape.overlay
        if self._find is None:
            return self._make(place)
        if is_outside(shape, place.broker):
            name = WAITING
        return self._find(name)(place) if name else self._make(place)

    def use(self, shape: NetworkShape) -> None:
        """The epoch of a completed shape is in use, alone."""
        self._kind = OverlayKind(shape.overlay, shape.settings)
