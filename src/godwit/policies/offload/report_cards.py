"""Report cards: what moving some subscribers of one group would do; and the plan that results.

Paper    Cheung, thesis 4.3.1 (report card, number of subscribers), algorithm 1 (pickBestReport,
         doneOffloading, updateBothBrokerInfos).
Words    numberOffloaded -> k; balancePercentageDiff -> difference; covered -> is_covered;
         prevBalanceDiff -> Offloading.difference; offloadSet -> OffloadPlan.clients.
Claim    Each step of a plan makes the estimated difference strictly smaller in size (L39), and
         leaves every resource of the acceptor within its limit.  A plan is not undone by the next.
Departs  1. k is the smallest number that reaches balance, at most what the acceptor's limit leaves
            (E7: a report with k = 0 is dropped, never looked at again; limits only tighten).
         2. Rates are parts of the offloader's measured input: nBS / N of it.  Its average over a
            detection interval is steadier than the rate during the few seconds of sampling, and
            Ir, which the estimate starts from, comes from it.
         3. A pair that is balanced is left alone, even if the offloader is still overloaded: k = 0.
         4. A step that makes the acceptor the heavier one, beyond the balance threshold, must be
            strictly better by a margin: the threshold, and MARGIN of what it changes.  Else one
            heavy subscriber goes to and fro between two equal brokers, because its load as it was
            sampled and the broker's as it was measured differ by a few percent.  If k clients fail
            that, k - 1 are taken.  Steps that leave the offloader the heavier one may be small:
            they cannot be undone, and many of them add up.
         5. A plan that stops short of balance and gains no more than the threshold is dropped: it
            would be repeated in each detection, for nothing.
Tested   tests/policies/offload/test_report_cards.py.

C1  The k of a group never rises during a plan: balance comes nearer, limits tighten, clients leave.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.css import CoverIndex
from godwit.policies.offload.estimates import LoadPair
from godwit.policies.offload.press import Sampled
from godwit.policies.offload.remaining_traffic import RemainingTraffic
from godwit.policies.offload.settings import BalancingSettings

BALANCED = "balanced"
PAST_BALANCE = "as near to balance as whole clients allow; the acceptor is the heavier one then"
NOT_HIGHER = "the offloader's load is not the higher one"
NO_STEP = "no step improves the balance"
INPUTS_BALANCED = "the inputs are balanced; to move more would make the acceptor's the higher one"
NO_LONGER_OVERLOADED = "no longer overloaded"
STILL_OVERLOADED = "balanced, but the offloader is still overloaded"
NOTHING_SAMPLED = "no publication arrived while PRESS sampled"
#: The part of a change that the estimate of it may be wrong by.
MARGIN = 0.05


@dataclass(frozen=True, slots=True)
class OffloadPlan:
    """Which clients to ask to move, and what is expected of it."""

    action: OffloadAction
    clients: tuple[str, ...]
    """In the order in which they were chosen."""

    local_before: BrokerInfo
    remote_before: BrokerInfo
    local_after: BrokerInfo
    remote_after: BrokerInfo
    difference_before: float
    """Of the metric of interest, offloader minus acceptor; delays are divided by Nf."""

    difference_after: float
    reason: str
    """Why it ended."""

    largest_subscriber_bytes_s: float = 0.0
    """The output bandwidth of the offloader's largest subscriber, also if it stays."""


class ReportCard(NamedTuple):
    group: int
    k: int
    difference: float
    """Of the metric of interest after the move; negative if the offloader ends lower."""

    is_covered: bool
    """Whether the acceptor receives all of it already."""

    saved_bits: int
    """Samples that the offloader no longer receives."""

    @property
    def rank(self) -> tuple[float, bool, int, int, int]:
        """The smallest is the best; ties as the specification orders them."""
        return (
            abs(self.difference), not self.is_covered, -self.saved_bits, self.k, self.group,
        )  # fmt: skip


def is_improvement(previous: float, after: float, threshold: float) -> bool:
    """Whether a step from one difference to another one is worthwhile (departure 4).

    If it is not, then no step that moves more is, nor is it later, when the difference is smaller.
    """
    if after >= -threshold:
        return abs(after) < abs(previous)
    return previous + after > max(threshold, MARGIN * (previous - after))


def pick_best_report(
    reports: Iterable[ReportCard], previous: float, threshold: float
) -> ReportCard | None:
    """The report that comes nearest to balance, of those that improve on `previous`."""
    better = (r for r in reports if is_improvement(previous, r.difference, threshold))
    return min(better, key=lambda report: report.rank, default=None)


