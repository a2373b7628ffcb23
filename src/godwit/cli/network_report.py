"""A network, a change and the history of changes, as text."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import typer
from rich.table import Table

from godwit.api.network_api import (
    BrokerLoad,
    ChangeKind,
    ChangeState,
    ChangeStep,
    NetworkChange,
    NetworkView,
    StepState,
)

#: Numbers are aligned to the right.
BROKER_COLUMNS = {
    "broker": "<", "state": "<", "clients": ">", "away": ">", "pub/s": ">", "in kB/s": ">",
    "out kB/s": ">", "Ir": ">", "Or": ">", "address": "<", "pid": ">", "links": "<",
}  # fmt: skip
#: Kinds after which clients are elsewhere.
LOADS_CHANGE = (ChangeKind.DRAIN, ChangeKind.LEAVE, ChangeKind.RESTART, ChangeKind.ALLOCATE)
LOAD_COLUMNS = {"broker": "<", "clients before": ">", "expected": ">", "after": ">"}
#: Clients that stayed which are printed; --json has more.
STAYED_SHOWN = 10


def table_lines(columns: Mapping[str, str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table that stays in one piece, also in a narrow terminal, for grep."""
    every = [list(columns), *map(list, rows)]
    widths = [max(map(len, column)) for column in zip(*every, strict=True)]
    for row in every:
        cells = zip(row, columns.values(), widths, strict=True)
        yield "  ".join(f"{cell:{side}{width}}" for cell, side, width in cells).rstrip()


def view_lines(view: NetworkView) -> Iterator[str]:
    yield from table_lines(BROKER_COLUMNS, list(_broker_rows(view)))
    down = [link for link in view.links if link.status != "up"]
    yield f"{len(view.links)} links, {len(view.links) - len(down)} of them up"
    for link in down:
        yield f"link {link.one} - {link.other}: {link.status}"
    for broker in view.brokers:
        if broker.account is not None and broker.account.is_draining:
            yield f"{broker.broker} admits no new clients: {broker.account.because or 'drained'}"
    for text in view.missing:
        yield f"missing: {text}"
    if view.autoscale:
        yield f"autoscale: {view.autoscale}"
    if view.clusters:
        yield f"clusters: {view.clusters}"
    if view.change is not None:
        yield f"change {view.change.number} ({_what(view.change)}) is {view.change.state.value}"
        yield from _step_lines(view.change)


def _broker_rows(view: NetworkView) -> Iterator[list[str]]:
    for broker in view.brokers:
        account = broker.account
        if account is None:
            yield [broker.broker, broker.state, *[""] * 10]
            continue
        links = [
            link.neighbour if link.status == "up" else f"{link.neighbour} ({link.status})"
            for link in account.links
        ]
        yield [
            broker.broker,
            broker.state,
            str(account.clients),
            str(account.clients_away),
            f"{account.publications_per_s:.0f}",
            f"{account.input_bytes_per_s / 1e3:.1f}",
            f"{account.output_bytes_per_s / 1e3:.1f}",
            _ratio(account.input_utilisation),
            _ratio(account.output_utilisation),
            account.url,
            str(account.pid),
            ", ".join(links),
        ]


def _ratio(value: float | None) -> str:
    return "over" if value is None else f"{value:.3f}"


# -- changes -----------------------------------------------------------------------------------


def _what(change: NetworkChange) -> str:
    return f"{change.request.kind.value} {', '.join(change.request.brokers)}"


def change_lines(change: NetworkChange) -> Iterator[str]:
    """What was done, or would be; what came of it."""
    if change.state is ChangeState.PROPOSED:
        yield f"{_what(change)}: a dry run, nothing was done"
    else:
        took_s = (change.ended_s or time.time()) - change.asked_s
        because = f": {change.because}" if change.because else ""
        yield f"change {change.number}, {_what(change)}: {change.state.value}{because}"
        yield f"took {took_s:.1f} s"
    yield from _step_lines(change)
    if change.request.kind in LOADS_CHANGE:
        yield from _load_lines(change)


