"""Clusters and rings from n brokers and m clusters."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import (
    ClusterStructure,
    arrange,
    cluster_settings,
    links_left,
    structure_of,
    without_broker,
)
from godwit.overlay.topology import topology


def names(count: int) -> list[str]:
    return [f"B{number}" for number in range(1, count + 1)]


def structures() -> Iterator[ClusterStructure]:
    return (arrange(names(n), m) for n in range(1, 15) for m in range(1, n + 1))


def test_nine_brokers_in_three_clusters_as_in_figure_1() -> None:
    nine = arrange(names(9), 3)

    assert nine.clusters == (("B1", "B2", "B3"), ("B4", "B5", "B6"), ("B7", "B8", "B9"))
    assert nine.rings == (("B1", "B4", "B7"), ("B2", "B5", "B8"), ("B3", "B6", "B9"))
    assert nine.mates("B5") == ("B4", "B6")
    assert nine.ring("B5") == ("B2", "B8")
    assert nine.links("B5") == ("B2", "B4", "B6", "B8")


def test_a_broker_of_a_smaller_cluster_is_in_two_rings_and_publishes_in_one() -> None:
    eight = arrange(names(8), 3)

    assert eight.clusters == (("B1", "B2", "B3"), ("B4", "B5", "B6"), ("B7", "B8"))
    assert eight.rings[2] == ("B3", "B6", "B7")
    assert eight.ring("B7") == ("B1", "B4")
    assert eight.links("B7") == ("B1", "B3", "B4", "B6", "B8")


def test_sizes_differ_by_one_at_most_and_every_broker_has_one_place() -> None:
    for structure in structures():
        sizes = [len(cluster) for cluster in structure.clusters]
        assert max(sizes) - min(sizes) <= 1
        assert sizes == sorted(sizes, reverse=True)
        assert list(structure.brokers) == names(sum(sizes))


def test_every_ring_has_one_broker_of_each_cluster_and_is_linked() -> None:
    for structure in structures():
        for ring in structure.rings:
            assert [structure.cluster_of(broker) for broker in ring] == list(
                range(len(structure.clusters))
            )
        for broker in structure.brokers:
            known = set(structure.links(broker))
            assert known >= {*structure.mates(broker), *structure.ring(broker)}
            assert {structure.cluster_of(each) for each in structure.ring(broker)} == set(
                range(len(structure.clusters))
            ) - {structure.cluster_of(broker)}


def test_two_links_reach_every_broker() -> None:
    assert all(structure.topology.diameter <= 2 for structure in structures())


def test_the_backbone_is_a_tree_of_links_of_the_structure() -> None:
    for structure in structures():
        assert structure.backbone.is_tree or len(structure.brokers) == 1
        assert structure.backbone.links <= structure.topology.links


def test_one_cluster_has_no_ring_and_clusters_of_one_broker_no_mates() -> None:
    assert arrange(names(4), 1).ring("B2") == ()
    assert arrange(names(4), 4).mates("B2") == ()
    assert arrange(names(4), 4).ring("B2") == ("B1", "B3", "B4")


def test_the_settings_of_a_place_give_the_same_structure() -> None:
    assert structure_of(cluster_settings(names(7), 2)) == arrange(names(7), 2)


def test_what_is_not_a_structure_is_refused_with_a_reason() -> None:
    with pytest.raises(UsageError, match="5 clusters of 4 brokers"):
        arrange(names(4), 5)
    with pytest.raises(UsageError, match="B9 is in no cluster"):
        arrange(names(4), 2).mates("B9")
    with pytest.raises(UsageError, match="names of all brokers"):
        structure_of({})


def test_a_single_broker_has_no_links() -> None:
    assert arrange(["B1"], 1).topology == topology(["B1"], [])


def test_a_broker_that_leaves_is_in_a_cluster_of_its_own() -> None:
    names = [f"B{number}" for number in range(1, 6)]
    settings = cluster_settings(names, 2, leaving="B1")
    structure = structure_of(settings)
    assert structure.clusters == (("B2", "B3"), ("B4", "B5"), ("B1",))
    assert structure.backbone.neighbours("B1") == ("B2",), "a leaf of what all brokers need"
    gone = without_broker(settings, "B1")
    assert structure_of(gone) == arrange(names[1:], 2)
    others = {link for link in structure.topology.links if "B1" not in link}
    assert structure_of(gone).topology.links == others, "for the others nothing changes"
    assert without_broker({"delta": 3}, "B2") == {"delta": 3}
    # It is not leaving here, but in later clusters, of which brokers that restart hear first.
    later = without_broker(settings, "B2")
    assert structure_of(later) == structure
    assert links_left(later) == {link for link in structure.topology.links if "B2" not in link}
    assert links_left(without_broker(later, "B1")) == {("B3", "B5"), ("B4", "B5")}
