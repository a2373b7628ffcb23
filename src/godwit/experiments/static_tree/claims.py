"""What is expected of the baseline; no paper states it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from godwit.experiments.static_tree.runs import PARITY_BROKERS, topology_of
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, ShapeRule
from godwit.workloads.placement import SHARES, Mix

#: The share of all quotes that the ratings of a mix sink together.
SUNK = {mix.value: sum(r.value * share for r, share in SHARES[mix].items()) for mix in Mix}
OWN = "our own"


def swept(results: Results) -> Results:
    """The runs without those of the comparison with live brokers."""
    return results.only(lambda run: run.case["brokers"] != PARITY_BROKERS, "a larger tree")


def sweeps(results: Results) -> Iterator[Results]:
    """Groups of runs in which only X and the seed differ."""
    for _, of_size in swept(results).by("brokers"):
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
    """Of the mean over seeds: a single market is too small."""
    return max(
        abs(at.mean("sunk_share") / SUNK[str(at.runs[0].case["mix"])] - 1)
        for sweep in sweeps(results)
        for _, at in sweep.by("x")
    )


def _ends(sweep: Results, name: str) -> tuple[float, float]:
    """A measure at the smallest and at the largest X."""
    places = [int(x) for x, _ in sweep.by("x")]
    return sweep.where(x=min(places)).mean(name), sweep.where(x=max(places)).mean(name)


def _more_between_brokers(results: Results) -> bool:
    ends = [_ends(sweep, "between_per_s") for sweep in sweeps(results)]
    return all(at_one < at_all for at_one, at_all in ends)


def _rises_with_x(results: Results) -> bool:
    for sweep in sweeps(results.where(mix="random")):
        rates = [at.mean("between_per_s") for _, at in sweep.by("x")]
        if rates != sorted(rates):
            return False
    return True


def _fewer_forwarders(results: Results) -> bool:
    ends = [_ends(sweep, "pure_forwarders") for sweep in sweeps(results)]
    return all(at_all < at_one for at_one, at_all in ends)


def _every_run(holds: Callable[[dict[str, float]], bool]) -> Callable[[Results], bool]:
    return lambda results: all(holds(dict(run.values)) for run in swept(results).runs)


CLAIMS = (
    Claim(
        "tree-1",
        "Broker processes deliver what simulated brokers deliver: the same publications to the"
        " same subscribers over as many hops",
        OWN,
        ShapeRule("deliveries, most hops and digest of all deliveries are equal", _same_deliveries),
    ),
    Claim(
        "tree-2",
        "No publication travels farther than the diameter of the tree (10 hops with 63 brokers, 12"
        " with 127)",
        "thesis 7.2.1, computed",
        ShapeRule("most hops <= diameter, in every case", _within_diameter),
    ),
    Claim(
        "tree-3",
        "Subscribers sink what their ratings state: 24.5% of their publisher's quotes in the random"
        " workload, 14.5% in the enterprise workload",
        "thesis 7.2.1, computed",
        Agreement(0.10, _sunk_error),
    ),
    Claim(
        "tree-4",
        "Subscribers that are spread over all brokers cause more messages between brokers than"
        " subscribers at one broker",
        OWN,
        ShapeRule(
            "messages between brokers at X = 1 < at X = all, in every sweep", _more_between_brokers
        ),
    ),
    Claim(
        "tree-5",
        "In the random workload messages between brokers increase with X",
        OWN,
        ShapeRule("messages between brokers rise with X", _rises_with_x),
    ),
    Claim(
        "tree-6",
        "If subscribers are spread, fewer brokers have no clients and only forward",
        OWN,
        ShapeRule("pure forwarders at X = all < at X = 1, in every sweep", _fewer_forwarders),
    ),
    Claim(
        "tree-7",
        "The load in a tree is uneven: the busiest broker handles more than twice the mean",
        OWN,
        ShapeRule(
            "highest message rate > 2 x mean, in every case",
            _every_run(lambda v: v["messages_per_s_max"] > 2 * v["messages_per_s_mean"]),
        ),
    ),
    Claim(
        "tree-8",
        "Without a policy and after all clients have joined, brokers handle only publications",
        OWN,
        ShapeRule("overhead = 0, in every case", _every_run(lambda v: v["overhead_share"] == 0)),
    ),
    Claim(
        "tree-9",
        "No broker is overloaded, so delays come from paths and not from queues",
        OWN,
        ShapeRule(
            "highest input and output utilisation < 1, in every case",
            _every_run(
                lambda v: max(v["input_utilisation_max"], v["output_utilisation_max"]) < 1
            ),
        ),
    ),
)  # fmt: skip
