"""A plan of the allocator as a change: its steps, whether it is possible, expected loads.  Pure.

    start     brokers that the plan needs and that do not run
    reshape   the plan's tree; brokers that it does not need are leaves of its root
    undrain   brokers of the plan that were idle
    move      clients, to the brokers that the plan has for them
    drain     each broker that is not needed: who has come meanwhile
    leave     it stops, unless it is kept

In this order every client has a broker that is part of the tree at any time, and the tree is
changed once: a broker leaves when it is an empty leaf.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping

from godwit.api.network_api import BrokerAccount, BrokerLoad, ChangeRequest, ChangeStep, StepKind
from godwit.coordinator.change_rules import (
    CONFLICT,
    WRONG,
    Circumstances,
    check_can_be_ordered,
    check_links,
)
from godwit.coordinator.newcomers import start_command
from godwit.http.errors import RestError

THE_NETWORK = "the network"

Links = list[tuple[str, str]]


def released(request: ChangeRequest, live: Collection[str]) -> list[str]:
    """The brokers that the plan does not need."""
    return sorted(set(live) - set(request.brokers))


def tree_of(request: ChangeRequest, live: Collection[str]) -> Links:
    """The links of all brokers, before those that are not needed leave."""
    root = root_of(request)
    return [*request.links, *((root, broker) for broker in released(request, live))]


def root_of(request: ChangeRequest) -> str:
    return request.brokers[0] if request.link is None else request.link


def allocation_steps(request: ChangeRequest, now: Circumstances) -> list[ChangeStep]:
    idle = released(request, now.live)
    members = [*request.brokers, *idle]
    starts = [broker for broker in request.brokers if broker not in now.live]
    steps = [ChangeStep(kind=StepKind.START, broker=broker) for broker in starts]
    tree = tree_of(request, now.live)
    if starts or _ends(tree) != now.links:
        steps.append(
            ChangeStep(kind=StepKind.RESHAPE, broker=THE_NETWORK, members=members, links=tree)
        )
    steps += [
        ChangeStep(kind=StepKind.UNDRAIN, broker=broker)
        for broker in request.brokers
        if broker in now.accounts and now.accounts[broker].is_draining
    ]
    if request.clients:
        steps.append(ChangeStep(kind=StepKind.MOVE, broker=THE_NETWORK))
    for broker in idle:
        steps.append(ChangeStep(kind=StepKind.DRAIN, broker=broker))
        if not request.keeps:
            steps.append(ChangeStep(kind=StepKind.LEAVE, broker=broker))
    return steps


def _ends(links: Collection[tuple[str, str]]) -> frozenset[tuple[str, str]]:
    return frozenset((min(link), max(link)) for link in links)


def check_allocation(request: ChangeRequest, now: Circumstances) -> None:
    """Raise RestError if the plan cannot be carried out."""
    if request.link is not None and request.link not in request.brokers:
        raise RestError(WRONG, f"the root {request.link} is not a broker of the plan", where="link")
    check_links(request.brokers, request.links)
    unknown = sorted(set(request.clients.values()) - set(request.brokers))
    if unknown:
        text = f"clients are planned for {', '.join(unknown)}, which the plan does not have"
        raise RestError(WRONG, text, where="clients")
    stopped = [name for name in request.brokers if name not in now.live | now.startable]
    if stopped:
        commands = "; ".join(map(start_command, stopped))
        raise RestError(
            CONFLICT,
            f"the plan needs {', '.join(stopped)}, which do not run, and nothing is known to start"
            f" them (`godwit up --restart` does, if they were in its file): {commands}",
            where="brokers",
        )
    for name in sorted(now.live):
        check_can_be_ordered(name, now)
        _check_linked(now.accounts[name])
    for name, count in sorted(Counter(request.clients.values()).items()):
        if name in now.accounts and count > now.accounts[name].clients_max:
            most = now.accounts[name].clients_max
            text = f"{count} clients are planned for {name}, which admits {most}: raise its"
            raise RestError(CONFLICT, f"{text} `connections_max`", where="clients")


def _check_linked(account: BrokerAccount) -> None:
    """A broker that is away would hold the change of the tree up until it is given up."""
    for link in account.links:
        if link.status not in ("up", "given up"):
            raise RestError(
                CONFLICT,
                f"the link {account.broker} - {link.neighbour} is {link.status}: repeat it when"
                f" {link.neighbour} is back, or has been given up",
                where="brokers",
            )


def planned_moves(request: ChangeRequest, homes: Mapping[str, str]) -> dict[str, str]:
    """Clients that are elsewhere now, with the brokers of the plan; `homes` is where they are."""
    return {
        client: request.clients[client]
        for client, home in homes.items()
        if request.clients.get(client, home) != home
    }


def expected_loads(
    request: ChangeRequest, homes: Mapping[str, str], others: Mapping[str, str]
) -> dict[str, BrokerLoad]:
    """As the plan says; `others` are clients that it does not have, with where they go."""
    at = Counter({**homes, **planned_moves(request, homes), **others}.values())
    return {
        broker: BrokerLoad(clients=at[broker], output_bytes_per_s=request.outputs.get(broker, 0.0))
        for broker in request.brokers
    }