class Offloading:
    """The state that the offload algorithms share: estimates, what remains, what was chosen."""

    def __init__(
        self,
        action: OffloadAction,
        local: BrokerInfo,
        remote: BrokerInfo,
        remote_css: Sequence[Filter],
        sampled: Sampled,
        settings: BalancingSettings,
        *,
        overloaded: bool,
    ) -> None:
        self.action = action
        self.settings = settings
        self.sampled = sampled
        self.overloaded = overloaded
        self.threshold = settings.balance_threshold
        self.pair = LoadPair(action, local, remote, settings)
        self.traffic = RemainingTraffic(sampled)
        self.difference = self.pair.difference
        self.per_client = [profile.group.subscriptions_per_client for profile in sampled.groups]
        input_per_s = local.input_per_s or sampled.input_per_s
        self.rate = input_per_s / sampled.samples if sampled.samples else 0.0
        """Publications per second that one sample stands for."""

        self.bytes_s = [size_bytes * self.rate for size_bytes in self.traffic.bytes_of]
        """Output bandwidth of each client of a group."""

        self._remote_css = remote_css
        self._covered_idle: dict[int, bool] = {}
        self._before = (local, remote, self.difference)
        self._chosen: list[str] = []
        self.obstacle = ""
        """What kept the acceptor from taking more, if something did."""

    # -- report cards --------------------------------------------------------------------------

    def report(self, group: int) -> ReportCard | None:
        """The report card of a group; None if none of its clients can go."""
        available = self.traffic.clients[group]
        if not available or self.difference <= self.threshold:
            return None
        added_bits = self.traffic.added_bits(group)
        saved_bits = self.traffic.saved_bits(group)
        k, difference = self._number(group, available, saved_bits, added_bits)
        if not k:
            return None
        return ReportCard(group, k, difference, self.is_covered(group), saved_bits)

    def is_covered(self, group: int) -> bool:
        """Whether moving the group brings the acceptor no publications that it lacks.

        A filter that the acceptor's CSS covers receives no sample that the CSS does not match, so
        the bits decide both the thesis's test and covering by several filters together.  Only
        for a group that received no sample do they say nothing; then the filters decide.
        """
        if self.traffic.bits[group]:
            return not self.traffic.added_bits(group)
        found = self._covered_idle.get(group)
        if found is None:
            filters = self.sampled.groups[group].group.filters
            found = all(self._remote_covers.covers(filter) for filter in filters)
            self._covered_idle[group] = found
        return found

    @cached_property
    def _remote_covers(self) -> CoverIndex:
        return CoverIndex(self._remote_css)

    def _number(
        self, group: int, available: int, saved_bits: int, added_bits: int
    ) -> tuple[int, float]:
        """k, and the difference after the move."""
        pair, per_client, bytes_s = self.pair, self.per_client[group], self.bytes_s[group]
        added = added_bits * self.rate
        saved = saved_bits * self.rate

        def difference(k: int) -> float:
            leaving = saved if k == available else 0.0
            return pair.difference_after(leaving, added, k * per_client, k * bytes_s)

        limit = available
        if not pair.fits(added, limit * per_client, limit * bytes_s):
            self.obstacle = pair.obstacle(added, limit * per_client, limit * bytes_s)
            limit = first(1, limit, lambda k: not pair.fits(added, k * per_client, k * bytes_s)) - 1
            if not limit:
                return 0, 0.0
        most = difference(limit)
        if most > self.threshold or limit == 1:
            return limit, most
        k = first(1, limit, lambda k: difference(k) <= self.threshold)
        if k > 1 and not is_improvement(self.difference, difference(k), self.threshold):
            k -= 1
        return k, difference(k)

    # -- steps ---------------------------------------------------------------------------------

    def apply(self, report: ReportCard) -> int:
        """Choose the clients of a report; returns the samples for which groups changed."""
        group, k = report.group, report.k
        traffic = self.traffic
        profile = self.sampled.groups[group].group
        begin = len(profile.clients) - traffic.clients[group]
        self._chosen += profile.clients[begin : begin + k]
        added = traffic.added_bits(group) * self.rate
        is_all = k == traffic.clients[group]
        saved = traffic.saved_bits(group) * self.rate if is_all else 0.0
        self.pair.move(saved, added, k * self.per_client[group], k * self.bytes_s[group])
        self.difference = self.pair.difference
        return traffic.move(group, k)

    def improves(self, report: ReportCard) -> bool:
        return is_improvement(self.difference, report.difference, self.threshold)

    @property
    def is_done(self) -> bool:
        """The thesis's doneOffloading."""
        if not self.overloaded:
            return self.difference <= self.threshold
        return not self._is_above_limit(self.settings.lower_overload_threshold)

    def _is_above_limit(self, limit: float) -> bool:
        local = self.pair.local
        match self.action:
            case OffloadAction.INPUT:
                return local.input_utilisation >= limit
            case OffloadAction.MATCH:
                return max(local.input_utilisation, local.memory_utilisation) >= limit
            case OffloadAction.OUTPUT:
                return local.output_utilisation >= limit

    # -- the result ----------------------------------------------------------------------------

    def plan(self, reason: str | None = None, *, whatever_it_gains: bool = False) -> OffloadPlan:
        local, remote, difference = self._before
        is_kept = self._is_worthwhile or whatever_it_gains
        return OffloadPlan(
            action=self.action,
            clients=tuple(self._chosen) if is_kept else (),
            local_before=local,
            remote_before=remote,
            local_after=self.pair.local if is_kept else local,
            remote_after=self.pair.remote if is_kept else remote,
            difference_before=difference,
            difference_after=self.difference if is_kept else difference,
            reason=reason or self._reason,
            largest_subscriber_bytes_s=max(self.bytes_s, default=0.0),
        )

    @property
    def _is_worthwhile(self) -> bool:
        """Departure 5."""
        gain = abs(self._before[2]) - abs(self.difference)
        return self.is_done or gain > self.threshold

    @property
    def _reason(self) -> str:
        if self.overloaded and self.is_done:
            return NO_LONGER_OVERLOADED
        if self.difference <= self.threshold:
            if self.difference < -self.threshold:
                return PAST_BALANCE if self._chosen else NOT_HIGHER
            return STILL_OVERLOADED if self.overloaded else BALANCED
        if self.obstacle:
            return f"the acceptor would exceed its limit: {self.obstacle}"
        return NO_STEP


def first(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The first number from `low` to `high` for which `holds`, which then holds for all larger.

    It is known to hold for `high`.
    """
    while low < high:
        middle = (low + high) // 2
        if holds(middle):
            high = middle
        else:
            low = middle + 1
    return high
