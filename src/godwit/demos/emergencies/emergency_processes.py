"""The processes of the scenario: a coordinator, brokers, and a data cluster with its channels."""

from __future__ import annotations

import contextlib
import csv
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from godwit.api import datacluster_api as api
from godwit.content.values import Record
from godwit.demos.emergencies.scenario import EmergencyScenario, Town
from godwit.http.http_client import HttpClient
from godwit.overlay.topology import star
from godwit.runtime.processes import Processes, free_port
from godwit.runtime.service import Service
from godwit.runtime.settings import NetworkSettings, network_of
from godwit.workloads.emergencies import shelters
from godwit.workloads.emergency_channels import DATASETS, FEEDS

#: Statements wait for Spark, which is slow at first.
STATEMENT_S = 180.0
#: Settings of the coordinator, for a scenario of a few minutes.
REPORT_S, HOLD_S, MOVES_PER_S = 2.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class EmergencyProcesses:
    folder: Path
    """The folder of the data cluster."""

    brokers: Processes
    coordinator: HttpClient
    cluster: HttpClient
    stop_cluster: Callable[[], Awaitable[int]]

    @property
    def coordinator_url(self) -> str:
        """The address that clients connect to."""
        return f"bcs+{self.coordinator.url}"


@contextlib.asynccontextmanager
async def emergency_processes(
    scenario: EmergencyScenario, town: Town, say: Callable[[str], None]
) -> AsyncIterator[EmergencyProcesses]:
    """Start everything; `say` reports what is being waited for."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="godwit-")))
        say("starting the coordinator")
        coordinator = await stack.enter_async_context(_coordinator(scenario, folder))
        say(f"starting {scenario.brokers} broker processes")
        listen = f"127.0.0.1:{free_port()}"
        network = _network(scenario, town, coordinator.url, f"http://{listen}")
        brokers = await stack.enter_async_context(Processes(network, log_level="error"))
        say("starting Spark")
        data = folder / "datacluster"
        config = folder / "datacluster.toml"
        config.write_text("keeps_history = true\n")  # So that every execution can be checked.
        cluster = Service(
            *("datacluster", "--listen", listen, "--folder", str(data)),
            *("--broker", brokers.url("B1"), "--config", str(config)),
        )
        await stack.enter_async_context(cluster)
        asking_cluster = await stack.enter_async_context(
            HttpClient(cluster.url, answer_s=STATEMENT_S, attempts=1)
        )
        asking_coordinator = await stack.enter_async_context(HttpClient(coordinator.url))
        processes = EmergencyProcesses(
            data, brokers, asking_coordinator, asking_cluster, cluster.stop
        )
        await _define(processes, scenario, shelters(town.random, town.roads), say)
        yield processes


def _coordinator(scenario: EmergencyScenario, folder: Path) -> Service:
    options = [
        *("--listen", "127.0.0.1:0", "--state", str(folder / "coordinator")),
        *("--placement", scenario.placement, "--strategy", scenario.strategy),
        *("--alpha", str(scenario.alpha), "--beta", str(scenario.beta)),
        *("--gamma", str(scenario.gamma), "--report-s", str(REPORT_S)),
        *("--hold-s", str(HOLD_S), "--moves-per-s", str(MOVES_PER_S)),
    ]
    if not scenario.is_balanced:
        options.append("--dry-run")
    return Service("coordinator", *options)


def _network(
    scenario: EmergencyScenario, town: Town, coordinator: str, datacluster: str
) -> NetworkSettings:
    network = network_of(star(scenario.brokers - 1), http_port=0)
    located = [
        msgspec.structs.replace(broker, location=place)
        for broker, place in zip(network.broker, town.broker_places, strict=True)
    ]
    return msgspec.structs.replace(
        network, broker=located, coordinator=coordinator, datacluster=datacluster
    )


async def _define(
    processes: EmergencyProcesses,
    scenario: EmergencyScenario,
    places: Sequence[Record],
    say: Callable[[str], None],
) -> None:
    statements = [*DATASETS, *FEEDS, *scenario.channel_statements()]
    for number, text in enumerate(statements, 1):
        say(f"making datasets, feeds and channels ({number} of {len(statements)})")
        await processes.cluster.call(api.STATEMENT, api.Statement(text))
        if text is DATASETS[-1]:
            await processes.cluster.call(
                api.LOAD, api.LoadFile("Shelters", str(_written(processes, places)))
            )


def _written(processes: EmergencyProcesses, places: Sequence[Record]) -> Path:
    path = processes.folder.with_name("shelters.csv")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(places[0]))
        writer.writeheader()
        writer.writerows(places)
    return path
