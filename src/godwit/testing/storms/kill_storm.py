"""One storm of plans in which a broker is killed in a phase of a step of each plan.

As `plan_storm`, with neighbours that wait long for each other (`link_s`) and processes that take
their time to start again.  Every third storm has more brokers, of which the first plan needs two
and the second one some others, so that all members of an epoch may have left.

The step is drawn, and the phase of the change of the shape: so steps that are over in a moment are
met as often as others.  A broker that was killed has to recover soon, and not because it has waited
for `link_s`: what it has held until then, it handles with tables that are not complete.
"""

from __future__ import annotations

import asyncio
from random import Random

from godwit.api.network_api import ChangeStep, StepKind
from godwit.overlay.epochs.epoch_phases import EpochPhase
from godwit.overlay.topology import balanced_tree, random_tree
from godwit.runtime.settings import Limits
from godwit.testing.storms.plan_storm import AGAIN_S, REFUSED_S, StormyPlans, storm_of_plans
from godwit.testing.storms.storm import Storm
from godwit.testing.virtual_time import run_in_virtual_time

#: With the second one, a broker that has just started stops to expect callers of an earlier run
#: (`link_s` after its start) while another one, or it, recovers.
LIMITS = (Limits(link_s=60.0, restart_s=5.0), Limits(link_s=15.0, restart_s=5.0))
#: Steps, and for a change of the shape the phase of some broker.
MOMENTS: tuple[tuple[StepKind, EpochPhase | None], ...] = (
    (StepKind.START, None),
    (StepKind.RESHAPE, None),
    (StepKind.RESHAPE, EpochPhase.BUILDING),
    (StepKind.RESHAPE, EpochPhase.BUILT),
    (StepKind.RESHAPE, EpochPhase.HOLDING),
    (StepKind.RESHAPE, EpochPhase.REJOINING),
    (StepKind.MOVE, None),
    (StepKind.DRAIN, None),
    (StepKind.LEAVE, None),
)
#: Brokers of the larger storms.
MANY = 11
POLL_S = 0.0005
LATE_S = (0.0, 0.002, 0.02, 0.2, 2.0)
DOWN_S = (0.3, 1.0, 2.0, 4.0)
#: Clients are back after `restart_s`, and neighbours long before that.
RECOVERED_S = 30.0


def kill_storm(seed: int) -> Storm:
    """The storm of this seed, always the same; `wrong` is empty unless a guarantee was broken."""
    random = Random(f"kill storm {seed}")
    tree, plans = random_tree(random.randint(3, 7), random), _KillingPlans
    if seed % 3 == 2:
        tree, plans = balanced_tree(MANY, fanout=2), _DownAndUp
    storm = storm_of_plans(Storm(seed), random, tree, plans, LIMITS)
    return run_in_virtual_time(storm, seed=seed, clocks=True)


class _KillingPlans(StormyPlans):
    async def fail(self) -> None:
        kind, phase = moment = self.random.choice(MOMENTS)
        step = await self._come(*moment)
        await asyncio.sleep(self.random.uniform(0.0, self.random.choice(LATE_S)))
        victims = sorted(self.network.nodes)
        if step is not None and step.broker in victims and self.random.random() < 0.5:
            victims = [step.broker]
        at_s = asyncio.get_running_loop().time()
        when = "afterwards" if step is None else f"in {kind.value} {phase.value if phase else ''}"
        self.faults.happened.append(f"{at_s:.1f} s, {when.strip()}:")
        victim = self.random.choice(victims)
        self.faults.crash(victim, DOWN_S)
        await self._recovered(victim)

    async def _come(self, kind: StepKind, phase: EpochPhase | None) -> ChangeStep | None:
        """Wait for that moment of the change; None if it is over without it."""
        changes, loop = self.coordinator.core.changes, asyncio.get_running_loop()
        began_s = loop.time()
        while changes.current is None:  # It may be refused at first.
            if loop.time() > began_s + REFUSED_S:
                return None
            await asyncio.sleep(POLL_S)
        while changes.current is not None:
            for step in changes.current.steps:
                is_running = step.began_s is not None and step.ended_s is None
                if step.kind is kind and is_running and self._is_in(phase):
                    return step
            await asyncio.sleep(POLL_S)
        return None

    def _is_in(self, phase: EpochPhase | None) -> bool:
        phases = {node.epochs.status.phase for node in self.network.nodes.values()}
        return phase is None or phase.value in phases

    async def _recovered(self, broker: str) -> None:
        loop = asyncio.get_running_loop()
        until_s = loop.time() + max(DOWN_S) + RECOVERED_S
        await asyncio.sleep(max(DOWN_S) + AGAIN_S)  # By then it runs, and was called.
        while (node := self.network.nodes.get(broker)) is not None and node.is_recovering:
            if loop.time() > until_s:
                waits = sorted(each for each in node.epochs.expected if each not in node.ports)
                self.result.wrong.append(f"{broker} does not recover: it waits for {waits}")
                return
            await asyncio.sleep(0.5)


class _DownAndUp(_KillingPlans):
    """To two brokers, and then to some that have left."""

    is_down = False

    def needs(self) -> int:
        self.is_down = not self.is_down
        return 2 if self.is_down else self.random.randint(3, MANY // 2)
