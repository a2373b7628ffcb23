"""The place of a broker in the shape of an epoch: its neighbours there, and the links it opens.

A broker that joins later is *outside* an epoch that is in use: nothing comes into effect there
until the next epoch, which has it as a member.
"""

from __future__ import annotations

from msgspec.structs import replace

from godwit.broker.effects import OpenLink
from godwit.broker.routing import Answer, Place
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.content.link_messages import NetworkShape
from godwit.overlay.clusters.cluster_structure import without_broker

#: Stands for the network that a broker outside waits for; no broker has this name.
THE_NETWORK = "$network"


def is_outside(shape: NetworkShape | None, broker: str) -> bool:
    """Whether others are in this shape, and the broker is not."""
    if shape is None:
        return False
    members = {*shape.brokers, *shape.addresses}
    return bool(members) and broker not in members


def without(shape: NetworkShape | None, broker: str) -> NetworkShape | None:
    """The shape when a broker has left."""
    if shape is None:
        return None
    links = tuple(link for link in shape.links if broker not in link)
    addresses = {name: at for name, at in shape.addresses.items() if name != broker}
    settings = without_broker(shape.settings, broker)
    return replace(shape, links=links, addresses=addresses, settings=settings)


def place_in(shape: NetworkShape, place: Place) -> Place:
    """Where the broker of `place` is in this shape; all its links are still to come."""
    names = shape.neighbours(place.broker)
    if is_outside(shape, place.broker):
        names = [THE_NETWORK]
    expected = [Neighbour(name, shape.epoch) for name in names]
    return Place(place.broker, expected=expected, settings=shape.settings, lane=shape.epoch)


def opened_links(shape: NetworkShape, place: Place) -> list[Answer]:
    broker, addresses = place.broker, shape.addresses
    return [
        OpenLink(
            name,
            addresses.get(name, ""),
            LinkKind.PRIMARY,
            shape.epoch,
            is_caller=name < broker,
        )
        for name in shape.neighbours(broker)
    ]
