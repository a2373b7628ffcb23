"""Brokers that take the clients of another one, and how many more.  Pure.

G3  No client is sent to a broker that is silent, drained, joining, or full, nor to the broker that
    it leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from collections.abc import Set as AbstractSet

from godwit.api.network_api import BrokerAccount, BrokerLoad

#: The broker for a client, of some; with their numbers of clients, and a running number.
Chooser = Callable[[str, list[str], Mapping[str, float], int], str]


class Targets:
    def __init__(self, accounts: Iterable[BrokerAccount], choose: Chooser) -> None:
        """`accounts` of brokers that serve clients."""
        self._choose = choose
        self._clients = {a.broker: a.clients + a.clients_away for a in accounts}
        self._max = {a.broker: a.clients_max for a in accounts}
        self._turn = 0

    @property
    def room(self) -> int:
        return sum(max(0, self._max[broker] - self._clients[broker]) for broker in self._clients)

    def take(self, client: str, avoided: AbstractSet[str] = frozenset()) -> str | None:
        """The broker for one more client; `avoided` only if there is no other."""
        free = [b for b in sorted(self._clients) if self._clients[b] < self._max[b]]
        free = [broker for broker in free if broker not in avoided] or free
        if not free:
            return None
        loads = {broker: float(self._clients[broker]) for broker in free}
        target = self._choose(client, free, loads, self._turn)
        self._turn += 1
        self._clients[target] += 1
        return target


class RenewedTargets:
    """As `Targets`; if there is no broker for a client, those that serve now are looked at.

    One that was restarted when the moves began is back soon.
    """

    def __init__(self, make: Callable[[], Targets]) -> None:
        self._make = make
        self._targets = make()

    def take(self, client: str, avoided: AbstractSet[str] = frozenset()) -> str | None:
        found = self._targets.take(client, avoided)
        if found is None:
            self._targets = self._make()
            found = self._targets.take(client, avoided)
        return found


def planned_first(
    clients: Mapping[str, str], take: Callable[[str, AbstractSet[str]], str | None]
) -> Callable[[str, AbstractSet[str]], str | None]:
    """A client goes where it was planned; if it was sent there in vain, to any that has room."""

    def choose(client: str, avoided: AbstractSet[str]) -> str | None:
        planned = clients.get(client)
        return take(client, avoided) if planned is None or planned in avoided else planned

    return choose


def serving(
    accounts: Mapping[str, BrokerAccount],
    *,
    live: Collection[str],
    closed: Collection[str],
    only: Collection[str] = (),
) -> list[BrokerAccount]:
    """The brokers that take clients; `closed` ones are drained, joining, or left by them."""
    return [
        account
        for name, account in sorted(accounts.items())
        if name in live
        and name not in closed
        and account.is_ready
        and not account.is_draining
        and (not only or name in only)
    ]


def loads_of(accounts: Iterable[BrokerAccount]) -> dict[str, BrokerLoad]:
    return {
        account.broker: BrokerLoad(
            clients=account.clients + account.clients_away,
            output_bytes_per_s=account.output_bytes_per_s,
        )
        for account in accounts
    }


def loads_after(
    before: Mapping[str, BrokerLoad], source: str, went: Mapping[str, str]
) -> dict[str, BrokerLoad]:
    """The loads when these clients of `source` have moved, each with an equal share of its output.

    The output of a broker to its neighbours is not told apart from that to its clients.
    """
    after = dict(before)
    share = before[source].output_bytes_per_s / max(1, before[source].clients)
    for target in went.values():
        for broker, sign in ((source, -1), (target, 1)):
            load = after.get(broker, BrokerLoad(clients=0))
            after[broker] = BrokerLoad(
                clients=load.clients + sign,
                output_bytes_per_s=max(0.0, load.output_bytes_per_s + sign * share),
            )
    return after
