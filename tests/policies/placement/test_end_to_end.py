"""POP and GRAPE in simulated brokers: publishers move to where they belong, and nothing is lost."""

from __future__ import annotations

from random import Random

import pytest
from msgspec.structs import replace
from tests.policies.placement.by_hand import link_sum, random_wants
from tests.policies.placement.scenes import Scene, Watcher, play

from godwit.broker.modules import PolicyModule
from godwit.overlay.topology import balanced_tree, chain, random_tree
from godwit.policies import placement
from godwit.policies.placement.grape import Grape
from godwit.policies.placement.pop import Pop
from godwit.policies.placement.settings import GrapeSettings, Metric, PopSettings
from godwit.simulation import Crash, Fault, Restart
from godwit.testing.random_moves import random_moves
from godwit.workloads.placement import Mix, PlacementSetup, placement_workload
from godwit.workloads.stocks import Rating, StockMarket

Settings = PopSettings | GrapeSettings

POP = PopSettings(traces_per_decision=20, traces_per_window=20)
BY_LOAD = GrapeSettings(publications_per_session=20)
BY_DELAY = GrapeSettings(publications_per_session=20, primary=Metric.DELAY)
all_policies = pytest.mark.parametrize(
    "settings",
    [
        pytest.param(POP, id="POP"),
        pytest.param(BY_LOAD, id="GRAPE load 100%"),
        pytest.param(BY_DELAY, id="GRAPE delay 100%"),
    ],
)

ALL, FEW = "class = 'STOCK'", "class = 'STOCK' and volume < 10"


@all_policies
def test_a_publisher_moves_to_its_only_subscribers(settings: Settings) -> None:
    """Claim G5: with all subscribers at one broker, all policies choose that."""
    scene = Scene(balanced_tree(15, fanout=2), placement.modules(settings))
    scene.subscribers("B11", [ALL, ALL, FEW])
    scene.publisher("B15", from_s=1.0, until_s=60.0, period_s=0.2)
    scene.run(60.0)

    assert scene.home() == "B11"
    assert [move[1:] for move in scene.watcher.moves] == [("publisher", "B15", "B11")]
    assert scene.watcher.actions()[0] == "asked"


def test_load_and_delay_choose_differently() -> None:
    """Four at B15 want all; twenty at each of B8 to B11, on the other side, want a tenth."""
    homes = {}
    long: dict[str, Settings] = {
        "pop": PopSettings(traces_per_decision=100, newest_weight=0.02),
        "load": GrapeSettings(),
        "delay": GrapeSettings(primary=Metric.DELAY),
    }
    for name, settings in long.items():
        scene = Scene(balanced_tree(15, fanout=2), placement.modules(settings))
        scene.subscribers("B15", [ALL] * 4)
        for broker in ("B08", "B09", "B10", "B11"):
            scene.subscribers(broker, [FEW] * 20)
        scene.publisher("B12", from_s=1.0, until_s=150.0, period_s=0.1)
        scene.run(150.0)
        homes[name] = scene.home()

    assert homes["load"] == "B15"
    assert homes["delay"] in {"B01", "B02"}, "between them, nearer to the many"
    assert homes["pop"] in {"B01", "B02"}


@all_policies
@pytest.mark.parametrize("seed", [1, 2])
def test_enterprise_workload_on_31_brokers(settings: Settings, seed: int) -> None:
    """Setup GS3: fewer messages and hops than without, every delivery right."""
    brokers = balanced_tree(31, fanout=2)
    outcome = {}
    for policy in (None, settings):
        random = Random(seed)
        market = StockMarket(random, symbols=4)
        setup = PlacementSetup(
            publishers=4,
            publications_per_min=(120.0, 180.0),
            subscribers_per_publisher=40,
            mix=Mix.ENTERPRISE,
            brokers_with_subscribers=8,
        )
        workload = placement_workload(setup, market, brokers.brokers, random)
        scene = Scene(brokers, placement.modules(policy or "static"), seed=seed)
        play(scene, workload, from_s=5.0, until_s=150.0)
        scene.run(150.0)
        outcome[policy] = scene
        if policy is BY_LOAD:
            high = {market.rated_filter(s, Rating.HIGH): s for s in market.symbols}
            for subscriber in workload.subscribers:
                symbol = high.get(subscriber.filter)
                if symbol is not None:
                    home = scene.home(f"publisher-{symbol}")
                    assert home == subscriber.at, "where the high-rated subscribers are"
    before, after = outcome[None], outcome[settings]
    assert after.oracle.deliveries == before.oracle.deliveries
    assert after.watcher.moves
    published = [s.statistics.handled_by_kind["Publication"] for s in (before, after)]
    assert published[1] < 0.75 * published[0]


