"""The thesis's claims about random offload, beside the proposed algorithms."""

from __future__ import annotations

from godwit.experiments.balance.claims import (
    CLUSTER,
    HOMOGENEOUS,
    PLANETLAB,
    RANDOM,
    SIMULATION,
    THESIS,
    on,
    on_each,
    one,
    within_trigger,
)
from godwit.lab.declaration import Results
from godwit.lab.rules import Claim, Cost, Reduction, ShapeRule

ALL = (HOMOGENEOUS, CLUSTER, PLANETLAB, SIMULATION)


def _both(results: Results, platform: str) -> tuple[Results, Results]:
    """Random offload, and the proposed algorithms."""
    return (
        on(results, platform, algorithm=RANDOM),
        on(results, platform, algorithm=THESIS),
    )


def _converges(results: Results) -> bool:
    return within_trigger(on(results, HOMOGENEOUS, algorithm=RANDOM), ("output",))


def _spikes(results: Results) -> bool:
    random, proposed = _both(results, HOMOGENEOUS)
    return one(random, "spikes") > one(proposed, "spikes")


def _more_and_larger(results: Results) -> bool:
    random, proposed = _both(results, HOMOGENEOUS)
    return all(
        one(random, name) > one(proposed, name)
        for name in ("sessions_moving", "session_moves_mean")
    )


def _later_s(results: Results) -> float:
    random, proposed = _both(results, HOMOGENEOUS)
    return random.mean("converged_s") - proposed.mean("converged_s")


def _diverges(platform: str, results: Results) -> bool:
    random, proposed = _both(results, platform)
    return one(random, "overloaded_others_s") > one(proposed, "overloaded_others_s") and one(
        random, "overloaded_late_s"
    ) > 0 == one(proposed, "overloaded_late_s")


def _fewer_deliveries(results: Results) -> bool:
    random, proposed = _both(results, PLANETLAB)
    return one(random, "deliveries_late_per_s") < one(proposed, "deliveries_late_per_s")


def _most_for_little(
    algorithm: str, results: Results, name: str = "slight_output_moves_max"
) -> float:
    """Moves of the largest session for a slight difference; the highest of all runs."""
    found = on_each(results, ALL, algorithm=algorithm)
    return max(max(each.values(name)) for each in found)


CLAIMS = (
    Claim(
        "L9", "Random offload converges with equal brokers",
        "thesis figure 7.4a",
        ShapeRule("no two edge brokers differ by more than 0.1 in Or, late", _converges),
    ),
    Claim(
        "L9 spikes", "... but with many spikes in the first 2,000 s",
        "thesis figure 7.4a",
        ShapeRule("more spikes of Or than with the proposed algorithms", _spikes),
    ),
    Claim(
        "L9 sessions", "... and more and larger sessions",
        "thesis figure 7.4a",
        ShapeRule("more sessions with moves, and more moves in each", _more_and_larger),
    ),
    Claim(
        "L10", "... and takes 500 s longer to converge",
        "thesis 7.1.2", Reduction(500.0, _later_s),
    ),
    Claim(
        "L11 cluster", "Random offload diverges on the heterogeneous cluster: system-wide overload",
        "thesis 7.1.2",
        ShapeRule(
            "late a broker is overloaded, and B2 to B4 for longer than with the proposed"
            " algorithms, with which no broker is overloaded late",
            lambda results: _diverges(CLUSTER, results),
        ),
    ),
    Claim(
        "L11 PlanetLab", "... and on PlanetLab",
        "thesis figure 7.4b; its nodes are not known",
        ShapeRule("the same there", lambda results: _diverges(PLANETLAB, results)),
    ),
    Claim(
        "L15", "On PlanetLab random offload brings deliveries to a stop",
        "thesis figure 7.5d; after 5,000 and 13,000 s, longer than our runs",
        ShapeRule("late, fewer deliveries than with the proposed algorithms", _fewer_deliveries),
    ),
    Claim(
        "L17", "For slight differences of Or the proposed algorithms move less than ten"
        " subscribers",
        "thesis figure 7.6, also on PlanetLab",
        Cost(10.0, lambda results: _most_for_little(THESIS, results)),
    ),
    Claim(
        "L17 all", "... also for slight differences of Ir and d",
        "thesis figure 7.6",
        Cost(10.0, lambda results: _most_for_little(THESIS, results, "slight_moves_max")),
    ),
    Claim(
        "L17 random", "... and random offload up to hundreds",
        "thesis figure 7.6",
        Reduction(100.0, lambda results: _most_for_little(RANDOM, results)),
    ),
)  # fmt: skip
