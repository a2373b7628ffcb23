"""A coordinator with brokers, for tests that move its clock by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from random import Random

from godwit.api import coordinator_api
from godwit.api.broker_api import MoveOutcome
from godwit.coordinator.broker_records import Memory
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.deciding import decide
from godwit.coordinator.rounds import Batch
from godwit.coordinator.settings import CoordinatorSettings

#: Everybody may move at once, and nobody has to wait.
QUICK = CoordinatorSettings(moves_per_s=1000.0, alpha=0.1, gamma=100.0, report_s=10.0, hold_s=60.0)

#: What each subscriber holds: one BE subscription of its own, which brings 100 bytes a second.
Homes = Mapping[str, Iterable[str]]


def broker_at(port: int, **fields: object) -> coordinator_api.RegisterBroker:
    url, http = f"godwit://127.0.0.1:{port}", f"http://127.0.0.1:{1000 + port}"
    return coordinator_api.RegisterBroker(f"B{port}", url, **{"http": http, **fields})  # type: ignore[arg-type]


def coordinator(
    brokers: int = 3,
    settings: CoordinatorSettings = QUICK,
    memory: Memory | None = None,
    *,
    now_s: float = 0.0,
) -> Coordinator:
    core = Coordinator(settings, memory, random=Random(1), now_s=now_s)
    for number in range(1, brokers + 1):
        core.register_broker(broker_at(number), now_s)
    return core


def report(
    broker: str, subscribers: Iterable[str] = (), rate: float = 100.0
) -> coordinator_api.LoadReport:
    """Each subscriber holds the BE subscription with the number that its name ends with."""
    held = {name: [int(name[1:])] for name in subscribers}
    rates = {be: rate for bes in held.values() for be in bes}
    total = rate * len(held)
    return coordinator_api.LoadReport(broker, total, total, rates, held)


def reported(core: Coordinator, now_s: float, homes: Homes) -> None:
    for broker, subscribers in homes.items():
        core.report(report(broker, subscribers), now_s)


def look(core: Coordinator, now_s: float) -> bool:
    """Look at the loads, if that is due, and decide."""
    due = core.due(now_s)
    if due is None:
        return False
    core.adopt(decide(due.situation(), due.held, core.settings), now_s)
    return True


def asked(batches: Iterable[Batch]) -> dict[str, tuple[str, str]]:
    return {client: (b.source, b.target) for b in batches for client in b.clients}


def all_moved(batch: Batch) -> MoveOutcome:
    return MoveOutcome(moved=list(batch.clients), stayed={}, unknown=[])


def outcomes(core: Coordinator) -> dict[str, str]:
    """Of the last move of each client."""
    return {move.client: move.outcome.value for _, move in sorted(core.memory.moves.items())}
