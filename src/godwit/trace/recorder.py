"""From what a broker did to the rows of a trace.  The simulator and live brokers call the same.

With `sample_every` n only publications whose sequence number divides by n are recorded, at every
broker they pass and at every client, so that what is recorded of a publication is complete.
Everything that is not a publication is recorded always.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Neighbour, Received
from godwit.content.messages import Publication
from godwit.trace.writer import TraceWriter


class Recorder:
    def __init__(self, writer: TraceWriter, *, sample_every: int = 1) -> None:
        self._sample_every = sample_every
        self._handled = writer.tables["handled"]
        self._delivered = writer.tables["delivered"]
        self._gauges = writer.tables["gauges"]
        self._decisions = writer.tables["decisions"]
        # Bound once: this runs for every message.
        self._handled_appends = tuple(column.append for column in self._handled.columns)
        self._delivered_extends = tuple(column.extend for column in self._delivered.columns)

    def handled(
        self,
        broker: str,
        received: Received,
        effects: Sequence[Effect],
        *,
        time_s: float,
        queue_delay_s: float,
        matching_delay_s: float,
        size_bytes: int,
    ) -> None:
        """A broker took a message in and asked for `effects`."""
        message, last_hop = received.message, received.last_hop
        class_: str | None = None
        publisher: str | None = None
        sequence: int | None = None
        is_control = False
        if isinstance(message, Publication):
            if message.sequence % self._sample_every:
                return
            publisher, sequence = message.publisher, message.sequence
            class_, is_control = _class(message), message.is_control
        sent_to, local_matches, messages_out = _outputs(effects)
        row = (
            time_s,
            broker,
            type(message).__name__,
            class_,
            publisher,
            sequence,
            last_hop.name,
            isinstance(last_hop, Neighbour),
            sent_to,
            local_matches,
            messages_out,
            received.hops,
            queue_delay_s,
            matching_delay_s,
            size_bytes,
            is_control,
        )
        for append, value in zip(self._handled_appends, row, strict=True):
            append(value)
        self._handled.added(1)

    def delivered(
        self,
        clients: Sequence[str],
        publication: Publication,
        hops: int,
        *,
        time_s: float,
        size_bytes: int,
    ) -> None:
        """Some clients of one broker were handed a publication."""
        if publication.sequence % self._sample_every:
            return
        count = len(clients)
        row: tuple[Sequence[object], ...] = (
            [time_s] * count,
            clients,
            [publication.publisher] * count,
            [publication.sequence] * count,
            [publication.advertisement] * count,
            [_class(publication)] * count,
            [hops] * count,
            [time_s - publication.accepted_s] * count,
            [size_bytes] * count,
        )
        for extend, values in zip(self._delivered_extends, row, strict=True):
            extend(values)
        self._delivered.added(count)

    def gauge(
        self,
        broker: Broker,
        *,
        time_s: float,
        messages_queued: int,
        bytes_queued: int,
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


def _class(publication: Publication) -> str | None:
    name = publication.content.get("class")
    return name if isinstance(name, str) else None


def _outputs(effects: Sequence[Effect]) -> tuple[list[str], int, int]:
    """The neighbours that get a copy, how many clients do, and how many messages leave in all."""
    sent_to: list[str] = []
    local_matches = answers = 0
    for effect in effects:
        if isinstance(effect, Send):
            sent_to.append(effect.to.name)
        elif isinstance(effect, Deliver):
            local_matches = len(effect.to)
        elif isinstance(effect, Notify):
            answers += 1
    return sent_to, local_matches, len(sent_to) + local_matches + answers
