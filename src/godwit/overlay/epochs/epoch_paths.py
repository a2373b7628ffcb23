"""Acknowledgements and soft links while the network changes its shape.

A mesh (`broker.routing.Multipath`) may be the epoch in use, the next one, both or neither.  This is
what the broker and its driver see of it: what comes on a link goes to the epoch of that link, what
local clients and policies want to the epoch in use.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Protocol

from godwit.broker.routing import Answer, Multipath, Routing
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.mesh_messages import MeshMessage
from godwit.content.messages import Publication


class EpochSelector(Protocol):
    """The router that holds the epochs."""

    def routings(self) -> list[Routing]: ...

    def passed_on(self, routing: Routing, answers: Sequence[Answer]) -> list[Answer]: ...


class EpochPaths:
    def __init__(self, epochs: EpochSelector) -> None:
        self._epochs = epochs
        self._output_utilisation: Callable[[float], float] = _idle
        self._by_lane: dict[int, Multipath] = {}
        self._in_use: Multipath | None = None

    def read(self, lanes: Mapping[int, Routing], in_use: Routing) -> None:
        """These are the epochs now.  (To ask whether a router is a mesh takes long.)"""
        self._by_lane = {lane: each for lane, each in lanes.items() if isinstance(each, Multipath)}
        self._in_use = in_use if isinstance(in_use, Multipath) else None

    @property
    def is_there(self) -> bool:
        """Whether one of the epochs has several paths."""
        return bool(self._by_lane)

    def _of(self, hop: Hop) -> Multipath | None:
        return self._by_lane.get(hop.lane) if type(hop) is Neighbour else self._in_use

    def _meshes(self) -> list[Multipath]:
        return list(self._by_lane.values())

    def _from(self, mesh: object, answers: Sequence[Answer]) -> list[Answer]:
        found = [each for each in self._epochs.routings() if each is mesh]
        return self._epochs.passed_on(found[0], answers) if found else []

    @property
    def output_utilisation(self) -> Callable[[float], float]:
        return self._output_utilisation

    @output_utilisation.setter
    def output_utilisation(self, read: Callable[[float], float]) -> None:
        self._output_utilisation = read
        for mesh in self._meshes():
            mesh.output_utilisation = read

    def counts(self, neighbour: Neighbour) -> bool:
        return neighbour.lane in self._by_lane

    @property
    def uses_soft_links(self) -> bool:
        return any(mesh.uses_soft_links for mesh in self._meshes())

    def start(self, address: str) -> list[Answer]:
        return [
            answer for mesh in self._meshes() for answer in self._from(mesh, mesh.start(address))
        ]

    def receive(self, message: MeshMessage, neighbour: Neighbour) -> list[Answer]:
        mesh = self._of(neighbour)
        return [] if mesh is None else self._from(mesh, mesh.receive(message, neighbour))

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        mesh = self._of(last_hop)
        return mesh is not None and mesh.has_to_wait(publication, last_hop, now_s)

    def preview(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> Collection[Hop]:
        mesh = self._of(last_hop)
        return () if mesh is None else mesh.preview(publication, last_hop, hops, now_s)

    def acknowledged(self, neighbour: Neighbour, position: int) -> list[Answer]:
        mesh = self._of(neighbour)
        return [] if mesh is None else self._from(mesh, mesh.acknowledged(neighbour, position))

    def pause(self, client: LocalClient, move: int) -> list[Answer]:
        mesh = self._of(client)
        return [] if mesh is None else self._from(mesh, mesh.pause(client, move))

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> None:
        mesh = self._of(neighbour)
        if mesh is not None:
            mesh.link_away(neighbour, is_away=is_away)

    def detour(self, publication: Publication, lost: Neighbour) -> Collection[Neighbour]:
        mesh = self._of(lost)
        return () if mesh is None else mesh.detour(publication, lost)

    def want_soft_links(self, brokers: Iterable[str]) -> list[Answer]:
        """Those of the epoch in use: the old one gives its own up."""
        mesh = self._of(LocalClient(""))
        return [] if mesh is None else self._from(mesh, mesh.want_soft_links(brokers))


def _idle(_now_s: float) -> float:
    return 0.0
