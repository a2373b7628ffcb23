"""C1 and C2: the number of clusters with the least traffic.

The rules were fixed before the first run.  Traffic is what equation (1) counts: publications and
subscriptions between brokers.
"""

from __future__ import annotations

from godwit.lab.declaration import Measured, Results
from godwit.lab.rules import Agreement, Claim, ShapeRule
from godwit.overlay.clusters.cluster_traffic import ClusterLoad

SOURCE = "document 003, section 3.2"
#: The parts of the event space, from the least popular on.
PARTITIONS = ("unpopular", "average", "popular")


def load_of(run: Measured) -> ClusterLoad:
    """What was published and subscribed to in a run."""
    brokers = int(run.case["brokers"])
    interested = round(float(run.case["ratio"]) * brokers)
    subscriptions = int(run.case["topics"]) * interested
    published = run.values["publications"]
    return ClusterLoad(brokers, published, float(subscriptions), interested / brokers)


def traffic_of(run: Measured) -> float:
    values = run.values
    return values["copies"] * values["publications"] + values["subscriptions_sent"]


def best(results: Results) -> int:
    """The number of clusters with the least traffic of one seed and partition."""
    return min((traffic_of(run), int(run.case["clusters"])) for run in results.runs)[1]


def least_beside_the_optimum(results: Results) -> bool:
    return all(
        abs(best(of_partition) - load_of(of_partition.runs[0]).optimum) <= 1
        for _, of_partition in results.by("partition")
    )


def error_of_equation(results: Results) -> float:
    """Where all clusters have the same size: the equation knows no others."""
    even = results.only(
        lambda run: int(run.case["brokers"]) % int(run.case["clusters"]) == 0, "equal clusters"
    )
    return max(
        abs(traffic_of(run) / load_of(run).traffic(int(run.case["clusters"])) - 1)
        for run in even.runs
    )


def more_for_the_popular(results: Results) -> bool:
    found = [best(results.where(partition=partition)) for partition in PARTITIONS]
    return found == sorted(set(found))


CLAIMS = (
    Claim(
        "C1",
        "Traffic is least at m* = sqrt(s n / (p (1 - r)))",
        SOURCE,
        ShapeRule(
            "the number with the least traffic is m* give or take one", least_beside_the_optimum
        ),
    ),
    Claim(
        "C1 equation",
        "Traffic is that of equation (1)",
        SOURCE,
        Agreement(0.03, error_of_equation),
    ),
    Claim(
        "C2",
        "The more popular a part of the event space, the more clusters",
        SOURCE,
        ShapeRule("the best number rises from partition to partition", more_for_the_popular),
    ),
)
