"""Questions about the subscriptions of a whole network: which are there, and which match a record?

Every broker is asked for those of its own clients, so each is found once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping

from godwit.api.dashboard_api import (
    FilterList,
    FilterRow,
    MatchAnswer,
    MatchedClient,
    MatchQuestion,
    WhichFilters,
)
from godwit.api.routing_api import (
    LISTED_MAX,
    SUBSCRIPTIONS,
    SubscriptionPage,
    TableEntryView,
    WhichSubscriptions,
)
from godwit.broker.explaining import FilterFinding
from godwit.content.filters import Filter
from godwit.content.text import read_record
from godwit.errors import GodwitError
from godwit.web.gatherer import Gatherer

#: Subscriptions whose covering is looked for: it takes a comparison of each two of them.
COMPARED_MAX = 300
#: Subscriptions that do not match, in an answer.
OTHERS_MAX = 50
#: Subscriptions that match, in an answer; all are counted.
MATCHING_MAX = 1_000
#: Subscriptions that a record is compared with.
LOOKED_AT_MAX = 20_000


class TableQuestions:
    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    async def filters(self, request: WhichFilters) -> FilterList:
        pages, silent = await self._pages(request.contains, request.limit)
        rows = _rows(pages)[: request.limit]
        covers = covering([row.subscription for row in rows[:COMPARED_MAX]])
        return FilterList(
            subscriptions=[
                FilterRow(
                    broker=row.broker,
                    subscription=row.subscription,
                    covered_by=covers.get(row.subscription.id, ""),
                )
                for row in rows
            ],
            advertisements=[
                FilterRow(broker=page.broker, subscription=each)
                for page in pages
                for each in page.advertisements
            ][: request.limit],
            found=sum(page.found for page in pages),
            silent=silent,
        )

    async def matches(self, request: MatchQuestion) -> MatchAnswer:
        record = read_record(request.record)
        pages, silent = await self._pages("", LISTED_MAX)
        total = sum(page.found for page in pages)
        pages += [page async for page in self._further(pages)]
        found = []
        for page in pages:
            found += [
                MatchedClient(broker=page.broker, finding=_finding(each, record))
                for each in page.subscriptions
            ]
            await asyncio.sleep(0)  # Others are served in between.
        others = [each for each in found if not each.finding.passes]
        others.sort(key=lambda each: len(each.finding.failures))
        return MatchAnswer(
            record=record,
            matching=[each for each in found if each.finding.passes][:MATCHING_MAX],
            count=sum(each.finding.passes for each in found),
            others=others[:OTHERS_MAX],
            looked_at=len(found),
            found=total,
            silent=silent,
        )

    async def _further(self, pages: Iterable[SubscriptionPage]) -> AsyncIterator[SubscriptionPage]:
        """The next pages of brokers with long tables, as far as LOOKED_AT_MAX."""
        looked_at = sum(len(page.subscriptions) for page in pages)
        for first in pages:
            skip = len(first.subscriptions)
            while 0 < skip < first.found and looked_at < LOOKED_AT_MAX:
                url = self._gatherer.urls().get(first.broker)
                asked = WhichSubscriptions(is_local=True, limit=LISTED_MAX, skip=skip)
                try:
                    page = await self._gatherer.calls.call(url or "", SUBSCRIPTIONS, asked)
                except GodwitError:
                    break
                if not page.subscriptions:
                    break
                skip += len(page.subscriptions)
                looked_at += len(page.subscriptions)
                yield page

    async def _pages(self, contains: str, limit: int) -> tuple[list[SubscriptionPage], list[str]]:
        gatherer = self._gatherer
        await gatherer.now()
        request = WhichSubscriptions(contains=contains, is_local=True, limit=limit)
        answers = await gatherer.calls.call_all(gatherer.urls(), SUBSCRIPTIONS, request)
        pages = [each for each in answers.values() if isinstance(each, SubscriptionPage)]
        silent = [n for n, each in answers.items() if not isinstance(each, SubscriptionPage)]
        return sorted(pages, key=lambda page: page.broker), silent


def _rows(pages: Iterable[SubscriptionPage]) -> list[FilterRow]:
    return [
        FilterRow(broker=page.broker, subscription=each)
        for page in pages
        for each in page.subscriptions
    ]


def covering(views: list[TableEntryView]) -> dict[str, str]:
    """For each subscription the narrowest other one that covers it: the covering poset as a forest.

    Of equal filters, the first one covers the others.
    """
    filters = [Filter.parse(view.filter) for view in views]
    wider: list[list[int]] = [
        [
            other
            for other, each in enumerate(filters)
            if other != number
            and each.covers(filter)
            and not (filter.covers(each) and other > number)
        ]
        for number, filter in enumerate(filters)
    ]
    return {
        views[number].id: views[max(found, key=lambda each: (len(wider[each]), -each))].id
        for number, found in enumerate(wider)
        if found
    }


def _finding(view: TableEntryView, record: Mapping[str, object]) -> FilterFinding:
    failures = [str(each) for each in Filter.parse(view.filter).explain(record).failures]
    return FilterFinding(
        id=view.id,
        client=view.client,
        filter=view.filter,
        hop=view.hop,
        passes=not failures,
        failures=failures,
        in_effect=view.in_effect,
    )
