"""HTTP operations of a broker that balances its load (policies/offload), for operators.

    GET  /balancing                         -> role, status, loads, session, decisions
    POST /balancing  {"command": "pause"}   -> the same, afterwards

A broker whose network file has no `[balancing]` answers 404.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from godwit.http.operations import Nothing, Operation

#: A load that JSON cannot write, because it is infinite, is null.
Ratio = float | None

Command = Literal["pause", "resume", "abort", "dry-run on", "dry-run off"]


class BalancingCommand(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`pause`, `resume`: sessions do not begin, or do again.  `abort`: the present one ends.

    `dry-run on`, `dry-run off`: decide and report, but ask no client to move, or do again.
    """

    command: Command


class OwnLoad(msgspec.Struct, frozen=True, kw_only=True):
    """Of an edge broker its own, of a cluster-head the mean of its edge brokers."""

    input: Ratio
    """Ir: the share of its time that the broker needs for what arrives."""

    match_s: Ratio
    """d: the time for one message."""

    output: Ratio
    """Or: the share of its output bandwidth that is used, or asked for."""

    memory: Ratio = 0.0
    publications_per_s: float = 0.0
    subscriptions: int = 0


class KnownLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What another broker, or a cluster, has published last."""

    broker: str
    cluster: str
    status: str
    input: Ratio
    match_s: Ratio
    output: Ratio


class LeastMaximum(msgspec.Struct, frozen=True, kw_only=True):
    """What no assignment of the subscribers of the known brokers can go below."""

    input: Ratio
    match_s: Ratio
    output: Ratio


class SessionView(msgspec.Struct, frozen=True, kw_only=True):
    """A session that is going on."""

    session: str
    partner: str
    phase: str
    metric: str | None = None
    rounds: int | None = None
    """Detections of a cluster-head so far."""


class DecisionView(msgspec.Struct, frozen=True, kw_only=True):
    """A decision, with the numbers behind it."""

    at_s: float
    action: str
    subject: str
    source: str
    target: str
    reason: dict[str, float | str | None]


class BalancingAccount(msgspec.Struct, frozen=True, kw_only=True):
    """What one broker knows and does."""

    broker: str
    role: str
    """`edge`, `head`, or `none` as long as the broker has no links."""

    cluster: str | None
    """The name of its cluster-head."""

    is_paused: bool
    dry_run: bool
    status: str | None = None
    """OK, N/A, STABILIZING or BUSY; null without a role."""

    load: OwnLoad | None = None
    known: list[KnownLoad] = []
    """Edge brokers that this one knows, or clusters that a cluster-head knows."""

    edges: list[KnownLoad] = []
    """Of a cluster-head: its edge brokers."""

    other_cluster: str | None = None
    """The cluster that a global session is with."""

    session: SessionView | None = None
    sessions: int = 0
    """Since the broker started."""

    requests: int = 0
    """Of a cluster-head: how often edge brokers asked for a global session."""

    lower_bounds: LeastMaximum | None = None
    """Of an edge broker: the least maximum of the loads that it knows, and its own."""

    cannot_be_balanced: str | None = None
    """Of an edge broker: why no session finds anyone to move although loads differ, if so."""

    decisions: list[DecisionView] = []
    """The last ones, oldest first."""


BALANCING = Operation(
    "GET",
    "/balancing",
    Nothing,
    BalancingAccount,
    "What this broker knows and does to balance its load.",
)
COMMAND_BALANCING = Operation(
    "POST",
    "/balancing",
    BalancingCommand,
    BalancingAccount,
    "Pause, resume or abort, or decide without moving anyone; answers as GET does.",
    is_guarded=True,
    is_idempotent=True,
)
