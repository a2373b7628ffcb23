"""Which changes of the network are possible now, and why others are not.  Pure.

A refusal says what is wrong and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from godwit.api.network_api import Authority, BrokerAccount, ChangeKind, ChangeRequest
from godwit.coordinator.cluster_membership import present_clusters
from godwit.errors import UsageError
from godwit.http.errors import RestError
from godwit.migration.reshaping import shape_of
from godwit.overlay import overlay
from godwit.overlay.mesh.mesh_settings import mesh_settings_of
from godwit.overlay.topology import topology

NOT_FOUND, CONFLICT, WRONG = 404, 409, 400


@dataclass(frozen=True)
class Circumstances:
    """What the coordinator knows when a change is asked for."""

    authority: Authority
    known: Mapping[str, str | None]
    """Brokers and their HTTP addresses."""

    live: frozenset[str] = frozenset()
    accounts: Mapping[str, BrokerAccount] = field(default_factory=dict)
    """What brokers say about themselves, of those that have said something."""

    room: int = 0
    """Clients that the other brokers, those that may take them, have room for."""

    links: frozenset[tuple[str, str]] = frozenset()
    """The present tree; empty if a link is not up."""

    startable: frozenset[str] = frozenset()
    """Brokers that do not run, and that a supervisor starts when they are needed."""


def check_change(request: ChangeRequest, now: Circumstances) -> None:
    """Raise RestError if the change is not possible."""
    _check_authority(request, now)
    if len(set(request.brokers)) != len(request.brokers):
        raise RestError(WRONG, "a broker is named twice", where="brokers")
    for name in request.to:
        _check_known(name, now, where="to")
        if name in request.brokers:
            raise RestError(WRONG, f"the clients of {name} cannot move to {name}", where="to")
    if request.kind is ChangeKind.JOIN:
        _check_join(request, now)
        return
    if request.kind is ChangeKind.ALLOCATE:
        return  # The rest is in allocating.py.
    if request.clients or request.outputs or request.keeps:
        raise RestError(WRONG, "only a plan says where clients go", where="clients")
    if request.link is not None:
        raise RestError(WRONG, "only a broker that joins is given a link", where="link")
    if request.links and request.kind is not ChangeKind.RESHAPE:
        raise RestError(WRONG, "only another shape has links", where="links")
    for name in request.brokers:
        _check_known(name, now, where="brokers")
        check_can_be_ordered(name, now)
    match request.kind:
        case ChangeKind.LEAVE:
            for name in request.brokers:
                _check_leaf(name, now)
            _check_single(request)
            _check_room(request, now)
        case ChangeKind.DRAIN:
            _check_single(request)
            _check_room(request, now)
        case ChangeKind.RESTART:
            _check_supervised(request, now)
            if request.drains:
                _check_room(request, now)
        case ChangeKind.RESHAPE:
            _check_tree(request, now)
        case ChangeKind.UNDRAIN | ChangeKind.ALLOCATE:
            pass


def _check_tree(request: ChangeRequest, now: Circumstances) -> None:
    missing = sorted(now.live - set(request.brokers))
    if missing:
        raise RestError(
            WRONG,
            f"the new links leave out {', '.join(missing)}: link every broker, or let it leave"
            " first (godwit network leave)",
            where="links",
        )
    for link in request.links:
        for end in link:
            _check_known(end, now, where="links")
    if "clusters" not in request.settings:
        check_links(request.brokers, request.links)
    if request.overlay:
        _check_overlay(request)


def _check_overlay(request: ChangeRequest) -> None:
    """Raise RestError if the links, or the settings, are not those of the overlay."""
    try:
        overlay(request.overlay)
        if request.overlay == "mesh":
            mesh_settings_of(request.settings)
        target = topology(request.brokers, request.links)
        shape_of(target, 1, overlay=request.overlay, settings=request.settings)
    except UsageError as error:
        raise RestError(WRONG, str(error), where="overlay") from None


def check_links(brokers: Sequence[str], links: Sequence[tuple[str, str]]) -> None:
    """Raise RestError if these are not the links of a tree of these brokers."""
    for a, b in links:
        if a == b:
            raise RestError(WRONG, f"broker {a} is linked to itself", where="links")
    strange = sorted({end for link in links for end in link} - set(brokers))
    if strange or not topology(brokers, links).is_tree:
        raise RestError(
            WRONG,
            f"{len(links)} links between {len(brokers)} brokers are not a tree:"
            " link all brokers, without a cycle",
            where="links",
        )


def _check_authority(request: ChangeRequest, now: Circumstances) -> None:
    seen = [a.authority for a in now.accounts.values() if a.authority is not None]
    for authority in seen:
        if now.authority.yields_to(authority) and not request.take_over:
            raise RestError(
                CONFLICT,
                f"brokers obey another coordinator: its authority is {authority}, and that of this"
                f" one is {now.authority}; if the other one is gone, repeat with --take-over",
                where="take_over",
            )


def _check_known(name: str, now: Circumstances, *, where: str) -> None:
    if name not in now.known:
        there = ", ".join(sorted(now.known)) or "none"
        raise RestError(NOT_FOUND, f"there is no broker {name!r}; there are: {there}", where=where)


def check_can_be_ordered(name: str, now: Circumstances) -> None:
    if now.known[name] is None:
        raise RestError(
            CONFLICT,
            f"broker {name} has no HTTP address, so it takes no orders: set `http` in its network"
            " file, and restart it",
            where="brokers",
        )
    if name not in now.live or name not in now.accounts:
        raise RestError(CONFLICT, f"broker {name} is silent: see whether it runs", where="brokers")


def _check_single(request: ChangeRequest) -> None:
    if len(request.brokers) > 1:
        raise RestError(WRONG, "name one broker: they are drained one by one", where="brokers")


def _check_leaf(name: str, now: Circumstances) -> None:
    links = sorted(link.neighbour for link in now.accounts[name].links)
    if now.accounts[name].clusters is not None:
        if len(now.live) > 1:
            return  # It is moved aside before it goes.
        raise RestError(CONFLICT, f"broker {name} is the last one", where="brokers")
    if len(links) > 1:
        raise RestError(
            CONFLICT,
            f"broker {name} is not a leaf: it links {', '.join(links)}, which would be cut off from"
            f" each other. Let the brokers behind it leave first, or keep {name} drained"
            f" (godwit network drain {name}): it then only forwards",
            where="brokers",
        )


def _check_room(request: ChangeRequest, now: Circumstances) -> None:
    clients = {
        name: now.accounts[name].clients + now.accounts[name].clients_away
        for name in request.brokers
    }
    name = max(clients, key=lambda each: clients[each])
    if clients[name] > now.room:
        hint = " Or restart without: --no-drain" if request.kind is ChangeKind.RESTART else ""
        raise RestError(
            CONFLICT,
            f"the {clients[name]} clients of {name} do not fit: the other brokers that serve"
            f" clients have room for {now.room}; let a broker join, or raise `connections_max`."
            f"{hint}",
            where="brokers",
        )


def _check_supervised(request: ChangeRequest, now: Circumstances) -> None:
    alone = [name for name in request.brokers if not now.accounts[name].is_supervised]
    if alone:
        raise RestError(
            CONFLICT,
            f"nothing is known to start {', '.join(alone)} again: run brokers by"
            " `godwit up --restart`, or under a supervisor that restarts them at once, and with"
            " --supervised (or GODWIT_SUPERVISED=1)",
            where="brokers",
        )


def _check_join(request: ChangeRequest, now: Circumstances) -> None:
    _check_single(request)
    (name,) = request.brokers
    if name in now.live:
        raise RestError(CONFLICT, f"there is a broker {name} already", where="brokers")
    if request.link is None:
        raise RestError(WRONG, "say which broker it links to: --link", where="link")
    _check_known(request.link, now, where="link")
    if request.link not in now.live:
        raise RestError(CONFLICT, f"broker {request.link} is silent", where="link")
    clusters = present_clusters(now.accounts)
    if clusters is not None:
        if silent := sorted(set(clusters.brokers) - now.live):
            raise RestError(CONFLICT, f"brokers are silent: {', '.join(silent)}", where="brokers")
        return
    has_epochs = any(account.epoch for account in now.accounts.values())
    if has_epochs and not topology(sorted(now.live), now.links).is_tree:
        text = "a link of the network is not up, or a broker is not part of it: network show"
        raise RestError(CONFLICT, text, where="link")
