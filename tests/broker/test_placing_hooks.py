"""What modules may do about publishers: mark publications, write letters, advise, decide, ping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from godwit.broker.core import Broker
from godwit.broker.delays import Delays
from godwit.broker.effects import Decision, Notify, Ping, Report, Send
from godwit.broker.invariants import check_step
from godwit.broker.modules import (
    AskForPings,
    AskToMove,
    BrokerView,
    PolicyModule,
    Request,
    Timer,
    ToNeighbour,
)
from godwit.broker.routing import Place
from godwit.broker.stimuli import ClientLeft, Hop, LocalClient, Neighbour, Pinged, Received, Started
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Letter,
    MoveTo,
    Publication,
    Refusal,
)
from godwit.overlay.topology import chain
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.simulation.observers import Observer
from godwit.simulation.resources import BrokerResources, LinkOptions
from godwit.simulation.simulator import Simulator

B2 = Neighbour("B2")
PAUL = LocalClient("paul")
X = Filter.parse("x is present")


class Witness(PolicyModule):
    """Marks everything, notes everything, and answers with what it was given."""

    name = "witness"

    def __init__(self, *answers: Request) -> None:
        self.seen: list[object] = []
        self.answers = list(answers)

    def start(self, view: BrokerView, now_s: float) -> Iterable[Request]:
        self.view = view
        return self.answers

    def tag(self, publication: Publication, now_s: float) -> int:
        return 100 + publication.sequence

    def on_publication(
        self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
    ) -> Iterable[Request]:
        self.seen.append(publication.mark(self.name))
        if isinstance(last_hop, Neighbour):
            return [ToNeighbour(last_hop, b"%d" % publication.sequence)]
        return ()

    def on_letter(self, body: bytes, neighbour: Neighbour, now_s: float) -> Iterable[Request]:
        self.seen.append((neighbour.name, body))
        return ()

    def on_publisher_arrived(self, client: str, now_s: float) -> Iterable[Request]:
        self.seen.append(f"{client} arrived")
        return ()

    def on_arrived(self, client: str, session: str, now_s: float) -> Iterable[Request]:
        self.seen.append(f"{client} has moved here with {session!r}")
        return ()

    def on_departed(self, client: str, now_s: float) -> Iterable[Request]:
        self.seen.append(f"{client} departed")
        return ()

    def on_pinged(
        self, client: str, round_trips_s: dict[str, float], now_s: float
    ) -> Iterable[Request]:
        self.seen.append((client, round_trips_s, now_s))
        return ()


def one_broker(*answers: Request, address: str = "") -> tuple[Broker, Witness]:
    witness = Witness(*answers)
    return Broker(
        "B1", routing=TreeRouting(Place.of("B1", ["B2"])), modules=[witness], address=address
    ), witness


def test_what_a_module_asks_for() -> None:
    decision = Decision("asked", "paul", "B1", "B9", {"why": 1.0})
    broker, _ = one_broker(
        ToNeighbour(B2, b"hello"),
        AskToMove("paul", "B9", "host:1"),
        AskForPings("paul", (("B9", "host:1"),)),
        decision,
    )
    assert broker.handle(Started(), now_s=0.0) == [
        Send(B2, Letter(module="witness", body=b"hello")),
        Notify(PAUL, MoveTo(broker="B9", address="host:1")),
        Ping("witness", "paul", (("B9", "host:1"),)),
        Report("witness", decision),
    ]


def test_a_module_knows_its_brokers_address_and_delays() -> None:
    broker, witness = one_broker(address="host:7")
    broker.handle(Started(), now_s=0.0)
    assert witness.view.address == "host:7"
    assert witness.view.delays is broker.delays


def test_a_letter_reaches_the_module_of_that_name_and_no_router() -> None:
    broker, witness = one_broker()
    assert broker.handle(Received(Letter(module="witness", body=b"a"), B2), now_s=0.0) == []
    assert broker.handle(Received(Letter(module="absent", body=b"b"), B2), now_s=0.0) == []
    assert witness.seen == [("B2", b"a")]


def test_a_client_cannot_write_letters() -> None:
    broker, witness = one_broker()
    (answer,) = broker.handle(Received(Letter(module="witness", body=b""), PAUL), now_s=0.0)
    assert isinstance(answer, Notify)
    assert isinstance(answer.notice, Refusal)
    assert not witness.seen


def test_what_a_client_found_by_pinging_comes_back() -> None:
    broker, witness = one_broker()
    broker.handle(Pinged("witness", "paul", {"B9": 0.25}), now_s=3.0)
    assert witness.seen == [("paul", {"B9": 0.25}, 3.0)]


def test_each_module_has_a_mark_of_its_own() -> None:
    class Another(Witness):
        name = "another"

        def tag(self, publication: Publication, now_s: float) -> int:
            return 100 + publication.sequence

    class Silent(PolicyModule):
        name = "silent"

    witness, another, silent = Witness(), Another(), Silent()
    modules = [witness, another, silent]
    broker = Broker("B1", routing=TreeRouting(Place.of("B1", [])), modules=modules)
    assert (witness.tags, another.tags, silent.tags) == (True, True, False)
    advertisement = Advertisement(id=AdvertisementId("paul/a1"), filter=Filter.parse("x > 0"))
    broker.handle(Received(advertisement, LocalClient("paul")), now_s=0.0)
    publication = Publication(
        publisher="paul", sequence=7, advertisement=advertisement.id, content={"x": 1}
    )
    broker.handle(Received(publication, LocalClient("paul")), now_s=1.0)
    assert witness.seen[-1] == witness.tag(publication, 1.0) != 0
    assert another.seen[-1] == 107


def test_a_module_that_overrides_nothing_does_nothing() -> None:
    class Silent(PolicyModule):
        name = "silent"

    silent = Silent()
    assert [
        *silent.on_letter(b"", B2, 0.0),
        *silent.on_timer("tick", 0.0),
        *silent.on_arrived("paul", "", 0.0),
        *silent.on_publisher_arrived("paul", 0.0),
        *silent.on_departed("paul", 0.0),
        *silent.on_pinged("paul", {}, 0.0),
    ] == []


def test_an_answer_to_where_a_publication_came_from_does_not_break_r1() -> None:
    broker, _ = one_broker()
    publication = Publication(
        publisher="p", sequence=4, advertisement=AdvertisementId("p/a"), content={"x": 1}
    )
    received = Received(publication, B2)
    effects = broker.handle(received, now_s=0.0)
    assert effects == [Send(B2, Letter(module="witness", body=b"4"))]
    check_step(broker, received, effects)
    with pytest.raises(AssertionError, match="R1"):
        check_step(broker, received, [Send(B2, publication)])


# -- publishers that come and go -----------------------------------------------------------------


def advertisement(edition: int, name: str = "a1") -> Advertisement:
    return Advertisement(id=AdvertisementId(f"paul/{name}"), filter=X, edition=edition)


def test_a_publisher_that_moves_here_and_away_again() -> None:
    broker, witness = one_broker()
    broker.handle(Received(advertisement(0), B2), now_s=0.0)
    broker.handle(Received(advertisement(1), PAUL), now_s=1.0)
    assert witness.seen == ["paul arrived"]

    id = advertisement(0).id
    broker.handle(Received(AdvertisementInEffect(id=id, edition=1), B2), now_s=2.0)
    broker.handle(Received(advertisement(2), B2), now_s=3.0)
    assert witness.seen == ["paul arrived", "paul departed"]


def test_a_publisher_has_departed_when_all_its_advertisements_have() -> None:
    broker, witness = one_broker()
    for name in ("a1", "a2"):
        broker.handle(Received(advertisement(0, name), PAUL), now_s=0.0)
        confirmed = AdvertisementInEffect(id=advertisement(0, name).id)
        broker.handle(Received(confirmed, B2), now_s=0.0)
    broker.handle(Received(advertisement(1, "a1"), B2), now_s=1.0)
    assert witness.seen == []
    broker.handle(Received(advertisement(1, "a2"), B2), now_s=1.0)
    assert witness.seen == ["paul departed"]


def test_a_client_that_leaves_has_departed_and_one_that_comes_has_not_arrived() -> None:
    broker, witness = one_broker()
    broker.handle(Received(advertisement(0), PAUL), now_s=0.0)
    assert witness.seen == []
    broker.handle(ClientLeft(PAUL), now_s=1.0)
    assert witness.seen == ["paul departed"]


# -- in the simulator ----------------------------------------------------------------------------


def test_letters_do_not_overtake_publications_nor_are_overtaken() -> None:
    """B2 is slow and links are erratic; a letter follows each of a hundred publications."""

    class Writes(Witness):
        def on_publication(
            self, publication: Publication, last_hop: Hop, destinations: Sequence[Hop], now_s: float
        ) -> Iterable[Request]:
            self.seen.append(publication.sequence)
            neighbours = [hop for hop in destinations if isinstance(hop, Neighbour)]
            return [ToNeighbour(hop, b"%d" % publication.sequence) for hop in neighbours]

    modules = {name: Writes() for name in chain(2).brokers}
    simulator = Simulator(
        chain(2),
        seed=1,
        modules=lambda name: [modules[name]],
        resources=BrokerResources(cpu_speed=1.0, matching_work_base=0.2),
        link=LinkOptions(latency_s_min=0.0, latency_s_mean=0.5),
    )
    simulator.client("alice", at="B2").subscribe(X)
    paul = simulator.client("paul", at="B1")
    id = paul.advertise(X)
    for number in range(100):
        simulator.at(5.0 + 0.01 * number, paul.publish, id, {"x": number})
    simulator.run()

    expected = [each for n in range(100) for each in (n, ("B1", b"%d" % n))]
    assert modules["B2"].seen == expected


class Advises(Witness):
    """Tells a client to move, three seconds after the start, and pings on the way."""

    def __init__(self, client: str, target: str) -> None:
        super().__init__(Timer("now", 3.0))
        self._advice = AskToMove(client, target, "", session="round 7")
        self._pings = AskForPings(client, (("B1", ""), ("B2", "")))

    def on_timer(self, name: str, now_s: float) -> Iterable[Request]:
        return [self._advice, self._pings]


class Moves(Observer):
    def __init__(self) -> None:
        self.moves: list[tuple[str, str, str]] = []
        self.pauses_s: list[float] = []

    def on_moved(
        self, client: str, source: str, target: str, took_s: float, paused_s: float, now_s: float
    ) -> None:
        self.moves.append((client, source, target))
        self.pauses_s.append(paused_s)
        assert 0.0 <= paused_s <= took_s


def advised(
    *, subscribes: bool = False, target: str = "B2"
) -> tuple[Simulator, dict[str, Witness], Moves]:
    modules: dict[str, Witness] = {"B1": Advises("paul", target), "B2": Witness()}
    moves = Moves()
    link = LinkOptions(latency_s_min=0.01, latency_s_mean=0.01)
    simulator = Simulator(
        chain(2), seed=1, modules=lambda name: [modules[name]], observers=[moves], link=link
    )
    paul = simulator.client("paul", at="B1")
    paul.advertise(X)
    if subscribes:
        paul.subscribe(Filter.parse("y > 1"))
    simulator.run()
    return simulator, modules, moves


def test_a_publisher_takes_the_advice_to_move() -> None:
    simulator, modules, moves = advised()
    assert moves.moves == [("paul", "B1", "B2")]
    # Pause, answer, advertisement, turn and back, answer: six times 10 ms, and a little.
    assert moves.pauses_s[0] == pytest.approx(0.06, rel=0.1)
    assert "paul departed" in modules["B1"].seen
    assert "paul arrived" in modules["B2"].seen
    assert simulator.clients["paul"].home.broker == "B2"


def test_a_subscriber_takes_the_advice_to_move() -> None:
    _, modules, moves = advised(subscribes=True)
    assert moves.moves == [("paul", "B1", "B2")]
    assert modules["B2"].seen[-1] == "paul has moved here with 'round 7'"


def test_advice_to_stay_is_no_move() -> None:
    assert advised(target="B1")[2].moves == []


def test_pings_take_a_round_trip_and_are_one() -> None:
    _, modules, _ = advised()
    (pinged,) = (each for each in modules["B1"].seen if isinstance(each, tuple))
    assert pinged[0] == "paul"
    assert pinged[1] == {"B1": pytest.approx(0.02), "B2": pytest.approx(0.02)}
    assert pinged[2] == pytest.approx(3.04)


def test_delays_of_a_broker_are_what_was_modelled() -> None:
    """Ten at once: the engine takes 10 ms for each, the n-th waits for n - 1 others."""
    resources = BrokerResources(
        cpu_speed=1.0,
        matching_work_base=0.01,
        matching_work_per_subscription=0.0,
        output_bandwidth_bytes_s=1000.0,
    )
    simulator = Simulator(chain(1), seed=1, modules=lambda _: [Witness()], resources=resources)
    simulator.client("alice", at="B1").subscribe(X)
    paul = simulator.client("paul", at="B1")
    id = paul.advertise(X)
    simulator.run()
    delays = simulator.brokers["B1"].broker.delays = Delays()  # Without what came before.
    for _ in range(10):
        paul.publish(id, {"x": 1})
    simulator.run()

    assert delays.matching_s.value == pytest.approx(0.01)
    assert delays.input_queue_s.value == pytest.approx(0.01 * 4.5)
    # 44 bytes each at 1,000 bytes/s: the n-th leaves 44 ms after the one before, and was ready 10.
    assert delays.to_clients_s.value == pytest.approx(0.044 + 4.5 * (0.044 - 0.010))
    assert delays.to_neighbours_s.value == 0.0


def test_a_running_mean_starts_as_a_plain_one_and_forgets_slowly() -> None:
    delays = Delays()
    for value in (1.0, 2.0, 3.0):
        delays.matching_s.add(value)
    assert delays.matching_s.value == pytest.approx(2.0)
    for _ in range(500):
        delays.matching_s.add(10.0)
    assert delays.matching_s.value == pytest.approx(10.0, rel=0.01)
