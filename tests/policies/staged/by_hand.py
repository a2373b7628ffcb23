"""The paper's algorithms in plain Python, and random brokers to run them on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from random import Random

import numpy as np

from godwit.policies.staged.loads import Ints, Subscribers

Holdings = Sequence[Sequence[int]]
#: Whether a move is allowed, by F_b and F_b' before it and F_b' after it (line 17 of algorithm 1).
Rule = Callable[[float, float, float], bool]


def strict(source: float, _target: float, after: float) -> bool:
    """E25."""
    return after < source


def not_above(source: float, _target: float, after: float) -> bool:
    return after <= source


def printed(source: float, target: float, _after: float) -> bool:
    return target <= source


def random_case(seed: int, *, n: int = 40, m: int = 5, q: int = 20) -> tuple[Subscribers, Ints]:
    """Whole rates, so that equal loads are equal in floating point, too."""
    random = Random(seed)
    holdings = [random.sample(range(q), random.randint(0, min(q, 4))) for _ in range(n)]
    rates = [float(random.randint(0, 9)) for _ in range(q)]
    home = np.array([min(random.randrange(m), random.randrange(m)) for _ in range(n)], np.int32)
    return Subscribers.of(holdings, rates), home


def holdings_of(subscribers: Subscribers) -> list[list[int]]:
    return [subscribers.holdings(i).tolist() for i in range(subscribers.n)]


def load(holdings: Holdings, rates: Sequence[float], who: Sequence[int]) -> float:
    """F of a broker with these subscribers: the formula as it stands."""
    counts = [sum(k in holdings[i] for i in who) for k in range(len(rates))]
    return sum((1 + n) * rate for n, rate in zip(counts, rates, strict=True) if n > 0)


def loads_by_hand(subscribers: Subscribers, home: Sequence[int], m: int) -> list[float]:
    holdings, rates = holdings_of(subscribers), subscribers.rates.tolist()
    at = [[i for i, j in enumerate(home) if j == broker] for broker in range(m)]
    return [load(holdings, rates, who) for who in at]


def best_of_all(subscribers: Subscribers, m: int) -> float:
    """The lowest maximum load of any assignment."""
    homes = product(range(m), repeat=subscribers.n - 1)  # The first may be anywhere: at 0.
    return min(max(loads_by_hand(subscribers, (0, *home), m)) for home in homes)


def migrate_by_hand(
    subscribers: Subscribers, home: Sequence[int], m: int, alpha: float, *,
    sdm: bool = False, rule: Rule = strict, turns_max: int = 2000,
) -> tuple[list[tuple[int, int, int]], bool]:  # fmt: skip
    """Algorithm 1, lines 6 to 25: the moves, and whether it came to an end."""
    holdings, rates = holdings_of(subscribers), subscribers.rates.tolist()
    home = list(home)
    moves: list[tuple[int, int, int]] = []
    weight = [sum(rates[k] for k in held) for held in holdings]
    for _ in range(turns_max):
        f = loads_by_hand(subscribers, home, m)
        mean = sum(f) / m
        if (sum((x - mean) ** 2 for x in f) / m) ** 0.5 <= alpha * mean:
            return moves, True
        b = max(range(m), key=lambda j: (f[j], -j))
        found = False
        for i in sorted((i for i in range(len(home)) if home[i] == b), key=lambda i: -weight[i]):
            if weight[i] == 0:
                continue
            d = _target(holdings, rates, home, f, i, sdm=sdm)
            after = load(holdings, rates, [*(x for x in range(len(home)) if home[x] == d), i])
            if d != b and rule(f[b], f[d], after):
                moves.append((i, b, d))
                home[i] = d
                found = True
                break
        if not found:
            return moves, True
    return moves, False


def _target(
    holdings: Holdings, rates: Sequence[float], home: Sequence[int], f: Sequence[float], i: int, *,
    sdm: bool,
) -> int:  # fmt: skip
    if not sdm:
        return min(range(len(f)), key=lambda j: (f[j], j))
    mean = sum(f) / len(f)

    def similarity(j: int) -> float:
        there = {k for x, at in enumerate(home) if at == j for k in holdings[x]}
        return sum(rates[k] for k in holdings[i] if k in there)

    below = [j for j in range(len(f)) if f[j] < mean]
    return max(below, key=lambda j: (similarity(j), -f[j], -j))


def shuffle_by_hand(subscribers: Subscribers, m: int) -> list[int]:
    holdings, rates = holdings_of(subscribers), subscribers.rates.tolist()
    weight = [sum(rates[k] for k in held) for held in holdings]
    at: list[list[int]] = [[] for _ in range(m)]
    home = [0] * subscribers.n
    for i in sorted(range(subscribers.n), key=lambda i: -weight[i]):
        j = min(range(m), key=lambda j: load(holdings, rates, at[j]))
        at[j].append(i)
        home[i] = j
    return home
