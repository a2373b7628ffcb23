"""Broken versions of Godwit: are they noticed?

    python -m benchmarks.mutants                        # each of them, 100 runs at most
    python -m benchmarks.mutants gap-not-signalled --runs 20
    python -m benchmarks.mutants --in-memory            # faster: brokers are no processes

A mutant is a copy of the sources in which some lines are replaced: production code has no hook for
it.  Versions that break a promise run `godwit nemesis`, seed after seed, until one of the runs has
a violation.  Versions that break the load balancer, or a change of the network's shape, run its
tests.  At the end there is a line for each mutant, with the number of runs that it took, or a test
that failed; the exit code is 1 if one was not noticed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

SOURCES = Path(__file__).parent.parent / "src"


@dataclass(frozen=True, slots=True)
class Edit:
    path: str
    """Under src/godwit."""

    old: str
    """What is replaced; it stands there once."""

    new: str

    def applied(self, text: str) -> str:
        if text.count(self.old) != 1:
            raise ValueError(f"{self.path} has changed: {self.old!r} does not stand there once")
        return text.replace(self.old, self.new)


@dataclass(frozen=True, slots=True)
class Mutant:
    name: str
    meaning: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...] = ()
    """Tests that should notice it; without any, nemesis should."""

    def make(self, folder: Path) -> None:
        """A copy of the sources, broken."""
        shutil.copytree(SOURCES, folder, dirs_exist_ok=True)
        for edit in self.edits:
            path = folder / "godwit" / edit.path
            path.write_text(edit.applied(path.read_text()))


MUTANTS = (
    Mutant(
        "incarnation-ignored",
        "a publisher that is started again is taken for the one before",
        (
            Edit(
                "client/deliveries.py",
                "self._last.setdefault(incarnation_of(publication), [-1])",
                "self._last.setdefault(publication.publisher, [-1])",
            ),
        ),
    ),
    Mutant(
        "cold-start-not-waited-for",
        "things come into effect before configured links have been up",
        (
            Edit(
                "overlay/tree/tree_routing.py",
                "Resync(self._links, place.expected)",
                "Resync(self._links)",
            ),
        ),
    ),
    Mutant(
        "gap-not-signalled",
        "a part of the network is given up without a word",
        (
            Edit(
                "broker/parts.py",
                "answers: Answers = [] if loss is None else self._lose(neighbour, loss)",
                "answers: Answers = []",
            ),
        ),
    ),
    Mutant(
        "cycle-let-in",
        "a link that closes a cycle is up like any other",
        (
            Edit(
                "runtime/node_links.py",
                "        if refusal is not None:\n            raise ClosesCycle(refusal)\n",
                "",
            ),
            Edit(
                "runtime/node_links.py",
                "return 0 if is_configured else self._proposals.next_turn()",
                "return 0",
            ),
        ),
    ),
    Mutant(
        "take-over-not-told",
        "a client takes over, and the first one is not told",
        (
            Edit(
                "client/broker_connection.py",
                "elif isinstance(frame, Goodbye) and frame.name_is_taken:",
                "elif isinstance(frame, Goodbye) and not frame:",
            ),
            Edit(
                "protocol/call.py",
                "return TakenOverError(goodbye.reason)",
                "return RefusedError(goodbye.reason)",
            ),
        ),
    ),
)

DISJOINT_CLUSTERS = "test_disjoint_pairs_of_clusters_have_global_sessions_at_the_same_time"
OFFLOAD_TESTS = "tests/policies/offload"
RESHAPING_TESTS = ("tests/simulation/test_random_reshaping.py", "tests/overlay/test_epochs.py")
RESHAPING_MUTANTS = (
    Mutant(
        "next-epoch-not-held",
        "publications of the next epoch overtake those of the old one",
        (
            Edit(
                "overlay/epochs/epoch_routing.py",
                "and isinstance(message, Publication | Sweep)",
                "and False",
            ),
        ),
        RESHAPING_TESTS,
    ),
    Mutant(
        "last-sent-at-once",
        "Last is sent with the flip, whatever still comes from other old neighbours",
        (
            Edit(
                "overlay/epochs/epoch_routing.py",
                "return all(each in self._heard for each in old if each != neighbour)",
                "return True",
            ),
        ),
        RESHAPING_TESTS,
    ),
)
BALANCER_MUTANTS = (
    Mutant(
        "press-from-filters",
        "PRESS estimates from what filters look like, not from what was delivered",
        (
            Edit(
                "policies/offload/press.py",
                """            group_of[hop.name]
            for hop in destinations
            if type(hop) is LocalClient and hop.name in group_of
""",
                """            number
            for number, group in enumerate(self._groups)
            if self._samples % (1 + len(group.filters[0].constraints)) == 0
