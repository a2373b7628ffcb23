"""The command line.  Each command is a few lines over a function that Python code can call too.

running.py      broker, up, topology
talking.py      pub, sub, adv, explain
moving.py       move
coordinating.py coordinator, brokers
clustering.py   datacluster, execute, load, dataset list, channel list|show|explain
simulating.py   demo, simulate, replay
experimenting.py  lab list, lab run, lab report
"""

from __future__ import annotations

import sys

import typer

from godwit.cli import clustering, coordinating, experimenting, moving, running, simulating, talking
from godwit.errors import GodwitError

app = typer.Typer(
    help="Content-based publish/subscribe that keeps itself balanced.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
for command in (
    running.up,
    running.broker,
    running.topology,
    talking.sub,
    talking.pub,
    talking.adv,
    talking.explain,
    moving.move,
    coordinating.coordinator,
    coordinating.brokers,
    clustering.datacluster,
    clustering.execute,
    clustering.load,
    simulating.simulate,
    simulating.replay,
):
    app.command()(command)
app.add_typer(simulating.demo, name="demo")
app.add_typer(clustering.dataset, name="dataset")
app.add_typer(clustering.channel, name="channel")
app.add_typer(experimenting.lab, name="lab")


def main() -> None:
    """The entry point: an error that is the caller's is one sentence, not a traceback."""
    try:
        app()
    except GodwitError as error:
        typer.echo(f"godwit: {error}", err=True)
        sys.exit(2)
