"""What queueing theory predicts for one broker, and the errors that are allowed.

All bounds were fixed before the first run.  (One rule was corrected after it: model-6, see the
remarks in experiment.py.)  A mean is over all seeds together; the number of publications that its
accuracy needs is computed beforehand (`customers_needed`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise

from godwit.experiments.broker_model import queueing_theory as theory
from godwit.experiments.broker_model.runs import Setting
from godwit.lab.declaration import Case, Results
from godwit.lab.rules import Agreement, Claim, ShapeRule

#: Times below this are rounding errors.
NOTHING_S = 1e-9


def by_case(results: Results) -> Iterator[tuple[Case, Results]]:
    for case in {tuple(run.case.items()): run.case for run in results.runs}.values():
        yield case, results.where(**case)


def below_one(results: Results) -> Results:
    """The runs in which the queue is stable."""
    return results.only(lambda run: float(run.case["rho"]) < 1, "a load below 1")


def error(
    measured: Callable[[Results], float],
    predicted: Callable[[Results, Setting], float],
    counts: Callable[[Case], bool],
) -> Callable[[Results], float]:
    """The largest relative error of a mean over seeds, of the cases for which `counts` holds."""

    def largest(results: Results) -> float:
        found = results.only(lambda run: counts(run.case), "a case that the claim is about")
        return max(
            abs(measured(runs) / predicted(runs, Setting.of(case)) - 1)
            for case, runs in by_case(found)
        )

    return largest


def mean_of(name: str) -> Callable[[Results], float]:
    return lambda runs: runs.mean(name)


def is_random(case: Case, bottleneck: str, above: float, up_to: float) -> bool:
    is_it = case["arrivals"] == "poisson" and case["bottleneck"] == bottleneck
    return is_it and above < float(case["rho"]) <= up_to


def input_wait_s(_: Results, setting: Setting) -> float:
    return theory.md1_wait_s(setting.rate_per_s, setting.matching_s)


def input_wait_s_p99(_: Results, setting: Setting) -> float:
    return theory.md1_wait_s_quantile(0.99, setting.rate_per_s, setting.matching_s)


def output_wait_s(_: Results, setting: Setting) -> float:
    return theory.tandem_waits_s(setting.rate_per_s, setting.matching_s, setting.output_s)[1]


def queued_by_little(runs: Results, _: Setting) -> float:
    wait_s = runs.mean("input_wait_s") + runs.mean("output_wait_s")
    return runs.mean("handled_per_s") * wait_s


def input_utilisation(_: Results, setting: Setting) -> float:
    return setting.rate_per_s * setting.matching_s


def output_utilisation(_: Results, setting: Setting) -> float:
    """The load of the output is what the engine lets through."""
    return min(setting.rate_per_s, 1 / setting.matching_s) * setting.output_s


def growth_per_s(_: Results, setting: Setting) -> float:
    return theory.growth_per_s(setting.rate_per_s, setting.slower_s)


def even_arrivals_never_wait(results: Results) -> bool:
    even = below_one(results.where(arrivals="even"))
    return max(even.values("input_wait_s")) < NOTHING_S


def a_faster_output_never_waits(results: Results) -> bool:
    return max(results.where(bottleneck="matching").values("output_wait_s")) < NOTHING_S


def waits_rise_with_the_load(results: Results) -> bool:
    random = below_one(results.where(arrivals="poisson", bottleneck="matching"))
    waits_s = [at.mean("input_wait_s") for _, at in random.by("rho")]
    return all(less < more for less, more in pairwise(waits_s))


CLAIMS = (
    Claim(
        "model-1",
        "Every single wait, at the engine and at the output, is what Lindley's recursion computes"
        " from the arrivals.",
        "Lindley 1952",
        ShapeRule(
            "no wait differs by more than a millionth of a service time",
            lambda results: max(results.values("recursion_off")) < 1e-6,
        ),
    ),
    Claim(
        "model-2",
        "Up to a load of 0.8, publications that arrive at random wait for the engine as long as"
        " M/D/1 predicts: rho s / (2 (1 - rho)) on average.",
        "Pollaczek and Khinchine",
        Agreement(
            0.05,
            error(
                mean_of("input_wait_s"), input_wait_s, lambda c: is_random(c, "matching", 0, 0.8)
            ),
        ),
    ),
    Claim(
        "model-3",
        "The same beyond 0.8, while the queue is stable.",
        "Pollaczek and Khinchine",
        Agreement(
            0.10,
            error(
                mean_of("input_wait_s"), input_wait_s, lambda c: is_random(c, "matching", 0.8, 0.99)
            ),
        ),
    ),
    Claim(
        "model-4",
        "Up to 0.8, the wait that one in a hundred exceeds is that of Erlang's distribution.",
        "Erlang 1909",
        Agreement(
            0.10,
            error(
                mean_of("input_wait_s_p99"),
                input_wait_s_p99,
                lambda c: is_random(c, "matching", 0, 0.8),
            ),
        ),
    ),
    Claim(
        "model-5",
        "Publications that arrive at equal intervals do not wait below saturation.",
        "D/D/1",
        ShapeRule("the mean wait is zero at every load below 1", even_arrivals_never_wait),
    ),
    Claim(
        "model-6",
        "The wait increases with the load, while the queue is stable.",
        "M/D/1",
        ShapeRule("the mean wait rises from load to load below 1", waits_rise_with_the_load),
    ),
    Claim(
        "model-7",
        "From a load of 0.4 on, the mean queue length, read at fixed times, is the number of"
        " messages that arrive in the mean wait.",
        "Little 1961",
        Agreement(
            0.10,
            error(
                mean_of("queued"),
                queued_by_little,
                lambda c: c["arrivals"] == "poisson" and 0.4 <= float(c["rho"]) < 1,
            ),
        ),
    ),
    Claim(
        "model-8",
        "Ir is the arrival rate times the matching delay, also beyond 1.",
        "thesis (4.1)",
        Agreement(0.02, error(mean_of("input_utilisation"), input_utilisation, lambda _: True)),
    ),
    Claim(
        "model-9",
        "Or is the share of the bandwidth that the engine's outputs need, also beyond 1.",
        "thesis (4.3), erratum E3",
        Agreement(0.02, error(mean_of("output_utilisation"), output_utilisation, lambda _: True)),
    ),
    Claim(
        "model-10",
        "In saturation the queue grows by what arrives and cannot be served: lambda - mu.",
        "conservation",
        Agreement(
            0.05,
            error(mean_of("queued_growth_per_s"), growth_per_s, lambda c: float(c["rho"]) > 1),
        ),
    ),
    Claim(
        "model-11",
        "If the output is the slower server, its mean wait is the M/D/1 wait of the output minus"
        " that of the engine; up to a load of 0.8.",
        "Friedman 1965",
        Agreement(
            0.05,
            error(
                mean_of("output_wait_s"),
                output_wait_s,
                lambda c: is_random(c, "both", 0, 0.8) or is_random(c, "output", 0, 0.8),
            ),
        ),
    ),
    Claim(
        "model-12",
        "If the output is the faster server, nothing ever waits for it.",
        "Friedman 1965",
        ShapeRule("no wait at the output, at any load", a_faster_output_never_waits),
    ),
)
