"""What brokers ask, answered with what channels have.

Two words for one thing: a position here is the last row that was seen; brokers name the first that
was not (content/channels.py).
"""

from __future__ import annotations

import datetime as dt
import time
from collections import defaultdict
from collections.abc import Iterable, Sequence
from decimal import Decimal
from itertools import groupby
from math import isfinite

import msgspec

from godwit.channels import requests
from godwit.content.channels import Position, Row
from godwit.content.values import Value
from godwit.datacluster.channels import Channels
from godwit.datacluster.results import Pulled, ResultRow
from godwit.datacluster.subscriptions import LAST_ORDINAL, Subscribed
from godwit.datacluster.subscriptions import Position as LastSeen
from godwit.errors import UsageError


class BrokersDesk:
    """May be used from several threads; calls take a while."""

    def __init__(self, channels: Channels) -> None:
        self._channels = channels

    def create_broker(self, request: requests.CreateBroker) -> requests.BrokerCreated:
        number = self._channels.begin_broker(request.broker, now_s=time.time())
        return requests.BrokerCreated(notices=number)

    def subscribe(self, request: requests.Subscribe) -> requests.Subscribed:
        granted: dict[int, requests.Granted] = {}
        by_channel: defaultdict[str, list[int]] = defaultdict(list)
        for place, wanted in enumerate(request.subscriptions):
            by_channel[wanted.channel.lower()].append(place)
        for places in by_channel.values():
            granted |= self._subscribe(request, places)
        answers = [granted[place] for place in range(len(request.subscriptions))]
        return requests.Subscribed(subscriptions=answers)

    def _subscribe(
        self, request: requests.Subscribe, places: Sequence[int]
    ) -> dict[int, requests.Granted]:
        """All at once, which is quick; if one of them cannot be, one after the other."""
        wanted = [request.subscriptions[place] for place in places]
        try:
            arguments = [each.arguments for each in wanted]
            made = self._channels.subscribe_all(request.broker, wanted[0].channel, arguments)
        except UsageError as error:
            if len(places) == 1:
                return {places[0]: requests.Granted(error=str(error))}
            one_by_one = (self._subscribe(request, [place]) for place in places)
            return {place: granted for each in one_by_one for place, granted in each.items()}
        return {place: _granted(each) for place, each in zip(places, made, strict=True)}

    def unsubscribe(self, request: requests.Unsubscribe) -> None:
        for id in request.ended:
            self._channels.unsubscribe(request.broker, id)
        for id in request.released:
            self._channels.release(request.broker, id, now_s=time.time())

    def notices(self, request: requests.NoticesAfter) -> requests.Notices:
        found = self._channels.notices(request.broker, after=request.after)
        return requests.Notices(
            notices=[
                requests.Notice(
                    number=each.sequence,
                    channel=each.channel,
                    execution=each.execution,
                    subscriptions=each.subscriptions,
                )
                for each in found.notices
            ],
            through=found.through,
        )

    def pull(self, request: requests.Pull) -> requests.PullAnswer:
        if request.acknowledged:
            done = {each.id: _last_before(each.start) for each in request.acknowledged}
            self._channels.acknowledge(request.broker, done)
        channels = self._channels.channels_of(each.id for each in request.pulls)
        by_channel: defaultdict[str, list[requests.PullFrom]] = defaultdict(list)
        for each in request.pulls:
            if each.id in channels:
                by_channel[channels[each.id]].append(each)
        pulled = [
            answer
            for channel, pulls in by_channel.items()
            for answer in self._pull(channel, pulls, request.limit_bytes)
        ]
        unknown = [each.id for each in request.pulls if each.id not in channels]
        return requests.PullAnswer(pulled=pulled, unknown=unknown)

    def _pull(
        self, channel: str, pulls: Sequence[requests.PullFrom], limit_bytes: int
    ) -> Iterable[requests.Pulled]:
        positions = {each.id: LastSeen(each.start[0], each.start[1] - 1) for each in pulls}
        found = self._channels.pull(channel, positions, limit_bytes=limit_bytes)
        rows: defaultdict[int, list[ResultRow]] = defaultdict(list)
        for row in found.rows:
            rows[row.subscription].append(row)
        for each in pulls:
            yield _pulled(each, rows[each.id], found)


def _granted(made: Subscribed) -> requests.Granted:
    return requests.Granted(id=made.id, start=(made.last_execution + 1, 0))


def _last_before(start: Position) -> LastSeen:
    execution, row = start
    return LastSeen(execution, row - 1) if row else LastSeen(execution - 1, LAST_ORDINAL)


def _pulled(asked: requests.PullFrom, rows: Sequence[ResultRow], found: Pulled) -> requests.Pulled:
    results = []
    for execution, group in groupby(rows, key=lambda row: row.execution):
        some = list(group)
        values = [_plain(row.values) for row in some]
        results.append(
            requests.Rows(
                execution=execution,
                first=some[0].ordinal,
                rows=values,
                executed_s=found.moments_s[execution],
                size_bytes=len(msgspec.json.encode(values)),
            )
        )
    return requests.Pulled(
        id=asked.id, start=asked.start, end=_end(asked.start, rows, found), results=results
    )


def _end(start: Position, rows: Sequence[ResultRow], found: Pulled) -> Position:
    """Up to where that is all there is.

    Of the execution at which an answer became too long, there may be more for anybody.
    """
    if found.is_complete:
        return max(start, (found.through + 1, 0))
    if rows and rows[-1].execution == found.through:
        return (found.through, rows[-1].ordinal + 1)
    return max(start, (found.through, 0))


def _plain(values: dict[str, object]) -> Row:
    """Without what has no value; times as ISO 8601 writes them."""
    return {name: _value(value) for name, value in values.items() if _is_value(value)}


def _is_value(value: object) -> bool:
    return isfinite(value) if isinstance(value, float) else value is not None


def _value(value: object) -> Value:
    match value:
        case bool() | int() | float() | str():
            return value
        case dt.datetime() | dt.date():
            return value.isoformat()
        case Decimal():
            return float(value)
        case _:
            return str(value)
