"""The story of a publication: from broker to broker, why it goes on, and where its way ends.

    publisher --> B4 --> B2 --> B1 --> B3 --> subscriber
                  |      |
                  |      at each: destinations of the router, and the subscriptions behind them
                  is it advertised?

Every broker on the way is asked what it would do (POST /explain, broker/explaining.py); nothing is
sent.  So a story is about the tables as they are now.  For a subscriber that does not get the
publication the story has the first place where the way ends, and the reason.

The walk asks through a function, so the same code tells stories of a live network and of a
simulated one (tests/web/test_stories.py checks them against the oracle).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from godwit.api.dashboard_api import EndReason, PublicationStory, StoryHop
from godwit.api.routing_api import HopAccount, HopQuestion
from godwit.broker.explaining import FilterFinding
from godwit.content.text import format_record
from godwit.content.values import Value
from godwit.errors import GodwitError

#: Asks a broker; raises GodwitError if it does not answer.
Ask = Callable[[str, HopQuestion], Awaitable[HopAccount]]

#: Subscriptions that are named in a sentence.
NAMED_MAX = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryQuestion:
    record: Mapping[str, Value]
    publisher: str = ""
    publisher_broker: str
    to: str = ""
    to_broker: str = ""
    links: Sequence[tuple[str, str]] = ()
    """Of the whole network, to find the way to a subscriber that is not reached."""


@dataclass(slots=True)
class _Walk:
    hops: dict[str, StoryHop] = field(default_factory=dict)
    delivered_to: dict[str, str] = field(default_factory=dict)
    silent: dict[str, str] = field(default_factory=dict)
    """Brokers that it goes to and that do not answer, and where it comes from there."""


async def tell_story(question: StoryQuestion, ask: Ask) -> PublicationStory:
    walk = await _walked(question, ask)
    reason, ends_at, because = await _ending(question, walk, ask)
    return PublicationStory(
        record=dict(question.record),
        publisher=question.publisher,
        publisher_broker=question.publisher_broker,
        hops=list(walk.hops.values()),
        delivered_to=walk.delivered_to,
        to=question.to,
        to_broker=question.to_broker,
        reason=reason,
        ends_at=ends_at,
        says=[*_sentences(question, walk), *because],
        silent=list(walk.silent),
    )


async def _walked(question: StoryQuestion, ask: Ask) -> _Walk:
    """From broker to broker, as copies would go."""
    walk = _Walk()
    if not _is_permitted(await _first(question, walk, ask), question):
        return walk
    waiting = deque([(question.publisher_broker, "", 0)])
    seen = {question.publisher_broker}
    while waiting:
        broker, came_from, hops = waiting.popleft()
        account = walk.hops[broker].account if broker in walk.hops else None
        if account is None:
            account = await _asked(question, walk, ask, broker, came_from, hops)
        if account is None:
            continue
        for way in account.explanation.goes_to:
            if way.kind == "client":
                walk.delivered_to[way.name] = broker
            elif way.kind == "neighbour" and way.name not in seen:
                seen.add(way.name)
                waiting.append((way.name, broker, hops + 1))
    return walk


async def _first(question: StoryQuestion, walk: _Walk, ask: Ask) -> HopAccount | None:
    return await _asked(question, walk, ask, question.publisher_broker, "", 0)


async def _asked(
    question: StoryQuestion, walk: _Walk, ask: Ask, broker: str, came_from: str, hops: int
) -> HopAccount | None:
    asked = HopQuestion(
        record=dict(question.record),
        came_from=came_from,
        publisher=question.publisher,
        subscriber=question.to,
        hops=hops,
    )
    try:
        account = await ask(broker, asked)
    except GodwitError:
        walk.silent[broker] = came_from
        return None
    walk.hops[broker] = StoryHop(came_from=came_from, account=account)
    return account


def _is_permitted(account: HopAccount | None, question: StoryQuestion) -> bool:
    """Whether the publisher may publish it; a story without a publisher does not ask."""
    if account is None:
        return False
    return not question.publisher or any(
        each.passes and each.in_effect for each in account.explanation.advertisements
    )


# -- how it ends -------------------------------------------------------------------------------


async def _ending(
    question: StoryQuestion, walk: _Walk, ask: Ask
) -> tuple[EndReason | None, str, list[str]]:
    """The reason, the broker where the way ends, and sentences."""
    start = question.publisher_broker
    first = walk.hops.get(start)
    if first is None:
        return EndReason.BROKER_SILENT, start, [f"Broker {start} does not answer."]
    if not _is_permitted(first.account, question):
        return _not_permitted(question, first.account)
    if not question.to:
        return None, "", []
    if question.to in walk.delivered_to:
        return _delivered(question, walk)
    if not question.to_broker:
        says = f"{question.to} is not a client of any broker that answers."
        return EndReason.UNKNOWN_SUBSCRIBER, "", [says]
    home = walk.hops.get(question.to_broker)
    account = home.account if home is not None else None
    if account is None:
        account = await _asked(question, _Walk(), ask, question.to_broker, "", 0)
    if account is None:
        says = f"Broker {question.to_broker}, where {question.to} is, does not answer."
        return EndReason.BROKER_SILENT, question.to_broker, [says]
    return await _not_delivered(question, walk, account, ask)


def _not_permitted(
    question: StoryQuestion, account: HopAccount
) -> tuple[EndReason, str, list[str]]:
    found = account.explanation.advertisements
    waiting = [each for each in found if each.passes]
    if waiting:
        says = [f"Advertisement {waiting[0].id} permits it, but is not in effect yet."]
        return EndReason.NOT_ADVERTISED_YET, account.broker, says
    says = [f"{question.publisher} has not advertised it: broker {account.broker} refuses it."]
    says += [f"Advertisement {each.id} {each.failures[0]}." for each in found[:NAMED_MAX]]
    if not found:
        says.append(f"{question.publisher} has no advertisement there.")
    return EndReason.NOT_ADVERTISED, account.broker, says


def _delivered(question: StoryQuestion, walk: _Walk) -> tuple[EndReason, str, list[str]]:
    broker = walk.delivered_to[question.to]
    account = walk.hops[broker].account
    links = len(_way_back(walk, broker)) - 1
    says = [f"{question.to} gets it from broker {broker}, over {links} links."]
    for way in account.explanation.goes_to:
        if way.kind == "client" and way.name == question.to:
            says += [f"{each.id} matches: {each.filter}." for each in way.because[:NAMED_MAX]]
    state = account.subscriber
    if state is not None and not state.is_connected:
        says.append(f"{question.to} has no connection now: it waits in its queue.")
        return EndReason.CLIENT_AWAY, broker, says
    if state is not None and state.is_isolated:
        says.append(
            f"{question.to} is slow, and its queue is limited: {state.dropped} publications were"
            " dropped."
        )
    return EndReason.DELIVERED, broker, says


async def _not_delivered(
    question: StoryQuestion, walk: _Walk, home: HopAccount, ask: Ask
) -> tuple[EndReason, str, list[str]]:
    to, held = question.to, home.explanation.held
    own = [each for each in held if each.hop == f"client {to}"]
    ends_at = _last_reached(question, walk)
    if to == question.publisher:
        says = f"{to} publishes it itself: a client does not get its own publications."
        return EndReason.OWN_PUBLICATION, question.publisher_broker, [says]
    if not own:
        says = f"{to} has no subscription at broker {home.broker}."
        return EndReason.NOT_SUBSCRIBED, ends_at, [says]
    passing = [each for each in own if each.passes]
    if not passing:
        return EndReason.FILTER_FAILS, ends_at, [_failing(each) for each in own[:NAMED_MAX]]
    if not any(each.in_effect for each in passing):
        says = f"Subscription {passing[0].id} matches, but is not in effect yet."
        return EndReason.NOT_IN_EFFECT, ends_at, [says]
    return await _broken_way(question, walk, passing[0], ask)


def _failing(finding: FilterFinding) -> str:
    return f"Subscription {finding.id} does not match: {'; '.join(finding.failures)}."


async def _broken_way(
    question: StoryQuestion, walk: _Walk, wanted: FilterFinding, ask: Ask
) -> tuple[EndReason, str, list[str]]:
    """The subscription is in effect, and the walk did not get there."""
    if before := _silent_before(question, walk):
        came_from, broker = before
        says = f"The way ends at {came_from}: broker {broker}, to which it goes, does not answer."
        return EndReason.BROKER_SILENT, came_from, [says]
    ends_at = _last_reached(question, walk)
    way = path(question.links, question.publisher_broker, question.to_broker)
    rest = way[way.index(ends_at) :] if ends_at in way else []
    if not rest:
        says = f"There is no way of links from {ends_at} to {question.to_broker}."
        return EndReason.LINK_DOWN, ends_at, [says, *walk.hops[ends_at].account.missing]
    for broker, following in pairwise(rest):
        hop = walk.hops.get(broker)
        account = hop.account if hop is not None else None
        if account is None and broker not in walk.silent:
            account = await _asked(question, _Walk(), ask, broker, "", 0)
        if account is None:
            says = f"The way ends at {ends_at}: broker {broker} does not answer."
            return EndReason.BROKER_SILENT, ends_at, [says]
        status = account.links.get(following, "not there")
        if status != "up":
            says = f"The way ends at {ends_at}: the link {broker} - {following} is {status}."
            return EndReason.LINK_DOWN, ends_at, [says]
    says = (
        f"The way ends at {ends_at}: it has no subscription that matches from the next broker,"
        f" although {wanted.id} is in effect at {question.to_broker}."
    )
    return EndReason.NOT_FORWARDED, ends_at, [says]


def _silent_before(question: StoryQuestion, walk: _Walk) -> tuple[str, str] | None:
    """The broker after which the walk met one that is silent, with a way of links from there to the
    subscriber over brokers that were not asked: the others are known not to pass it on.
    """
    for broker, came_from in walk.silent.items():
        unknown = [
            (one, other) for one, other in question.links if not {one, other} & walk.hops.keys()
        ]
        if came_from and path(unknown, broker, question.to_broker):
            return came_from, broker
    return None


def _last_reached(question: StoryQuestion, walk: _Walk) -> str:
    """The last broker on the way to the subscriber that the walk has reached."""
    reached = question.publisher_broker
    for broker in path(question.links, reached, question.to_broker):
        if broker not in walk.hops:
            break
        reached = broker
    return reached


def _way_back(walk: _Walk, broker: str) -> list[str]:
    way = [broker]
    while came_from := walk.hops[way[-1]].came_from:
        way.append(came_from)
    return way[::-1]


def path(links: Iterable[tuple[str, str]], source: str, target: str) -> list[str]:
    """Brokers from one to the other over the fewest links; empty if there is no way."""
    linked: dict[str, list[str]] = {}
    for one, other in links:
        linked.setdefault(one, []).append(other)
        linked.setdefault(other, []).append(one)
    came: dict[str, str] = {source: ""}
    waiting = deque([source])
    while waiting and target not in came:
        broker = waiting.popleft()
        for neighbour in linked.get(broker, ()):
            if neighbour not in came:
                came[neighbour] = broker
                waiting.append(neighbour)
    if target not in came:
        return []
    way = [target]
    while way[-1] != source:
        way.append(came[way[-1]])
    return way[::-1]


# -- in words ----------------------------------------------------------------------------------


def _sentences(question: StoryQuestion, walk: _Walk) -> list[str]:
    who = question.publisher or "Someone"
    says = [f"{who} publishes {format_record(question.record)} at {question.publisher_broker}."]
    first = walk.hops.get(question.publisher_broker)
    for each in first.account.explanation.advertisements if first is not None else ():
        if each.passes and each.in_effect:
            says.append(f"Advertisement {each.id} permits it: {each.filter}.")
            break
    for broker, hop in walk.hops.items():
        explained = hop.account.explanation
        to = [way.name for way in explained.goes_to if way.kind == "neighbour"]
        clients = sum(way.kind == "client" for way in explained.goes_to)
        says.append(
            f"{broker}: {explained.matching} of {explained.subscriptions} subscriptions match;"
            f" it goes to {', '.join(to) or 'no other broker'}, and to {clients} clients here."
        )
    return says
