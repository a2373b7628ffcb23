"""The thesis's claims about local load balancing, and the rules that decide them."""

from __future__ import annotations

from collections.abc import Callable

from godwit.experiments.balance.claims import (
    CLUSTER,
    HOMOGENEOUS,
    PLANETLAB,
    SIMULATION,
    by_strength,
    highest,
    on,
    on_each,
    one,
    within_trigger,
)
from godwit.experiments.balance.load_measures import TRIGGER
from godwit.experiments.balance_local import parameter_claims
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Agreement, Claim, Cost, Reduction, ShapeRule

ALL = (SIMULATION, CLUSTER, HOMOGENEOUS, PLANETLAB)
REAL = (CLUSTER, HOMOGENEOUS, PLANETLAB)
#: Of the +50% of the aggregate rate: half of the publishers double.
STEP = 1.5
CLOSE_TRIGGER = "close trigger"
#: Queues drain: the delay at its peak is so many times that of the time when the loads converged.
DRAINED = 5.0
COORDINATION = "coordination_stable_per_s"


def default(results: Results) -> Results:
    return results.where(settings="default")


def _each(results: Results, *platforms: str) -> list[Results]:
    return on_each(default(results), platforms or ALL)


def _spread(results: Results) -> bool:
    return all(
        one(found, f"clients_{b}") > 0 for found in _each(results) for b in ("B2", "B3", "B4")
    )


def _converge(results: Results) -> bool:
    return all(within_trigger(found) for found in _each(results, SIMULATION, CLUSTER))


def _overloaded_in_simulation(results: Results) -> bool:
    found = on(default(results), SIMULATION)
    return one(found, "overloaded_first_s") > 0 == one(found, "overloaded_late_s")


def _not_on_others(results: Results) -> bool:
    return all(one(found, "overloaded_first_s") == 0 for found in _each(results, *REAL))


def _output_only(results: Results) -> bool:
    found = _each(results, HOMOGENEOUS, PLANETLAB)
    return all(one(each, "input_gap_peak") < TRIGGER for each in found)


def _stays_apart(results: Results) -> bool:
    found = on(default(results), PLANETLAB)
    return max(one(found, f"output_gap_{phase}") for phase in ("before", "after")) > TRIGGER


def _strong_serve_more(results: Results) -> bool:
    for found in _each(results, SIMULATION, CLUSTER, PLANETLAB):
        clients = [one(found, f"clients_{broker}") for broker in by_strength(found)]
        if clients[0] != min(clients) or clients[-1] != max(clients):
            return False
    return True


def _moves_cost_most(results: Results) -> bool:
    """With conventional and with Adaptive PIE."""
    return all(
        one(found, "migration_busy_per_s") > one(found, f"{cause}_busy_per_s")
        for settings in ("default", "adaptive")
        for found in on_each(results.where(settings=settings), ALL)
        for cause in ("pie", "coordination", "request")
    )


def _adaptive_saves(name: str, *, at_rest: bool = False) -> Callable[[Results], float]:
    """Over all platforms together that were run with both kinds.

    `at_rest`: only those that have no load balancing activity late before the step, with either.
    """

    def saved(results: Results) -> float:
        before = after = 0.0
        for adaptive in on_each(results.where(settings="adaptive"), ALL):
            usual = default(results).where(platform=adaptive.runs[0].case["platform"])
            if at_rest and any(each.mean(COORDINATION) > 0 for each in (usual, adaptive)):
                continue
            before += usual.mean(name)
            after += adaptive.mean(name)
        return 1 - after / before if before else 0.0

    return saved


def _grows_and_drains(results: Results) -> bool:
    found = on(default(results), SIMULATION)
    peak_s, usual_s = one(found, "delay_joining_peak_s"), one(found, "delay_before_s")
    return peak_s > DRAINED * usual_s and one(found, "overloaded_first_s") > 0


def _noisier(results: Results) -> bool:
    quiet, busy, busiest = (
        one(on(default(results), name), "output_noise")
        for name in (SIMULATION, HOMOGENEOUS, PLANETLAB)
    )
    return quiet < busy < busiest


def _step_error(results: Results) -> float:
    ratios = [run.values["rate_ratio"] for run in results.runs if "rate_ratio" in run.values]
    if not ratios:
        raise NotMeasuredError("no run has a step of the rate")
    return max(abs(ratio / STEP - 1) for ratio in ratios)


def _nearness(results: Results, settings: str = "default") -> float:
    found = on(results.where(settings=settings), SIMULATION)
    return max(found.mean(f"distance_{phase}") for phase in ("before", "after"))


