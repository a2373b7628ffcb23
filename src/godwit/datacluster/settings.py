"""Settings of the data cluster.  docs/datacluster.md explains each key.

listen = "127.0.0.1:7600"
folder = "datacluster"
broker = "godwit://127.0.0.1:7401"
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from godwit.api.datacluster_api import LISTEN
from godwit.config import read
from godwit.datacluster.channels.channel_service import ChannelSettings
from godwit.datacluster.channels.result_writing import ResultBudget
from godwit.datacluster.channels.scheduler import AT_ONCE
from godwit.datacluster.datasets.ingestion import IngestionSettings
from godwit.datacluster.lease import LEASE_S
from godwit.datacluster.log.feed_log import LogSettings
from godwit.errors import UsageError
from godwit.protocol.addresses import address, url_address
from godwit.protocol.frames import Name
from godwit.spark.memory import EXECUTOR_MIB

Seconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)]
Bytes = Annotated[int, msgspec.Meta(ge=65_536)]
MemoryMib = Annotated[int, msgspec.Meta(ge=512, le=2**22)]


class DataClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    listen: str = LISTEN
    """HOST:PORT; port 0 selects a free port."""

    folder: str = "datacluster"
    """All persistent state; relative to the working directory."""

    name: Name = "datacluster"
    """Prefix of the names of its feeds, which are clients of the broker network."""

    broker: str | None = None
    """godwit://HOST:PORT where feeds subscribe; without it records arrive only over HTTP."""

    secret: str = ""
    """The network's secret: required from other machines, and sent by feeds to their broker."""

    master: str = "local[*]"
    """Where Spark runs: local[N], or spark://HOST:PORT, with the folder on a shared disk."""

    waiting_bytes_max: Bytes = LogSettings().waiting_bytes_max
    """Limit of the log of each dataset; beyond it, publishers wait."""

    interval_s: Annotated[float, msgspec.Meta(ge=0, le=3_600)] = IngestionSettings().interval_s
    """Minimum time between ingest batches."""

    keeps_history: bool = False
    """Keep all records of datasets with a key, not only the latest; no retention."""

    retention_s: Seconds | None = None
    """How long records of datasets without a key are kept; for ever if not set."""

    retention_bytes: Bytes | None = None
    """Size limit of datasets without a key; the oldest records are deleted first."""

    offline_s: Seconds = ChannelSettings().offline_s
    """How long results are kept for a subscriber that is offline; it may return at any broker."""

    results_s: Seconds = ChannelSettings().keep_s
    """How long results without an acknowledgement are kept."""

    channels_at_once: Annotated[int, msgspec.Meta(ge=1, le=64)] = AT_ONCE
    """How many channels run at the same time; Spark shares its cores between them."""

    execution_rows_max: Annotated[int, msgspec.Meta(ge=1)] = ResultBudget().rows_max
    """The largest result of one execution; beyond it, its channel is stopped."""

    execution_bytes_max: Bytes = ResultBudget().bytes_max
    """The same in bytes, as brokers receive it."""

    memory_mib: MemoryMib | None = None
    """Memory of Spark's driver; a quarter of the machine's, 1 to 8 GiB, if not set."""

    executor_memory_mib: MemoryMib = EXECUTOR_MIB
    """Memory of each executor on a Spark cluster; its workers must offer as much."""

    standby: bool = False
    """Wait, with Spark running, until the process that has the folder ends or is silent."""

    lease_s: Annotated[float, msgspec.Meta(ge=2, le=3_600)] = LEASE_S
    """How long the process that has the folder may be silent before a standby takes over."""

    def __post_init__(self) -> None:
        address(self.listen)
        if self.broker is not None:
            url_address(self.broker)
        if not self.master.startswith(("local", "spark://")):
            raise UsageError(
                f"{self.master!r} is not a Spark master: write local[N] or spark://HOST:PORT"
            )


def load_settings(path: Path) -> DataClusterSettings:
    return read(path, DataClusterSettings)
