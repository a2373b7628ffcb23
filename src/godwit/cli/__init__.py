"""The command line.  Each command is a few lines over a function that Python code can call too.

broker.py       broker
network.py      up, topology
pubsub.py       sub, pub, adv, explain
moves.py        move
load_balancing.py  balancing show|pause|resume|abort
coordinator.py  coordinator, brokers
datacluster.py  datacluster, execute, load, dataset list, channel list|show|explain|skip
demo.py         demo, demo emergencies, simulate
replay.py       replay
nemesis.py      nemesis
lab.py          lab list|run|report
options.py      options that several commands share, and the terminal for tables
extras.py       refuses what needs an extra that is not installed
signals.py      stopping a command
"""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from godwit.cli import (
    broker,
    coordinator,
    datacluster,
    demo,
    lab,
    load_balancing,
    moves,
    nemesis,
    network,
    pubsub,
    replay,
)
from godwit.distribution import NAME, VERSION
from godwit.errors import GodwitError
from godwit.protocol.versions import PROTOCOL

app = typer.Typer(
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


BROKERS = "Brokers"
CLIENTS = "Publish and subscribe"
COORDINATOR = "Coordinator"
DATA_CLUSTER = "Data cluster"
SCENARIOS = "Demonstrations and experiments"

for panel, commands in {
    BROKERS: (network.up, broker.broker, network.topology),
    CLIENTS: (pubsub.sub, pubsub.pub, pubsub.adv, pubsub.explain),
    COORDINATOR: (coordinator.coordinator, coordinator.brokers, moves.move, moves.drain),
    DATA_CLUSTER: (datacluster.datacluster, datacluster.execute, datacluster.load),
    SCENARIOS: (demo.simulate, replay.replay, nemesis.nemesis),
}.items():
    for command in commands:
        app.command(rich_help_panel=panel)(command)
app.add_typer(load_balancing.balancing, name="balancing", rich_help_panel=BROKERS)
app.add_typer(datacluster.dataset, name="dataset", rich_help_panel=DATA_CLUSTER)
app.add_typer(datacluster.channel, name="channel", rich_help_panel=DATA_CLUSTER)
app.add_typer(demo.demo, name="demo", rich_help_panel=SCENARIOS)
app.add_typer(lab.lab, name="lab", rich_help_panel=SCENARIOS)


def main() -> None:
    """The entry point.  A GodwitError is printed as one sentence, without a traceback."""
    try:
        app()
    except GodwitError as error:
        typer.echo(f"godwit: {error}", err=True)
        sys.exit(2)
