"""C3, C4, C10 and C11: what document 003 says of the load without dynamic balancing.

The rules were fixed before the first run.  "Even" is the coefficient of variation of the load.
"""

from __future__ import annotations

from collections.abc import Iterator

from godwit.experiments.clusters.overlay_setups import CLUSTERS, DHT, DHT_DIRECT, TREE
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Claim, ShapeRule


def by_ratio(results: Results) -> Iterator[Results]:
    for _, of_ratio in results.by("ratio"):
        yield of_ratio


def several(results: Results) -> list[Results]:
    """Clusters, by their number from the fewest on; more than one."""
    runs = results.only(
        lambda run: run.case["overlay"] == CLUSTERS and int(run.case["clusters"]) > 1,
        "several clusters",
    )
    found = sorted(runs.by("clusters"), key=lambda each: int(each[0]))
    return [of_number for _, of_number in found]


def tree_is_least_even(results: Results) -> bool:
    return all(
        of_ratio.where(overlay=TREE).mean("load_cov")
        > max(
            of_ratio.where(overlay=DHT).mean("load_cov"),
            *(each.mean("load_cov") for each in several(of_ratio)),
        )
        for of_ratio in by_ratio(results)
    )


def less_than(overlay: str, name: str, statement: str) -> ShapeRule:
    """With every number of clusters a measure is smaller than in another overlay."""

    def holds(results: Results) -> bool:
        return all(
            each.mean(name) < of_ratio.where(overlay=overlay).mean(name)
            for of_ratio in by_ratio(results)
            for each in several(of_ratio)
        )

    return ShapeRule(f"with every number of clusters {statement} `{overlay}`", holds)


def clusters_are_more_even_than(overlay: str) -> ShapeRule:
    return less_than(overlay, "load_cov", "the load varies less, at every ratio, than in")


def smaller_maximum_than(overlay: str) -> ShapeRule:
    return less_than(overlay, "load_max", "the busiest broker has less to do than in")


def rises(name: str) -> ShapeRule:
    def holds(results: Results) -> bool:
        for of_ratio in by_ratio(results):
            values = [each.mean(name) for each in several(of_ratio)]
            if values != sorted(values):
                return False
        return True

    return ShapeRule(f"`{name}` does not fall with the number of clusters, at every ratio", holds)


def two_links_at_most(results: Results) -> bool:
    return max(max(each.values("hops_max")) for each in several(results)) <= 2


def the_same_deliveries(results: Results) -> bool:
    return all(
        len(set(of_ratio.values(name))) == 1
        for of_ratio in by_ratio(results)
        for name in ("deliveries", "deliveries_digest")
    )


def single_has_least_copies(results: Results) -> bool:
    """Of the runs with the seed that the single cluster has."""
    try:
        single = results.where(overlay=CLUSTERS, clusters=1)
    except NotMeasuredError:
        return True  # It is run once.
    return all(
        of_ratio.mean("copies") <= min(each.mean("copies") for each in several(runs))
        for ratio, of_ratio in single.by("ratio")
        for runs in [results.where(ratio=ratio)]
    )


SOURCE = "document 003, section 4, figure 2"

CLAIMS = (
    Claim(
        "C3 tree",
        "A tree divides the load worst: few hot brokers in the middle, idle edges",
        SOURCE,
        ShapeRule("the load varies most in `tree`, at every ratio", tree_is_least_even),
    ),
    Claim(
        "C3 clusters",
        "Clusters divide the load more evenly than a hash table",
        SOURCE,
        clusters_are_more_even_than(DHT),
    ),
    Claim(
        "C3 direct",
        "The same, if every broker of the hash table knows every zone (ours)",
        SOURCE,
        clusters_are_more_even_than(DHT_DIRECT),
    ),
    Claim("C4 load", "Fewer clusters have a smaller load", SOURCE, rises("load_mean")),
    Claim("C4 even", "Fewer clusters divide the load more evenly", SOURCE, rises("load_cov")),
    Claim(
        "C10 tree",
        "Clusters without balancing beat a tree",
        "document 003, section 3",
        smaller_maximum_than(TREE),
    ),
    Claim(
        "C10 dht",
        "Clusters without balancing beat a hash table",
        "document 003, section 3",
        smaller_maximum_than(DHT),
    ),
    Claim(
        "C11",
        "A publication reaches its brokers over two links at most",
        "document 003, section 2.2",
        ShapeRule("no delivery in clusters took more than two links", two_links_at_most),
    ),
    Claim(
        "clusters-1",
        "All overlays deliver the same",
        "our own",
        ShapeRule("deliveries and their digest are equal, at every ratio", the_same_deliveries),
    ),
    Claim(
        "clusters-2",
        "A single cluster sends the fewest copies of publications",
        "our own: equation (1) without subscriptions",
        ShapeRule("at every ratio that was run", single_has_least_copies),
    ),
)
