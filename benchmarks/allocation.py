"""Plans of broker allocation: their duration, and the closeness evaluations of CRAM.

    python -m benchmarks allocation [--quick]

Profiles as of RS1: 40 publishers with 50 to 200 subscriptions each, 40% to everything, 60% with an
inequality on one of five attributes, 1,280 publications in a vector.  Values are rounded so that
8,000 subscriptions have about 3,200 distinct profiles, as in the thesis; the 100,000 are not
rounded, so most of them are distinct.  The brokers could carry 12 times the load.

The reference is the thesis's pseudocode without its optimisations: all pairs before each merge, and
BIN PACKING after it.  It is measured at a size that it can do; there both find the same number of
brokers.  For evaluations the reference is the number of all pairs of GIFs.  CPU time of one run.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from time import process_time

import numpy as np

from benchmarks.report import Row
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.policies.allocation.gathered_reading import AllocationProblem, read
from godwit.policies.allocation.planner import make_plan
from godwit.policies.allocation.settings import AllocationSettings

LENGTH, LAST = 1_280, 9_999
RATE_PER_S, SIZE_BYTES = 70 / 60, 500.0
WHOLE_SHARE, ATTRIBUTES, LEVELS = 0.4, 5, 14
#: Part of the brokers that the load needs by its bandwidth.
NEEDED_SHARE = 0.08
PLAN_BAR_S, LARGE_BAR_S, EVALUATIONS_BAR = 10.0, 600.0, 280_000
PLAIN = 240


def rows(*, quick: bool) -> Iterator[list[Row]]:
    yield _beside_the_pseudocode(PLAIN // 2 if quick else PLAIN)
    sizes = (2_000,) if quick else (2_000, 4_000, 6_000, 8_000)
    for size in sizes:
        yield _planned("RS1", size, publishers=40, brokers=80, levels=LEVELS)
    yield _searched(sizes[-1])
    for algorithm in ("fbf", "bin-packing", "cram-xor"):
        document = gathered(sizes[-1], publishers=40, brokers=80, levels=LEVELS)
        plan = make_plan(document, AllocationSettings(algorithm=algorithm), clock=process_time)
        yield [_row(f"RS1 {algorithm}", sizes[-1], "plan, s", plan.seconds)]
    large = 10_000 if quick else 100_000
    yield _planned("unlike", large, publishers=100, brokers=400, levels=None)


def _row(
    name: str, size: int, measure: str, measured: float, bar: float | None = None,
    reference: float | None = None,
) -> Row:  # fmt: skip
    return Row(
        measure=measure, workload=name, size=size, reference=reference, measured=measured,
        compared=measured, bar=bar, is_at_most=True,
    )  # fmt: skip


def _gifs(document: Gathered) -> int:
    return len({subscriber.profile.key for subscriber in read(document).subscribers})


def _planned(
    name: str, size: int, *, publishers: int, brokers: int, levels: int | None
) -> list[Row]:
    document = gathered(size, publishers=publishers, brokers=brokers, levels=levels)
    plan = make_plan(document, clock=process_time)
    gifs = _gifs(document)
    pairs = gifs * (gifs - 1) / 2
    bar = PLAN_BAR_S if size <= 8_000 else LARGE_BAR_S
    limit = EVALUATIONS_BAR if size == 8_000 else None
    found, bound = len(plan.brokers), plan.lower_bound_brokers
    return [
        _row(name, size, "CRAM-IOU, plan, s", plan.seconds, bar),
        _row(name, size, f"evaluations, {gifs:,} GIFs", plan.closeness_evaluations, limit, pairs),
        _row(name, size, "brokers, above the lower bound", found, None, bound),
    ]


def _searched(size: int) -> list[Row]:
    """Evaluations by exact bounds, against the thesis's stop rule."""
    document = gathered(size, publishers=40, brokers=80, levels=LEVELS)
    exact = make_plan(document)
    rule = make_plan(document, AllocationSettings(search="stop-rule"))
    evaluations = exact.closeness_evaluations
    reference = float(rule.closeness_evaluations)
    return [_row("RS1", size, "evaluations, exact to stop rule", evaluations, None, reference)]


# -- the workload --------------------------------------------------------------------------------


