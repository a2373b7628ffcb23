"""Takes a snapshot of a running network: tables and loads over HTTP, a sample of its traffic.

    tables, loads  ─▶  samplers at all brokers  ─▶  loads again

Windows of loads, and seconds of the sample, take turns: one counts for what the simulation is set
by (`first`), the next for what it is compared with (`second`).  So both have the same drift of the
machines.

A sampler is a client with subscriptions that no other broker learns of (`local_only`): it sees what
passes its broker, which costs the broker one more copy of it.  So loads are read before samplers
begin and, a window later, after they have ended.

Delays are differences between the clocks of brokers and of this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Self

from godwit.api.network_api import NETWORK, BrokerAccount
from godwit.api.routing_api import LISTED_MAX, SUBSCRIPTIONS, TableEntryView, WhichSubscriptions
from godwit.client import Client, connect
from godwit.client.croc_client import gather
from godwit.content.filters import Filter
from godwit.content.messages import Publication
from godwit.errors import GodwitError, UnreachableError, UsageError
from godwit.http.http_client import HttpClient
from godwit.http.operations import Nothing
from godwit.policies.allocation.gathered import Gathered
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import PlacementSettings
from godwit.rehearsal.network_snapshot import (
    LoadReading,
    MeasuredInterval,
    NetworkSnapshot,
    SampledAdvertisement,
    SnapshotBroker,
    SnapshotClient,
    check_snapshot,
)
from godwit.rehearsal.traffic_sample import SampledCopy, TrafficSample

#: As hops of the tables say it.
CLIENT = "client "
ANSWER_S = 15.0
GATHER_S = 10.0

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotSource:
    """Where a network is, and what its brokers do not say."""

    http: Mapping[str, str]
    """The HTTP address of each broker, by name."""

    secret: str = ""
    overlay: str = "tree"
    overlay_settings: Mapping[str, Any] = field(default_factory=dict)
    links: Sequence[tuple[str, str]] | None = None
    """None: those that the brokers say."""

    placement: PlacementSettings | None = None
    balancing: BalancingSettings | None = None
    has_profiles: bool | None = None
    """None: find out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotTimes:
    sample_s: float = 10.0
    windows: int = 2
    """Load windows that are read before the sample, and as many after it."""


@dataclass(frozen=True, slots=True)
class _Window:
    """What brokers said at the end of a window."""

    accounts: dict[str, BrokerAccount]
    deliveries_per_s: float


async def take_snapshot(
    source: SnapshotSource,
    times: SnapshotTimes | None = None,
    on_progress: Progress = lambda _said: None,
) -> NetworkSnapshot:
    times = times or SnapshotTimes()
    async with _Asking(source) as asking:
        accounts = await asking.accounts()
        window_s = max(each.load_window_s for each in accounts.values())
        profiles = await asking.profiles()
        on_progress(f"reading the tables of {len(accounts)} brokers")
        clients = await asking.clients()
        on_progress(f"reading loads, {times.windows} windows of {window_s:g} s")
        loads = await asking.loads(times.windows, window_s)
        on_progress(f"sampling publications for {times.sample_s:g} s")
        sample = await _sampled(accounts, clients, times.sample_s)
        on_progress(f"reading loads again, {times.windows + 1} windows of {window_s:g} s")
        await asyncio.sleep(window_s)  # The next window has begun after the sample.
        loads += await asking.loads(times.windows, window_s)
    notes = [f"{len(sample.copies)} copies sampled; the sample ended early"] * sample.is_full
    return check_snapshot(
        NetworkSnapshot(
            at_s=sample.begin_s,
            overlay=source.overlay,
            overlay_settings=dict(source.overlay_settings),
            links=tuple(_links(source, accounts)),
            brokers=tuple(_broker(each) for each in accounts.values()),
            clients=tuple(sample.with_publications(clients)),
            sample_s=sample.sample_s,
            placement=source.placement,
            balancing=source.balancing,
            first=_interval(loads, sample, clients, 0),
            second=_interval(loads, sample, clients, 1),
            profiles=profiles,
            notes=tuple(notes),
        )
    )


