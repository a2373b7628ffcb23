"""The thesis's claims about the memory of PRESS and the time of a decision."""

from __future__ import annotations

from math import log

from godwit.experiments.offload_cost.runs import MEMORY, TIME
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Cost

#: 10,000 subscriptions times 100 samples.
MEMORY_BITS = 1e6


def _memory_error(results: Results) -> float:
    bits = results.where(study=MEMORY).mean("press_bits")
    return abs(bits / MEMORY_BITS - 1)


def growth(results: Results, name: str) -> float:
    """The exponent with which a time grows, from the fewest subscriptions to the most."""
    found = {
        float(number): some.mean(name) for number, some in results.where(study=TIME).by("number")
    }
    fewest, most = min(found), max(found)
    return log(found[most] / found[fewest]) / log(most / fewest)


CLAIMS = (
    Claim(
        "L31", "10,000 subscriptions and 100 samples take 1 Mbit",
        "thesis 4.2.1", Agreement(0.0, _memory_error),
    ),
    Claim(
        "L41", "A decision takes O(n² log n) at most",
        "thesis 4.3; exponent of the growth from 1,000 to 8,000 subscriptions, the slowest of"
        " input, match and output",
        Cost(2.0, lambda r: max(growth(r, f"{m}_plan_s") for m in ("input", "match", "output"))),
    ),
    Claim(
        "L41 random", "Random offload takes O(c), with c proportional to n here",
        "thesis 4.3", Cost(1.0, lambda r: growth(r, "random_plan_s")),
    ),
)  # fmt: skip
