"""What others may see of the tables of a tree router: their contents, holdings, invariant T1."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from godwit.broker.routing import Holding, Tables
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import (
    AdvertisementId,
    AdvertisementInEffect,
    SubscriptionInEffect,
)
from godwit.overlay.tree.presence import Presence
from godwit.overlay.tree.routing_tables import (
    AdvertisementTable,
    InterestTable,
    Link,
    SubscriptionEntry,
)


def tables_of(
    advertisements: AdvertisementTable, interests: InterestTable, links: Mapping[Neighbour, Link]
) -> Tables:
    return Tables(
        advertisements={e.advertisement.id: e.last_hop for e in advertisements},
        subscriptions={e.subscription.id: e.last_hop for e in interests},
        told={
            neighbour.name: sorted(id for id in link if link.was_sent(interests[id]))
            for neighbour, link in links.items()
        },
        advertised={e.advertisement.id: e.advertisement.filter for e in advertisements},
        wanted={e.subscription.id: e.subscription.filter for e in interests},
        pending=pending_of(interests),
        announcing=frozenset(
            e.advertisement.id
            for e in advertisements
            if e.awaited and not isinstance(e.last_hop, Neighbour)
        ),
    )


def pending_of(interests: Iterable[SubscriptionEntry]) -> frozenset[str]:
    """Subscriptions of clients and modules of this broker that are not in effect yet."""
    return frozenset(
        entry.subscription.id
        for entry in interests
        if not entry.in_effect and not isinstance(entry.last_hop, Neighbour)
    )


def local_holdings(
    advertisements: AdvertisementTable,
    interests: InterestTable,
    presence: Presence,
    waiting: Collection[tuple[AdvertisementId, Hop]],
) -> Iterator[Holding]:
    """What clients and modules of this broker hold.

    `waiting` are confirmations of advertisements that wait until the broker has recovered.
    """
    for entry in advertisements:
        hop, held = entry.last_hop, entry.advertisement
        if not isinstance(hop, Neighbour):
            is_told = not entry.awaited and (held.id, hop) not in waiting
            in_effect = AdvertisementInEffect(id=held.id, edition=held.edition)
            yield Holding(hop, held, in_effect if is_told else None)
    for interest in interests:
        hop, wanted = interest.last_hop, interest.subscription
        if not isinstance(hop, Neighbour):
            notice = SubscriptionInEffect(id=wanted.id, edition=wanted.edition)
            yield Holding(hop, wanted, notice if interest.in_effect else None)
    for hop, present in presence.own():
        assert not isinstance(hop, Neighbour)
        yield Holding(hop, present, None)


def check_tables(
    advertisements: AdvertisementTable, interests: InterestTable, links: Iterable[Link]
) -> None:
    """Assert T1 to T5 (tree_routing.py)."""
    interests.check()
    advertisements.check()
    for link in links:
        _check_link(link, advertisements, interests)


def _check_link(link: Link, advertisements: AdvertisementTable, interests: InterestTable) -> None:
    """Assert T1 for one link."""
    link.check()
    neighbour, told = link.neighbour, set(link)
    for entry in interests:
        wanted = (
            entry.last_hop != neighbour
            and not entry.subscription.local_only
            and advertisements.is_announced(entry.subscription.filter, neighbour)
        )
        id = entry.subscription.id
        assert (id in told) == wanted, f"T1: {neighbour.name} and {id}: sent is {not wanted}"
        told.discard(id)
    assert not told, f"T1: {neighbour.name} has {told}, which the table has not"
