"""How `offload-cost` is run: one decision by itself.

PRESS samples quotes at a broker with a `number` of distinct subscriptions, whose offload algorithms
then choose.  A case has a `study`: `memory` or `time`.  The numbers are in a decision with the
action *checked*.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from time import process_time

import msgspec

from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.lab.declaration import Case
from godwit.matching.index import MatchingIndex
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.offload_algorithms import plan_offload
from godwit.policies.offload.press import Press, Sampled
from godwit.policies.offload.settings import BalancingSettings
from godwit.profile.matching_delay import MatchingDelay
from godwit.trace.recorder import Recorder
from godwit.trace.writer import TraceWriter
from godwit.workloads.stocks import THESIS_LIKE, StockMarket

MEMORY, TIME = "memory", "time"
SYMBOLS = 40
QUOTES_PER_S = 20.0
#: The fastest of so many decisions counts.
TIMES = 3


def is_timed(case: Case) -> bool:
    return case["study"] == TIME


def run(case: Case, seed: int, folder: Path) -> None:
    number, samples = int(case["number"]), int(case["press_samples"])
    market = StockMarket(Random(seed), symbols=SYMBOLS, profile=THESIS_LIKE)
    filters = distinct_filters(market, number, Random(seed))
    sampled = sample(market, filters, samples)
    if case["study"] == MEMORY:
        found = {"press_bits": float(sum(each.received.length for each in sampled.groups))}
    else:
        found = {
            f"{name}_plan_s": min(_seconds(sampled, filters, name, seed=seed) for _ in range(TIMES))
            for name in ("input", "match", "output", "random")
        }
    _write(found, folder)


def distinct_filters(market: StockMarket, number: int, random: Random) -> list[Filter]:
    """Subscriptions of LS3's templates, all of them different."""
    found: dict[Filter, None] = {}
    while len(found) < number:
        found[_bounded(market, random)] = None
    return list(found)


def _bounded(market: StockMarket, random: Random) -> Filter:
    """One with a threshold that no other has: the templates alone repeat themselves."""
    symbol = random.choice(market.symbols)
    seen = random.choice(market.seen(symbol))
    volume = int(float(str(seen["volume"])) * random.uniform(0.5, 2.0))
    return Filter.parse(f"class = 'STOCK' and symbol = '{symbol}' and volume > {volume}")


def sample(market: StockMarket, filters: list[Filter], samples: int) -> Sampled:
    """What PRESS has after so many quotes, at a broker where every client has one filter."""
    subscriptions = [
        ClientSubscription(f"c{number}", SubscriptionId(f"c{number}/s"), filter)
        for number, filter in enumerate(filters)
    ]
    index: MatchingIndex[LocalClient] = MatchingIndex()
    for subscription in subscriptions:
        index.add(LocalClient(subscription.client), subscription.filter)
    press = Press(subscriptions, [], samples_max=samples, now_s=0.0)
    for number in range(samples):
        symbol = market.symbols[number % len(market.symbols)]
        content = market.quote(symbol)
        publication = Publication(
            publisher=symbol,
            sequence=number,
            advertisement=AdvertisementId(f"{symbol}/a"),
            content=content,
            size_bytes=235,
        )
        press.on_publication(publication, list(index.match(content)), number / QUOTES_PER_S)
    return press.result(samples / QUOTES_PER_S)


def _seconds(sampled: Sampled, filters: list[Filter], name: str, *, seed: int) -> float:
    """How long a decision takes."""
    number = len(filters)
    loaded = _info("B1", number, output_bytes_s=0.9 * 1e6)
    idle = _info("B2", 0, output_bytes_s=0.0)
    algorithm = "random" if name == "random" else "thesis"
    action = OffloadAction.OUTPUT if name == "random" else OffloadAction(name)
    began_s = process_time()
    plan_offload(
        action,
        loaded,
        idle,
        [],
        sampled,
        BalancingSettings(algorithm=algorithm),
        overloaded=False,
        random=Random(seed),
    )
    return process_time() - began_s


def _info(broker: str, subscriptions: int, *, output_bytes_s: float) -> BrokerInfo:
    """A broker that is half busy with so many subscriptions."""
    per_subscription_s = 0.5 / QUOTES_PER_S / max(subscriptions, 1)
    return BrokerInfo(
        broker=broker,
        input_per_s=QUOTES_PER_S if subscriptions else 0.0,
        subscriptions=subscriptions,
        matching=MatchingDelay(per_subscription_s, 0.0),
        output_used_bytes_s=output_bytes_s,
        output_total_bytes_s=1e6,
    )


def _write(found: Mapping[str, float], folder: Path) -> None:
    with TraceWriter(folder) as writer:
        Recorder(writer).decision(
            "B1",
            time_s=0.0,
            policy="check",
            action="checked",
            subject="",
            source="",
            target="",
            reason=msgspec.json.encode(found).decode(),
        )
