"""Soft links that come and go at random, and a count of the copies that brokers get.

A policy opens few links, for good reasons, and closes them rarely.  Here each broker of a mesh
changes its mind all the time, so that publications meet links in every state.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random

from godwit.broker.modules import BrokerView, PolicyModule, Request, Timer, WantSoftLinks
from godwit.broker.stimuli import Neighbour, Received
from godwit.content.messages import Publication
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.simulation.observers import Observer


class RandomSoftLinks(PolicyModule):
    """Wants other soft links every now and then, for a while."""

    name = "random soft links"
    is_watching = False

    def __init__(self, random: Random, *, every_s: float, for_s: float) -> None:
        self._random = random
        self._every_s = every_s
        self._for_s = for_s
        self._until_s = 0.0
        self._view: BrokerView | None = None

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self._view = view
        self._until_s = now_s + self._for_s
        return self._next(now_s)

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        assert self._view is not None
        mesh = self._view.multipath
        if not isinstance(mesh, MeshRouting):  # It may become one.
            return self._next(now_s)
        near = [each for each in mesh.mom.distances if each != self._view.broker]
        wanted = self._random.sample(near, self._random.randint(0, len(near)))
        return [WantSoftLinks(tuple(wanted)), *self._next(now_s)]

    def _next(self, now_s: float) -> list[Request]:
        at_s = now_s + self._random.expovariate(1.0 / self._every_s)
        return [Timer("change", at_s)] if at_s < self._until_s else []


class CopyCount(Observer):
    """Counts publications that a broker gets from other brokers, and how often one came again."""

    def __init__(self) -> None:
        self.copies = 0
        self.repeated = 0
        self._seen: set[tuple[str, str, int, int]] = set()

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        message = received.message
        if isinstance(message, Publication) and isinstance(received.last_hop, Neighbour):
            self.copies += 1
            # A copy on another lane is for something else (overlay/dht/).
            lane = received.last_hop.lane
            key = broker, message.publisher, message.sequence, lane
            self.repeated += key in self._seen
            self._seen.add(key)
