"""Stories of a live network: finds the publisher and the subscriber, and asks brokers over HTTP."""

from __future__ import annotations

from godwit.api.dashboard_api import EndReason, PublicationStory, WhyQuestion
from godwit.api.routing_api import (
    CLIENT,
    EXPLAIN_HOP,
    ClientAccount,
    ClientQuestion,
    HopAccount,
    HopQuestion,
)
from godwit.content.text import read_record
from godwit.errors import UnreachableError, UsageError
from godwit.web.gatherer import Gatherer
from godwit.web.stories import StoryQuestion, tell_story

#: A broker may have a long table to look through.
EXPLAIN_S = 15.0


class LiveStories:
    def __init__(self, gatherer: Gatherer) -> None:
        self._gatherer = gatherer

    async def why(self, request: WhyQuestion) -> PublicationStory:
        record = read_record(request.record)
        overview = await self._gatherer.now()
        broker = request.broker or await self._home(request.publisher)
        if not broker:
            says = (
                f"{request.publisher} is not a client of any broker that answers."
                if request.publisher
                else "say who publishes it, or at which broker"
            )
            if not request.publisher:
                raise UsageError(says)
            return PublicationStory(
                record=record,
                publisher=request.publisher,
                publisher_broker="",
                hops=[],
                delivered_to={},
                to=request.to,
                reason=EndReason.UNKNOWN_PUBLISHER,
                says=[says],
            )
        question = StoryQuestion(
            record=record,
            publisher=request.publisher,
            publisher_broker=broker,
            to=request.to,
            to_broker=await self._home(request.to),
            links=[(link.one, link.other) for link in overview.links],
        )
        return await tell_story(question, self._ask)

    async def _ask(self, broker: str, question: HopQuestion) -> HopAccount:
        url = self._gatherer.urls().get(broker)
        if url is None:
            raise UnreachableError(f"broker {broker} has no known HTTP address")
        return await self._gatherer.calls.call(url, EXPLAIN_HOP, question, answer_s=EXPLAIN_S)

    async def _home(self, client: str) -> str:
        """The broker of a client: one where it is connected, if there are several; "" if none."""
        found = [each for each in await self.accounts(client) if each.state is not None]
        found.sort(key=lambda each: each.state is not None and not each.state.is_connected)
        return found[0].broker if found else ""

    async def accounts(self, client: str) -> list[ClientAccount]:
        """What each broker knows of a client."""
        if not client:
            return []
        answers = await self._gatherer.calls.call_all(
            self._gatherer.urls(), CLIENT, ClientQuestion(client)
        )
        return [each for each in answers.values() if isinstance(each, ClientAccount)]
