"""Input offload: subscriptions of the CSS move until the input utilisations meet.

Paper    Cheung, thesis 4.3.1, algorithm 1.
Words    localCSS -> the filters in `_css`; computeReports, pickBestReport -> report_cards.py.
Claim    The same plan as algorithm 1, which computes the reports of all candidates again after each
         step, without doing so.

Only members of the covering subscription set decide which publications come in.  The one whose move
brings the two brokers closest together goes first, so that few subscriptions move.

Departs  1. A group of several filters is a candidate if one of them is in the CSS.
         2. Candidates whose reports must be equal are one *class*: the same number of saved
            samples, of added samples, of clients that can go and that the acceptor's output has
            room for, of filters for each client, and the same `is_covered`.  One report is
            computed for each class and step; within a class the lowest id is the best.  A group
            changes its class only if one of its samples changes (remaining_traffic.py, R2) or the
            room shrinks below it, which is read from a heap.  So a plan over n candidates in c
            classes with s steps takes about n log n + s c, instead of s n log n.  There are few
            classes, because samples and clients are small numbers.
Tested   tests/policies/offload/test_input_offload.py; tests/policies/offload/test_plain.py: the
         same plans as algorithm 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.policies.offload.css import CoveringSubscriptions
from godwit.policies.offload.report_cards import (
    Offloading,
    OffloadPlan,
    ReportCard,
    first,
    pick_best_report,
)


class _Class(NamedTuple):
    saved_bits: int
    added_bits: int
    clients: int
    room: int
    """Clients that the acceptor's output has room for."""

    per_client: int
    is_covered: bool


class InputOffload:
    def __init__(self, offloading: Offloading) -> None:
        self._offloading = offloading
        self._css = CoveringSubscriptions(
            filter for profile in offloading.sampled.groups for filter in profile.group.filters
        )
        self._holders: dict[Filter, set[int]] = {}
        for number, profile in enumerate(offloading.sampled.groups):
            for filter in profile.group.filters:
                self._holders.setdefault(filter, set()).add(number)
        self._class_of: dict[int, _Class] = {}
        self._groups: dict[_Class, list[int]] = {}
        """Heaps of groups; those of another class now are skipped."""

        self._by_bytes: list[tuple[float, int]] = []
        """A heap of the bytes that a group's clients would bring to the acceptor, negated."""

        self._enter(self._css.css)

    def plan(self) -> OffloadPlan:
        offloading = self._offloading
        while not offloading.is_done:
            report = pick_best_report(self._reports(), offloading.difference, offloading.threshold)
            if report is None:
                break
            self._take(report)
        return offloading.plan()

    def _reports(self) -> Iterator[ReportCard]:
        """One report for each class."""
        for kind in list(self._groups):
            groups = self._groups[kind]
            while groups and self._class_of.get(groups[0]) != kind:
                heappop(groups)
            report = self._offloading.report(groups[0]) if groups else None
            if report is None:
                # None can go, now or later: limits only tighten.
                del self._groups[kind]
            else:
                yield report

    def _take(self, report: ReportCard) -> None:
        offloading = self._offloading
        traffic, group = offloading.traffic, report.group
        changed = offloading.apply(report)
        if traffic.clients[group]:
            self._file(group)
        else:
            del self._class_of[group]
        if traffic.has_left(group):
            self._leave(group)
        if changed:
            bits = traffic.bits
            for other in [other for other in self._class_of if bits[other] & changed]:
                self._file(other)
        self._shrink()

    def _leave(self, group: int) -> None:
        """The filters without a holder leave; others may be in the CSS now."""
        for filter in set(self._offloading.sampled.groups[group].group.filters):
            holders = self._holders[filter]
            holders.discard(group)
            if not holders:
                self._enter(self._css.remove(filter))

    def _enter(self, filters: Iterable[Filter]) -> None:
        for filter in filters:
            for group in self._holders[filter]:
                if self._offloading.traffic.clients[group] and group not in self._class_of:
                    self._file(group)

    def _file(self, group: int) -> None:
        """Put a group into its class."""
        offloading = self._offloading
        traffic, bytes_s = offloading.traffic, offloading.bytes_s[group]
        clients = traffic.clients[group]
        room = clients
        fits = offloading.pair.fits_output
        if not fits(room * bytes_s):
            room = first(1, room, lambda k: not fits(k * bytes_s)) - 1
        kind = _Class(
            traffic.saved_bits(group),
            traffic.added_bits(group),
            clients,
            room,
            offloading.per_client[group],
            offloading.is_covered(group),
        )
        if self._class_of.get(group) == kind:
            return
        self._class_of[group] = kind
        heappush(self._groups.setdefault(kind, []), group)
        heappush(self._by_bytes, (-room * bytes_s, group))

    def _shrink(self) -> None:
        """The groups for which the acceptor's output has less room than before."""
        heap, fits = self._by_bytes, self._offloading.pair.fits_output
        while heap and not fits(-heap[0][0]):
            _, group = heappop(heap)
            if group in self._class_of:
                self._file(group)
