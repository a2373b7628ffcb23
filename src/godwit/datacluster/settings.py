"""What can be set for the data cluster.  docs/datacluster.md explains each key.

listen = "127.0.0.1:7600"
folder = "datacluster"
broker = "godwit://127.0.0.1:7401"
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import msgspec

from godwit.config import read
from godwit.errors import UsageError
from godwit.rest.datacluster import LISTEN
from godwit.wire.addresses import address, url_address
from godwit.wire.frames import Name

Seconds = Annotated[float, msgspec.Meta(gt=0, le=366 * 86_400)]
Bytes = Annotated[int, msgspec.Meta(ge=65_536)]


class DataClusterSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    listen: str = LISTEN
    """HOST:PORT; port 0 is any free one."""

    folder: str = "datacluster"
    """Everything that outlives the process; relative to where it is started."""

    name: Name = "datacluster"
    """Its feeds are clients of the broker network, and have names that begin with it."""

    broker: str | None = None
    """godwit://HOST:PORT, where feeds subscribe; without one nothing is fed but over HTTP."""

    secret: str = ""
    """Of the network.  Who asks from another machine shows it to us, and feeds to their broker."""

    master: str = "local[*]"
    """Where Spark runs: local[N], or spark://HOST:PORT, with the folder on a shared disk."""

    waiting_bytes_max: Bytes = 512 * 2**20
    """What may wait for ingestion, for each dataset; then publishers wait."""

    interval_s: Annotated[float, msgspec.Meta(ge=0, le=3_600)] = 0.25
    """Between ingest batches, at least."""

    keeps_history: bool = False
    """Of datasets with a key, keep records also when there are later ones; and no retention."""

    retention_s: Seconds | None = None
    """Records of datasets without a key are kept so long; for ever unless it is set."""

    retention_bytes: Bytes | None = None
    """... or while the dataset is not larger than that."""

    offline_s: Seconds = 3_600.0
    """A subscriber that left without a word may come back, also elsewhere, for results since."""

    results_s: Seconds = 86_400.0
    """How long results are kept that nobody has acknowledged."""

    def __post_init__(self) -> None:
        address(self.listen)
        if self.broker is not None:
            url_address(self.broker)
        if not self.master.startswith(("local", "spark://")):
            raise UsageError(f"{self.master!r} is no master: write local[N] or spark://HOST:PORT")


def load_settings(path: Path) -> DataClusterSettings:
    return read(path, DataClusterSettings)
