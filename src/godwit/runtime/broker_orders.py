"""What a coordinator may order a broker to do, and what the broker says about itself.

O1  An order is obeyed only with an authority that is not below the highest one seen; of two
    coordinators with the same number, the first one seen, and of its runs the latest.
O2  A broker that has a coordinator obeys nothing before that has told its authority, for a while:
    a restart does not make it forget who is in charge.
O3  A broker leaves only if it has no client and at most one link; in clusters, if it has no mate.
O4  `restart` and `leave` are for one run of the broker: repeated, they do nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import secrets
from collections import Counter, defaultdict
from collections.abc import Callable

from godwit.api.network_api import (
    Authority,
    BrokerAccount,
    ClientNames,
    ClusterAccount,
    Command,
    LinkView,
    Order,
)
from godwit.broker.routing import in_use
from godwit.broker.stimuli import LinkKind, LocalClient
from godwit.http.errors import RestError
from godwit.overlay.clusters.cluster_routing import ClusterRouting
from godwit.runtime.broker_node import BrokerNode
from godwit.runtime.port import LinkPort, Port
from godwit.sharing.gateway import Gateway

log = logging.getLogger("godwit.orders")

CONFLICT, LATER = 409, 503
#: A broker waits at most this long for the authority of its coordinator, which may be down.
AUTHORITY_S = 10.0
#: For the answer to leave before the process ends.
END_S = 0.1
#: The exit code of a broker that has left for good: supervisors do not start it again.
LEFT = 3


class BrokerOrders:
    def __init__(
        self,
        node: BrokerNode,
        gateway: Gateway,
        *,
        forget: Callable[[str], None],
        has_coordinator: bool = False,
    ) -> None:
        """`forget` ends the calls to a neighbour that has left."""
        self.start = secrets.token_hex(6)
        self.http_url: str | None = None
        self.is_supervised = False
        self.finds_clusters = False
        """The coordinator may change the number of clusters."""
        self.because = ""
        """Why the broker is being drained."""
        self.authority: Authority | None = None
        self.obeyed: Counter[str] = Counter()
        self.refused = 0
        self.ending: Command | None = None
        self.ended = asyncio.Event()
        """Set when the process should end, as `ending` says."""
        self.node = node
        self._gateway = gateway
        self._forget = forget
        self._started_s = node.now_s()
        self._awaits_authority = has_coordinator

    # -- what it says --------------------------------------------------------------------------

    def account(self) -> BrokerAccount:
        node = self.node
        load, names = node.meters.load(node.now_s()), self.clients()
        ports = node.ports.values()
        return BrokerAccount(
            broker=node.name,
            start=self.start,
            pid=os.getpid(),
            started_s=self._started_s,
            url=node.broker.address,
            http=self.http_url,
            is_ready=node.broker.routing.is_complete and not node.is_recovering,
            is_draining=node.is_draining,
            because=self.because if node.is_draining else "",
            is_supervised=self.is_supervised,
            link_s=node.limits.link_s,
            clients=len(names.connected),
            clients_away=len(names.away),
            http_sessions=self._gateway.sessions,
            clients_max=node.limits.connections_max,
            links=self._links(),
            soft_links=self._soft_links(),
            awaited=sorted({each.name for each in node.epochs.expected if each not in node.ports}),
            missing=[str(missing) for missing in node.links.missing],
            publishers=sum(p.traffic.has_published for p in ports if _is_client(p)),
            subscriptions=node.broker.routing.subscription_count,
            advertisements=node.broker.routing.advertisement_count,
            queue_bytes=sum(p.stream.pending_bytes + p.stream.unacknowledged_bytes for p in ports),
            deliveries=node.outbox.deliveries,
            dropped=node.dropped.total() + sum(p.traffic.dropped for p in ports),
            publications_per_s=load.publications_per_s,
            input_bytes_per_s=load.bytes_in_per_s,
            output_bytes_per_s=load.bytes_out_per_s,
            output_bandwidth_bytes_s=node.meters.output_bandwidth_bytes_s,
            limits_output=node.limiter is not None,
            load_window_s=node.limits.load_window_s,
            input_utilisation=_finite(load.input_utilisation),
            output_utilisation=_finite(load.output_utilisation),
            matching_delay_s=_finite(load.matching_delay_s),
            epoch=node.epochs.status.epoch,
            clusters=self._clusters(),
            authority=self.authority,
        )

    def _clusters(self) -> ClusterAccount | None:
        used = in_use(self.node.broker.routing)
        if not isinstance(used, ClusterRouting):
            return None
        structure, counts = used.structure, used.cluster_counts
        return ClusterAccount(
            brokers=list(structure.brokers),
            clusters=len(structure.clusters),
            finds_clusters=self.finds_clusters,
            published=counts.published,
            reached=counts.reached,
            sent=counts.sent,
            standing=counts.standing,
        )

    def _links(self) -> list[LinkView]:
        """Each with what was sent over it, in all lanes."""
        sent, kinds = self._sent()
        return sorted(
            LinkView(
                end.neighbour,
                end.status.name.lower().replace("_", " "),
                sent[end.neighbour],
                kinds.get(end.neighbour, LinkKind.PRIMARY).value,
            )
            for end in self.node.links.own
        )

    def _soft_links(self) -> list[LinkView]:
        sent, kinds = self._sent()
        own = {end.neighbour for end in self.node.links.own}
        soft = [name for name, kind in kinds.items() if kind is LinkKind.SOFT and name not in own]
        return sorted(LinkView(name, "up", sent[name], LinkKind.SOFT.value) for name in soft)

    def _sent(self) -> tuple[dict[str, float], dict[str, LinkKind]]:
        """Bytes per second to each neighbour, and the kind of its link."""
        sent: defaultdict[str, float] = defaultdict(float)
        kinds: dict[str, LinkKind] = {}
        for port in self.node.ports.values():
            if isinstance(port, LinkPort):
                sent[port.hop.name] += port.traffic.last_bytes_out / self.node.meters.window_s
                kinds[port.hop.name] = port.kind
        return sent, kinds

    def clients(self) -> ClientNames:
        ports = [port for port in self.node.ports.values() if _is_client(port)]
        return ClientNames(_names(ports, is_connected=True), _names(ports, is_connected=False))

    # -- who is in charge ----------------------------------------------------------------------

    def on_registered(self, authority: Authority | None) -> None:
        """The broker's own coordinator has answered."""
        self._awaits_authority = False
        if authority is not None and self._objection(authority) is None:
            self.authority = authority

    def check(self, authority: Authority, what: str) -> None:
        """Accept the authority of an order, or raise RestError."""
        name = self.node.name
        if self._awaits_authority and self.node.now_s() < self._started_s + AUTHORITY_S:
            reason = f"broker {name} has just started: its coordinator has not answered yet"
            raise RestError(LATER, reason, retry_after_s=1)
        objection = self._objection(authority)
        if objection is not None:
            self.refused += 1
            log.warning("order refused", extra={"order": what, "reason": objection})
            raise RestError(CONFLICT, objection, where="authority")
        self.authority = authority

    def _objection(self, authority: Authority) -> str | None:
        seen = self.authority
        if not authority.yields_to(seen):
            return None
        return (
            f"broker {self.node.name} obeys authority {seen}, and this order has {authority};"
            " if that coordinator is gone, let this one take over"
        )

    # -- orders --------------------------------------------------------------------------------

    def obey(self, order: Order) -> BrokerAccount:
        self.check(order.authority, order.command)
        is_repeated = order.command == "drain" and self.node.is_draining
        match order.command:
            case "obey":
                pass
            case "drain":
                self.drain(order.reason)
            case "undrain":
                self.node.is_draining = False
            case "restart":
                self._restart(order)
            case "leave":
                self._leave(order)
            case "forget":
                self._forget(order.broker)
        if not is_repeated:
            self.obeyed[order.command] += 1
            log.info("order", extra={"order": order.command, "by": str(order.authority)})
        return self.account()

    def drain(self, reason: str) -> None:
        self.node.is_draining = True
        self.because = reason

    def _restart(self, order: Order) -> None:
        if order.start not in ("", self.start):
            return  # O4
        if not self.is_supervised:
            raise RestError(
                CONFLICT,
                f"broker {self.node.name} would not be started again: run it under a supervisor"
                " that restarts it at once, and with --supervised",
            )
        self._end(order.command)

    def _leave(self, order: Order) -> None:
        if order.start not in ("", self.start):
            return  # O4
        name, names = self.node.name, self.clients()
        if names.connected or names.away:
            count = len(names.connected) + len(names.away)
            raise RestError(CONFLICT, f"broker {name} still has {count} clients: drain it first")
        used = in_use(self.node.broker.routing)
        if isinstance(used, ClusterRouting):
            if used.structure.mates(name):
                reason = f"broker {name} has mates, which rely on it: let a coordinator order this"
                raise RestError(CONFLICT, reason)
            self._end_for_good(order)
            return
        links = [end.neighbour for end in self.node.links.own]
        if len(links) > 1:
            raise RestError(CONFLICT, f"broker {name} links {', '.join(sorted(links))}: not a leaf")
        self._end_for_good(order)

    def _end_for_good(self, order: Order) -> None:
        self.drain(order.reason)
        self._end(order.command)

    def _end(self, command: Command) -> None:
        self.ending = command
        asyncio.get_running_loop().call_later(END_S, self.ended.set)


def _is_client(port: Port) -> bool:
    return isinstance(port.hop, LocalClient)


def _names(ports: list[Port], *, is_connected: bool) -> list[str]:
    return sorted(port.hop.name for port in ports if port.is_connected is is_connected)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
