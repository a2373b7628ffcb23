"""How `bad-prototype` is run: BS1 with one scheme, in virtual time or with real processes.

A case is `{"driver": "simulated", "placement": "nearest", "scheme": "ldm", "alpha": 0.05, "users":
400, "pace": 1.0, "minutes": 30}`.  At pace 5 everything happens five times as often, in a fifth of
the time; only the walking speed is unchanged.
"""

from __future__ import annotations

from pathlib import Path

import uvloop
from rich.console import Console

from godwit.config import changed
from godwit.coordinator.settings import CoordinatorSettings
from godwit.demos.emergencies.emergencies_demo import demonstrate
from godwit.demos.emergencies.emergency_processes import HOLD_S, MOVES_PER_S, REPORT_S
from godwit.demos.emergencies.scenario import EmergencyScenario
from godwit.errors import GodwitError
from godwit.experiments.bad_prototype.run_notes import Notes
from godwit.experiments.bad_prototype.virtual_rounds import Prototype
from godwit.lab.declaration import Case
from godwit.policies.staged.initial import Placement
from godwit.policies.staged.planning import Strategy
from godwit.trace.writer import TraceWriter
from godwit.workloads.emergencies import DURATION_S, REPORTS, SUBSCRIBED_BY_S

BROKERS, USERS = 5, 400
#: For USERS at pace 1, in bytes per second.
BETA = 140e3
GAMMA, NEVER = 0.5, 1e9
NONE, LDM, SDM, LDM_GSH, SDM_GSH = "none", "ldm", "sdm", "ldm+gsh", "sdm+gsh"


class FaultyRunError(GodwitError):
    """The deliveries of a live run are wrong."""


def is_live(case: Case) -> bool:
    return case["driver"] == "live"


def scenario_of(case: Case, seed: int) -> EmergencyScenario:
    pace, users, scheme = float(case["pace"]), int(case["users"]), str(case["scheme"])
    return EmergencyScenario(
        users=users,
        brokers=BROKERS,
        pace=pace,
        seconds=(60.0 * float(case["minutes"]) - SUBSCRIBED_BY_S) / pace,
        reports_per_s=REPORTS / DURATION_S * pace,
        placement=str(case["placement"]),
        strategy=SDM if scheme.startswith(SDM) else LDM,
        alpha=float(case["alpha"]),
        beta=BETA * pace * users / USERS,
        gamma=GAMMA if scheme.endswith("gsh") else NEVER,
        is_balanced=scheme != NONE,
        seed=seed,
    )


def settings_of(scenario: EmergencyScenario) -> CoordinatorSettings:
    """The settings of the live coordinator; at the paper's pace, its defaults."""
    settings = CoordinatorSettings(
        placement=Placement(scenario.placement),
        strategy=Strategy(scenario.strategy),
        alpha=scenario.alpha,
        beta=scenario.beta,
        gamma=scenario.gamma,
        dry_run=not scenario.is_balanced,
    )
    if scenario.pace == 1.0:
        return settings
    return changed(settings, report_s=REPORT_S, hold_s=HOLD_S, moves_per_s=MOVES_PER_S)


def run(case: Case, seed: int, folder: Path) -> None:
    scenario = scenario_of(case, seed)
    with TraceWriter(folder) as writer:
        notes = Notes(writer, pace=scenario.pace)
        if is_live(case):
            _play_live(scenario, notes)
        else:
            Prototype(scenario, settings_of(scenario), notes).play()


def _play_live(scenario: EmergencyScenario, notes: Notes) -> None:
    played, verdict = uvloop.run(demonstrate(Console(quiet=True), scenario))
    if verdict.faults or not verdict.rows:
        first = verdict.faults[0] if verdict.faults else "no row was delivered"
        raise FaultyRunError(f"{len(verdict.faults)} faults, the first: {first}")
    for sample in played.samples:
        if sample.at_s <= scenario.duration_s:
            notes.look(sample.at_s, sample.brokers, sample.fe, sample.be)
    notes.close(played.last_moves, started_s=played.started_s)
