"""Which soft links a broker of a mesh should have (Publiy, section 6).

soft_link_gains.py    the gain of a link, and which links to keep, open and close
soft_link_manager.py  the module: counts, exchanges loads and round trips, decides every period
"""

from __future__ import annotations

from collections.abc import Callable

from godwit.overlay.mesh.mesh_settings import MeshSettings
from godwit.policies.soft_links.soft_link_manager import SoftLinkManager


def modules(settings: MeshSettings) -> Callable[[str], list[SoftLinkManager]]:
    """Makes the module of a broker, by its name."""
    return lambda _broker: [SoftLinkManager(settings)]
