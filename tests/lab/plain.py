"""Every metric once more, with dictionaries and loops over the rows of the Parquet files.

Written from what the stages say they compute, not from how they do it: no Spark, no pandas.
A result is a list of rows, each a dictionary.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow.parquet as pq

from godwit.lab.metrics.stages import Span

Row: TypeAlias = dict[str, Any]
Trace: TypeAlias = dict[str, list[Row]]


def read(folder: Path) -> Trace:
    tables: Trace = {}
    for table in ("handled", "delivered", "gauges", "decisions"):
        files = sorted(folder.joinpath(table).glob("[!_]*.parquet"))
        tables[table] = [row for file in files for row in pq.read_table(file).to_pylist()]
    return tables


def within(trace: Trace, span: Span) -> Trace:
    return {
        name: [row for row in rows if span.start_s <= row["time_s"] < span.end_s]
        for name, rows in trace.items()
    }


def mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def percentile(values: Iterable[float], share: float) -> float:
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below, above = ordered[math.floor(place)], ordered[math.ceil(place)]
    return below + (above - below) * (place - math.floor(place))


def by(rows: Iterable[Row], *columns: str) -> dict[tuple[Any, ...], list[Row]]:
    groups: defaultdict[tuple[Any, ...], list[Row]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[column] for column in columns)].append(row)
    return groups


def bucket(row: Row, span: Span) -> float:
    number: float = (row["time_s"] - span.start_s) // span.bucket_s
    return span.start_s + number * span.bucket_s


def broker_rates(trace: Trace, span: Span) -> list[Row]:
    length_s, found = span.end_s - span.start_s, []
    for (broker,), rows in by(within(trace, span)["handled"], "broker").items():
        into, out = len(rows), sum(row["messages_out"] for row in rows)
        found.append(
            {
                "broker": broker,
                "messages_in_per_s": into / length_s,
                "messages_out_per_s": out / length_s,
                "messages_per_s": (into + out) / length_s,
                "bytes_in_per_s": sum(row["size_bytes"] for row in rows) / length_s,
            }
        )
    return found


def all_rates(trace: Trace, span: Span) -> list[float]:
    rates = {row["broker"]: 0.0 for row in trace["gauges"]}
    rates.update({row["broker"]: row["messages_per_s"] for row in broker_rates(trace, span)})
    return list(rates.values())


def message_rate(trace: Trace, span: Span) -> list[Row]:
    rates = all_rates(trace, span)
    middle = mean(rates)
    spread = math.sqrt(mean([(rate - middle) ** 2 for rate in rates]))
    return [
        {
            "brokers": len(rates),
            "messages_per_s_mean": middle,
            "messages_per_s_max": max(rates),
            "messages_per_s_stddev": spread,
            "messages_per_s_cov": spread / middle if middle else None,
        }
    ]


def load_histogram(trace: Trace, span: Span) -> list[Row]:
    rates = all_rates(trace, span)
    width = max(rates) / 20
    bins = Counter(min(int(rate / width), 19) if width else 0 for rate in rates)
    return [
        {"bin": n, "from_per_s": n * width, "to_per_s": (n + 1) * width, "brokers": brokers}
        for n, brokers in bins.items()
    ]


def utilisation_over_time(trace: Trace, span: Span) -> list[Row]:
    buckets: defaultdict[float, list[Row]] = defaultdict(list)
    for row in within(trace, span)["gauges"]:
        buckets[bucket(row, span)].append(row)
    return [
        {
            "bucket_s": start_s,
            "input_utilisation_mean": mean([row["input_utilisation"] for row in rows]),
            "input_utilisation_max": max(row["input_utilisation"] for row in rows),
            "output_utilisation_mean": mean([row["output_utilisation"] for row in rows]),
            "output_utilisation_max": max(row["output_utilisation"] for row in rows),
            "matching_delay_s_mean": mean([row["matching_delay_s"] for row in rows]),
            "messages_queued_max": max(row["messages_queued"] for row in rows),
        }
        for start_s, rows in buckets.items()
    ]


def convergence(trace: Trace, span: Span) -> list[Row]:
    found = []
    buckets: defaultdict[float, list[Row]] = defaultdict(list)
    for row in within(trace, span)["gauges"]:
        buckets[bucket(row, span)].append(row)
    for measure in ("input_utilisation", "output_utilisation"):
        means = sorted(
            (start_s, mean([row[measure] for row in rows])) for start_s, rows in buckets.items()
        )
        settled_s = means[-1][0]
        for start_s, value in reversed(means):
            if abs(value - means[-1][1]) > 0.1:
                break
            settled_s = start_s
        found.append({"measure": measure, "settled_s": settled_s})
    return found


def hop_count(trace: Trace, span: Span) -> list[Row]:
    hops = [row["hops"] for row in within(trace, span)["delivered"]]
    if not hops:
        return [{"deliveries": 0, "hops_mean": None, "hops_max": None}]
    return [{"deliveries": len(hops), "hops_mean": mean(hops), "hops_max": max(hops)}]


def hop_histogram(trace: Trace, span: Span) -> list[Row]:
    counted = Counter(row["hops"] for row in within(trace, span)["delivered"])
    return [{"hops": hops, "deliveries": number} for hops, number in counted.items()]


def delays(rows: Sequence[Row]) -> Row:
    delays_s = [row["delay_s"] for row in rows]
    return {
        "deliveries": len(rows),
        "delay_s_mean": mean(delays_s) if rows else None,
        "delay_s_p50": percentile(delays_s, 0.5) if rows else None,
        "delay_s_p99": percentile(delays_s, 0.99) if rows else None,
    }


def delay(trace: Trace, span: Span) -> list[Row]:
    return [delays(within(trace, span)["delivered"])]


def delay_over_time(trace: Trace, span: Span) -> list[Row]:
    buckets: defaultdict[float, list[Row]] = defaultdict(list)
    for row in within(trace, span)["delivered"]:
        buckets[bucket(row, span)].append(row)
    return [{"bucket_s": start_s, **delays(rows)} for start_s, rows in buckets.items()]


def forwarding(trace: Trace, span: Span) -> list[Row]:
    delivered = forwards = forwarders = 0
    rows = [row for row in within(trace, span)["handled"] if row["kind"] == "Publication"]
    for of_broker in by(rows, "broker").values():
        serves = False
        for row in of_broker:
            if row["local_matches"]:
                delivered += 1
            elif row["from_broker"] and row["copies"]:
                forwards += 1
            serves = serves or row["local_matches"] > 0 or not row["from_broker"]
        forwarders += not serves
    total = delivered + forwards
    return [
        {
            "delivered": delivered,
            "pure_forwards": forwards,
            "yield": delivered / total if total else None,
            "pure_forwarders": forwarders,
        }
    ]


def deliveries_per_subscriber(trace: Trace, span: Span) -> list[Row]:
    counted = Counter(row["client"] for row in within(trace, span)["delivered"])
    return [{"client": client, "deliveries": number} for client, number in counted.items()]


def aggregate_traffic(trace: Trace, span: Span) -> list[Row]:
    sizes = [row["size_bytes"] for row in within(trace, span)["handled"] if row["from_broker"]]
    length_s = span.end_s - span.start_s
    return [
        {
            "messages": len(sizes),
            "bytes": sum(sizes),
            "messages_per_s": len(sizes) / length_s,
            "bytes_per_s": sum(sizes) / length_s,
        }
    ]


def overhead_by_kind(trace: Trace, span: Span) -> list[Row]:
    rows = within(trace, span)["handled"]
    return [
        {
            "kind": kind,
            "is_control": is_control,
            "messages": len(some),
            "share": len(some) / len(rows),
        }
        for (kind, is_control), some in by(rows, "kind", "is_control").items()
    ]


def moves(trace: Trace, span: Span) -> list[Row]:
    groups = by(within(trace, span)["decisions"], "policy", "action")
    return [{"policy": p, "action": a, "decisions": len(rows)} for (p, a), rows in groups.items()]


def between_brokers(trace: Trace, span: Span) -> list[Row]:
    sent = [row for row in within(trace, span)["handled"] if row["from_broker"]]
    return [
        {
            "kind": kind,
            "messages": len(rows),
            "bytes": sum(row["size_bytes"] for row in rows),
            "links": len({(row["came_from"], row["broker"]) for row in rows}),
        }
        for (kind,), rows in by(sent, "kind").items()
    ]


def routing_tables(trace: Trace, span: Span) -> list[Row]:
    kept = {}
    for row in sorted(within(trace, span)["gauges"], key=lambda row: float(row["time_s"])):
        kept[row["broker"]] = row["subscriptions"]
    return [
        {
            "brokers": len(kept),
            "subscriptions": sum(kept.values()),
            "subscriptions_mean": mean(list(kept.values())),
            "subscriptions_max": max(kept.values()),
        }
    ]


def queueing(trace: Trace, span: Span) -> list[Row]:
    found = []
    for (broker,), rows in by(within(trace, span)["handled"], "broker").items():
        waits_s = [row["queue_delay_s"] for row in rows]
        found.append(
            {
                "broker": broker,
                "messages": len(rows),
                "queue_delay_s_mean": mean(waits_s),
                "queue_delay_s_p99": percentile(waits_s, 0.99),
                "queue_delay_s_max": max(waits_s),
                "matching_delay_s_mean": mean([row["matching_delay_s"] for row in rows]),
                "waiting_mean": math.fsum(waits_s) / (span.end_s - span.start_s),
            }
        )
    return found


def queue_growth(trace: Trace, span: Span) -> list[Row]:
    found = []
    for (broker,), rows in by(within(trace, span)["gauges"], "broker").items():
        middle_s, queued = (
            mean([r["time_s"] for r in rows]),
            mean([r["messages_queued"] for r in rows]),
        )
        offs = [(row["time_s"] - middle_s, row["messages_queued"] - queued) for row in rows]
        slope = math.fsum(x * y for x, y in offs) / math.fsum(x * x for x, _ in offs)
        found.append({"broker": broker, "queued_mean": queued, "queued_growth_per_s": slope})
    return found


def publisher_rates(trace: Trace, span: Span) -> list[Row]:
    length_s = span.end_s - span.start_s
    own = [
        row
        for row in within(trace, span)["handled"]
        if row["kind"] == "Publication" and not row["from_broker"]
    ]
    return [
        {
            "publisher": publisher,
            "first_sequence": min(row["sequence"] for row in rows),
            "last_sequence": max(row["sequence"] for row in rows),
            "publications": len(rows),
            "publications_per_s": len(rows) / length_s,
            "bytes_per_s": sum(row["size_bytes"] for row in rows) / length_s,
        }
        for (publisher,), rows in by(own, "publisher").items()
    ]


def subscriber_profiles(trace: Trace, span: Span) -> list[Row]:
    last = {row["publisher"]: row["last_sequence"] for row in publisher_rates(trace, span)}
    found = []
    for (client, publisher), rows in by(
        within(trace, span)["delivered"], "client", "publisher"
    ).items():
        first = last.get(publisher, 0) - 1279
        places = [row["sequence"] - first for row in rows]
        places = [place for place in places if publisher in last and 0 <= place < 1280]
        if not places:
            continue
        vector = sum(1 << place for place in set(places))
        words = [(vector >> 64 * n) & (2**64 - 1) for n in range(20)]
        signed = [word - 2**64 if word >= 2**63 else word for word in words]
        found.append(
            {
                "client": client,
                "publisher": publisher,
                "first_sequence": first,
                "bits": signed,
                "received": len(places),
            }
        )
    return found


PLAIN: dict[str, Callable[[Trace, Span], list[Row]]] = {
    function.__name__: function
    for function in (
        broker_rates,
        message_rate,
        utilisation_over_time,
        convergence,
        hop_count,
        hop_histogram,
        delay,
        delay_over_time,
        forwarding,
        deliveries_per_subscriber,
        aggregate_traffic,
        overhead_by_kind,
        load_histogram,
        moves,
        between_brokers,
        routing_tables,
        queueing,
        queue_growth,
        publisher_rates,
        subscriber_profiles,
    )
}


def in_order(rows: Iterable[Row]) -> list[Row]:
    """Rows of a metric by what names them: its texts and whole numbers, then the rest."""
    return sorted(
        rows, key=lambda row: ([str(v) for v in row.values() if not _is_float(v)], *_k(row))
    )


def _is_float(value: object) -> bool:
    return isinstance(value, float)


def _k(row: Row) -> list[float]:
    return [value for value in row.values() if isinstance(value, float)]


def assert_same(found: Iterable[Row], expected: Iterable[Row]) -> None:
    """Counts and names exactly, other numbers to 1e-9."""
    left, right = in_order(found), in_order(expected)
    assert len(left) == len(right)
    for ours, theirs in zip(left, right, strict=True):
        assert ours.keys() == theirs.keys()
        for column, value in theirs.items():
            if _is_float(value):
                assert math.isclose(ours[column], value, rel_tol=1e-9, abs_tol=1e-12), (
                    ours,
                    theirs,
                )
            else:
                assert ours[column] == value, (column, ours, theirs)
