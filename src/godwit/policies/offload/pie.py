"""PIE: brokers publish their load, and know the load of others from what these publish.

Paper    Cheung, thesis 4.1.3, "Protocol for Exchanging Load Information".
Words    LOCAL_PIE, GLOBAL_PIE -> LOCAL_PIE, GLOBAL_PIE; its five attributes -> cluster, brokerId,
         status, and input, match, output (Ir, d, Or); balancedSet -> PieDetails.balanced.
Claim    A broker that publishes steadily is known to all that subscribe to its cluster, and one
         that has stopped is forgotten.

    edge broker    every local period, to the edge brokers and the head of its cluster
    head           every global period, the means of its edge brokers, one cluster hop far

Departs  1. Published not only on change: also with a new status, when a broker is heard for the
            first time, and at least every fifth period (E5).  Else a broker that subscribes later
            would never hear of one whose load is constant.
         2. The change of the delay is relative to Nf, as in (4.4); the thesis says "percentage".
         3. What no subscription refers to is in the payload: the balanced set, and what an
            offload algorithm and the lower bounds need (ou, ot, n, m, b).
         4. An entry that was not renewed for two periods more than the heartbeat is forgotten.
Tested   tests/policies/offload/test_pie.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Self

import msgspec

from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.content.values import CheckedValue
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.settings import BalancingSettings

LOCAL_PIE = "$LOCAL_PIE"
GLOBAL_PIE = "$GLOBAL_PIE"
#: Periods that an entry outlives the last heartbeat that was due.
EXPIRY_PERIODS = 2
#: A utilisation without bound, of a broker without any output, as a number that can be sent.
VALUE_MAX = 1e9


@dataclass(frozen=True, slots=True)
class PieValues:
    """The three performance metrics of a broker, or their means over a cluster."""

    input: float
    match: float
    output: float

    @classmethod
    def of(cls, info: BrokerInfo) -> Self:
        return cls(
            min(info.input_utilisation, VALUE_MAX),
            min(info.matching_delay_s, VALUE_MAX),
            min(info.output_utilisation, VALUE_MAX),
        )

    def value(self, metric: OffloadAction) -> float:
        match metric:
            case OffloadAction.INPUT:
                return self.input
            case OffloadAction.MATCH:
                return self.match
            case OffloadAction.OUTPUT:
                return self.output

    def difference(self, other: PieValues, metric: OffloadAction, normalization_s: float) -> float:
        """By how much this one is higher; delays in units of Nf (4.4)."""
        difference = self.value(metric) - other.value(metric)
        return difference / normalization_s if metric is OffloadAction.MATCH else difference


class PieDetails(msgspec.Struct, frozen=True, array_like=True):
    """The payload of a PIE."""

    info: BrokerInfo | None
    """None for a cluster."""

    balanced: tuple[str, ...] = ()
    """The thesis's balancedSet: the edge brokers that this one is balanced with."""

    moving_sessions: int = 0
    """Sessions of the publisher since its start in which clients moved."""

    in_session: bool = False
    """Whether it is in one, or its load has not settled since."""

    edges: int = 0
    """Edge brokers of a cluster."""


@dataclass(frozen=True, slots=True)
class Pie:
    """What one broker publishes of itself."""

    broker: str
    cluster: str
    status: LoadStatus
    values: PieValues
    details: PieDetails

    def content(self, kind: str) -> dict[str, CheckedValue]:
        return {
            "class": kind,
            "cluster": self.cluster,
            "brokerId": self.broker,
            "status": self.status.value,
            "input": self.values.input,
            "match": self.values.match,
            "output": self.values.output,
        }

    def payload(self) -> bytes:
        return _encoder.encode(self.details)


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(PieDetails)


def read_pie(publication: Publication) -> Pie | None:
    """The PIE in a publication; None if another version has written what we cannot read."""
    content = publication.content
    try:
        return Pie(
            broker=str(content["brokerId"]),
            cluster=str(content["cluster"]),
            status=LoadStatus(content["status"]),
            values=PieValues(
                float(content["input"]), float(content["match"]), float(content["output"])
            ),
            details=_decoder.decode(publication.payload),
        )
    except (KeyError, ValueError, msgspec.MsgspecError):
        return None


