"""One rule says what is a value, wherever a value enters: the table of docs/guide.md.

Python objects enter through filters, clients and the arguments of channels; what a codec makes of
them enters through frames and HTTP.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum, IntEnum, StrEnum
from fractions import Fraction
from math import inf, nan
from typing import Any
from uuid import UUID

import msgspec
import numpy as np
import pytest

from godwit import ContentError, Filter, UsageError
from godwit.api.broker_api import SubscribeChannel
from godwit.client.client_session import ClientSession
from godwit.content.channel_messages import ChannelSubscription, ChannelSubscriptionId
from godwit.content.channel_messages import check_arguments as checked_arguments
from godwit.content.messages import AdvertisementInEffect, Publication
from godwit.content.values import INTEGER_MAX, STRING_LENGTH_MAX, Value, check_record, kind_of
from godwit.datacluster.channels.arguments import canonical
from godwit.datacluster.model.channel import Channel
from godwit.datacluster.model.dataset import Column, ColumnType
from godwit.protocol.frames import HEADER, Welcome, decode_from_client, encode, encode_body


class Colour(Enum):
    RED = "red"


class Size(IntEnum):
    LARGE = 3


class Word(StrEnum):
    YES = "yes"


class Old(str, Enum):  # noqa: UP042  Its str() is not its text.
    YES = "yes"


class Text(str):
    __slots__ = ()


#: What is a value, and the plain value that it is.
VALUES: list[tuple[object, Value]] = [
    (True, True),
    (1, 1),
    (INTEGER_MAX, INTEGER_MAX),
    (1.5, 1.5),
    ("a", "a"),
    ("x" * STRING_LENGTH_MAX, "x" * STRING_LENGTH_MAX),
    ("\U0001f426", "\U0001f426"),
    (Size.LARGE, 3),
    (Word.YES, "yes"),
    (Old.YES, "yes"),
    (Text("a"), "a"),
    (np.int8(-3), -3),
    (np.int64(INTEGER_MAX), INTEGER_MAX),
    (np.uint64(7), 7),
    (np.float64(0.1), 0.1),
    (np.float32(0.1), 0.10000000149011612),
    (np.float16(0.5), 0.5),
    (np.longdouble(0.25), 0.25),
    (np.bool_(True), True),
    (np.bool_(False), False),
    (np.str_("a"), "a"),
]
#: What is not, and the hint of the error.
OTHERS: list[tuple[object, str]] = [
    (None, "None is not a value; leave the attribute out"),
    (Decimal("1.5"), r"Decimal is not a value; use its text, str\(x\), or float\(x\)"),
    (Fraction(1, 2), r"Fraction is not a value; use its text, str\(x\), or float\(x\)"),
    (date(2026, 5, 1), r"date is not a value; use its ISO text, x\.isoformat\(\)"),
    (datetime(2026, 5, 1, tzinfo=UTC), r"datetime is not a value; .*x\.timestamp\(\)"),
    (datetime(2026, 5, 1), r"datetime is not a value; .*x\.isoformat\(\)"),  # noqa: DTZ001
    (time(12), r"time is not a value; use its ISO text, x\.isoformat\(\)"),
    (timedelta(1), r"timedelta is not a value; use seconds, x\.total_seconds\(\)"),
    (UUID(int=5), r"UUID is not a value; use its text, str\(x\)"),
    (Colour.RED, r"Colour is not a value; use its \.value"),
    (b"x", "bytes is not a value; send bytes as the payload"),
    (bytearray(b"x"), "bytearray is not a value; send bytes as the payload"),
    ([1], "list is not a value; use an attribute for each part"),
    ({"a": 1}, "dict is not a value; use an attribute for each part"),
    (1j, "complex is not a value; use a number, a string or a boolean"),
    (object(), "object is not a value; use a number, a string or a boolean"),
    (msgspec.Raw(b"\x01"), "Raw is not a value; use a number, a string or a boolean"),
    (np.datetime64("2026-05-01"), r"datetime64 is not a value; use its ISO text, str\(x\)"),
    (np.timedelta64(5, "s"), "timedelta64 is not a value; use seconds, float"),
    (np.array(5), "ndarray is not a value"),
    (np.bytes_(b"x"), "bytes_ is not a value"),
    (np.nextafter(np.longdouble(1), np.longdouble(2)), "longdouble is not a value"),
    (2**63, "an integer must fit into 64 bits; write a float instead"),
    (np.uint64(2**63), "an integer must fit into 64 bits; write a float instead"),
    (nan, "nan is not allowed; use a finite number"),
    (np.float32("nan"), "nan is not allowed; use a finite number"),
    (inf, "inf is not allowed; use a finite number"),
    ("x" * (STRING_LENGTH_MAX + 1), f"at most {STRING_LENGTH_MAX} are allowed"),
    ("a\ud800", "half of a surrogate pair"),
]
FILTERS = [
    Filter.parse(text)
    for text in ("a is present", "a > 5", "a = 'a'", "a != 5", "a starts with 'x'", "b is present")
]


def named(table: Sequence[tuple[object, object]]) -> list[str]:
    return [f"{type(given).__name__}-{number}" for number, (given, _) in enumerate(table)]


with_values = pytest.mark.parametrize(("given", "plain"), VALUES, ids=named(VALUES))
with_others = pytest.mark.parametrize(("given", "said"), OTHERS, ids=named(OTHERS))


def session(*advertised: str) -> ClientSession:
    made = ClientSession("paul")
    made.welcome(Welcome(name="B1", stream="one", received=0))
    for text in advertised:
        id = made.advertise(Filter.parse(text))
        made.receive(encode_body(AdvertisementInEffect(id=id)))
    made.stream.take()
    return made


def sent(made: ClientSession) -> dict[str, Value]:
    frame = decode_from_client(made.stream.take()[HEADER.size :])
    assert isinstance(frame, Publication)
    return frame.content


def same(found: object, plain: object) -> bool:
    return found == plain and type(found) is type(plain)


# -- Python objects --------------------------------------------------------------------------------


@with_values
def test_a_value_is_the_same_everywhere(given: object, plain: Value) -> None:
    record: Mapping[str, Any] = {"a": given}
    assert same(check_record(record)["a"], plain)
    assert same(checked_arguments(record)["a"], plain)
    for filter in FILTERS:
        assert filter.matches(record) is filter.matches({"a": plain})
        assert filter.permits(record) is filter.permits({"a": plain})
        assert str(filter.explain(record)) == str(filter.explain({"a": plain}))
    kind = kind_of(plain).value
    for advertised in ("a is present", f"a is a {kind}"):
        made = session(advertised)
        made.publish(record)
        assert same(sent(made)["a"], plain)


@with_others
def test_what_is_not_a_value_is_refused_everywhere(given: object, said: str) -> None:
    record: Mapping[str, Any] = {"a": given, "c": 1}
    with refused(said):
        check_record(record)
    with refused(said):
        checked_arguments(record)
    for filter in FILTERS:  # Also those that do not look at it.
        with refused(said):
            filter.matches(record)
        with refused(said):
            filter.permits(record)
        with refused(said):
            filter.explain(record)
    for advertised in ("a is present and c is present", "a > 5 and c is present", "a = 'a'"):
        made = session(advertised)
        with refused(said):
            made.publish(record)
        assert not made.has_published


@contextlib.contextmanager
def refused(said: str) -> Iterator[None]:
    with pytest.raises(ContentError, match=f"^a: .*{said}"):
        yield


# -- what codecs make of them ----------------------------------------------------------------------


class Loose(msgspec.Struct, array_like=True, kw_only=True, tag=7):
    """A publication of a client that checks nothing."""

    publisher: str = "paul"
    sequence: int = 1
    advertisement: str = "paul/a1"
    content: dict[str, Any]


class LooseSubscription(msgspec.Struct, array_like=True, kw_only=True, tag=31):
    id: str = "paul/c1"
    channel: str = "C"
    arguments: dict[str, Any]


#: As a codec sees them: without Python's types, and without what it cannot encode at all.
WIRED: list[object] = [
    None, b"x", [1], {"b": 1}, datetime(2026, 5, 1, tzinfo=UTC), 2**63, nan, inf, -inf,
    "x" * (STRING_LENGTH_MAX + 1),
]  # fmt: skip


@pytest.mark.parametrize("given", WIRED, ids=lambda given: type(given).__name__)
def test_frames_of_clients_that_check_nothing_are_refused(given: object) -> None:
    for loose in (Loose(content={"a": given}), LooseSubscription(arguments={"a": given})):
        with pytest.raises(msgspec.ValidationError):
            decode_from_client(msgspec.msgpack.encode(loose))


@with_values
def test_frames_carry_values_as_they_are(given: object, plain: Value) -> None:
    subscription = ChannelSubscription(
        id=ChannelSubscriptionId("paul/c1"), channel="C", arguments=checked_arguments({"a": given})
    )
    decoded = decode_from_client(encode(subscription)[HEADER.size :])
    assert isinstance(decoded, ChannelSubscription)
    assert same(decoded.arguments["a"], plain)


JSON = [
    "null",
    "[1]",
    '{"b": 1}',
    "9223372036854775808",
    "1e400",
    "NaN",
    f'"{"x" * 4097}"',
    r'"\ud800"',
]


@pytest.mark.parametrize("text", JSON, ids=lambda text: text[:12])
def test_arguments_over_http_are_values(text: str) -> None:
    body = f'{{"session": "s", "channel": "C", "arguments": {{"a": {text}}}}}'.encode()
    with pytest.raises((msgspec.MsgspecError, UnicodeError)):
        msgspec.json.decode(body, type=SubscribeChannel)


@with_values
def test_values_pass_http_as_they_are(given: object, plain: Value) -> None:
    body = msgspec.json.encode(
        {"session": "s", "channel": "C", "arguments": checked_arguments({"a": given})}
    )
    decoded = msgspec.json.decode(body, type=SubscribeChannel).arguments["a"]
    assert same(decoded, plain)


# -- the data cluster ------------------------------------------------------------------------------

TYPES = {
    bool: ColumnType.BOOLEAN,
    int: ColumnType.BIGINT,
    float: ColumnType.DOUBLE,
    str: ColumnType.STRING,
}


@with_values
def test_a_channel_takes_every_value_as_an_argument(given: object, plain: Value) -> None:
    channel = Channel("C", (Column("a", TYPES[type(plain)]),), None, "SELECT 1")
    assert canonical(channel, checked_arguments({"a": given})) == msgspec.json.encode([plain])
    others = set(TYPES.values()) - {TYPES[type(plain)]}
    if isinstance(plain, int | float) and not isinstance(plain, bool):
        others -= {ColumnType.DOUBLE, ColumnType.BIGINT}
    for other in others:
        with pytest.raises(UsageError, match="channel C: the argument a: "):
            canonical(Channel("C", (Column("a", other),), None, "SELECT 1"), {"a": plain})
