"""Changes as text, and the network after them."""

from __future__ import annotations

import msgspec
import pytest
from tests.rehearsal.scenes import publisher, snapshot, subscriber

from godwit.api.plan_requests import PlanToApply
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import cluster_settings
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import GrapeSettings
from godwit.rehearsal.changes_to_try import (
    Links,
    RehearsedChange,
    changed,
    read_change,
    unchanged,
)

#: B1 with B2 and B3; B4 at B3.
FORK = (("B1", "B2"), ("B1", "B3"), ("B3", "B4"))
PLAN = PlanToApply(links=[("B2", "B1")], root="B1", clients={"carol": "B2"})


def change(text: str) -> RehearsedChange:
    def links(file: str) -> Links:
        assert file == "star.toml"
        return [("B1", "B2"), ("B1", "B3"), ("B1", "B4")]

    return read_change(text, read_plan=lambda _file: PLAN, read_links=links)


def homes(text: str, *clients: tuple[str, str]) -> dict[str, str]:
    scene = snapshot([subscriber(name, at) for name, at in clients], links=FORK)
    return {client.name: client.broker for client in changed(scene, change(text)).clients}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("traffic", "KIND=VALUE"),
        ("weather=wet", "KIND=VALUE"),
        ("traffic=0", "above 0"),
        ("traffic=lots", "above 0"),
        ("overlay=ring", "choose from"),
        ("overlay=clusters", "clusters:3"),
        ("overlay=mesh:3", "clusters:3"),
        ("placement=best", "no policy"),
        ("balancing=perhaps", "on or off"),
    ],
)
def test_what_is_not_a_change_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        change(text)


def test_several_parts_are_one_change() -> None:
    found = change("without=B2, traffic=2x")
    assert (found.without, found.traffic) == (("B2",), 2.0)


def test_neighbours_of_a_broker_that_is_gone_are_linked_with_the_one_with_most_links() -> None:
    found = changed(snapshot(links=FORK), change("without=B1"))
    assert found.topology.brokers == ("B2", "B3", "B4")
    assert found.topology.links == {("B2", "B3"), ("B3", "B4")}
    assert found.new_links == 1


def test_a_broker_in_the_middle_leaves_a_star_around_its_best_linked_neighbour() -> None:
    links = (("B1", "B2"), ("B1", "B3"), ("B1", "B4"), ("B3", "B5"))
    found = changed(snapshot(links=links), change("without=B1"))
    assert found.topology.links == {("B2", "B3"), ("B3", "B4"), ("B3", "B5")}


def test_clients_of_a_broker_that_is_gone_go_where_the_fewest_are() -> None:
    found = homes("without=B4", ("a", "B1"), ("b", "B2"), ("c", "B4"), ("d", "B4"))
    assert found == {"a": "B1", "b": "B2", "c": "B3", "d": "B1"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("without=B9", "no such broker"),
        ("without=B1,without=B2,without=B3,without=B4", "the only broker"),
    ],
)
def test_a_broker_that_cannot_go_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        changed(snapshot(links=FORK), change(text))


def test_a_plan_has_its_tree_and_moves_clients() -> None:
    scene = snapshot(
        [publisher("paul", "B4"), subscriber("bob", "B2"), subscriber("carol", "B3")], links=FORK
    )
    found = changed(scene, change("plan=x.json"))
    assert found.topology.brokers == ("B1", "B2")
    assert found.topology.links == {("B1", "B2")}
    assert {each.name: each.broker for each in found.clients} == {
        "paul": "B1",  # Not in the plan, and its broker is gone.
        "bob": "B2",
        "carol": "B2",
    }
    assert (found.moves, found.new_links) == (2, 0)


def test_a_plan_with_a_broker_that_does_not_run_is_refused() -> None:
    plan = PlanToApply(links=[("B9", "B1")], root="B1")
    with pytest.raises(UsageError, match="needs B9"):
        changed(snapshot(links=FORK), RehearsedChange(text="plan", plan=plan))


def test_a_tree_of_a_file_has_new_links() -> None:
    found = changed(snapshot(links=FORK), change("tree=star.toml"))
    assert found.topology.links == {("B1", "B2"), ("B1", "B3"), ("B1", "B4")}
    assert (found.moves, found.new_links) == (0, 1)


def test_links_that_are_not_a_tree_are_refused() -> None:
    with pytest.raises(UsageError, match="not one tree"):
        changed(snapshot(links=FORK), RehearsedChange(text="x", links=[("B1", "B2")]))


def test_clusters_have_the_links_of_their_structure() -> None:
    found = changed(snapshot(links=FORK), change("overlay=clusters:2"))
    assert found.overlay == "clusters"
    # Clusters B1, B2 and B3, B4; rings B1, B3 and B2, B4.
    assert found.topology.links == {("B1", "B2"), ("B3", "B4"), ("B1", "B3"), ("B2", "B4")}


def test_a_broker_of_clusters_goes_and_their_number_stays() -> None:
    names = ["B1", "B2", "B3", "B4"]
    scene = msgspec.structs.replace(
        snapshot(links=FORK), overlay="clusters", overlay_settings=cluster_settings(names, 2)
    )
    assert unchanged(scene).topology.links == {
        ("B1", "B2"), ("B3", "B4"), ("B1", "B3"), ("B2", "B4"),
    }  # fmt: skip
    found = changed(scene, change("without=B4"))
    assert found.overlay_settings["clusters"] == 2
    assert found.topology.brokers == ("B1", "B2", "B3")


def test_publishers_at_edges_move_to_their_head_before_balancing() -> None:
    scene = snapshot([publisher("paul", "B4"), subscriber("bob", "B4")], links=FORK)
    found = changed(scene, change("balancing=on"))
    assert {each.name: each.broker for each in found.clients} == {"paul": "B3", "bob": "B4"}
    assert found.policy is not None
    assert found.moves == 1
    assert "1 publishers have to move" in found.notes[0]


@pytest.mark.parametrize(
    ("text", "has_policy"),
    [("placement=static", False), ("placement=pop", True), ("balancing=off", True)],
)
def test_a_policy_of_the_network_stays_unless_the_change_says(text: str, has_policy: bool) -> None:
    scene = msgspec.structs.replace(snapshot(links=FORK), placement=GrapeSettings())
    assert (changed(scene, change(text)).policy is not None) == has_policy
    assert unchanged(scene).policy is None  # As it was measured.


def test_balancing_takes_the_place_of_placement_and_the_two_together_are_refused() -> None:
    scene = msgspec.structs.replace(snapshot(links=FORK), placement=GrapeSettings())
    assert changed(scene, change("balancing=on")).notes is not None
    both = RehearsedChange(text="both", placement="pop", balancing=True)
    with pytest.raises(UsageError, match="exclude each other"):
        changed(scene, both)


def test_policies_in_clusters_are_refused() -> None:
    scene = msgspec.structs.replace(snapshot(links=FORK), balancing=BalancingSettings())
    with pytest.raises(UsageError, match="need a tree"):
        changed(scene, change("overlay=clusters:2"))
