"""CBC: what it costs a broker to record profiles, and what a gathering takes.

    python -m benchmarks profiling [--quick]

    handled    publications that the broker itself handles in a second of processor time, without
               sockets: that is where CBC adds work.  1,000 stock subscriptions, one for each
               client, or all of one client, whose publications CBC keeps until it is asked.  With
               200 publishers there is no room for all notes, so vectors are made all the time.
    simulated  messages of the thesis's cluster setup, with all its brokers
    gathering  processor time of all brokers and of CROC for the answers of a chain of three, whose
               last broker has all subscriptions; and the size of the document

Two brokers, one with CBC and one without, take turns, a slice each: the ratio is the median over
pairs of slices.  A bar is the least ratio with CBC.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from itertools import cycle
from time import process_time

import msgspec

from benchmarks.forwarding_workloads import WORKLOADS, ForwardingWorkload
from benchmarks.report import Row
from godwit.broker.core import Broker
from godwit.broker.routing import Place
from godwit.broker.stimuli import LocalClient, Received, Started
from godwit.content.filters import Filter
from godwit.content.messages import (
    Advertisement,
    AdvertisementId,
    Publication,
    Subscription,
    SubscriptionId,
)
from godwit.demos.stocks.stock_scenario import StockScenario
from godwit.overlay.topology import chain
from godwit.overlay.tree.tree_routing import TreeRouting
from godwit.policies.allocation.cbc import Cbc, profiling_modules
from godwit.policies.allocation.cbc_profiles import NOTE_WEIGHT, NOTED_MAX
from godwit.simulation.simulated_gathering import SimulatedCroc
from godwit.simulation.simulator import Simulator, no_modules

PAIRS, PAIRS_QUICK = 20, 6
#: The least ratio of a broker with CBC to one without.
ONE_EACH_BAR, ALL_OF_ONE_BAR, SIMULATED_BAR = 0.8, 0.6, 0.5
MANY_PUBLISHERS, MANY_BAR = 200, 0.5
PUBLICATIONS = 2_000
#: For 10,000 subscriptions.
GATHERING_S_BAR = 2.0


def rows(*, quick: bool) -> Iterator[list[Row]]:
    pairs = PAIRS_QUICK if quick else PAIRS
    workload = WORKLOADS["W1"]()
    yield [
        _handled(workload, "a client for each", ONE_EACH_BAR, pairs),
        _handled(workload, "all of one client", ALL_OF_ONE_BAR, pairs),
    ]
    yield [_handled(workload, "many publishers", MANY_BAR, pairs, MANY_PUBLISHERS)]
    yield [_simulated(pairs)]
    yield _gathering(1_000, 1_280)
    if not quick:
        yield _gathering(10_000, 128)


def _compared(
    name: str, measure: str, size: int, bar: float, speeds: list[Callable[[], float]], pairs: int
) -> Row:
    """Without CBC first."""
    for speed in speeds:
        speed()
    found = [[speed() for speed in speeds] for _ in range(pairs)]
    ratio = statistics.median(on / off for off, on in found)
    off, on = (statistics.median(column) for column in zip(*found, strict=True))
    return Row(measure, name, size, off, on, ratio, bar)


# -- one broker --------------------------------------------------------------------------------


def _handled(
    workload: ForwardingWorkload, who: str, bar: float, pairs: int, publishers: int = 1
) -> Row:
    """The first slices, which fill the notes, are not measured."""
    is_one = who == "all of one client"
    speeds = [
        _speed_of(_broker(workload, publishers, is_one=is_one, cbc=cbc), workload, publishers)
        for cbc in (0, 1)
    ]
    for _ in range(NOTED_MAX // NOTE_WEIGHT // PUBLICATIONS if publishers > 1 else 1):
        speeds[1]()
    return _compared(f"W1, {who}", "publications/s", len(workload.filters), bar, speeds, pairs)


def _broker(workload: ForwardingWorkload, publishers: int = 1, *, is_one: bool, cbc: int) -> Broker:
    modules = [Cbc()] if cbc else []
    broker = Broker("B1", routing=TreeRouting(Place("B1")), modules=modules)
    broker.handle(Started(), now_s=0.0)
    wanted = Filter.parse(" and ".join(f"{name} is present" for name in workload.records[0]))
    for name in _publishers(publishers):
        advertised = Advertisement(id=AdvertisementId(f"{name}/a"), filter=wanted)
        broker.handle(Received(advertised, LocalClient(name)), now_s=0.0)
    for number, filter in enumerate(workload.filters):
        client = "subscriber" if is_one else f"subscriber{number}"
        id = SubscriptionId(f"{client}/{number}")
        broker.handle(Received(Subscription(id=id, filter=filter), LocalClient(client)), now_s=0.0)
    return broker


def _publishers(count: int) -> list[str]:
    return [f"publisher{number}" for number in range(count)]


def _speed_of(
    broker: Broker, workload: ForwardingWorkload, publishers: int = 1
) -> Callable[[], float]:
    sequence, records = iter(range(1_000_000_000)), cycle(workload.records)

    def published(name: str) -> Publication:
        return Publication(
            publisher=name,
            sequence=next(sequence),
            advertisement=AdvertisementId(f"{name}/a"),
            content=next(records),
        )

    def speed() -> float:
        runs = [
            (
                LocalClient(name),
                [(published(name), 0, None) for _ in range(PUBLICATIONS // publishers)],
            )
            for name in _publishers(publishers)
        ]
        start_s = process_time()
        for hop, run in runs:
            for _ in broker.handle_run(run, hop, now_s=1.0):
                pass
        return PUBLICATIONS / (process_time() - start_s)

    return speed


# -- many brokers ------------------------------------------------------------------------------


def _simulated(pairs: int) -> Row:
    scenario = StockScenario(
        brokers=31, publishers=10, subscribers_per_publisher=50, brokers_with_subscribers=8,
        joining_s=10.0, duration_s=100.0,
    )  # fmt: skip
    speeds = []
    for modules in (no_modules, profiling_modules()):
        simulator = scenario.build(seed=1, modules=modules, check=False)
        simulator.run(until_s=scenario.joining_s + 5.0)
        speeds.append(_slices(simulator))
    return _compared("stocks, 31 brokers", "simulated s/s", 500, SIMULATED_BAR, speeds, pairs)


def _slices(simulator: Simulator) -> Callable[[], float]:
    def speed() -> float:
        start_s = process_time()
        simulator.run(until_s=simulator.now_s + 2.0)
        return 2.0 / (process_time() - start_s)

    return speed


def _gathering(subscriptions: int, publications: int) -> list[Row]:
    simulator = Simulator(chain(3), seed=1, modules=profiling_modules(), check=False)
    paul = simulator.client("paul", at="B1")
    advertised = paul.advertise(Filter.parse("n is a number"))
    for number in range(subscriptions):
        client = simulator.client(f"s{number}", at="B3")
        simulator.at(1.0, client.subscribe, Filter.parse(f"n > {number % 7}"))
    for number in range(publications):
        simulator.at(60.0 + 0.1 * number, paul.publish, advertised, {"n": number % 11})
    simulator.run(until_s=100.0 + 0.1 * publications)
    croc = SimulatedCroc(simulator, at="B1", id="g", silence_s=600.0)
    start_s = process_time()
    while not croc.is_complete:
        simulator.run(until_s=simulator.now_s + 0.1)
    taken_s = process_time() - start_s
    document = len(msgspec.json.encode(croc.answers.gathered())) / subscriptions
    name = f"chain of 3, {publications} bits"
    return [
        Row("gathering, CPU s", name, subscriptions, None, taken_s, taken_s, GATHERING_S_BAR, True),
        Row("document, bytes each", name, subscriptions, None, document, document),
    ]
