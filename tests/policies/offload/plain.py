"""The offload algorithms as the thesis prints them: all report cards are computed after each step.

Written from the specification, with sets of sample numbers for bit vectors, `BrokerInfo`s for
estimates, k counted up from 1, and the poset for the CSS: O(n^2 log n) at best.
Where policies/offload departs from the print (the headers there say why), this follows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from godwit.content.filters import Filter
from godwit.content.poset import Poset
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.press import Sampled
from godwit.policies.offload.report_cards import MARGIN
from godwit.policies.offload.settings import BalancingSettings


class Card(NamedTuple):
    group: int
    k: int
    diff: float
    covered: bool
    saved: int


class PlainOffload:
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
        self.action, self.settings, self.overloaded = action, settings, overloaded
        self.local, self.remote, self.remote_css = local, remote, remote_css
        self.groups = [profile.group for profile in sampled.groups]
        self.received = [frozenset(profile.received) for profile in sampled.groups]
        self.rate = (local.input_per_s or sampled.input_per_s) / sampled.samples
        self.bytes_s = [profile.size_bytes * self.rate for profile in sampled.groups]
        self.lcss = set(sampled.lcss)
        self.left = [list(group.clients) for group in self.groups]
        self.chosen: list[str] = []
        self.poset: Poset[tuple[int, int]] | None = None
        if action is OffloadAction.INPUT:
            self.poset = Poset()
            for number, group in enumerate(self.groups):
                for place, filter in enumerate(group.filters):
                    self.poset.insert((number, place), filter)

    # -- estimates -----------------------------------------------------------------------------

    def diff(self, local: BrokerInfo, remote: BrokerInfo) -> float:
        match self.action:
            case OffloadAction.INPUT:
                return local.input_utilisation - remote.input_utilisation
            case OffloadAction.MATCH:
                gap_s = local.matching_delay_s - remote.matching_delay_s
                return gap_s / self.settings.delay_normalization_s
            case OffloadAction.OUTPUT:
                return local.output_utilisation - remote.output_utilisation

    @property
    def current(self) -> float:
        return self.diff(self.local, self.remote)

    def added(self, group: int) -> int:
        return len(self.received[group] - self.lcss)

    def saved(self, group: int) -> int:
        if self.groups[group].staying:
            return 0
        others: set[int] = set()
        for other, received in enumerate(self.received):
            if other != group and (self.left[other] or self.groups[other].staying):
                others |= received
        return len(self.received[group] - others)

    def after(self, group: int, k: int, saved: int) -> tuple[BrokerInfo, BrokerInfo]:
        moved = k * len(self.groups[group].filters)
        leaving = saved if k == len(self.left[group]) and not self.groups[group].staying else 0
        local, remote, bytes_s = self.local, self.remote, k * self.bytes_s[group]
        return replace(
            local,
            input_per_s=max(0.0, local.input_per_s - leaving * self.rate),
            subscriptions=max(0, local.subscriptions - moved),
            output_used_bytes_s=max(0.0, local.output_used_bytes_s - bytes_s),
            memory_utilisation=max(
                0.0, local.memory_utilisation - moved * local.memory_per_subscription
            ),
        ), replace(
            remote,
            input_per_s=remote.input_per_s + self.added(group) * self.rate,
            subscriptions=remote.subscriptions + moved,
            output_used_bytes_s=remote.output_used_bytes_s + bytes_s,
            memory_utilisation=remote.memory_utilisation + moved * remote.memory_per_subscription,
        )

    def fits(self, remote: BrokerInfo) -> bool:
        limit = self.settings.lower_overload_threshold
        return (
            remote.input_utilisation <= limit
            and remote.cpu_utilisation <= limit
            and remote.output_utilisation <= limit
            and remote.memory_utilisation <= limit
        )

    # -- report cards --------------------------------------------------------------------------

    def is_covered(self, group: int) -> bool:
        if self.received[group]:
            return not self.added(group)
        return all(
            any(wide.covers(filter) for wide in self.remote_css)
            for filter in self.groups[group].filters
        )

    def card(self, group: int) -> Card | None:
        if self.current <= self.settings.balance_threshold:
            return None
        saved = self.saved(group)
        found: Card | None = None
        for k in range(1, len(self.left[group]) + 1):
            local, remote = self.after(group, k, saved)
            if not self.fits(remote):
                break
            card = Card(group, k, self.diff(local, remote), self.is_covered(group), saved)
            if card.diff <= self.settings.balance_threshold:
                return card if found is None or self.improves(card) else found
            found = card
        return found

    def cards(self, groups: Iterable[int]) -> list[Card]:
        return [card for group in groups if (card := self.card(group)) is not None]

    def improves(self, card: Card) -> bool:
        """The margin is for steps past balance: the acceptor is the heavier one then."""
        before, after, threshold = self.current, card.diff, self.settings.balance_threshold
        if abs(after) >= abs(before):
            return False
        gain, change = abs(before) - abs(after), before - after
        return after >= -threshold or (gain > threshold and gain > MARGIN * change)

    def best(self, cards: Iterable[Card]) -> Card | None:
        """pickBestReport, without a list to remove from: cards are computed anew each time."""
        return min(
            (card for card in cards if self.improves(card)),
            key=lambda c: (abs(c.diff), not c.covered, -c.saved, c.k, c.group),
            default=None,
        )

    def done(self) -> bool:
        if not self.overloaded:
            return self.current <= self.settings.balance_threshold
        limit, local = self.settings.lower_overload_threshold, self.local
        match self.action:
            case OffloadAction.INPUT:
                return local.input_utilisation < limit
            case OffloadAction.MATCH:
                return (
                    local.cpu_utilisation < limit
                    and local.input_utilisation < limit
                    and local.memory_utilisation < limit
                )
            case OffloadAction.OUTPUT:
                return local.output_utilisation < limit

    def apply(self, card: Card) -> None:
        group, k = card.group, card.k
        self.local, self.remote = self.after(group, k, card.saved)
        self.lcss |= self.received[group]
        self.chosen += self.left[group][:k]
        del self.left[group][:k]
        if self.poset is not None and not self.left[group] and not self.groups[group].staying:
            for place in range(len(self.groups[group].filters)):
                self.poset.remove((group, place))

    # -- the algorithms ------------------------------------------------------------------------

    def run(self) -> tuple[str, ...]:
        local, remote, before = self.local, self.remote, self.current
        match self.action:
            case OffloadAction.INPUT:
                self.input_offload()
            case OffloadAction.MATCH:
                self.match_offload()
            case OffloadAction.OUTPUT:
                self.output_offload()
        gain = abs(before) - abs(self.current)
        if not self.done() and gain <= self.settings.balance_threshold:
            self.local, self.remote = local, remote
            return ()
        return tuple(self.chosen)

    def input_offload(self) -> None:
        assert self.poset is not None
        while not self.done():
            css = {group for wide in self.poset.css for group, _ in self.poset.holders(wide)}
            best = self.best(self.cards(group for group in css if self.left[group]))
            if best is None:
                return
            self.apply(best)

    def match_offload(self) -> None:
        passed: set[int] = set()
        while not self.done():
            waiting = [g for g, left in enumerate(self.left) if left and g not in passed]
            if not waiting:
                return
            group = min(waiting, key=self.match_order)
            passed.add(group)
            card = self.card(group)
            if card is not None and self.improves(card):
                self.apply(card)

    def match_order(self, group: int) -> tuple[float, int, bool, int, int, int]:
        return (
            self.bytes_s[group], self.added(group), not self.is_covered(group),
            -self.saved(group), len(self.left[group]), group,
        )  # fmt: skip

    def output_offload(self) -> None:
        ignore: set[int] = set()
        while not self.done():
            moved = self.phase_1(ignore)
            if self.done() or self.must_stop():
                return
            moved += self.phase_2(ignore)
            if not moved:
                return  # E8

    def phase_1(self, ignore: set[int]) -> int:
        moved = 0
        while not self.done():
            types: list[list[Card]] = [[], [], []]
            for card in self.cards(g for g in range(len(self.groups)) if g not in ignore):
                if card.covered:
                    is_all = card.k == len(self.left[card.group])
                    types[2 if not card.saved else 0 if is_all else 1].append(card)
            found = [best for cards in types if (best := self.best(cards)) is not None]
            if not found:
                break
            ignore.add(found[0].group)
            self.apply(found[0])
            moved += 1
        return moved

    def phase_2(self, ignore: set[int]) -> int:
        moved = 0
        while not self.done() and not self.must_stop():
            cards = self.cards(g for g in range(len(self.groups)) if g not in ignore)
            waiting = [card for card in cards if not card.covered]
            best = self.best(waiting)
            if best is None:
                break
            ignore.add(best.group)
            self.apply(best)
            moved += 1
            others = [card.group for card in waiting if card.group not in ignore]
            if any(self.is_covered(group) and self.card(group) for group in others):
                break
        return moved

    def must_stop(self) -> bool:
        if self.overloaded or self.remote.input_utilisation <= self.settings.local_ratio_trigger:
            return False
        gap = self.local.input_utilisation - self.remote.input_utilisation
        return gap <= self.settings.balance_threshold
