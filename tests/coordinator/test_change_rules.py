"""Which changes are possible, and where clients go: change_rules.py, change_targets.py."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
import pytest

from godwit.api.network_api import (
    Authority,
    BrokerAccount,
    BrokerLoad,
    ChangeKind,
    ChangeRequest,
    LinkView,
    StepKind,
)
from godwit.coordinator.change_requests import steps_for
from godwit.coordinator.change_rules import Circumstances, check_change
from godwit.coordinator.change_targets import RenewedTargets, Targets, loads_after, serving
from godwit.http.errors import RestError

ME, OTHER = Authority(3, "me"), Authority(4, "other")


def account(broker: str, *links: str, **fields: object) -> BrokerAccount:
    usual = {
        "start": "s", "pid": 1, "started_s": 0.0, "url": f"godwit://h:{broker[1:]}",
        "is_supervised": True, "clients": 5, "clients_max": 100,
        "links": [LinkView(link, "up") for link in links],
    }  # fmt: skip
    return BrokerAccount(broker=broker, **{**usual, **fields})  # type: ignore[arg-type]


def circumstances(**fields: object) -> Circumstances:
    """B1 - B2 - B3, all well."""
    accounts = {
        "B1": account("B1", "B2"),
        "B2": account("B2", "B1", "B3"),
        "B3": account("B3", "B2"),
    }
    usual = {
        "authority": ME,
        "known": dict.fromkeys(accounts, "http://h:1"),
        "live": frozenset(accounts),
        "accounts": accounts,
        "room": 50,
    }
    return Circumstances(**{**usual, **fields})  # type: ignore[arg-type]


def changed(broker: str, **fields: object) -> Mapping[str, BrokerAccount]:
    accounts = dict(circumstances().accounts)
    accounts[broker] = msgspec.structs.replace(accounts[broker], **fields)
    return accounts


def request(kind: str, *brokers: str, **fields: object) -> ChangeRequest:
    return ChangeRequest(kind=ChangeKind(kind), brokers=list(brokers), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "asked",
    [
        request("drain", "B2"),
        request("drain", "B3", to=["B1"]),
        request("undrain", "B3"),
        request("leave", "B3"),
        request("restart", "B1", "B2", "B3"),
        request("join", "B4", link="B1"),
    ],
)
def test_what_is_possible(asked: ChangeRequest) -> None:
    check_change(asked, circumstances())


@pytest.mark.parametrize(
    ("asked", "now", "status", "says"),
    [
        pytest.param(
            request("drain", "B9"), circumstances(), 404, "there is no broker 'B9'; there are:",
            id="an unknown broker",
        ),
        pytest.param(
            request("drain", "B3", to=["B9"]), circumstances(), 404, "to: there is no broker",
            id="an unknown target",
        ),
        pytest.param(
            request("drain", "B3", to=["B3"]), circumstances(), 400, "cannot move to B3",
            id="itself as a target",
        ),
        pytest.param(
            request("drain", "B3"), circumstances(live=frozenset({"B1", "B2"})), 409, "is silent",
            id="a silent broker",
        ),
        pytest.param(
            request("undrain", "B3"), circumstances(known={"B3": None}), 409, "no HTTP address",
            id="a broker without HTTP",
        ),
        pytest.param(
            request("drain", "B3"), circumstances(room=4), 409, "room for 4",
            id="no room for its clients",
        ),
        pytest.param(
            request("drain", "B2", "B3"), circumstances(), 400, "one broker", id="two at once",
        ),
        pytest.param(
            request("leave", "B2"), circumstances(), 409, "not a leaf: it links B1, B3",
            id="a broker in the middle leaves",
        ),
        pytest.param(
            request("restart", "B1", "B3"),
            circumstances(accounts=changed("B3", is_supervised=False)),
            409, "nothing is known to start B3 again", id="a restart without a supervisor",
        ),
        pytest.param(
            request("restart", "B1", "B1"), circumstances(), 400, "named twice", id="twice",
        ),
        pytest.param(
            request("join", "B3", link="B1"), circumstances(), 409, "a broker B3 already",
            id="a name in use",
        ),
        pytest.param(
            request("join", "B4"), circumstances(), 400, "which broker it links to",
            id="a join without a link",
        ),
        pytest.param(
            request("join", "B4", link="B7"), circumstances(), 404, "no broker 'B7'",
            id="a join with an unknown neighbour",
        ),
        pytest.param(
            request("drain", "B3"), circumstances(accounts=changed("B1", authority=OTHER)),
            409, "obey another coordinator", id="another coordinator is in charge",
        ),
        pytest.param(
            request("drain", "B3"),
            circumstances(accounts=changed("B1", authority=Authority(3, "twin"))),
            409, "obey another coordinator", id="another one with the same number",
        ),
    ],
)  # fmt: skip
def test_what_is_not(asked: ChangeRequest, now: Circumstances, status: int, says: str) -> None:
    with pytest.raises(RestError) as refused:
        check_change(asked, now)
    assert refused.value.status == status
    assert says in str(refused.value)


def test_a_restart_without_draining_needs_no_room_and_a_take_over_no_consent() -> None:
    check_change(request("restart", "B1", drains=False), circumstances(room=0))
    now = circumstances(accounts=changed("B1", authority=OTHER))
    check_change(request("drain", "B3", take_over=True), now)


def test_clients_go_to_brokers_that_serve_and_have_room() -> None:
    accounts = {
        "B1": account("B1", clients=98),
        "B2": account("B2", is_draining=True),
        "B3": account("B3", is_ready=False),
        "B4": account("B4"),
        "B5": account("B5"),
        "B6": account("B6", clients=99, clients_away=1),
    }
    live = [name for name in accounts if name != "B5"]
    there = serving(accounts, live=live, closed={"B9"})
    assert [each.broker for each in there] == ["B1", "B4", "B6"]
    targets = Targets(there, lambda _client, free, _loads, turn: free[turn % len(free)])
    assert targets.room == 2 + 95
    taken = [targets.take(f"c{n}") for n in range(98)]
    assert (taken.count("B1"), taken.count("B4"), taken.count(None)) == (2, 95, 1)
    assert [each.broker for each in serving(accounts, live=live, closed=(), only=["B4"])] == ["B4"]


def test_a_client_avoids_a_broker_only_if_there_is_another() -> None:
    targets = Targets([account("B1"), account("B2")], lambda _c, free, _l, _t: free[0])
    assert targets.take("ann", {"B1"}) == "B2"
    assert targets.take("ann", {"B1", "B2"}) == "B1"


def test_expected_loads_move_with_the_clients() -> None:
    before = {
        "B1": BrokerLoad(clients=4, output_bytes_per_s=400.0),
        "B2": BrokerLoad(clients=1, output_bytes_per_s=10.0),
    }
    after = loads_after(before, "B1", {"ann": "B2", "bob": "B2", "cid": "B3"})
    assert {name: (load.clients, load.output_bytes_per_s) for name, load in after.items()} == {
        "B1": (1, 100.0), "B2": (3, 210.0), "B3": (1, 100.0),
    }  # fmt: skip


CHAIN = [("B1", "B3"), ("B3", "B2")]


def test_another_tree_of_all_brokers_is_possible() -> None:
    check_change(request("reshape", "B1", "B2", "B3", links=CHAIN), circumstances())


TWO_CLUSTERS = {"brokers": ("B1", "B2", "B3"), "clusters": 2}


def test_another_overlay_may_be_asked_for() -> None:
    three = ("B1", "B2", "B3")
    for fields in (
        {"overlay": "mesh", "settings": {"delta": 3}, "links": CHAIN},
        {"overlay": "clusters", "settings": TWO_CLUSTERS, "links": [*CHAIN, ("B1", "B2")]},
    ):
        check_change(request("reshape", *three, **fields), circumstances())


@pytest.mark.parametrize(
    ("overlay", "settings", "links", "reason"),
    [
        ("star", {}, [("B1", "B2"), ("B2", "B3")], "no overlay 'star'"),
        ("mesh", {"delta": 0}, [("B1", "B2"), ("B2", "B3")], "the settings of the mesh"),
        ("mesh", {}, [("B1", "B2")], "1 links between 3"),
        ("clusters", TWO_CLUSTERS, [("B1", "B2"), ("B2", "B3")], "not those of its clusters"),
    ],
)
def test_an_overlay_must_fit_its_links_and_settings(
    overlay: str, settings: dict[str, object], links: list[tuple[str, str]], reason: str
) -> None:
    asked = request("reshape", "B1", "B2", "B3", overlay=overlay, settings=settings, links=links)
    with pytest.raises(RestError, match=reason):
        check_change(asked, circumstances())


@pytest.mark.parametrize(
    ("brokers", "links", "refusal"),
    [
        pytest.param(("B1", "B3"), CHAIN[:1], "leave out B2", id="a broker is left out"),
        pytest.param(("B1", "B2", "B3"), CHAIN[:1], "1 links between 3", id="in two parts"),
        pytest.param(("B1", "B2", "B3"), [*CHAIN, ("B1", "B2")], "3 links between 3", id="a cycle"),
        pytest.param(
            ("B1", "B2", "B3"), [("B1", "B9"), ("B1", "B2")], "no broker 'B9'", id="an unknown end"
        ),
        pytest.param(("B1", "B2", "B3"), [("B1", "B1"), ("B1", "B2")], "to itself", id="to itself"),
        pytest.param(("B1", "B2", "B3", "B9"), CHAIN, "there is no broker 'B9'", id="unknown"),
    ],
)
def test_what_is_not_a_tree_of_all_brokers_is_refused(
    brokers: tuple[str, ...], links: list[tuple[str, str]], refusal: str
) -> None:
    with pytest.raises(RestError, match=refusal):
        check_change(request("reshape", *brokers, links=links), circumstances())


def test_only_another_shape_has_links() -> None:
    with pytest.raises(RestError, match="only another shape has links"):
        check_change(request("undrain", "B1", links=CHAIN), circumstances())


def test_a_broker_joins_a_later_epoch_only_if_the_tree_is_whole() -> None:
    accounts, links = changed("B2", epoch=1), frozenset({("B1", "B2"), ("B2", "B3")})
    with pytest.raises(RestError, match="a link of the network is not up"):
        check_change(request("join", "B9", link="B1"), circumstances(accounts=accounts))
    now = circumstances(accounts=accounts, links=links)
    check_change(request("join", "B9", link="B1"), now)
    steps = steps_for(request("join", "B9", link="B1"), now)
    assert [step.kind for step in steps] == [StepKind.JOIN, StepKind.RESHAPE]
    assert steps[1].links == [*sorted(links), ("B1", "B9")]
    assert len(steps_for(request("join", "B9", link="B1"), circumstances())) == 1


def test_a_broker_that_is_restarted_when_the_moves_begin_is_a_target_later() -> None:
    there: list[BrokerAccount] = []
    targets = RenewedTargets(lambda: Targets(there, lambda _c, free, _l, _t: free[0]))
    assert targets.take("ann") is None
    there.append(account("B2"))
    assert targets.take("ann") == "B2"
