"""Runs many seeds, each in a process of its own, some at the same time."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from godwit.testing.nemesis.clocks import SettableClock, tidy_up
from godwit.testing.nemesis.fault_kinds import NETWORK_KINDS, SERVICE_KINDS, FaultKind
from godwit.testing.nemesis.nemesis_run import MEND_S, SETTLE_S, NemesisResult
from godwit.testing.nemesis.patience import SLOWER_MAX
from godwit.testing.nemesis.seed_process import SeedRequest

#: A run ends by itself, whatever happens; this is for one that does not.
SPARE_S = SLOWER_MAX * (MEND_S + 4 * SETTLE_S)
SERVICES_SPARE_S = 6_000.0
ERROR_LINES = 80
ALL_KINDS = tuple(FaultKind)
#: Figures of results that are summed up.
COUNTED = ("publications", "acknowledged", "deliveries", "told", "unacknowledged", "gaps")


@dataclass(slots=True)
class NemesisSummary:
    """The sum of many runs."""

    runs: int = 0
    flawed: list[int] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)

    def add(self, result: NemesisResult) -> None:
        self.runs += 1
        if not result.is_flawless:
            self.flawed.append(result.seed)
        for name in COUNTED:
            self.counts[name] += getattr(result, name)
        self.counts.update(result.requests)
        self.faults.update(result.faults)

    def __str__(self) -> str:
        def shown(counts: Counter[str]) -> str:
            return ", ".join(f"{name} {count}" for name, count in counts.items())

        return (
            f"{self.runs} runs, {len(self.flawed)} with violations"
            f"\nfaults: {shown(self.faults)}\n{shown(self.counts)}"
        )


async def run_seeds(
    seeds: Iterable[int],
    *,
    seconds: float = 30.0,
    kinds: Collection[FaultKind] = ALL_KINDS,
    services: bool = False,
    in_memory: bool = False,
    in_clusters: bool = False,
    jobs: int = 1,
    on_result: Callable[[NemesisResult], None] = lambda _: None,
) -> NemesisSummary:
    """Run them all; `on_result` is called with each result, as they come."""
    summary = NemesisSummary()
    free = asyncio.Semaphore(jobs)

    async def one(seed: int) -> None:
        async with free:
            result = await run_seed(
                seed,
                seconds=seconds,
                kinds=kinds,
                services=services,
                in_memory=in_memory,
                in_clusters=in_clusters,
            )
        summary.add(result)
        on_result(result)

    async with asyncio.TaskGroup() as group:
        for seed in seeds:
            group.create_task(one(seed))
    return summary


async def run_seed(
    seed: int,
    *,
    seconds: float = 30.0,
    kinds: Collection[FaultKind] = ALL_KINDS,
    services: bool = False,
    in_memory: bool = False,
    in_clusters: bool = False,
) -> NemesisResult:
    """One run, in a process with its own clock; nothing of it is left behind."""
    with tempfile.TemporaryDirectory(prefix="godwit-nemesis-") as folder:
        request = SeedRequest(seed, seconds, tuple(kinds), folder, services, in_memory, in_clusters)
        spare_s = SERVICES_SPARE_S if services else SPARE_S
        environment = dict(os.environ)
        if not services and not in_memory:  # Java has its own way to the clock.
            environment |= SettableClock(request.clock_file).environment
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "godwit.testing.nemesis.seed_process",
            msgspec.json.encode(request).decode(),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )  # fmt: skip
        try:
            async with asyncio.timeout(seconds + spare_s):
                out, errors = await _outputs(process)
        except TimeoutError:
            return _failed(seed, seconds, f"the run did not end within {seconds + spare_s:g} s")
        finally:
            is_left = _end_group(process.pid)
            await process.wait()
            tidy_up(process.pid)
        tail = errors.decode(errors="replace").strip().splitlines()[-ERROR_LINES:]
        if process.returncode:
            return _failed(seed, seconds, "the run failed", *tail)
        try:
            result = msgspec.json.decode(out, type=NemesisResult)
        except msgspec.DecodeError as error:
            ended = f"the run ended after {len(out)} bytes of its result: {error}"
            return _failed(seed, seconds, ended, *tail)
        if result.violations:  # Services write their logs there.
            result.story += ["-- standard error", *tail]
        if is_left:
            result.violations.append("a process was left over")
        return result


async def _outputs(process: asyncio.subprocess.Process) -> tuple[bytes, bytes]:
    """Unlike `communicate`, this leaves standard input open: it is the leash."""
    assert process.stdout is not None
    assert process.stderr is not None
    out, errors = await asyncio.gather(process.stdout.read(), process.stderr.read())
    await process.wait()
    return out, errors


def _end_group(group: int) -> bool:
    """Kill what is left of a process group; True if there was something."""
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


def _failed(seed: int, seconds: float, reason: str, *story: str) -> NemesisResult:
    return NemesisResult(seed, 0, seconds, violations=[reason], story=list(story))


def replay_command(
    seed: int,
    *,
    seconds: float,
    kinds: Collection[FaultKind] = NETWORK_KINDS,
    services: bool = False,
    in_memory: bool = False,
    in_clusters: bool = False,
) -> str:
    command = f"godwit nemesis {seed} --seconds {seconds:g}"
    if services:
        command += " --services"
    if in_memory:
        command += " --in-memory"
    if in_clusters:
        command += " --overlay clusters"
    if set(kinds) != set(SERVICE_KINDS if services else NETWORK_KINDS):
        command += f" --kinds {','.join(kind.value for kind in kinds)}"
    return command


def keep_story(folder: Path, result: NemesisResult) -> Path:
    """The whole story of a run as a file."""
    path = folder / f"nemesis-{result.seed}.txt"
    path.write_text("\n".join([*result.violations, "", *result.story, ""]))
    return path
