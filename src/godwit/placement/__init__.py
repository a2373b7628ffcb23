"""Where publishers should be: POP and GRAPE, as modules of a broker.  Pure: no I/O, no clock.

pop.py          POP: where the deliveries are; decided hop by hop
grape.py        GRAPE: the least load or the least delay; decided by the publisher's broker
selection.py    GRAPE's choice among candidates
relocation.py   what both do with a decision; settings.py, letters.py: what they can be told, and
                what they tell each other

    simulator = Simulator(topology, seed=1, modules=placement.modules("grape-load"))

They decide; that a publisher moves is the business of migration/.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.placement.grape import Grape
from godwit.placement.pop import Pop
from godwit.placement.settings import GrapeSettings, Metric, PlacementSettings, PopSettings

#: By the name used on the command line.
POLICIES: Mapping[str, PlacementSettings | None] = {
    "static": None,
    "pop": PopSettings(),
    "grape-load": GrapeSettings(primary=Metric.LOAD),
    "grape-delay": GrapeSettings(primary=Metric.DELAY),
}


def modules(
    policy: str | PlacementSettings, *, seed: int = 0
) -> Callable[[str], Sequence[PolicyModule]]:
    """What makes the modules of each broker for a policy, by its name or by its settings.

    POP draws which publications to trace: each broker from `seed` and its own name.
    """
    settings = named(policy) if isinstance(policy, str) else policy

    def of_broker(broker: str) -> Sequence[PolicyModule]:
        if isinstance(settings, PopSettings):
            return [Pop(Random(f"{seed} {broker}"), settings)]
        return [] if settings is None else [Grape(settings)]

    return of_broker


def named(policy: str) -> PlacementSettings | None:
    try:
        return POLICIES[policy]
    except KeyError:
        raise UsageError(f"no policy {policy!r}; choose from {sorted(POLICIES)}") from None
