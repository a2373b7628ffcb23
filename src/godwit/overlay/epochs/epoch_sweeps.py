"""Sweeps that meet the end of an epoch (E6 in epoch_routing.py).

A sweep follows the publications that the old broker of a client has to deliver.  Brokers drop the
old epoch one after the other: a sweep may wait in it for a direction, or follow Last on a link.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Routing
from godwit.broker.stimuli import Hop, LocalClient
from godwit.content.messages import Sweep


def stranded(answers: Iterable[Answer], gone: Collection[Hop]) -> list[Sweep]:
    """Sweeps for neighbours that have dropped the old epoch."""
    sent = [answer for answer in answers if isinstance(answer, Send) and answer.to in gone]
    return [each.message for each in sent if isinstance(each.message, Sweep)]


def go_on_in(routing: Routing, sweeps: Iterable[Sweep]) -> list[Answer]:
    """Send sweeps on as if their clients were here."""
    return [
        answer for sweep in sweeps for answer in routing.handle(sweep, LocalClient(sweep.client))
    ]
