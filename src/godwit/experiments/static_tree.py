"""`static-tree`: the thesis's publisher-placement setup without any policy.  What others are
compared with.  How it is run and measured is in static_tree_runs.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from godwit.experiments.static_tree_runs import (
    PARITY_BROKERS,
    is_live,
    measure,
    run,
    topology_of,
)
from godwit.lab import plots
from godwit.lab.claims import Agreement, Claim, Shape
from godwit.lab.experiment import Case, Experiment, Figure, Measure, Results, Scale
from godwit.workloads.placement import SHARES, Mix

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MIXES = tuple(mix.value for mix in Mix)
#: What the ratings of a mix sink together, of all quotes.
SUNK = {mix.value: sum(r.value * share for r, share in SHARES[mix].items()) for mix in Mix}
OWN = "our own"


def _cases(*swept: tuple[int, tuple[int, ...]]) -> list[Case]:
    parity: list[Case] = [
        {"driver": driver, "brokers": PARITY_BROKERS, "mix": "random", "x": 4}
        for driver in ("live", "simulated")
    ]
    return parity + [
        {"driver": "simulated", "brokers": brokers, "mix": mix, "x": x}
        for brokers, places in swept
        for mix in MIXES
        for x in places
    ]


# -- claims: what one expects of the baseline ----------------------------------------------------


def _swept(results: Results) -> Results:
    """The runs of the sweeps, without those of the comparison with live brokers."""
    return Results([run for run in results.runs if run.case["brokers"] != PARITY_BROKERS])


def _sweeps(results: Results) -> Iterator[Results]:
    """The runs in which only X differs, and the seed, if there are several."""
    for _, of_size in _swept(results).by("brokers"):
        for _, sweep in of_size.by("mix"):
            yield sweep


def _same_deliveries(results: Results) -> bool:
    parity = results.where(brokers=PARITY_BROKERS)
    live, simulated = parity.where(driver="live"), parity.where(driver="simulated")
    return all(
        live.values(name) == simulated.values(name) for name in ("deliveries", "hops_max", "digest")
    )


def _within_diameter(results: Results) -> bool:
    return all(run.values["hops_max"] <= topology_of(run.case).diameter for run in results.runs)


def _sunk_error(results: Results) -> float:
    """Over the mean of the seeds: a single market is small enough to be off."""
    return max(
        abs(at.mean("sunk_share") / SUNK[str(at.runs[0].case["mix"])] - 1)
        for sweep in _sweeps(results)
        for _, at in sweep.by("x")
    )


def _ends(sweep: Results, name: str) -> tuple[float, float]:
    """A number with all subscribers of a publisher at one broker, and at any broker."""
    places = [int(x) for x, _ in sweep.by("x")]
    return sweep.where(x=min(places)).mean(name), sweep.where(x=max(places)).mean(name)


def _more_between_brokers(results: Results) -> bool:
    ends = [_ends(sweep, "between_per_s") for sweep in _sweeps(results)]
    return all(at_one < at_all for at_one, at_all in ends)


def _rises_with_x(results: Results) -> bool:
    for sweep in _sweeps(results.where(mix="random")):
        rates = [at.mean("between_per_s") for _, at in sweep.by("x")]
        if rates != sorted(rates):
            return False
    return True


def _fewer_forwarders(results: Results) -> bool:
    ends = [_ends(sweep, "pure_forwarders") for sweep in _sweeps(results)]
    return all(at_all < at_one for at_one, at_all in ends)


def _every_run(holds: Callable[[dict[str, float]], bool]) -> Callable[[Results], bool]:
    return lambda results: all(holds(dict(run.values)) for run in _swept(results).runs)


CLAIMS = (
    Claim(
        "tree-1",
        "Broker processes deliver what simulated brokers deliver: the same publications to the"
        " same subscribers over as many hops",
        OWN,
        Shape("deliveries, most hops and digest of all deliveries are equal", _same_deliveries),
    ),
    Claim(
        "tree-2",
        "No publication travels farther than the tree is wide (10 hops with 63 brokers, 12 with"
        " 127)",
        "thesis 7.2.1, computed",
        Shape("most hops <= diameter, in every case", _within_diameter),
    ),
    Claim(
        "tree-3",
        "Subscribers sink what their ratings say: 24.5% of their publisher's quotes in the random"
        " workload, 14.5% in the enterprise workload",
        "thesis 7.2.1, computed",
        Agreement(0.10, _sunk_error),
    ),
    Claim(
        "tree-4",
        "Subscribers that are spread over all brokers cost more messages between brokers than"
        " subscribers at one broker",
        OWN,
        Shape(
            "messages between brokers at X = 1 < at X = all, in every sweep", _more_between_brokers
        ),
    ),
    Claim(
        "tree-5",
        "In the random workload each step of X costs more messages between brokers",
        OWN,
        Shape("messages between brokers rise with X", _rises_with_x),
    ),
    Claim(
        "tree-6",
        "Spreading subscribers leaves fewer brokers that serve nobody and only pass on",
        OWN,
        Shape("pure forwarders at X = all < at X = 1, in every sweep", _fewer_forwarders),
    ),
    Claim(
        "tree-7",
        "A tree is uneven: the busiest broker handles more than twice the mean",
        OWN,
        Shape(
            "highest message rate > 2 x mean, in every case",
            _every_run(lambda v: v["messages_per_s_max"] > 2 * v["messages_per_s_mean"]),
        ),
    ),
    Claim(
        "tree-8",
        "Without a policy and with everybody settled, brokers handle publications and nothing else",
        OWN,
        Shape("overhead = 0, in every case", _every_run(lambda v: v["overhead_share"] == 0)),
    ),
    Claim(
        "tree-9",
        "No broker is overloaded, so that delays are those of the paths and not of queues",
        OWN,
        Shape(
            "highest input and output utilisation < 1, in every case",
            _every_run(
                lambda v: max(v["input_utilisation_max"], v["output_utilisation_max"]) < 1
            ),
        ),
    ),
)  # fmt: skip


# -- figures -------------------------------------------------------------------------------------


def _over_x(
    measure: str, label: str, *, factor: float = 1.0, is_wide: bool = False
) -> Callable[[Axes, Results], None]:
    """`is_wide` if the two sizes are too far apart for a linear axis."""

    def draw(axes: Axes, results: Results) -> None:
        groups = {
            f"{sweep.runs[0].case['brokers']} brokers, {sweep.runs[0].case['mix']}": sweep
            for sweep in _sweeps(results)
        }
        plots.lines(axes, groups, x="x", y=measure, factor=factor)
        plots.doubling(axes, sorted({float(x) for x, _ in _swept(results).by("x")}))
        axes.set_xlabel("X: brokers with subscribers of one publisher")
        axes.set_ylabel(label)
        if is_wide:
            plots.logarithmic(axes)
        else:
            axes.set_ylim(bottom=0)

    return draw


def _side_by_side(axes: Axes, results: Results) -> None:
    parity = results.where(brokers=PARITY_BROKERS)
    groups = {name: parity.where(driver=name) for name in ("simulated", "live")}
    measures = {"delay_s_mean": "mean", "delay_s_p50": "median", "delay_s_p99": "99th percentile"}
    plots.bars(axes, groups, measures, factor=1000.0)
    axes.set_ylabel("delivery delay, ms")


FIGURES = (
    Figure(
        "message-rate",
        "Mean message rate of a broker, in and out together. Whiskers: lowest and highest seed, in"
        " this and in all figures.",
        _over_x("messages_per_s_mean", "message rate, messages/s", is_wide=True),
    ),
    Figure(
        "busiest",
        "Message rate of the busiest broker.",
        _over_x("messages_per_s_max", "highest message rate, messages/s", is_wide=True),
    ),
    Figure(
        "hops",
        "Hops of a delivery: links between the publisher's and the subscriber's broker.",
        _over_x("hops_mean", "mean hops"),
    ),
    Figure(
        "delay",
        "Delay of a delivery, from acceptance by the publisher's broker to the subscriber.",
        _over_x("delay_s_mean", "mean delivery delay, ms", factor=1000.0),
    ),
    Figure(
        "forwarders",
        "Brokers that serve no publisher and no subscriber and only pass publications on.",
        _over_x("pure_forwarders", "pure forwarders, brokers"),
    ),
    Figure(
        "live-and-simulated",
        "The same small scenario through broker processes on this machine and simulated, with the"
        " resources that the simulator gives a broker unless told otherwise. Deliveries and hops"
        " are equal (tree-1); delays need not be, because the model is not fitted to a machine.",
        _side_by_side,
    ),
)


# -- the experiment ------------------------------------------------------------------------------

EXPERIMENT = Experiment(
    name="static-tree",
    title="A static tree: the baseline of publisher placement",
    question=(
        "How busy are the brokers of a balanced tree, and how far and how long do publications"
        " travel, when publishers and subscribers stay where they are? And does the simulator"
        " deliver what real processes deliver?"
    ),
    setup="""\
