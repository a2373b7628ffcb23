"""Rehearses changes of a network: simulates it as it is and after each change, and compares.

W1  The unchanged network is simulated by the same steps as a changed one; its error is beside
    every result.
W2  A gain that is not larger than the error of its figure is not a gain.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from math import inf
from statistics import fmean
from typing import Any

import msgspec

from godwit.errors import UsageError
from godwit.rehearsal.calibration import (
    NO_LATENCY,
    Calibration,
    copy_costs,
    latency,
    measured_delays,
    profile_rates,
)
from godwit.rehearsal.changes_to_try import (
    ChangedNetwork,
    RehearsedChange,
    changed,
    unchanged,
)
from godwit.rehearsal.network_figures import (
    NetworkFigures,
    Objective,
    delay_figures,
    differences,
    figures_of,
    measured_figures,
    relative,
)
from godwit.rehearsal.network_snapshot import LoadReading, NetworkSnapshot, SnapshotClient
from godwit.rehearsal.rehearsed_network import RehearsedNetwork, RunCounts, simulated
from godwit.simulation.resources import LinkOptions
from godwit.simulation.simulator import no_modules

#: From this use of its output on, copies wait in a broker that limits it; below it, a burst is
#: let through (runtime/output_limiter.py).
LIMITING = 0.9
#: How long policies have in the simulation, and soft links.
SETTLE_S, SOFT_LINKS_S = 240.0, 60.0
#: Refusals that are shown.
NOTES_MAX = 5


class RehearsalOptions(msgspec.Struct, frozen=True, kw_only=True):
    measured_s: float = 20.0
    """Virtual time that is measured."""

    settle_s: float = SETTLE_S
    """Virtual time that policies have before."""

    seed: int = 1
    check: bool = False
    """Assert the invariants of brokers after every step."""


class RehearsedOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """A change, and the network after it."""

    change: str
    after: NetworkFigures
    difference: dict[str, float | None]
    """Of each figure, to the unchanged network, both simulated."""

    moves: int
    """Clients that have to move, or that policies move."""

    new_links: int
    gain: float | None
    """How much less of the objective; 0.1 is 10%."""

    is_certain: bool
    """The gain is larger than the error of the simulation."""

    notes: list[str] = []


class RehearsalReport(msgspec.Struct, frozen=True, kw_only=True):
    objective: Objective
    measured: NetworkFigures
    before: NetworkFigures
    """The unchanged network, simulated."""

    error: dict[str, float | None]
    """Of each figure: `before` against `measured`."""

    is_independent: bool
    """It was measured at another time than what the simulation was set by."""

    outcomes: list[RehearsedOutcome]
    """The largest gain first."""

    notes: list[str] = []


@dataclass(frozen=True, slots=True)
class _Prediction:
    figures: NetworkFigures
    moved: set[str]
    """By a policy."""
    counts: RunCounts


def rehearse(
    snapshot: NetworkSnapshot,
    changes: Iterable[RehearsedChange],
    *,
    objective: Objective = "messages",
    options: RehearsalOptions | None = None,
) -> RehearsalReport:
    options = options or RehearsalOptions()
    if not any(client.advertisements for client in snapshot.clients):
        raise UsageError("nothing is published in this network: there is nothing to rehearse")
    calibration = _calibrated(snapshot, options)
    plain = _predicted(snapshot, unchanged(snapshot), calibration, options, is_changed=False)
    before = plain.figures
    measured = measured_figures(snapshot.second or snapshot.first)
    error = differences(before, measured)
    off = relative(before.of(objective), measured.of(objective))
    bound = inf if off is None else abs(off)
    outcomes = []
    for change in changes:
        network = changed(snapshot, change)
        found = _predicted(snapshot, network, calibration, options, is_changed=True)
        less = relative(found.figures.of(objective), before.of(objective))
        gain = None if less is None else -less
        outcomes.append(
            RehearsedOutcome(
                change=change.text,
                after=found.figures,
                difference=differences(found.figures, before),
                moves=network.moves + len(found.moved),
                new_links=network.new_links,
                gain=gain,
                is_certain=gain is not None and gain > bound,
                notes=[
                    *network.notes,
                    *_overloads(found.figures),
                    *found.counts.refused[:NOTES_MAX],
                ],
            )
        )
    outcomes.sort(key=lambda each: -(each.gain if each.gain is not None else -1e9))
    return RehearsalReport(
        objective=objective,
        measured=measured,
        before=before,
        error=error,
        is_independent=snapshot.second is not None,
        outcomes=outcomes,
        notes=list(snapshot.notes),
    )


def is_enough(outcome: RehearsedOutcome, required: float) -> bool:
    """Whether a change gains at least so much, and more than the error (W2)."""
    return outcome.gain is not None and outcome.gain >= required and outcome.is_certain


def _overloads(figures: NetworkFigures) -> list[str]:
    return [
        f"{name} is overloaded: {max(each.input_utilisation, each.output_utilisation):.0%}"
        for name, each in sorted(figures.brokers.items())
        if max(each.input_utilisation, each.output_utilisation) >= 1.0
    ]


# -- calibration -------------------------------------------------------------------------------


def _calibrated(snapshot: NetworkSnapshot, options: RehearsalOptions) -> Calibration:
    """One run without latency shows what copies are made, and what is left of the delay."""
    delays_s, rates = measured_delays(snapshot), profile_rates(snapshot)
    network = _network(unchanged(snapshot), snapshot, delays_s, NO_LATENCY, rates, options)
    counts = simulated(network, check=options.check)
    deliveries = len(counts.delays_s)
    hops = counts.hops / deliveries if deliveries else 0.0
    return Calibration(
        measured_s=delays_s,
        costs=copy_costs(delays_s, _copies(counts), dict(counts.handled)),
        link=latency(snapshot.first.delay_s, delay_figures(counts.delays_s), hops),
        rates=rates,
    )


def _copies(counts: RunCounts) -> dict[str, float]:
    """For each message."""
    return {
        broker: counts.copies[broker] / handled
        for broker, handled in counts.handled.items()
        if handled
    }


# -- prediction --------------------------------------------------------------------------------


def _predicted(
    snapshot: NetworkSnapshot,
    network: ChangedNetwork,
    calibration: Calibration,
    options: RehearsalOptions,
    *,
    is_changed: bool,
) -> _Prediction:
    """Two runs: the first shows copies and outputs, the second has the delays that follow.

    A policy has a run before, which shows where it moves clients: there every output takes the time
    of its bandwidth, because that is what policies measure.
    """
    mean_s = calibration.costs.mean_s
    delays_s = {name: calibration.measured_s.get(name, mean_s) for name in network.topology.brokers}
    rates = {
        client.name: calibration.rates.get(client.name, 1.0) * network.traffic
        for client in network.clients
    }

    def run(**facts: Any) -> RunCounts:
        return simulated(
            replace(
                _network(network, snapshot, delays_s, calibration.link, rates, options), **facts
            ),
            check=options.check,
        )

    moved: set[str] = set()
    if network.policy is not None:
        settled = run(
            modules=network.policy,
            settle_s=options.settle_s,
            limited_bytes_s=_bandwidths(snapshot),
            measured_s=1.0,
        )
        moved = settled.moved
        network = replace(network, clients=_at(network.clients, settled.homes))
    counts = run()
    if is_changed:
        copies = _copies(counts)
        delays_s |= {
            name: calibration.costs.matching_delay_s(name, copies[name]) for name in copies
        }
    limited = _limited(snapshot, counts, options)
    if limited or is_changed:
        counts = run(limited_bytes_s=limited)
    return _Prediction(_figures(snapshot, network, counts, delays_s, options), moved, counts)


def _at(clients: Iterable[SnapshotClient], homes: Mapping[str, str]) -> tuple[SnapshotClient, ...]:
    return tuple(msgspec.structs.replace(each, broker=homes[each.name]) for each in clients)


def _bandwidths(snapshot: NetworkSnapshot) -> dict[str, float]:
    return {each.id: each.output_bandwidth_bytes_s for each in snapshot.brokers}


def _limited(
    snapshot: NetworkSnapshot, counts: RunCounts, options: RehearsalOptions
) -> dict[str, float]:
    bandwidths = _bandwidths(snapshot)
    return {
        each.id: bandwidths[each.id]
        for each in snapshot.brokers
        if each.limits_output
        and counts.bytes_out[each.id] / options.measured_s > LIMITING * bandwidths[each.id]
    }


def _network(
    network: ChangedNetwork,
    snapshot: NetworkSnapshot,
    delays_s: Mapping[str, float],
    link: LinkOptions,
    rates: Mapping[str, float],
    options: RehearsalOptions,
) -> RehearsedNetwork:
    return RehearsedNetwork(
        topology=network.topology,
        clients=network.clients,
        sample_s=snapshot.sample_s,
        overlay=network.overlay,
        overlay_settings=network.overlay_settings,
        modules=network.soft_links or no_modules,
        matching_delay_s=delays_s,
        link=link,
        rates=rates,
        settle_s=0.0 if network.soft_links is None else min(options.settle_s, SOFT_LINKS_S),
        measured_s=options.measured_s,
        seed=options.seed,
    )


def _figures(
    snapshot: NetworkSnapshot,
    network: ChangedNetwork,
    counts: RunCounts,
    delays_s: Mapping[str, float],
    options: RehearsalOptions,
) -> NetworkFigures:
    period_s = options.measured_s
    bandwidths = _bandwidths(snapshot)
    typical = fmean(bandwidths.values())
    readings = {}
    for name in network.topology.brokers:
        per_s = counts.handled[name] / period_s
        bytes_s = counts.bytes_out[name] / period_s
        readings[name] = LoadReading(
            publications_per_s=per_s,
            matching_delay_s=delays_s[name],
            input_utilisation=per_s * delays_s[name],
            output_utilisation=bytes_s / bandwidths.get(name, typical),
            output_bytes_per_s=bytes_s,
        )
    deliveries = len(counts.delays_s)
    return figures_of(
        readings,
        deliveries_per_s=deliveries / period_s,
        hops=counts.hops / deliveries if deliveries else 0.0,
        delay_s=delay_figures(counts.delays_s),
    )
