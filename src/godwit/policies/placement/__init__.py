"""Publisher placement: POP and GRAPE, as modules of a broker.

pop.py         POP: towards the deliveries; decided hop by hop
grape.py       GRAPE: the least load or the least delay; decided by the publisher's broker
selection.py   GRAPE's choice among candidate brokers
relocation.py  common to both: the local publishers, decisions, deadlines
letters.py     the messages: TRM, RRM, RAM, TIR, TIA
settings.py    the settings of both

    simulator = Simulator(topology, seed=1, modules=placement.modules("grape-load"))

A policy decides; migration/ moves the publisher.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

from godwit.broker.modules import PolicyModule
from godwit.errors import UsageError
from godwit.policies.placement.grape import Grape
from godwit.policies.placement.pop import Pop
from godwit.policies.placement.settings import GrapeSettings, Metric, PlacementSettings, PopSettings

#: Policies by the name used on the command line.
POLICIES: Mapping[str, PlacementSettings | None] = {
    "static": None,
    "pop": PopSettings(),
    "grape-load": GrapeSettings(primary=Metric.LOAD),
    "grape-delay": GrapeSettings(primary=Metric.DELAY),
}


def modules(
    policy: str | PlacementSettings, *, seed: int = 0
) -> Callable[[str], Sequence[PolicyModule]]:
    """A factory of the modules of each broker, for a policy given by name or by settings.

    POP chooses at random which publications to trace: each broker by `seed` and its own name.
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
