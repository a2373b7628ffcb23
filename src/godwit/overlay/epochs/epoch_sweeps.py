"""Sweeps that meet the end of an epoch (E6 in epoch_routing.py).

A sweep follows the publications that the old broker of a client has to deliver.  Brokers drop the
old epoch one after the other: a sweep may wait in it for a direction, or follow Last on a link.  It
goes on in the next epoch, whatever that is: a question to all brokers in clusters, behind a wave in
a mesh.  At the old broker of the client itself there is nothing left to wait for.

The questions of clusters (overlay/clusters/settling.py) do not go on: one of many answers says
nothing.  Their clients stay where they are, when their time is over.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm, Routing, Structured
from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.messages import Sweep, Swept


def can_go_on(old: Routing) -> bool:
    """Whether the sweeps of this epoch may go on in the next one."""
    return not isinstance(old, Structured)


def stranded(answers: Iterable[Answer], gone: Collection[Hop]) -> list[Sweep]:
    """Sweeps for neighbours that have dropped the old epoch."""
    sent = [answer for answer in answers if isinstance(answer, Send) and answer.to in gone]
    return [each.message for each in sent if isinstance(each.message, Sweep)]


def go_on_in(routing: Routing, sweeps: Iterable[Sweep], broker: str) -> list[Answer]:
    """Send sweeps on from this broker as if their clients were here."""
    answers: list[Answer] = []
    for sweep in sweeps:
        client = LocalClient(sweep.client)
        if sweep.to == broker:
            answers.append(Confirm(client, Swept(move=sweep.move)))
        else:
            answers += routing.handle(sweep, client)
    return answers
