"""The coordinator as a process: HTTP, clock, state on the disk, planning and moves.

async with CoordinatorServer(settings) as server:
    server.url
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Self

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from godwit.api import coordinator_api
from godwit.coordinator.broker_calls import BrokerCalls
from godwit.coordinator.broker_records import Change
from godwit.coordinator.change_requests import ChangeRequests
from godwit.coordinator.change_runner import ChangeRunner
from godwit.coordinator.cluster_rule import ClusterTuningSettings
from godwit.coordinator.cluster_tuning import ClusterTuner
from godwit.coordinator.coordinator_core import Coordinator
from godwit.coordinator.coordinator_metrics import CoordinatorCollector
from godwit.coordinator.deciding import BalancingDecision, decide
from godwit.coordinator.rounds import Batch
from godwit.coordinator.settings import CoordinatorSettings
from godwit.coordinator.spark_shuffle import SparkShuffle, check_spark
from godwit.coordinator.state import State
from godwit.errors import GodwitError, UsageError
from godwit.http.application import application, json_response, metrics_route
from godwit.http.errors import RestError
from godwit.http.operations import Answer, Asked, Nothing, served
from godwit.http.serving import serve
from godwit.protocol.addresses import address
from godwit.protocol.supervision import survive

log = logging.getLogger("godwit.coordinator")

TICK_S = 0.1
#: Time for pending requests to brokers, when the coordinator stops.
STOP_S = 2.0


class CoordinatorServer:
    def __init__(self, settings: CoordinatorSettings) -> None:
        self.settings = settings
        self._spark = None if settings.spark_from is None else _spark_shuffle(settings)
        self._state = State(Path(settings.state))
        memory = self._state.load()
        self.core = Coordinator(settings, memory, random=Random(), now_s=time.time())
        self._unsaved: list[Change] = []
        self._trouble = ""
        self._stack = contextlib.AsyncExitStack()
        self._calls = BrokerCalls(self.core.registry.brokers, settings.secret)
        self._runner = ChangeRunner(self.core, self._calls, self._save)
        self._requests = ChangeRequests(self.core, self._runner.ordering, self._save)
        self._carrying: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._stack.callback(self._state.close)
        try:
            self._check_saved()  # An authority that is not on the disk might be given again.
            await self._stack.enter_async_context(self._calls)
            listening = serve(self._application(), *address(self.settings.listen))
            self.url = await self._stack.enter_async_context(listening)
        except BaseException:
            await self._stack.aclose()
            raise
        working = [asyncio.create_task(self._balance()), asyncio.create_task(self._runner.run())]
        if self.settings.autoscale is not None:
            from godwit.coordinator.autoscaling import Autoscaler  # noqa: PLC0415  Off, usually.

            scaler = Autoscaler(
                self.core, self._requests.begin, self.settings.autoscale, self.settings.secret
            )
            working.append(asyncio.create_task(scaler.run()))
        tuning = self.settings.clusters or ClusterTuningSettings()
        tuner = ClusterTuner(self.core, self._requests.begin, tuning)
        working.append(asyncio.create_task(tuner.run()))
        self._stack.push_async_callback(self._stop, working)
        log.info("answering", extra={"url": self.url, "brokers": len(self.core.memory.brokers)})
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()
        log.info("stopped")

    async def _stop(self, working: list[asyncio.Task[None]]) -> None:
        for task in working:
            task.cancel()
        if self._spark is not None:
            self._spark.close()
        await asyncio.gather(*working, return_exceptions=True)
        if self._carrying:
            await asyncio.wait(self._carrying, timeout=STOP_S)
        for task in self._carrying:
            task.cancel()
        await asyncio.gather(*self._carrying, return_exceptions=True)
        self._save()

    # -- answering -----------------------------------------------------------------------------

    def _application(self) -> Starlette:
        core = self.core

        def at_once(
            answer: Callable[[Asked], Answer],
        ) -> Callable[[Asked], Awaitable[Answer]]:
            """Save changes before the answer."""

            async def handler(request: Asked) -> Answer:
                answered = answer(request)
                if not self._save():
                    raise RestError(503, self._trouble, retry_after_s=self.settings.report_s)
                return answered

            return handler

        async def healthz(_request: Request) -> Response:
            live = core.registry.live(time.time())
            silent = sorted(set(core.memory.brokers) - set(live))
            shown = {"healthy": not self._trouble, "trouble": self._trouble, "silent": silent}
            return json_response(shown, status_code=503 if self._trouble else 200)

        def now(answer: Callable[[Asked, float], Answer]) -> Callable[[Asked], Answer]:
            return lambda request: answer(request, time.time())

        def brokers(_request: Nothing) -> coordinator_api.Brokers:
            return core.brokers(time.time())

        def plan(_request: Nothing) -> coordinator_api.LastPlan:
            return core.plan()

        return application(
            [
                served(coordinator_api.REGISTER_USER, at_once(core.register_user)),
                served(coordinator_api.REGISTER_BROKER, at_once(now(core.register_broker))),
                served(coordinator_api.REQUEST_BROKER, at_once(now(core.request_broker))),
                served(coordinator_api.LOAD_REPORT, at_once(now(core.report))),
                served(coordinator_api.BROKERS, at_once(brokers)),
                served(coordinator_api.PLAN, at_once(plan)),
                served(coordinator_api.MOVES, at_once(core.moves)),
                served(coordinator_api.REJECT_MOVE, at_once(now(core.reject))),
                *self._requests.operations(),
            ],
            title="Godwit coordinator",
            secret=self.settings.secret,
            routes=[
                metrics_route(CoordinatorCollector(core, time.time)),
                Route("/healthz", healthz),
            ],
        )

    def _save(self) -> bool:
        """Save all changes; if that fails, the next call tries again.  Whether it succeeded."""
        self._unsaved += self.core.take_changes()
        if not self._unsaved:
            return True
        try:
            self._state.save(self._unsaved)
        except sqlite3.Error as error:
            if not self._trouble:
                log.error("state not saved", extra={"why": str(error)})  # noqa: TRY400
            self._trouble = f"the state cannot be saved: {error}"
            return False
        self._unsaved, self._trouble = [], ""
        return True

    def _check_saved(self) -> None:
        if not self._save():
            raise UsageError(self._trouble)

    # -- balancing -----------------------------------------------------------------------------

    async def _balance(self) -> None:
        while True:
            await asyncio.sleep(TICK_S)
            with survive(log, "failed"):  # Users still need brokers.
                await self._step()

    async def _step(self) -> None:
        core = self.core
        due = core.due(time.time())
        if due is not None:
            decision = await asyncio.to_thread(
                lambda: decide(due.situation(), due.held, self.settings, self._spark)
            )
            core.adopt(decision, time.time())
            _log_decision(decision, is_dry_run=self.settings.dry_run)
        batches = core.hand_out(time.time())
        is_saved = self._save()
        for batch in batches:
            if is_saved:
                task = asyncio.create_task(self._carry_out(batch))
                self._carrying.add(task)
                task.add_done_callback(self._carrying.discard)
            else:  # Unsaved moves could be requested again too soon, after a restart.
                core.carried_out(batch, self._trouble, time.time())

    async def _carry_out(self, batch: Batch) -> None:
        answer = await self._calls.move(
            batch.source,
            batch.target,
            batch.clients,
            self.core.authority,
            answer_s=batch.answer_s,
        )
        outcome = str(answer) if isinstance(answer, GodwitError) else answer
        self.core.carried_out(batch, outcome, time.time())
        self._save()
        facts = {"source": batch.source, "target": batch.target, "clients": len(batch.clients)}
        moved = outcome if isinstance(outcome, str) else f"{len(outcome.moved)} moved"
        log.info("asked", extra={**facts, "outcome": moved})


def _spark_shuffle(settings: CoordinatorSettings) -> SparkShuffle:
    check_spark()
    return SparkShuffle(settings.spark_master, limit_s=settings.plan_s)


def _log_decision(decision: BalancingDecision, *, is_dry_run: bool) -> None:
    level = logging.INFO if decision.moves else logging.DEBUG
    facts = {
        "stage": decision.stage.value,
        "why": decision.why,
        "moves": len(decision.moves),
        "cov": round(decision.situation.loads.cov, 4),
        "then": round(decision.after.cov, 4),
        "dry_run": is_dry_run,
    }
    log.log(level, "decided", extra=facts)
