"""Random runs in clusters: the same clients and actions as in random trees, the same promise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import Send
from godwit.broker.routing import Answer, Confirm
from godwit.broker.stimuli import Hop, LocalClient, Neighbour, Received
from godwit.content.filters import Filter
from godwit.content.messages import (
    Message,
    Paused,
    Publication,
    Subscription,
    SubscriptionId,
    Sweep,
    Swept,
    Unsubscription,
)
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_routing import Answers, ClusterRouting
from godwit.overlay.clusters.cluster_structure import arrange, cluster_settings
from godwit.overlay.clusters.cluster_traffic import ClusterLoad
from godwit.simulation.observers import Observer
from godwit.simulation.oracle import Oracle
from godwit.simulation.simulator import Simulator
from godwit.testing import (
    Deliveries,
    expected_deliveries,
    play_simulated,
    random_membership,
    random_moves,
    random_run,
    random_script,
)

SEEDS = seeds(25, whole=1_000)
SEEDS_PER_TEST = 25
MOVING_SEEDS = seeds(25, whole=500)
SCRIPTS = seeds(12, whole=1_000)


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_random_clusters_deliver_exactly_what_was_asked_for(first: int) -> None:
    deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_run(seed, ClusterRouting)
        assert run.is_flawless, f"replay with: godwit replay {seed} --overlay clusters\n{run}"
        deliveries += run.statistics.deliveries
    assert deliveries > 0, "a run without deliveries proves nothing"


def test_clients_that_move_in_clusters_lose_nothing() -> None:
    moves = 0
    for seed in range(MOVING_SEEDS):
        run = random_moves(seed, ClusterRouting)
        replay = f"replay with: godwit replay {seed} --overlay clusters --moves"
        assert run.is_flawless, f"{replay}\n{run}"
        moves += run.moves
    assert moves > MOVING_SEEDS


class Hops(Observer):
    def __init__(self) -> None:
        self.found: Counter[int] = Counter()

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        self.found[hops] += len(clients)


def test_trees_and_clusters_deliver_the_same_in_the_same_order() -> None:
    hops = Hops()
    for seed in range(SCRIPTS):
        script, in_tree, in_clusters = random_script(seed), Deliveries(), Deliveries()
        oracle = Oracle(settle_s=60.0)
        play_simulated(script, in_tree)
        play_simulated(script, in_clusters, oracle, hops, overlay=ClusterRouting)
        oracle.finish(0.0)

        assert in_clusters.by_pair == in_tree.by_pair == expected_deliveries(script), seed
        assert oracle.is_satisfied, f"{seed}: {oracle.violations}"
    assert set(hops.found) == {0, 1, 2}, "two links between brokers at most, and some need both"


class Traffic(Observer):
    """Counts what brokers receive from each other."""

    def __init__(self) -> None:
        self.publications = self.subscriptions = 0

    def on_handled(self, broker: str, received: Received, done_s: float) -> None:
        if isinstance(received.last_hop, Neighbour):
            self.publications += isinstance(received.message, Publication)
            self.subscriptions += isinstance(received.message, Subscription)


def measured(
    brokers: int, clusters: int, *, groups: int, publications: int
) -> tuple[int, Simulator]:
    """Messages between brokers: each publishes so often, and has one subscription.

    A publication interests the brokers of one group.
    """
    names = [f"B{number:02d}" for number in range(brokers)]
    traffic = Traffic()
    simulator = Simulator(
        arrange(names, clusters).topology,
        seed=1,
        overlay=ClusterRouting,
        settings=cluster_settings(names, clusters),
        observers=(traffic,),
        check=False,
    )
    for number, broker in enumerate(names):
        subscriber = simulator.client(f"s{number}", at=broker)
        subscriber.subscribe(Filter.parse(f"a = {number % groups}"))
    publishers = [simulator.client(f"p{number}", at=at) for number, at in enumerate(names)]
    advertised = [(each, each.advertise(Filter.parse("a is present"))) for each in publishers]
    simulator.run()
    for publisher, advertisement in advertised:
        for number in range(publications):
            publisher.publish(advertisement, {"a": number % groups})
    simulator.run()
    return traffic.publications + traffic.subscriptions, simulator


@pytest.mark.parametrize("clusters", [1, 2, 3, 4, 6, 12])
def test_the_traffic_is_that_of_the_equation(clusters: int) -> None:
    """Exact where every broker wants everything."""
    load = ClusterLoad(12, publications=12, subscriptions=12, matching_ratio=1)
    found, simulator = measured(12, clusters, groups=1, publications=1)
    assert found == load.traffic(clusters)
    entries = [node.broker.routing.subscription_count for node in simulator.brokers.values()]
    assert entries == [12 // clusters] * 12, "a broker has the subscriptions of its cluster only"


@pytest.mark.parametrize(("groups", "publications"), [(2, 1), (4, 2), (4, 8)])
def test_measured_traffic_is_least_beside_the_optimum(groups: int, publications: int) -> None:
    """C1: over all numbers of clusters, in m* give or take one."""
    brokers = 24
    load = ClusterLoad(brokers, brokers * publications, brokers, matching_ratio=1 / groups)
    found = {
        m: measured(brokers, m, groups=groups, publications=publications)[0]
        for m in range(1, brokers + 1)
    }
    least = min(found.values())
    beside = [m for m in found if abs(m - load.optimum) <= 1]
    assert min(found[m] for m in beside) == least, (load.optimum, found)


# -- broken routers ----------------------------------------------------------------------------


def is_sending(answer: Answer, kind: type[Message]) -> bool:
    return isinstance(answer, Send) and isinstance(answer.message, kind)


class UnsubscribesFirst(ClusterRouting):
    """Withdraws a subscription before those that it covered are with the mates."""

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> Answers:
        answers = super()._on_unsubscription(id, last_hop)
        return sorted(answers, key=lambda a: not is_sending(a, Unsubscription))


class ForgetsTheCovered(ClusterRouting):
    """Does not send what a subscription covered when that goes."""

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> Answers:
        answers = super()._on_unsubscription(id, last_hop)
        return [a for a in answers if not is_sending(a, Subscription)]


class ConfirmsAtOnce(ClusterRouting):
    """Says that a subscription is in effect before the mates have it."""

    def _on_subscription(self, subscription: Subscription, last_hop: Hop) -> Answers:
        answers = super()._on_subscription(subscription, last_hop)
        entry = None if isinstance(last_hop, Neighbour) else self._local.get(subscription.id)
        return answers if entry is None or entry.in_effect else [*answers, self._confirm(entry)]


class SkipsOneOfTheRing(ClusterRouting):
    """Does not publish to one broker of its ring."""

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        found = super().destinations(publication, last_hop, hops, now_s)
        return {hop: None for hop in found if hop != next(iter(self._ring), None)}


class PassesOnWithinTheCluster(ClusterRouting):
    """Matches what comes from a mate for the other mates once more."""

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        found = super().destinations(publication, last_hop, hops, now_s)
        wanting = found | self._cluster.brokers_wanting(publication)
        wanting.pop(last_hop, None)
        return wanting


@pytest.mark.parametrize(
    "broken",
    [
        UnsubscribesFirst,
        ForgetsTheCovered,
        ConfirmsAtOnce,
        SkipsOneOfTheRing,
        PassesOnWithinTheCluster,
    ],
)
def test_random_clusters_notice_a_broken_router(broken: type[ClusterRouting]) -> None:
    """The runs above prove nothing unless they can fail."""
    for seed in range(150):
        try:
            run = random_run(seed, broken)
        except AssertionError:
            return  # An invariant was quicker than the oracle.
        if not run.is_flawless:
            return
    pytest.fail(f"150 random runs did not notice that a router {broken.__doc__}")


class PausesAtOnce(ClusterRouting):
    """Lets a publisher go on elsewhere before all that it published has arrived."""

    def pause(self, client: LocalClient, move: int) -> Answers:
        return [Confirm(client, Paused(move=move))]


class SweptAtOnce(ClusterRouting):
    """Tells a subscriber that moves that all has arrived, without an answer of other brokers."""

    def _on_sweep(self, sweep: Sweep, last_hop: Hop) -> Answers:
        answers = super()._on_sweep(sweep, last_hop)
        if sweep.to == self._broker != sweep.by and not sweep.origin:
            answers.append(Confirm(LocalClient(sweep.client), Swept(move=sweep.move)))
        return answers


@pytest.mark.parametrize("broken", [PausesAtOnce, SweptAtOnce])
def test_clients_that_move_notice_a_broken_router(broken: type[ClusterRouting]) -> None:
    assert any(not random_moves(seed, broken).is_flawless for seed in range(150)), broken.__doc__


def test_what_clusters_cannot_do_yet_is_said() -> None:
    with pytest.raises(UsageError, match="brokers that join and leave: not in the overlay"):
        random_membership(1, ClusterRouting)
