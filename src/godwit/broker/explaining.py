"""What a broker would do with a publication, and why, from its tables.  Nothing is sent.

    goes_to        every hop that would get a copy, with subscriptions that ask for it there
    advertisements what the publisher has advertised, and whether it permits the record
    held           the subscriptions of one subscriber that this broker has, and what fails in each

The destinations are those of the router itself.  The subscriptions beside them are found by asking
every filter in the table, without the index, so that the two check each other.

E1  A step looks at SCANNED entries at most: a broker that explains serves others in between.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping
from itertools import islice
from typing import TypeVar

import msgspec

from godwit.broker.routing import Multipath, Routing, Tables, in_use
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication
from godwit.content.values import Value

T = TypeVar("T")

#: Entries that are looked at in one step.
SCANNED = 1_000
#: Subscriptions that are named for one destination; others are counted.
NAMED_MAX = 5
#: Subscriptions or advertisements of one client that are shown.
HELD_MAX = 50


class FilterFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What a filter in the table of a broker says about a record."""

    id: str
    client: str
    filter: str
    hop: str
    """Where it came from: `client NAME`, `module NAME` or `neighbour NAME`."""

    passes: bool
    failures: list[str] = []
    """The predicates that fail, with the value that was there."""

    in_effect: bool = True


class HopWay(msgspec.Struct, frozen=True, kw_only=True):
    """A destination, and why."""

    kind: str
    """client, module or neighbour."""

    name: str
    count: int
    """Subscriptions that match there."""

    because: list[FilterFinding] = []
    """Some of them."""


class HopExplanation(msgspec.Struct, frozen=True, kw_only=True):
    goes_to: list[HopWay]
    advertisements: list[FilterFinding]
    """Of the publisher."""

    held: list[FilterFinding]
    """Of the subscriber."""

    matching: int
    """Subscriptions in the table that match."""

    subscriptions: int
    """Subscriptions in the table."""


def explain_hop(
    routing: Routing,
    record: Mapping[str, Value],
    *,
    publisher: str = "",
    came_from: str = "",
    subscriber: str = "",
    hops: int = 0,
    now_s: float = 0.0,
) -> Generator[None, None, HopExplanation]:
    """The steps, and then the explanation, of a publication that comes from a neighbour, or ""."""
    tables = routing.tables()
    probe = Publication(
        publisher=publisher,
        sequence=0,
        advertisement=AdvertisementId(""),
        content=dict(record),
    )
    last_hop = _hop_of(routing, came_from, publisher)
    used = in_use(routing)
    ask = used.preview if isinstance(used, Multipath) else used.destinations
    ways = list(ask(probe, last_hop, hops, now_s))
    matches: dict[Hop, list[str]] = {hop: [] for hop in ways}
    matching = 0
    for some in _slices(tables.wanted.items()):
        for id, filter in some:
            if filter.matches_checked(probe.content):
                matching += 1
                matches.get(tables.subscriptions[id], []).append(id)
        yield
    held = [id for id in tables.wanted if subscriber and owner_of(id) == subscriber]
    advertised = [id for id in tables.advertised if publisher and owner_of(id) == publisher]
    return HopExplanation(
        goes_to=[_way(hop, matches[hop], tables, probe) for hop in ways],
        advertisements=[_permission(id, tables, probe) for id in advertised[:HELD_MAX]],
        held=[_finding(id, tables, probe) for id in held[:HELD_MAX]],
        matching=matching,
        subscriptions=len(tables.wanted),
    )


def in_one_go(steps: Generator[None, None, T]) -> T:
    """The result, for callers that need not serve others in between."""
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            result: T = stopped.value
            return result


def owner_of(id: str) -> str:
    """The client of an advertisement or subscription."""
    return id.rpartition("/")[0]


def hop_text(hop: Hop) -> str:
    return f"{hop.kind} {hop.name}"


def _hop_of(routing: Routing, came_from: str, publisher: str) -> Hop:
    if not came_from:
        return LocalClient(publisher)
    for neighbour in routing.neighbours:
        if neighbour.name == came_from:
            return neighbour
    return Neighbour(came_from)


def _slices(entries: Iterable[tuple[str, Filter]]) -> Iterator[list[tuple[str, Filter]]]:
    rest = iter(entries)
    while some := list(islice(rest, SCANNED)):
        yield some


def _way(hop: Hop, ids: list[str], tables: Tables, probe: Publication) -> HopWay:
    shown = [_finding(id, tables, probe) for id in ids[:NAMED_MAX]]
    return HopWay(kind=hop.kind, name=hop.name, count=len(ids), because=shown)


def _finding(id: str, tables: Tables, probe: Publication) -> FilterFinding:
    filter = tables.wanted[id]
    failures = [str(each) for each in filter.explain(probe.content).failures]
    return _found(id, filter, tables.subscriptions[id], failures, id not in tables.pending)


def _permission(id: str, tables: Tables, probe: Publication) -> FilterFinding:
    filter = tables.advertised[id]
    obstacles = filter.obstacles(probe.content)
    return _found(id, filter, tables.advertisements[id], obstacles, id not in tables.announcing)


def _found(
    id: str, filter: Filter, hop: Hop, failures: list[str], in_effect: bool
) -> FilterFinding:
    return FilterFinding(
        id=id,
        client=owner_of(id),
        filter=str(filter),
        hop=hop_text(hop),
        passes=not failures,
        failures=failures,
        in_effect=in_effect,
    )