Setup GS1 of the thesis (7.2.1) without POP or GRAPE, on generated quotes: a balanced tree with
fan-out 2; each publisher, of one stock each, sits at a random broker, and its subscribers sit at X
brokers drawn for it.

| | 63 brokers (the thesis's PlanetLab) | 127 brokers (its cluster) | 31 brokers (scale small) |
| --- | --- | --- | --- |
| publishers | 20 | 30 | 8 |
| quotes per minute, of each | 10 to 40 | 30 to 300 | 30 to 120 |
| subscribers of each | 80 | 200 | 40 |
| simulated | 18 minutes | 18 minutes | 1.5 minutes |
| measured | the last 3 minutes | the last 3 minutes | the last minute |

In the *random* workload (GS2) 70% of the subscribers sink 10% of the quotes, 25% sink half and 5%
all. In the *enterprise* workload (GS3) 5% sink all and sit together at one broker, 95% sink 10%.
Brokers and links have the simulator's defaults (0.1 ms and 1 µs for each subscription to match a
message, 100 Mbit/s, 0.5 ms between neighbours): the thesis does not say what its machines had.

The oracle checks every delivery of every run; a violation would be an error.

The comparison with real processes plays 3 seconds of quotes through 7 brokers, once simulated and
once live, with nothing else running but Spark, which may be starting. What is measured of the live
run is what its clients saw; their clock is that of the brokers, as all are on one machine.
""",
    scales={
        "small": Scale(_cases((31, (1, 31))), seeds=2),
        "paper": Scale(
            _cases((63, (1, 2, 4, 8, 16, 32, 63)), (127, (1, 2, 4, 8, 16, 32, 127))), seeds=3
        ),
    },
    run=run,
    measure=measure,
    measures={
        "messages_per_s_mean": Measure("messages/s", "message rate of a broker, in and out, mean"),
        "messages_per_s_max": Measure("messages/s", "... of the busiest broker"),
        "messages_per_s_stddev": Measure("messages/s", "... its standard deviation over brokers"),
        "between_per_s": Measure("messages/s", "all messages from broker to broker"),
        "input_utilisation_mean": Measure("", "share of its matching capacity that a broker uses"),
        "input_utilisation_max": Measure("", "... highest reading of any broker"),
        "output_utilisation_mean": Measure("", "share of its bandwidth that a broker uses"),
        "output_utilisation_max": Measure("", "... highest reading of any broker"),
        "pure_forwarders": Measure("brokers", "serve no client and only pass on"),
        "overhead_share": Measure("", "messages that are no clients' publications, of all handled"),
        "publications": Measure("publications", "that were published"),
        "deliveries": Measure("deliveries", "of publications to subscribers"),
        "sunk_share": Measure("", "deliveries, of all pairs of publication and its subscribers"),
        "hops_mean": Measure("hops", "links between publisher's and subscriber's broker, mean"),
        "hops_max": Measure("hops", "... the farthest"),
        "delay_s_mean": Measure("s", "from the publisher's broker to the subscriber, mean"),
        "delay_s_p50": Measure("s", "... median"),
        "delay_s_p99": Measure("s", "... 99th percentile"),
        "digest": Measure("", "equal for two runs with the same deliveries"),
    },
    claims=CLAIMS,
    figures=FIGURES,
    remarks="""\
These values are of one seed, so that "for every seed" says little yet. The live delays were taken
while the machine was busy with other work, and are much longer than those of a quiet one. What
ratings sink is off by up to 7.9%, not far from the 10% of the rule: a market of twenty stocks and
three minutes is small. No broker is near its limits with the simulator's default resources.
""",
    uses=("network", "cli.running"),
    alone=is_live,
)
