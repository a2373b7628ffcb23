"""Counts of a run: messages, deliveries, delays and hops."""

from __future__ import annotations

from array import array
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from godwit.broker.stimuli import Received
from godwit.content.messages import Message, Notice, Publication
from godwit.simulation.observers import DropReason, Observer


@dataclass(frozen=True, slots=True)
class Percentiles:
    p50: float
    p90: float
    p99: float
    highest: float


class Statistics(Observer):
    """Counts during the run; stores eight bytes for each delivery."""

    def __init__(self) -> None:
        self.publications = 0
        self.moves = 0
        # Not Counters: those take several times as long to add one.
        self._handled: defaultdict[type, defaultdict[str, int]]
        self._handled = defaultdict(lambda: defaultdict(int))
        """By type of message and broker."""
        self._deliveries_by_hops: defaultdict[int, int] = defaultdict(int)
        self.dropped: Counter[tuple[str, DropReason]] = Counter()
        self._delays_s = array("d")

    @property
    def handled(self) -> int:
        """Messages matched by all brokers."""
        return sum(sum(by_broker.values()) for by_broker in self._handled.values())

    @property
    def handled_by_broker(self) -> Counter[str]:
        found: Counter[str] = Counter()
        for by_broker in self._handled.values():
            found.update(by_broker)
        return found

    @property
    def handled_by_kind(self) -> Counter[str]:
        return Counter({kind.__name__: sum(by.values()) for kind, by in self._handled.items()})

    @property
    def deliveries_by_hops(self) -> Counter[int]:
        return Counter(self._deliveries_by_hops)

    @property
    def deliveries(self) -> int:
        return len(self._delays_s)

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        self._handled[type(received.message)][broker] += 1

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.publications += 1

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        copies = len(clients)
        self._deliveries_by_hops[hops] += copies
        self._delays_s.fromlist([now_s - publication.accepted_s] * copies)

    def on_moved(
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        self.moves += 1

    def on_dropped(self, broker: str, message: Message | Notice, reason: DropReason) -> None:
        self.dropped[broker, reason] += 1

    def delay_s(self) -> Percentiles:
        """From acceptance by the publisher's broker to arrival at the subscriber."""
        delays_s = sorted(self._delays_s)
        last = len(delays_s) - 1
        if last < 0:
            return Percentiles(0.0, 0.0, 0.0, 0.0)
        at = [delays_s[round(share * last)] for share in (0.5, 0.9, 0.99, 1.0)]
        return Percentiles(*at)

    def hops(self) -> Percentiles:
        """Overlay links between the publisher's broker and the subscriber's."""
        ordered = sorted(self._deliveries_by_hops.items())
        total = self.deliveries
        found = []
        for share in (0.5, 0.9, 0.99, 1.0):
            seen = 0
            for hops, deliveries in ordered:
                seen += deliveries
                if seen >= share * total:
                    found.append(float(hops))
                    break
        return Percentiles(*found) if found else Percentiles(0.0, 0.0, 0.0, 0.0)
