"""CROC: gathers the profiles of a whole network from any of its brokers.

Paper    Cheung, thesis 6.1.1: an external client that connects to any broker.
Departs  1. It calls HTTP operations of that broker instead of publishing: see
            docs/decisions/0025-gathering.md.
         2. Which broker is missing is found here, from who was asked and who answered; brokers that
            are known beforehand, as from a network file, are missing too if no one asked them.

    answers = await gather("http://10.0.0.1:8401")
    if not answers.missing:
        document = answers.gathered()
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from godwit.api.gathering_api import (
    BEGIN_GATHERING,
    END_GATHERING,
    FETCH_PAGES,
    BeginGathering,
    EndGathering,
    FetchPages,
)
from godwit.errors import GodwitError
from godwit.http.http_client import HttpClient
from godwit.policies.allocation.cbc_gathering import SILENCE_S
from godwit.policies.allocation.cbc_pages import Answers

#: The wait between two fetches: the first, and the longest.
FETCH_S_MIN, FETCH_S_MAX = 0.01, 0.5


async def gather(
    url: str,
    *,
    secret: str = "",
    silence_s: float = SILENCE_S,
    expected: Iterable[str] = (),
    on_progress: Callable[[Answers], None] = lambda _answers: None,
) -> Answers:
    """Ask the broker at this HTTP address, and with it all others.

    A broker that says nothing for `silence_s` is missing.  Raises RestError if the broker refuses,
    UnreachableError if it does not answer, or fails in the middle.
    """
    answers = Answers(expected)
    async with HttpClient(url, secret=secret) as broker:
        id = (await broker.call(BEGIN_GATHERING, BeginGathering(silence_s=silence_s))).id
        try:
            await _fetch_all(broker, id, answers, on_progress)
        finally:
            with contextlib.suppress(GodwitError):  # It ends by itself.
                await broker.call(END_GATHERING, EndGathering(id=id))
    return answers


async def _fetch_all(
    broker: HttpClient, id: str, answers: Answers, on_progress: Callable[[Answers], None]
) -> None:
    received, wait_s = 0, FETCH_S_MIN
    while True:
        found = await broker.call(FETCH_PAGES, FetchPages(id=id, received=received))
        for page in found.pages[received - found.first :]:
            answers.add(page)
        arrived = found.first + len(found.pages)
        if arrived > received:
            received, wait_s = arrived, FETCH_S_MIN
            on_progress(answers)
        elif found.is_complete:
            return
        else:
            await asyncio.sleep(wait_s)
            wait_s = min(2 * wait_s, FETCH_S_MAX)
