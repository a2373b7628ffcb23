"""Claims that are made of equal and of unequal brokers alike, and our own about predictions."""

from __future__ import annotations

from collections.abc import Sequence

from godwit.experiments.allocation.claims import (
    AUTOMATIC,
    AWARE,
    BASELINES,
    BIN_PACKING,
    BROKERS,
    DELAYS,
    FBF,
    HOPS,
    INCOMING,
    INCOMING_MAX,
    INPUT,
    INPUT_MAX,
    IOU,
    MANUAL,
    OUTPUT,
    PAIRWISE_K,
    PAIRWISE_N,
    PUBLISHED_PER_S,
    at_sizes,
    everywhere,
    fewer_brokers,
    grows,
    in_order,
    label_of,
    largest,
    mean_over_sizes,
    up_to,
)
from godwit.lab.declaration import NotMeasuredError, Results
from godwit.lab.rules import Agreement, Claim, Reduction, ShapeRule

#: Bar for predictions: input rate, output bandwidth and message rate of a broker.
WITHIN = 0.10
#: Bar for plans: above the lower bound on the number of brokers.
ABOVE_BOUND = 0.05
OWN = "our own"
#: R11: what "about 80%" is.
OUTPUT_USED = 0.80


def _one_fewer(results: Results) -> bool:
    return all(at(BROKERS, BIN_PACKING) == at(BROKERS, FBF) - 1 for at in at_sizes(results))


def _output_error(results: Results) -> float:
    return max(
        abs(at(OUTPUT, algorithm) / OUTPUT_USED - 1)
        for at in at_sizes(results)
        for algorithm in (BIN_PACKING, IOU)
    )


def _above_bound(results: Results) -> float:
    return max(at(BROKERS, IOU) / at("lower_bound_brokers", IOU) - 1 for at in at_sizes(results))


def _mostly_above(results: Results) -> bool:
    """In most cases BIN PACKING's mean Ir and Or exceed FBF's, and its highest Ir on average."""
    found = [at(each, BIN_PACKING) > at(each, FBF) for at in at_sizes(results)
             for each in (INPUT, OUTPUT)]  # fmt: skip
    highest = [mean_over_sizes(INPUT_MAX, each, results) for each in (BIN_PACKING, FBF)]
    return sum(found) > len(found) / 2 and highest[0] > highest[1]


def _alike(results: Results) -> float:
    return max(
        abs(at(each, BIN_PACKING) / at(each, FBF) - 1)
        for at in at_sizes(results)
        for each in (INCOMING, INCOMING_MAX)
    )


def _not_received(results: Results) -> float:
    """The share of all publications that a broker of BIN PACKING does not receive, on average."""
    if any(run.case["brokers"] != 80 for run in results.runs):
        raise NotMeasuredError("another number of publishers")
    return max(abs(at(INCOMING, BIN_PACKING) / PUBLISHED_PER_S - 1) for at in at_sizes(results))


def allocated(stated: float, name: str) -> Sequence[Claim]:
    """R1 to R5 and R9: how many brokers."""
    return (
        Claim(
            f"R1 {name}", f"CRAM-IOU allocates up to {stated:.0%} fewer brokers",
            "thesis 7.3.3", Reduction(stated, fewer_brokers(IOU)),
        ),
        Claim(
            f"R2 {name}", "CRAM-IOU allocates up to 47% fewer brokers than BIN PACKING",
            "thesis 7.3.3", Reduction(0.47, up_to(BROKERS, IOU, BIN_PACKING)),
        ),
        Claim(
            f"R3 {name}", "BIN PACKING always allocates exactly one broker fewer than FBF",
            "thesis 6.2.2, 7.3.3",
            ShapeRule("brokers of BIN PACKING = brokers of FBF - 1, at every size", _one_fewer),
        ),
        Claim(
            f"R4 {name}", "FBF, BIN PACKING and CRAM use less than half the brokers",
            "thesis figures 7.18a and b",
            ShapeRule(
                "brokers < half of all, at every size",
                everywhere(
                    lambda at: all(at(BROKERS, each) < at("available", each) / 2 for each in AWARE)
                ),
            ),
        ),
        Claim(
            f"R4 {name}, growth", "... and their number grows with the subscriptions",
            "thesis figures 7.18a and b",
            ShapeRule("brokers grow with subscriptions", grows(BROKERS, AWARE)),
        ),
        Claim(
            f"R5 {name}", "The baselines and PAIRWISE always use all brokers",
            "thesis 7.3.3",
            ShapeRule(
                "brokers = all, at every size",
                everywhere(
                    lambda at: all(at(BROKERS, each) == at("available", each) for each in BASELINES)
                ),
            ),
        ),
        Claim(
            f"R9 {name}", "BIN PACKING allocates up to 88% fewer brokers (as read in E35)",
            "thesis 7.3.3", Reduction(0.88, fewer_brokers(BIN_PACKING)),
        ),
    )  # fmt: skip


