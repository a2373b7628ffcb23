"""Compares what experiments measured before and after a change: simulated numbers must be equal.

    godwit lab run NAME --scale small --json --cache DIR/cache > DIR/NAME.json    # for each NAME
    python -m benchmarks.same_numbers BEFORE_DIR AFTER_DIR

Prints a line for each experiment, and one for each measure that differs, with its case, its seed
and both values.  The exit code is 1 if anything differs or is missing.

Where both folders have the cache of the runs, each run is compared with the one of the same case
and seed; otherwise the statistics over the seeds in the JSON are.  Live runs are ignored, because
they go by the wall clock; everything else is measured in virtual time and follows from the seed.
Verdicts that differ are shown and do not count: they follow from the measures and the rules.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from math import isclose
from pathlib import Path
from typing import Any

#: Spark adds floats in any order.
WITHIN = 1e-9
STATISTICS = ("mean", "stddev", "min", "max")


@dataclass(frozen=True, slots=True, order=True)
class Measure:
    """One number of an experiment."""

    case: str
    seed: str
    name: str

    def __str__(self) -> str:
        return f"{self.name}  {self.case}  {self.seed}"


@dataclass(slots=True)
class Output:
    """What one experiment left in a folder."""

    measures: dict[Measure, float] = field(default_factory=dict)
    live: set[tuple[str, str]] = field(default_factory=set)
    """Case and seed of runs that are ignored."""

    verdicts: dict[str, str] = field(default_factory=dict)

    def add(self, case: dict[str, object], seed: str, name: str, value: float) -> None:
        text = " ".join(f"{parameter}={value}" for parameter, value in case.items())
        if case.get("driver") == "live":
            self.live.add((text, seed))
        else:
            self.measures[Measure(text, seed, name)] = value


def read(folder: Path, name: str, *, from_cache: bool) -> Output | None:
    """None if there is no complete output, as after a crash."""
    try:
        summary = json.loads((folder / f"{name}.json").read_bytes())
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    output = Output(verdicts={claim["id"]: claim["verdict"] for claim in summary["claims"]})
    if from_cache:
        for run in _cached(folder / "cache" / name, summary):
            for measure, value in run["values"].items():
                output.add(run["case"], f"seed {run['seed']}", measure, value)
        return output
    seeds = f"seeds {', '.join(map(str, summary['seeds']))}"
    for of_case in summary["metrics"]:
        for measure, statistic in of_case["values"].items():
            for each in STATISTICS:
                if statistic[each] is not None:
                    output.add(of_case["case"], seeds, f"{measure} {each}", statistic[each])
    return output


def _cached(folder: Path, summary: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The runs of a summary.  A cache may have them of several versions of the code."""
    cases = [of_case["case"] for of_case in summary["metrics"]]
    newest: dict[str, dict[str, Any]] = {}
    for path in sorted(folder.glob("*/result.json"), key=lambda path: path.stat().st_mtime):
        run = json.loads(path.read_bytes())
        if run["case"] in cases and run["seed"] in summary["seeds"]:
            newest[json.dumps([run["case"], run["seed"]], sort_keys=True)] = run
    yield from newest.values()


def compare(before: Path, after: Path, name: str) -> bool:
    """Print what is equal and what differs; whether all is equal."""
    from_cache = all((folder / "cache" / name).is_dir() for folder in (before, after))
    was, now = (read(folder, name, from_cache=from_cache) for folder in (before, after))
    if was is None or now is None:
        print(f"{name:20} no output in {before if was is None else after}")
        return False
    shared = sorted(was.measures.keys() & now.measures.keys())
    differing = [
        each
        for each in shared
        if not isclose(was.measures[each], now.measures[each], rel_tol=WITHIN, abs_tol=WITHIN**2)
    ]
    lone = sorted(was.measures.keys() ^ now.measures.keys())
    print(
        f"{name:20} {len(shared):6,} measures compared, {len(shared) - len(differing):6,} equal,"
        f" {len(differing):6,} different" + (f", {len(lone):,} in one of them only" if lone else "")
    )
    for case, seed in sorted(was.live | now.live):
        print(f"  ignored, live: {case}  {seed}")
    for each in differing:
        print(f"  {each}: {was.measures[each]} -> {now.measures[each]}")
    for each in lone:
        print(f"  {each}: only {'before' if each in was.measures else 'after'}")
    for claim, verdict in was.verdicts.items():
        if claim in now.verdicts and now.verdicts[claim] != verdict:
            print(f"  verdict of {claim}: {verdict} -> {now.verdicts[claim]}")
    return not differing and not lone


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.same_numbers",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    folders = parser.parse_args(arguments)
    names = sorted(
        {path.stem for folder in (folders.before, folders.after) for path in folder.glob("*.json")}
    )
    if not names:
        parser.error(f"there is no NAME.json in {folders.before} or {folders.after}")
    are_equal = [compare(folders.before, folders.after, name) for name in names]
    return 0 if all(are_equal) else 1


if __name__ == "__main__":
    sys.exit(main())
