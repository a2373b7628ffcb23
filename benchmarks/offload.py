"""Offload decisions: their duration by the number of distinct subscriptions.

    python -m benchmarks offload [--quick]

Stock subscriptions as in the thesis (LS3's templates, distinct), 1 to 5 clients for each, all at
one broker; the acceptor is idle, which gives the longest plans.  PRESS samples 50 quotes.

The reference is the thesis's loop, which computes the reports of all candidates after each step; it
uses the same report cards, and must choose the same clients.  It is measured as long as it takes
less than a few minutes.  Two other parts of a session are measured beside the decision: PRESS
(making the groups, 50 samples) and the covering subscription set, against the poset.  CPU time of
the shortest of several runs, because machines are shared.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from math import log
from random import Random
from time import process_time

from benchmarks.report import Row
from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.content.poset import Poset
from godwit.matching.index import MatchingIndex
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.css import CoveringSubscriptions
from godwit.policies.offload.offload_algorithms import plan_offload
from godwit.policies.offload.press import Press, Sampled
from godwit.policies.offload.report_cards import (
    Offloading,
    OffloadPlan,
    ReportCard,
    pick_best_report,
)
from godwit.policies.offload.settings import BalancingSettings
from godwit.profile.matching_delay import MatchingDelay
from godwit.workloads.stocks import StockMarket

SIZES = (1_000, 3_000, 10_000, 30_000)
#: Up to these sizes the thesis's loop and the poset are measured.
PLAIN_MAX = {OffloadAction.INPUT: 3_000, OffloadAction.MATCH: 3_000, OffloadAction.OUTPUT: 3_000}
POSET_MAX = 3_000
BARS_S = {10_000: 1.0}
#: How much longer the largest size may take than the one of a tenth, against n log n.
GROWTH_BAR = 2.0
REPEATS = 3
SYMBOLS = 100
SAMPLES = 50
INPUT_PER_S = 100.0
SETTINGS = BalancingSettings()


@dataclass(frozen=True, slots=True)
class Scene:
    """Subscriptions of one broker and what it delivered."""

    held: list[ClientSubscription]
    filters: list[Filter]
    deliveries: list[tuple[Publication, list[LocalClient]]]
    sampled: Sampled


def scene(size: int, *, spanning: bool) -> Scene:
    """`spanning`: with the templates that name no symbol, which cover most others."""
    random = Random(1)
    market = StockMarket(random, symbols=SYMBOLS)
    filters: dict[Filter, None] = {}
    while len(filters) < size:
        filter = market.template_filter(random.choice(market.symbols))
        if spanning or "symbol" in filter.constraints:
            filters[filter] = None
    held = []
    index: MatchingIndex[str] = MatchingIndex()
    for number, filter in enumerate(filters):
        for client in range(random.randint(1, 5)):
            name = f"c{number}-{client}"
            held.append(ClientSubscription(name, SubscriptionId(f"{name}/1"), filter))
            index.add(name, filter)
    deliveries = []
    for number in range(SAMPLES):
        publication = Publication(
            publisher="P",
            sequence=number,
            advertisement=AdvertisementId("P/1"),
            content=market.quote(random.choice(market.symbols)),
            size_bytes=random.randint(150, 250),
        )
        clients = [LocalClient(name) for name in index.match(publication.content)]
        deliveries.append((publication, clients))
    return Scene(held, list(filters), deliveries, _sampled(held, deliveries))


def _sampled(
    held: list[ClientSubscription], deliveries: Iterable[tuple[Publication, list[LocalClient]]]
) -> Sampled:
    press = Press(held, (), samples_max=SAMPLES, now_s=0.0)
    for publication, clients in deliveries:
        press.on_publication(publication, clients, SAMPLES / INPUT_PER_S)
    return press.result(SAMPLES / INPUT_PER_S)


def brokers(action: OffloadAction, made: Scene) -> tuple[BrokerInfo, BrokerInfo]:
    """All load at one of two equal brokers: 0.8 of the metric of interest, little of the others."""
    n = len(made.held)
    used = sum(
        profile.size_bytes * len(profile.group.clients) for profile in made.sampled.groups
    ) * (INPUT_PER_S / SAMPLES)
    delay_s = (0.8 if action is OffloadAction.INPUT else 0.08) / INPUT_PER_S
    if action is OffloadAction.MATCH:
        delay_s = 0.08  # 0.8 of Nf
    line = MatchingDelay(0.9 * delay_s / n, 0.1 * delay_s)
    ir = INPUT_PER_S / 20 if action is OffloadAction.MATCH else INPUT_PER_S
    total = used / (0.8 if action is OffloadAction.OUTPUT else 0.08)
    local = BrokerInfo(
        broker="B1", input_per_s=ir, subscriptions=n, matching=line, output_used_bytes_s=used,
        output_total_bytes_s=total,
    )  # fmt: skip
    remote = BrokerInfo(
        broker="B2", input_per_s=0.0, subscriptions=0, matching=line, output_used_bytes_s=0.0,
        output_total_bytes_s=total,
    )  # fmt: skip
    return local, remote


def decide(action: OffloadAction, made: Scene) -> OffloadPlan:
    local, remote = brokers(action, made)
    return plan_offload(
        action, local, remote, (), made.sampled, SETTINGS, overloaded=False, random=Random(1)
    )


# -- the thesis's loops --------------------------------------------------------------------------


def decide_plainly(action: OffloadAction, made: Scene) -> OffloadPlan:
    local, remote = brokers(action, made)
    offloading = Offloading(action, local, remote, (), made.sampled, SETTINGS, overloaded=False)
    match action:
        case OffloadAction.INPUT:
            _plain_input(offloading)
        case OffloadAction.MATCH:
            _plain_match(offloading)
        case OffloadAction.OUTPUT:
            _plain_output(offloading)
    return offloading.plan()


def _reports(offloading: Offloading, groups: Iterable[int]) -> list[ReportCard]:
    return [report for group in groups if (report := offloading.report(group)) is not None]


def _plain_input(offloading: Offloading) -> None:
    groups = {
        profile.group.filters[0]: number for number, profile in enumerate(offloading.sampled.groups)
    }
    css = CoveringSubscriptions(groups)
    while not offloading.is_done:
        reports = _reports(offloading, [groups[filter] for filter in css.css])
        best = pick_best_report(reports, offloading.difference, offloading.threshold)
        if best is None:
            return
        offloading.apply(best)
        if offloading.traffic.has_left(best.group):
            css.remove(offloading.sampled.groups[best.group].group.filters[0])


def _plain_match(offloading: Offloading) -> None:
    traffic = offloading.traffic
    while not offloading.is_done:
        reports = _reports(offloading, range(len(traffic.clients)))
        reports.sort(
            key=lambda report: (
                offloading.bytes_s[report.group], traffic.added_bits(report.group),
                not report.is_covered, -report.saved_bits, traffic.clients[report.group],
                report.group,
            )
        )  # fmt: skip
        best = next((report for report in reports if offloading.improves(report)), None)
        if best is None:
            return
        offloading.apply(best)


def _plain_output(offloading: Offloading) -> None:
    """Phase I, then phase II; inputs are light, so that the rule against oscillation is idle."""
    ignored: set[int] = set()
    every = range(len(offloading.traffic.clients))
    while not offloading.is_done:
        reports = _reports(offloading, [group for group in every if group not in ignored])
        lists: list[list[ReportCard]] = [[], [], [], []]
        for report in reports:
            is_all = report.k == offloading.traffic.clients[report.group]
            kind = 2 if not report.saved_bits else 0 if is_all else 1
            lists[kind if report.is_covered else 3].append(report)
        found = [
            pick_best_report(each, offloading.difference, offloading.threshold) for each in lists
        ]
        best = next((report for report in found if report is not None), None)
        if best is None:
            return
        ignored.add(best.group)
        offloading.apply(best)


# -- rows ----------------------------------------------------------------------------------------


def rows(*, quick: bool) -> Iterator[list[Row]]:
    sizes = SIZES[:2] if quick else SIZES
    for spanning in (True, False):
        name = "LS3" if spanning else "LS3, symbols only"
        scenes = {size: scene(size, spanning=spanning) for size in sizes}
        for action in OffloadAction:
            taken = {
                size: _shortest_s(partial(decide, action, made)) for size, made in scenes.items()
            }
            yield [
                _decision(name, action, size, scenes[size], taken_s, quick=quick)
                for size, taken_s in taken.items()
            ]
            if not quick:
                yield [_growth(name, action, taken)]
        yield from _other_parts(name, scenes)


def _decision(
    name: str, action: OffloadAction, size: int, made: Scene, taken_s: float, *, quick: bool
) -> Row:
    reference_s = None
    if size <= (SIZES[0] if quick else PLAIN_MAX[action]):
        chosen = decide(action, made).clients
        start = process_time()
        plain = decide_plainly(action, made)
        reference_s = process_time() - start
        assert plain.clients == chosen, f"{name} {action.value} {size}: another plan"
    moved = len(decide(action, made).clients)
    return Row(
        measure=f"{action.value}: plan of {moved:,} clients, s", workload=name, size=size,
        reference=reference_s, measured=taken_s, compared=taken_s, bar=BARS_S.get(size),
        is_at_most=True,
    )  # fmt: skip


def _growth(name: str, action: OffloadAction, taken_s: dict[int, float]) -> Row:
    """From a tenth of the largest size to the largest, against n log n."""
    large = max(taken_s)
    small = large // 10
    expected = large * log(large) / (small * log(small))
    grown = taken_s[large] / taken_s[small]
    return Row(
        measure=f"{action.value}: times as long as {small:,}", workload=name, size=large,
        reference=expected, measured=grown, compared=grown / expected, bar=GROWTH_BAR,
        is_at_most=True,
    )  # fmt: skip


def _other_parts(name: str, scenes: dict[int, Scene]) -> Iterator[list[Row]]:
    for size, made in scenes.items():
        poset_s = _once_s(partial(_poset, made.filters)) if size <= POSET_MAX else None
        css_s = _shortest_s(partial(CoveringSubscriptions, made.filters))
        press_s = _shortest_s(partial(_sampled, made.held, made.deliveries))
        yield [
            _row(name, "covering subscription set, s", size, poset_s, css_s),
            _row(name, "PRESS, 50 samples, s", size, None, press_s),
        ]


def _poset(filters: Iterable[Filter]) -> Poset[int]:
    poset: Poset[int] = Poset()
    for number, filter in enumerate(filters):
        poset.insert(number, filter)
    return poset


def _row(name: str, measure: str, size: int, reference: float | None, measured: float) -> Row:
    return Row(measure, name, size, reference, measured, compared=measured)


def _once_s(act: Callable[[], object]) -> float:
    start = process_time()
    act()
    return process_time() - start


def _shortest_s(act: Callable[[], object]) -> float:
    # The subscriptions cannot become garbage; to visit all of them would be timed as deciding.
    gc.collect()
    gc.freeze()
    found = min(_once_s(act) for _ in range(REPEATS))
    gc.unfreeze()
    return found
