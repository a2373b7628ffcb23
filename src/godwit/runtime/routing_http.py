"""The tables of a broker over HTTP, with filters: GET /subscriptions, /decisions, POST /explain.

Long tables are read in steps, between which the broker serves its peers.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Iterator, Mapping
from itertools import islice

from godwit.api.routing_api import (
    CLIENT,
    DECISIONS,
    EXPLAIN_HOP,
    SUBSCRIPTIONS,
    ClientAccount,
    ClientQuestion,
    ClientState,
    DecisionList,
    HopAccount,
    HopQuestion,
    PolicyDecision,
    SubscriptionPage,
    TableEntryView,
    WhichDecisions,
    WhichSubscriptions,
)
from godwit.broker.explaining import SCANNED, explain_hop, hop_text, owner_of
from godwit.broker.stimuli import Hop, LocalClient, Neighbour
from godwit.content.filters import Filter
from godwit.content.messages import is_control_filter
from godwit.content.values import check_record
from godwit.http.operations import Served, served
from godwit.runtime.broker_orders import BrokerOrders


def routing_operations(orders: BrokerOrders) -> list[Served]:
    node = orders.node

    async def subscriptions(request: WhichSubscriptions) -> SubscriptionPage:
        tables = node.broker.routing.tables()
        found = await _views(request, tables.wanted, tables.subscriptions, tables.pending)
        announced = await _views(
            request, tables.advertised, tables.advertisements, tables.announcing
        )
        page = slice(request.skip, request.skip + request.limit)
        return SubscriptionPage(
            broker=node.name,
            subscriptions=found[page],
            advertisements=announced[page],
            found=len(found),
        )

    async def explain(request: HopQuestion) -> HopAccount:
        return await _explained(orders, request)

    async def decisions(request: WhichDecisions) -> DecisionList:
        recent = [each for each in _decisions(orders) if each.number > request.after]
        return DecisionList(broker=node.name, start=orders.start, decisions=recent)

    async def client(request: ClientQuestion) -> ClientAccount:
        state = _state(orders, request.name)
        about = [each for each in _decisions(orders) if each.subject == request.name]
        if state is None:
            return ClientAccount(broker=node.name, state=None, decisions=about)
        tables = node.broker.routing.tables()
        local = WhichSubscriptions(contains=f"{request.name}/", is_local=True)
        held = await _views(local, tables.wanted, tables.subscriptions, tables.pending)
        announced = await _views(local, tables.advertised, tables.advertisements, tables.announcing)
        return ClientAccount(
            broker=node.name,
            state=state,
            subscriptions=[each for each in held if each.client == request.name],
            advertisements=[each for each in announced if each.client == request.name],
            decisions=about,
        )

    return [
        served(CLIENT, client),
        served(SUBSCRIPTIONS, subscriptions),
        served(EXPLAIN_HOP, explain),
        served(DECISIONS, decisions),
    ]


async def _explained(orders: BrokerOrders, request: HopQuestion) -> HopAccount:
    node = orders.node
    steps = explain_hop(
        node.broker.routing,
        check_record(request.record),
        publisher=request.publisher,
        came_from=request.came_from,
        subscriber=request.subscriber,
        hops=request.hops,
        now_s=node.now_s(),
    )
    while True:
        try:
            next(steps)
        except StopIteration as stopped:
            explanation = stopped.value
            break
        await asyncio.sleep(0)
    account = orders.account()
    return HopAccount(
        broker=node.name,
        explanation=explanation,
        publisher=_state(orders, request.publisher),
        subscriber=_state(orders, request.subscriber),
        links={link.neighbour: link.status for link in account.links},
        missing=account.missing,
    )


def _decisions(orders: BrokerOrders) -> list[PolicyDecision]:
    return [
        PolicyDecision(
            number=number,
            at_s=at_s,
            policy=policy,
            action=made.action,
            subject=made.subject,
            source=made.source,
            target=made.target,
            reason={key: _finite(value) for key, value in made.reason.items()},
        )
        for number, at_s, policy, made in orders.node.decisions.recent
    ]


async def _views(
    request: WhichSubscriptions,
    filters: Mapping[str, Filter],
    hops: Mapping[str, Hop],
    pending: frozenset[str],
) -> list[TableEntryView]:
    """Those that are asked for; control filters, which are the brokers' own, are left out."""
    found: list[TableEntryView] = []
    entries: Iterator[tuple[str, Filter]] = iter(filters.items())
    while some := list(islice(entries, SCANNED)):
        for id, filter in some:
            hop = hops[id]
            if is_control_filter(filter) or (request.is_local and isinstance(hop, Neighbour)):
                continue
            text = str(filter)
            if request.contains in id or request.contains in text:
                found.append(
                    TableEntryView(
                        id=id,
                        client=owner_of(id),
                        filter=text,
                        hop=hop_text(hop),
                        in_effect=id not in pending,
                    )
                )
        await asyncio.sleep(0)
    return found


def _state(orders: BrokerOrders, client: str) -> ClientState | None:
    port = orders.node.ports.get(LocalClient(client)) if client else None
    if port is None:
        return None
    return ClientState(
        client=client,
        is_connected=port.is_connected,
        is_isolated=port.is_isolated,
        dropped=port.traffic.dropped,
        queue_bytes=port.stream.pending_bytes + port.stream.unacknowledged_bytes,
    )


def _finite(value: float | str) -> float | str | None:
    return None if isinstance(value, float) and not math.isfinite(value) else value
