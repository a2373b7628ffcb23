"""Claims P15 to P18: throughput by fanout and by strategy."""

from __future__ import annotations

from itertools import pairwise

from godwit.experiments.mesh.limited import delivered, gained
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Reduction, ShapeRule

#: More by less than this share is taken for equal.
EQUAL = 0.02


def _rise(results: Results) -> bool:
    """With each step of the fanout, and clearly over all of them."""
    for _, of_dataset in results.where(limit="engine", strategy="S2").by("dataset"):
        found = [
            runs.mean("delivered")
            for _, runs in sorted(of_dataset.by("fanout"), key=lambda each: float(each[0]))
        ]
        if any(more < few * (1 - EQUAL) for few, more in pairwise(found)):
            return False
        if found[-1] <= found[0]:
            return False
    return True


def _is_ahead(first: str, second: str, limit: str) -> ShapeRule:
    def holds(results: Results) -> bool:
        largest = max(float(fanout) for fanout, _ in results.where(limit=limit).by("fanout"))
        return all(
            delivered(of_dataset, strategy=first, fanout=largest, limit=limit)
            > delivered(of_dataset, strategy=second, fanout=largest, limit=limit)
            for _, of_dataset in results.where(limit=limit).by("dataset")
        )

    return ShapeRule(f"{first} delivers more than {second}, in every dataset", holds)


CLAIMS = (
    Claim(
        "P15", "Deliveries rise with the fanout, from 5 to 35",
        "002, figure 13", ShapeRule("with S2, in every dataset", _rise),
    ),
    Claim(
        "P16", "Throughput is up to 115% higher than with S0",
        "002, figure 13", Reduction(1.15, gained("S2", limit="engine")),
    ),
    Claim(
        "P17", "At a very high rate S2 is slightly above SH",
        "002, figure 13", _is_ahead("S2", "SH", "engine"),
    ),
    Claim(
        "P18", "With capped uplinks SH delivers more than S2",
        "002, figure 14", _is_ahead("SH", "S2", "uplink"),
    ),
)  # fmt: skip
