"""What an algorithm did to find a plan."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Effort:
    closeness_evaluations: int = 0
    clusters: int = 0
    """Units that the subscriptions were packed in."""
