"""Callers that wait for their names, and sessions that lose theirs.

A client that has chosen its name is welcomed when the network has granted it, which is up to
overlay/tree/names.py.  If a session has the name, its broker decides here: one whose client is away
yields its name; one whose client is connected keeps it, unless the other client takes it over.  A
client that moves has two sessions: it is away if it is connected to neither broker.

The network has `claim_s` to answer.  A part that does not answer in time does not keep clients out.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, assert_never

from godwit.broker.effects import NameContested, NameEffect, NameGranted, NameLost
from godwit.broker.stimuli import (
    LocalClient,
    NameContest,
    NameDecided,
    NameLeft,
    NameWaitOver,
    NameWish,
    Neighbour,
)
from godwit.errors import PeerError
from godwit.protocol.connection import Connection
from godwit.protocol.frames import Goodbye, Hello
from godwit.runtime.port import ClientPort

if TYPE_CHECKING:
    from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.names")

#: A session whose name another client wants counts as connected only after this time: the end of
#: its connection, if its process has died, may be on its way.  A name that was yielded waits for as
#: long if the client may still have a session at another broker.
CONTEST_S = 0.2
#: A client and its incarnation.
CallerKey: TypeAlias = tuple[LocalClient, str]


class Caller(NamedTuple):
    hello: Hello
    connection: Connection
    timer: asyncio.TimerHandle

    @property
    def left(self) -> NameLeft:
        """What withdraws its claim."""
        return left(self.hello)


def left(hello: Hello) -> NameLeft:
    return NameLeft(LocalClient(hello.name), hello.incarnation, hello.attachment)


class NodeNames:
    """The names of one live broker's clients."""

    def __init__(self, node: BrokerNode) -> None:
        self._node = node
        self._callers: dict[CallerKey, Caller] = {}
        """Clients that have called, and wait for their names."""

    def ask(self, hello: Hello, connection: Connection) -> None:
        """Ask the network for the name of a caller; then it is welcomed, or refused."""
        client = LocalClient(hello.name)
        key = client, hello.incarnation
        if key in self._callers:  # Its former connection is lost, and the broker does not know.
            self.hang_up(self._callers[key].connection)
        loop, wait_s = asyncio.get_running_loop(), self._node.limits.claim_s
        timer = loop.call_later(wait_s, self._node.stimulate, NameWaitOver(*key))
        self._callers[key] = Caller(hello, connection, timer)
        wish = NameWish(
            client,
            hello.incarnation,
            hello.attachment,
            hello.generation,
            hello.take_over,
            is_first=not hello.stream,
        )
        self._node.stimulate(wish)

    def check_unclaimed(self, name: str) -> None:
        """Refuse a caller that claims nothing if its name belongs to a session elsewhere."""
        if isinstance(self._node.broker.routing.names.holder(name), Neighbour):
            raise PeerError(
                f"the name {name} belongs to a session at another broker; choose another name"
            )

    def hang_up(self, connection: Connection) -> None:
        """A caller does not wait any longer."""
        for key, caller in list(self._callers.items()):
            if caller.connection is connection:
                self._forget(key)
                self._node.stimulate(caller.left)

    def _forget(self, key: CallerKey) -> Caller | None:
        caller = self._callers.pop(key, None)
        if caller is not None:
            caller.timer.cancel()
        return caller

    # -- what the router asks for --------------------------------------------------------------

    def perform(self, effect: NameEffect) -> None:
        match effect:
            case NameGranted():
                self._grant(effect)
            case NameLost():
                self._lose(effect)
            case NameContested(client=client, contest=contest):
                self._decide_soon(client, contest)
            case _:
                assert_never(effect)

    def _grant(self, granted: NameGranted) -> None:
        caller = self._forget((granted.client, granted.incarnation))
        if caller is None:
            return  # It was welcomed before.
        try:
            self._node.welcome(caller.hello, caller.connection, granted.generation)
        except PeerError as error:
            self._refuse(caller, str(error), name_is_taken=False)
            self._node.stimulate(caller.left)

    def _lose(self, lost: NameLost) -> None:
        caller = self._forget((lost.client, lost.incarnation))
        if caller is not None:
            self._refuse(caller, lost.reason, name_is_taken=lost.is_final)
            return
        port = self._node.ports.get(lost.client)
        if isinstance(port, ClientPort) and port.incarnation == lost.incarnation:
            self._end(port, lost.reason, name_is_taken=lost.is_final)

    def _refuse(self, caller: Caller, reason: str, *, name_is_taken: bool) -> None:
        log.info("refused", extra={"peer": caller.hello.name, "reason": reason})
        self._node.callers.discard(caller.connection)
        caller.connection.close(Goodbye(reason=reason, name_is_taken=name_is_taken))

    def _end(self, port: ClientPort, reason: str, *, name_is_taken: bool = True) -> None:
        """End a session; its client does not come back if its name is taken for good."""
        if port.connection is not None:
            port.connection.close(Goodbye(reason=reason, name_is_taken=name_is_taken))
        self._node.remove(port, reason)

    def _decide_soon(self, client: LocalClient, contest: NameContest) -> None:
        if self._is_there(client, contest) and not contest.request.take_over:
            asyncio.get_running_loop().call_later(CONTEST_S, self._decide, client, contest)
        else:
            self._decide(client, contest)

    def _port(self, client: LocalClient, contest: NameContest) -> ClientPort | None:
        """The port of the session that has the name, if it is still here."""
        port = self._node.ports.get(client)
        if isinstance(port, ClientPort) and port.incarnation == contest.holder.incarnation:
            return port
        return None

    def _is_there(self, client: LocalClient, contest: NameContest) -> bool:
        port = self._port(client, contest)
        is_calling = (client, contest.holder.incarnation) in self._callers
        return is_calling or (port is not None and port.is_connected)

    def _decide(self, client: LocalClient, contest: NameContest) -> None:
        """A session whose client is away yields its name, and any that is taken over."""
        node, holder = self._node, contest.holder
        port = self._port(client, contest)
        key = client, holder.incarnation
        if isinstance(node.broker.routing.names.holder(client.name), Neighbour):
            reason = f"the client {client.name} has just moved to another broker; try again"
            node.stimulate(NameDecided(contest, is_free=False, reason=reason, is_final=False))
            return
        if self._is_there(client, contest) and not contest.request.take_over:
            reason = (
                f"the name {client.name} belongs to a client that is connected to broker"
                f" {node.name}; choose another name, or take it over (take_over=True, --take-over)"
            )
            # One that is not welcomed yet may hang up, and then nobody has the name.
            is_welcomed = port is not None and port.is_connected
            decided = NameDecided(contest, is_free=False, reason=reason, is_final=is_welcomed)
            node.stimulate(decided)
            return
        reason = f"another client has taken over the name {client.name}"
        is_elsewhere = contest.has_turned and not self._is_there(client, contest)
        caller = self._forget(key)
        if caller is not None:
            self._refuse(caller, reason, name_is_taken=True)
        if port is not None:
            self._end(port, reason)
        node.stimulate(NameLeft(client, holder.incarnation, holder.attachment))
        decided = NameDecided(contest, is_free=True)
        if is_elsewhere:
            # It may be connected to the broker that it wants to leave, which claims the name again
            # (M3 in overlay/tree/names.py).  Then that one decides, and can tell it.
            asyncio.get_running_loop().call_later(CONTEST_S, node.stimulate, decided)
        else:
            node.stimulate(decided)
