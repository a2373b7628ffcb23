"""Datasets of Publiy's evaluation (paper 002, section 7), for networks of any size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from godwit.lab.declaration import Case
from godwit.workloads.zipf import DT1, DT2, DT4, DT5, DT_C, ZipfSetup

#: In all experiments of the paper.
DELTA = 4
#: The number of brokers of configuration C1, for which DT1 and DT2 are stated.
BROKERS = 120
#: Each with the number of brokers that it is stated for.
DATASETS: Mapping[str, tuple[ZipfSetup, int]] = {
    "DT1": (DT1, BROKERS),
    "DT2": (DT2, BROKERS),
    "DT4": (DT4, 21),
    "DT5": (DT5, 21),
    "DT-C": (DT_C, 500),
}


def dataset_of(case: Case) -> ZipfSetup:
    """The dataset of a case, with the paper's share of matching brokers."""
    full, stated_for = DATASETS[str(case["dataset"])]
    return replace(
        full,
        brokers_per_publication=full.brokers_per_publication * int(case["brokers"]) / stated_for,
        subscriptions=int(case["subscriptions"]),
        publications_per_min=float(case["rate"]),
    )
