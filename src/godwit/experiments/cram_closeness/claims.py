"""The claims of `cram-closeness`: R24 to R28 and R37 of the thesis."""

from __future__ import annotations

from collections.abc import Callable

from godwit.experiments.allocation.claims import (
    BROKERS,
    DELAYS,
    HOPS,
    INCOMING,
    INCOMING_MAX,
    INPUT,
    INTERSECT,
    IOS,
    IOU,
    OUTPUT,
    XOR,
)
from godwit.experiments.cram_closeness.runs import CLUSTERS, DEPLOYED
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Reduction, ShapeRule

ALIKE = (INTERSECT, IOS, IOU)
EQUAL, UNEQUAL = "equal", "unequal"
#: R28: "almost no differences".
SAME = 0.10


def deployed(results: Results, algorithm: str, capacity: str) -> Results:
    return results.where(study=DEPLOYED, algorithm=algorithm, capacity=capacity)


def _ratio(measure: str, capacity: str) -> Callable[[Results], float]:
    """By how much XOR has more than IOU, as a share."""
    return lambda results: (
        deployed(results, XOR, capacity).mean(measure)
        / deployed(results, IOU, capacity).mean(measure)
        - 1
    )


def _more(measure: str) -> Callable[[Results], float]:
    """The mean of equal and unequal brokers."""
    return lambda results: sum(_ratio(measure, each)(results) for each in (EQUAL, UNEQUAL)) / 2


def _fewer_clusters(capacity: str) -> Callable[[Results], float]:
    return lambda results: -_ratio("clusters", capacity)(results)


def _many_more_hops(results: Results) -> bool:
    """A ratio means little if there are nearly none with IOU."""
    return all(
        deployed(results, XOR, each).mean(HOPS) > 23 * deployed(results, IOU, each).mean(HOPS)
        for each in (EQUAL, UNEQUAL)
    )


def _slower(capacity: str) -> Callable[[Results], float]:
    def more(results: Results) -> float:
        others = max(deployed(results, each, capacity).mean("plan_s") for each in ALIKE)
        return deployed(results, XOR, capacity).mean("plan_s") / others - 1

    return more


def _difference(measure: str) -> Callable[[Results], float]:
    """The largest difference of INTERSECT and IOS to IOU, relative."""
    return lambda results: max(
        abs(
            deployed(results, algorithm, each).mean(measure)
            / deployed(results, IOU, each).mean(measure)
            - 1
        )
        for algorithm in (INTERSECT, IOS)
        for each in (EQUAL, UNEQUAL)
    )


def _disjoint(results: Results) -> bool:
    clusters = results.where(study=CLUSTERS)
    with_xor, with_iou = (
        clusters.where(algorithm=each).mean("clusters_disjoint") for each in (XOR, IOU)
    )
    return with_xor > with_iou


CLAIMS = (
    Claim(
        "R24", "With XOR the mean message rate is 55% higher than with IOU",
        "thesis figure 7.21a", Reduction(0.55, _more(INCOMING)),
    ),
    Claim(
        "R24 max", "... and the highest one 93% higher",
        "thesis figure 7.21a", Reduction(0.93, _more(INCOMING_MAX)),
    ),
    *(
        Claim(
            f"R25 {capacity}", f"XOR makes {stated:.0%} fewer clusters than IOU, {capacity}"
            " brokers",
            "thesis 7.3.5",
            Reduction(stated, _fewer_clusters(capacity)),
        )
        for capacity, stated in ((EQUAL, 0.74), (UNEQUAL, 0.41))
    ),
    Claim(
        "R26", "XOR has 23 times the hops of IOU (2,200% more)",
        "thesis figure 7.21c",
        ShapeRule("mean hops of XOR > 23 times those of IOU, equal and unequal", _many_more_hops),
    ),
    Claim(
        "R26 delay", "... and an 18% higher delay",
        "thesis figure 7.21b", Reduction(0.18, _more(DELAYS)),
    ),
    *(
        Claim(
            f"R27 {capacity}", f"XOR takes {stated:.0%} more time than the others, {capacity}"
            " brokers",
            "thesis figure 7.21d (E33)", Reduction(stated, _slower(capacity)),
        )
        for capacity, stated in ((EQUAL, 1.05), (UNEQUAL, 0.75))
    ),
    *(
        Claim(
            f"R28 {name}", f"INTERSECT, IOS and IOU differ little in {name}",
            "thesis 7.3.5", Agreement(SAME, _difference(measure)),
        )
        for name, measure in (
            ("Ir", INPUT), ("Or", OUTPUT), ("brokers", BROKERS), ("time", "plan_s"),
            ("clusters", "clusters"),
        )
    ),
    Claim(
        "R37", "XOR makes clusters of disjoint subscriptions",
        "thesis 6.2.3",
        ShapeRule("clusters with disjoint subscriptions, XOR > IOU", _disjoint),
    ),
)  # fmt: skip
