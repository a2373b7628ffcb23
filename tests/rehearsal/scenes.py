"""Small networks as snapshots, whose figures can be computed by hand."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from godwit.rehearsal.network_snapshot import (
    DelayFigures,
    LoadReading,
    MeasuredInterval,
    NetworkSnapshot,
    SampledAdvertisement,
    SampledPublication,
    SnapshotBroker,
    SnapshotClient,
)

TICKS = "class = 'TICK' and n is a number"
SAMPLE_S, PER_S, FRAME_BYTES = 10.0, 10.0, 100
BANDWIDTH_BYTES_S = 10_000.0
MATCHING_S = 0.001
CHAIN = (("B1", "B2"), ("B2", "B3"))


def publisher(name: str, broker: str, *, per_s: float = PER_S) -> SnapshotClient:
    """Publishes n = 0, 1, ... 9, again and again, at equal intervals."""
    publications = tuple(
        SampledPublication(
            at_s=(number + 0.5) / per_s,
            content={"class": "TICK", "n": number % 10},
            frame_bytes=FRAME_BYTES,
        )
        for number in range(round(SAMPLE_S * per_s))
    )
    advertised = SampledAdvertisement(id=f"{name}/a1", filter=TICKS, publications=publications)
    return SnapshotClient(name=name, broker=broker, advertisements=(advertised,))


def subscriber(name: str, broker: str, *filters: str) -> SnapshotClient:
    return SnapshotClient(name=name, broker=broker, subscriptions=filters or (TICKS,))


def interval(
    brokers: Mapping[str, LoadReading], *, deliveries_per_s: float, hops: float, delay_s: float
) -> MeasuredInterval:
    delays = DelayFigures(mean=delay_s, p10=delay_s, p50=delay_s, p99=delay_s)
    return MeasuredInterval(
        brokers=dict(brokers), deliveries_per_s=deliveries_per_s, hops=hops, delay_s=delays
    )


def reading(publications_per_s: float, copies_per_s: float) -> LoadReading:
    output_bytes_per_s = copies_per_s * FRAME_BYTES
    return LoadReading(
        publications_per_s=publications_per_s,
        matching_delay_s=MATCHING_S,
        input_utilisation=publications_per_s * MATCHING_S,
        output_utilisation=output_bytes_per_s / BANDWIDTH_BYTES_S,
        output_bytes_per_s=output_bytes_per_s,
    )


#: paul publishes at B1; bob at B2 wants half of it, carol and dave at B3 all of it.
MEASURED = interval(
    {"B1": reading(10, 10), "B2": reading(10, 15), "B3": reading(10, 20)},
    deliveries_per_s=25.0,
    hops=(5 * 1 + 20 * 2) / 25,
    delay_s=0.010,
)


def snapshot(
    clients: Iterable[SnapshotClient] | None = None,
    *,
    links: tuple[tuple[str, str], ...] = CHAIN,
    first: MeasuredInterval = MEASURED,
    second: MeasuredInterval | None = MEASURED,
) -> NetworkSnapshot:
    if clients is None:
        clients = (
            publisher("paul", "B1"),
            subscriber("bob", "B2", "class = 'TICK' and n < 5"),
            subscriber("carol", "B3"),
            subscriber("dave", "B3"),
        )
    names = sorted({end for link in links for end in link})
    return NetworkSnapshot(
        links=links,
        brokers=tuple(
            SnapshotBroker(id=name, output_bandwidth_bytes_s=BANDWIDTH_BYTES_S) for name in names
        ),
        clients=tuple(clients),
        sample_s=SAMPLE_S,
        first=first,
        second=second,
    )
