"""A session as a time-line: requests and frames in, frames to the broker out."""

from __future__ import annotations

import pytest

from godwit.client import holdings
from godwit.client.client_session import ClientSession
from godwit.content.channel_messages import (
    ChannelInEffect,
    ChannelResults,
    ChannelSubscriptionId,
    Row,
)
from godwit.content.filters import Filter
from godwit.content.messages import (
    PAYLOAD_BYTES_MAX,
    Advertisement,
    AdvertisementId,
    AdvertisementInEffect,
    Publication,
    Refusal,
    Subscription,
    SubscriptionId,
    SubscriptionInEffect,
    Unadvertisement,
    Unsubscription,
)
from godwit.errors import ContentError, PeerError, UsageError
from godwit.protocol.frames import (
    HEADER,
    Acknowledge,
    Dropped,
    Frame,
    Goodbye,
    Hello,
    Welcome,
    decode_from_client,
    encode_body,
)

PRICES, NAMES = Filter.parse("price is a number"), Filter.parse("name is a string")
A1, A2 = AdvertisementId("paul/a1"), AdvertisementId("paul/a2")


class Bench:
    """A session, and the frames of its stream."""

    def __init__(self) -> None:
        self.session = ClientSession("paul")

    def welcome(self, stream: str, received: int = 0) -> list[object]:
        """The broker has sent Welcome; returns what it is sent at once."""
        lacking = self.session.welcome(Welcome(name="B1", stream=stream, received=received))
        return decoded(lacking) + self.sent()

    def sent(self) -> list[object]:
        """Frames since the last call."""
        return decoded(self.session.stream.take())

    def hear(self, frame: Frame) -> object:
        return self.session.receive(encode_body(frame))

    def advertised(self, filter: Filter = PRICES) -> AdvertisementId:
        """An advertisement that is in effect and acknowledged."""
        id = self.session.advertise(filter)
        self.hear(AdvertisementInEffect(id=id, edition=self.session.advertisements[id].edition))
        self.sent()
        self.acknowledge()
        return id

    def acknowledge(self) -> None:
        self.hear(Acknowledge(received=self.session.stream.taken))


def bench() -> Bench:
    """A session at a broker that has just sent Welcome."""
    made = Bench()
    assert made.welcome("one") == []
    return made


def decoded(frames: bytes) -> list[object]:
    found: list[object] = []
    while frames:
        length, _ = HEADER.unpack_from(frames)
        end = HEADER.size + length
        found.append(decode_from_client(frames[HEADER.size : end]))
        frames = frames[end:]
    return found


def price(sequence: int, value: int = 5, advertisement: AdvertisementId = A1) -> Publication:
    return Publication(
        publisher="paul", sequence=sequence, advertisement=advertisement, content={"price": value}
    )


def news(sequence: int, publisher: str = "mary") -> Publication:
    """Something that another client published."""
    id = AdvertisementId(f"{publisher}/a1")
    return Publication(
        publisher=publisher, sequence=sequence, advertisement=id, content={"price": 1}
    )


# -- asking and publishing -------------------------------------------------------------------------


def test_requests_are_sent_in_the_order_in_which_they_are_made() -> None:
    b = bench()
    a1, s2 = b.session.advertise(PRICES), b.session.subscribe(NAMES)
    b.session.unsubscribe(s2)
    b.session.unadvertise(a1)
    b.session.unsubscribe(s2)

    assert b.sent() == [
        Advertisement(id=A1, filter=PRICES),
        Subscription(id=SubscriptionId("paul/s2"), filter=NAMES),
        Unsubscription(id=SubscriptionId("paul/s2")),
        Unadvertisement(id=A1),
    ]


def test_a_publication_waits_for_its_advertisement_to_be_in_effect() -> None:
    b = bench()
    b.session.advertise(PRICES)
    b.session.publish({"price": 5})
    assert [type(sent) for sent in b.sent()] == [Advertisement]
    assert b.session.is_used(A1)
    assert b.session.waiting_bytes > b.session.held.size_bytes > 0

    assert b.hear(AdvertisementInEffect(id=A1, edition=7)), "of another use of the id"
    assert b.sent() == []
    notice = AdvertisementInEffect(id=A1, edition=0)
    assert b.hear(notice) == notice
    assert b.sent() == [price(1)]
    assert b.session.held.size_bytes == 0
    assert b.session.is_used(A1), "the broker may not have had it"
    assert not b.session.is_idle
    b.acknowledge()
    assert not b.session.is_used(A1)
    assert b.session.is_idle
    assert b.session.waiting_bytes == 0


