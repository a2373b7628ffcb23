"""`godwit whatif`: a running network in the simulator, with a change, before and after.

docs/whatif.md has the changes, the file form and the errors.  Nothing in the network is changed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import msgspec
import typer

from godwit.cli.applying import links_of
from godwit.cli.change_options import LISTEN
from godwit.cli.croc_apply import read_plan
from godwit.cli.extras import needs
from godwit.cli.gain_gate import GainOf, is_any_enough, percentage
from godwit.cli.options import Json, Secret
from godwit.cli.terminal import console
from godwit.cli.whatif_report import print_report
from godwit.cli.whatif_sources import live_snapshot, read_snapshot, save_snapshot
from godwit.errors import UsageError
from godwit.rehearsal.changes_to_try import Links, RehearsedChange, read_change
from godwit.rehearsal.rehearsing import RehearsalOptions, RehearsalReport, rehearse
from godwit.rehearsal.taking_snapshots import SnapshotTimes

PICTURES = (".svg", ".png")

Where: TypeAlias = Annotated[
    list[str] | None,
    typer.Argument(
        help="Coordinator, http://HOST:PORT; or a network file; or all brokers.",
        show_default=LISTEN,
    ),
]
Changes: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--change",
        "-c",
        help="traffic=2, without=B3, overlay=mesh, overlay=clusters:3, tree=FILE, plan=FILE,"
        " placement=NAME or balancing=on; several with commas; repeat to compare.",
    ),
]
SnapshotFile: TypeAlias = Annotated[
    Path | None, typer.Option(help="File of an earlier --save, instead of a running network.")
]
Save: TypeAlias = Annotated[Path | None, typer.Option(help="File for the snapshot, as JSON.")]
LeastGain: TypeAlias = Annotated[
    str,
    typer.Option(
        help="Least gain, as 10%; the exit code is 1 if no change gains as much, or not more"
        " than the error of the simulation.",
        show_default="none",
    ),
]
SampleS: TypeAlias = Annotated[
    float, typer.Option(min=1, max=3_600, help="Seconds of publications that are sampled.")
]
Windows: TypeAlias = Annotated[
    int,
    typer.Option(min=2, max=100, help="Load windows that are read before it, and after it."),
]
SettleS: TypeAlias = Annotated[
    float, typer.Option(min=0, help="Virtual seconds that policies have to move clients.")
]
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the simulation.")]
Picture: TypeAlias = Annotated[
    Path | None, typer.Option(help="File for a picture, .svg or .png; needs the extra lab.")
]


def whatif(
    where: Where = None,
    change: Changes = None,
    snapshot: SnapshotFile = None,
    save: Save = None,
    require_gain: LeastGain = "",
    gain_of: GainOf = "messages",
    sample_s: SampleS = 10.0,
    windows: Windows = 2,
    settle_s: SettleS = 240.0,
    seed: Seed = 1,
    picture: Picture = None,
    json: Json = False,
    secret: Secret = "",
) -> None:
    """Simulate the running network with a change: loads, hops, delay, messages, before and after.

    Beside them stands the error that the simulation has on the unchanged network.  Nothing is
    changed.
    """
    changes = [parsed(text) for text in change or ()]
    required = percentage(require_gain) if require_gain else None
    check_picture(picture)
    if snapshot is not None:
        if where:
            raise UsageError("name a running network or --snapshot FILE, not both")
        network = read_snapshot(snapshot)
    else:
        times = SnapshotTimes(sample_s=sample_s, windows=windows)
        network = live_snapshot(where or [LISTEN], times, secret)
    if save is not None:
        save_snapshot(network, save)
    options = RehearsalOptions(settle_s=settle_s, seed=seed)
    report = rehearse(network, changes, objective=gain_of, options=options)
    show(report, json=json, picture=picture)
    if required is not None and not is_any_enough(report, required):
        raise typer.Exit(code=1)


def parsed(text: str) -> RehearsedChange:
    def links(file: str) -> Links:
        return links_of(Path(file), ())

    return read_change(text, read_plan=lambda file: read_plan(Path(file)), read_links=links)


def check_picture(path: Path | None) -> None:
    if path is not None and path.suffix not in PICTURES:
        raise UsageError(f"{path}: a picture is a file that ends in .svg or .png")


def show(report: RehearsalReport, *, json: bool, picture: Path | None) -> None:
    if json:
        typer.echo(msgspec.json.encode(report))
    else:
        print_report(report, console())
    if picture is not None:
        with needs("lab", "a picture"):
            from godwit.cli.whatif_picture import draw_report  # noqa: PLC0415  Matplotlib.
        draw_report(report, picture)
