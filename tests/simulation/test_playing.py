"""A workload played in the simulator does what it says, when it says so, one thing ahead."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.content.filters import Filter
from godwit.content.messages import Publication, Subscription, SubscriptionId
from godwit.overlay.topology import chain
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Simulator
from godwit.workloads.clients import Publisher, Subscriber
from godwit.workloads.timelines import Join, Leave, RateStep
from godwit.workloads.workload import Workload


class Diary(Observer):
    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []
        self.delivered: list[tuple[str, int]] = []

    def on_subscribing(self, client: str, subscription: Subscription, now_s: float) -> None:
        self.lines.append((now_s, f"{client} joins"))

    def on_unsubscribing(self, client: str, id: SubscriptionId, now_s: float) -> None:
        self.lines.append((now_s, f"{client} leaves"))

    def on_published(self, publication: Publication, now_s: float) -> None:
        self.lines.append((now_s, f"{publication.content['n']} is published"))

    def on_delivered(
        self, clients: Sequence[str], publication: Publication, hops: int, now_s: float
    ) -> None:
        number = publication.content["n"]
        assert isinstance(number, int)
        self.delivered += [(client, number) for client in clients]


def counting(per_min: float) -> Workload:
    """One publisher that counts."""
    numbers = iter(range(1_000_000))
    paul = Publisher(
        name="paul", at="B1", advertisement=Filter.parse("n is present"), subject="n",
        publications_per_min=per_min,
    )  # fmt: skip
    return Workload(
        publishers=(paul,), subscribers=(), content=lambda _publisher: {"n": next(numbers)}
    )


ALICE = Subscriber(name="alice", at="B3", filter=Filter.parse("n >= 0"))
BOB = Subscriber(name="bob", at="B2", filter=Filter.parse("n = 3"))


def test_everybody_acts_at_the_time_that_is_written() -> None:
    diary = Diary()
    simulator = Simulator(chain(3), seed=1, observers=(diary,))
    timeline = (Join(2.0, ALICE), Join(3.5, BOB), RateStep(11.0, "paul", 30.0), Leave(13.5, "bob"))

    play(simulator, counting(60.0), timeline, from_s=10.0, until_s=18.0)
    simulator.run(until_s=20.0)

    assert diary.lines == [
        (2.0, "alice joins"),
        (3.5, "bob joins"),
        (10.0, "0 is published"),
        (11.0, "1 is published"),
        (13.0, "2 is published"),
        (13.5, "bob leaves"),
        (15.0, "3 is published"),
        (17.0, "4 is published"),
    ]
    assert diary.delivered == [("alice", number) for number in range(5)]


def test_a_long_play_is_not_planned_at_once() -> None:
    simulator = Simulator(chain(3), seed=1)
    play(simulator, counting(600.0), [Join(0.5 * n, sub(n)) for n in range(200)], until_s=1e9)

    most = 0
    for second in range(1, 101):
        simulator.run(until_s=float(second))
        most = max(most, len(simulator.agenda))
    assert len(simulator.clients) == 201
    # The next join, the next publication, and what is under way at this moment.
    assert most < 20


def sub(number: int) -> Subscriber:
    return Subscriber(name=f"s{number}", at="B3", filter=Filter.parse(f"n > {number}"))
