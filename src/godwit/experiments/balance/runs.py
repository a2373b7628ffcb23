"""How the load-balancing experiments are run: a scene, a seed and the settings of the balancer.

Settings are those of table 7.1, except what `settings` of a case names (`SETTINGS`), and those that
the case has by their own names.

A seed has the same clients, which join at the same times and publish the same quotes, with every
algorithm and every setting.  The oracle checks deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random

from godwit.experiments.balance.scenes import clients_of, scene_of
from godwit.experiments.watched import run_watched
from godwit.lab.declaration import Case, Parameter
from godwit.policies import offload
from godwit.policies.offload.settings import BalancingSettings
from godwit.simulation.disturbance import disturb
from godwit.simulation.observers import Observer
from godwit.simulation.playing import play
from godwit.simulation.simulator import Modules, Simulator, no_modules

#: For sessions that are not over when publishing ends.
SETTLING_S = 60.0


#: What differs from table 7.1.
SETTINGS: Mapping[str, Mapping[str, Parameter]] = {
    "default": {},
    "adaptive": {"pie": "adaptive"},
    "frequent": {
        "local_pie_period_s": 10.0, "local_detection_min_s": 7.0, "local_detection_max_s": 14.0,
    },
    "rare": {
        "local_pie_period_s": 90.0, "global_pie_period_s": 90.0,
        "local_detection_min_s": 60.0, "local_detection_max_s": 120.0,
    },
    "only overload": {"local_ratio_trigger": 0.96, "local_delay_trigger": 0.96},
    "close trigger": {"local_ratio_trigger": 0.05, "local_delay_trigger": 0.05},
    "fine trigger": {"local_ratio_trigger": 0.01, "local_delay_trigger": 0.01},
    "coarse balance": {"balance_threshold": 0.3},
}  # fmt: skip


def settings_of(case: Case) -> BalancingSettings:
    named = dict(SETTINGS[str(case.get("settings", "default"))])
    fields = BalancingSettings.__struct_fields__
    named |= {name: value for name, value in case.items() if name in fields}
    return BalancingSettings(**named)  # type: ignore[arg-type]


def modules_of(case: Case, seed: int) -> Modules:
    if case["algorithm"] == "none":
        return no_modules
    return offload.modules(settings_of(case), seed=seed)


def run(case: Case, seed: int, folder: Path) -> None:
    scene = scene_of(case)
    workload, timeline = clients_of(scene, Random(seed))

    def build(observers: tuple[Observer, ...]) -> Simulator:
        simulator = Simulator(
            scene.topology,
            seed=seed,
            modules=modules_of(case, seed),
            resources=scene.resources,
            link=scene.platform.link,
            observers=observers,
            check=False,
        )
        if scene.platform.disturbance is not None:
            disturb(simulator, scene.platform.disturbance, seed=seed)
        play(simulator, workload, timeline, until_s=scene.until_s)
        return simulator

    run_watched(
        build,
        folder,
        until_s=scene.until_s + SETTLING_S,
        deliveries_every=scene.platform.deliveries_every,
        checked_every=scene.platform.checked_every,
    )
