"""A plan of the allocator as the change that carries it out."""

from __future__ import annotations

from collections.abc import Collection

import msgspec

from godwit.api.network_api import ChangeKind, ChangeRequest


class PlannedLoad(msgspec.Struct, frozen=True):
    id: str
    output_bytes_s: float = 0.0
    input_per_s: float = 0.0


class PlanToApply(msgspec.Struct, frozen=True):
    """What is read of a plan of `godwit croc plan`."""

    links: list[tuple[str, str]]
    root: str
    clients: dict[str, str] = {}
    brokers: list[PlannedLoad] = []

    @property
    def used(self) -> list[str]:
        """The brokers that it needs, the root first."""
        ends = [end for link in self.links for end in link]
        return list(dict.fromkeys([self.root, *(each.id for each in self.brokers), *ends]))

    def with_more(self, brokers: Collection[str]) -> PlanToApply:
        """The plan with some brokers that it does not need, as leaves of the root."""
        links = [*self.links, *((broker, self.root) for broker in brokers)]
        return msgspec.structs.replace(self, links=links)


def request_of(plan: PlanToApply, **facts: object) -> ChangeRequest:
    """The change that carries out a plan."""
    request = ChangeRequest(
        kind=ChangeKind.ALLOCATE,
        brokers=plan.used,
        link=plan.root,
        links=plan.links,
        clients=plan.clients,
        outputs={each.id: each.output_bytes_s for each in plan.brokers},
    )
    return msgspec.structs.replace(request, **facts)
