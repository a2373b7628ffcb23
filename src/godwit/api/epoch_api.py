"""HTTP operations of a broker: a coordinator changes the shape of the network.

    GET  /epoch                                                  -> epoch, phase, change
    POST /epoch  {"step": "build", "change": "c1", "fencing": 7,
                  "shape": {"epoch": 3, "follows": 2, "links": [["B1", "B2"], ...],
                            "addresses": {"B1": "godwit://...", ...}}}   -> the same

Steps are build, flip and abort, in the order of docs/reshaping.md.  `adopt` is for a broker that is
started while others use that shape: it takes it for its own.  Every request may be repeated.
A broker that cannot do what it is asked for answers 409, with the reason; so it does if another
coordinator, with a higher fencing number, has asked it before.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import AbortEpoch, AdoptEpoch, BuildEpoch, EpochStimulus, FlipEpoch
from godwit.content.link_messages import NetworkShape
from godwit.content.wired import ShortText
from godwit.http.operations import Nothing, Operation

EpochStep: TypeAlias = Literal["build", "flip", "abort", "adopt"]


class ChangeEpoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    change: ShortText
    step: EpochStep
    shape: NetworkShape
    fencing: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Rises with each coordinator that takes over."""

    @property
    def stimulus(self) -> EpochStimulus:
        if self.step == "build":
            return BuildEpoch(self.change, self.shape)
        if self.step == "flip":
            return FlipEpoch(self.change, self.shape)
        if self.step == "adopt":
            return AdoptEpoch(self.change, self.shape)
        return AbortEpoch(self.change, self.shape.epoch)


def change_request(stimulus: EpochStimulus, shape: NetworkShape, fencing: int) -> ChangeEpoch:
    """What a coordinator sends for this."""
    step: EpochStep = "abort"
    if isinstance(stimulus, BuildEpoch):
        step = "build"
    elif isinstance(stimulus, FlipEpoch):
        step = "flip"
    elif isinstance(stimulus, AdoptEpoch):
        step = "adopt"
    return ChangeEpoch(change=stimulus.change, step=step, shape=shape, fencing=fencing)


READ_EPOCH = Operation(
    "GET", "/epoch", Nothing, EpochStatus, "The shape in use, and how far a change is."
)
CHANGE_EPOCH = Operation(
    "POST",
    "/epoch",
    ChangeEpoch,
    EpochStatus,
    "Build the next shape of the network, flip to it, give it up, or adopt the present one.",
    is_guarded=True,
)
