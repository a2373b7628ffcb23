"""Random overlays: every delivery is what brute force says it should be."""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import Send
from godwit.broker.routing import Answer
from godwit.broker.stimuli import Hop, Neighbour
from godwit.content.messages import Publication, Unsubscription
from godwit.overlay.tree.routing_tables import SubscriptionEntry
from godwit.overlay.tree.tree_routing import Answers, TreeRouting
from godwit.testing.random_runs import random_run

SEEDS = seeds(50, whole=1_000)
SEEDS_PER_TEST = 25


@pytest.mark.parametrize("first", range(0, SEEDS, SEEDS_PER_TEST))
def test_random_trees_deliver_exactly_what_was_asked_for(first: int) -> None:
    deliveries = 0
    for seed in range(first, first + SEEDS_PER_TEST):
        run = random_run(seed)
        assert run.is_flawless, f"replay with: godwit replay {seed}\n{run}"
        deliveries += run.statistics.deliveries
    assert deliveries > 0, "a run without deliveries proves nothing"


class UnsubscribesFirst(TreeRouting):
    """Takes a subscription back before its replacements are in place."""

    def _untell(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Answers:
        answers = super()._untell(neighbour, entry)
        return sorted(answers, key=lambda a: not is_unsubscription(a))


class ConfirmsAtOnce(TreeRouting):
    """Says that a subscription is in effect before anyone else knows of it."""

    def _confirm_if_complete(self, entry: SubscriptionEntry) -> Answers:
        entry.unconfirmed.clear()
        return super()._confirm_if_complete(entry)


class ForgetsEarlierInterest(TreeRouting):
    """Does not send earlier subscriptions towards a new advertisement."""

    def _tell(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Answers:
        return [] if entry.in_effect else super()._tell(neighbour, entry)


class SendsBack(TreeRouting):
    """Sends a publication where it came from."""

    def destinations(
        self, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        return self._interests.hops_wanting(publication)


class NeverTakesBack(TreeRouting):
    """Leaves subscriptions behind where no advertisement wants them any more."""

    def _take_back(self, neighbour: Neighbour) -> Answers:
        return []


class NeverConfirms(TreeRouting):
    """Keeps it to itself when a subscription is in effect."""

    def _confirm_if_complete(self, entry: SubscriptionEntry) -> Answers:
        return []


class KeepsTheWaitingWaiting(TreeRouting):
    """Forgets who waited for a cover that left before it was confirmed."""

    def _untell(self, neighbour: Neighbour, entry: SubscriptionEntry) -> Answers:
        self._links[neighbour].waiting.get(entry.subscription.id, {}).clear()
        return super()._untell(neighbour, entry)


def is_unsubscription(answer: Answer) -> bool:
    return isinstance(answer, Send) and isinstance(answer.message, Unsubscription)


@pytest.mark.parametrize(
    "broken",
    [
        UnsubscribesFirst,
        ConfirmsAtOnce,
        NeverConfirms,
        KeepsTheWaitingWaiting,
        ForgetsEarlierInterest,
        SendsBack,
        NeverTakesBack,
    ],
)
def test_random_trees_notice_a_broken_router(broken: type[TreeRouting]) -> None:
    """The thousand runs above prove nothing unless they can fail."""
    for seed in range(150):
        try:
            run = random_run(seed, broken)
        except AssertionError:
            return  # An invariant was quicker than the oracle.
        if not run.is_flawless:
            return
    pytest.fail(f"150 random runs did not notice that a router {broken.__doc__}")
