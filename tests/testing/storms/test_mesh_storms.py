"""Storms in a mesh: brokers and links fail while clients move and soft links come and go.

`godwit replay SEED --faults --overlay mesh` replays one.
"""

from __future__ import annotations

import pytest
from tests.sweeps import seeds

from godwit.broker.stimuli import Hop
from godwit.content.messages import Publication
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.testing.storms.storm import storm

SEEDS = seeds(8, whole=1_000)

pytestmark = pytest.mark.filterwarnings("default::ResourceWarning")


def test_nothing_is_lost_in_a_storm(monkeypatch: pytest.MonkeyPatch) -> None:
    soft = 0
    destinations = MeshRouting.destinations

    def counting(
        self: MeshRouting, publication: Publication, last_hop: Hop, hops: int, now_s: float
    ) -> dict[Hop, None]:
        nonlocal soft
        found = destinations(self, publication, last_hop, hops, now_s)
        soft += sum(hop in self.soft_links.links for hop in found)
        return found

    monkeypatch.setattr(MeshRouting, "destinations", counting)
    storms = [storm(seed, has_soft_links=True) for seed in range(SEEDS)]
    assert not [str(each) for each in storms if not each.is_flawless]
    assert sum(each.deliveries for each in storms) > 1_000
    assert sum(each.moved for each in storms) > 5
    assert soft > 10, "soft links were used"
