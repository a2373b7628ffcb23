"""Broken versions of Godwit: does nemesis notice them?

    python -m benchmarks.mutants                        # each of them, 100 runs at most
    python -m benchmarks.mutants gap-not-signalled --runs 20

A mutant is a copy of the sources in which some lines are replaced: production code has no hook for
it.  Runs are those of `godwit nemesis`, seed after seed, until one of them has a violation.  At the
end there is a line for each mutant, with the number of runs that it took; the exit code is 1 if one
was not noticed.
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


async def noticed_after(mutant: Mutant, runs: int, seconds: float, console: Console) -> int | None:
    """How many runs it takes to notice it; None if it is not noticed."""
    with tempfile.TemporaryDirectory(prefix="godwit-mutant-") as folder:
        mutant.make(Path(folder))
        for seed in range(runs):
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "godwit", "nemesis", str(seed), "--seconds", f"{seconds:g}",
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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", choices=[mutant.name for mutant in MUTANTS])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    console = Console()
    taken: dict[str, int | None] = {}
    for mutant in MUTANTS:
        if given.name in (None, mutant.name):
            console.print(f"{mutant.name}: {mutant.meaning}")
            after = noticed_after(mutant, given.runs, given.seconds, console)
            taken[mutant.name] = asyncio.run(after)
    for name, count in taken.items():
        outcome = f"NOT NOTICED in {given.runs} runs"
        console.print(f"{name}: {outcome if count is None else f'noticed after {count} runs'}")
    return 1 if None in taken.values() else 0


if __name__ == "__main__":
    sys.exit(main())
