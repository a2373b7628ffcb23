"""From what a broker did to the rows of a trace.  The simulator and live brokers call the same.

With `sample_every` n only publications whose sequence number divides by n are recorded, at every
broker they pass and at every client, so that what is recorded of a publication is complete.
Everything that is not a publication is recorded always.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import json

from godwit.broker.core import Broker
from godwit.broker.effects import Decision, Deliver, Effect, Notify, Send
from godwit.broker.stimuli import Module, Neighbour, Received
from godwit.content.messages import Letter, Publication, size_bytes
from godwit.errors import UsageError
from godwit.trace.rows import ABSENT, ROWS_PER_BATCH
from godwit.trace.writer import TraceWriter

#: Columns of texts, but for that in which deliveries differ.
HANDLED_TEXTS = ("broker", "kind", "class", "publisher", "came_from", "went_to")
DELIVERED_TEXTS = ("publisher", "advertisement", "class")


class Recorder:
    def __init__(self, writer: TraceWriter, *, sample_every: int = 1) -> None:
        if sample_every < 1:
            raise UsageError(f"one of {sample_every} publications cannot be recorded")
        self._sample_every = sample_every
        self._handled = writer.handled
        self._delivered = writer.delivered
        self._gauges = writer.gauges
        self._decisions = writer.decisions
        # Looked up once: `handled` and `delivered` run for every message.
        self._numbers_in_handled = tuple(writer.handled.numbers(*HANDLED_TEXTS))
        self._numbers_in_delivered = tuple(writer.delivered.numbers(*DELIVERED_TEXTS))

    # For the same reason it says `type(...) is` here, where an isinstance that says no takes
    # several times as long, and expects every text to be known.

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
        from_broker = type(last_hop) is Neighbour
        if type(message) is Publication:
            sequence = message.sequence
            if sequence % self._sample_every:
                return
            kind, publisher, class_ = "Publication", message.publisher, message.content.get("class")
            # What comes from a module is control, and has not been stamped yet.
            is_control = message.is_control or (not from_broker and type(last_hop) is Module)
        else:
            kind, publisher, class_ = type(message).__name__, None, None
            sequence, is_control = ABSENT, False
        copies = local_matches = answers = 0
        went_to = None
        for effect in effects:
            if type(effect) is Send:
                if type(effect.message) is Letter:
                    answers += 1
                    continue
                copies += 1
                hop = effect.to.name
                went_to = hop if went_to is None else _with(went_to, hop)
            elif type(effect) is Deliver:
                local_matches += len(effect.to)
            elif type(effect) is Notify:
                answers += 1
        rows = self._handled
        brokers, kinds, classes, publishers, origins, ways = self._numbers_in_handled
        try:
            packed = rows.pack(
                time_s, brokers[broker], kinds[kind], classes[class_], publishers[publisher],
                sequence, origins[last_hop.name], from_broker, ways[went_to], copies,
                local_matches, copies + local_matches + answers, received.hops, queue_delay_s,
                matching_delay_s, size_bytes, is_control,
            )  # fmt: skip
            rows.put(packed)
        except KeyError:
            texts = (broker, kind, class_, publisher, last_hop.name, went_to)
            rows.learn(dict(zip(HANDLED_TEXTS, texts, strict=True)))
            delays_s = queue_delay_s, matching_delay_s
            self.handled(broker, received, effects, time_s, *delays_s, size_bytes)
        if len(rows.fresh) >= ROWS_PER_BATCH:
            rows.gather()

    def delivered(
        self,
        clients: Sequence[str],
        publication: Publication,
        hops: int,
        now_s: float,
    ) -> None:
        """Some clients of one broker were handed a publication."""
        sequence = publication.sequence
        if sequence % self._sample_every:
            return
        publisher, advertisement = publication.publisher, publication.advertisement
        class_ = publication.content.get("class")
        rows = self._delivered
        publishers, advertisements, classes = self._numbers_in_delivered
        try:
            packed = rows.pack(
                now_s, len(clients), publishers[publisher], sequence,
                advertisements[advertisement], classes[class_], hops,
                now_s - publication.accepted_s, publication.size_bytes or size_bytes(publication),
            )  # fmt: skip
            rows.put(packed)
            rows.fresh_texts += clients
        except KeyError:
            texts = (publisher, advertisement, class_)
            rows.learn(dict(zip(DELIVERED_TEXTS, texts, strict=True)))
            self.delivered(clients, publication, hops, now_s)
        if len(rows.fresh_texts) >= ROWS_PER_BATCH:
            rows.gather()

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


def _with(names: str, name: str) -> str:
    return names if name in names.split() else f"{names} {name}"
