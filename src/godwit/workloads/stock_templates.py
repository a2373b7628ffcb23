"""The subscriptions of the thesis over stock quotes: LS3's six templates, GS2's ratings, RS4.

Each function takes the symbol and `seen`, the publications from which the thesis draws
thresholds ("a randomly chosen value of the same attribute from the stock's publication set").

Where the thesis is silent or does not fit the data, we chose:

ratings        It fixes thresholds (highLow%Diff > 0.15; volume > 1,000,000 and openClose%Diff >
               0.025) and says that they sink "about" 10% and 50%.  On its own quotes they sink
               8.7% and 10.2% on average, and 0 to 38% and 0 to 52% by symbol.  We keep the
               templates and find thresholds in the symbol's own quotes that give the shares.
RS4            "an additional inequality attribute, such as low < v": one of LS3's three.
zero traffic   LS2 wants 25% or 50% of the subscribers to sink nothing and does not say how.
               They get one of LS3's three templates with a threshold that no quote passes: they
               intersect an advertisement and cost memory and matching like any other.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from random import Random

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Record
from godwit.workloads.stock_quotes import number

#: LS3: cumulative share, whether it names the symbol, the bounded attribute.
TEMPLATES: tuple[tuple[float, bool, str | None], ...] = (
    (0.20, True, "high"),
    (0.40, True, "low"),
    (0.60, True, "volume"),
    (0.94, True, None),
    (0.99, False, "volume"),
    (1.00, False, None),
)
#: The direction in which the templates bound an attribute.
BOUNDED = {"high": Operator.ABOVE, "low": Operator.BELOW, "volume": Operator.ABOVE}
#: RS4: the share that wants the whole symbol.
WHOLE_SYMBOL_SHARE = 0.40
#: No quote has a price or a volume above this, nor a price below zero.
UNSEEN = 10**12


class Rating(Enum):
    """How much of its symbol's traffic a placement subscription sinks (thesis 7.2.1)."""

    LOW = 0.10
    MEDIUM = 0.50
    HIGH = 1.00


def stock_filter(symbol: str | None, *more: Predicate) -> Filter:
    named = () if symbol is None else (Predicate("symbol", Operator.EQUAL, symbol),)
    return Filter([Predicate("class", Operator.EQUAL, "STOCK"), *named, *more])


def template_filter(symbol: str, seen: Sequence[Record], random: Random) -> Filter:
    """One subscription of the six templates, drawn with their shares (LS3)."""
    draw = random.random()
    number = next(n for n, (up_to, _, _) in enumerate(TEMPLATES) if draw < up_to)
    return filter_of_template(number, symbol, seen, random)


def filter_of_template(number: int, symbol: str, seen: Sequence[Record], random: Random) -> Filter:
    """One subscription of one of the six templates; they are counted from 0."""
    _, named, attribute = TEMPLATES[number]
    bounds = () if attribute is None else (_seen_bound(attribute, seen, random),)
    return stock_filter(symbol if named else None, *bounds)


def allocation_filter(symbol: str, seen: Sequence[Record], random: Random) -> Filter:
    """One subscription of the resource-allocation workload (RS4)."""
    if random.random() < WHOLE_SYMBOL_SHARE:
        return stock_filter(symbol)
    return stock_filter(symbol, _seen_bound(random.choice(tuple(BOUNDED)), seen, random))


def zero_traffic_filter(symbol: str, random: Random) -> Filter:
    """A subscription that intersects the symbol's advertisement and matches no quote (LS2)."""
    attribute = random.choice(tuple(BOUNDED))
    beyond = round(random.uniform(1, 2) * UNSEEN)
    bound = -beyond if BOUNDED[attribute] is Operator.BELOW else beyond
    return stock_filter(symbol, Predicate(attribute, BOUNDED[attribute], bound))


def rated_filter(symbol: str, seen: Sequence[Record], rating: Rating) -> Filter:
    """A placement subscription that sinks about `rating` of what was seen (GS2, GS3)."""
    match rating:
        case Rating.LOW:
            change = [number(record, "highLow%Diff") for record in seen]
            bound = nearest_bound(change, rating.value)
            return stock_filter(symbol, Predicate("highLow%Diff", Operator.ABOVE, bound))
        case Rating.MEDIUM:
            volumes = [number(record, "volume") for record in seen]
            changes = [number(record, "openClose%Diff") for record in seen]
            volume, change_bound = nearest_bounds(volumes, changes, rating.value)
            return stock_filter(
                symbol,
                Predicate("volume", Operator.ABOVE, int(volume)),
                Predicate("openClose%Diff", Operator.ABOVE, change_bound),
            )
        case Rating.HIGH:
            return stock_filter(symbol)


def nearest_bound(values: Sequence[float], share: float) -> float:
    """The v for which the share of values above v is nearest to `share`."""
    levels = _levels(values)
    return levels[_nearest(len(levels), share, lambda i: _share_above(values, levels[i]))]


def nearest_bounds(
    first: Sequence[float], second: Sequence[float], share: float
) -> tuple[float, float]:
    """Bounds for two attributes of the same records, for which about `share` pass both.

    Both bounds stand at the same level of their own attribute.  A stock that mostly closes where
    it opened has no such level; then the second bound lets everything pass.
    """
    one, two = _levels(first), _levels(second)
    days = list(zip(first, second, strict=True))

    def both(level: int) -> float:
        low, bound = one[level], two[level]
        return sum(a > low and b > bound for a, b in days) / len(days)

    def first_alone(level: int) -> float:
        return _share_above(first, one[level])

    level, alone = _nearest(len(one), share, both), _nearest(len(one), share, first_alone)
    # The thesis bounds both attributes: that is preferred up to two points of the share.
    if abs(both(level) - share) <= abs(first_alone(alone) - share) + 0.02:
        return one[level], two[level]
    return one[alone], two[0]


def _levels(values: Sequence[float]) -> list[float]:
    """Bounds from the one that everything passes to the one that nothing passes."""
    return [-1.0, *sorted(values)]


def _share_above(values: Sequence[float], bound: float) -> float:
    return sum(value > bound for value in values) / len(values)


def _nearest(levels: int, share: float, share_at: Callable[[int], float]) -> int:
    """The level whose share is nearest to `share`; shares only fall as levels rise."""
    low, high = 0, levels - 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if share_at(middle) >= share else (low, middle)
    return min((low, high), key=lambda level: abs(share_at(level) - share))


def _seen_bound(attribute: str, seen: Sequence[Record], random: Random) -> Predicate:
    return Predicate(attribute, BOUNDED[attribute], random.choice(seen)[attribute])
