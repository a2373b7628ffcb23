"""POP: the example of the thesis, the walk to the 1-median, and what may go wrong on the way."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

import pytest
from msgspec.structs import replace
from tests.policies.placement.by_hand import PUBLISHER, Tree, link_sum, random_wants

from godwit.broker.modules import Request, ToNeighbour
from godwit.broker.stimuli import Neighbour
from godwit.content.messages import AdvertisementId, Publication
from godwit.overlay.topology import Topology, chain, random_tree, star, topology
from godwit.policies.placement.letters import (
    BrokerAddress,
    RelocationAnswer,
    RelocationRequest,
    TraceResult,
    read_pop,
    write,
)
from godwit.policies.placement.pop import LOCAL, Pop, Trace, heaviest
from godwit.policies.placement.settings import PopSettings

#: Traces everything: the chance that it does not is one in a thousand million.
QUICK = PopSettings(traces_per_decision=3, traces_per_window=10**9)
FORGETFUL = PopSettings(traces_per_decision=3, traces_per_window=10**9, forget_s=300.0)


def tree(shape: Topology, at: str, settings: PopSettings = QUICK) -> Tree:
    modules = {name: Pop(Random(name), settings) for name in shape.brokers}
    return Tree(shape, modules, at)


def trace(of: Tree, wanted: Mapping[str, int], times: int = 3) -> None:
    for _ in range(times):
        of.publish(wanted)


# -- the thesis's example (11.3 of the specification) --------------------------------------------

EXAMPLE = topology(
    ["B1", "B2", "B4", "B5", "B6", "B7", "B8"],
    [("B1", "B2"), ("B1", "B4"), ("B1", "B5"), ("B5", "B6"), ("B6", "B7"), ("B6", "B8")],
)
EXAMPLE_WANTS = {"B1": 1, "B2": 6, "B4": 3, "B5": 0, "B6": 4, "B7": 6, "B8": 5}


def test_the_example_of_the_thesis() -> None:
    """Of 25 deliveries 15 are beyond B5, and so beyond B6; no branch of B6 has more than half."""
    scene = tree(EXAMPLE, "B1")
    trace(scene, EXAMPLE_WANTS)

    (move,) = scene.moves
    assert (move.client, move.target) == (PUBLISHER, "B6")
    (decision,) = scene.decisions
    assert decision.action == "asked"
    assert decision.source == "B1"
    saved = link_sum(EXAMPLE, EXAMPLE_WANTS, "B1") - link_sum(EXAMPLE, EXAMPLE_WANTS, "B6")
    numbers = {"deliveries": 25, "here": 1, "hops": 2, "links_saved": saved}
    assert decision.reason == {**numbers, "selection_s": 0}


def test_the_letters_of_the_example() -> None:
    """RRM(10, [B1]) to B5, RRM(10, [B5, B1]) to B6, RAM [B6, B5, B1] back."""
    scene = tree(EXAMPLE, "B1")
    trace(scene, EXAMPLE_WANTS)

    b1, b5, b6 = (BrokerAddress(name, "") for name in ("B1", "B5", "B6"))
    assert [(to, read_pop(body)) for to, body in scene.letters[-4:]] == [
        ("B5", RelocationRequest(PUBLISHER, elsewhere=10, here=15, saved=5, path=(b1,))),
        ("B6", RelocationRequest(PUBLISHER, elsewhere=10, here=15, saved=10, path=(b5, b1))),
        ("B5", RelocationAnswer(PUBLISHER, saved=10, path=(b6, b5, b1))),
        ("B1", RelocationAnswer(PUBLISHER, saved=10, path=(b6, b5, b1))),
    ]


# -- the closest broker --------------------------------------------------------------------------

B2, B3 = Neighbour("B2"), Neighbour("B3")


@pytest.mark.parametrize(
    ("weights", "hysteresis", "towards"),
    [
        pytest.param({LOCAL: 1, B2: 3, B3: 1}, 0, B2, id="more than all others together"),
        pytest.param({LOCAL: 1, B2: 2, B3: 1}, 0, None, id="a tie stays put"),
        pytest.param({LOCAL: 5, B2: 1}, 0, None, id="most are here"),
        pytest.param({LOCAL: 1, B2: 3, B3: 1}, 1, None, id="not by enough"),
        pytest.param({LOCAL: 1, B2: 3.5, B3: 1}, 1, B2, id="by enough"),
        pytest.param({LOCAL: 0}, 0, None, id="nobody wants anything"),
    ],
)
def test_the_heaviest_branch(
    weights: dict[Neighbour | None, float], hysteresis: float, towards: Neighbour | None
) -> None:
    assert heaviest(weights, hysteresis) == towards


@pytest.mark.parametrize("seed", range(500))
def test_the_result_is_a_weighted_1_median(seed: int) -> None:
    """Every publication reaches all subscribers, so that averages are exact."""
    random = Random(seed)
    shape = random_tree(random.randint(2, 20), random)
    wanted = random_wants(shape, random)
    scene = tree(shape, random.choice(shape.brokers))
    source = scene.at
    trace(scene, wanted)

    (decision,) = scene.decisions
    cost = {name: link_sum(shape, wanted, name) for name in shape.brokers}
    assert cost[decision.target] == min(cost.values())
    if cost[source] == min(cost.values()):
        assert decision.target == source, "in a tie it stays"
    else:
        assert decision.reason["links_saved"] == cost[source] - cost[decision.target]


class PlainAverages(Pop):
    """All traces of a publisher weigh the same: the first 1, then 1/2, 1/3 ..."""

    completed = 0

    def _complete(
        self, publisher: str, sequence: int, trace: Trace, now_s: float
    ) -> Iterable[Request]:
        self.completed += 1
        self._settings = replace(self._settings, newest_weight=1 / self.completed)
        return super()._complete(publisher, sequence, trace, now_s)


@pytest.mark.parametrize("seed", range(100))
def test_a_branch_counts_for_what_it_wants_of_each_publication(seed: int) -> None:
    """Publications differ in who wants them; with plain averages the weights are exact again."""
    random = Random(seed)
    shape = random_tree(random.randint(2, 12), random)
    count = random.randint(2, 6)
    settings = PopSettings(traces_per_decision=count, traces_per_window=10**9)
    modules = {name: PlainAverages(Random(name), settings) for name in shape.brokers}
    scene = Tree(shape, modules, random.choice(shape.brokers))
    wants = [random_wants(shape, random) for _ in range(count)]
    mean = {name: sum(wanted.get(name, 0) for wanted in wants) / count for name in shape.brokers}
    for wanted in wants:
        scene.publish(wanted)

    (decision,) = scene.decisions
    cost = {name: link_sum(shape, mean, name) for name in shape.brokers}
    assert cost[decision.target] == pytest.approx(min(cost.values()))


def test_as_printed_a_branch_that_rarely_wants_something_weighs_too_much() -> None:
    """B2's ten subscribers want one publication in four; the three of B1 want all."""
    shape = chain(2)
    for counts_zeros, target in ((True, "B1"), (False, "B2")):
        settings = PopSettings(
            traces_per_decision=40, traces_per_window=10**9, counts_zeros=counts_zeros
        )
        scene = tree(shape, "B1", settings)
        for number in range(40):
            scene.publish({"B1": 3, "B2": 10 if number % 4 == 0 else 0})
        (decision,) = scene.decisions
        assert decision.target == target