def rates(name: str) -> Sequence[Claim]:
    """R7 and R8: message rates."""
    return (
        Claim(
            f"R7 {name}", "PAIRWISE-N has a lower mean and a lower highest message rate than"
            " MANUAL",
            "thesis figure 7.18c",
            ShapeRule(
                "mean and highest incoming rate of PAIRWISE-N < MANUAL, at every size",
                everywhere(
                    lambda at: all(
                        at(each, PAIRWISE_N) < at(each, MANUAL) for each in (INCOMING, INCOMING_MAX)
                    )
                ),
            ),
        ),
        Claim(
            f"R8 {name}", "With BIN PACKING brokers receive nearly all of the 46.7 publications a"
            " second",
            "thesis figure 7.18c", Agreement(WITHIN, _not_received),
        ),
    )  # fmt: skip


def utilisations(name: str) -> Sequence[Claim]:
    """R10, R11 and R29: Ir and Or."""
    return (
        Claim(
            f"R10 {name}", "BIN PACKING has the highest mean and maximum Ir; CRAM-IOU's is above"
            " PAIRWISE-N's",
            "thesis figure 7.19a",
            ShapeRule(
                "Ir of BIN PACKING >= of MANUAL, PAIRWISE-N and CRAM-IOU; of CRAM-IOU > of"
                " PAIRWISE-N, at every size",
                everywhere(
                    lambda at: all(
                        at(each, BIN_PACKING) >= at(each, other)
                        for each in (INPUT, INPUT_MAX)
                        for other in (MANUAL, PAIRWISE_N, IOU)
                    )
                    and at(INPUT, IOU) > at(INPUT, PAIRWISE_N)
                ),
            ),
        ),
        Claim(
            f"R11 {name}", "With BIN PACKING and CRAM-IOU Or is about 80% in all workloads",
            "thesis figure 7.19b", Agreement(WITHIN, _output_error),
        ),
        Claim(
            f"R11 {name}, spread", "... with a smaller deviation than the baselines'",
            "thesis figure 7.19b",
            ShapeRule(
                "standard deviation / mean of Or, with BIN PACKING and CRAM-IOU < with MANUAL and"
                " PAIRWISE-N, at every size",
                everywhere(
                    lambda at: max(
                        at("output_utilisation_stddev", each) / at(OUTPUT, each)
                        for each in (BIN_PACKING, IOU)
                    )
                    < min(
                        at("output_utilisation_stddev", each) / at(OUTPUT, each)
                        for each in (MANUAL, PAIRWISE_N)
                    )
                ),
            ),
        ),
        Claim(
            f"R29 {name}", "In most cases mean Ir and Or of BIN PACKING exceed FBF's, as does its"
            " maximum Ir",
            "thesis figure 7.22a",
            ShapeRule(
                "mean Ir, Or of BIN PACKING > FBF in most cases, highest Ir on average",
                _mostly_above,
            ),
        ),
        Claim(
            f"R29 {name}, rates", "... and the message rates do not differ",
            "thesis 7.3.6", Agreement(WITHIN, _alike),
        ),
    )  # fmt: skip


