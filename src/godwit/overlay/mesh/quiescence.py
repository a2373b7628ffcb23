"""Quiescence: how a broker learns that all that was published before has arrived.

Ours; the paper's clients do not move.  In a tree a sweep follows the publications on the one path
between two brokers.  In a mesh they may be on other paths, so acknowledgements take its place:

    here         what this broker has sent so far is settled: for a publisher that moves away
    everywhere   a wave passes all brokers on the primary links; each answers when those behind it
                 have, and what it had sent when the wave came is settled: for a subscriber that
                 has moved, before its sweep goes to the old broker

A publication that was accepted before a broker had the wave is with all subscribers when the wave
is back; one that was accepted later finds the subscription of the new place.

A broker that is missing is not waited for.  One that fails forgets the wave: the client stays.

Q1  A wave is known to a broker from its arrival to its answer; in a tree it comes once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from godwit.broker.effects import Send
from godwit.broker.stimuli import Neighbour
from godwit.content.mesh_messages import QuiescenceWave
from godwit.overlay.mesh.unsettled_copies import Positions, UnsettledCopies


@dataclass(slots=True)
class _Wave:
    came_from: Neighbour | None
    """None at the broker that has begun it."""

    awaited: set[Neighbour]
    """Primary neighbours that have not answered."""

    positions: Positions
    """What has to be settled here."""


class Quiescence:
    def __init__(self, copies: UnsettledCopies) -> None:
        self.over: list[str] = []
        """Waves of this broker that are back, for the caller to take."""
        self._copies = copies
        self._waves: dict[str, _Wave] = {}

    def begin(self, id: str, links: Iterable[Neighbour]) -> list[Send]:
        return self._enter(id, None, set(links))

    def receive(
        self, message: QuiescenceWave, neighbour: Neighbour, links: Iterable[Neighbour]
    ) -> list[Send]:
        if not message.is_echo:
            return self._enter(message.id, neighbour, set(links) - {neighbour})
        wave = self._waves.get(message.id)
        if wave is not None:
            wave.awaited.discard(neighbour)
        return self.go_on()

    def _enter(self, id: str, came_from: Neighbour | None, links: set[Neighbour]) -> list[Send]:
        self._waves[id] = _Wave(came_from, links, self._copies.positions())
        sends = [Send(link, QuiescenceWave(id=id)) for link in sorted(links)]
        return sends + self.go_on()

    def go_on(self) -> list[Send]:
        """Answer the waves for which all is settled now."""
        sends: list[Send] = []
        for id, wave in list(self._waves.items()):
            if wave.awaited or not self._copies.has_settled(wave.positions):
                continue
            del self._waves[id]
            if wave.came_from is None:
                self.over.append(id)
            else:
                sends.append(Send(wave.came_from, QuiescenceWave(id=id, is_echo=True)))
        return sends

    def link_down(self, neighbour: Neighbour) -> list[Send]:
        """Its part is missing: do not wait for it, nor answer it."""
        for id, wave in list(self._waves.items()):
            wave.awaited.discard(neighbour)
            if wave.came_from == neighbour:
                del self._waves[id]
        return self.go_on()
