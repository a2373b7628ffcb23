"""The thesis's claims about weights: G19, G35 to G37."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from godwit.experiments.placement.claims import DELAY, DELAYS, HOPS, INPUT, LOAD, MESSAGES, OUTPUT
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, ShapeRule

#: Relative difference that counts as near, or as no change.
EQUAL = 0.10
#: A step in the wrong direction may be this large.
SLACK = 0.05
SELECTION = "selection_s_mean"


def _setting(results: Results, policy: str, weight: int) -> Results:
    return results.where(mix="enterprise", policy=policy, weight=weight)


def _from_load_to_delay(results: Results) -> bool:
    """Each measure changes in one direction, with at most small steps against it."""
    settings = [at for _, at in results.where(mix="enterprise", policy=LOAD).by("weight")]

    def rises(name: str, sign: int) -> bool:
        values = [at.mean(name) for at in settings]
        steps = all(sign * (b - a) >= -SLACK * a for a, b in pairwise(values))
        return steps and sign * (values[-1] - values[0]) > 0

    falling = all(rises(name, -1) for name in (DELAYS, HOPS))
    return falling and all(rises(name, 1) for name in (MESSAGES, INPUT, OUTPUT))


def _apart(one: Results, other: Results, names: Sequence[str]) -> float:
    return max(abs(one.mean(name) / other.mean(name) - 1) for name in names)


def _ends_meet(results: Results) -> float:
    names = MESSAGES, INPUT, OUTPUT, HOPS, DELAYS
    least = min(int(weight) for weight, _ in results.by("weight"))
    return max(
        _apart(_setting(results, LOAD, least), _setting(results, DELAY, 100), names),
        _apart(_setting(results, DELAY, least), _setting(results, LOAD, 100), names),
    )


def _overhead_changes(results: Results) -> float:
    of_mix = results.where(mix="enterprise")
    base = _setting(results, LOAD, 100)
    return max(
        _apart(at, base, ["overhead_share"])
        for _, of_policy in of_mix.by("policy")
        for _, at in of_policy.by("weight")
    )


def _random_changes(results: Results) -> float:
    of_mix = results.where(mix="random")
    base = of_mix.where(policy=LOAD, weight=100)
    return max(
        _apart(at, base, [MESSAGES, INPUT, OUTPUT, HOPS, DELAYS])
        for _, of_policy in of_mix.by("policy")
        for _, at in of_policy.by("weight")
    )


def _load_decides_fastest(results: Results) -> bool:
    others = [
        at.mean(SELECTION)
        for policy, of_policy in results.where(mix="enterprise").by("policy")
        for weight, at in of_policy.by("weight")
        if (policy, weight) != (LOAD, 100)
    ]
    return _setting(results, LOAD, 100).mean(SELECTION) < min(others)


def _delay_1_decides_slowest(results: Results) -> bool:
    least = min(int(weight) for weight, _ in results.by("weight"))
    slowest = _setting(results, DELAY, least).mean(SELECTION)
    return all(
        at.mean(SELECTION) <= slowest
        for _, of_policy in results.where(mix="enterprise").by("policy")
        for _, at in of_policy.by("weight")
    )


CLAIMS = (
    Claim(
        "G19 load", "Load 100% decides fastest: it needs no pings",
        "thesis 7.2.2",
        ShapeRule("selection time under load 100% < under all others", _load_decides_fastest),
    ),
    Claim(
        "G19 delay", "Delay 1% decides slowest",
        "thesis 7.2.2",
        ShapeRule("selection time under delay 1% >= under all others", _delay_1_decides_slowest),
    ),
    Claim(
        "G35", "From load 100% to 1% delay and hops fall; message rate, Ir and Or rise",
        "thesis figure 7.15f",
        ShapeRule(
            "each is lower, or higher, at the end than at the start, and no step goes back by more"
            f" than {SLACK:.0%}",
            _from_load_to_delay,
        ),
    ),
    Claim(
        "G36", "Load 1% is near delay 100%, and delay 1% near load 100%",
        "thesis 7.2.4", Agreement(EQUAL, _ends_meet),
    ),
    Claim(
        "G37 overhead", "Weights do not change the overhead",
        "thesis 7.2.4", Agreement(EQUAL, _overhead_changes),
    ),
    Claim(
        "G37 random", "In the random workload weights change nothing",
        "thesis 7.2.4", Agreement(EQUAL, _random_changes),
    ),
)  # fmt: skip
