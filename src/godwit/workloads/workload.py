"""A workload as a value: publishers, subscribers and timed publications, independent of a driver.

    random = Random(7)
    workload = placement_workload(CLUSTER, StockMarket(random, symbols=30), brokers, random)
    workload.publishers, workload.subscribers        # names, brokers, filters
    for publishing in workload.publications(until_s=60.0): ...

Builders (balancing.py, placement.py, zipf.py ...) make one from a seed.  `publications` is a
stream in order of time, whose content is drawn on demand.  So a workload can be played once; to
play it again, build it again from the same seed.

Publications come at equal intervals, the first at a random point of the publisher's first period:
the papers give rates and no distribution.  A step of the rate applies from the next publication.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from heapq import heapify, heapreplace
from itertools import islice
from math import inf

from godwit.content.values import Record
from godwit.workloads.clients import Publisher, Subscriber
from godwit.workloads.timelines import RateStep


@dataclass(frozen=True, slots=True)
class Publishing:
    """At `at_s`, `publisher` publishes `record`."""

    at_s: float
    publisher: str
    record: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    publishers: tuple[Publisher, ...]
    subscribers: tuple[Subscriber, ...]
    content: Callable[[Publisher], Record]
    """Draws the next record of a publisher."""

    def publications(
        self, *, until_s: float, from_s: float = 0.0, steps: Iterable[RateStep] = ()
    ) -> Iterator[Publishing]:
        """The publications from `from_s` up to `until_s`, exclusive, in order of time."""
        rates = _Rates(self.publishers, steps)
        agenda = [
            (from_s + publisher.phase * 60.0 / publisher.publications_per_min, number)
            for number, publisher in enumerate(self.publishers)
        ]
        heapify(agenda)
        while agenda and agenda[0][0] < until_s:
            at_s, number = agenda[0]
            publisher = self.publishers[number]
            yield Publishing(at_s, publisher.name, self.content(publisher))
            heapreplace(agenda, (at_s + 60.0 / rates.per_min(publisher.name, at_s), number))

    def sample(self, count: int) -> Iterator[Record]:
        """The first `count` records of all publishers together."""
        stream = self.publications(until_s=inf)
        return (publishing.record for publishing in islice(stream, count))


class _Rates:
    """The rate of each publisher; must be queried in order of time."""

    def __init__(self, publishers: Iterable[Publisher], steps: Iterable[RateStep]) -> None:
        self._now = {p.name: p.publications_per_min for p in publishers}
        self._steps = sorted(steps, key=lambda step: step.at_s, reverse=True)

    def per_min(self, publisher: str, at_s: float) -> float:
        while self._steps and self._steps[-1].at_s <= at_s:
            step = self._steps.pop()
            self._now[step.publisher] = step.publications_per_min
        return self._now[publisher]
