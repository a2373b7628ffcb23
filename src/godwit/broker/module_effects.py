"""The requests of a module as effects of its broker."""

from __future__ import annotations

from godwit.broker.effects import (
    Decision,
    Effect,
    Notify,
    Ping,
    Report,
    Send,
    SetTimer,
    Submit,
)
from godwit.broker.modules import AskForPings, AskToMove, Timer, ToNeighbour
from godwit.broker.stimuli import LocalClient
from godwit.content.messages import Letter, Message, MoveTo


def effect_of(
    module: str, request: Message | Timer | ToNeighbour | AskToMove | AskForPings | Decision
) -> Effect:
    match request:
        case Timer(name=name, at_s=at_s):
            return SetTimer(module, name, at_s)
        case ToNeighbour(neighbour=neighbour, body=body):
            return Send(neighbour, Letter(module=module, body=body))
        case AskToMove():
            move_to = MoveTo(
                broker=request.target,
                address=request.address,
                within_s=request.within_s,
                session=request.session,
            )
            return Notify(LocalClient(request.client), move_to)
        case AskForPings(client=client, brokers=brokers):
            return Ping(module, client, brokers)
        case Decision():
            return Report(module, request)
        case _:
            return Submit(module, request)