""",
            ),
        ),
        (f"{OFFLOAD_TESTS}/test_press.py",),
    ),
    Mutant(
        "sweep-replaced-by-a-wait",
        "a move waits for an answer of the new broker, not for publications under way",
        (
            Edit(
                "overlay/tree/presence.py",
                "return [Send(direction, sweep)]",
                "return [Confirm(LocalClient(sweep.client), Swept(move=sweep.move))]",
            ),
        ),
        ("tests/testing/test_random_balancing.py",),
    ),
    Mutant(
        "sender-side-adaptive-pie",
        "brokers subscribe to all loads, whatever the bounds of Adaptive PIE are",
        (
            Edit(
                "policies/offload/adaptive_pie.py",
                """f"class = '{kind}' and cluster = '{cluster}' and {metric.value} < {bound!r}\"""",
                """f"class = '{kind}' and cluster = '{cluster}'\"""",
            ),
        ),
        (f"{OFFLOAD_TESTS}/test_convergence.py", f"{OFFLOAD_TESTS}/test_global_mediation.py"),
    ),
    Mutant(
        "one-global-session-at-a-time",
        "a global session begins only if no other one is open anywhere",
        (
            Edit(
                "policies/offload/global_mediation.py",
                '        assert self.session is None, "X1"\n',
                "        if any(other.session for other in EVERY):\n            return []\n",
            ),
            Edit(
                "policies/offload/global_mediation.py",
                "        self.session: GlobalSession | None = None\n",
                "        self.session: GlobalSession | None = None\n        EVERY.append(self)\n",
            ),
            Edit(
                "policies/offload/global_mediation.py",
                "class GlobalMediator:",
                "EVERY: list[GlobalMediator] = []\n\n\nclass GlobalMediator:",
            ),
        ),
        (f"{OFFLOAD_TESTS}/test_global_mediation.py::{DISJOINT_CLUSTERS}",),
    ),
    Mutant(
        "acceptor-limit-ignored",
        "the offloader gives more than the acceptor can take",
        (
            Edit(
                "policies/offload/estimates.py",
                "        limit, remote = self._limit, self._remote\n",
                "        limit, remote = inf, self._remote\n",
            ),
            Edit(
                "policies/offload/estimates.py",
                "return ratio(self.remote_bytes_s + bytes_s, total) <= self._limit",
                "return ratio(self.remote_bytes_s + bytes_s, total) <= inf",
            ),
        ),
        (f"{OFFLOAD_TESTS}/test_offload_algorithms.py", f"{OFFLOAD_TESTS}/test_report_cards.py"),
    ),
)


async def failed_test(mutant: Mutant, console: Console) -> str | None:
    """The first of its tests that fails; None if it is not noticed."""
    with tempfile.TemporaryDirectory(prefix="godwit-mutant-") as folder:
        mutant.make(Path(folder))
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *mutant.tests,
            cwd=SOURCES.parent,
            env={**os.environ, "PYTHONPATH": folder},
            stdout=asyncio.subprocess.PIPE,
        )  # fmt: skip
        out, _ = await process.communicate()
    failed = [line for line in out.decode().splitlines() if line.startswith("FAILED ")]
    if process.returncode not in (0, 1) or (process.returncode and not failed):
        raise RuntimeError(f"the tests of {mutant.name} could not run: {out.decode()[-2000:]}")
    console.print(f"  {failed[0][:200] if failed else 'all tests pass'}", highlight=False)
    return failed[0].removeprefix("FAILED ").split(" - ")[0] if failed else None


async def noticed_after(
    mutant: Mutant, runs: int, options: list[str], console: Console
) -> int | None:
    """How many runs it takes to notice it; None if it is not noticed."""
    with tempfile.TemporaryDirectory(prefix="godwit-mutant-") as folder:
        mutant.make(Path(folder))
        for seed in range(runs):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "godwit", "nemesis", str(seed), *options,
                env={**os.environ, "PYTHONPATH": folder},
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, _ = await process.communicate()
            lines = out.decode().splitlines()
            console.print(f"  {lines[0] if lines else ''}", style="dim", highlight=False)
            if process.returncode == 1:
                wrong = [line.strip() for line in lines if line.strip().startswith("WRONG")]
                console.print(f"  {wrong[0][:200] if wrong else ''}")
                return seed + 1
    return None


async def outcome(mutant: Mutant, runs: int, options: list[str], console: Console) -> str | None:
    """How it was noticed; None if it was not."""
    if mutant.tests:
        test = await failed_test(mutant, console)
        return None if test is None else f"noticed by {test}"
    count = await noticed_after(mutant, runs, options, console)
    return None if count is None else f"noticed after {count} runs"


def main() -> int:
    mutants = {mutant.name: mutant for mutant in (*MUTANTS, *BALANCER_MUTANTS, *RESHAPING_MUTANTS)}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(mutants))
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--in-memory", action="store_true", help="nemesis on a virtual clock")
    given = parser.parse_args()
    unknown = set(given.names) - set(mutants)
    if unknown:
        parser.error(f"no mutant {', '.join(sorted(unknown))}; choose from {', '.join(mutants)}")
    options = ["--seconds", f"{given.seconds:g}", *["--in-memory"] * given.in_memory]
    console = Console()
    found: dict[str, str | None] = {}
    for name in given.names or mutants:
        console.print(f"{name}: {mutants[name].meaning}")
        found[name] = asyncio.run(outcome(mutants[name], given.runs, options, console))
    for name, how in found.items():
        console.print(f"{name}: {how or 'NOT NOTICED'}", highlight=False)
    return 1 if None in found.values() else 0


if __name__ == "__main__":
    sys.exit(main())
