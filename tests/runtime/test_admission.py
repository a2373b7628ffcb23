"""The door of a broker for connections: who comes in, who does not, and what they hear."""

from __future__ import annotations

import msgspec
import pytest
from tests.asynchronous import run
from tests.protocol.transports import FakeTransport

from godwit.broker.stimuli import LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, Subscription, SubscriptionId
from godwit.protocol.connection import Connection
from godwit.protocol.frames import (
    Acknowledge,
    Goodbye,
    Hello,
    Welcome,
    decode_to_client,
    decode_welcome,
    encode,
    encode_body,
    framed,
)
from godwit.runtime.admission import Admission
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.server import make_node
from godwit.runtime.settings import BrokerSettings, Limits, NetworkSettings

ALICE = Hello(role="client", name="alice")
SECRET = "open sesame"  # noqa: S105
B2 = Hello(role="broker", name="B2", secret=SECRET)
SUBSCRIPTION = Subscription(id=SubscriptionId("alice/s1"), filter=Filter.parse("x > 1"))


def node(*neighbours: str, **limits: float) -> BrokerNode:
    network = NetworkSettings(
        broker=[BrokerSettings(id="B1"), *(BrokerSettings(id=n, links=["B1"]) for n in neighbours)],
        secret=SECRET,
        limits=Limits(**limits),  # type: ignore[arg-type]
    )
    return make_node(network, network.of("B1"))


class Caller:
    """A connection to a broker, from the side of the caller."""

    def __init__(self, broker: BrokerNode) -> None:
        self.transport = FakeTransport()
        self.connection: Connection = Admission(broker).connection
        self.connection.connection_made(self.transport)

    def say(self, data: bytes) -> list[bytes]:
        self.connection.data_received(data)
        return self.transport.bodies()

    def call(self, hello: Hello = ALICE) -> Welcome:
        answer = decode_welcome(self.say(encode(hello))[0])
        assert isinstance(answer, Welcome)
        return answer

    def refused(self, data: bytes) -> str:
        """The reason why the broker hangs up when it hears `data`."""
        answer = decode_to_client(self.say(data)[-1])
        assert isinstance(answer, Goodbye)
        assert self.transport.was_closed
        return answer.reason


def test_who_says_hello_is_welcome_and_has_a_stream() -> None:
    async def scenario() -> None:
        b1 = node()
        caller = Caller(b1)
        assert b1.callers == {caller.connection}
        welcome = caller.call()
        assert (welcome.name, welcome.received, len(welcome.stream)) == ("B1", 0, 32)
        assert list(b1.ports) == [LocalClient("alice")]
        assert not b1.callers
        assert Caller(b1).call(B2).stream != welcome.stream
        assert Neighbour("B2") in b1.ports

    run(scenario())


def test_what_follows_hello_in_the_same_bytes_is_heard() -> None:
    async def scenario() -> None:
        b1 = node()
        Caller(b1).say(encode(ALICE) + encode(SUBSCRIPTION))
        assert b1.broker.routing.subscription_count == 1

    run(scenario())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(b"GET / HTTP/1.1\r\n", "a frame of", id="another protocol"),
        pytest.param(framed(b"\x00"), "malformed frame", id="no frame"),
        pytest.param(encode(Goodbye(reason="")), "the first frame says hello", id="goodbye"),
        pytest.param(encode(SUBSCRIPTION), "malformed frame", id="a request"),
        pytest.param(
            encode(Hello(version=99, minor=0, role="client", name="alice")),
            "one side speaks protocol 99.0, the other 1.",
            id="another major version",
        ),
        pytest.param(
            framed(msgspec.msgpack.encode([20, 2, {"role": "client"}])),
            "one side speaks protocol 2.0, the other 1.",
            id="another major version, with another form of Hello",
        ),
        pytest.param(
            encode(Hello(role="client", name="$B1.x")), "names that start with", id="a module"
        ),
        pytest.param(
            encode(Hello(role="broker", name="B2", secret="żółw")),  # noqa: S106
            "B2 has another secret than this broker",
            id="a wrong secret",
        ),
        pytest.param(
            encode(Hello(role="broker", name="B1", secret=SECRET)), "with itself", id="our own name"
        ),
        pytest.param(
            encode(Hello(role="client", name="carl")),
            "carl is connected already",
            id="a name taken",
        ),
    ],
)
def test_who_breaks_a_rule_hears_which_and_nobody_else_is_harmed(data: bytes, reason: str) -> None:
    async def scenario() -> None:
        b1 = node()
        carl = Caller(b1)
        carl.call(Hello(role="client", name="carl"))
        assert reason in Caller(b1).refused(data)
        assert b1.refused == 1
        assert not b1.callers
        assert list(b1.ports) == [LocalClient("carl")]
        assert carl.connection.is_writable

    run(scenario())


def test_a_broker_that_is_full_or_stopping_says_so() -> None:
    async def scenario() -> None:
        b1 = node(connections_max=2)
        welcome = Caller(b1).call()
        Caller(b1).call(Hello(role="client", name="bob"))
        carol = encode(Hello(role="client", name="carol"))
        assert "too many connections" in Caller(b1).refused(carol)

        resumed = Caller(b1).call(Hello(role="client", name="alice", stream=welcome.stream))
        assert resumed.stream == welcome.stream, "who was here may come back"
        neighbour = Hello(role="broker", name="B2", secret=SECRET)
        assert Caller(b1).call(neighbour).name == "B1", "brokers may always come"

        b1.is_stopping = True
        assert "B1 is stopping" in Caller(b1).refused(carol)


