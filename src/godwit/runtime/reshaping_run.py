"""Carries a change of the network's shape out: asks brokers until it is done, or given up.

The rules are in migration/reshaping.py.  A broker is asked over HTTP, or by a call in one process.
The record is saved before anything is asked that follows from it; a coordinator that is started
again goes on from the record that it finds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from godwit.broker.routing import EpochStatus
from godwit.broker.stimuli import EpochStimulus
from godwit.errors import GodwitError, UsageError
from godwit.migration.reshaping import Reshaping, ReshapingRecord

log = logging.getLogger("godwit.reshaping")

#: Asks a broker for something.  Raises UsageError if it refuses, and others if it does not answer.
AskBroker: TypeAlias = Callable[[str, EpochStimulus], Awaitable[EpochStatus]]
#: Writes a record down.
SaveRecord: TypeAlias = Callable[[ReshapingRecord], None]

#: How often brokers are asked that have not done yet what they were asked for.
ASK_AGAIN_S = 0.2
#: How long the brokers may build before the change is given up.
BUILD_S = 30.0
#: How long one broker may take to answer.
ANSWER_S = 5.0


async def carry_out(
    record: ReshapingRecord,
    ask: AskBroker,
    save: SaveRecord,
    *,
    brokers: tuple[str, ...] = (),
    build_s: float = BUILD_S,
    ask_again_s: float = ASK_AGAIN_S,
    is_called_off: Callable[[], bool] = lambda: False,
) -> ReshapingRecord:
    """Return when the change is done or given up, by every broker.

    It is given up if `is_called_off` before it is committed.
    """
    reshaping = Reshaping(record, brokers)
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + build_s
    saved = record
    while not reshaping.stage.is_over:
        before = reshaping.stage
        requests = reshaping.requests()
        await asyncio.gather(*(_ask(reshaping, ask, *each) for each in requests))
        if is_called_off():
            reshaping.abort("called off")
        if loop.time() > deadline_s:
            reshaping.abort(f"not built within {build_s:g} s: {', '.join(reshaping.awaited)}")
        if reshaping.record != saved:
            saved = reshaping.record
            save(saved)
            facts = {"change": saved.change, "stage": saved.stage.value, "reason": saved.reason}
            log.info("reshaping", extra=facts)
        if reshaping.stage is before:
            await asyncio.sleep(ask_again_s)
    return reshaping.record


async def _ask(reshaping: Reshaping, ask: AskBroker, broker: str, stimulus: EpochStimulus) -> None:
    try:
        async with asyncio.timeout(ANSWER_S):
            status = await ask(broker, stimulus)
    except UsageError as error:
        reshaping.on_refusal(broker, str(error), stimulus)
    except (GodwitError, OSError) as error:  # It will be asked again.
        log.info("no answer", extra={"broker": broker, "reason": str(error)})
    else:
        reshaping.on_status(broker, status, stimulus)
