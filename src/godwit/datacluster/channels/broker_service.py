"""Answers the requests of brokers: subscriptions, notices of new results, pulls.

The types are those of the data cluster's HTTP interface (api/datacluster_api.py).  May be called
from any thread; Spark is not used.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from msgspec.structs import replace

from godwit.api.datacluster_api import (
    BrokerCreated,
    CreateBroker,
    Granted,
    Notices,
    NoticesAfter,
    Pull,
    PullAnswer,
    Subscribe,
    Subscribed,
    Unsubscribe,
    Wanted,
)
from godwit.content.channel_messages import Position, was_dropped
from godwit.datacluster.channels.arguments import canonical
from godwit.datacluster.channels.channel_definitions import ChannelDefinitions
from godwit.datacluster.channels.results import ResultStore
from godwit.datacluster.channels.subscriptions import Subscriptions
from godwit.errors import UsageError


class BrokerService:
    def __init__(
        self, definitions: ChannelDefinitions, subscriptions: Subscriptions, results: ResultStore
    ) -> None:
        self._definitions = definitions
        self._subscriptions = subscriptions
        self._results = results

    def create_broker(self, request: CreateBroker, *, now_s: float) -> BrokerCreated:
        self._subscriptions.release_all(request.broker, now_s=now_s)
        return BrokerCreated(notices=self._results.last_notice())

    def subscribe(self, request: Subscribe) -> Subscribed:
        by_channel: defaultdict[str, dict[int, Wanted]] = defaultdict(dict)
        for place, wanted in enumerate(request.subscriptions):
            by_channel[wanted.channel.lower()][place] = wanted
        answers: dict[int, Granted] = {}
        for of_channel in by_channel.values():
            answers |= self._subscribe(request.broker, of_channel)
        return Subscribed(subscriptions=[answers[place] for place in sorted(answers)])

    def _subscribe(self, broker: str, wanted: Mapping[int, Wanted]) -> dict[int, Granted]:
        """To one channel, in one transaction.  Arguments that do not fit are refused singly."""
        try:
            known = self._definitions.known(next(iter(wanted.values())).channel)
        except UsageError as error:
            return dict.fromkeys(wanted, Granted(error=str(error)))
        keys: dict[int, bytes] = {}
        answers: dict[int, Granted] = {}
        for place, each in wanted.items():
            try:
                keys[place] = canonical(known.channel, each.arguments)
            except UsageError as error:
                answers[place] = Granted(error=str(error))
        if not keys:
            return answers
        try:
            granted = self._subscriptions.subscribe(broker, known.id, list(keys.values()))
        except UsageError:  # It was dropped since `known` was looked up.
            return dict.fromkeys(wanted, Granted(error=was_dropped(known.channel.name)))
        first = [replace(each, first=known.first) for each in granted]
        return answers | dict(zip(keys, first, strict=True))

    def unsubscribe(self, request: Unsubscribe, *, now_s: float) -> None:
        for id in request.ended:
            self._subscriptions.unsubscribe(request.broker, id)
        for id in request.released:
            self._subscriptions.release(request.broker, id, now_s=now_s)

    def notices(self, request: NoticesAfter) -> Notices:
        return self._results.notices(request.broker, after=request.after)

    def pull(self, request: Pull) -> PullAnswer:
        if request.acknowledged:
            done = {each.id: each.start for each in request.acknowledged}
            self._subscriptions.acknowledge(request.broker, done)
        channels = self._subscriptions.channels_of(each.id for each in request.pulls)
        starts: defaultdict[int, dict[int, Position]] = defaultdict(dict)
        for each in request.pulls:
            if each.id in channels:
                starts[channels[each.id]][each.id] = each.start
        return PullAnswer(
            pulled=[
                pulled
                for channel_id, of_channel in starts.items()
                for pulled in self._results.pull(
                    channel_id, of_channel, limit_bytes=request.limit_bytes
                )
            ],
            unknown=[each.id for each in request.pulls if each.id not in channels],
        )
