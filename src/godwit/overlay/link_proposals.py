"""Which new links a tree takes in: none that would close a cycle, also if several race.  Pure.

Links that both ends expect, because the same network file has them, are up at once: a file is
checked when it is read.  Every other link is pending at first: it carries what this module sends,
and nothing else.

    the broker that dials    sends a wave (link_waves.py) over all links, pending ones too, and
                             knows then every link that may come first; decides; commits
    the broker that answers  decides as well, with what it knows by then

A pending link has a turn, which is higher than every turn that its ends knew of.  A link is refused
if there is a way between its ends over links that are there, or are pending with a lower turn
(equal turns: by name).  Each of those is taken in, or refused because there is another way of links
with still lower turns: either way there will be one.

P1  Of the links of any cycle, the one with the highest turn is refused.  Its wave has passed the
    ends of all others when they were pending or up already: a broker that the wave has passed gives
    higher turns.
P2  A link is up at an end from its decision on; a wave that passes later finds it, one that passed
    before has told that end of a link that comes first.  So P1 holds if brokers fail, too.
P3  A broker that has restarted does not know the links that other brokers have, and others may not
    know its own.  A wave stays with it until its configured neighbours are connected, or given up.
P4  A refused link is tried again: one that it was refused for may fail.  So the network is
    connected in the end, if the links that were asked for connect it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import assert_never

from godwit.content.link_messages import (
    EpochNews,
    LinkDecision,
    LinkMessage,
    LinkState,
    LinkStatus,
    LinkWave,
)
from godwit.overlay.link_states import Letters, LinkStates
from godwit.overlay.link_waves import LinkWaves


@dataclass(slots=True)
class LinkStep:
    """What is to be done, in this order."""

    letters: Letters = field(default_factory=list)
    up: list[str] = field(default_factory=list)
    """Neighbours whose links are up now."""

    refused: list[tuple[str, str]] = field(default_factory=list)
    """Neighbours whose links are refused, and the reason."""


class LinkProposals:
    def __init__(self, states: LinkStates, *, run: str, refuses_cycles: bool = True) -> None:
        """`run` tells the waves of this run of the broker from those of earlier ones.

        Without `refuses_cycles` every link is taken in: the overlay is not a tree.
        """
        self._states = states
        self._refuses_cycles = refuses_cycles
        self._waves = LinkWaves()
        self._run = run
        self._wave_count = 0
        self._proposed: dict[str, str] = {}
        """Neighbours by the wave for the link with them."""
        self._committed: set[str] = set()
        """Neighbours that have not answered our decision yet."""

    def refusal(self, caller: str) -> str | None:
        """Why a link of this caller is refused at once, if it is."""
        way = self._way(caller)
        return closes_cycle(caller, self._states.broker, way[::-1]) if way else None

    def _way(self, to: str, turn: int = 0) -> list[str]:
        """The way between the ends of a link that would close a cycle; empty if it is taken in."""
        return self._states.way(to, turn) if self._refuses_cycles else []

    def next_turn(self) -> int:
        """The turn of a link that a caller makes."""
        return self._states.turn + 1

    def answered(self, caller: str, turn: int) -> LinkStep:
        """We have answered a caller: the link is pending."""
        return LinkStep([*self._states.link(caller, turn), *self._waves.again(caller)])

    def dialled(self, neighbour: str, turn: int) -> LinkStep:
        """A neighbour has answered, with this turn."""
        is_alone = self._states.is_alone_with(neighbour)
        turn = max(turn, self._states.turn + 1)
        step = LinkStep([*self._states.link(neighbour, turn), *self._waves.again(neighbour)])
        if is_alone:  # And every link that follows at this broker will know of this one.
            self._commit(neighbour, step)
            return step
        self._wave_count += 1
        id = f"{self._states.broker}/{self._run}/{self._wave_count}"
        self._proposed[id] = neighbour
        step.letters += self._waves.start(id, turn, self._states.linked, self._states.expected)
        return step

    def receive(self, message: LinkMessage, source: str) -> LinkStep:
        step = LinkStep()
        match message:
            case LinkState():
                step.letters += self._states.receive(message, source)
            case LinkWave():
                self._states.on_wave(message)
                step.letters += self._waves.receive(
                    message, source, self._states.linked, self._states.expected
                )
                self._end_waves(step)
            case LinkDecision():
                self._on_decision(message, source, step)
            case EpochNews():
                pass  # The broker has read it (runtime/node_epochs.py).
            case _:
                assert_never(message)
        return step

    def gone(self, neighbour: str) -> LinkStep:
        """The link with a neighbour, pending or up, is gone, or is not expected any longer."""
        self._committed.discard(neighbour)
        for id in [id for id, proposed in self._proposed.items() if proposed == neighbour]:
            del self._proposed[id]
        step = LinkStep([*self._waves.gone(neighbour)])
        self._end_waves(step)
        return step

    def restarted(self, neighbour: str) -> LinkStep:
        """A neighbour that knows nothing any more is connected again."""
        return LinkStep([*self._states.link(neighbour), *self._waves.again(neighbour)])

    def _end_waves(self, step: LinkStep) -> None:
        over, self._waves.over = self._waves.over, []
        for id in over:
            neighbour = self._proposed.pop(id, None)
            if neighbour is not None:
                self._decide(neighbour, step)

    def _decide(self, neighbour: str, step: LinkStep) -> None:
        """Take a link that this broker has made into use, or refuse it."""
        here = self._states.broker
        way = self._way(neighbour, self._states.turn_of(neighbour))
        if way:
            step.refused.append((neighbour, closes_cycle(here, neighbour, way)))
        else:
            self._commit(neighbour, step)

    def _commit(self, neighbour: str, step: LinkStep) -> None:
        self._committed.add(neighbour)
        step.letters += self._states.set(neighbour, LinkStatus.UP)  # P2
        step.letters.append((neighbour, LinkDecision()))

    def _on_decision(self, decision: LinkDecision, source: str, step: LinkStep) -> None:
        if decision.is_answer:
            if source in self._committed:
                self._committed.discard(source)
                step.up.append(source)
            return
        if self._states.status(source) is not LinkStatus.PENDING:
            return
        way = self._way(source, self._states.turn_of(source))
        if way:
            reason = closes_cycle(source, self._states.broker, way[::-1])
            step.refused.append((source, reason))
            return
        step.letters += self._states.set(source, LinkStatus.UP)  # P2
        step.letters.append((source, LinkDecision(is_answer=True)))
        step.up.append(source)


def closes_cycle(source: str, target: str, way: list[str]) -> str:
    return (
        f"a link from {source} to {target} would close a cycle: they are linked by"
        f" {' - '.join(way)}; remove one of these links, or do not make this one"
    )
