"""The thesis's claims about the estimates of PRESS, and about the cost of a decision."""

from __future__ import annotations

from collections.abc import Callable
from math import log

from godwit.experiments.balance.claims import CLUSTER, PLANETLAB, SIMULATION, on, on_each
from godwit.experiments.press_accuracy.runs import ACCURACY, MEMORY, TIME
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

ALL = (SIMULATION, CLUSTER, PLANETLAB)
SAMPLES = 50
#: 10,000 subscriptions times 100 samples.
MEMORY_BITS = 1e6
METRICS = ("input", "output", "matching")


def accuracy(results: Results, platform: str, samples: int = SAMPLES) -> Results:
    return on(results.where(study=ACCURACY), platform, press_samples=samples)


def _error(platform: str, metric: str) -> Callable[[Results], float]:
    return lambda results: accuracy(results, platform).mean(f"settled_error_{metric}")


def by_samples(results: Results) -> dict[int, Results]:
    """The platform on which the number of samples is varied."""
    (found, *_) = on_each(results.where(study=ACCURACY), (CLUSTER, SIMULATION))
    return {int(samples): some for samples, some in found.by("press_samples")}


def _mean_error(found: Results) -> float:
    return sum(found.mean(f"settled_error_{metric}") for metric in METRICS) / len(METRICS)


def _few_are_worse(results: Results) -> bool:
    """All below 50 are worse than the better of 50 and 100."""
    found = by_samples(results)
    good = min(_mean_error(found[samples]) for samples in found if 50 <= samples <= 100)
    return all(_mean_error(some) > good for samples, some in found.items() if samples < 50)


def _many_are_slower(results: Results) -> bool:
    found = by_samples(results)
    usual_s = found[SAMPLES].mean("session_s_mean")
    return all(
        some.mean("session_s_mean") > usual_s for samples, some in found.items() if samples > 100
    )


def _many_are_worse(results: Results) -> bool:
    found = by_samples(results)
    good = min(_mean_error(found[samples]) for samples in found if 50 <= samples <= 100)
    return all(_mean_error(some) >= good for samples, some in found.items() if samples > 100)


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
    *(
        Claim(
            f"L27 {symbol}", f"On the heterogeneous cluster estimates of {symbol} are {stated:.0%}"
            " off on average",
            "thesis figure 7.9; here with modelled disturbance",
            Cost(stated, _error(CLUSTER, metric)),
        )
        for symbol, metric, stated in (
            ("Ir", "input", 0.17), ("Or", "output", 0.17), ("d", "matching", 0.13),
        )
    ),
    *(
        Claim(
            f"L28 {symbol}", f"In the simulation estimates of {symbol} are {stated:.0%} off on"
            " average",
            "thesis 7.1.2", Cost(stated, _error(SIMULATION, metric)),
        )
        for symbol, metric, stated in (("Ir", "input", 0.08), ("Or", "output", 0.03))
    ),
    Claim(
        "L28 d", "In the simulation estimates of d have no error",
        "thesis 7.1.2", Agreement(0.01, _error(SIMULATION, "matching")),
    ),
    Claim(
        "L29", "On PlanetLab 90% of the estimates have an error below 11%",
        "thesis 7.1.2; here with modelled disturbance",
        Reduction(0.9, lambda r: accuracy(r, PLANETLAB).mean("settled_error_small_share")),
    ),
    Claim(
        "L29 sessions", "... so that at most 10% of the sessions need another one",
        "thesis 7.1.2", Cost(0.1, lambda r: accuracy(r, PLANETLAB).mean("followed_share")),
    ),
    Claim(
        "L30 few", "With fewer than 50 samples estimates are worse",
        "thesis 4.2.1",
        ShapeRule(
            "mean error of Ir, Or and d with fewer than 50 samples > with 50 or 100",
            _few_are_worse,
        ),
    ),
    Claim(
        "L30 many", "With more than 100 sessions take longer",
        "thesis 4.2.1",
        ShapeRule("duration of a session with more than 100 > with 50", _many_are_slower),
    ),
    Claim(
        "L30 many, error", "... and estimates are worse",
        "thesis 4.2.1",
        ShapeRule("mean error with more than 100 samples >= with 50 or 100", _many_are_worse),
    ),
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
