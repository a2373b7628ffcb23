"""CROC in a simulated network: the profiles of all brokers, gathered in virtual time.

    simulator = Simulator(topology, seed=1, modules=profiling_modules())
    ...
    simulator.run(until_s=600.0)
    gathered = gather(simulator, at="B1")

Brokers must have the module CBC.  The network goes on while it is asked: the letters of brokers
take their time on links and in queues, and clients publish and subscribe.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec.structs import replace

from godwit.errors import GodwitError, UsageError
from godwit.policies.allocation.cbc import Cbc
from godwit.policies.allocation.cbc_gathering import SILENCE_S
from godwit.policies.allocation.cbc_pages import Answers
from godwit.policies.allocation.gathered import Gathered
from godwit.simulation.resources import BrokerResources
from godwit.simulation.simulator import Simulator

#: How often pages are fetched.
FETCH_S = 0.05


class SimulatedCroc:
    """One gathering.  Several may go on at the same time, from any brokers."""

    def __init__(
        self, simulator: Simulator, *, at: str, id: str, silence_s: float = SILENCE_S
    ) -> None:
        """Ask broker `at` now."""
        self.answers = Answers(expected=simulator.topology.brokers)
        self.is_complete = False
        self._simulator = simulator
        self._at = at
        self._id = id
        self._received = 0
        self._has_begun = False
        node = simulator.node(at)
        if not isinstance(node.broker.modules.get(Cbc.name), Cbc):
            raise UsageError(f"broker {at} has no module {Cbc.name}; pass profiling_modules()")
        # Planned, because the brokers of a new simulator start when it first runs.
        simulator.at(simulator.now_s, node.command, Cbc.name, f"gather {id} {silence_s}")
        simulator.at(simulator.now_s + FETCH_S, self._fetch)

    def _fetch(self) -> None:
        node = self._simulator.node(self._at)
        module = node.broker.modules[Cbc.name]
        assert isinstance(module, Cbc)
        try:
            held = module.held(self._id)
        except UsageError:
            if self._has_begun or not node.is_up:
                raise GodwitError(f"broker {self._at} has failed in the gathering") from None
        else:
            self._has_begun = True
            for page in held.pages[self._received - held.first :]:
                self.answers.add(page)
            self._received = held.first + len(held.pages)
            node.command(Cbc.name, f"fetch {self._id} {self._received}")
            if held.is_complete:
                self.is_complete = True
                node.command(Cbc.name, f"end {self._id}")
                return
        self._simulator.at(self._simulator.now_s + FETCH_S, self._fetch)


def gather(
    simulator: Simulator, *, at: str, id: str = "gathering", silence_s: float = SILENCE_S
) -> Gathered:
    """Run the simulator until all brokers have answered or are missing."""
    croc = SimulatedCroc(simulator, at=at, id=f"{id}-{simulator.now_s}", silence_s=silence_s)
    while not croc.is_complete:
        simulator.run(until_s=simulator.now_s + FETCH_S)
    return croc.answers.gathered()


def with_modelled_delays(
    gathered: Gathered, resources: BrokerResources | Mapping[str, BrokerResources]
) -> Gathered:
    """With the matching delays that the simulator uses, instead of those that were measured.

    A broker that always has the same number of subscriptions cannot measure a slope.
    """
    brokers = []
    for broker in gathered.brokers:
        own = resources if isinstance(resources, BrokerResources) else resources[broker.id]
        brokers.append(
            replace(
                broker,
                matching_delay_base_s=own.matching_work_base / own.cpu_speed,
                matching_delay_per_subscription_s=(
                    own.matching_work_per_subscription / own.cpu_speed
                ),
            )
        )
    return replace(gathered, brokers=tuple(brokers))
