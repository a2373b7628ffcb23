"""`godwit network apply`: the shape of a network file, or of a plan, on the running network."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import msgspec
import typer
import uvloop

from godwit.api.network_api import ChangeKind
from godwit.cli.change_options import WAITING, ChangeOptions, with_change_options
from godwit.cli.gain_gate import GainOf, Rehearse, RequireGain, rehearse_before
from godwit.cli.network_commands import all_brokers, change_network, network
from godwit.errors import UsageError

Links: TypeAlias = list[tuple[str, str]]


class PlannedTree(msgspec.Struct):
    """What is read of a plan of `godwit croc plan --json`."""

    links: Links
    root: str


@network.command()
@with_change_options(*WAITING)
def apply(
    options: ChangeOptions,
    file: Annotated[
        Path,
        typer.Argument(
            help="A network file (TOML), or a plan (JSON) of `godwit croc plan --json`."
        ),
    ],
    rehearse: Rehearse = False,
    require_gain: RequireGain = "",
    gain_of: GainOf = "messages",
) -> None:
    """Give the running network the links and the overlay of a file, all at once, without loss.

    Brokers that a plan does not need stay linked to its root, as leaves without work: drain them,
    and let them leave.  Write the new links into the network file as well, for the next start.
    """
    brokers = uvloop.run(all_brokers(options.at, options.secret))
    links = links_of(file, brokers)
    overlay, settings = overlay_of(file)
    if rehearse or require_gain:
        from godwit.rehearsal.changes_to_try import RehearsedChange  # noqa: PLC0415  Simulator.

        change = RehearsedChange(text=str(file), links=links)
        rehearse_before(change, options.at, options.secret, require_gain, gain_of)
    facts = {"links": links, "overlay": overlay, "settings": settings}
    change_network(options.request(ChangeKind.RESHAPE, brokers, **facts), options)


def links_of(file: Path, brokers: Collection[str]) -> Links:
    """The links of a tree of all brokers."""
    if file.suffix == ".json":
        return _planned(file, brokers)
    from godwit.runtime.settings import load_network  # noqa: PLC0415  As with HTTP.

    return sorted(load_network(file).topology.links)


def overlay_of(file: Path) -> tuple[str, dict[str, Any]]:
    """The overlay of a network file, and its settings; a plan keeps the one in use."""
    if file.suffix == ".json":
        return "", {}
    from godwit.runtime.settings import load_network  # noqa: PLC0415  As with HTTP.

    network = load_network(file)
    return network.overlay, network.overlay_settings


def _planned(file: Path, brokers: Collection[str]) -> Links:
    try:
        tree = msgspec.json.decode(file.read_bytes(), type=PlannedTree)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except msgspec.DecodeError as error:
        raise UsageError(f"{file} is not a plan of `godwit croc plan --json`: {error}") from None
    used = {tree.root, *(broker for link in tree.links for broker in link)}
    return [*tree.links, *((tree.root, broker) for broker in sorted(set(brokers) - used))]