CLAIMS = (
    Claim(
        "L1", "Subscribers that all join B1 are spread over the other edge brokers",
        "thesis 7.1.2, figure 7.3",
        ShapeRule("late, B2, B3 and B4 have subscribers, on every platform", _spread),
    ),
    Claim(
        "L2", "Ir, d and Or converge before and after the step of the rate, within the thresholds",
        "thesis figures 7.3a to d",
        ShapeRule(
            "no two edge brokers differ by more than 0.1 in Ir, Or or d/Nf, late before and after"
            " the step, in the simulation and on the heterogeneous cluster",
            _converge,
        ),
    ),
    Claim(
        "L3", "In the simulation B1 is overloaded for a while as subscribers join",
        "thesis 7.1.2",
        ShapeRule(
            "B1 is overloaded while they join, and no broker late", _overloaded_in_simulation
        ),
    ),
    Claim(
        "L3 others", "... and not on the real platforms",
        "thesis 7.1.2",
        ShapeRule("B1 is never overloaded while they join", _not_on_others),
    ),
    Claim(
        "L4", "On the homogeneous cluster and on PlanetLab Ir never reaches the trigger",
        "thesis 7.1.2; here by our choice of CPU",
        ShapeRule("Ir of any two brokers differs by less than 0.1 in every minute", _output_only),
    ),
    Claim(
        "L5", "On PlanetLab Or does not converge, because of the anti-oscillation rule",
        "thesis figure 7.3e; its nodes are not known",
        ShapeRule("Or of two brokers differs by more than 0.1, late", _stays_apart),
    ),
    Claim(
        "L6", "It balances equal brokers as well",
        "thesis figure 7.3f",
        ShapeRule(
            "no two edge brokers differ by more than 0.1 in Or, late, on the homogeneous cluster",
            lambda results: within_trigger(on(default(results), HOMOGENEOUS), ("output",)),
        ),
    ),
    Claim(
        "L12", "The delivery delay stays about 0.2 s",
        "thesis figure 7.5, cluster and PlanetLab",
        Cost(0.2, lambda results: highest("delay_usual_s")(_each(results, *REAL))),
    ),
    Claim(
        "L14", "If joins outrun offloading, the delay grows until the overload ends, then falls",
        "thesis figure 7.5b",
        ShapeRule(
            f"in the simulation B1 is overloaded, and the mean delay of a short time while they"
            f" join exceeds {DRAINED:g} times that of the late time before the step",
            _grows_and_drains,
        ),
    ),
    Claim(
        "L16", "Stronger brokers receive more subscribers",
        "thesis figures 7.6a and c",
        ShapeRule(
            "late, the strongest broker has the most subscribers and the weakest the fewest, where"
            " brokers differ",
            _strong_serve_more,
        ),
    ),
    Claim(
        "L18", "While subscribers join, overhead is less than 50% of all messages",
        "thesis figures 7.7a and b",
        Cost(0.5, lambda results: highest("overhead_joining")(_each(results))),
    ),
    Claim(
        "L19", "After convergence it is less than 0.2% in the simulation",
        "thesis figure 7.7a",
        Cost(0.002, lambda results: on(default(results), SIMULATION).mean("overhead_stable")),
    ),
    Claim(
        "L19 real", "... and less than 1.1% on the real platforms",
        "thesis figure 7.7b",
        Cost(0.011, lambda results: highest("overhead_stable")(_each(results, *REAL))),
    ),
    Claim(
        "L20", "Subscriptions of migrating subscribers are the largest source of overhead",
        "thesis figures 7.7c and d",
        ShapeRule(
            "up to convergence there are more of them than of load information, coordination and"
            " subscriptions of balancers each, with both kinds of PIE",
            _moves_cost_most,
        ),
    ),
    Claim(
        "L21 coordination", "While balancing there are 0.4 messages of coordination a second",
        "thesis 7.1.2; the platform is not named, here the simulation",
        Cost(0.4, lambda r: on(default(r), SIMULATION).mean("coordination_busy_per_s")),
    ),
    Claim(
        "L21 PIE", "... and 0.85 of load information",
        "thesis 7.1.2; here the simulation",
        Cost(0.85, lambda r: on(default(r), SIMULATION).mean("pie_busy_per_s")),
    ),
    Claim(
        "L22", "Adaptive PIE sends 40% less load information while balancing",
        "thesis figure 7.7", Reduction(0.40, _adaptive_saves("pie_busy_per_s")),
    ),
    Claim(
        "L23", "... and 65% less when the system is stable",
        "thesis 7.1.2, 8.1; platforms without sessions at that time, as stated",
        Reduction(0.65, _adaptive_saves("pie_stable_per_s", at_rest=True)),
    ),
    Claim(
        "L23 coordination", "... when there is no coordination at all",
        "thesis 7.1.2",
        ShapeRule(
            "no message of coordination late before the step, on any platform",
            lambda r: all(one(found, COORDINATION) == 0 for found in _each(r)),
        ),
    ),
    Claim(
        "L39", "Each session ends with a smaller estimated difference than it started with",
        "thesis 4.3.1",
        ShapeRule(
            "so for every session with moves, of all runs",
            lambda results: not any(results.values("not_improving")),
        ),
    ),
    Claim(
        "L40", "Subscribers that move in time lose nothing",
        "thesis 4.1.4",
        ShapeRule(
            "the oracle was satisfied: a run that loses, doubles or reorders has no numbers",
            lambda results: all(run.values["deliveries"] > 0 for run in results.runs),
        ),
    ),
    Claim(
        "L43", "Curves are smoothest in the simulation, noisier on the cluster, most on PlanetLab",
        "thesis 7.1.2; here the disturbance is our model",
        ShapeRule(
            "relative deviation of Or, late before the step: simulation < homogeneous < planetlab",
            _noisier,
        ),
    ),
    Claim(
        "L48", "Half of the publishers doubling is +50% of the aggregate rate",
        "thesis table 7.3; half of 15 publishers are 7", Agreement(0.03, _step_error),
    ),
    *parameter_claims.CLAIMS,
    Claim(
        "balance-1", "The highest Or is within 5% of the lower bound of any assignment",
        "our own; simulation, late before and after the step", Agreement(0.05, _nearness),
    ),
    Claim(
        "balance-2", "... if brokers balance differences above 0.05 instead of 0.1",
        "our own; simulation",
        Agreement(0.05, lambda results: _nearness(results, CLOSE_TRIGGER)),
    ),
)  # fmt: skip