def _step_lines(change: NetworkChange) -> Iterator[str]:
    for step in change.steps:
        is_proposed = change.state is ChangeState.PROPOSED
        text = _proposal_text(step) if is_proposed else f": {_step_text(step)}"
        yield f"  {step.kind.value} {step.broker}{text}"
        if is_proposed:
            for target, count in sorted(Counter(step.went.values()).items()):
                yield f"    {_clients(count)} would move to {target}"
        shown = list(step.stayed.items())[:STAYED_SHOWN]
        for name, why in shown:
            yield f"    {name} stayed: {why}"
        if len(step.stayed) > len(shown):
            yield f"    and {len(step.stayed) - len(shown)} others (--json names them)"


def _proposal_text(step: ChangeStep) -> str:
    return f": {_clients(step.clients)}" if step.clients else ""


def _clients(count: int) -> str:
    return "1 client" if count == 1 else f"{count} clients"


def _step_text(step: ChangeStep) -> str:
    words = [step.state.value]
    if step.clients:
        words.append(f"{step.moved} of {step.clients} clients moved")
    if step.began_s is not None and step.ended_s is not None:
        words.append(f"{step.ended_s - step.began_s:.1f} s")
    is_said = step.says == f"{step.moved} clients moved" and bool(step.clients)
    if step.says and step.state is not StepState.RUNNING and not is_said:
        words.append(step.says)
    return ", ".join(words)


def _load_lines(change: NetworkChange) -> Iterator[str]:
    names = sorted({*change.before, *change.expected, *change.after})
    if not names:
        return
    loads = (change.before, change.expected, change.after)
    rows = [[name, *(_load(each.get(name)) for each in loads)] for name in names]
    yield from table_lines(LOAD_COLUMNS, rows)
    if change.after:
        yield "(kB/s are averages of the last seconds, in part of the time before the change)"


def _load(load: BrokerLoad | None) -> str:
    return "" if load is None else f"{load.clients} ({load.output_bytes_per_s / 1e3:.1f} kB/s)"


def history_table(changes: Sequence[NetworkChange]) -> Table:
    table = Table("change", "when", "by", "what", "state", "took", "moved", "why", box=None)
    for change in changes:
        ended_s = change.ended_s or time.time()
        when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(change.asked_s))
        table.add_row(
            str(change.number),
            when,
            change.request.asked_by,
            _what(change),
            change.state.value,
            f"{ended_s - change.asked_s:.1f} s",
            str(sum(step.moved for step in change.steps)),
            change.because or change.request.reason,
        )
    return table


class ChangeProgress:
    """One line that is rewritten in a terminal; elsewhere a line for each step that begins."""

    def __init__(self, *, is_quiet: bool = False) -> None:
        self._is_quiet = is_quiet
        self._is_terminal = sys.stderr.isatty()
        self._last = ""

    def show(self, change: NetworkChange) -> None:
        if self._is_quiet or change.is_over:
            return
        steps = [step for step in change.steps if step.state is StepState.RUNNING]
        over = sum(step.ended_s is not None for step in change.steps)
        waits = "ending" if over == len(change.steps) else "beginning"
        now = f"{steps[0].kind.value} {steps[0].broker}" if steps else waits
        now += f" {steps[0].says}" if steps and steps[0].says else ""
        counts = f": {steps[0].moved} of {steps[0].clients} moved" if steps else ""
        number = min(over + 1, len(change.steps))
        text = f"change {change.number}, step {number} of {len(change.steps)}: {now}"
        if self._is_terminal:
            typer.echo(f"\r\x1b[K{text}{counts}", err=True, nl=False)
        elif text != self._last:
            typer.echo(text, err=True)
        self._last = text

    def end(self) -> None:
        if self._is_terminal and self._last:
            typer.echo("\r\x1b[K", err=True, nl=False)