def test_running_averages() -> None:
    """The first value is taken as it is, a later one by a quarter."""
    scene = tree(chain(2), "B1", PopSettings(traces_per_decision=100))
    for count in (4, 8):
        scene.publish({"B1": 1, "B2": count})

    pop = scene.modules["B1"]
    assert isinstance(pop, Pop)
    assert pop._tables[PUBLISHER].rows == {LOCAL: 1, B2: 0.25 * 8 + 0.75 * 4}


def test_a_branch_that_comes_later_was_empty_before() -> None:
    scene = tree(star(2), "B1", PopSettings(traces_per_decision=100))
    scene.publish({"B2": 4})
    scene.publish({"B3": 4})

    pop = scene.modules["B1"]
    assert isinstance(pop, Pop)
    assert pop._tables[PUBLISHER].rows == {LOCAL: 0, B2: 3.0, B3: 1.0}


# -- tagging -------------------------------------------------------------------------------------


def test_the_first_publication_of_a_window_is_traced_and_never_more_than_n() -> None:
    settings = PopSettings(traces_per_window=5, window_s=60.0, traces_per_decision=100)
    scene = tree(chain(1), "B1", settings)
    for _ in range(3):
        traced = [scene.trace({"B1": 1}) for _ in range(200)]
        assert traced[0] == 1
        assert sum(traced) == 5
        scene.wait(60.0)


def test_how_many_are_traced_on_average() -> None:
    """N (1 - (1 - 1/N)^k) after k publications."""
    n, k, runs = 50, 60, 200
    random = Random(7)
    total = 0
    for _ in range(runs):
        pop = Pop(random, PopSettings(traces_per_window=n))
        total += sum(pop.tag(_publication(number), 0.0) for number in range(k))
    expected = n * (1 - (1 - 1 / n) ** k)
    assert total / runs == pytest.approx(expected, rel=0.02)


def _publication(sequence: int) -> Publication:
    return Publication(
        publisher=PUBLISHER, sequence=sequence, advertisement=AdvertisementId("a"), content={}
    )


def test_no_more_are_traced_than_a_decision_needs() -> None:
    """Else a publisher that is faster than the answers would never be decided about."""
    pop = Pop(Random(1), PopSettings(traces_per_decision=4, traces_per_window=1000))
    assert sum(pop.tag(_publication(number), 0.0) for number in range(100)) == 4


# -- what may go wrong ---------------------------------------------------------------------------


