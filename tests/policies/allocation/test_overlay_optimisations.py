"""The three optimisations of overlay construction, each by hand."""

from __future__ import annotations

from tests.policies.allocation.scenes import (
    bits_of,
    broker,
    gathered,
    problem_with_units,
    subscription,
)

from godwit.policies.allocation.capacity import BrokerFill
from godwit.policies.allocation.gathered import GatheredBroker
from godwit.policies.allocation.overlay_layers import Layers
from godwit.policies.allocation.overlay_optimisations import (
    fit_best,
    optimised,
    skip_pure_forwarders,
    take_over_children,
)
from godwit.policies.allocation.units import UnitFactory


class Scene:
    """Subscriptions of so many bits (10 bytes/s each) at brokers of these bandwidths."""

    def __init__(self, capacities: list[GatheredBroker], at: dict[str, list[int]]) -> None:
        sizes = [(name, size) for name, found in at.items() for size in found]
        subscriptions = [
            subscription(f"s{i}", bits_of(range(size))) for i, (_, size) in enumerate(sizes)
        ]
        self.problem, units, self.factory = problem_with_units(gathered(subscriptions, capacities))
        self.brokers = {b.id: b for b in self.problem.brokers}
        fills = {name: BrokerFill(self.brokers[name], self.problem.table) for name in at}
        for unit, (name, _) in zip(units, sizes, strict=True):
            fills[name].add(unit)
        free = [b for b in self.problem.brokers if b.id not in at]
        self.layers = Layers(fills.values(), free, self.problem.table)

    def above(self, parent: str, *children: str) -> None:
        """A free broker above some of the top; the others stay on top."""
        factory: UnitFactory = self.factory
        rest = [name for name in self.layers.top if name not in children]
        units = [factory.below(name, self.layers.fills[name].profile) for name in children]
        self.layers.put_above([BrokerFill(self.brokers[parent], self.problem.table, units)])
        self.layers.top += rest

    def free(self) -> list[str]:
        return [b.id for b in self.layers.free]


def test_a_pure_forwarder_is_released() -> None:
    scene = Scene([broker("E", 1000), broker("T", 1000)], {"E": [10]})
    scene.above("T", "E")
    skip_pure_forwarders(scene.layers)
    assert scene.layers.top == ["E"]
    assert scene.free() == ["T"]


def test_a_chain_of_pure_forwarders_is_released() -> None:
    scene = Scene([broker("E"), broker("T"), broker("U")], {"E": [10]})
    scene.above("T", "E")
    scene.above("U", "T")
    skip_pure_forwarders(scene.layers)
    assert (scene.layers.top, scene.free()) == (["E"], ["T", "U"])


def test_a_broker_with_two_children_is_not_a_pure_forwarder() -> None:
    scene = Scene([broker("E"), broker("F"), broker("T")], {"E": [10], "F": [20]})
    scene.above("T", "E", "F")
    skip_pure_forwarders(scene.layers)
    assert scene.layers.top == ["T"]


def test_the_least_utilised_child_is_taken_over_first() -> None:
    """The parent sends 100 + 200 to its children; it takes over F (100), then not E (2 x 200)."""
    scene = Scene(
        [broker("E", 1000), broker("F", 1000), broker("T", 500)], {"E": [20, 20], "F": [10]}
    )
    scene.above("T", "E", "F")
    take_over_children(scene.layers)
    assert scene.free() == ["F"]
    assert scene.layers.children("T") == ["E"]
    assert scene.layers.fills["T"].bandwidth_bytes_s == 300


def test_a_parent_takes_over_all_children_if_it_can() -> None:
    scene = Scene([broker("E"), broker("F"), broker("T")], {"E": [20, 20], "F": [10]})
    scene.above("T", "E", "F")
    take_over_children(scene.layers)
    assert (scene.layers.children("T"), scene.free()) == ([], ["E", "F"])
    assert len(scene.layers.fills["T"].units) == 3


def test_utilisation_not_load_decides_which_child_is_first() -> None:
    """E sends more than F and is less utilised; T has room for one of them."""
    scene = Scene(
        [broker("E", 4000), broker("F", 320), broker("T", 700)], {"E": [20, 20], "F": [10, 20]}
    )
    scene.above("T", "E", "F")
    take_over_children(scene.layers)
    assert scene.free() == ["E"]


def test_the_matching_rate_limits_a_take_over() -> None:
    """T matches 20 publications/s with 2 subscriptions, not with 3."""
    parent = broker("T", 9e9, base_s=0.0, each_s=1 / 50)
    scene = Scene([broker("E"), broker("F"), parent], {"E": [20, 20], "F": [10]})
    scene.above("T", "E", "F")
    take_over_children(scene.layers)
    assert scene.layers.children("T") == ["E"]


def test_the_smallest_sufficient_broker_replaces_one() -> None:
    scene = Scene(
        [broker("big", 1000), broker("just", 201), broker("less", 200), broker("more", 500)],
        {"big": [20]},
    )
    fit_best(scene.layers)
    assert scene.layers.top == ["just"]
    assert scene.free() == ["big", "more", "less"]


def test_an_equal_broker_does_not_replace_one() -> None:
    scene = Scene([broker("a", 300), broker("b", 300)], {"b": [20]})
    fit_best(scene.layers)
    assert scene.layers.top == ["b"]


def test_a_replaced_broker_is_free_for_the_next() -> None:
    scene = Scene([broker("x", 1000), broker("y", 900), broker("z", 150)], {"x": [10], "y": [20]})
    fit_best(scene.layers)
    assert sorted(scene.layers.top) == ["y", "z"]
    scene = Scene([broker("x", 1000), broker("y", 2000), broker("z", 150)], {"x": [10], "y": [20]})
    fit_best(scene.layers)
    assert sorted(scene.layers.top) == ["x", "z"]


def test_all_three_in_their_order() -> None:
    """T is a pure forwarder above E; what remains is replaced by a broker that just fits."""
    scene = Scene([broker("E", 1000), broker("T", 2000), broker("just", 401)], {"E": [20, 20]})
    scene.above("T", "E")
    optimised(scene.layers)
    assert (scene.layers.top, scene.free()) == (["just"], ["T", "E"])
