"""Reports of the output offload in order, each computed again only when its k changes.

Paper    Cheung, thesis 8.2, proposes to compute only the next best report again; not how.
Claim    `best` is what pickBestReport finds among fresh reports of all groups of a list.  A plan
         computes at most one report for each client, and up to three for each sample of a group,
         instead of one for each group and step.

Why that is possible: what a move does to Or depends on one figure, the bytes per second that move,
x = k times those of one client, and all moves so far only add up.  So

    order      the difference after a move falls with x: the report nearest to balance is the
               largest x that leaves it positive (`far`), or the smallest that makes it negative
               (`near`).  With each step some reports go from far to near, and none comes back.
    balance    k is right as long as k - 1 clients would not reach balance: a heap of (k - 1) times
               the bytes, from which those are taken that do.
    margin     k clients are right as long as they do not move too far past balance; a heap of x,
               from which those are taken that do: one client less goes (report_cards.py, 4).
    limits     k is right as long as the acceptor has room: for the bytes, a heap of x; for input
               and memory, one heap of k times the filters for each number of added samples,
               because (added samples, subscriptions) is all that these limits depend on.
    samples    when lcss or the samples of single groups change, the groups that have one of them
               are looked at: at most three times for each sample (remaining_traffic.py, R2).

Each heap is looked at from its top, with the same comparison that decided k, so that rounding
cannot make the two disagree.  As k never rises (report_cards.py, C1), it is computed again at most
once for each client.  Entries of earlier reports of a group stay in the heaps and are skipped.

Tested   tests/policies/offload/test_plain.py: against reports that are computed anew each time.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush

from godwit.policies.offload.report_cards import (
    Offloading,
    ReportCard,
    is_improvement,
    pick_best_report,
)


class ReportPools:
    """Lists of reports, each with its best at hand."""

    def __init__(
        self, offloading: Offloading, list_of: Callable[[ReportCard], int], lists: int
    ) -> None:
        self._offloading = offloading
        self._list_of = list_of
        self._reports: dict[int, ReportCard] = {}
        """The present report of each group; its difference is from when it was computed."""

        self._serials: dict[int, int] = {}
        """Of the present reports: entries with another one are of earlier reports."""

        self._serial = 0
        # Entries: place, minus the saved bits, k, group, serial: what ranks equal places.
        self._far: list[list[tuple[float, int, int, int, int]]] = [[] for _ in range(lists)]
        self._near: list[list[tuple[float, int, int, int, int]]] = [[] for _ in range(lists)]
        # Entries: minus the figure that is compared, group, serial.
        self._balance: list[tuple[float, int, int]] = []
        self._margin: list[tuple[float, int, int]] = []
        self._output: list[tuple[float, int, int]] = []
        self._engine: dict[int, list[tuple[float, int, int]]] = {}
        for group, bytes_s in enumerate(offloading.bytes_s):
            if bytes_s > 0:
                self._file(group)

    def best(self, number: int) -> ReportCard | None:
        """The report of a list that comes nearest to balance, if it improves the balance."""
        offloading = self._offloading
        if offloading.difference <= offloading.threshold:
            return None
        far, near = self._far[number], self._near[number]
        while far:
            place, saved, k, group, serial = far[0]
            if self._serials.get(group) == serial:
                if self._difference(-place) >= 0:
                    break
                heappush(near, (-place, saved, k, group, serial))
            heappop(far)
        while near and self._serials.get(near[0][3]) != near[0][4]:
            heappop(near)
        tops = [self._fresh(heap[0][3]) for heap in (far, near) if heap]
        return pick_best_report(tops, offloading.difference, offloading.threshold)

    def take(self, report: ReportCard) -> bool:
        """Apply a report and drop its group; whether a group is covered now that was not."""
        offloading = self._offloading
        self._drop(report.group)
        changed = offloading.apply(report)
        if offloading.difference <= offloading.threshold:
            return False  # Nothing more will be chosen.
        found = self._refresh_changed(changed) if changed else False
        self._refresh_balance()
        self._refresh_limits()
        return found

    # -- when a report is computed again -------------------------------------------------------

    def _refresh_changed(self, changed: int) -> bool:
        traffic, found = self._offloading.traffic, False
        for group in [group for group in self._reports if traffic.bits[group] & changed]:
            was_covered = self._reports[group].is_covered
            self._file(group)
            now = self._reports.get(group)
            found |= now is not None and now.is_covered and not was_covered
        return found

    def _refresh_balance(self) -> None:
        heap, threshold = self._balance, self._offloading.threshold
        while heap and self._difference(-heap[0][0]) <= threshold:
            self._file_if_present(heappop(heap))
        heap, now = self._margin, self._offloading.difference
        while heap and not is_improvement(now, self._difference(-heap[0][0]), threshold):
            self._file_if_present(heappop(heap))

    def _refresh_limits(self) -> None:
        pair, output = self._offloading.pair, self._output
        while output and not pair.fits_output(-output[0][0]):
            self._file_if_present(heappop(output))
        for added_bits, heap in list(self._engine.items()):
            added = added_bits * self._offloading.rate
            while heap:
                figure, group, serial = heap[0]
                if self._serials.get(group) == serial and pair.fits_engine(added, int(-figure)):
                    break
                self._file_if_present(heappop(heap))
            if not heap:
                del self._engine[added_bits]

    def _file_if_present(self, entry: tuple[float, int, int]) -> None:
        _, group, serial = entry
        if self._serials.get(group) == serial:
            self._file(group)

    # -- entries -------------------------------------------------------------------------------

    def _file(self, group: int) -> None:
        """Compute the report of a group, and enter it wherever it is looked for."""
        offloading = self._offloading
        report = offloading.report(group)
        if report is None:
            self._drop(group)
            return
        self._serial = serial = self._serial + 1
        self._serials[group] = serial
        self._reports[group] = report
        k, bytes_s = report.k, offloading.bytes_s[group]
        far = self._far[self._list_of(report)]
        heappush(far, (-k * bytes_s, -report.saved_bits, k, group, serial))
        if k > 1:
            heappush(self._balance, (-(k - 1) * bytes_s, group, serial))
            heappush(self._margin, (-k * bytes_s, group, serial))
        heappush(self._output, (-k * bytes_s, group, serial))
        engine = self._engine.setdefault(offloading.traffic.added_bits(group), [])
        heappush(engine, (-k * offloading.per_client[group], group, serial))

    def _drop(self, group: int) -> None:
        self._serials.pop(group, None)
        self._reports.pop(group, None)

    def _fresh(self, group: int) -> ReportCard:
        report = self._reports[group]
        bytes_s = report.k * self._offloading.bytes_s[group]
        return report._replace(difference=self._difference(bytes_s))

    def _difference(self, bytes_s: float) -> float:
        return self._offloading.pair.difference_after(0.0, 0.0, 0, bytes_s)
