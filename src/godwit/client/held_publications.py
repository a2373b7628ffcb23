"""Publications that wait in the client.  Pure.

They wait until their advertisement is in effect, because a broker refuses them before, and while a
move pauses publishing.

C1  A publication is sent when its advertisement is in effect, in the order of publishing.
C2  Publications whose advertisement is withdrawn while they wait are never sent.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from godwit.client.holdings import HeldAdvertisement
from godwit.content.messages import AdvertisementId

P = TypeVar("P")


class HeldPublication(NamedTuple, Generic[P]):
    advertisement: AdvertisementId
    publication: P
    size_bytes: int = 0


class HeldPublications(Generic[P]):
    """`P` is a publication in the form in which it will be sent, such as a frame."""

    def __init__(self) -> None:
        self.is_paused = False
        """All publications wait, for the end of a move."""
        self.size_bytes = 0
        self._queue: deque[HeldPublication[P]] = deque()

    def __len__(self) -> int:
        return len(self._queue)

    def __iter__(self) -> Iterator[HeldPublication[P]]:
        return iter(self._queue)

    def must_wait(self, advertised: HeldAdvertisement) -> bool:
        """Whether a publication under this advertisement has to be held now (C1)."""
        return not (advertised.in_effect and not self._queue and not self.is_paused)

    def hold(self, publication: HeldPublication[P]) -> None:
        self._queue.append(publication)
        self.size_bytes += publication.size_bytes

    def hold_first(self, publications: Iterable[HeldPublication[P]]) -> None:
        """Hold publications that were sent before those that are held already."""
        earlier = list(publications)
        self._queue.extendleft(reversed(earlier))
        self.size_bytes += sum(each.size_bytes for each in earlier)

    def release(self, advertised: Mapping[AdvertisementId, HeldAdvertisement]) -> Iterator[P]:
        """Those that need not wait any more, to be sent at once."""
        return (publication for _, publication in self.release_each(advertised))

    def release_each(
        self, advertised: Mapping[AdvertisementId, HeldAdvertisement]
    ) -> Iterator[tuple[AdvertisementId, P]]:
        """As `release`, with the advertisement of each."""
        while self._queue and not self.is_paused:
            id, publication, size_bytes = self._queue[0]
            advertisement = advertised.get(id)
            if advertisement is not None and not advertisement.in_effect:
                return
            self._queue.popleft()
            self.size_bytes -= size_bytes
            if advertisement is not None:  # C2
                yield id, publication
