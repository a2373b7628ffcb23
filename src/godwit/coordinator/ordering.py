"""What a coordinator asks of brokers during a change: accounts, orders, moves of their clients.

Requests are tried again for a while; what brokers answer is remembered.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
from collections.abc import Set as AbstractSet

from godwit.api.network_api import (
    CLIENTS,
    NETWORK,
    ORDER,
    BrokerAccount,
    ClientNames,
    Command,
    NetworkChange,
    Order,
)
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.change_targets import Targets, serving
from godwit.coordinator.changes import text_of
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.moving_clients import MovingClients
from godwit.coordinator.paced_moves import PacedMoves
from godwit.errors import GodwitError, UnreachableError
from godwit.http.errors import RestError
from godwit.http.operations import Answer, Asked, Nothing, Operation

TICK_S = 0.1
ANSWER_S = 5.0
#: For brokers that are asked how they are.
ACCOUNT_S = 2.0
LATER = 503

#: The broker for a client; those where it was sent in vain are the second argument.
Choose = Callable[[str, AbstractSet[str]], str | None]


class Ordering:
    def __init__(self, core: Coordinator, calls: BrokerCalls, save: Callable[[], bool]) -> None:
        self.calls = calls
        self._core = core
        self._save = save

    @property
    def change(self) -> NetworkChange:
        """The one that is under way."""
        current = self._core.changes.current
        assert current is not None
        return current

    async def saved(self) -> None:
        """Wait until the record is on the disk."""
        while not self._save():  # noqa: ASYNC110  A full disk has no event.
            await asyncio.sleep(1.0)

    # -- how brokers are -----------------------------------------------------------------------

    async def look(self) -> None:
        """Ask all brokers how they are."""
        brokers = [name for name, each in self._core.registry.brokers.items() if each.http]
        await asyncio.gather(*(self.look_at(broker) for broker in brokers))

    async def look_at(self, broker: str) -> BrokerAccount | None:
        try:
            view = await self.calls.call(broker, NETWORK, Nothing(), answer_s=ACCOUNT_S)
        except GodwitError:
            return None
        account = view.brokers[0].account if view.brokers else None
        if account is None or account.broker != broker:
            return None
        now_s = time.time()
        self._core.registry.hear_of(broker, now_s)
        self._core.hear(account, now_s)
        return account

    async def clients_of(self, broker: str, *, within_s: float | None = None) -> ClientNames:
        return await self.call(broker, CLIENTS, Nothing(), within_s=within_s)

    # -- orders --------------------------------------------------------------------------------

    async def call(
        self,
        broker: str,
        operation: Operation[Asked, Answer],
        request: Asked,
        *,
        within_s: float | None = None,
    ) -> Answer:
        """Try again for a while if the broker does not answer."""
        limit_s = self.change.request.within_s if within_s is None else within_s
        start_s = time.monotonic()
        while True:
            try:
                return await self.calls.call(broker, operation, request, answer_s=ANSWER_S)
            except GodwitError as error:
                is_later = isinstance(error, RestError) and error.status == LATER
                if not (isinstance(error, UnreachableError) or is_later):
                    raise
                if time.monotonic() - start_s > limit_s:
                    text = f"broker {broker} has not answered for {limit_s:g} s: {error}"
                    raise UnreachableError(text) from None
            await asyncio.sleep(TICK_S)

    async def order(
        self,
        broker: str,
        command: Command,
        *,
        within_s: float | None = None,
        reason: str = "",
        start: str = "",
        about: str = "",
    ) -> BrokerAccount:
        current = self._core.changes.current
        if current is not None and not reason:
            because = f": {current.request.reason}" if current.request.reason else ""
            reason = f"change {current.number}, {text_of(current.request)}{because}"
        order = Order(
            authority=self._core.authority,
            command=command,
            reason=reason[:500],
            start=start,
            broker=about,
        )
        account = await self.call(broker, ORDER, order, within_s=within_s)
        self._core.hear(account, time.time())
        return account

    # -- moves ---------------------------------------------------------------------------------

    def targets(self, leaving: str, to: Collection[str]) -> Targets:
        """Brokers that may take the clients of one that they leave."""
        core, now_s = self._core, time.time()
        return Targets(
            serving(
                {name: account for name, (_, account) in core.accounts.items()},
                live=core.registry.live(now_s),
                closed={leaving, *core.changes.joining},
                only=to,
            ),
            lambda client, free, loads, turn: core.registry.choose(
                free, core.registry.location(client), loads, turn
            )[0],
        )

    def moving(self, choose: Choose) -> MovingClients:
        """Moves at the rate of the change."""
        request, settings = self.change.request, self._core.settings
        moves = PacedMoves(request.per_s or settings.moves_per_s, choose, now_s=time.time())
        return MovingClients(
            moves, self.calls, self._core.authority, within_s=settings.move_timeout_s
        )
