"""Datasets and channels as operators see them."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from godwit.datacluster.channels import Channels, ChannelStatus
from godwit.datacluster.cluster import Cluster
from godwit.datacluster.dataset import Column
from godwit.datacluster.executions import Outcome
from godwit.errors import UsageError
from godwit.rest import datacluster as api


def datasets_shown(cluster: Cluster) -> api.Datasets:
    storage, feeds = cluster.storage, cluster.landing.feeds()
    shown = []
    for known in storage.definitions.all():
        dataset, files = known.dataset, storage.files.of(known.id)
        shown.append(
            api.DatasetShown(
                name=dataset.name,
                columns=_types(dataset.columns),
                key=dataset.key,
                is_static=dataset.is_static,
                batches=storage.files.progress(known.id).batch,
                rows=sum(file.rows for file in files),
                files=len(files),
                size_bytes=sum(file.size_bytes for file in files),
                waiting_bytes=_waiting_bytes(cluster, dataset.name),
                feeds={feed.name: feed.filter for feed in feeds if feed.dataset == dataset.name},
            )
        )
    return api.Datasets(shown)


def _waiting_bytes(cluster: Cluster, dataset: str) -> int:
    try:
        return cluster.landing.inbox(dataset).waiting_bytes
    except UsageError:  # It is static, or a quarantine.
        return 0


def channels_shown(channels: Channels) -> api.Channels:
    return api.Channels(
        [_shown(channels.status(known.channel.name, executions=1)) for known in channels.all()]
    )


def one_channel_shown(channels: Channels, name: str) -> api.ChannelShown:
    return _shown(channels.status(name))


def _shown(status: ChannelStatus) -> api.ChannelShown:
    channel = status.channel
    return api.ChannelShown(
        name=channel.name,
        parameters=_types(channel.parameters),
        every_s=channel.every_s,
        query=channel.query,
        subscriptions=status.subscriptions,
        last=[_execution(outcome) for outcome in status.last],
    )


def _execution(outcome: Outcome) -> api.ExecutionShown:
    timings = {} if outcome.timings is None else msgspec.structs.asdict(outcome.timings)
    return api.ExecutionShown(
        execution=outcome.number,
        at_s=outcome.moment_s,
        state=outcome.state,
        rows=outcome.rows,
        size_bytes=outcome.bytes,
        took_s=sum(timings.values()) if timings else None,
        timings_s={name.removesuffix("_s"): value for name, value in timings.items()},
        error=outcome.error,
    )


def _types(columns: Sequence[Column]) -> dict[str, str]:
    return {column.name: column.type.value for column in columns}
