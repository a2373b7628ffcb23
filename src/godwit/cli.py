"""The command line.  Each command is a few lines over a function that Python code can call too."""

from __future__ import annotations

import sys
from typing import Annotated

import typer
from rich.console import Console

from godwit.demo import render, run_demo
from godwit.errors import GodwitError
from godwit.overlay import OVERLAYS
from godwit.overlay import overlay as overlay_named
from godwit.simulation.random_runs import random_run
from godwit.simulation.stock_scenario import StockScenario

app = typer.Typer(
    help="Content-based publish/subscribe that keeps itself balanced.",
    no_args_is_help=True,
    add_completion=False,
)


@app.callback()
def godwit() -> None:
    """Content-based publish/subscribe that keeps itself balanced."""


@app.command()
def demo(
    seed: Annotated[int, typer.Option(help="Another seed, another market.")] = 1,
    brokers: Annotated[int, typer.Option(min=1, max=500, help="Size of the overlay.")] = 31,
    minutes: Annotated[float, typer.Option(min=1.5, max=60, help="Simulated time.")] = 4.0,
) -> None:
    """Play stock quotes through a tree of brokers and check every delivery."""
    console = Console()
    scenario = StockScenario(
        brokers=brokers,
        publishers=10,
        subscribers_per_publisher=40,
        brokers_with_subscribers=12,
        duration_s=minutes * 60.0,
    )
    result = run_demo(console, scenario=scenario, seed=seed)
    for table in render(result):
        console.print(table)
    if not result.oracle.is_satisfied:
        raise typer.Exit(code=1)


@app.command()
def replay(
    seed: Annotated[int, typer.Argument(help="As printed by a failed test.")],
    overlay: Annotated[str, typer.Option(help=f"One of: {', '.join(OVERLAYS)}.")] = "tree",
) -> None:
    """Run one random overlay with random clients again, and say what went wrong."""
    run = random_run(seed, overlay_named(overlay))
    typer.echo(str(run))
    if not run.is_flawless:
        raise typer.Exit(code=1)


def main() -> None:
    """The entry point: an error that is the caller's is one sentence, not a traceback."""
    try:
        app()
    except GodwitError as error:
        typer.echo(f"godwit: {error}", err=True)
        sys.exit(2)
