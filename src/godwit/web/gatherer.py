"""Asks the servers of a network how they are, again and again, while a page is open.

G1  Without a page nothing is asked.
G2  A round asks at most ASKED_MAX brokers, in turn; of the others the coordinator's reports count.
G3  What is not known is not shown as known: a server that does not answer is silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Iterator, Mapping
from itertools import islice

from godwit.api.balancing_api import BALANCING, BalancingAccount
from godwit.api.coordinator_api import BROKERS, MOVES, PLAN, WhichMoves
from godwit.api.dashboard_api import Activity, BrokerActivity, ChannelsView, Overview, SharingCounts
from godwit.api.datacluster_api import CHANNELS, DATASETS
from godwit.api.network_api import CHANGES, NETWORK, NetworkView, WhichChanges
from godwit.api.network_views import Known
from godwit.api.routing_api import DECISIONS, DecisionList, WhichDecisions
from godwit.errors import GodwitError
from godwit.http.http_client import server_urls
from godwit.http.operations import Nothing
from godwit.protocol.supervision import survive
from godwit.web.directory import Directory
from godwit.web.figure_series import FigureSeries
from godwit.web.overviews import NetworkFindings, overview_of, without_names
from godwit.web.server_calls import ServerCalls

log = logging.getLogger("godwit.dashboard")

PERIOD_S = 2.0
ASKED_MAX = 64
#: Rounds between two looks at channels, and at brokers that had no policy.
SELDOM = 3
#: Decisions, moves and changes on the page.
DECISIONS_MAX, MOVES_MAX, CHANGES_MAX = 200, 100, 10

NOTHING_DONE = Activity(decisions=[], moves=[], changes=[])


class Gatherer:
    def __init__(
        self, directory: Directory, calls: ServerCalls, *, period_s: float = PERIOD_S
    ) -> None:
        self.directory = directory
        self.period_s = period_s
        self.calls = calls
        self.series = FigureSeries()
        self.overview: Overview | None = None
        self.activity = NOTHING_DONE
        self.channels = ChannelsView(datasets=[], channels=[])
        self.rounds = 0
        self._on_round: set[Callable[[], None]] = set()
        self._gathered = NetworkFindings()
        self._decisions: dict[tuple[str, str, int], BrokerActivity] = {}
        self._deliveries: tuple[float, dict[tuple[str, str], int]] = (0.0, {})
        self._turn = 0
        self._wanted = asyncio.Event()
        self._gathering = asyncio.Lock()

    @property
    def pages(self) -> int:
        return len(self._on_round)

    @contextlib.contextmanager
    def watching(self, on_round: Callable[[], None]) -> Iterator[None]:
        """A page is open: `on_round` is called after each round."""
        self._on_round.add(on_round)
        self._wanted.set()
        try:
            yield
        finally:
            self._on_round.discard(on_round)
            if not self._on_round:
                self._wanted.clear()

    async def run(self) -> None:
        while True:
            await self._wanted.wait()
            began_s = time.monotonic()
            with survive(log, "not gathered"):
                await self.gather()
            for on_round in list(self._on_round):
                on_round()
            await asyncio.sleep(max(0.2, self.period_s - (time.monotonic() - began_s)))

    async def now(self) -> Overview:
        """The overview, gathered now unless that was just done."""
        known = self.overview
        if known is None or time.time() - known.at_s > self.period_s:
            await self.gather()
        assert self.overview is not None
        return self.overview

    async def gather(self) -> None:
        async with self._gathering:
            troubles: list[str] = []
            await self._ask_coordinator(troubles)
            urls = self.urls()
            await self._ask_brokers(urls)
            if self.rounds % SELDOM == 0:
                await self._ask_datacluster()
            gathered = self._gathered
            gathered.troubles = troubles
            gathered.has_coordinator = self.directory.coordinator() is not None
            gathered.has_datacluster = self.directory.datacluster() is not None
            gathered.deliveries_per_s = self._delivery_rate()
            self.overview = overview_of(gathered, time.time())
            self.series.record(self.overview)
            self.rounds += 1
            directory = self.directory
            services = [*_urls(directory.coordinator()), *_urls(directory.datacluster())]
            await self.calls.keep({*urls.values(), *services})

    def urls(self) -> dict[str, str]:
        """The HTTP address of each broker: of the directory, and of the coordinator's reports."""
        found = {
            name: each.account.http
            for name, each in self._gathered.known.items()
            if each.account is not None and each.account.http is not None and each.is_live
        }
        return {**found, **self.directory.brokers()}

    # -- the coordinator -----------------------------------------------------------------------

    async def _ask_coordinator(self, troubles: list[str]) -> None:
        url = self.directory.coordinator()
        if url is None:
            return
        try:
            view = await self.calls.call(url, NETWORK, Nothing())
            plan = await self.calls.call(url, PLAN, Nothing())
            moves = await self.calls.call(url, MOVES, WhichMoves(limit=MOVES_MAX))
            known = await self.calls.call(url, BROKERS, Nothing())
            changes = await self.calls.call(url, CHANGES, WhichChanges(limit=CHANGES_MAX))
        except GodwitError as error:
            troubles.append(f"the coordinator does not answer: {error}")
            return
        self._take_view(view)
        self._gathered.sharing = SharingCounts(
            front_end=known.balance.fe_subscriptions, back_end=known.balance.be_subscriptions
        )
        self.activity = Activity(
            decisions=self.activity.decisions,
            moves=moves.moves,
            changes=[without_names(change) for change in changes.changes],
            says=plan.says,
        )

    def _take_view(self, view: NetworkView) -> None:
        gathered = self._gathered
        gathered.change = view.change
        gathered.joining = {each.broker for each in view.brokers if each.state == "joining"}
        direct = self.directory.brokers()
        named = {each.broker for each in view.brokers}
        gathered.known = {
            name: known for name, known in gathered.known.items() if name in {*direct, *named}
        }
        for each in view.brokers:
            live = each.state != "silent"
            if each.account is not None or each.broker not in gathered.known:
                gathered.known[each.broker] = Known(each.account, each.age_s, is_live=live)

    # -- brokers -------------------------------------------------------------------------------

    async def _ask_brokers(self, urls: Mapping[str, str]) -> None:
        asked = self._next(urls)
        gathered = self._gathered
        for name, answer in (await self.calls.call_all(asked, NETWORK, Nothing())).items():
            known = gathered.known.get(name)
            if isinstance(answer, GodwitError):
                account = known.account if known is not None else None
                gathered.known[name] = Known(account, is_live=False)
            elif answer.brokers:
                gathered.known[name] = Known(answer.brokers[0].account, 0.0)
        present = {name: url for name, url in asked.items() if gathered.known[name].is_live}
        await self._ask_policies(present)

    def _next(self, urls: Mapping[str, str]) -> dict[str, str]:
        """G2"""
        if len(urls) <= ASKED_MAX:
            return dict(urls)
        self._turn %= len(urls)
        twice = [*urls.items(), *urls.items()]
        chosen = dict(islice(twice, self._turn, self._turn + ASKED_MAX))
        self._turn += ASKED_MAX
        return chosen

    async def _ask_policies(self, urls: Mapping[str, str]) -> None:
        gathered = self._gathered
        balancing = (
            urls
            if self.rounds % SELDOM == 0
            else {name: url for name, url in urls.items() if name in gathered.balancing}
        )
        for name, answer in (await self.calls.call_all(balancing, BALANCING, Nothing())).items():
            if isinstance(answer, BalancingAccount):
                gathered.balancing[name] = answer
            else:
                gathered.balancing.pop(name, None)
        for name in gathered.balancing.keys() - gathered.known.keys():
            del gathered.balancing[name]
        deciding = {each.broker for each in self._decisions.values()}
        asked = {
            name: url for name, url in urls.items() if self.rounds % SELDOM == 0 or name in deciding
        }
        listed = await self.calls.call_all(asked, DECISIONS, WhichDecisions())
        for name, found in listed.items():
            if isinstance(found, DecisionList):
                for each in found.decisions:
                    key = name, found.start, each.number
                    self._decisions[key] = BrokerActivity(broker=name, decision=each)
        latest = sorted(self._decisions.items(), key=lambda item: -item[1].decision.at_s)
        self._decisions = dict(latest[:DECISIONS_MAX])
        self.activity = Activity(
            decisions=list(self._decisions.values()),
            moves=self.activity.moves,
            changes=self.activity.changes,
            says=self.activity.says,
        )

    def _delivery_rate(self) -> float:
        """Deliveries per second since the last round, of the brokers that were there already."""
        now_s, before = time.monotonic(), self._deliveries
        found = {
            (account.broker, account.start): account.deliveries
            for account in (each.account for each in self._gathered.known.values() if each.is_live)
            if account is not None
        }
        self._deliveries = now_s, found
        since_s = now_s - before[0]
        return sum(n - before[1][run] for run, n in found.items() if run in before[1]) / since_s

    # -- the data cluster ----------------------------------------------------------------------

    async def _ask_datacluster(self) -> None:
        trouble = ""
        for url in _urls(self.directory.datacluster()):
            try:
                datasets = await self.calls.call(url, DATASETS, Nothing())
                channels = await self.calls.call(url, CHANNELS, Nothing())
            except GodwitError as error:
                trouble = f"the data cluster does not answer: {error}"
            else:
                self.channels = ChannelsView(datasets=datasets.datasets, channels=channels.channels)
                return
        self.channels = ChannelsView(
            datasets=self.channels.datasets, channels=self.channels.channels, trouble=trouble
        )


def _urls(text: str | None) -> list[str]:
    """A server, and its standbys."""
    return [] if text is None else server_urls(text)
