"""The network, put together from what each broker says about itself.  Pure.

A link has two ends, which may see it differently: a broker that is gone still calls it up.  The
status that is further from up counts, and a broker that says nothing has no say.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from godwit.api.network_api import (
    Authority,
    BrokerAccount,
    NetworkBroker,
    NetworkChange,
    NetworkLink,
    NetworkView,
)

#: From the best to the worst.
STATUSES = ("up", "pending", "away", "expected", "given up")


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a broker."""

    account: BrokerAccount | None
    age_s: float | None = None
    """Of the account."""

    is_live: bool = True


def network_view(
    known: Mapping[str, Known],
    *,
    joining: Collection[str] = (),
    change: NetworkChange | None = None,
    authority: Authority | None = None,
) -> NetworkView:
    brokers = [
        NetworkBroker(
            broker=name,
            state=state_of(each, is_joining=name in joining),
            account=each.account,
            age_s=each.age_s,
        )
        for name, each in sorted(known.items())
    ]
    live = [each.account for each in known.values() if each.account and each.is_live]
    silent = [name for name, each in sorted(known.items()) if not each.is_live]
    missing = sorted({text for account in live for text in account.missing})
    return NetworkView(
        brokers=brokers,
        links=_links(live),
        missing=missing or [f"{name} (silent)" for name in silent],
        change=change,
        authority=authority,
    )


def state_of(known: Known, *, is_joining: bool = False) -> str:
    account = known.account
    if not known.is_live:
        return "silent"
    if is_joining:
        return "joining"
    if account is None:
        return "unknown"
    if account.is_draining:
        return "draining"
    return "serving" if account.is_ready else "not ready"


def _links(accounts: Collection[BrokerAccount]) -> list[NetworkLink]:
    found: dict[tuple[str, str], str] = {}
    for account in accounts:
        for link in account.links:
            one, other = sorted((account.broker, link.neighbour))
            found[one, other] = max(found.get((one, other), "up"), link.status, key=_rank)
    return [NetworkLink(*ends, status) for ends, status in sorted(found.items())]


def _rank(status: str) -> int:
    return STATUSES.index(status) if status in STATUSES else len(STATUSES)
