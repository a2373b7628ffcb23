"""What the brokers and the coordinator say, put together as the rows of the dashboard.  Pure.

The load of a broker is the higher one of its input and output utilisation.  The balance is that of
brokers that serve.  Of many brokers only the most loaded ones, and those with trouble, are shown;
totals are of all.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, pstdev

from msgspec.structs import replace

from godwit.api.balancing_api import BalancingAccount
from godwit.api.dashboard_api import (
    BrokerRow,
    LinkRow,
    NetworkBalance,
    NetworkTotals,
    Overview,
    SharingCounts,
)
from godwit.api.network_api import BrokerAccount, NetworkBroker, NetworkChange, NetworkView
from godwit.api.network_views import Known, network_view

#: Brokers on the page.
SHOWN_MAX = 600
SERVING = "serving"
SOFT = "soft"


@dataclass(slots=True)
class NetworkFindings:
    """What is known of a network."""

    known: dict[str, Known] = field(default_factory=dict)
    balancing: dict[str, BalancingAccount] = field(default_factory=dict)
    joining: set[str] = field(default_factory=set)
    change: NetworkChange | None = None
    deliveries_per_s: float = 0.0
    has_coordinator: bool = False
    has_datacluster: bool = False
    troubles: list[str] = field(default_factory=list)
    sharing: SharingCounts | None = None


def overview_of(gathered: NetworkFindings, at_s: float) -> Overview:
    view = network_view(gathered.known, joining=gathered.joining, change=gathered.change)
    rows = [_row(each, gathered.balancing.get(each.broker)) for each in view.brokers]
    shown = shown_rows(rows)
    names = {row.broker for row in shown}
    return Overview(
        at_s=at_s,
        totals=network_totals(rows, gathered.deliveries_per_s),
        balance=balance_of(rows, list(gathered.balancing.values())),
        brokers=shown,
        left_out=len(rows) - len(shown),
        links=[link for link in _links(view) if {link.one, link.other} <= names],
        missing=view.missing,
        change=None if gathered.change is None else without_names(gathered.change),
        has_coordinator=gathered.has_coordinator,
        has_datacluster=gathered.has_datacluster,
        troubles=gathered.troubles,
        sharing=gathered.sharing,
    )


def shown_rows(rows: Sequence[BrokerRow]) -> list[BrokerRow]:
    """In the order of their names; those with trouble, then the most loaded, if there are many."""
    first = sorted(rows, key=lambda row: (row.state == SERVING, -row.load))[:SHOWN_MAX]
    return sorted(first, key=lambda row: _natural(row.broker))


def _natural(name: str) -> tuple[str, int, str]:
    """B2 before B10."""
    digits = len(name) - len(name.rstrip("0123456789"))
    stem = name[: len(name) - digits]
    return stem, int(name[len(stem) :] or 0), name


def _row(each: NetworkBroker, balancing: BalancingAccount | None) -> BrokerRow:
    account = each.account
    if account is None:
        return BrokerRow(broker=each.broker, state=each.state)
    return BrokerRow(
        broker=each.broker,
        state=each.state,
        because=account.because,
        load=_load(account) if each.state != "silent" else 0.0,
        input_utilisation=account.input_utilisation,
        output_utilisation=account.output_utilisation,
        matching_delay_s=account.matching_delay_s,
        publications_per_s=account.publications_per_s,
        input_bytes_per_s=account.input_bytes_per_s,
        output_bytes_per_s=account.output_bytes_per_s,
        clients=account.clients,
        clients_away=account.clients_away,
        publishers=account.publishers,
        subscriptions=account.subscriptions,
        advertisements=account.advertisements,
        queue_bytes=account.queue_bytes,
        deliveries=account.deliveries,
        dropped=account.dropped,
        epoch=account.epoch,
        url=account.url,
        http=account.http or "",
        role="" if balancing is None or balancing.role == "none" else balancing.role,
        balancing="" if balancing is None else balancing.status or "",
    )


def _load(account: BrokerAccount) -> float:
    return max(account.input_utilisation or 0.0, account.output_utilisation or 0.0)


def network_totals(rows: Sequence[BrokerRow], deliveries_per_s: float) -> NetworkTotals:
    live = [row for row in rows if row.state != "silent"]
    return NetworkTotals(
        brokers=len(rows),
        serving=sum(row.state == SERVING for row in rows),
        clients=sum(row.clients for row in live),
        publishers=sum(row.publishers for row in live),
        publications_per_s=sum(row.publications_per_s for row in live),
        deliveries_per_s=deliveries_per_s,
        output_bytes_per_s=sum(row.output_bytes_per_s for row in live),
        queue_bytes=sum(row.queue_bytes for row in live),
        dropped=sum(row.dropped for row in live),
    )


def balance_of(rows: Iterable[BrokerRow], accounts: Sequence[BalancingAccount]) -> NetworkBalance:
    """Of the edge brokers if brokers balance, because only they have subscribers; else of all."""
    serving = [row for row in rows if row.state == SERVING]
    loads = [row.load for row in serving if row.role == "edge"] or [row.load for row in serving]
    mean = fmean(loads) if loads else 0.0
    bounds = [
        max(each.lower_bounds.input or 0.0, each.lower_bounds.output or 0.0)
        for each in accounts
        if each.lower_bounds is not None
    ]
    return NetworkBalance(
        mean=mean,
        maximum=max(loads, default=0.0),
        cov=pstdev(loads) / mean if mean > 0 else 0.0,
        lower_bound=max(bounds, default=None),
        is_balancing=bool(accounts),
        is_paused=any(each.is_paused for each in accounts),
        is_dry_run=any(each.dry_run for each in accounts),
        sessions=sum(each.session is not None for each in accounts),
        obstacles=[
            f"{each.broker}: {each.cannot_be_balanced}"
            for each in accounts
            if each.cannot_be_balanced is not None
        ],
    )


def _links(view: NetworkView) -> list[LinkRow]:
    """Those that brokers route over, and the soft ones beside them."""
    sent: dict[tuple[str, str], float] = {}
    kinds: dict[tuple[str, str], str] = {}
    soft: set[tuple[str, str]] = set()
    for each in view.brokers:
        account = each.account if each.state != "silent" else None
        for link in [] if account is None else [*account.links, *account.soft_links]:
            one, other = sorted((each.broker, link.neighbour))
            sent[one, other] = sent.get((one, other), 0.0) + link.bytes_per_s
            kinds[one, other] = link.kind
            if link.kind == SOFT:
                soft.add((one, other))
    statuses = {(link.one, link.other): link.status for link in view.links}
    return [
        LinkRow(
            one=ends[0],
            other=ends[1],
            status=statuses.get(ends, "up"),
            bytes_per_s=sent.get(ends, 0.0) if statuses.get(ends, "up") == "up" else 0.0,
            kind=kinds.get(ends, "primary"),
        )
        for ends in sorted({*statuses, *soft})
    ]


def without_names(change: NetworkChange) -> NetworkChange:
    """A change without the names of its clients, which may be many."""
    request = replace(change.request, clients={}, outputs={}, links=[])
    steps = [replace(step, went={}, stayed=_some(step.stayed)) for step in change.steps]
    return replace(change, request=request, steps=steps)


def _some(names: Mapping[str, str]) -> dict[str, str]:
    return dict(list(names.items())[:20])
