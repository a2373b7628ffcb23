"""Loads of brokers for tables."""

from __future__ import annotations

from godwit.policies.offload.broker_load import BrokerInfo
from godwit.policies.offload.load_status import LoadStatus
from godwit.policies.offload.pie import Pie, PieDetails, PieValues
from godwit.profile.matching_delay import MatchingDelay


def info(
    broker: str = "B1",
    *,
    input: float = 0.0,
    match_s: float = 0.01,
    output: float = 0.0,
    memory: float = 0.0,
) -> BrokerInfo:
    return BrokerInfo(
        broker=broker,
        input_per_s=input / match_s,
        subscriptions=10,
        matching=MatchingDelay(0.0, match_s),
        output_used_bytes_s=output * 1000.0,
        output_total_bytes_s=1000.0,
        memory_utilisation=memory,
    )


def pie(
    broker: str,
    *,
    input: float = 0.0,
    match_s: float = 0.01,
    output: float = 0.0,
    memory: float = 0.0,
    status: LoadStatus = LoadStatus.OK,
    cluster: str = "B0",
    balanced: tuple[str, ...] = (),
    moving_sessions: int = 0,
) -> Pie:
    load = info(broker, input=input, match_s=match_s, output=output, memory=memory)
    details = PieDetails(load, balanced=balanced, moving_sessions=moving_sessions)
    return Pie(broker, cluster, status, PieValues.of(load), details)