def test_publications_keep_their_order_across_advertisements() -> None:
    """A publication that may be sent waits for earlier ones that may not."""
    b = bench()
    b.advertised(PRICES)
    b.session.advertise(NAMES)
    b.sent()
    b.session.publish({"price": 1})
    b.session.publish({"name": "x"})
    b.session.publish({"price": 2})

    assert b.sent() == [price(1, 1)]
    b.hear(AdvertisementInEffect(id=A2))
    assert [p.sequence for p in b.sent() if isinstance(p, Publication)] == [2, 3]


def test_what_no_advertisement_permits_is_not_published() -> None:
    b = bench()
    with pytest.raises(ContentError, match="nothing is advertised"):
        b.session.publish({"price": 5})
    b.advertised()
    with pytest.raises(ContentError, match="does not name the attribute colour"):
        b.session.publish({"price": 5, "colour": "red"})
    b.advertised(NAMES)
    with pytest.raises(ContentError, match="none of 2 advertisements permits this record"):
        b.session.publish({"price": "dear"})
    with pytest.raises(ContentError, match="nan is not allowed"):
        b.session.publish({"price": float("nan")})
    with pytest.raises(
        ContentError, match=f"{PAYLOAD_BYTES_MAX + 1} bytes; at most {PAYLOAD_BYTES_MAX}"
    ):
        b.session.publish({"price": 5}, bytes(PAYLOAD_BYTES_MAX + 1))
    with pytest.raises(ContentError, match=r"must be bytes, and is of type str: use text.encode"):
        b.session.publish({"price": 5}, "text")  # type: ignore[arg-type]
    assert b.sent() == []
    assert b.session.next_sequence == 1, "no number was used"


def test_of_several_advertisements_the_refusal_is_about_the_nearest() -> None:
    b = bench()
    b.advertised(Filter.parse("class = 'STOCK' and price > 5 and volume is present"))
    nearest = b.advertised(Filter.parse("class = 'STOCK' and price > 5"))
    b.advertised(Filter.parse("class = 'NEWS' and text is a string"))
    with pytest.raises(ContentError) as refused:
        b.session.publish({"class": "STOCK", "price": 4})
    assert str(refused.value) == (
        f"none of 3 advertisements permits this record; the nearest, {nearest}:"
        " class = 'STOCK' and price > 5, does not permit this: price > 5 fails: price is 4"
    )
    with pytest.raises(ContentError, match="it does not permit this: price > 5 fails"):
        b.session.publish({"class": "STOCK", "price": 4, "colour": "red"})
    with pytest.raises(ContentError, match=r"paul/a1: .* does not permit this: price > 5 fails"):
        b.session.publish({"class": "STOCK", "price": 4, "volume": 1})


def test_of_equally_near_advertisements_the_refusal_is_about_the_latest() -> None:
    b = bench()
    for _ in range(3):
        latest = b.advertised()
    with pytest.raises(ContentError, match=f"the nearest, {latest}: price is a number"):
        b.session.publish({"price": "dear"})


def test_a_publication_that_fits_no_frame_is_refused_here() -> None:
    b = bench()
    names = [f"n{number:03}" for number in range(256)]
    b.advertised(Filter.parse(" and ".join(f"{name} is present" for name in names[:64])))
    record = dict.fromkeys(names[:64], "\U0001f600" * 4_096)
    with pytest.raises(ContentError, match=r"the publication takes \d+ bytes; at most"):
        b.session.publish(record, bytes(PAYLOAD_BYTES_MAX))
    assert b.sent() == []


def test_what_nothing_can_match_is_not_asked_for() -> None:
    b, impossible = bench(), Filter.parse("x > 5 and x < 3")
    with pytest.raises(UsageError, match="nothing can match x > 5 and x < 3"):
        b.session.subscribe(impossible)
    with pytest.raises(UsageError, match="nothing can match x > 5 and x < 3"):
        b.session.advertise(impossible)
    assert b.sent() == []


def test_what_is_held_for_a_withdrawn_advertisement_is_never_published() -> None:
    b = bench()
    a1 = b.session.advertise(PRICES)
    b.advertised(NAMES)
    b.session.publish({"price": 1})
    b.session.publish({"name": "x"})
    b.session.unadvertise(a1)

    kinds = [(type(sent), getattr(sent, "sequence", None)) for sent in b.sent()]
    assert kinds == [(Unadvertisement, None), (Publication, 2)]
    assert b.session.held.size_bytes == 0


