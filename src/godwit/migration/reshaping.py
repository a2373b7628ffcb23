"""A change of the network's shape, as its coordinator drives it.  Pure.

    BUILDING    every broker builds the next epoch        all have built it -> COMMITTED
                one has lost it, refuses, or it is
                called off                                -> ABORTING
    COMMITTED   every broker flips                        all use the next epoch alone -> DONE
    ABORTING    every broker drops what it has built      all have -> ABORTED

The record is all that has to survive a crash of the coordinator.  It is written before the requests
that follow from it are sent: a coordinator that is started again asks every broker again, and every
request may be repeated.  A change that is committed goes forward, whatever fails.

H1  No broker is asked to flip before the record says COMMITTED, and none to abort after that.
H2  An epoch has a number that no change before it had, so that brokers refuse what is outdated.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import msgspec
from msgspec.structs import replace

from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import AbortEpoch, BuildEpoch, EpochStimulus, FlipEpoch
from godwit.content.link_messages import NetworkShape
from godwit.errors import UsageError
from godwit.overlay.clusters.cluster_structure import structure_of
from godwit.overlay.epochs.epoch_phases import EpochPhase
from godwit.overlay.topology import Topology, topology


class ReshapingStage(Enum):
    BUILDING = "building"
    COMMITTED = "committed"
    ABORTING = "aborting"
    DONE = "done"
    ABORTED = "aborted"

    @property
    def is_over(self) -> bool:
        return self in (ReshapingStage.DONE, ReshapingStage.ABORTED)

    @property
    def is_committed(self) -> bool:
        return self in (ReshapingStage.COMMITTED, ReshapingStage.DONE)


class ReshapingRecord(msgspec.Struct, frozen=True, kw_only=True):
    """What a coordinator keeps of a change."""

    change: str
    shape: NetworkShape
    stage: ReshapingStage = ReshapingStage.BUILDING
    reason: str = ""
    """Why it was given up."""


def shape_of(
    target: Topology,
    epoch: int,
    addresses: Mapping[str, str] | None = None,
    *,
    follows: int = 0,
    overlay: str = "",
    settings: Mapping[str, Any] | None = None,
) -> NetworkShape:
    """A topology as the shape of an epoch; UsageError if it is not a tree, nor of clusters."""
    if settings is not None and "clusters" in settings:
        if structure_of(settings).topology.links != target.links:
            raise UsageError("the links of the next shape are not those of its clusters")
    elif not target.is_tree:
        raise UsageError("the next shape must be a tree that links all its brokers")
    return NetworkShape(
        epoch=epoch,
        follows=follows,
        links=tuple(sorted(target.links)),
        addresses=dict(addresses or {}),
        overlay=overlay,
        settings=dict(settings or {}),
    )


def topology_of(shape: NetworkShape) -> Topology:
    return topology(shape.brokers, shape.links)


class Reshaping:
    """One change.  Pass it the answers of brokers, and ask what it requests."""

    def __init__(self, record: ReshapingRecord, brokers: tuple[str, ...] = ()) -> None:
        """`brokers` if they are not those of the shape: a single one has no link."""
        self.record = record
        self.brokers = brokers or tuple(record.shape.brokers)
        self._phases: dict[str, str] = {}
        """What each broker has said last, in this stage."""
        self._begun: set[str] = set()
        """Brokers that have begun to build."""

    @property
    def stage(self) -> ReshapingStage:
        return self.record.stage

    @property
    def awaited(self) -> list[str]:
        """Brokers that have not done what this stage asks for."""
        return [broker for broker in self.brokers if broker not in self._phases]

    def requests(self) -> list[tuple[str, EpochStimulus]]:
        """What to ask of which broker now; it may be asked again until it is done."""
        stimulus = self._request()
        return [] if stimulus is None else [(broker, stimulus) for broker in self.awaited]

    def _request(self) -> EpochStimulus | None:
        change, shape = self.record.change, self.record.shape
        match self.stage:
            case ReshapingStage.BUILDING:
                return BuildEpoch(change, shape)
            case ReshapingStage.COMMITTED:
                return FlipEpoch(change, shape)
            case ReshapingStage.ABORTING:
                return AbortEpoch(change, shape.epoch)
            case _:
                return None

    def on_status(self, broker: str, status: EpochStatus, asked: EpochStimulus) -> None:
        """What a broker says after a request; an answer to one of an earlier stage says nothing."""
        if self.stage.is_over or asked != self._request():
            return
        if self._has_done(broker, status):
            self._phases[broker] = status.phase
        if not self.awaited:
            self._enter(_NEXT[self.stage])

    def _has_done(self, broker: str, status: EpochStatus) -> bool:
        epoch = self.record.shape.epoch
        is_ours = status.change == self.record.change and status.next_epoch == epoch
        match self.stage:
            case ReshapingStage.BUILDING:
                if is_ours:
                    self._begun.add(broker)
                elif broker in self._begun:
                    self.abort(f"{broker} has failed and lost what it had built")
                return is_ours and status.phase == EpochPhase.BUILT.value
            case ReshapingStage.COMMITTED:
                return status.epoch >= epoch and status.phase == EpochPhase.STEADY.value
            case _:
                return not is_ours

    def on_refusal(self, broker: str, reason: str, asked: EpochStimulus) -> None:
        """A broker cannot do what it was asked for."""
        if self.stage is ReshapingStage.BUILDING and asked == self._request():
            self.abort(f"{broker}: {reason}")

    def abort(self, reason: str) -> bool:
        """Give the change up; False if it is committed, and goes forward."""
        if self.stage is ReshapingStage.BUILDING:
            self._enter(ReshapingStage.ABORTING, reason)
        return self.stage in (ReshapingStage.ABORTING, ReshapingStage.ABORTED)

    def _enter(self, stage: ReshapingStage, reason: str = "") -> None:
        self.record = replace(self.record, stage=stage, reason=reason or self.record.reason)
        self._phases.clear()


_NEXT = {
    ReshapingStage.BUILDING: ReshapingStage.COMMITTED,
    ReshapingStage.COMMITTED: ReshapingStage.DONE,
    ReshapingStage.ABORTING: ReshapingStage.ABORTED,
}