def _interval(
    loads: Sequence[_Window], sample: TrafficSample, clients: Sequence[SnapshotClient], half: int
) -> MeasuredInterval:
    """One half of what was measured: every other window, and every other second."""
    hops, delay_s = sample.deliveries(clients, half)
    windows = loads[half::2]
    return MeasuredInterval(
        brokers={
            name: _reading([window.accounts[name] for window in windows])
            for name in loads[0].accounts
        },
        deliveries_per_s=fmean(window.deliveries_per_s for window in windows),
        hops=hops,
        delay_s=delay_s,
    )


def _broker(account: BrokerAccount) -> SnapshotBroker:
    return SnapshotBroker(
        id=account.broker,
        output_bandwidth_bytes_s=account.output_bandwidth_bytes_s,
        limits_output=account.limits_output,
    )


def _links(source: SnapshotSource, accounts: Mapping[str, BrokerAccount]) -> list[tuple[str, str]]:
    if source.links is not None:
        return sorted(source.links)
    pairs = {
        tuple(sorted((name, link.neighbour)))
        for name, account in accounts.items()
        for link in account.links
        if link.status == "up"
    }
    links = sorted((a, b) for a, b in pairs)
    if unknown := sorted({end for link in links for end in link} - set(accounts)):
        raise UsageError(
            f"{', '.join(unknown)} are linked and have no known HTTP address: name all brokers, or"
            " a coordinator, or the network file; each broker needs `http`"
        )
    if len(links) != len(accounts) - 1:
        raise UsageError(
            f"{len(accounts)} brokers with {len(links)} links are not a tree: name the network"
            " file, which says what overlay it is"
        )
    return links


# -- HTTP --------------------------------------------------------------------------------------


class _Asking:
    """One HTTP client for each broker."""

    def __init__(self, source: SnapshotSource) -> None:
        self._source = source
        self._stack = contextlib.AsyncExitStack()
        self._servers: dict[str, HttpClient] = {}

    async def __aenter__(self) -> Self:
        for name, url in self._source.http.items():
            client = HttpClient(url, secret=self._source.secret, answer_s=ANSWER_S)
            self._servers[name] = await self._stack.enter_async_context(client)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    async def accounts(self) -> dict[str, BrokerAccount]:
        views = await asyncio.gather(
            *(server.call(NETWORK, Nothing()) for server in self._servers.values())
        )
        found = {}
        for view in views:
            for each in view.brokers:
                if each.account is not None:
                    found[each.broker] = each.account
        return dict(sorted(found.items()))

    async def clients(self) -> list[SnapshotClient]:
        """All clients with what they hold, without their publications."""
        names = list(self._servers)
        tables = await asyncio.gather(*(self._table(name) for name in names))
        held: dict[str, SnapshotClient] = {}
        for broker, (subscriptions, advertisements) in zip(names, tables, strict=True):
            filters: dict[str, list[str]] = {}
            announced: dict[str, list[SampledAdvertisement]] = {}
            for each in subscriptions:
                filters.setdefault(_client(each), []).append(each.filter)
            for each in advertisements:
                entry = SampledAdvertisement(id=each.id, filter=each.filter)
                announced.setdefault(_client(each), []).append(entry)
            for name in sorted({*filters, *announced} - {""}):
                # In the middle of a move a client is at two brokers: the first one counts.
                held.setdefault(
                    name,
                    SnapshotClient(
                        name=name,
                        broker=broker,
                        subscriptions=tuple(filters.get(name, ())),
                        advertisements=tuple(announced.get(name, ())),
                    ),
                )
        return list(held.values())

    async def _table(self, name: str) -> tuple[list[TableEntryView], list[TableEntryView]]:
        subscriptions: list[TableEntryView] = []
        advertisements: list[TableEntryView] = []
        skip = 0
        while True:
            page = await self._servers[name].call(
                SUBSCRIPTIONS, WhichSubscriptions(is_local=True, limit=LISTED_MAX, skip=skip)
            )
            subscriptions += page.subscriptions
            advertisements += page.advertisements
            if max(len(page.subscriptions), len(page.advertisements)) < LISTED_MAX:
                return subscriptions, advertisements
            skip += LISTED_MAX

    async def profiles(self) -> Gathered | None:
        """Of CROC, where brokers record them; None where they do not."""
        if self._source.has_profiles is False:
            return None
        try:
            url = next(iter(self._source.http.values()))
            answers = await gather(url, secret=self._source.secret, silence_s=GATHER_S)
        except GodwitError:
            if self._source.has_profiles:
                raise
            return None
        return answers.gathered()

    async def loads(self, windows: int, window_s: float) -> list[_Window]:
        """Some windows that follow each other."""
        found = []
        at_s, before = time.monotonic(), await self.accounts()
        for _ in range(windows):
            await asyncio.sleep(window_s)
            now_s, after = time.monotonic(), await self.accounts()
            if missing := sorted(before.keys() - after.keys()):
                raise UsageError(f"{', '.join(missing)} left meanwhile: take another snapshot")
            delivered = sum(after[name].deliveries - before[name].deliveries for name in before)
            found.append(_Window(after, max(0.0, delivered / (now_s - at_s))))
            at_s, before = now_s, after
        return found


