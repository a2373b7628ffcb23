"""The command line.  Each command is a few lines over a function that Python code can call too.

broker.py          broker
network.py         up, topology
network_commands.py  network show|drain|undrain|join|leave|restart|history|abort
applying.py        network apply
change_options.py  options of the commands that change a network
relinking.py       network relink
network_plan.py    network plan
network_report.py  a network and its changes as text
joining.py         a broker that joins a running network in this process
pubsub.py          sub, pub, adv, explain
why.py             why
moves.py           move
load_balancing.py  balancing show|pause|resume|abort
croc.py            croc gather|plan
croc_apply.py      croc apply
croc_large.py      plans on Spark
whatif.py          whatif
whatif_sources.py  a network for it: running, or from a file
whatif_report.py   a rehearsal as tables
whatif_picture.py  a rehearsal as a picture
gain_gate.py       apply only what has gained enough in a rehearsal
croc_sources.py    profiles from a file, a running network or a trace
croc_report.py     a plan as text
croc_picture.py    a plan as a picture
coordinator.py     coordinator, brokers
datacluster.py     datacluster, execute, load, dataset list, channel list|show|explain|skip|resume
demo.py            demo, demo emergencies, simulate
replay.py          replay
nemesis.py         nemesis
lab.py             lab list|run|report
trace_dashboard.py  dashboard
dashboard_serving.py  the dashboard of `up` and `coordinator`
options.py         options that several commands share
terminal.py        the terminal for tables
extras.py          refuses what needs an extra that is not installed
signals.py         stopping a command
commands.py        finds the file of a command, and imports only that
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from godwit.cli.commands import LazyCommands
from godwit.distribution import NAME, VERSION
from godwit.errors import GodwitError
from godwit.protocol.versions import PROTOCOL

app = typer.Typer(
    cls=LazyCommands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _show_version(is_asked: bool) -> None:
    if is_asked:
        typer.echo(f"{NAME} {VERSION}, protocol {PROTOCOL}")
        raise typer.Exit


@app.callback()
def godwit(
    version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_show_version,
            is_eager=True,
            help="Show the version, and that of the protocol, and exit.",
        ),
    ] = False,
) -> None:
    """Content-based publish/subscribe that keeps itself balanced."""


def main() -> None:
    """The entry point.  A GodwitError is printed as one sentence, without a traceback."""
    try:
        app()
    except GodwitError as error:
        typer.echo(f"godwit: {error}", err=True)
        sys.exit(2)
