"""Brokers and users, and the broker for a newcomer: stage 1 of balancing.

Paper    Nguyen, Uddin, Venkatasubramanian, DEBS 2019, section 5.1; the choices are in
         policies/staged/initial.py.
Departs  A user that a live broker reports as online is assigned to that broker: another choice
         would undo the balancing.

G1  No user is assigned to a broker that has been silent for `silence_s`.
G2  Nor to one that is closed: it is being drained, or joins and has not learnt everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from random import Random

from godwit.api import coordinator_api
from godwit.content.geography import GeoPoint
from godwit.coordinator.broker_records import BrokerLeft, BrokerRecord, Change, Memory, UserRecord
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.policies.staged.initial import (
    Placement,
    at_random,
    least_loaded,
    nearest,
    round_robin,
)
from godwit.protocol.addresses import url_address


class Registry:
    def __init__(
        self,
        memory: Memory,
        keep: Callable[[Change], None],
        *,
        placement: Placement,
        random: Random,
        silence_s: float,
        now_s: float,
        is_closed: Callable[[str], bool] = lambda _broker: False,
    ) -> None:
        self._memory = memory
        self._keep = keep
        self._placement = placement
        self._random = random
        self._silence_s = silence_s
        self._is_closed = is_closed
        self._newcomers = sum(user.placed for user in memory.users.values())
        # Brokers from before a restart count as live until they are found silent.
        self._heard_s = dict.fromkeys(memory.brokers, now_s)

    @property
    def brokers(self) -> Mapping[str, BrokerRecord]:
        return self._memory.brokers

    def is_live(self, broker: str, now_s: float) -> bool:
        heard_s = self._heard_s.get(broker)
        return heard_s is not None and now_s - heard_s < self._silence_s

    def live(self, now_s: float) -> list[str]:
        return sorted(broker for broker in self.brokers if self.is_live(broker, now_s))

    def open(self, now_s: float) -> list[str]:
        """Brokers that take clients."""
        return [broker for broker in self.live(now_s) if not self._is_closed(broker)]

    def remove(self, broker: str) -> None:
        """A broker has left for good."""
        self._heard_s.pop(broker, None)
        if broker in self.brokers:
            self._keep(BrokerLeft(broker))

    def register_broker(self, request: coordinator_api.RegisterBroker, now_s: float) -> None:
        url_address(request.url)
        if request.http is not None and not request.http.startswith(("http://", "https://")):
            raise UsageError(f"http: {request.http!r} is not an address: write http://HOST:PORT")
        record = BrokerRecord(request.broker, request.url, request.http, request.location)
        for other in self.brokers.values():
            is_other = other.broker != record.broker and other.url == record.url
            if is_other and self.is_live(other.broker, now_s):
                raise RestError(
                    409, f"{record.url} is the address of broker {other.broker}", where="url"
                )
        self._heard_s[record.broker] = now_s
        if self.brokers.get(record.broker) != record:
            self._keep(record)

    def hear_of(self, broker: str, now_s: float) -> None:
        if broker not in self.brokers:
            raise RestError(404, f"broker {broker!r} is not registered", where="broker")
        self._heard_s[broker] = now_s

    def register_user(self, request: coordinator_api.RegisterUser) -> None:
        known = self._memory.users.get(request.user)
        if known is None:
            self._keep(UserRecord(request.user, request.location))
        elif request.location not in (None, known.location):
            self._keep(UserRecord(request.user, request.location, known.placed, known.broker))

    def assign(
        self,
        request: coordinator_api.RequestBroker,
        now_s: float,
        *,
        home: str | None,
        loads: Mapping[str, float],
    ) -> coordinator_api.Assigned:
        """The broker for a user; `home` is the broker that reports the user as online."""
        known = self._memory.users.get(request.user)
        if known is None:
            raise RestError(404, f"user {request.user!r} is not registered", where="user")
        there = self.open(now_s)
        if not there:
            raise RestError(503, "there is no live broker", retry_after_s=self._silence_s / 3)
        location = request.location or known.location
        if home in there:
            return coordinator_api.Assigned(home, self.brokers[home].url, "its present broker")
        broker, why = self.choose(there, location, loads, self._newcomers)
        self._newcomers += 1
        self._keep(UserRecord(request.user, location, known.placed + 1, broker))
        return coordinator_api.Assigned(broker, self.brokers[broker].url, why)

    def location(self, user: str) -> GeoPoint | None:
        known = self._memory.users.get(user)
        return None if known is None else known.location

    def choose(
        self,
        live: list[str],
        location: GeoPoint | None,
        loads: Mapping[str, float],
        turn: int,
    ) -> tuple[str, str]:
        """One of these brokers for a client, by the configured placement, and why."""
        match self._placement:
            case Placement.NEAREST:
                places = {b: at for b in live if (at := self.brokers[b].location)}
                if location is None or not places:
                    broker = live[round_robin(turn, len(live))]
                    return broker, "round robin: no location is known"
                return list(places)[nearest(location, list(places.values()))], "the nearest"
            case Placement.ROUND_ROBIN:
                return live[round_robin(turn, len(live))], "round robin"
            case Placement.RANDOM:
                return live[at_random(self._random, len(live))], "at random"
            case Placement.LEAST_LOADED:
                return live[least_loaded([loads.get(b, 0.0) for b in live])], "the least loaded"
