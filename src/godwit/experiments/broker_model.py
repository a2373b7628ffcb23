"""Saturation of one broker: the simulator's queues against queueing theory.

The runs are in one_broker.py, the formulae in queueing_theory.py.
"""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments import broker_model_figures as figures
from godwit.experiments import queueing_theory as theory
from godwit.experiments.broker_model_claims import CLAIMS
from godwit.experiments.one_broker import measure, run
from godwit.lab.experiment import Case, Experiment, Figure, Measure, Scale

PUBLICATIONS_MIN = 20_000


def scale(
    random: Sequence[float],
    even: Sequence[float],
    tandem: Sequence[float],
    *,
    error: float,
    seeds: int,
) -> Scale:
    """Loads for the engine, with both kinds of arrivals, and for the output behind it.

    Long enough for all seeds together to have this relative error.
    """

    def cases(bottleneck: str, arrivals: str, loads: Sequence[float]) -> list[Case]:
        return [
            {
                "bottleneck": bottleneck,
                "arrivals": arrivals,
                "rho": rho,
                "publications": max(PUBLICATIONS_MIN, round(needed(arrivals, rho, error) / seeds)),
            }
            for rho in loads
        ]

    overload = min(rho for rho in random if rho > 1)
    return Scale(
        cases=[
            *cases("matching", "poisson", random),
            *cases("matching", "even", even),
            *cases("both", "poisson", tandem),
            *cases("output", "poisson", [*tandem, overload]),
        ],
        seeds=seeds,
    )


def needed(arrivals: str, rho: float, error: float) -> float:
    """How many publications it takes for what is asked of a case to have this relative error."""
    if arrivals == "even":
        return 0
    if rho < 1:  # The mean wait; beyond 0.8 twice the error will do.
        return theory.customers_needed(rho, error if rho <= 0.8 else 2 * error)
    return (rho / (rho - 1) / error) ** 2  # The growth of the queue.


EXPERIMENT = Experiment(
    name="broker-model",
    title="One broker against queueing theory",
    question=(
        "Do the simulator's queues behave as queues do? If one broker does, waits in an overlay"
        " mean something, and so do Ir and Or, by which brokers decide that they are overloaded."
    ),
    setup="""\
One broker with 100 subscriptions, of which two match. The matching engine takes a constant time
for a publication (linear in the subscriptions, which do not change), and so does the output (two
copies of one size, which leave together). So the input queue is an M/D/1 queue if publications
come at random (Poisson), a D/D/1 queue if they come evenly. What leaves the engine arrives at the
output: two servers with constant times in a row.

`bottleneck` says which is the slower one, with 1 ms for a publication: `matching` (the output takes
half), `both` (the engine takes half), `output` (the engine takes a thousandth). `rho` is the load
of the slower one. Each run starts empty; the first 10 s, ten thousand service times, do not count.
The number of publications gives the mean wait of all seeds together a standard error of 1.5%
(`small`) or 1% (`paper`), twice that beyond a load of 0.8; the same for the growth of the queue.
""",
    scales={
        "small": scale((0.3, 0.6, 0.8, 0.9, 1.2), (0.9, 1.2), (0.6,), error=0.015, seeds=3),
        "paper": scale(
            (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 1.1, 1.2, 1.5),
            (0.1, 0.3, 0.5, 0.7, 0.9, 0.95, 1.1, 1.2, 1.5),
            (0.2, 0.4, 0.6, 0.8, 0.9),
            error=0.01,
            seeds=5,
        ),
    },
    run=run,
    measure=measure,
    measures={
        "input_wait_s": Measure("s", "mean wait for the matching engine"),
        "input_wait_s_p99": Measure("s", "wait for the engine that one in a hundred exceeds"),
        "output_wait_s": Measure("s", "mean wait for the output"),
        "queued": Measure("messages", "found in the queues, looked up every 10 ms"),
        "queued_growth_per_s": Measure("messages/s", "slope of a line through the same readings"),
        "handled_per_s": Measure("publications/s", "that the engine took"),
        "input_utilisation": Measure("", "Ir, as the broker's meters show it"),
        "output_utilisation": Measure("", "Or, as the broker's meters show it"),
        "recursion_off": Measure(
            "service times", "largest difference of a wait from Lindley's recursion"
        ),
    },
    claims=CLAIMS,
    figures=(
        Figure(
            "waiting",
            "Mean wait over load. Curves are theory, marks are measured, from the lowest seed to"
            " the highest.",
            figures.waiting,
        ),
        Figure("tail", "The wait that one publication in a hundred exceeds.", figures.tail),
        Figure("utilisation", "Ir and Or over the load that is offered.", figures.utilisation),
        Figure(
            "saturation",
            "By how much the queue grows in a second: what comes and cannot be served.",
            figures.saturation,
        ),
    ),
    remarks="""\
All claims hold at both scales. The differences that are left are those of the samples: every single
wait is what Lindley's recursion makes of its arrivals (`model-1`), to less than a millionth of a
service time.

- `model-6` was first asked of all loads, and failed at the scale `paper` for every seed: beyond
  saturation the wait grows for as long as one looks, and the run at 1.1 is longer than those at 1.2
  and 1.5. The rule was wrong, not the broker; it is now asked of loads below 1 only. No other rule
  or bound was changed after the first run.
- Two errors of the simulator were found on the way and mended. Ir never rose above 1, because the
  meters were told of publications when the engine took them, not when they came. And the gauge of
  waiting messages counted the outputs of a message while that was still in the engine, a fifth too
  many with `both` at 0.8: found by Little's law.
- Live brokers have the first of these limits for good: what their peers hold back they do not see,
  so their Ir stays at 1 however great the overload is.
- Or is 0.5 when the engine is overloaded, whatever the load: an output behind an overloaded engine
  is offered what the engine can do, and no more.
""",
    uses=("experiments.watched",),
)
