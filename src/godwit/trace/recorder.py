"""Makes the rows of a trace from what brokers did, for the simulator and for live brokers alike.

With `sample_every` n only publications whose sequence number is divisible by n are recorded, at
every broker they pass and at every client, so that the record of a publication is complete.  All
other messages are always recorded.

With `deliveries_every` n the same holds for deliveries alone: a run with millions of them keeps
their delays and every message of its brokers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from msgspec import json

from godwit.broker.core import Broker
from godwit.broker.effects import Decision, Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Module, Neighbour, Received
from godwit.content.messages import Letter, Message, Publication, Sweep, size_bytes
from godwit.errors import UsageError
from godwit.trace.rows import ABSENT, ROWS_PER_GROUP, Rows, SpreadRows
from godwit.trace.writer import TraceWriter

#: Broker, stimulus, effects, time, the delays in its queue and in the matching engine, and the size
#: in bytes.
Happening: TypeAlias = tuple[str, Received, Sequence[Effect], float, float, float, int]
Handled: TypeAlias = Callable[[*Happening], None]
#: Clients of a broker, the publication that they received, its hops, and the time.
Delivery: TypeAlias = tuple[Sequence[str], Publication, int, float]
Delivered: TypeAlias = Callable[[*Delivery], None]

#: Batch size.  Small, so that the garbage collector is not triggered by what is kept.
TOGETHER = 32


class Recorder:
    def __init__(
        self, writer: TraceWriter, *, sample_every: int = 1, deliveries_every: int = 1
    ) -> None:
        for name, every in (("sample_every", sample_every), ("deliveries_every", deliveries_every)):
            if every < 1:
                raise UsageError(f"{name} is {every}; it must be at least 1")
        self.handled: Handled = _handling(writer.handled, sample_every)
        self.delivered: Delivered = _delivering(writer.delivered, sample_every * deliveries_every)
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
        """The readings of a broker's meters now."""
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
        """A decision of a policy, or a move."""
        self._decisions.add((time_s, broker, policy, action, subject, source, target, reason))

    def decided(self, broker: str, policy: str, decision: Decision, now_s: float) -> None:
        """A decision, from the effect of a broker."""
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


# These two are called for every message.  They process messages in batches: a loop over a batch
# runs from the processor's cache and is twice as fast.  `type(...) is` is used because an
# isinstance that fails takes several times as long.


def _handling(rows: Rows, sample_every: int) -> Handled:
    waiting: list[Happening] = []

    def handled(*happening: *Happening) -> None:
        """A broker handled a message."""
        waiting.append(happening)
        if len(waiting) >= TOGETHER:
            record()

    def record() -> None:
        cells = rows.cells
        for broker, received, effects, time_s, queue_delay_s, matching_delay_s, size in waiting:
            message, last_hop = received.message, received.last_hop
            from_broker = type(last_hop) is Neighbour
            if type(message) is Publication:
                kind, publisher, sequence = "Publication", message.publisher, message.sequence
                if sequence % sample_every:
                    continue
                class_, owner = message.content.get("class"), None
                # Messages of a module are control messages, not stamped yet.
                is_control = message.is_control if from_broker else type(last_hop) is Module
            else:
                kind, publisher, sequence = type(message).__name__, None, ABSENT
                class_, owner, is_control = None, _owner(message), False
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
            cells += (
                time_s, broker, kind, class_, publisher, sequence, owner, last_hop.name,
                from_broker, went_to, copies, matches, copies + matches + answers, received.hops,
                queue_delay_s, matching_delay_s, size, is_control,
            )  # fmt: skip
        waiting.clear()
        if len(cells) >= rows.enough:
            rows.pack()

    rows.ask_for_more = record
    return handled


def _delivering(rows: SpreadRows, sample_every: int) -> Delivered:
    waiting: list[Delivery] = []

    def delivered(*delivery: *Delivery) -> None:
        """Some clients of one broker received a publication."""
        waiting.append(delivery)
        if len(waiting) >= TOGETHER:
            record()

    def record() -> None:
        cells, spread = rows.cells, rows.spread
        for clients, publication, hops, now_s in waiting:
            sequence = publication.sequence
            if sequence % sample_every:
                continue
            cells += (
                now_s, len(clients), publication.publisher, sequence, publication.advertisement,
                publication.content.get("class"), hops, now_s - publication.accepted_s,
                publication.size_bytes or size_bytes(publication),
            )  # fmt: skip
            spread += clients
        waiting.clear()
        if len(cells) >= rows.enough or len(spread) >= ROWS_PER_GROUP:
            rows.pack()

    rows.ask_for_more = record
    return delivered


def _owner(message: Message) -> str | None:
    """The client or module that an advertisement or subscription belongs to, from its id."""
    if type(message) is Sweep:
        return message.client
    id = getattr(message, "id", None)
    return id.rpartition("/")[0] if isinstance(id, str) else None


def _with(names: str | None, name: str) -> str:
    assert names is not None
    return names if name in names.split() else f"{names} {name}"
