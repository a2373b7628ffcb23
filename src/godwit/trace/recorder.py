"""From what a broker did to the rows of a trace.  The simulator and live brokers call the same.

With `sample_every` n only publications whose sequence number divides by n are recorded, at every
broker they pass and at every client, so that what is recorded of a publication is complete.
Everything that is not a publication is recorded always.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.broker.core import Broker
from godwit.broker.effects import Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Module, Neighbour, Received
from godwit.content.messages import Letter, Publication
from godwit.errors import UsageError
from godwit.trace.writer import ABSENT, TraceWriter


class Recorder:
    def __init__(self, writer: TraceWriter, *, sample_every: int = 1) -> None:
        if sample_every < 1:
            raise UsageError(f"one of {sample_every} publications cannot be recorded")
        self._sample_every = sample_every
        # Bound once: `handled` and `delivered` run for every message.
        handled, delivered = writer.handled, writer.delivered
        self._of_handled = handled.names, handled.pack, handled.put
        self._of_delivered = delivered.names, delivered.pack, delivered.put_each
        self._gauges = writer.gauges
        self._decisions = writer.decisions

    # Here it says `type(...) is`, because an isinstance that says no takes several times as long.

    def handled(
        self,
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
        if type(message) is Publication:
            sequence = message.sequence
            if sequence % self._sample_every:
                return
            kind, publisher, class_ = "Publication", message.publisher, _class(message)
            # What comes from a module is control, and has not been stamped yet.
            is_control = message.is_control or type(last_hop) is Module
        else:
            kind, publisher, class_ = type(message).__name__, None, None
            sequence, is_control = ABSENT, False
        copies = local_matches = answers = 0
        for effect in effects:
            if type(effect) is Send:
                if type(effect.message) is Letter:
                    answers += 1
                else:
                    copies += 1
            elif type(effect) is Deliver:
                local_matches += len(effect.to)
            elif type(effect) is Notify:
                answers += 1
        names, pack, put = self._of_handled
        put(
            pack(
                time_s,
                names[broker],
                names[kind],
                names[class_],
                names[publisher],
                sequence,
                names[last_hop.name],
                type(last_hop) is Neighbour,
                copies,
                local_matches,
                copies + local_matches + answers,
                received.hops,
                queue_delay_s,
                matching_delay_s,
                size_bytes,
                is_control,
            )
        )

    def delivered(
        self,
        clients: Sequence[str],
        publication: Publication,
        hops: int,
        time_s: float,
        size_bytes: int,
    ) -> None:
        """Some clients of one broker were handed a publication."""
        if publication.sequence % self._sample_every:
            return
        names, pack, put_each = self._of_delivered
        packed = pack(
            time_s,
            len(clients),
            names[publication.publisher],
            publication.sequence,
            names[publication.advertisement],
            names[_class(publication)],
            hops,
            time_s - publication.accepted_s,
            size_bytes,
        )
        put_each(packed, clients)

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
    return name if type(name) is str else None