def test_callers_that_say_nothing_are_not_without_number() -> None:
    async def scenario() -> None:
        b1 = node(connections_max=2)
        silent = [Caller(b1), Caller(b1)]
        assert "too many connections" in Caller(b1).refused(encode(ALICE))
        assert silent[0].call().name == "B1"

    run(scenario())


def test_a_caller_that_does_not_say_who_it_is_is_not_waited_for() -> None:
    async def scenario() -> None:
        b1 = node(heartbeat_s=0.002)
        caller = Caller(b1)
        await caller.transport.was_aborted.wait()
        assert not b1.callers

    run(scenario())


def test_a_stream_is_resumed_over_a_new_connection_before_the_old_one_is_missed() -> None:
    async def scenario() -> None:
        b1, first, second = node(), None, None
        first, second = Caller(b1), Caller(b1)
        welcome = first.call()
        first.say(encode(SUBSCRIPTION))
        again = second.call(Hello(role="client", name="alice", stream=welcome.stream, received=1))
        assert again == Welcome(name="B1", stream=welcome.stream, received=1)
        assert first.transport.was_aborted.is_set()
        assert b1.broker.routing.subscription_count == 1
        assert first.say(encode(SUBSCRIPTION)) == []

    run(scenario())


def test_what_a_resumed_client_lacks_is_sent_again() -> None:
    async def scenario() -> None:
        b1 = node()
        first, second = Caller(b1), Caller(b1)
        welcome = first.call()
        (notice, _) = first.say(encode(SUBSCRIPTION))
        said = second.say(encode(Hello(role="client", name="alice", stream=welcome.stream)))
        acknowledged = encode_body(Acknowledge(received=1))
        assert said[1:] == [notice, acknowledged], "it may not have heard of that either"

    run(scenario())


@pytest.mark.parametrize("received", [9, 0])
def test_a_caller_that_has_lost_count_cannot_resume(received: int) -> None:
    async def scenario() -> None:
        b1 = node()
        first, second = Caller(b1), Caller(b1)
        welcome = first.call()
        first.say(encode(SUBSCRIPTION))
        first.say(encode(Acknowledge(received=1)))
        hello = Hello(role="client", name="alice", stream=welcome.stream, received=received)
        assert f"received {received} frames" in second.refused(encode(hello))
        assert not first.transport.was_closed, "and the one that has not is not disturbed"

    run(scenario())


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(
            encode(Acknowledge(received=1)),
            "acknowledged 1 frames; only 0 were sent",
            id="too much",
        ),
        pytest.param(encode(ALICE), "malformed frame", id="hello again"),
        pytest.param(framed(b"\xff" * 10), "malformed frame", id="no frame"),
        pytest.param(framed(bytes(10**7))[:100], "a frame of 10000000 bytes", id="a huge frame"),
    ],
)
def test_a_client_that_breaks_a_rule_is_gone_with_all_it_held(data: bytes, reason: str) -> None:
    async def scenario() -> None:
        b1 = node()
        caller = Caller(b1)
        caller.call()
        # What came before in the same read was heard, and is withdrawn.
        assert reason in caller.refused(encode(SUBSCRIPTION) + data)
        assert b1.handled["Subscription"] == 1
        assert b1.broker.routing.subscription_count == 0
        assert not b1.ports
        assert b1.refused == 1
        assert b1.figures.messages == 0, "that read is over"

    run(scenario())


@pytest.mark.parametrize("value", [float("nan"), 2**64 - 1], ids=str)
def test_a_neighbour_that_passes_on_what_is_no_value_is_gone(value: float) -> None:
    async def scenario() -> None:
        b1 = node()
        caller = Caller(b1)
        caller.call(B2)
        publication = Publication(
            publisher="paul",
            sequence=1,
            advertisement=AdvertisementId("paul/a1"),
            content={"x": value},
        )
        assert "malformed frame" in caller.refused(encode(publication))
        assert not b1.ports

    run(scenario())


def test_a_publication_that_goes_round_in_circles_stops() -> None:
    async def scenario() -> None:
        b1 = node("B2", "B3")
        callers = [Caller(b1), Caller(b1)]
        for name, caller in zip(("B2", "B3"), callers, strict=True):
            caller.call(Hello(role="broker", name=name, secret=SECRET, is_expected=True))
        callers[1].say(encode(SUBSCRIPTION))
        publication = Publication(
            publisher="paul",
            sequence=1,
            advertisement=AdvertisementId("paul/a1"),
            content={"x": 2},
        )
        for hops in (254, 255, 65_535):
            callers[0].say(encode(publication, hops))
        assert len(callers[1].transport.bodies()) == 1
        assert b1.dropped["too many hops"] == 2

    run(scenario())


def test_a_client_that_says_goodbye_leaves_nothing() -> None:
    async def scenario() -> None:
        b1 = node()
        caller = Caller(b1)
        caller.call()
        caller.say(encode(SUBSCRIPTION) + encode(Goodbye(reason="that was all")))
        assert not b1.ports
        assert b1.broker.routing.subscription_count == 0
        assert b1.refused == 0

    run(scenario())


def test_a_link_that_is_not_in_use_yet_carries_no_messages() -> None:
    async def scenario() -> None:
        b1 = node()
        caller = Caller(b1)
        assert caller.call(B2).turn > 0
        caller.say(encode(SUBSCRIPTION))
        assert not b1.ports
        assert b1.broker.routing.subscription_count == 0
        assert b1.refused == 1

    run(scenario())
