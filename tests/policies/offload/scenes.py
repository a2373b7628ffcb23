"""Brokers, clients and samples for the tests of the offload algorithms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf, log2
from random import Random

from godwit.broker.sessions import ClientSubscription
from godwit.broker.stimuli import LocalClient
from godwit.content.filters import Filter
from godwit.content.messages import AdvertisementId, Publication, SubscriptionId
from godwit.content.values import Value
from godwit.policies.offload.broker_load import BrokerInfo, OffloadAction
from godwit.policies.offload.css import covering_set
from godwit.policies.offload.offload_algorithms import plan_offload
from godwit.policies.offload.press import (
    GroupProfile,
    Press,
    Sampled,
    SubscriberGroup,
)
from godwit.policies.offload.report_cards import OffloadPlan
from godwit.policies.offload.settings import BalancingSettings
from godwit.profile.bit_vector import BitVector
from godwit.profile.matching_delay import MatchingDelay

SIZE_BYTES = 100


def info(
    name: str = "B1",
    *,
    ir: float = 0.0,
    n: int = 0,
    m: float = 0.0,
    b: float = 0.0,
    ou: float = 0.0,
    ot: float = inf,
    memory: float = 0.0,
    per_subscription: float = 0.0,
) -> BrokerInfo:
    return BrokerInfo(
        broker=name,
        input_per_s=ir,
        subscriptions=n,
        matching=MatchingDelay(m, b),
        output_used_bytes_s=ou,
        output_total_bytes_s=ot,
        memory_utilisation=memory,
        memory_per_subscription=per_subscription,
    )


def publication(
    content: Mapping[str, Value], sequence: int = 0, size_bytes: int = SIZE_BYTES
) -> Publication:
    return Publication(
        publisher="P",
        sequence=sequence,
        advertisement=AdvertisementId("P/1"),
        content=dict(content),
        size_bytes=size_bytes,
    )


def subscriptions(held: Mapping[str, str | Sequence[str]]) -> list[ClientSubscription]:
    """Clients by name, with the text of their filters."""
    return [
        ClientSubscription(client, SubscriptionId(f"{client}/{place}"), Filter.parse(text))
        for client, texts in held.items()
        for place, text in enumerate([texts] if isinstance(texts, str) else texts)
    ]


def sample(
    held: Sequence[ClientSubscription],
    css: Sequence[Filter],
    stream: Sequence[Publication],
    *,
    seconds: float,
    samples_max: int | None = None,
    staying: Sequence[str] = (),
) -> Sampled:
    """What PRESS makes of a stream that a broker delivers to the clients whose filters match."""
    press = Press(
        held, css, samples_max=samples_max or max(1, len(stream)), now_s=0.0, staying=staying
    )
    for number, each in enumerate(stream):
        reached = dict.fromkeys(s.client for s in held if s.filter.matches(each.content))
        press.on_publication(
            each, [LocalClient(client) for client in reached], seconds * (number + 1) / len(stream)
        )
    return press.result(seconds)


def sampled(
    groups: Mapping[str, tuple[int, str]],
    *,
    lcss: str = "",
    seconds: float | None = None,
    size_bytes: int = SIZE_BYTES,
    filters: Mapping[str, str] | None = None,
    staying: Sequence[str] = (),
) -> Sampled:
    """Groups by name with the number of clients and their bits, the first sample on the right.

    The filters are disjoint if none are given.  One second for each sample if not told.
    """
    texts = filters or {}
    length = max([len(lcss), *(len(bits) for _, bits in groups.values())])
    profiles = []
    for name, (clients, text) in groups.items():
        received = BitVector(0, length, int(text or "0", 2))
        names = [f"{name}{number}" for number in range(clients)]
        group = SubscriberGroup(
            (Filter.parse(texts.get(name, f"class = '{name}'")),),
            tuple(client for client in names if client not in staying),
            tuple(client for client in names if client in staying),
        )
        profiles.append(GroupProfile(group, received, size_bytes * received.count))
    return Sampled(
        samples=length,
        seconds=length if seconds is None else seconds,
        groups=tuple(profiles),
        lcss=BitVector(0, length, int(lcss or "0", 2)),
    )


def plan(
    action: OffloadAction,
    local: BrokerInfo,
    remote: BrokerInfo,
    samples: Sampled,
    *,
    settings: BalancingSettings | None = None,
    overloaded: bool = False,
    css: Sequence[Filter] = (),
    seed: int = 0,
) -> OffloadPlan:
    return plan_offload(
        action,
        local,
        remote,
        css,
        samples,
        settings or BalancingSettings(),
        overloaded=overloaded,
        random=Random(seed),
    )


# -- random instances ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Instance:
    action: OffloadAction
    local: BrokerInfo
    remote: BrokerInfo
    css: tuple[Filter, ...]
    sampled: Sampled
    settings: BalancingSettings
    overloaded: bool

    def plan(self) -> OffloadPlan:
        return plan(
            self.action,
            self.local,
            self.remote,
            self.sampled,
            settings=self.settings,
            overloaded=self.overloaded,
            css=self.css,
        )


def random_filter(random: Random) -> str:
    parts = []
    if random.random() < 0.9:
        parts.append(f"class = '{random.choice('ABC')}'")
    if random.random() < 0.4:
        parts.append(f"symbol = '{random.choice('UVWXYZ')}'")
    for attribute in ("x", "y"):
        draw = random.random()
        if draw < 0.2:
            parts.append(
                f"{attribute} {random.choice(['>', '>=', '<', '<='])} {random.randrange(9)}"
            )
        elif draw < 0.3:
            low = random.randrange(8)
            parts.append(f"{attribute} > {low} and {attribute} < {low + random.randrange(2, 6)}")
    return " and ".join(parts) or "class is present"


def random_record(random: Random) -> dict[str, Value]:
    return {
        "class": random.choice("ABC"),
        "symbol": random.choice("UVWXYZ"),
        "x": random.randrange(10),
        "y": random.randrange(10),
    }


def random_instance(seed: int, action: OffloadAction) -> Instance:
    """All figures are sums of powers of two, so that both implementations compute without rounding.

    Otherwise two reports could be equal in one and differ in the last digit in the other.
    """
    random = Random(f"{seed} {action.value}")
    texts = [random_filter(random) for _ in range(random.randint(1, 25))]
    held: dict[str, list[str]] = {}
    for number in range(random.randint(1, 60)):
        count = 1 if random.random() < 0.8 else random.randint(2, 4)
        held[f"c{number}"] = [random.choice(texts) for _ in range(count)]
    clients = subscriptions(held)
    staying = [client for client in held if random.random() < 0.05]
    css = covering_set(
        Filter.parse(random_filter(random)) for _ in range(random.choice([0, 0, 1, 2, 5]))
    )
    stream = [
        publication(random_record(random), number, random.choice([64, 128, 192, 1024]))
        for number in range(random.choice([4, 8, 16, 32]))
    ]
    found = sample(clients, css, stream, seconds=random.choice([1, 2, 8]), staying=staying)
    input_per_s = found.input_per_s * random.choice([0.5, 1, 1, 2])
    size_bytes = sum(
        p.size_bytes * (len(p.group.clients) + len(p.group.staying)) for p in found.groups
    )
    bytes_s = size_bytes * input_per_s / found.samples
    n = len(clients)

    def total(used: float) -> float:
        wanted = used / random.choice([0.3, 0.6, 0.9, 1.3, 2])
        return 2.0 ** round(Random(seed).uniform(-0.5, 0.5) + log2(wanted)) if wanted else 1024.0

    def slope_s(ir: float) -> float:
        return 2.0 ** round(log2(random.uniform(0.1, 1.5) / max(1.0, ir) / (n + 16)))

    m = slope_s(input_per_s)
    local = info(
        "B1", ir=input_per_s, n=n, m=m, b=m * random.randrange(32), ou=bytes_s, ot=total(bytes_s),
        memory=random.choice([0.0, 0.5, 0.9375, 0.96875]), per_subscription=2.0**-8,
    )  # fmt: skip
    m2 = m * random.choice([0.5, 1, 1, 1, 2])
    share = random.choice([0.0, 0.0, 0.25, 0.5, 1.0])
    remote = info(
        "B2", ir=input_per_s * share, n=int(n * share), m=m2, b=m2 * random.randrange(32),
        ou=bytes_s * share / 2, ot=random.choice([inf, local.output_total_bytes_s,
        2 * local.output_total_bytes_s, local.output_total_bytes_s / 2]),
        memory=random.choice([0.0, 0.5, 0.84375]), per_subscription=random.choice([0, 2.0**-8]),
    )  # fmt: skip
    settings = BalancingSettings(
        delay_normalization_s=2.0 ** round(log2(max(2.0**-20, m * n))),
        balance_threshold=random.choice([0.005, 0.005, 0.05]),
        local_ratio_trigger=random.choice([0.0, 0.1]),
    )
    return Instance(action, local, remote, css, found, settings, random.random() < 0.3)
