"""The thesis's claims about the estimates of PRESS."""

from __future__ import annotations

from collections.abc import Callable

from godwit.experiments.balance.claims import CLUSTER, PLANETLAB, SIMULATION, on, on_each
from godwit.lab.declaration import Measured, NotMeasuredError, Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

ALL = (SIMULATION, CLUSTER, PLANETLAB)
SAMPLES = 50
METRICS = ("input", "output", "matching")


def samples_of(run: Measured) -> int:
    """Of PRESS; a case that does not name them has those of table 7.1."""
    return int(run.case.get("press_samples", SAMPLES))


def accuracy(results: Results, platform: str, samples: int = SAMPLES) -> Results:
    found = on(results, platform)
    return found.only(lambda run: samples_of(run) == samples, f"{samples} samples")


def _error(platform: str, metric: str) -> Callable[[Results], float]:
    return lambda results: accuracy(results, platform).mean(f"quiet_error_{metric}")


def by_samples(results: Results) -> dict[int, Results]:
    """The platform on which the number of samples is varied."""
    (found, *_) = on_each(results, (CLUSTER, SIMULATION))
    numbers = sorted({samples_of(run) for run in found.runs})
    return {samples: _with(found, samples) for samples in numbers}


def _with(results: Results, samples: int) -> Results:
    return results.only(lambda run: samples_of(run) == samples, f"{samples} samples")


def _those(results: Results, counts: Callable[[int], bool], text: str) -> list[Results]:
    """The runs with such numbers of samples; without any, a claim about them is not measured."""
    found = [some for samples, some in by_samples(results).items() if counts(samples)]
    if not found:
        raise NotMeasuredError(f"no run has {text} samples")
    return found


def _few(results: Results) -> list[Results]:
    return _those(results, lambda samples: samples < 50, "fewer than 50")


def _many(results: Results) -> list[Results]:
    return _those(results, lambda samples: samples > 100, "more than 100")


def _mean_error(found: Results) -> float:
    return sum(found.mean(f"quiet_error_{metric}") for metric in METRICS) / len(METRICS)


def _few_are_worse(results: Results) -> bool:
    """All below 50 are worse than the better of 50 and 100."""
    found = by_samples(results)
    good = min(_mean_error(found[samples]) for samples in found if 50 <= samples <= 100)
    return all(_mean_error(some) > good for some in _few(results))


def _many_are_slower(results: Results) -> bool:
    found = by_samples(results)
    usual_s = found[SAMPLES].mean("session_s_mean")
    return all(some.mean("session_s_mean") > usual_s for some in _many(results))


def _many_are_worse(results: Results) -> bool:
    found = by_samples(results)
    good = min(_mean_error(found[samples]) for samples in found if 50 <= samples <= 100)
    return all(_mean_error(some) >= good for some in _many(results))


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
        Reduction(0.9, lambda r: accuracy(r, PLANETLAB).mean("quiet_error_small_share")),
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
)  # fmt: skip
