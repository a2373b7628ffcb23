"""CBC of a broker over HTTP: CROC begins a gathering here, fetches its pages and ends it."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric

from godwit.api.gathering_api import (
    BEGIN_GATHERING,
    END_GATHERING,
    FETCH_PAGES,
    BeginGathering,
    EndGathering,
    FetchedPages,
    FetchPages,
    GatheringBegun,
)
from godwit.broker.stimuli import OperatorCommand
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.http.operations import Nothing, Served, served
from godwit.policies.allocation.cbc import Cbc
from godwit.runtime.broker_node import BrokerNode

NOT_FOUND, CONFLICT = 404, 409


def gathering_operations(node: BrokerNode) -> list[Served]:
    def cbc() -> Cbc:
        module = node.broker.modules.get(Cbc.name)
        if not isinstance(module, Cbc):
            raise RestError(
                NOT_FOUND,
                f"broker {node.name} does not profile its clients: its network file has no"
                " [profiling]",
            )
        return module

    def tell(command: str, status: int) -> None:
        try:
            node.stimulate(OperatorCommand(Cbc.name, command))
        except UsageError as error:
            raise RestError(status, str(error)) from None

    async def begin(request: BeginGathering) -> GatheringBegun:
        cbc()
        id = f"{node.name}-{secrets.token_hex(8)}"
        tell(f"gather {id} {request.silence_s}", CONFLICT)
        return GatheringBegun(id)

    async def fetch(request: FetchPages) -> FetchedPages:
        module = cbc()
        tell(f"fetch {_word(request.id)} {request.received}", NOT_FOUND)
        held = module.held(request.id)
        return FetchedPages(first=held.first, pages=held.pages, is_complete=held.is_complete)

    async def end(request: EndGathering) -> Nothing:
        cbc()
        tell(f"end {_word(request.id)}", NOT_FOUND)
        return Nothing()

    return [served(BEGIN_GATHERING, begin), served(FETCH_PAGES, fetch), served(END_GATHERING, end)]


def _word(id: str) -> str:
    if len(id.split()) != 1:
        raise RestError(NOT_FOUND, f"there is no gathering {id!r} at this broker")
    return id


def profiling_metrics(node: BrokerNode) -> Iterator[Metric]:
    module = node.broker.modules.get(Cbc.name)
    if not isinstance(module, Cbc):
        return
    account = module.account(node.now_s())
    for name, key, text in (
        ("godwit_profiled_subscriptions", "subscriptions", "Subscriptions with a profile."),
        ("godwit_profile_vectors", "vectors", "Bit vectors of profiles in memory."),
        ("godwit_gatherings", "gatherings", "Gatherings that this broker takes part in."),
    ):
        yield GaugeMetricFamily(name, text, value=float(str(account[key])))
    yield CounterMetricFamily(
        "godwit_profile_vectors_dropped",
        "Bit vectors that were dropped because there were too many.",
        value=float(str(account["vectors_dropped"])),
    )
