"""From what a broker did to the rows of a trace.  The simulator and live brokers call the same.

With `sample_every` n only publications whose sequence number divides by n are recorded, at every
broker they pass and at every client, so that what is recorded of a publication is complete.
Everything that is not a publication is recorded always.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import json

from godwit.broker.core import Broker
from godwit.broker.effects import Decision, Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Module, Neighbour, Received
from godwit.content.messages import Letter, Publication, size_bytes
from godwit.errors import UsageError
from godwit.trace.rows import ABSENT, ROWS_PER_GROUP, Rows, SpreadRows
from godwit.trace.writer import TraceWriter

Handled: TypeAlias = Callable[[str, Received, Sequence[Effect], float, float, float, int], None]
Delivered: TypeAlias = Callable[[Sequence[str], Publication, int, float], None]


class Recorder:
    def __init__(self, writer: TraceWriter, *, sample_every: int = 1) -> None:
        if sample_every < 1:
            raise UsageError(f"one of {sample_every} publications cannot be recorded")
        self.handled: Handled = _handling(writer.handled, sample_every)
        self.delivered: Delivered = _delivering(writer.delivered, sample_every)
        self._gauges = writer.gauges
        self._decisions = writer.decisions

    def gauge(
        self,
        broker: Broker,
        *,
        time_s: float,
        messages_queued: int,
        bytes_queued: int,
        memory_bytes: int,
        clients: int,
    ) -> None:
        """What the meters of a broker show now."""
        load = broker.meters.load(time_s)
        self._gauges.add(
            (
                time_s,
                broker.name,
                load.input_utilisation,
                load.output_utilisation,
                load.matching_delay_s,
                load.publications_per_s,
                load.messages_in_per_s,
                load.messages_out_per_s,
                load.bytes_in_per_s,
                load.bytes_out_per_s,
                messages_queued,
                bytes_queued,
                memory_bytes,
                broker.routing.subscription_count,
                broker.routing.advertisement_count,
                clients,
            )
        )

    def decision(
        self,
        broker: str,
        *,
        time_s: float,
        policy: str,
        action: str,
        subject: str,
        source: str,
        target: str,
        reason: str,
    ) -> None:
        """A policy decided something, or something was moved."""
        self._decisions.add((time_s, broker, policy, action, subject, source, target, reason))

    def decided(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        """A decision as a broker reports it."""
        self.decision(
            broker,
            time_s=now_s,
            policy=policy,
            action=decision.action,
            subject=decision.subject,
            source=decision.source,
            target=decision.target,
            reason=json.encode(decision.reason).decode(),
        )


# These two run for every message.  So they are no methods: all they need is at hand.  It says
# `type(...) is`, because an isinstance that says no takes several times as long.


def _handling(rows: Rows, sample_every: int) -> Handled:
    cells, enough, add = rows.cells, rows.enough, rows.cells.extend

    def handled(
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        time_s: float,
        queue_delay_s: float,
        matching_delay_s: float,
        size_bytes: int,
    ) -> None:
        """A broker took a message in and asked for `effects`."""
        message, last_hop = received.message, received.last_hop
        from_broker = type(last_hop) is Neighbour
        if type(message) is Publication:
            sequence = message.sequence
            if sequence % sample_every:
                return
            kind, publisher, class_ = "Publication", message.publisher, message.content.get("class")
            # What comes from a module is control, and has not been stamped yet.
            is_control = message.is_control if from_broker else type(last_hop) is Module
        else:
            kind, publisher, class_ = type(message).__name__, None, None
            sequence, is_control = ABSENT, False
        copies = matches = answers = 0
        went_to = None
        for effect in effects:
            if type(effect) is Send:
                if type(effect.message) is Letter:
                    answers += 1
                    continue
                went_to = _with(went_to, effect.to.name) if copies else effect.to.name
                copies += 1
            elif type(effect) is Deliver:
                matches += len(effect.to)
            elif type(effect) is Notify:
                answers += 1
        add(
            (
                time_s, broker, kind, class_, publisher, sequence, last_hop.name, from_broker,
                went_to, copies, matches, copies + matches + answers, received.hops,
                queue_delay_s, matching_delay_s, size_bytes, is_control,
            )
        )  # fmt: skip
        if len(cells) >= enough:
            rows.pack()

    return handled


def _delivering(rows: SpreadRows, sample_every: int) -> Delivered:
    cells, enough, add, spread = rows.cells, rows.enough, rows.cells.extend, rows.spread

    def delivered(
        clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        """Some clients of one broker were handed a publication."""
        sequence = publication.sequence
        if sequence % sample_every:
            return
        add(
            (
                now_s, len(clients), publication.publisher, sequence, publication.advertisement,
                publication.content.get("class"), hops, now_s - publication.accepted_s,
                publication.size_bytes or size_bytes(publication),
            )
        )  # fmt: skip
        spread.extend(clients)
        if len(cells) >= enough or len(spread) >= ROWS_PER_GROUP:
            rows.pack()

    return delivered


def _with(names: str | None, name: str) -> str:
    assert names is not None
    return names if name in names.split() else f"{names} {name}"
