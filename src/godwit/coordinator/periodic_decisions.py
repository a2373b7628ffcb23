"""What a coordinator decides by itself, from time to time; the last decision in words."""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod

from godwit.coordinator.coordinator_core import Coordinator
from godwit.errors import GodwitError
from godwit.protocol.supervision import survive


class PeriodicDecisions(ABC):
    def __init__(self, core: Coordinator, name: str, every_s: float) -> None:
        """`name` is the key in `Coordinator.says`; changes have it in the history."""
        self._core = core
        self._name = name
        self._every_s = every_s
        self._log = logging.getLogger(f"godwit.{name}")

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await asyncio.sleep(self._every_s)
            with survive(self._log, "failed"):
                await self.look()

    async def look(self) -> None:
        """Decide once."""
        try:
            says = await self._decided()
        except GodwitError as error:
            says = f"no decision: {error}"
        if says and says != self._core.says[self._name]:
            self._log.info("decided", extra={"why": says})
        self._core.says[self._name] = says

    @abstractmethod
    async def _decided(self) -> str:
        """In words; empty if there is nothing to decide."""
