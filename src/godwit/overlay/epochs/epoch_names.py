"""The names of clients while there are two epochs.

The present epoch decides who has a name.  A claim that it grants is entered into the next epoch,
and the client is told when it is confirmed there, too.  A broker that has dropped the old epoch
asks in the new one, so that a contest can come from either; its decision goes back to where it came
from.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.effects import NameContested, NameGranted
from godwit.broker.routing import Answer, NameTable
from godwit.broker.stimuli import (
    Hop,
    NameContest,
    NameDecided,
    NameLeft,
    NameStimulus,
    NameWaitOver,
    Neighbour,
)
from godwit.content.messages import NameClaim


class EpochNames:
    def __init__(self, now: NameTable, following: NameTable, lane: int) -> None:
        """`lane` is that of the next epoch."""
        self._now = now
        self._next = following
        self._lane = lane
        self._contests: set[NameContest] = set()
        """Those of the next epoch that are not decided."""

    def stimulate(self, stimulus: NameStimulus) -> list[Answer]:
        if isinstance(stimulus, NameDecided) and stimulus.contest in self._contests:
            self._contests.remove(stimulus.contest)
            return self.from_next(self._next.stimulate(stimulus))
        answers = self.from_now(self._now.stimulate(stimulus))
        if isinstance(stimulus, NameLeft | NameWaitOver):
            answers += self.from_next(self._next.stimulate(stimulus))
        return answers

    def from_now(self, answers: Sequence[Answer]) -> list[Answer]:
        """A name that is granted in the present epoch is claimed in the next one."""
        passed: list[Answer] = []
        for answer in answers:
            if not isinstance(answer, NameGranted):
                passed.append(answer)
                continue
            claims = [claim for claim in self._now.sessions() if claim.name == answer.client.name]
            for claim in claims:
                passed += self.from_next(self._next.enter(claim))
            if not claims:
                passed.append(answer)
        return passed

    def from_next(self, answers: Sequence[Answer]) -> list[Answer]:
        for answer in answers:
            if isinstance(answer, NameContested):
                self._contests.add(answer.contest)
        return list(answers)

    def link_away(self, neighbour: Neighbour, *, is_away: bool) -> list[Answer]:
        if neighbour.lane == self._lane:
            return self.from_next(self._next.link_away(neighbour, is_away=is_away))
        return self.from_now(self._now.link_away(neighbour, is_away=is_away))

    def holder(self, name: str) -> Hop | None:
        return self._now.holder(name)

    def sessions(self) -> Sequence[NameClaim]:
        return self._now.sessions()

    def enter(self, claim: NameClaim) -> Sequence[Answer]:
        return self.from_now(self._now.enter(claim))
