"""A random script for each seed."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from random import Random

from godwit.content.filters import Filter
from godwit.overlay.topology import random_tree
from godwit.testing.random_content import RandomContent
from godwit.testing.scripts import (
    AdvertiseStep,
    Phase,
    PublishStep,
    Script,
    Step,
    SubscribeStep,
    UnadvertiseStep,
    UnsubscribeStep,
)

ROUNDS = 4
CHANGES_MAX = 16
BURSTS_MAX = 24


def random_script(seed: int, *, brokers: int | None = None, is_quiet: bool = True) -> Script:
    """2 to 12 brokers unless told how many; see scripts.py for `is_quiet`."""
    random = Random(seed)
    topology = random_tree(brokers or random.randint(2, 12), random)
    names = [f"c{number}" for number in range(random.randint(3, 8))]
    author = _Author(names, random)
    phases = [author.opening()]
    for _ in range(ROUNDS):
        phases += [author.changes(), author.publications()]
    if not is_quiet:
        phases = [[step for phase in phases for step in phase]]
    return Script(seed, topology, {name: random.choice(topology.brokers) for name in names}, phases)


class _Author:
    """Writes phases; keeps what each client has advertised and subscribed to."""

    def __init__(self, names: Sequence[str], random: Random) -> None:
        self._names = names
        self._random = random
        self._content = RandomContent(random.choice((("class", "name", "size"), ("size",))), random)
        self._advertised: dict[str, dict[int, Filter]] = {name: {} for name in names}
        self._subscribed: dict[str, list[int]] = {name: [] for name in names}
        self._serial: defaultdict[tuple[str, type[Step]], int] = defaultdict(int)

    def opening(self) -> Phase:
        """Half of the clients advertise, or half of the script would pass without publications."""
        phase = []
        for name in self._names[::2]:
            filter = self._content.filter(every_attribute=True)
            if filter.is_satisfiable:
                phase.append((name, self._advertise(name, filter)))
        return phase

    def changes(self) -> Phase:
        phase = []
        for _ in range(self._random.randint(CHANGES_MAX // 2, CHANGES_MAX)):
            name = self._random.choice(self._names)
            step = self._change(name)
            if step is not None:
                phase.append((name, step))
        return phase

    def _change(self, name: str) -> Step | None:
        draw = self._random
        kind = draw.choices(
            (SubscribeStep, UnsubscribeStep, AdvertiseStep, UnadvertiseStep), (6, 3, 3, 1)
        )[0]
        subscribed, advertised = self._subscribed[name], self._advertised[name]
        if kind is UnsubscribeStep and subscribed:
            return UnsubscribeStep(subscribed.pop(draw.randrange(len(subscribed))))
        if kind is UnadvertiseStep and advertised:
            number = draw.choice(list(advertised))
            del advertised[number]
            return UnadvertiseStep(number)
        filter = self._content.filter(every_attribute=kind is AdvertiseStep)
        if not filter.is_satisfiable:
            return None
        if kind is AdvertiseStep:
            return self._advertise(name, filter)
        subscribed.append(self._next(name, SubscribeStep))
        return SubscribeStep(filter)

    def _advertise(self, name: str, filter: Filter) -> AdvertiseStep:
        self._advertised[name][self._next(name, AdvertiseStep)] = filter
        return AdvertiseStep(filter)

    def _next(self, name: str, kind: type[Step]) -> int:
        self._serial[name, kind] += 1
        return self._serial[name, kind] - 1

    def publications(self) -> Phase:
        phase = []
        for _ in range(self._random.randint(BURSTS_MAX // 2, BURSTS_MAX)):
            name = self._random.choice(self._names)
            if not self._advertised[name]:
                continue
            number, filter = self._random.choice(list(self._advertised[name].items()))
            for _ in range(self._random.randint(1, 8)):
                content = self._content.content(filter)
                if filter.permits_checked(content):
                    phase.append((name, PublishStep(content, number)))
        return phase
