"""The settings of a mesh, as a network file has them: `delta`, `strategy`, `order` and others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import msgspec

from godwit.errors import UsageError
from godwit.overlay.mesh.master_overlay_map import DELTA_MAX
from godwit.overlay.mesh.strategies import ForwardingStrategy


class MeshSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    delta: Annotated[int, msgspec.Meta(ge=1, le=DELTA_MAX)] = 4
    """Links within which a broker knows the primary network (the paper's Delta)."""

    strategy: ForwardingStrategy = ForwardingStrategy.SH
    order: Literal["publisher", "none"] = "publisher"
    """With "none", publications of a publisher may overtake each other; none waits."""

    fanout: Annotated[int, msgspec.Meta(ge=0)] = 10
    """Primary and soft links of a broker, at most; primary ones are never given up for it."""

    candidates: Annotated[int, msgspec.Meta(ge=0)] = 10
    """Links that are considered beside these (the paper's maxlinks less fanout)."""

    period_s: Annotated[float, msgspec.Meta(gt=0)] = 20.0
    """How often the links are evaluated (the paper's T)."""

    load_threshold: Annotated[float, msgspec.Meta(ge=0)] = 0.8
    """Load of a broker above which bypassing it counts for more (the paper's loadThreshold)."""

    threshold: Annotated[float, msgspec.Meta(ge=0)] = 0.8
    """SH: use of the output above which S1 takes the place of S2."""

    margin: Annotated[float, msgspec.Meta(ge=0)] = 0.05
    """SH: how far beyond the threshold the use has to be for a change."""

    @property
    def keeps_order(self) -> bool:
        return self.order == "publisher"


def mesh_settings_of(settings: Mapping[str, Any]) -> MeshSettings:
    try:
        return msgspec.convert(dict(settings), MeshSettings)
    except msgspec.ValidationError as error:
        raise UsageError(f"the settings of the mesh: {error}") from None