@pytest.mark.parametrize("seed", range(25))
def test_pop_finds_the_1_median_through_real_brokers(seed: int) -> None:
    random = Random(seed)
    shape = random_tree(random.randint(2, 8), random)
    wanted = random_wants(shape, random, at_most=4) or {shape.brokers[-1]: 1}
    scene = Scene(shape, placement.modules(POP, seed=seed), seed=seed)
    for broker, count in wanted.items():
        scene.subscribers(broker, [ALL] * count)
    scene.publisher(random.choice(shape.brokers), from_s=1.0, until_s=70.0, period_s=0.4)
    scene.run(70.0)

    cost = {name: link_sum(shape, wanted, name) for name in shape.brokers}
    assert cost[scene.home()] == min(cost.values())
    assert len(scene.watcher.moves) <= 1


@all_policies
def test_a_dry_run_moves_nobody(settings: Settings) -> None:
    scene = Scene(chain(3), placement.modules(replace(settings, dry_run=True)))
    scene.subscribers("B3", [ALL])
    scene.publisher("B1", from_s=1.0, until_s=100.0, period_s=0.2)
    scene.run(100.0)

    assert set(scene.watcher.actions()) == {"proposed"}
    assert not scene.watcher.moves
    assert scene.home() == "B1"


def test_the_reason_of_a_decision_has_the_numbers_that_decided() -> None:
    scene = Scene(chain(3), placement.modules(BY_LOAD))
    scene.subscribers("B3", [ALL, ALL])
    scene.publisher("B1", from_s=1.0, until_s=10.0, period_s=0.2)
    scene.run(10.0)

    (_, broker, decision) = scene.watcher.decisions[0]
    assert broker == "B1"
    assert decision.reason["messages_here"] == 60, "20 publications at three brokers"
    assert decision.reason["messages_there"] == 20
    # Two links of 0.5 ms, three brokers of 0.1 ms and a little.
    assert decision.reason["delay_here_s"] == pytest.approx(0.0013, rel=0.1)
    assert decision.reason["delay_there_s"] == pytest.approx(0.0001, rel=0.3)


# -- subscribers come and go ---------------------------------------------------------------------


@all_policies
def test_a_publisher_follows_its_subscribers(settings: Settings) -> None:
    scene = Scene(chain(5), placement.modules(settings))
    first = scene.subscribers("B5", [ALL, ALL])
    scene.publisher("B3", from_s=1.0, until_s=250.0, period_s=0.2)
    scene.simulator.at(100.0, lambda: scene.subscribers("B1", [ALL, ALL, ALL]))
    for client in first:
        scene.simulator.at(101.0, client.unsubscribe, next(iter(client.holdings.subscriptions)))
    scene.run(250.0)

    assert [move[3] for move in scene.watcher.moves] == ["B5", "B1"]


# -- moves by policies and by clients themselves -------------------------------------------------

BUSY: dict[str, Settings] = {
    "pop": PopSettings(traces_per_decision=5, traces_per_window=10, hold_s=0.5),
    "load": GrapeSettings(publications_per_session=5, hold_s=0.5),
    "delay": GrapeSettings(publications_per_session=5, primary=Metric.DELAY, hold_s=0.5),
}


@pytest.mark.parametrize("policy", BUSY)
@pytest.mark.parametrize("first", range(0, 15, 5))
def test_random_overlays_with_a_policy_that_moves_whenever_it_can(policy: str, first: int) -> None:
    """Clients move on their own too, at the same time; brokers can hardly keep up."""
    watcher = Watcher()
    for seed in range(first, first + 5):
        made: list[PolicyModule] = []
        modules = placement.modules(BUSY[policy], seed=seed)

        def making(broker: str) -> list[PolicyModule]:
            made.extend(modules(broker))  # noqa: B023
            return made[-1:]  # noqa: B023

        run = random_moves(seed, modules=making, observers=[watcher])
        assert run.is_flawless, f"policy {policy}\n{run}"
        for module in made:
            assert isinstance(module, Pop | Grape)
            assert not module._has_expiring_state
    asked = [d for _, _, d in watcher.decisions if d.action == "asked"]
    moved = {(client, target) for _, client, _, target in watcher.moves}
    assert [d for d in asked if (d.subject, d.target) in moved]


# -- brokers that fail ---------------------------------------------------------------------------


@all_policies
def test_a_neighbour_that_crashes_does_not_stop_a_policy_for_ever(settings: Settings) -> None:
    """B4 dies and answers nothing; when it is back, without its subscribers, B2 is the place."""
    faults: list[Fault] = [Crash(broker="B4", at_s=3.0), Restart(broker="B4", at_s=100.0)]
    scene = Scene(balanced_tree(4, fanout=3), placement.modules(settings), faults=faults)
    scene.subscribers("B2", [ALL, ALL])
    scene.subscribers("B4", [ALL])
    scene.publisher("B3", from_s=1.0, until_s=300.0, period_s=0.2)
    scene.simulator.run(until_s=99.0)
    assert scene.home() == "B3"
    assert set(scene.watcher.actions()) <= {"gave up"}
    scene.simulator.run(until_s=300.0)

    assert scene.home() == "B2"
