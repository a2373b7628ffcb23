"""How the experiments about the mesh are run: a strategy and a fanout in a prepared network.

A case is `{"brokers": 120, "dataset": "DT1", "subscriptions": 1200, "rate": 3600, "fanout": 35,
"strategy": "S2"}`.  S0 is the tree: no module manages links, and no loads are exchanged.
"""

from __future__ import annotations

from pathlib import Path

from godwit.broker.routing import in_use
from godwit.experiments.mesh.datasets import DELTA
from godwit.experiments.mesh.prepared import begins_s, prepared
from godwit.lab.declaration import Case
from godwit.lab.metrics.stages import Span
from godwit.overlay.mesh.mesh_routing import MeshRouting
from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.overlay.mesh.strategies import ForwardingStrategy
from godwit.policies import soft_links
from godwit.simulation.simulator import Simulator

PERIOD_S = 10.0
#: Time in which soft links are opened; not measured.
WARM_UP_S = 60.0
MEASURED_S = 120.0


def settings_of(case: Case) -> MeshSettings:
    return MeshSettings(
        delta=DELTA,
        strategy=ForwardingStrategy(case["strategy"]),
        fanout=int(case["fanout"]),
        period_s=PERIOD_S,
    )


def span_of(case: Case) -> Span:
    """The measured time."""
    from_s = begins_s(case) + WARM_UP_S
    return Span(from_s, from_s + MEASURED_S)


def apply_settings(simulator: Simulator, settings: MeshSettings) -> None:
    """From now on brokers forward, and open soft links, by these settings."""
    for node in simulator.brokers.values():
        mesh = in_use(node.broker.routing)
        assert isinstance(mesh, MeshRouting), "a prepared network is a mesh"
        mesh.change_settings(settings)
    if settings.strategy is not ForwardingStrategy.S0:
        simulator.install(soft_links.modules(settings))


def run(case: Case, seed: int, folder: Path) -> None:
    network = prepared(case, seed, publishing_s=WARM_UP_S + MEASURED_S)
    settings = settings_of(case)
    network.go_on(
        lambda simulator: apply_settings(simulator, settings),
        folder,
        until_s=span_of(case).end_s,
        checked=True,
    )
