"""The story of a client: where it is, what it has lost, and who moved it, when and why.

Brokers know their clients of now, and the last decisions of their policies; the coordinator knows
the last moves.  What neither remembers is not in the story.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from godwit.api.coordinator_api import MOVES, MoveRecord, Outcome, WhichMoves
from godwit.api.dashboard_api import ClientEvent, ClientStory, WhichClient
from godwit.api.routing_api import CLIENT, ClientAccount, ClientQuestion, PolicyDecision
from godwit.errors import GodwitError
from godwit.web.gatherer import Gatherer

MOVES_MAX = 100
DONE = {
    Outcome.PROPOSED: "it was proposed to move it",
    Outcome.REJECTED: "a move was rejected:",
    Outcome.WAITING: "it is to be asked to move",
    Outcome.ASKED: "it is asked to move",
    Outcome.MOVED: "it moved",
    Outcome.STAYED: "it stayed when it was asked to move",
    Outcome.UNKNOWN: "it was asked to move, with an unknown outcome,",
    Outcome.DROPPED: "a plan to move it was dropped:",
}


class ClientStories:
    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    async def tell(self, request: WhichClient) -> ClientStory:
        gatherer = self._gatherer
        overview = await gatherer.now()
        answers = await gatherer.calls.call_all(
            gatherer.urls(), CLIENT, ClientQuestion(request.name)
        )
        accounts = [each for each in answers.values() if isinstance(each, ClientAccount)]
        silent = [name for name, each in answers.items() if not isinstance(each, ClientAccount)]
        places = [each for each in accounts if each.state is not None]
        places.sort(key=lambda each: each.state is not None and not each.state.is_connected)
        moves = await self._moves(request.name)
        return ClientStory(
            name=request.name,
            places=places,
            events=events_of(moves, {each.broker: each.decisions for each in accounts}),
            says=list(_sentences(request.name, places, overview.missing)),
            silent=silent,
        )

    async def _moves(self, name: str) -> list[MoveRecord]:
        url = self._gatherer.directory.coordinator()
        if url is None:
            return []
        asked = WhichMoves(limit=MOVES_MAX, client=name)
        try:
            return (await self._gatherer.calls.call(url, MOVES, asked)).moves
        except GodwitError:
            return []


def events_of(
    moves: Iterable[MoveRecord], decisions: Mapping[str, Iterable[PolicyDecision]]
) -> list[ClientEvent]:
    """The latest first."""
    events = [
        ClientEvent(
            at_s=move.ended_s or move.asked_s or 0.0,
            by="the coordinator",
            says=f"{DONE[move.outcome]} from {move.source} to {move.target}: "
            + "; ".join(filter(None, (move.why, move.because))),
        )
        for move in moves
    ]
    for broker, made in decisions.items():
        for each in made:
            way = f" from {each.source} to {each.target}" if each.target else ""
            numbers = ", ".join(f"{name} {value}" for name, value in each.reason.items())
            events.append(
                ClientEvent(
                    at_s=each.at_s,
                    by=f"{each.policy} at {broker}",
                    says=f"{each.action}{way}" + (f": {numbers}" if numbers else ""),
                )
            )
    return sorted(events, key=lambda event: -event.at_s)


def _sentences(name: str, places: Iterable[ClientAccount], missing: Iterable[str]) -> Iterator[str]:
    found = list(places)
    if not found:
        yield f"{name} is not a client of any broker that answers."
    for place in found:
        state = place.state
        assert state is not None
        connected = "connected" if state.is_connected else "without a connection"
        yield (
            f"{name} is a client of {place.broker}, {connected}, with"
            f" {len(place.subscriptions)} subscriptions and"
            f" {len(place.advertisements)} advertisements."
        )
        waiting = [each.id for each in place.subscriptions if not each.in_effect]
        if waiting:
            yield f"Not in effect yet: {', '.join(waiting[:3])}."
        if state.queue_bytes:
            yield f"{state.queue_bytes} bytes wait for it."
        if state.is_isolated:
            yield "It is slow: publishers do not wait for it, and its queue is limited."
        if state.dropped:
            yield f"{state.dropped} publications were dropped because its queue was full."
    for part in missing:
        yield f"Publications from there may be missing: {part}."
