"""The load balancer of a broker over HTTP: GET and POST /balancing, and its metrics."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import msgspec
from msgspec.structs import asdict
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from godwit.api.balancing_api import (
    BALANCING,
    COMMAND_BALANCING,
    BalancingAccount,
    BalancingCommand,
)
from godwit.broker.stimuli import OperatorCommand
from godwit.http.errors import RestError
from godwit.http.operations import Nothing, Served, served
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.offload_module import Offload
from godwit.runtime.broker_node import BrokerNode

log = logging.getLogger("godwit.balancing")

NOT_FOUND = 404


def account_of(node: BrokerNode) -> BalancingAccount | None:
    """What the load balancer of a broker says; None if the broker has none."""
    module = node.broker.modules.get(Offload.name)
    if module is None:
        return None
    return msgspec.convert(module.account(node.now_s()), BalancingAccount)


def balancing_operations(node: BrokerNode) -> list[Served]:
    def account() -> BalancingAccount:
        found = account_of(node)
        if found is None:
            raise RestError(
                NOT_FOUND,
                f"broker {node.name} does not balance its load: its network file has no"
                " [balancing]",
            )
        return found

    async def show(_request: Nothing) -> BalancingAccount:
        return account()

    async def command(request: BalancingCommand) -> BalancingAccount:
        account()
        log.warning("operator", extra={"broker": node.name, "command": request.command})
        node.stimulate(OperatorCommand(Offload.name, request.command))
        return account()

    return [served(BALANCING, show), served(COMMAND_BALANCING, command)]


def balancing_metrics(node: BrokerNode) -> Iterator[Metric]:
    account = account_of(node)
    if account is None:
        return
    status = GaugeMetricFamily(
        "godwit_balancing_status", "Is this the status of the load balancer?", labels=["status"]
    )
    for each in LoadStatus:
        status.add_metric([each.value], account.status == each.value)
    yield status
    flags = {
        "godwit_balancing_paused": ("Has an operator paused it?", account.is_paused),
        "godwit_balancing_dry_run": ("Does it only propose?", account.dry_run),
        "godwit_balancing_known_brokers": ("Whose loads it knows.", len(account.known)),
        "godwit_balancing_obstructed": (
            "Do loads differ, and no session finds anyone to move?",
            account.cannot_be_balanced is not None,
        ),
    }
    for name, (text, value) in flags.items():
        yield GaugeMetricFamily(name, text, value)
    bound = GaugeMetricFamily(
        "godwit_balancing_bound", "The least maximum that any assignment has.", labels=["metric"]
    )
    if account.lower_bounds is not None:
        for metric, value in asdict(account.lower_bounds).items():
            bound.add_metric([metric.removesuffix("_s")], value)
    yield bound
    yield from _sessions(node)


def _sessions(node: BrokerNode) -> Iterator[Metric]:
    decisions = node.decisions
    sessions = CounterMetricFamily(
        "godwit_balancing_sessions", "Sessions that are over.", labels=["side", "ending"]
    )
    for labels, count in decisions.sessions.items():
        sessions.add_metric(labels, count)
    yield sessions
    moves = CounterMetricFamily(
        "godwit_balancing_moves", "Clients, by what became of them.", labels=["outcome"]
    )
    for outcome in ("asked", "left", "closed", "stayed", "arrived"):
        moves.add_metric([outcome], decisions.moves[outcome])
    yield moves
    difference = GaugeMetricFamily(
        "godwit_balancing_difference",
        "Between the two brokers of the last session, before and as predicted.",
        labels=["stage"],
    )
    for stage, value in decisions.differences.items():
        difference.add_metric([stage], value)
    yield difference
    outcome_load = GaugeMetricFamily(
        "godwit_balancing_load",
        "Of this broker in its last session that has settled; error is relative.",
        labels=["metric", "stage"],
    )
    for labels, value in decisions.outcome.items():
        outcome_load.add_metric(labels, value)
    yield outcome_load