def test_a_refused_advertisement_is_forgotten_with_what_waited_for_it() -> None:
    b = bench()
    b.session.advertise(PRICES)
    b.session.publish({"price": 1})
    b.sent()
    refusal = Refusal(about="paul/a1", reason="because")

    assert b.hear(refusal) == refusal
    assert (b.session.advertisements, b.session.held.size_bytes, b.sent()) == ({}, 0, [])


def test_a_refused_subscription_is_not_asked_for_again() -> None:
    b = bench()
    s1 = b.session.subscribe(PRICES)
    b.session.subscribe(NAMES)
    b.sent()
    b.hear(Refusal(about=s1, reason="because"))
    b.session.unsubscribe(s1)
    assert b.sent() == []
    assert b.welcome("two") == [Subscription(id=SubscriptionId("paul/s3"), filter=NAMES)]


def test_a_refused_publication_changes_nothing() -> None:
    b = bench()
    b.advertised()
    b.hear(Refusal(about="paul#1", reason="because"))
    b.session.publish({"price": 5})
    assert b.sent() == [price(1)]


# -- hearing ---------------------------------------------------------------------------------------


def test_what_came_before_is_dropped_for_each_publisher_by_itself() -> None:
    b = bench()
    assert b.hear(news(5)) == news(5)
    assert b.hear(news(5)) is None
    assert b.hear(news(4)) is None
    assert b.hear(news(4, "carl")) == news(4, "carl")
    assert b.hear(news(6)) == news(6)
    assert b.session.deliveries.duplicates == 2
    assert b.session.stream.received == 5, "a duplicate is a frame that arrived"


def test_signals_are_not_numbered() -> None:
    b = bench()
    b.hear(Acknowledge(received=0))
    b.hear(Goodbye(reason="for now"))
    assert b.session.stream.received == 0
    b.hear(Dropped(count=3))
    b.hear(SubscriptionInEffect(id=SubscriptionId("paul/s9")))
    assert b.session.stream.received == 2


@pytest.mark.parametrize(
    "frame",
    [
        Unsubscription(id=SubscriptionId("paul/s1")),
        Hello(role="client", name="paul"),
        Acknowledge(received=1),
    ],
    ids=lambda frame: type(frame).__name__,
)
def test_a_broker_that_breaks_the_rules_is_told_so(frame: Frame) -> None:
    with pytest.raises(PeerError):
        bench().hear(frame)


# -- coming back -----------------------------------------------------------------------------------


def test_a_stream_that_the_broker_remembers_goes_on() -> None:
    b = bench()
    b.advertised()
    for value in (1, 2, 3):
        b.session.publish({"price": value})
    assert len(b.sent()) == 3
    b.session.publish({"price": 4})

    # It has the advertisement and the first publication.
    resumed = b.welcome("one", received=2)
    assert resumed == [price(2, 2), price(3, 3), price(4, 4)]
    assert b.session.restarts == 0
    assert b.session.advertisements[A1].edition == 0


def test_a_first_welcome_is_no_restart() -> None:
    b = Bench()
    s1 = b.session.subscribe(PRICES)
    assert b.welcome("one") == [Subscription(id=s1, filter=PRICES)]
    assert b.session.restarts == 0


def test_a_broker_that_has_forgotten_us_is_asked_for_everything_anew() -> None:
    b = bench()
    b.advertised()
    s2 = b.session.subscribe(NAMES)
    b.sent()
    s3 = b.session.subscribe(PRICES)
    b.session.unsubscribe(s2)
    b.hear(news(5))

    s4 = SubscriptionId("paul/s4")
    assert b.welcome("two") == [
        Advertisement(id=A1, filter=PRICES, edition=1),
        Subscription(id=s4, filter=PRICES),
    ]
    assert b.session.restarts == 1
    assert b.session.stream.received == 0
    assert b.hear(SubscriptionInEffect(id=s4)) == SubscriptionInEffect(id=s3), "as we call it"
    b.session.unsubscribe(s3)
    assert b.sent() == [Unsubscription(id=s4)]
    assert b.hear(news(5)) is None, "it may send again what came before"
    assert b.hear(news(6, "paul")) is None, "and what we said ourselves"
    assert b.welcome("three")[0] == Advertisement(id=A1, filter=PRICES, edition=2)


