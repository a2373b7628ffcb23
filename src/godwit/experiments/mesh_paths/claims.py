"""Claims P1 to P3, P7 and P8: paths, their lengths, yield, delay."""

from __future__ import annotations

from godwit.experiments.mesh.claims import of, saved, times
from godwit.experiments.mesh.datasets import BROKERS
from godwit.lab.declaration import Results
from godwit.lab.rules import Agreement, Claim, Reduction, ShapeRule

HOPS, DELAY = "hops_mean", "delay_s_mean"
LARGER = 250
#: SH has the paths of S2, but for moments at which it takes an output for busy.
EQUAL = 0.03


def _shorter(results: Results) -> bool:
    return all(
        of(results, str(dataset), other).mean(HOPS) < of(results, str(dataset), "S0").mean(HOPS)
        for dataset, _ in results.by("dataset")
        for other in ("S1", "S2")
    )


def _sh_apart(results: Results) -> float:
    return max(
        abs(of(results, str(name), "SH").mean(HOPS) / of(results, str(name), "S2").mean(HOPS) - 1)
        for name, _ in results.by("dataset")
    )


def _gap_is_smaller(results: Results) -> bool:
    return saved(HOPS, "DT2", "S1")(results) < saved(HOPS, "DT1", "S1")(results)


def _yield_error(results: Results) -> float:
    return max(
        abs(v["delivered"] / (v["delivered"] + v["pure_forwards"]) / v["yield"] - 1)
        for v in (run.values for run in results.runs)
    )


def _pairs(name: str, brokers: int) -> Reduction:
    stated = 0.40 if brokers == BROKERS else 0.13

    def share(results: Results) -> float:
        return results.where(brokers=brokers, dataset="DT1", strategy="S2").mean(name)

    return Reduction(stated, share)


CLAIMS = (
    Claim(
        "P1 120", "40% of the pairs of 120 brokers have at least 100 paths",
        "002, figure 1", _pairs("pairs_100", BROKERS),
    ),
    Claim(
        "P1 250", "13% of the pairs of 250 brokers have more than 1,000 paths",
        "002, figure 1", _pairs("pairs_1000", LARGER),
    ),
    Claim(
        "P2", "S1 and S2 shorten the paths of publications",
        "002, figure 9", ShapeRule("hops with S1 and with S2 < with S0, both datasets", _shorter),
    ),
    Claim(
        "P2 SH", "Without overload SH is like S2", "002, figure 9", Agreement(EQUAL, _sh_apart)
    ),
    Claim(
        "P3", "S1 gains less over S0 with the dense dataset",
        "002, figure 9",
        ShapeRule("hops saved by S1: DT2 < DT1", _gap_is_smaller),
    ),
    Claim(
        "P7", "The yield is delivered / (delivered + pure forwards)",
        "002, table 2", Agreement(0.01, _yield_error),
    ),
    Claim(
        "P8 S1", "Average delay: S0 takes 14.0 / 12.5 = 1.12 times as long as S1",
        "002, figure 10", Reduction(14.0 / 12.5, times(DELAY, "DT2", "S1")),
    ),
    Claim(
        "P8 S2", "... 14.0 / 9.3 = 1.5 times as long as S2 (E31: printed as 50%)",
        "002, figure 10", Reduction(14.0 / 9.3, times(DELAY, "DT2", "S2")),
    ),
    Claim(
        "P8 SH", "... and as SH",
        "002, figure 10", Reduction(14.0 / 9.3, times(DELAY, "DT2", "SH")),
    ),
)  # fmt: skip
