"""What samplers saw of the publications of a network, and what follows from it.  Pure.

A sampler is a client at a broker that sees what passes it.  Where it sees a publication, the
clients of that broker whose subscriptions match got it, too: their hops are those of the copy that
the sampler got, and its delay stands for theirs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.matching.index import MatchingIndex
from godwit.protocol.frames import HEADER, encode_body
from godwit.rehearsal.network_figures import delay_figures
from godwit.rehearsal.network_snapshot import (
    DelayFigures,
    SampledAdvertisement,
    SampledPublication,
    SnapshotClient,
)

#: Copies that are kept; a sample that has more ends early.
COPIES_MAX = 200_000
#: A delivery to many clients of one broker counts so many times at most in percentiles.
WEIGHT_MAX = 1_000
#: The two halves of a sample take turns.
SLICE_S = 1.0


class SampledCopy(NamedTuple):
    broker: str
    publication: Publication
    hops: int
    seen_s: float


@dataclass(slots=True)
class TrafficSample:
    begin_s: float
    """In seconds since 1970, as all times here."""

    end_s: float = 0.0
    copies: list[SampledCopy] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        return len(self.copies) >= COPIES_MAX

    @property
    def sample_s(self) -> float:
        return self.end_s - self.begin_s

    def add(self, copy: SampledCopy) -> None:
        if not self.is_full and not copy.publication.is_control:
            self.copies.append(copy)

    def with_publications(self, clients: Iterable[SnapshotClient]) -> Iterator[SnapshotClient]:
        """The clients with what each published in the sample; each publication at its broker."""
        homes: dict[str, str] = {}
        listed = list(clients)
        for client in listed:
            homes |= {each.id: client.broker for each in client.advertisements}
        found: dict[str, dict[int, SampledPublication]] = {id: {} for id in homes}
        for broker, publication, _, _ in self.copies:
            at_s = publication.accepted_s - self.begin_s
            if homes.get(publication.advertisement) == broker and 0.0 <= at_s < self.sample_s:
                found[publication.advertisement][publication.sequence] = SampledPublication(
                    at_s=at_s, content=publication.content, frame_bytes=frame_bytes(publication)
                )
        for client in listed:
            advertisements = tuple(
                SampledAdvertisement(
                    id=each.id,
                    filter=each.filter,
                    publications=tuple(sorted(found[each.id].values(), key=lambda p: p.at_s)),
                )
                for each in client.advertisements
            )
            yield SnapshotClient(
                name=client.name,
                broker=client.broker,
                subscriptions=client.subscriptions,
                advertisements=advertisements,
            )

    def deliveries(
        self, clients: Iterable[SnapshotClient], half: int
    ) -> tuple[float, DelayFigures]:
        """Mean hops and the delays of one half: 0 or 1, the even or the odd slices of time."""
        audiences = _audiences(clients)
        delays_s: list[float] = []
        hops = count = 0
        for broker, publication, passed, seen_s in self.copies:
            at_s = publication.accepted_s - self.begin_s
            if not 0.0 <= at_s < self.sample_s or int(at_s / SLICE_S) % 2 != half:
                continue
            if broker not in audiences:
                continue
            matching = {name for name, _ in audiences[broker].match(publication.content)}
            receivers = len(matching - {publication.publisher})
            hops += passed * receivers
            count += receivers
            delay_s = max(0.0, seen_s - publication.accepted_s)
            delays_s.extend([delay_s] * min(receivers, WEIGHT_MAX))
        return (hops / count if count else 0.0), delay_figures(delays_s)


def frame_bytes(publication: Publication) -> int:
    """What a copy takes on a connection."""
    return HEADER.size + len(encode_body(publication))


def _audiences(
    clients: Iterable[SnapshotClient],
) -> Mapping[str, MatchingIndex[tuple[str, int]]]:
    """The subscriptions of the clients of each broker."""
    found: dict[str, MatchingIndex[tuple[str, int]]] = {}
    for client in clients:
        index = found.setdefault(client.broker, MatchingIndex())
        for number, text in enumerate(client.subscriptions):
            index.add((client.name, number), Filter.parse(text))
    return found