def pie_advertisement(kind: str, cluster: str, broker: str) -> Filter:
    return Filter.parse(
        f"class = '{kind}' and cluster = '{cluster}' and brokerId = '{broker}'"
        " and status is a string and input is a number and match is a number"
        " and output is a number"
    )


class PieRule:
    """When a broker publishes its load."""

    def __init__(self, settings: BalancingSettings) -> None:
        self._settings = settings
        self._last: Pie | None = None
        self._periods = 0

    def has_news(self, pie: Pie) -> bool:
        """Whether it must be published at once: a status is news."""
        last = self._last
        return last is None or last.status is not pie.status or last.cluster != pie.cluster

    def is_due(self, pie: Pie, *, with_balanced_set: bool = False) -> bool:
        """A period is over: whether it must be published now.

        The balanced set is news only in a global session, whose end depends on it.
        """
        self._periods += 1
        if self.has_news(pie) or self._periods >= self._settings.pie_heartbeat_periods:
            return True
        assert self._last is not None
        is_other_set = pie.details.balanced != self._last.details.balanced
        return self._changed(pie.values, self._last.values) or (with_balanced_set and is_other_set)

    def _changed(self, now: PieValues, last: PieValues) -> bool:
        settings = self._settings
        return (
            abs(now.input - last.input) > settings.pie_ratio_threshold
            or abs(now.output - last.output) > settings.pie_ratio_threshold
            or abs(now.match - last.match) / settings.delay_normalization_s
            > settings.pie_delay_threshold
        )

    def published(self, pie: Pie) -> None:
        self._last = pie
        self._periods = 0


@dataclass(frozen=True, slots=True)
class _Heard:
    pie: Pie
    at_s: float


class KnownBrokers:
    """The latest PIE of each broker that is heard."""

    def __init__(self, *, period_s: float, settings: BalancingSettings) -> None:
        self._expiry_s = (settings.pie_heartbeat_periods + EXPIRY_PERIODS) * period_s
        self._heard: dict[str, _Heard] = {}

    def hear(self, pie: Pie, now_s: float) -> bool:
        """Take in a PIE; whether its broker is new."""
        is_new = pie.broker not in self._heard
        self._heard[pie.broker] = _Heard(pie, now_s)
        return is_new

    def learn(self, info: BrokerInfo) -> None:
        """A broker has told its present load in another message."""
        heard = self._heard.get(info.broker)
        if heard is not None:
            details = msgspec.structs.replace(heard.pie.details, info=info)
            pie = replace(heard.pie, values=PieValues.of(info), details=details)
            self._heard[info.broker] = replace(heard, pie=pie)

    def drop_expired(self, now_s: float) -> None:
        for broker, heard in list(self._heard.items()):
            if now_s - heard.at_s > self._expiry_s:
                del self._heard[broker]

    def forget(self, broker: str) -> None:
        self._heard.pop(broker, None)

    def forget_cluster(self, cluster: str) -> None:
        self._heard = {b: h for b, h in self._heard.items() if h.pie.cluster != cluster}

    def get(self, broker: str) -> Pie | None:
        heard = self._heard.get(broker)
        return None if heard is None else heard.pie

    def of_cluster(self, cluster: str) -> list[Pie]:
        return [pie for pie in self if pie.cluster == cluster]

    def __iter__(self) -> Iterator[Pie]:
        return iter([self._heard[broker].pie for broker in sorted(self._heard)])

    def __len__(self) -> int:
        return len(self._heard)


def pie_account(pie: Pie) -> dict[str, object]:
    """A PIE as values that JSON has, for operators."""
    return {
        "broker": pie.broker,
        "cluster": pie.cluster,
        "status": pie.status.value,
        "input": pie.values.input,
        "match_s": pie.values.match,
        "output": pie.values.output,
    }
