"""How brokers are linked, and how a publication finds its way.

topology.py says who is linked with whom.  Each routing strategy is a file, an implementation of
`broker.routing.Routing`, and a line in OVERLAYS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from godwit.broker.routing import Routing
from godwit.errors import UsageError
from godwit.overlay.tree import TreeRouting

#: Makes the routing strategy of one broker from the names of its neighbours.
Overlay: TypeAlias = Callable[[Sequence[str]], Routing]

#: By the name used on the command line.
OVERLAYS: Mapping[str, Overlay] = {
    "tree": TreeRouting,
}


def overlay(name: str) -> Overlay:
    try:
        return OVERLAYS[name]
    except KeyError:
        raise UsageError(f"no overlay {name!r}; choose from {sorted(OVERLAYS)}") from None
