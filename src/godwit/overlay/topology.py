"""Topologies: brokers and links as a value, and the shapes that the papers use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from random import Random

from godwit.errors import UsageError


@dataclass(frozen=True)
class Topology:
    """Brokers and the links between them.  A link is a pair in alphabetical order."""

    brokers: tuple[str, ...]
    links: frozenset[tuple[str, str]]

    def __post_init__(self) -> None:
        known = set(self.brokers)
        if len(known) != len(self.brokers):
            raise UsageError("two brokers have the same name")
        for a, b in self.links:
            if a not in known or b not in known or a >= b:
                raise UsageError(f"link {a}-{b}: both ends must be brokers, in alphabetical order")

    @cached_property
    def _neighbours(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {broker: [] for broker in self.brokers}
        for a, b in sorted(self.links):
            found[a].append(b)
            found[b].append(a)
        return found

    def neighbours(self, broker: str) -> tuple[str, ...]:
        return tuple(self._neighbours[broker])

    @property
    def is_tree(self) -> bool:
        if not self.brokers or len(self.links) != len(self.brokers) - 1:
            return False
        return len(self.distances(self.brokers[0])) == len(self.brokers)

    def distances(self, source: str) -> dict[str, int]:
        """Links between `source` and every broker it can reach."""
        found = {source: 0}
        frontier = [source]
        for broker in frontier:  # Grows while it is walked: breadth first.
            for neighbour in self._neighbours[broker]:
                if neighbour not in found:
                    found[neighbour] = found[broker] + 1
                    frontier.append(neighbour)
        return found

    def path(self, source: str, target: str) -> list[str]:
        """A shortest path, both ends included."""
        distance = self.distances(target)
        way = [source]
        while way[-1] != target:
            way.append(min(self._neighbours[way[-1]], key=distance.__getitem__))
        return way

    @property
    def diameter(self) -> int:
        return max(max(self.distances(broker).values()) for broker in self.brokers)


def topology(brokers: Iterable[str], links: Iterable[tuple[str, str]]) -> Topology:
    """A topology with its links put in order."""
    pairs = frozenset((a, b) if a < b else (b, a) for a, b in links)
    return Topology(tuple(brokers), pairs)


def balanced_tree(brokers: int, *, fanout: int) -> Topology:
    """`brokers` brokers, each with `fanout` below it; the last level may be partly filled."""
    if brokers < 1 or fanout < 1:
        raise UsageError("a tree has at least one broker and a fan-out of at least one")
    names = _names(brokers)
    return topology(names, ((names[(i - 1) // fanout], names[i]) for i in range(1, brokers)))


def chain(brokers: int) -> Topology:
    return balanced_tree(brokers, fanout=1)


def star(edges: int) -> Topology:
    """A head with `edges` brokers around it."""
    return balanced_tree(edges + 1, fanout=max(edges, 1))


def peer(*, clusters: int, edges: int, fanout: int = 1) -> Topology:
    """Clusters of a head with `edges` edge brokers each (thesis 4.1.1, PEER).

    The heads form a chain, or a tree with a `fanout`.  They are B10, B20 and so on, and the edge
    brokers of B20 are B21, B22 and so on; those of a single cluster are B0, and B1, B2 and so on.
    """
    if clusters < 1 or edges < 0:
        raise UsageError("there is at least one cluster, and no cluster with less than 0 edges")
    if clusters == 1 and edges < 2:
        raise UsageError("a cluster-head has two links or more: use 2 edges or more, or 2 clusters")
    cluster_digits, digits = len(str(clusters)), len(str(edges))
    prefixes = [f"B{number:0{cluster_digits}d}" for number in range(1, clusters + 1)]
    if clusters == 1:
        prefixes = ["B"]
    heads = [f"{prefix}{0:0{digits}d}" for prefix in prefixes]
    names: list[str] = []
    links = [(heads[(i - 1) // fanout], heads[i]) for i in range(1, clusters)]
    for prefix, head in zip(prefixes, heads, strict=True):
        own = [f"{prefix}{number:0{digits}d}" for number in range(1, edges + 1)]
        names += [head, *own]
        links += [(head, edge) for edge in own]
    return topology(names, links)


def random_tree(brokers: int, random: Random) -> Topology:
    """Each broker is linked with a random earlier one."""
    names = _names(brokers)
    return topology(names, ((names[random.randrange(i)], names[i]) for i in range(1, brokers)))


def _names(count: int) -> list[str]:
    digits = len(str(count))
    return [f"B{number:0{digits}d}" for number in range(1, count + 1)]


def cycle_of(brokers: Iterable[str], links: Iterable[tuple[str, str]]) -> list[str]:
    """The brokers of a cycle, from one of them back to it; none if the links are a forest.

    Links to others, which are not among these brokers, are left out.
    """
    root = {broker: broker for broker in brokers}
    linked: dict[str, list[str]] = {broker: [] for broker in root}

    def root_of(broker: str) -> str:
        while root[broker] != broker:
            broker = root[broker]
        return broker

    for broker, link in links:
        if link not in root:
            continue
        a, b = root_of(broker), root_of(link)
        if a == b:
            return [*_way(linked, broker, link), broker]
        root[a] = b
        linked[broker].append(link)
        linked[link].append(broker)
    return []


def _way(linked: Mapping[str, Sequence[str]], source: str, target: str) -> list[str]:
    """The brokers from one to the other, which are linked."""
    ways = [[source]]
    for way in ways:
        if way[-1] == target:
            return way
        ways += [[*way, each] for each in linked[way[-1]] if each not in way[-2:]]
    raise AssertionError("they are not linked")
