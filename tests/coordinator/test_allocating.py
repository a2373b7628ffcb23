"""A plan as a change: its steps, what is refused, expected loads; and its record: allocating.py."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.coordinator.test_change_records import ME, Book
from tests.coordinator.test_change_rules import account, circumstances

from godwit.api.network_api import (
    BrokerLoad,
    ChangeKind,
    ChangeRequest,
    ChangeState,
    ChangeStep,
    LinkView,
    StepKind,
    StepState,
)
from godwit.content.link_messages import NetworkShape
from godwit.coordinator.allocating import (
    allocation_steps,
    check_allocation,
    expected_loads,
    planned_moves,
    tree_of,
)
from godwit.coordinator.change_rules import Circumstances
from godwit.coordinator.stragglers import behind, departed, last_shape, waiting
from godwit.http.errors import RestError
from godwit.migration.reshaping import ReshapingRecord, ReshapingStage

#: B1 - B2 - B3, as `circumstances` has it.
CHAIN = frozenset({("B1", "B2"), ("B2", "B3")})


def request(*brokers: str, **fields: object) -> ChangeRequest:
    return ChangeRequest(kind=ChangeKind.ALLOCATE, brokers=list(brokers), **fields)  # type: ignore[arg-type]


def texts(steps: list[ChangeStep]) -> list[str]:
    return [f"{step.kind.value} {step.broker}" for step in steps]


def now(**fields: object) -> Circumstances:
    return circumstances(**{"links": CHAIN, **fields})


def test_brokers_that_are_not_needed_are_leaves_until_they_leave() -> None:
    wanted = request("B2", "B3", link="B3", links=[("B2", "B3")], clients={"alice": "B3"})
    steps = allocation_steps(wanted, now())
    assert texts(steps) == ["reshape the network", "move the network", "drain B1", "leave B1"]
    assert steps[0].members == ["B2", "B3", "B1"]
    assert steps[0].links == [("B2", "B3"), ("B3", "B1")]


def test_brokers_that_are_kept_do_not_leave() -> None:
    wanted = request("B2", "B3", link="B2", links=[("B2", "B3")], keeps=True)
    assert texts(allocation_steps(wanted, now())) == ["drain B1"], "the tree is as it was"


def test_a_broker_that_does_not_run_is_started_before_the_tree_changes() -> None:
    links = [("B1", "B2"), ("B2", "B3"), ("B9", "B1")]
    steps = allocation_steps(request("B1", "B2", "B3", "B9", links=links), now())
    assert texts(steps) == ["start B9", "reshape the network"]


def test_a_broker_that_was_idle_admits_clients_again() -> None:
    accounts = {**now().accounts, "B3": account("B3", "B2", is_draining=True)}
    wanted = request("B1", "B2", "B3", links=sorted(CHAIN))
    assert texts(allocation_steps(wanted, now(accounts=accounts))) == ["undrain B3"]


def test_one_broker_is_enough() -> None:
    assert tree_of(request("B2"), ["B1", "B2", "B3"]) == [("B2", "B1"), ("B2", "B3")]
    check_allocation(request("B2"), now())


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        (request("B1", "B2", link="B7", links=[("B1", "B2")]), "the root B7 is not a broker"),
        (request("B1", "B2"), "0 links between 2 brokers are not a tree"),
        (request("B1", "B2", links=[("B1", "B3")]), "are not a tree"),
        (request("B1", "B2", links=[("B1", "B1")]), "B1 is linked to itself"),
        (request("B1", clients={"alice": "B2"}), "clients are planned for B2"),
        (request("B1", "B9", links=[("B1", "B9")]), "godwit broker --config FILE --id B9"),
        (request("B1", clients=dict.fromkeys(map(str, range(101)), "B1")), "which admits 100"),
    ],
    ids=["root", "no links", "strange link", "loop", "strange broker", "stopped", "full"],
)
def test_what_is_refused(wanted: ChangeRequest, says: str) -> None:
    with pytest.raises(RestError, match=says):
        check_allocation(wanted, now())


def test_a_broker_that_can_be_started_is_not_refused() -> None:
    wanted = request("B1", "B9", links=[("B1", "B9")])
    check_allocation(wanted, now(startable=frozenset({"B9"})))


def test_a_link_that_is_away_has_to_come_back() -> None:
    lost = account("B1", links=[LinkView("B2", "away")])
    with pytest.raises(RestError, match="the link B1 - B2 is away"):
        check_allocation(request("B2"), now(accounts={**now().accounts, "B1": lost}))


def test_a_broker_that_is_behind_is_told_the_shape_without_those_that_have_left() -> None:
    links = (("B1", "B2"), ("B2", "B3"), ("B3", "B4"))
    addresses = dict.fromkeys(("B1", "B2", "B3", "B4"), "godwit://h:1")
    shape = NetworkShape(epoch=2, links=links, addresses=addresses)
    record = ReshapingRecord(change="c", shape=shape, stage=ReshapingStage.DONE)
    book = Book()
    assert last_shape(book.changes.latest(9), ["B1"]) is None
    begun(book, request("B2", "B3", link="B3", links=[("B2", "B3")]), now())
    book.changes.note(0, reshaping=record)
    found = last_shape(book.changes.latest(9), ["B1", "B2", "B3"])
    assert found is not None
    assert found.shape.links == links[:2]
    accounts = {"B1": account("B1", epoch=2), "B3": account("B3"), "B9": account("B9")}
    assert behind(accounts, found) == ["B3", "B9"], "B9 has to learn that it is not part of it"


def test_a_broker_that_waits_for_one_that_has_left_is_reminded() -> None:
    book = Book()
    begun(book, request("B2", "B3", link="B3", links=[("B2", "B3")]), now())
    assert departed(book.changes.latest(9), {"B2", "B3"}) == set()
    book.changes.end_step(2, StepState.DONE, "has left", 2.0)
    assert departed(book.changes.latest(9), {"B2", "B3"}) == {"B1"}
    accounts = {"B2": account("B2", awaited=["B1", "B3"]), "B3": account("B3")}
    assert waiting(accounts, {"B1"}) == [("B2", "B1")]


def test_a_broker_that_has_left_and_was_started_again_is_not_part_of_the_shape() -> None:
    book = Book()
    begun(book, request("B2", "B3", link="B3", links=[("B2", "B3")]), now())
    links = (("B1", "B3"), ("B2", "B3"))
    shape = NetworkShape(epoch=2, links=links, addresses=dict.fromkeys(("B1", "B2", "B3"), "x"))
    building = ReshapingRecord(change="c", shape=shape)
    book.changes.note(0, reshaping=replace(building, stage=ReshapingStage.DONE))
    book.changes.end_step(2, StepState.DONE, "has left", 2.0)
    changes, brokers = book.changes.latest(9), ["B1", "B2", "B3"]
    found = last_shape(changes, brokers)
    assert found is not None
    assert list(found.shape.brokers) == ["B2", "B3"]
    assert departed(changes, brokers) == {"B1"}, "those that wait for it are reminded"
    book.changes.end(ChangeState.DONE, "", {}, 3.0)
    begun(book, request("B1", "B2", "B3", link="B3", links=list(links)), now())
    book.changes.note(0, reshaping=building)
    assert departed(book.changes.latest(9), brokers) == set(), "it may be part of it just now"
    book.changes.note(0, reshaping=replace(building, stage=ReshapingStage.DONE))
    found = last_shape(book.changes.latest(9), brokers)
    assert found is not None
    assert set(found.shape.brokers) == {"B1", "B2", "B3"}


def test_expected_loads_are_those_of_the_plan() -> None:
    wanted = request("B1", clients={"alice": "B1", "gone": "B1"}, outputs={"B1": 7.0})
    homes = {"alice": "B2", "bob": "B3", "carol": "B1"}
    assert planned_moves(wanted, homes) == {"alice": "B1"}
    loads = expected_loads(wanted, homes, {"bob": "B1"})
    assert loads == {"B1": BrokerLoad(clients=3, output_bytes_per_s=7.0)}


# -- its record --------------------------------------------------------------------------------


def begun(book: Book, wanted: ChangeRequest, before: Circumstances) -> list[ChangeStep]:
    steps = allocation_steps(wanted, before)
    book.changes.begin(wanted, ME, 1.0, before={}, expected={}, steps=steps)
    return steps


def test_a_broker_that_is_started_gets_no_newcomers_before_it_is_in_the_tree() -> None:
    book = Book()
    links = [("B1", "B2"), ("B2", "B3"), ("B9", "B1")]
    begun(book, request("B1", "B2", "B3", "B9", links=links), now())
    assert book.changes.awaited == book.changes.joining == {"B9"}
    book.changes.end_step(0, StepState.DONE, "runs", 2.0)
    assert not book.changes.awaited
    assert book.changes.joining == {"B9"}
    book.changes.end_step(1, StepState.DONE, "", 3.0)
    assert not book.changes.joining


def test_brokers_that_a_plan_has_emptied_and_kept_stay_drained() -> None:
    book = Book()
    begun(book, request("B2", "B3", links=[("B2", "B3")], keeps=True), now())
    assert not book.changes.drained
    book.changes.end(ChangeState.DONE, "", {}, 2.0)
    assert book.changes.drained == {"B1"}
    begun(book, request("B1", "B2", "B3", links=sorted(CHAIN)), now())
    book.changes.end(ChangeState.DONE, "", {}, 2.0)
    assert not book.changes.drained


def test_a_plan_can_be_taken_back_behind_the_change_of_the_tree() -> None:
    book = Book()
    wanted = request("B2", "B3", link="B3", links=[("B2", "B3")], clients={"alice": "B3"})
    steps = begun(book, wanted, now())
    assert steps[1].kind is StepKind.MOVE
    book.changes.end_step(0, StepState.DONE, "", 2.0)
    assert book.changes.abort().state is ChangeState.TAKING_BACK
