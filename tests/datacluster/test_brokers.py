"""What brokers ask of the data cluster, over channels that are really executed."""

from __future__ import annotations

import pytest
from tests.datacluster.memory_snapshots import MemorySnapshots
from tests.datacluster.small_cluster import report

from godwit.api.datacluster_api import (
    CreateBroker,
    NoticesAfter,
    Pull,
    Pulled,
    PullFrom,
    Subscribe,
    Unsubscribe,
    Wanted,
)
from godwit.content.channel_messages import Position
from godwit.datacluster.channels.broker_service import BrokerService
from godwit.datacluster.channels.channel_service import ChannelService


@pytest.fixture
def desk(channels: ChannelService) -> BrokerService:
    return channels.brokers


def subscribe(desk: BrokerService, *kinds: str, broker: str = "A") -> list[int]:
    wanted = [Wanted(channel="OfType", arguments={"type": kind}) for kind in kinds]
    answer = desk.subscribe(Subscribe(broker=broker, subscriptions=wanted))
    ids = [granted.id for granted in answer.subscriptions]
    assert all(id is not None for id in ids)
    return [id for id in ids if id is not None]


def pull(
    desk: BrokerService, *starts: tuple[int, Position], limit_bytes: int = 10**6
) -> dict[int, Pulled]:
    pulls = [PullFrom(id=id, start=start) for id, start in starts]
    answer = desk.pull(Pull(broker="A", pulls=pulls, limit_bytes=limit_bytes))
    return {pulled.id: pulled for pulled in answer.pulled}


def seen(pulled: Pulled) -> list[tuple[int, int, list[object]]]:
    return [(r.execution, r.first, [row["id"] for row in r.rows]) for r in pulled.results]


def test_from_subscription_to_rows(
    desk: BrokerService, channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    assert desk.create_broker(CreateBroker(broker="A"), now_s=0.0).notices == 0
    fire, flood = subscribe(desk, "fire", "flood")
    report(snapshots, 1, 2)
    channels.execute("OfType", now_s=10.0)
    report(snapshots, 3, type="flood")
    channels.execute("OfType", now_s=20.0)
    report(snapshots, 4)
    channels.execute("OfType", now_s=30.0)
    notices = desk.notices(NoticesAfter(broker="A", after=0))
    assert [(n.execution, n.subscriptions) for n in notices.notices] == [
        (1, [fire]), (2, [flood]), (3, [fire])
    ]  # fmt: skip
    assert desk.notices(NoticesAfter(broker="A", after=notices.through)).notices == []
    found = pull(desk, (fire, (1, 0)), (flood, (1, 0)))
    assert seen(found[fire]) == [(1, 0, [1, 2]), (3, 0, [4])]
    assert seen(found[flood]) == [(2, 0, [3])]
    assert found[fire].end == found[flood].end == (4, 0)
    assert [r.executed_s for r in found[fire].results] == [10.0, 30.0]
    assert all(r.size_bytes > 0 for r in found[fire].results)


def test_a_pull_goes_on_from_any_row(
    desk: BrokerService, channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    (fire,) = subscribe(desk, "fire")
    report(snapshots, 1, 2, 3)
    channels.execute("OfType", now_s=10.0)
    assert seen(pull(desk, (fire, (1, 1)))[fire]) == [(1, 1, [2, 3])]
    assert seen(pull(desk, (fire, (1, 3)))[fire]) == []
    assert pull(desk, (fire, (1, 3)))[fire].end == (2, 0)
    assert pull(desk, (fire, (9, 0)))[fire].end == (9, 0)


def test_pulls_that_are_cut_short_lose_nothing(
    desk: BrokerService, channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    """However little is asked for at a time, each gets all of its rows, in order."""
    fire, flood = subscribe(desk, "fire", "flood")
    for execution in range(3):
        report(snapshots, *(10 * execution + k for k in range(4)))
        report(snapshots, 10 * execution + 5, type="flood")
        channels.execute("OfType", now_s=10.0 * execution)
    positions: dict[int, Position] = {fire: (1, 0), flood: (1, 0)}
    rows: dict[int, list[object]] = {fire: [], flood: []}
    for _ in range(100):
        for id, pulled in pull(desk, *positions.items(), limit_bytes=1).items():
            assert pulled.start == positions[id]
            assert pulled.end >= pulled.start
            positions[id] = pulled.end
            rows[id] += [each for *_, ids in seen(pulled) for each in ids]
    assert rows == {fire: [0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23], flood: [5, 15, 25]}
    assert set(positions.values()) == {(4, 0)}


def test_one_bad_wish_does_not_spoil_the_others(desk: BrokerService) -> None:
    wanted = [
        Wanted(channel="OfType", arguments={"type": "fire"}),
        Wanted(channel="OfType", arguments={"kind": "fire"}),
        Wanted(channel="Nonsense", arguments={}),
        Wanted(channel="oftype", arguments={"type": "x' OR '1'='1"}),
    ]
    answer = desk.subscribe(Subscribe(broker="A", subscriptions=wanted))
    good, bad, unknown, odd = answer.subscriptions
    assert good.id is not None
    assert odd.id is not None
    assert good.id != odd.id
    assert bad.id is None
    assert bad.error == "channel OfType needs the argument type"
    assert unknown.error == "there is no channel Nonsense"


def test_what_was_unsubscribed_is_unknown(desk: BrokerService) -> None:
    fire, flood = subscribe(desk, "fire", "flood")
    desk.unsubscribe(Unsubscribe(broker="A", ended=[fire], released=[flood]), now_s=0.0)
    pulls = [PullFrom(id=id, start=(1, 0)) for id in (fire, flood, 99)]
    answer = desk.pull(Pull(broker="A", pulls=pulls))
    assert answer.unknown == [fire, 99]
    assert [pulled.id for pulled in answer.pulled] == [flood]


def test_what_all_have_acknowledged_goes(
    desk: BrokerService, channels: ChannelService, snapshots: MemorySnapshots
) -> None:
    (fire,) = subscribe(desk, "fire")
    for execution in (1, 2):
        report(snapshots, execution)
        channels.execute("OfType", now_s=10.0 * execution)
    done = [PullFrom(id=fire, start=(2, 0))]
    desk.pull(Pull(broker="A", pulls=[], acknowledged=done))
    channels.tidy(now_s=30.0)
    assert seen(pull(desk, (fire, (1, 0)))[fire]) == [(2, 0, [2])]
