"""Match offload: the subscriptions with the least traffic move until the matching delays meet.

Paper    Cheung, thesis 4.3.2.
Words    output bandwidth -> bytes per second of each client; extra incoming rate -> added_bits.
Claim    The delays come together, and the input and output utilisations are disturbed as little as
         possible: candidates are taken by ascending bandwidth, then by ascending extra rate at the
         acceptor, as long as each improves the balance.

Departs  1. Candidates wait in a heap.  Bandwidths never change.  The extra rate of a group falls
            when a chosen group shares samples with it, at most once for each sample
            (remaining_traffic.py, R2); the group is then entered again with its new rate, and the
            old entry is skipped.  So the next candidate is always the right one, without sorting
            again: n log n.
         2. A group that would not improve the balance is passed over, and the next is tried: with
            several filters for each client the steps differ in size.  (With one filter each, as in
            the thesis, all steps of one subscriber are equal.)
         3. Ties: covered ones first, then the larger rate saved, then fewer clients, then the
            lowest id, as in the other algorithms.
Tested   tests/policies/offload/test_match_offload.py, tests/policies/offload/test_plain.py.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TypeAlias

from godwit.policies.offload.report_cards import Offloading, OffloadPlan

#: Bytes per second, added bits, not covered, minus the saved bits, clients, group.
_Place: TypeAlias = tuple[float, int, bool, int, int, int]


class MatchOffload:
    def __init__(self, offloading: Offloading) -> None:
        self._offloading = offloading
        clients = offloading.traffic.clients
        self._places = {
            group: self._place(group) for group in range(len(clients)) if clients[group]
        }
        self._heap = list(self._places.values())
        heapify(self._heap)

    def plan(self) -> OffloadPlan:
        offloading = self._offloading
        while self._heap and not offloading.is_done:
            place = heappop(self._heap)
            group = place[-1]
            if self._places.get(group) != place:
                continue
            del self._places[group]
            report = offloading.report(group)
            if report is None or not offloading.improves(report):
                continue  # Nor will it later: balance comes nearer, limits tighten.
            changed = offloading.apply(report)
            if changed:
                self._enter_changed(changed)
        return offloading.plan()

    def _enter_changed(self, changed: int) -> None:
        bits = self._offloading.traffic.bits
        for group, place in self._places.items():
            if bits[group] & changed:
                now = self._place(group)
                if now != place:
                    self._places[group] = now
                    heappush(self._heap, now)

    def _place(self, group: int) -> _Place:
        offloading = self._offloading
        traffic = offloading.traffic
        return (
            offloading.bytes_s[group],
            traffic.added_bits(group),
            not offloading.is_covered(group),
            -traffic.saved_bits(group),
            traffic.clients[group],
            group,
        )
