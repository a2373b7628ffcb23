"""The place of a broker in the shape of an epoch: its neighbours there, and the links it opens."""

from __future__ import annotations

from godwit.broker.effects import OpenLink
from godwit.broker.routing import Answer, Place
from godwit.broker.stimuli import LinkKind, Neighbour
from godwit.content.link_messages import NetworkShape


def place_in(shape: NetworkShape, place: Place) -> Place:
    """Where the broker of `place` is in this shape; all its links are still to come."""
    expected = [Neighbour(name, shape.epoch) for name in shape.neighbours(place.broker)]
    return Place(place.broker, expected=expected, settings=place.settings, lane=shape.epoch)


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
