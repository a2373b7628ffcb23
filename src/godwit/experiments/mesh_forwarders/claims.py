"""Claims P4 to P6 and P9 to P11: pure forwarders, yield, traffic, load exchange."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product

from godwit.experiments.mesh.claims import saved, value
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

PURE, YIELD, TRAFFIC = "pure_forwards", "yield", "traffic_per_s"
#: Table 2: pure forwards in thousands, and yield, by strategy.
TABLE: Mapping[str, Mapping[str, tuple[float, float]]] = {
    "DT1": {"S0": (559, 0.38), "S1": (348, 0.50), "S2": (216, 0.61), "SH": (195, 0.64)},
    "DT2": {"S0": (1010, 0.50), "S1": (687, 0.60), "S2": (325, 0.76), "SH": (300, 0.77)},
}
IDS = {"DT1": "P4", "DT2": "P5"}


def _table() -> Iterator[Claim]:
    for dataset, strategy in product(TABLE, ("S1", "S2", "SH")):
        pure, share = TABLE[dataset][strategy]
        yield Claim(
            f"{IDS[dataset]} {strategy}",
            f"{dataset}: {strategy} cuts pure forwards from {TABLE[dataset]['S0'][0]:g},000 to"
            f" {pure:g},000",
            "002, table 2",
            Reduction(round(1 - pure / TABLE[dataset]["S0"][0], 3), saved(PURE, dataset, strategy)),
        )
        yield Claim(
            f"{IDS[dataset]} {strategy} yield",
            f"{dataset}: the yield of {strategy} is {share:.0%}",
            "002, table 2",
            Reduction(share, value(YIELD, dataset, strategy)),
        )


def _baseline_error(results: Results) -> float:
    """The tree without a mesh is not the claim of the paper, but what it is compared with."""
    return max(
        abs(value(YIELD, dataset, "S0")(results) / TABLE[dataset]["S0"][1] - 1) for dataset in TABLE
    )


def _most_saved(results: Results) -> float:
    return max(
        saved(PURE, dataset, strategy)(results)
        for dataset, strategy in product(TABLE, ("S1", "S2", "SH"))
    )


def _unaccounted(results: Results) -> float:
    return max(abs(run.values["accounted_per_s"] / run.values[TRAFFIC] - 1) for run in results.runs)


def _exchange(results: Results) -> float:
    meshes = results.only(lambda run: run.case["strategy"] != "S0", "a mesh")
    return max(meshes.values("exchange_share"))


def _once(results: Results) -> bool:
    return all(copies == 1 for copies in results.values("copies_max"))


CLAIMS = (
    *_table(),
    Claim(
        "P4, P5 S0", "The yield of S0 is 38% (DT1) and 50% (DT2)",
        "002, table 2", Agreement(0.10, _baseline_error),
    ),
    Claim("P6", "Pure forwards fall by up to 70%", "002, 7", Reduction(0.70, _most_saved)),
    *(
        Claim(
            f"P9 {strategy}",
            f"Traffic in DT2 falls from 3,400 to {stated:,} messages/s with {strategy}",
            "002, figure 11",
            Reduction(round(1 - stated / 3400, 3), saved(TRAFFIC, "DT2", strategy)),
        )
        for strategy, stated in (("S1", 2850), ("S2", 2200), ("SH", 2200))
    ),
    Claim(
        "P10", "What brokers send each other is delivered, or sent on by pure forwarders",
        "computed from table 2 and figure 11", Agreement(1e-9, _unaccounted),
    ),
    Claim(
        "P11", "Load exchange takes less than 2% of the bytes",
        "002, 7", Cost(0.02, _exchange),
    ),
    Claim(
        "mesh-1", "No broker gets a publication twice",
        "our own", ShapeRule("one copy for a broker at most, in the trace", _once),
    ),
)  # fmt: skip
