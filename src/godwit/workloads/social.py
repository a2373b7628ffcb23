"""Interest along a social graph, in place of Publiy's dataset DT-FB (paper M, section 7).

The paper took its interests from traces of interactions on Facebook by a method from a report; we
have neither.  So the graph is generated: preferential attachment with triad closing (Holme and Kim
2002), which has the known properties of such traces: a few users with very many friends, and
friends of friends who are friends.

A user publishes posts under `class = 'POST' and author = 'u17'` at its broker, and subscribes
there to each of its friends.  Users are at random brokers.  A user's rate is proportional to its
number of friends, with 3,600 posts a minute altogether (PS6).  `locality` is the chance that a
newcomer sits at the broker of its first friend; the paper does not say where users are, and 0
favours no overlay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from random import Random
from statistics import mean
from typing import TypeAlias

from godwit.content.filters import Filter
from godwit.content.predicates import Operator, Predicate
from godwit.content.values import Value
from godwit.errors import UsageError
from godwit.workloads.clients import Publisher, Subscriber
from godwit.workloads.workload import Workload
from godwit.workloads.workload_figures import Spread, matching_brokers, spread

#: For each user, its friends in the order in which they were made.  Friendship is mutual.
Graph: TypeAlias = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialSetup:
    users: int = 1000
    friends_of_newcomer: int = 4
    closing: float = 0.7
    """The chance that a newcomer's next friend is a friend of its last one."""

    locality: float = 0.0
    publications_per_min: float = 3600.0


DT_FB = SocialSetup()


def social_graph(setup: SocialSetup, random: Random) -> Graph:
    """Users join one after the other and make friends among the existing ones."""
    first = setup.friends_of_newcomer
    if not 1 <= first < setup.users:
        raise UsageError(f"{first} friends for each of {setup.users} users are impossible")
    friends: dict[int, list[int]] = {user: [] for user in range(setup.users)}
    # Each user as often as it has friends: a uniform draw is a draw by the number of friends.
    ends: list[int] = []

    def befriend(a: int, b: int) -> None:
        friends[a].append(b)
        friends[b].append(a)
        ends.extend((a, b))

    for a, b in combinations(range(first + 1), 2):
        befriend(a, b)
    for newcomer in range(first + 1, setup.users):
        last = random.choice(ends)
        befriend(newcomer, last)
        while len(friends[newcomer]) < first:
            near = [user for user in friends[last] if user not in friends[newcomer]]
            near = [user for user in near if user != newcomer]
            if not near or random.random() >= setup.closing:
                near = ends
            friend = random.choice(near)
            if friend != newcomer and friend not in friends[newcomer]:
                befriend(newcomer, friend)
                last = friend
    return friends


def social_workload(setup: SocialSetup, brokers: Sequence[str], random: Random) -> Workload:
    graph = social_graph(setup, random)
    at: dict[int, str] = {}
    for user, friends in graph.items():
        near = friends[0] in at and random.random() < setup.locality
        at[user] = at[friends[0]] if near else random.choice(brokers)
    links = sum(map(len, graph.values()))
    publishers = tuple(
        Publisher(
            name=f"author-u{user}",
            at=at[user],
            advertisement=_by(user, Predicate("length", Operator.PRESENT)),
            subject=f"u{user}",
            publications_per_min=setup.publications_per_min * len(friends) / links,
            phase=random.random(),
        )
        for user, friends in graph.items()
    )
    subscribers = tuple(
        Subscriber(name=f"reader-u{user}-of-u{friend}", at=at[user], filter=_by(friend))
        for user, friends in graph.items()
        for friend in friends
    )

    def content(publisher: Publisher) -> dict[str, Value]:
        return {"class": "POST", "author": publisher.subject, "length": random.randint(1, 500)}

    return Workload(publishers=publishers, subscribers=subscribers, content=content)


def _by(user: int, *more: Predicate) -> Filter:
    about = Predicate("class", Operator.EQUAL, "POST")
    return Filter([about, Predicate("author", Operator.EQUAL, f"u{user}"), *more])


@dataclass(frozen=True, slots=True, kw_only=True)
class SocialMeasures:
    friends: Spread
    clustering: float
    """Share of the pairs of a user's friends that are friends, mean over users."""


def measured_graph(graph: Graph) -> SocialMeasures:
    return SocialMeasures(
        friends=spread(map(len, graph.values())),
        clustering=mean(_clustering(graph, user) for user in graph),
    )


def measured(workload: Workload, *, publications: int) -> Spread:
    """How many brokers have a reader for a post."""
    return matching_brokers(workload.subscribers, workload.sample(publications))


def _clustering(graph: Graph, user: int) -> float:
    friends = graph[user]
    pairs = len(friends) * (len(friends) - 1) // 2
    known = {friend: set(graph[friend]) for friend in friends}
    closed = sum(b in known[a] for a, b in combinations(friends, 2))
    return closed / pairs if pairs else 0.0
