"""Progress of an experiment: a bar on a terminal, a line for each run elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from godwit.lab.cache import PlannedRun


class Progress:
    """`with progress.of(16, found=4): progress.done(run) ...`, from any thread."""

    def __init__(self, console: Console, title: str) -> None:
        self._console = console
        self._title = title
        self._total = self._found = self._done = 0
        self._start_s = self._first_s = 0.0
        self._bar: Bar | None = None
        self._task = TaskID(0)

    @contextmanager
    def of(self, total: int, *, found: int) -> Iterator[None]:
        """`total` runs, `found` of which are complete already."""
        self._total, self._found, self._done, self._bar = total, found, 0, None
        self._start_s = time.monotonic()
        if self._console.is_terminal and found < total:
            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                MofNCompleteColumn(),
                TimeElapsedColumn(),
                TextColumn("{task.fields[left]}"),
            )
            with Bar(*columns, console=self._console, transient=True) as self._bar:
                self._task = self._bar.add_task(
                    self._title, total=total, completed=found, left="starting Spark"
                )
                yield
        else:
            self._say(f"{total} runs, {found} of them complete already")
            yield
        if found < total:
            self._say(f"{self._done} runs made in {_duration(time.monotonic() - self._start_s)}")

    def done(self, run: PlannedRun) -> None:
        self._done += 1
        if self._done == 1:
            self._first_s = time.monotonic()
        at = self._found + self._done
        left = self._left()
        if self._bar is not None:
            self._bar.update(self._task, completed=at, left=left)
        else:
            self._say(f"{at}/{self._total}  {run}  {left}".rstrip())

    def _left(self) -> str:
        """Estimate from the runs made since the first."""
        to_come = self._total - self._found - self._done
        if not to_come:
            return "done"
        if self._done == 1:  # Its time includes the start of Spark.
            return ""
        each_s = (time.monotonic() - self._first_s) / (self._done - 1)
        return f"about {_duration(each_s * to_come)} left"

    def _say(self, line: str) -> None:
        self._console.print(f"{self._title}: {line}", highlight=False, markup=False, soft_wrap=True)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