def gathered(size: int, *, publishers: int, brokers: int, levels: int | None) -> Gathered:
    random = np.random.default_rng(size)
    senders, found = [], []
    for p in range(publishers):
        name = f"p{p:03}"
        senders.append(
            GatheredPublisher(
                id=name,
                rate_per_s=RATE_PER_S,
                bandwidth_bytes_s=RATE_PER_S * SIZE_BYTES,
                last_id=LAST,
            )
        )
        columns = _attributes(random, levels)
        for number in range(size // publishers):
            bits = np.ones(LENGTH, np.uint8)
            if random.random() >= WHOLE_SHARE:
                values = columns[random.integers(ATTRIBUTES)]
                limit = values[random.integers(LENGTH)]
                bits = (values <= limit if random.random() < 0.5 else values >= limit).view(
                    np.uint8
                )
            found.append(
                GatheredSubscription(
                    id=f"{name}-{number:05}",
                    first_id={name: LAST - LENGTH + 1},
                    bits={name: (bits + ord("0")).astype(np.uint8).tobytes().decode()},
                )
            )
    capacity = size * RATE_PER_S * SIZE_BYTES * 0.7 / (brokers * NEEDED_SHARE)
    return Gathered(
        publishers=tuple(senders),
        brokers=tuple(
            GatheredBroker(
                id=f"B{b:04}",
                output_bandwidth_bytes_s=capacity,
                matching_delay_base_s=1e-4,
                matching_delay_per_subscription_s=1e-6,
            )
            for b in range(brokers)
        ),
        subscriptions=tuple(found),
    )


def _attributes(
    random: np.random.Generator, levels: int | None
) -> list[np.ndarray[tuple[int], np.dtype[np.float64]]]:
    """A price that walks, with three others near it, and a volume."""
    price = np.cumsum(random.normal(0, 1, LENGTH))
    columns = [price + random.normal(0, noise, LENGTH) for noise in (0, 0.5, 1, 1)]
    columns.append(random.lognormal(0, 1, LENGTH))
    if levels is None:
        return columns
    ranks = [np.argsort(np.argsort(column)) for column in columns]
    return [np.floor(rank * levels / LENGTH) for rank in ranks]


# -- the thesis's pseudocode ---------------------------------------------------------------------


def _beside_the_pseudocode(size: int) -> list[Row]:
    document = gathered(size, publishers=8, brokers=16, levels=LEVELS)
    started = process_time()
    plain = _Plain(read(document))
    used = plain.run()
    plain_s = process_time() - started
    settings = AllocationSettings(keep="last", overlay=False)
    plan = make_plan(document, settings, clock=process_time)
    assert len(plan.brokers) == used, "the pseudocode needs another number of brokers"
    return [
        _row("pseudocode", size, "CRAM-IOU, s", plan.seconds, None, plain_s),
        _row(
            "pseudocode", size, "evaluations", plan.closeness_evaluations, None, plain.evaluations
        ),
    ]


class _Plain:
    """CRAM-IOU before its optimisations; profiles are integers, one after the other."""

    def __init__(self, problem: AllocationProblem) -> None:
        self.table = problem.table
        self.brokers = problem.brokers
        self.evaluations = 0
        self.units: list[tuple[int, float, int]] = []
        """Bits, bandwidth and number of subscriptions of each."""

        for subscriber in problem.subscribers:
            bits = 0
            for p, words in subscriber.profile.blocks.items():
                bits |= int.from_bytes(words.tobytes(), "little") << p * LENGTH
            self.units.append((bits, self.table.bandwidth_bytes_s(subscriber.profile), 1))

    def run(self) -> int:
        refused: set[tuple[int, int]] = set()
        best = self.pack(self.units)
        while True:
            closest = self.closest(refused)
            if closest is None:
                return best
            a, b = closest
            one, two = self.units[a], self.units[b]
            merged = (one[0] | two[0], one[1] + two[1], one[2] + two[2])
            rest = [unit for i, unit in enumerate(self.units) if i not in (a, b)]
            used = self.pack([*rest, merged])
            if used:
                best, self.units, refused = used, [*rest, merged], set()
            else:
                refused.add((a, b))

    def closest(self, refused: set[tuple[int, int]]) -> tuple[int, int] | None:
        found, highest = None, 0.0
        for a, b in combinations(range(len(self.units)), 2):
            self.evaluations += 1
            one, two = self.units[a][0], self.units[b][0]
            both = (one & two).bit_count()
            closeness = both * both / (one | two).bit_count()
            if closeness > highest and (a, b) not in refused:
                found, highest = (a, b), closeness
        return found

    def pack(self, units: Sequence[tuple[int, float, int]]) -> int:
        """BIN PACKING: the number of brokers, 0 if there is no room."""
        fills = [(0, 0.0, 0)] * len(self.brokers)
        per_bit = self.table.rates_per_s[0] / LENGTH
        for bits, sent, n in sorted(units, key=lambda unit: -unit[1]):
            for place, broker in enumerate(self.brokers):
                there = fills[place]
                joint = (there[0] | bits, there[1] + sent, there[2] + n)
                rate = joint[0].bit_count() * per_bit
                if broker.can_send(joint[1]) and broker.can_match(rate, joint[2]):
                    fills[place] = joint
                    break
            else:
                return 0
        return sum(n > 0 for _, _, n in fills)
