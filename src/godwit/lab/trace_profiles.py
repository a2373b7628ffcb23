"""The profiles of a network from its trace: what CROC would gather, computed on Spark.

Paper    Cheung, thesis 6.1.2; the trace takes the place of CBC.
Departs  1. A trace knows clients, not their subscriptions: an entry stands for all subscriptions of
            a client, with the client's name as its id.  Its bits are the OR of theirs, because a
            client receives a publication once.
         2. It knows publishers by name, not by incarnation: of one that was started again within
            the trace, numbers of both lives are mixed.  Cut the trace, or trace one life.
         3. Rates are over the last WINDOW_S of the trace, or since a publisher's first publication.
            CBC cuts its window into slices of five seconds, so after a minute the two differ by
            at most that.
         4. A trace does not have output bandwidths: they are given.  The matching delay is fitted
            to the gauges, by the model that CBC uses, unless it is given too.
         5. Who has left without unsubscribing is not in a trace: such clients are still counted,
            and so are their profiles.
         6. In a sampled trace the bits that were not sampled are missing: it is refused if numbers
            of publications show that.
Tested   tests/lab/test_trace_profiles.py: equal to what CBC gathered in the same run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as F  # noqa: N812

from godwit.broker.sessions import RESERVED_PREFIX
from godwit.errors import UsageError
from godwit.lab.metrics.delivery_profiles import subscriber_profiles
from godwit.lab.metrics.stages import Span
from godwit.policies.allocation.cbc_pages import bit_text
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.profile.bit_vector import BitVector
from godwit.profile.matching_delay import MatchingDelay, MatchingDelayModel
from godwit.profile.rate_window import SLICE_S, WINDOW_S

#: Publications that show whether a trace is sampled.
SAMPLE_SHOWN_BY = 20


def gathered_from_trace(
    trace: Mapping[str, DataFrame], capacities: Mapping[str, GatheredBroker] | Mapping[str, float]
) -> Gathered:
    """The profiles at the end of a trace.

    `capacities` has each broker by name: as a whole, or only its output bandwidth.
    """
    publications = trace["handled"].where(
        (F.col("kind") == "Publication") & ~F.col("is_control") & ~F.col("from_broker")
    )
    brokers = _brokers(trace, capacities)
    end_s = _end_s(trace)
    publishers = _publishers(publications, end_s)
    homes = {row["owner"]: row["broker"] for row in _homes(trace["handled"])}
    profiles = _profiles(trace, {each.id for each in publishers}, end_s)
    return Gathered(
        publishers=tuple(publishers),
        brokers=tuple(brokers),
        subscriptions=tuple(
            _subscription(client, profiles.get(client, {}), homes[client])
            for client in sorted(homes)
        ),
    )


def _end_s(trace: Mapping[str, DataFrame]) -> float:
    """Just behind the last row."""
    times = trace["handled"].select("time_s")
    for name in ("delivered", "gauges"):
        times = times.union(trace[name].select("time_s"))
    last = times.agg(F.max("time_s").alias("end_s")).first()
    if last is None or last["end_s"] is None:
        raise UsageError("the trace is empty: nothing was handled")
    return float(last["end_s"])


# -- publishers --------------------------------------------------------------------------------


def _publishers(publications: DataFrame, end_s: float) -> list[GatheredPublisher]:
    recent = F.col("time_s") >= end_s - WINDOW_S
    rows = (
        publications.groupBy("publisher")
        .agg(
            F.min("time_s").alias("since_s"),
            F.min("sequence").alias("first_id"),
            F.max("sequence").alias("last_id"),
            F.sum(F.when(recent, 1).otherwise(0)).alias("recent"),
            F.sum(F.when(recent, F.col("size_bytes")).otherwise(0)).alias("recent_bytes"),
            F.max_by("broker", "time_s").alias("broker"),
            F.count("*").alias("publications"),
        )
        .orderBy("publisher")
        .collect()
    )
    _check_unsampled(rows)
    found = []
    for row in rows:
        seconds = min(WINDOW_S, max(SLICE_S, end_s - row["since_s"]))
        found.append(
            GatheredPublisher(
                id=row["publisher"],
                rate_per_s=row["recent"] / seconds,
                bandwidth_bytes_s=row["recent_bytes"] / seconds,
                last_id=row["last_id"],
                first_id=row["first_id"],
                broker=row["broker"],
            )
        )
    return found


def _check_unsampled(rows: Iterable[Row]) -> None:
    """A publisher numbers its publications one by one: in a sampled trace most are missing."""
    for row in rows:
        step = round((row["last_id"] - row["first_id"]) / max(1, row["publications"] - 1))
        if row["publications"] >= SAMPLE_SHOWN_BY and step > 1:
            raise UsageError(
                f"the trace has one of {step} publications of {row['publisher']}: profiles need all"
                " of them; trace with `sample_every = 1`"
            )


# -- subscribers -------------------------------------------------------------------------------


def _homes(handled: DataFrame) -> list[Row]:
    """The broker of each client that has subscribed more often than unsubscribed, its last one."""
    own = handled.where(
        F.col("kind").isin("Subscription", "Unsubscription")
        & ~F.col("from_broker")
        & ~F.col("owner").startswith(RESERVED_PREFIX)
    )
    held = F.sum(F.when(F.col("kind") == "Subscription", 1).otherwise(-1))
    return (
        own.groupBy("owner", "broker")
        .agg(held.alias("held"), F.max("time_s").alias("time_s"))
        .where("held > 0")
        .groupBy("owner")
        .agg(F.max_by("broker", "time_s").alias("broker"))
        .collect()
    )


def _profiles(
    trace: Mapping[str, DataFrame], publishers: set[str], end_s: float
) -> dict[str, dict[str, BitVector]]:
    everything = Span(float("-inf"), end_s + 1.0)
    found: dict[str, dict[str, BitVector]] = {}
    for row in subscriber_profiles(trace, everything).collect():
        if row["publisher"] in publishers:
            vector = BitVector.of_words(row["bits"], row["first_sequence"])
            found.setdefault(row["client"], {})[row["publisher"]] = vector
    return found


def _subscription(
    client: str, vectors: Mapping[str, BitVector], broker: str
) -> GatheredSubscription:
    first_id, bits = {}, {}
    for publisher, vector in sorted(vectors.items()):
        lowest = next(iter(vector))
        first_id[publisher] = lowest
        bits[publisher] = bit_text(vector)[lowest - vector.first :]
    return GatheredSubscription(
        id=client, first_id=first_id, bits=bits, broker=broker, client=client
    )


# -- brokers -----------------------------------------------------------------------------------


def _brokers(
    trace: Mapping[str, DataFrame], capacities: Mapping[str, GatheredBroker] | Mapping[str, float]
) -> list[GatheredBroker]:
    gauges: dict[str, list[Row]] = {}
    for row in (
        trace["gauges"]
        .select("broker", "time_s", "subscriptions", "matching_delay_s", "messages_in_per_s")
        .orderBy("time_s")
        .collect()
    ):
        gauges.setdefault(row["broker"], []).append(row)
    links = trace["handled"].where("from_broker").select("broker", "came_from").distinct().collect()
    names = {*gauges, *(row["broker"] for row in links), *(row["came_from"] for row in links)}
    unknown = sorted(names - set(capacities))
    if unknown:
        raise UsageError(
            f"the capacities of {', '.join(unknown)} are not given, and the trace has these brokers"
        )
    neighbours: dict[str, set[str]] = {name: set() for name in names}
    for row in links:
        neighbours[row["broker"]].add(row["came_from"])
        neighbours[row["came_from"]].add(row["broker"])
    return [
        _broker(name, capacities[name], gauges.get(name, []), sorted(neighbours[name]))
        for name in sorted(names)
    ]


def _broker(
    name: str, given: GatheredBroker | float, gauges: Iterable[Row], neighbours: list[str]
) -> GatheredBroker:
    if isinstance(given, GatheredBroker):
        bandwidth = given.output_bandwidth_bytes_s
        matching = MatchingDelay(
            given.matching_delay_per_subscription_s, given.matching_delay_base_s
        )
    else:
        bandwidth, matching = given, _fitted(gauges)
    return GatheredBroker(
        id=name,
        output_bandwidth_bytes_s=bandwidth,
        matching_delay_base_s=matching.intercept_s,
        matching_delay_per_subscription_s=matching.slope_s,
        neighbours=tuple(neighbours),
    )


def _fitted(gauges: Iterable[Row]) -> MatchingDelay:
    model = MatchingDelayModel()
    before = 0
    for row in gauges:
        if row["messages_in_per_s"]:
            model.add((before + row["subscriptions"]) // 2, row["matching_delay_s"])
        before = row["subscriptions"]
    return model.line or MatchingDelay(0.0, 0.0)
