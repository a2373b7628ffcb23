"""The processes of the scenario: a coordinator, brokers, and a data cluster with its channels."""

from __future__ import annotations

import contextlib
import csv
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from godwit.content.values import Record
from godwit.emergencies.scenario import Cast, EmergencyScenario
from godwit.network.processes import Processes, free_port
from godwit.network.service import Service
from godwit.network.settings import NetworkSettings, network_of
from godwit.overlay.topology import star
from godwit.rest import bcs
from godwit.rest import datacluster as api
from godwit.rest.calling import Caller
from godwit.workloads.emergencies import shelters
from godwit.workloads.emergency_channels import DATASETS, FEEDS

#: Statements wait for Spark, which is slow at first.
STATEMENT_S = 180.0
#: Of the coordinator, for a scenario that is over in minutes.
REPORT_S, HOLD_S, MOVES_PER_S = 2.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class Stage:
    folder: Path
    """Where the data cluster keeps everything."""

    brokers: Processes
    coordinator: Caller
    cluster: Caller
    stop_cluster: Callable[[], Awaitable[int]]

    @property
    def coordinator_url(self) -> str:
        """For clients."""
        return f"bcs+{self.coordinator.url}"


@contextlib.asynccontextmanager
async def staged(
    scenario: EmergencyScenario, cast: Cast, say: Callable[[str], None]
) -> AsyncIterator[Stage]:
    """Start everything; `say` is told what is being waited for."""
    async with contextlib.AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="godwit-")))
        say("starting the coordinator")
        coordinator = await stack.enter_async_context(_coordinator(scenario, folder))
        say(f"starting {scenario.brokers} broker processes")
        listen = f"127.0.0.1:{free_port()}"
        network = _network(scenario, cast, coordinator.url, f"http://{listen}")
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
            Caller(cluster.url, answer_s=STATEMENT_S, attempts=1)
        )
        asking_coordinator = await stack.enter_async_context(Caller(coordinator.url))
        stage = Stage(data, brokers, asking_coordinator, asking_cluster, cluster.stop)
        await _define(stage, scenario, shelters(cast.random, cast.roads), say)
        yield stage


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
    scenario: EmergencyScenario, cast: Cast, coordinator: str, datacluster: str
) -> NetworkSettings:
    network = network_of(star(scenario.brokers - 1), http_port=0)
    located = [
        msgspec.structs.replace(broker, location=bcs.Location(place.latitude, place.longitude))
        for broker, place in zip(network.broker, cast.broker_places, strict=True)
    ]
    return msgspec.structs.replace(
        network, broker=located, coordinator=coordinator, datacluster=datacluster
    )


async def _define(
    stage: Stage,
    scenario: EmergencyScenario,
    places: Sequence[Record],
    say: Callable[[str], None],
) -> None:
    statements = [*DATASETS, *FEEDS, *scenario.channel_statements()]
    for number, text in enumerate(statements, 1):
        say(f"making datasets, feeds and channels ({number} of {len(statements)})")
        await stage.cluster.call(api.STATEMENT, api.Statement(text))
        if text is DATASETS[-1]:
            await stage.cluster.call(api.LOAD, api.Load("Shelters", str(_written(stage, places))))


def _written(stage: Stage, places: Sequence[Record]) -> Path:
    path = stage.folder.with_name("shelters.csv")
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(places[0]))
        writer.writeheader()
        writer.writerows(places)
    return path