def test_publications_that_were_not_acknowledged_are_sent_again_once_in_effect() -> None:
    b = bench()
    b.advertised()
    b.session.publish({"price": 0})
    b.sent()
    b.acknowledge()
    b.session.publish({"price": 1})
    b.sent()
    b.session.publish({"price": 2})  # Not even written.

    assert [type(sent) for sent in b.welcome("two")] == [Advertisement]
    b.session.publish({"price": 3})
    b.hear(AdvertisementInEffect(id=A1, edition=0))  # Of an earlier edition.
    assert b.sent() == []
    b.hear(AdvertisementInEffect(id=A1, edition=1))
    assert b.sent() == [price(2, 1), price(3, 2), price(4, 3)]
    b.acknowledge()
    assert b.session.is_idle


def test_publications_survive_several_restarts_in_a_row_each_once() -> None:
    b = bench()
    b.advertised()
    b.session.publish({"price": 1})
    b.sent()
    for edition, stream in enumerate(("two", "three"), start=1):
        b.welcome(stream)
        b.session.publish({"price": 1 + edition})
    b.hear(AdvertisementInEffect(id=A1, edition=2))

    assert b.sent() == [price(1, 1), price(2, 2), price(3, 3)]
    assert b.session.held.size_bytes == 0


def test_the_order_survives_a_restart_across_advertisements() -> None:
    b = bench()
    b.advertised(PRICES)
    b.advertised(NAMES)
    for record in ({"price": 1}, {"name": "x"}, {"price": 2}):
        b.session.publish(record)
    b.sent()

    b.welcome("two")
    b.hear(AdvertisementInEffect(id=A2, edition=1))
    assert b.sent() == [], "a price is first"
    b.hear(AdvertisementInEffect(id=A1, edition=1))
    assert [p.sequence for p in b.sent() if isinstance(p, Publication)] == [1, 2, 3]


def test_what_waits_for_an_advertisement_refused_after_a_restart_lets_the_others_go() -> None:
    b = bench()
    b.advertised(PRICES)
    b.advertised(NAMES)
    b.session.publish({"price": 1})
    b.session.publish({"name": "x"})
    b.sent()

    b.welcome("two")
    b.hear(AdvertisementInEffect(id=A2, edition=1))
    b.hear(Refusal(about="paul/a1", reason="not any more"))
    assert [p.sequence for p in b.sent() if isinstance(p, Publication)] == [2]


def test_what_was_published_under_a_withdrawn_advertisement_does_not_wait_for_it() -> None:
    b = bench()
    id = b.advertised()
    b.session.publish({"price": 5})
    b.sent()
    b.session.unadvertise(id)  # `Client.unadvertise` waits; a session that is used alone may not.
    b.welcome("another")
    b.acknowledge()
    assert b.session.is_idle


def test_a_filter_that_no_broker_could_read_is_not_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    b = bench()
    monkeypatch.setattr(holdings, "TEXT_LENGTH_MAX", len(PRICES.padres()) - 1)
    for ask in (b.session.subscribe, b.session.advertise):
        with pytest.raises(UsageError, match=r"the filter has \d+ characters as text; at most"):
            ask(PRICES)
    assert b.sent() == []


def test_rows_of_a_channel_come_once() -> None:
    session = ClientSession("a")
    id = session.subscribe_channel("Numbers", {"n": 1}).id
    frames = [
        ChannelInEffect(id=id, start=(1, 0)),
        results(id, 1, 0, 3),
        results(id, 1, 1, 4),
        results(id, 1, 0, 2),
        results(id, 2, 0, 1),
        results(id, 1, 0, 9),
    ]
    arrived = [session.receive(encode_body(frame)) for frame in frames]
    taken = [frame for frame in arrived if isinstance(frame, ChannelResults)]
    assert [(r.execution, r.first, len(r.rows)) for r in taken] == [(1, 0, 3), (1, 3, 2), (2, 0, 1)]
    assert [row["k"] for r in taken for row in r.rows] == [0, 1, 2, 3, 4, 0]
    assert session.channels[id].position == (2, 1)


def results(id: ChannelSubscriptionId, execution: int, first: int, count: int) -> ChannelResults:
    rows: list[Row] = [{"k": k} for k in range(first, first + count)]
    return ChannelResults(id=id, execution=execution, first=first, rows=rows, executed_s=0.0)
