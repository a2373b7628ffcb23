"""Waves over all links, to learn what every broker knew when the wave reached it.  Pure.

    origin --> its links --> theirs --> ...     each broker passes a wave on once
    origin <-- echoes    <-- ...                when its own links have answered

The links may form any graph.  Whatever a broker sent on a link before its echo arrives before it,
so the origin knows at the end all that the brokers knew when the wave reached them.

A wave waits for a neighbour that is away, and is sent again to one that has restarted.  One that is
gone is not waited for.  It waits for neighbours that are expected, too: a broker that has restarted
does not know yet what is behind them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

from godwit.content.link_messages import LinkWave
from godwit.overlay.link_states import Letters

#: Waves that are remembered, the oldest of those that are over go first.
WAVES_MAX = 1_024


@dataclass(slots=True)
class _Wave:
    request: LinkWave
    parent: str | None
    """The neighbour that it came from; None at its origin."""

    awaited: set[str] = field(default_factory=set)
    """Neighbours that have not answered."""


class LinkWaves:
    def __init__(self) -> None:
        self.over: list[str] = []
        """Waves of this broker that are over, for the caller to take."""
        self._waves: dict[str, _Wave] = {}

    def start(
        self, id: str, turn: int, links: Collection[str], expected: Iterable[str] = ()
    ) -> Letters:
        """Neighbours that are `expected` have no link yet: they are sent the wave with `again`."""
        return self._spread(_Wave(LinkWave(id=id, turn=turn), None), links, expected)

    def receive(
        self, wave: LinkWave, source: str, links: Collection[str], expected: Iterable[str] = ()
    ) -> Letters:
        known = self._waves.get(wave.id)
        if wave.is_echo:
            return [] if known is None else self._answered(known, source)
        if known is None:
            others = [link for link in links if link != source]
            return self._spread(_Wave(wave, source), others, expected)
        if source in known.awaited:  # The requests have crossed: each is the answer to the other.
            return self._answered(known, source)
        return [(source, _echo(known.request))]

    def _spread(self, wave: _Wave, links: Collection[str], expected: Iterable[str]) -> Letters:
        self._waves[wave.request.id] = wave
        if len(self._waves) > WAVES_MAX:
            over = [id for id, each in self._waves.items() if not each.awaited]
            for id in over[: len(over) // 2]:
                del self._waves[id]
        wave.awaited = {*links, *expected}
        sends: Letters = [(link, wave.request) for link in sorted(links)]
        return sends if wave.awaited else self._end(wave)

    def _answered(self, wave: _Wave, neighbour: str) -> Letters:
        if neighbour not in wave.awaited:
            return []
        wave.awaited.discard(neighbour)
        return [] if wave.awaited else self._end(wave)

    def _end(self, wave: _Wave) -> Letters:
        if wave.parent is None:
            self.over.append(wave.request.id)
            return []
        return [(wave.parent, _echo(wave.request))]

    def gone(self, neighbour: str) -> Letters:
        """The link with a neighbour is gone for good."""
        sends: Letters = []
        for wave in list(self._waves.values()):
            sends += self._answered(wave, neighbour)
        return [send for send in sends if send[0] != neighbour]

    def again(self, neighbour: str) -> Letters:
        """The neighbour has restarted, and has forgotten what it was sent, or is linked at last."""
        waves = self._waves.values()
        return [(neighbour, wave.request) for wave in waves if neighbour in wave.awaited]


def _echo(wave: LinkWave) -> LinkWave:
    return LinkWave(id=wave.id, turn=wave.turn, is_echo=True)