def hops(name: str) -> Sequence[Claim]:
    """R13: who is nearer."""
    return (
        Claim(
            f"R13 {name}", "Hops: MANUAL > AUTOMATIC > BIN PACKING > CRAM-IOU",
            "thesis figure 7.19c",
            ShapeRule(
                "mean hops fall in this order, at every size",
                in_order(HOPS, MANUAL, AUTOMATIC, BIN_PACKING, IOU),
            ),
        ),
    )  # fmt: skip


def delays(name: str) -> Sequence[Claim]:
    """R16: who is slower."""
    return (
        Claim(
            f"R16 {name}, sorted", "The delay of BIN PACKING exceeds FBF's",
            "thesis figure 7.19d",
            ShapeRule(
                "delay of BIN PACKING > FBF, at every size", in_order(DELAYS, BIN_PACKING, FBF)
            ),
        ),
        Claim(
            f"R16 {name}, CRAM", "The delay of CRAM-IOU is below BIN PACKING's",
            "thesis figure 7.19d",
            ShapeRule(
                "delay of CRAM-IOU < BIN PACKING, at every size",
                in_order(DELAYS, BIN_PACKING, IOU),
            ),
        ),
        Claim(
            f"R16 {name}, MANUAL", "The delay of MANUAL is low, because subscribers are spread",
            "thesis figure 7.19d",
            ShapeRule(
                "delay of MANUAL < all others, at every size",
                everywhere(
                    lambda at: all(
                        at(DELAYS, MANUAL) < at(DELAYS, each) for each in (*AWARE, PAIRWISE_N)
                    )
                ),
            ),
        ),
        Claim(
            f"R16 {name}, overload", "AUTOMATIC and PAIRWISE-K are off the scale: their brokers are"
            " overloaded",
            "thesis figure 7.19d",
            ShapeRule(
                "delay of AUTOMATIC and PAIRWISE-K > all others, at every size",
                everywhere(
                    lambda at: min(at(DELAYS, each) for each in (AUTOMATIC, PAIRWISE_K))
                    > max(at(DELAYS, each) for each in (*AWARE, MANUAL))
                ),
            ),
        ),
    )  # fmt: skip


def overloads(name: str) -> Sequence[Claim]:
    """R30: which algorithms overload brokers."""
    return (
        Claim(
            f"R30 {name}, unaware", "AUTOMATIC and PAIRWISE-K always overload a broker",
            "thesis figure 7.22b",
            ShapeRule(
                "overloaded brokers of AUTOMATIC and PAIRWISE-K > 0, at every size",
                everywhere(
                    lambda at: all(at("overloaded", each) > 0 for each in (AUTOMATIC, PAIRWISE_K))
                ),
            ),
        ),
        Claim(
            f"R30 {name}, aware", "FBF, BIN PACKING and CRAM-IOU never do",
            "thesis 7.3.3, figure 7.22b",
            ShapeRule(
                "overloaded brokers of FBF, BIN PACKING and CRAM-IOU = 0, at every size",
                everywhere(lambda at: all(at("overloaded", each) == 0 for each in AWARE)),
            ),
        ),
    )  # fmt: skip


def predictions(name: str, algorithms: Sequence[str]) -> Sequence[Claim]:
    """What plans say of brokers comes true."""
    return tuple(
        Claim(
            f"plan-1 {name}, {what}", f"The {what} of every broker is as predicted, with"
            f" {', '.join(map(label_of, algorithms))}",
            OWN, Agreement(WITHIN, largest(f"error_{measure}_max", algorithms)),
        )
        for what, measure in (
            ("input rate", "input"), ("output bandwidth", "output"), ("message rate", "messages"),
        )
    )  # fmt: skip


def foreseen(name: str) -> Sequence[Claim]:
    """What plans say comes true."""
    return (
        *predictions(name, AWARE),
        Claim(
            f"plan-2 {name}", "No broker is overloaded that its plan says is not, with any"
            " algorithm",
            OWN,
            ShapeRule(
                "overloaded without being foreseen = 0, in every case",
                lambda results: not any(results.values("overloaded_unforeseen")),
            ),
        ),
        Claim(
            f"plan-3 {name}", "CRAM-IOU allocates at most 5% more brokers than any plan needs",
            OWN, Agreement(ABOVE_BOUND, _above_bound),
        ),
    )  # fmt: skip