def _client(entry: TableEntryView) -> str:
    return entry.hop.removeprefix(CLIENT) if entry.hop.startswith(CLIENT) else ""


def _reading(accounts: Sequence[BrokerAccount]) -> LoadReading:
    return LoadReading(
        publications_per_s=fmean(each.publications_per_s for each in accounts),
        matching_delay_s=fmean(each.matching_delay_s or 0.0 for each in accounts),
        input_utilisation=fmean(each.input_utilisation or 0.0 for each in accounts),
        output_utilisation=fmean(each.output_utilisation or 0.0 for each in accounts),
        output_bytes_per_s=fmean(each.output_bytes_per_s for each in accounts),
    )


# -- the sample --------------------------------------------------------------------------------


async def _sampled(
    accounts: Mapping[str, BrokerAccount], clients: Sequence[SnapshotClient], sample_s: float
) -> TrafficSample:
    filters = front_filters(
        advertised.filter for client in clients for advertised in client.advertisements
    )
    sample, is_full = TrafficSample(time.time()), asyncio.Event()
    if not filters:
        raise UsageError("no client has advertised anything: there is no traffic to sample")
    async with contextlib.AsyncExitStack() as stack:
        for name, account in accounts.items():
            sampler = _sampler(name, account.url, filters, sample, is_full)
            await stack.enter_async_context(sampler)
        sample.copies.clear()
        sample.begin_s = time.time()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(sample_s):
                await is_full.wait()
        sample.end_s = time.time()
    return sample


@contextlib.asynccontextmanager
async def _sampler(
    broker: str,
    url: str,
    filters: Sequence[Filter],
    sample: TrafficSample,
    is_full: asyncio.Event,
) -> AsyncIterator[Client]:
    def see(publication: Publication, hops: int) -> None:
        sample.add(SampledCopy(broker, publication, hops, time.time()))
        if sample.is_full:
            is_full.set()

    async with connect(url) as client:
        client.on_publication = see
        async with client.subscribe(*filters, local_only=True) as events:
            try:
                async with asyncio.timeout(ANSWER_S):
                    await events.in_effect()
            except TimeoutError:
                raise UnreachableError(
                    f"broker {broker} at {url} does not answer a subscription"
                ) from None

            async def take() -> None:
                async for _ in events:
                    pass

            taking = asyncio.create_task(take())
            try:
                yield client
            finally:
                taking.cancel()
                await asyncio.gather(taking, return_exceptions=True)
        # Its answer is behind the last publication.  A connection that is closed with something
        # unread in it is reset, and the broker would not read the goodbye.
        with contextlib.suppress(TimeoutError, GodwitError):
            async with asyncio.timeout(ANSWER_S):
                await client.status()


def front_filters(texts: Iterable[str]) -> list[Filter]:
    """Distinct filters, without those that another one covers."""
    found: list[Filter] = []
    for text in dict.fromkeys(texts):
        filter = Filter.parse(text)
        if any(each.covers(filter) for each in found):
            continue
        found = [each for each in found if not filter.covers(each)]
        found.append(filter)
    return found
