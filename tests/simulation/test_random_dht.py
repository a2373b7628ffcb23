"""Random runs over a distributed hash table: the clients and actions of random trees."""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.broker.routing import Answer
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.messages import Publication, Subscription, SubscriptionId
from godwit.errors import UsageError
from godwit.overlay import overlay
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.overlay.dht.dht_routing import DhtRouting
from godwit.simulation.oracle import Oracle
from godwit.testing import (
    Deliveries,
    expected_deliveries,
    play_simulated,
    random_membership,
    random_moves,
    random_run,
    random_script,
)

SEEDS = seeds(8, whole=1_000)
SCRIPTS = seeds(8, whole=1_000)


def test_random_tables_deliver_exactly_what_was_asked_for() -> None:
    deliveries = 0
    for seed in range(SEEDS):
        run = random_run(seed, DhtRouting)
        assert run.is_flawless, f"replay with: godwit replay {seed} --overlay dht\n{run}"
        deliveries += run.statistics.deliveries
    assert deliveries > 0, "a run without deliveries proves nothing"


def test_trees_clusters_and_hash_tables_deliver_the_same_in_the_same_order() -> None:
    for seed in range(SCRIPTS):
        script, oracle = random_script(seed), Oracle(settle_s=6_000.0)
        in_tree, in_clusters, in_table = Deliveries(), Deliveries(), Deliveries()
        play_simulated(script, in_tree)
        play_simulated(script, in_clusters, overlay=ClusterRouting)
        play_simulated(script, in_table, oracle, overlay=DhtRouting)
        oracle.finish(0.0)

        expected = expected_deliveries(script)
        assert in_table.by_pair == in_clusters.by_pair == in_tree.by_pair == expected, seed
        assert oracle.is_satisfied, f"{seed}: {oracle.violations}"


# -- broken routers ----------------------------------------------------------------------------


class NeverWaits(DhtRouting):
    """Lets a publication overtake an earlier one of its publisher on a shorter way."""

    def has_to_wait(self, publication: Publication, last_hop: Hop, now_s: float) -> bool:
        return False


class ForgetsAnOwner(DhtRouting):
    """Does not send a subscription to the last owner of its zones."""

    def _owners(self, subscription: Subscription) -> list[Neighbour]:
        return super()._owners(subscription)[:-1]


class DeliversToThePublisher(DhtRouting):
    """Delivers what comes back from its owner to the client that published it."""

    def _where(
        self, publication: Publication, last_hop: Hop, hops: int, owner: str
    ) -> dict[Hop, None]:
        found = super()._where(publication, last_hop, hops, owner)
        own = LocalClient(publication.publisher)
        is_copy = type(last_hop) is Neighbour and last_hop.lane == self._lane
        wants = own in self._local.hops_wanting(publication)
        return found | {own: None} if is_copy and wants else found


class NeverWithdraws(DhtRouting):
    """Leaves a subscription with its owners when its client withdraws it."""

    def _on_unsubscription(self, id: SubscriptionId, last_hop: Hop) -> list[Answer]:
        answers = super()._on_unsubscription(id, last_hop)
        return [] if isinstance(last_hop, LocalClient) else answers


@pytest.mark.parametrize(
    "broken",
    [NeverWaits, ForgetsAnOwner, NeverWithdraws],
)
def test_random_tables_notice_a_broken_router(broken: type[DhtRouting]) -> None:
    """The runs above prove nothing unless they can fail."""
    for seed in range(30):
        try:
            run = random_run(seed, broken)
        except AssertionError:
            return  # An invariant was quicker than the oracle.
        if not run.is_flawless:
            return
    pytest.fail(f"30 random runs did not notice that a router {broken.__doc__}")


def test_scripts_notice_what_a_publisher_gets_of_its_own() -> None:
    for seed in range(30):
        script, seen = random_script(seed), Deliveries()
        play_simulated(script, seen, overlay=DeliversToThePublisher)
        if seen.by_pair != expected_deliveries(script):
            return
    pytest.fail(f"30 scripts did not notice that a router {DeliversToThePublisher.__doc__}")


def test_what_a_baseline_cannot_do_is_said() -> None:
    with pytest.raises(UsageError, match="clients that move: not in the overlay `dht`"):
        random_moves(1, DhtRouting)
    with pytest.raises(UsageError, match="brokers that join and leave: not in the overlay `dht`"):
        random_membership(1, DhtRouting)
    with pytest.raises(UsageError, match="'dht' is for simulations"):
        overlay("dht")
