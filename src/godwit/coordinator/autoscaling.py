"""A coordinator that gathers, plans and applies by itself, as autoscale_rule.py says.

Off unless the settings have `autoscale`.  Brokers need [profiling].  What it has decided last is in
`godwit network show`; its changes are in the history, by "autoscale".
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from statistics import fmean

import msgspec

from godwit.api.network_api import ChangeRequest, ChangeState, NetworkChange
from godwit.api.plan_requests import PlanToApply, request_of
from godwit.client.croc_client import gather
from godwit.coordinator.autoscale_rule import AutoscaleSettings, ScaleNow, ScalePlan, verdict
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.periodic_decisions import PeriodicDecisions
from godwit.errors import GodwitError
from godwit.policies.allocation.gathered import Gathered, GatheredBroker
from godwit.policies.allocation.planner import make_plan

BY = "autoscale"
#: A broker that says nothing for so long is missing.
SILENCE_S = 10.0


class Autoscaler(PeriodicDecisions):
    def __init__(
        self,
        core: Coordinator,
        begin: Callable[[ChangeRequest], Awaitable[NetworkChange]],
        settings: AutoscaleSettings,
        secret: str = "",
    ) -> None:
        """`begin` is asked for changes, as an operator would."""
        super().__init__(core, BY, settings.every_s)
        self._begin = begin
        self._settings = settings
        self._secret = secret
        self._started_s = time.time()
        self._known: dict[str, GatheredBroker] = {}
        """The capacities of brokers, also of those that have left."""

    async def _decided(self) -> str:
        core, now_s = self._core, time.time()
        if core.changes.current is not None:
            return f"change {core.changes.current.number} is under way"
        running = core.registry.live(now_s)
        gathered = await self._gathered(running)
        if gathered.missing:
            return f"no plan: {', '.join(gathered.missing)} did not answer"
        input_per_s = sum(core.accounts[name][1].publications_per_s for name in running)
        offered = with_spare(gathered, self._known, core.can_be_started(now_s))
        settings = self._settings
        made = await asyncio.to_thread(
            lambda: make_plan(loaded(offered, settings.load), settings.allocation)
        )
        plan = at_least(msgspec.convert(made, PlanToApply, from_attributes=True), running, settings)
        request = request_of(plan, asked_by=BY, dry_run=True)
        proposed = await self._begin(request)
        last = next(iter(core.changes.latest(1)), None)
        changed_s = self._started_s if last is None else last.ended_s or now_s
        decision = verdict(
            ScaleNow(len(running), input_per_s, now_s - max(changed_s, self._started_s)),
            ScalePlan(
                len(plan.used),
                sum(each.input_per_s for each in plan.brokers),
                changes_something(proposed),
            ),
            settings,
        )
        if not decision.applies or settings.dry_run:
            return f"{decision.why} (dry run)" if decision.applies else decision.why
        begun = msgspec.structs.replace(request, dry_run=False, reason=decision.why)
        change = await self._begin(begun)
        return f"change {change.number}: {decision.why}"

    async def _gathered(self, running: Collection[str]) -> Gathered:
        """Profiles, from the first broker that can be asked."""
        https = [self._core.registry.brokers[name].http for name in running]
        url = next((http for http in https if http is not None), None)
        if url is None:
            raise GodwitError("no broker that runs has `http`")
        answers = await gather(url, secret=self._secret, silence_s=SILENCE_S, expected=running)
        gathered = answers.gathered()
        self._known |= {each.id: each for each in gathered.brokers}
        return gathered


def changes_something(proposed: NetworkChange) -> bool:
    """Whether a plan is not what the network is already."""
    assert proposed.state is ChangeState.PROPOSED
    return any(step.clients or step.kind.value != "move" for step in proposed.steps)


def with_spare(
    gathered: Gathered, known: dict[str, GatheredBroker], spare: Collection[str]
) -> Gathered:
    """Brokers that can be started may be used, too; one that was never seen is like the others."""
    running = gathered.brokers
    there = {each.id for each in running}
    usual = GatheredBroker(
        id="",
        output_bandwidth_bytes_s=fmean(each.output_bandwidth_bytes_s for each in running),
        matching_delay_base_s=fmean(each.matching_delay_base_s for each in running),
        matching_delay_per_subscription_s=fmean(
            each.matching_delay_per_subscription_s for each in running
        ),
    )
    added = [
        known.get(name, msgspec.structs.replace(usual, id=name))
        for name in sorted(spare)
        if name not in there
    ]
    return msgspec.structs.replace(gathered, brokers=(*running, *added))


def loaded(gathered: Gathered, share: float) -> Gathered:
    """As if brokers had only this share of their output bandwidth."""

    def with_less(each: GatheredBroker) -> GatheredBroker:
        bandwidth = share * each.output_bandwidth_bytes_s
        return msgspec.structs.replace(each, output_bandwidth_bytes_s=bandwidth)

    return msgspec.structs.replace(gathered, brokers=tuple(map(with_less, gathered.brokers)))


def at_least(
    plan: PlanToApply, running: Collection[str], settings: AutoscaleSettings
) -> PlanToApply:
    """The plan with as many more of the running brokers as must run (R1)."""
    idle = sorted(set(running) - set(plan.used))
    return plan.with_more(idle[: max(0, settings.fewest - len(plan.used))])