def test_a_broker_that_does_not_answer_ends_a_trace_and_not_more() -> None:
    scene = tree(star(3), "B1")
    scene.dead = {"B3"}
    trace(scene, {"B2": 2, "B3": 1})
    assert not scene.decisions

    scene.wait(45.0)
    scene.dead = set()
    scene.wait(60.0)
    trace(scene, {"B2": 2, "B3": 1})
    assert [move.target for move in scene.moves] == ["B2"]


def test_a_walk_that_gets_lost_is_begun_anew() -> None:
    scene = tree(chain(3), "B1")
    scene.loses = lambda body: isinstance(read_pop(body), RelocationAnswer)
    trace(scene, {"B3": 2})
    scene.wait(45.0)
    assert scene.actions == ["gave up"]

    scene.loses = lambda _body: False
    trace(scene, {"B3": 2})
    assert scene.actions == ["gave up", "asked"]
    assert scene.moves[-1].target == "B3"


def test_a_walk_ends_where_the_publisher_is_not_known() -> None:
    """It has crashed, or the publisher has moved: who began the walk does not wait for ever."""
    scene = tree(chain(3), "B1")
    trace(scene, {"B3": 2}, times=2)
    pop = scene.modules["B2"]
    assert isinstance(pop, Pop)
    letter = RelocationRequest(PUBLISHER, 0.0, 2.0, 2.0, (BrokerAddress("B3", ""),))
    assert list(pop.on_letter(write(letter), B3, 0.0)) == []


def test_a_walk_never_goes_back() -> None:
    """As printed, B2 may find that those behind it weigh less than B1 thought."""
    scene = tree(chain(3), "B1", PopSettings(counts_zeros=False))
    scene.publish({"B1": 1, "B2": 2})
    letter = RelocationRequest(
        PUBLISHER, elsewhere=5.0, here=6.0, saved=1.0, path=(BrokerAddress("B1", ""),)
    )
    (answer,) = scene.modules["B2"].on_letter(write(letter), Neighbour("B1"), 0.0)
    assert isinstance(answer, ToNeighbour)
    found = read_pop(answer.body)
    assert isinstance(found, RelocationAnswer)
    assert [place.broker for place in found.path] == ["B2", "B1"]


def test_letters_that_nobody_expects_do_nothing() -> None:
    pop = tree(chain(2), "B1").modules["B1"]
    here = BrokerAddress("B1", "")
    for body in (
        b"",
        b"\xff",
        write(RelocationAnswer("nobody", 1.0, (BrokerAddress("B9", ""), here))),
        write(RelocationAnswer("nobody", 1.0, (BrokerAddress("B9", ""),))),
        write(RelocationRequest("nobody", 1.0, 2.0, 1.0, (BrokerAddress("B2", ""),))),
    ):
        assert list(pop.on_letter(body, B2, 0.0)) == []


def test_a_table_starts_anew_when_publications_come_from_elsewhere() -> None:
    """P1: the publisher moves from B1 to B3, and what B2 knew about B3's branch is void."""
    scene = tree(chain(3), "B1")
    trace(scene, {"B1": 1, "B2": 1, "B3": 9})
    scene.move("B3")
    pop = scene.modules["B2"]
    assert isinstance(pop, Pop)
    assert set(pop._tables[PUBLISHER].rows) == {LOCAL, B3}
    scene.wait(100.0)
    scene.publish({"B1": 1, "B2": 1, "B3": 9})

    assert set(pop._tables[PUBLISHER].rows) == {LOCAL, Neighbour("B1")}


def test_everything_is_forgotten_in_the_end() -> None:
    """And no timer is left, or a simulation would never be over."""
    scene = tree(chain(3), "B1", FORGETFUL)
    trace(scene, {"B3": 1}, times=2)
    scene.dead = {"B3"}
    trace(scene, {"B3": 1})
    scene.wait(1000.0)

    assert not scene.timers
    for module in scene.modules.values():
        assert isinstance(module, Pop)
        assert not module._tables
        assert not module._pending


def test_a_trace_of_another_publication_is_not_mistaken_for_this_one() -> None:
    """E9: answers name their publication."""
    scene = tree(chain(2), "B1", PopSettings(traces_per_decision=100))
    first = scene.publish({"B2": 4})
    pop = scene.modules["B1"]
    assert isinstance(pop, Pop)
    late = replace(first, sequence=99)
    pop.on_publication(late, Neighbour("B9"), [B2], 0.0)
    assert list(pop.on_letter(write(TraceResult(PUBLISHER, 98, 7)), B2, 0.0)) == []
    assert (PUBLISHER, 99) in pop._pending
    again = replace(late, advertisement=AdvertisementId(f"{PUBLISHER}/i2~a1"))
    pop.on_publication(again, Neighbour("B9"), [B2], 0.0)
    assert pop.on_letter(write(TraceResult(PUBLISHER, 99, 7)), B2, 0.0), "of the first start"
    assert (f"{PUBLISHER}/i2", 99) in pop._pending, "its next start uses the number again"
