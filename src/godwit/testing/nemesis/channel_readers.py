"""Subscribers to a channel that check what they receive: every row once, executions in order."""

from __future__ import annotations

from dataclasses import dataclass, field

from godwit.client import ChannelEvents

DATASET = "CREATE DATASET Numbers (n BIGINT, kind INT, text STRING)"
ADVERTISED = "class = 'N' and n is a number and kind is a number and text is a string"
FEED = f'CREATE FEED numbers FROM FILTER "{ADVERTISED}" INTO Numbers'
CHANNEL = """CREATE CHANNEL OfKind(wanted INT) CONTINUOUS AS
SELECT n, text FROM NEW Numbers WHERE kind = :wanted"""
KINDS = 3


@dataclass(slots=True)
class ChannelReader:
    """A subscriber to the records of one kind, and all that it received."""

    kind: int
    events: ChannelEvents
    received: list[tuple[int, int]] = field(default_factory=list)
    """Execution and number."""

    async def read(self) -> None:
        async for event in self.events:
            number = event.content["n"]
            assert isinstance(number, int)
            self.received.append((event.execution, number))

    def faults(self, published: int) -> list[str]:
        """What is wrong, if 0, 1, 2, ... were published, each of the next kind."""
        wanted = list(range(self.kind, published, KINDS))
        numbers = [number for _, number in self.received]
        found = []
        if missing := set(wanted) - set(numbers):
            found.append(f"kind {self.kind}: {len(missing)} missing, the first is {min(missing)}")
        if len(numbers) != len(set(numbers)):
            found.append(f"kind {self.kind}: {len(numbers) - len(set(numbers))} received twice")
        if surplus := set(numbers) - set(wanted):
            found.append(f"kind {self.kind}: {len(surplus)} not subscribed to")
        if [n for _, n in sorted(self.received)] != sorted(numbers):
            found.append(f"kind {self.kind}: executions are not in the order of publishing")
        if [execution for execution, _ in self.received] != sorted(e for e, _ in self.received):
            found.append(f"kind {self.kind}: executions are out of order")
        return found
