"""Storms in clusters: brokers and links fail while clients move, and nothing is lost.

`godwit replay SEED --faults --overlay clusters` replays one.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.sweeps import seeds

from godwit.broker.effects import Send
from godwit.broker.stimuli import Neighbour
from godwit.overlay.clusters.subscription_lists import (
    ClusterSubscriptionList,
    LocalSubscriptionList,
)
from godwit.testing.storms.cluster_outage import cluster_outage
from godwit.testing.storms.cluster_storm import cluster_storm

SEEDS = seeds(6, whole=1_000)
OUTAGES = seeds(4, whole=200)
#: Each mutant below was noticed within seven storms when this was written.
MUTANT_SEEDS = 15

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


def test_nothing_is_lost_in_a_storm() -> None:
    storms = [cluster_storm(seed) for seed in range(SEEDS)]
    assert not [str(each) for each in storms if not each.is_flawless]
    assert sum(each.deliveries for each in storms) > 1_000
    assert all(len(each.happened) > 1 for each in storms)
    assert sum(each.moved for each in storms) > 5


def test_a_seed_is_a_storm() -> None:
    assert str(cluster_storm(3)) == str(cluster_storm(3))


def test_after_a_long_outage_everything_is_as_before() -> None:
    outages = [cluster_outage(seed) for seed in range(OUTAGES)]
    assert not [str(each) for each in outages if not each.is_flawless]
    assert sum(each.moved for each in outages) > OUTAGES


def _is_not_repeated(patch: pytest.MonkeyPatch) -> None:
    def repeat(_list: LocalSubscriptionList, _mate: Neighbour) -> list[Send]:
        return []

    patch.setattr(LocalSubscriptionList, "repeat", repeat)


def _is_forgotten_at_once(patch: pytest.MonkeyPatch) -> None:
    def doubt(self: ClusterSubscriptionList, mate: Neighbour) -> None:
        self.remove_all(mate)

    patch.setattr(ClusterSubscriptionList, "doubt", doubt)


@pytest.mark.parametrize("mutate", [_is_not_repeated, _is_forgotten_at_once])
def test_storms_notice_that_what_a_mate_had(
    mutate: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    mutate(monkeypatch)
    assert any(not cluster_storm(seed).is_flawless for seed in range(MUTANT_SEEDS))
