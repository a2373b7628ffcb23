"""An experiment that takes no time: each run leaves a trace with a few deliveries.

A case says how many, and what goes wrong.  Every run that is played leaves a line in the file that
TOY_DIARY names.
"""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from godwit.content.messages import AdvertisementId, Publication
from godwit.errors import UsageError
from godwit.lab.declaration import Case, Experiment, Figure, Measure, Results, Scale, Trace
from godwit.lab.metrics.numbers import numbers
from godwit.lab.metrics.paths import hop_count
from godwit.lab.metrics.stages import Span
from godwit.lab.plots import lines
from godwit.lab.rules import Claim, Reduction, ShapeRule
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter

MEASURES = {
    "deliveries": Measure("deliveries", "that were made"),
    "hops_mean": Measure("hops", "of a delivery"),
    "hops_max": Measure("hops", "of the farthest"),
}


def run(case: Case, seed: int, folder: Path) -> None:
    with Path(os.environ["TOY_DIARY"]).open("a") as diary:
        diary.write(f"{case['deliveries']} {seed}\n")
    match case.get("goes"):
        case "wrong":
            raise UsageError("the toy is broken")
        case "worse":
            raise ZeroDivisionError("the toy is very broken")
        case "out":
            os.kill(os.getpid(), signal.SIGKILL)
        case "on":
            time.sleep(600.0)
    with TraceWriter(folder) as writer:
        recorder = Recorder(writer)
        for number in range(int(case["deliveries"])):
            recorder.delivered(["alice"], _publication(number), seed, float(number))


def _publication(number: int) -> Publication:
    advertisement = AdvertisementId("paul/1")
    return Publication(publisher="paul", sequence=number, advertisement=advertisement, content={})


def measure(trace: Trace, case: Case) -> dict[str, float]:
    if case.get("goes") == "unmeasured":
        return {**numbers(hop_count(trace, Span(0.0, 0.5))), "colour": 1.0}
    return numbers(hop_count(trace, Span(0.0, 1000.0)))


def grows(results: Results) -> bool:
    return results.where(deliveries=2).mean("deliveries") < results.mean("deliveries")


def toy(*cases: Case, seeds: int = 2) -> Experiment:
    return Experiment(
        name="toy",
        title="A toy",
        question="Does the machinery work?",
        setup="A few deliveries.",
        scales={"small": Scale(cases or ({"deliveries": 2}, {"deliveries": 3}), seeds)},
        run=run,
        measure=measure,
        measures=MEASURES,
        claims=(
            Claim("toy-1", "It grows", "our own", ShapeRule("2 < all", grows)),
            Claim("toy-2", "Less by half", "a paper", Reduction(0.5, lambda _results: 0.46)),
            Claim("toy-3", "More < most", "a paper", Reduction(0.5, lambda _results: 0.2)),
        ),
        figures=(
            Figure(
                "growth",
                "It grows.",
                lambda axes, results: lines(
                    axes, {"toy": results}, x="deliveries", y="hops_mean", factor=1.0
                ),
            ),
        ),
        remarks="It is a toy.",
    )


EXPERIMENT = toy()
