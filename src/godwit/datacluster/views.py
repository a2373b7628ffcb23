"""Datasets and channels as operators see them: the views of api/datacluster_api.py."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from godwit.api import datacluster_api as api
from godwit.datacluster.channels.channel_service import ChannelService, ChannelStatus
from godwit.datacluster.channels.executions import ExecutionOutcome
from godwit.datacluster.cluster import Cluster
from godwit.datacluster.model.dataset import Column
from godwit.errors import UsageError


def dataset_views(cluster: Cluster) -> api.Datasets:
    storage, feeds = cluster.storage, cluster.datasets.feeds()
    views = []
    rows = {
        known.id: sum(file.rows for file in storage.files.of(known.id))
        for known in storage.definitions.all()
    }
    quarantined = {known.quarantine_of: rows[known.id] for known in storage.definitions.all()}
    for known in storage.definitions.all():
        dataset, files = known.dataset, storage.files.of(known.id)
        views.append(
            api.DatasetView(
                name=dataset.name,
                columns=_types(dataset.columns),
                key=dataset.key,
                is_static=dataset.is_static,
                batches=storage.files.progress(known.id).batch,
                rows=rows[known.id],
                files=len(files),
                size_bytes=sum(file.size_bytes for file in files),
                waiting_bytes=_waiting_bytes(cluster, dataset.name),
                feeds={feed.name: feed.filter for feed in feeds if feed.dataset == dataset.name},
                quarantined=quarantined.get(known.id, 0),
                rejected=_rejected(cluster, dataset.name),
            )
        )
    return api.Datasets(views)


def _waiting_bytes(cluster: Cluster, dataset: str) -> int:
    try:
        return cluster.datasets.inbox(dataset).waiting_bytes
    except UsageError:  # A static dataset or a quarantine has no inbox.
        return 0


def _rejected(cluster: Cluster, dataset: str) -> list[api.RejectedRecord]:
    try:
        found = list(cluster.datasets.inbox(dataset).rejections)
    except UsageError:
        return []
    return [api.RejectedRecord(*each) for each in reversed(found)]


def channel_views(channels: ChannelService) -> api.ChannelList:
    return api.ChannelList(
        [_view(channels.status(known.channel.name, executions=1)) for known in channels.all()]
    )


def channel_view(channels: ChannelService, name: str) -> api.ChannelView:
    return _view(channels.status(name))


def _view(status: ChannelStatus) -> api.ChannelView:
    channel = status.channel
    return api.ChannelView(
        name=channel.name,
        parameters=_types(channel.parameters),
        every_s=channel.every_s,
        query=channel.query,
        subscriptions=status.subscriptions,
        unread_batches=status.unread_batches,
        last=[_execution(outcome) for outcome in status.last],
    )


def _execution(outcome: ExecutionOutcome) -> api.ExecutionView:
    timings = {} if outcome.timings is None else msgspec.structs.asdict(outcome.timings)
    return api.ExecutionView(
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
