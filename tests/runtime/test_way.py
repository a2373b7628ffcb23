"""A publication goes through one broker as ARCHITECTURE.md says: file by file, in one direction."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from tests.asynchronous import run
from tests.test_house_rules import PACKAGE, way_of_a_publication

from godwit.broker.stimuli import LocalClient
from godwit.overlay.topology import chain
from godwit.testing.memory_network import MemoryNetwork

#: Beside the way: the decoder is C; meters are fed, and acknowledgements follow what was written.
NOT_CALLED = {"protocol/frames.py"}
MEASURING = {"broker/meters.py", "runtime/live_meters.py"}
CLOCK = "now_s"
LIBRARIES = ("content/", "matching/")
WANTED = "x > 0 and name contains 'b'"


class Step(NamedTuple):
    """A call from one file of ours to another."""

    caller: str
    callee: str
    function: str
    is_generator: bool
    """Resumed by whoever takes the next value: that is not where its code is referred to."""


class Follower:
    """Notes calls between files of the package."""

    def __init__(self) -> None:
        self.steps: list[Step] = []

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        callee = _file(frame)
        if event != "call" or callee is None:
            return
        back = frame.f_back
        while back is not None and _file(back) is None:
            back = back.f_back
        caller = None if back is None else _file(back)
        code = frame.f_code
        is_generator = bool(code.co_flags & inspect.CO_GENERATOR)
        self.steps.append(Step(caller or "", callee, code.co_name, is_generator))


def _file(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    name = path.relative_to(PACKAGE).as_posix() if path.is_relative_to(PACKAGE) else None
    return None if name is None or name.startswith("testing/") else name


def followed() -> list[Step]:
    """A publication of Paul, to Ann at the same broker, and to Bob at the next."""
    follower = Follower()

    async def scenario() -> None:
        async with (
            MemoryNetwork(chain(2)) as network,
            network.connect("B1", name="ann") as ann,
            network.connect("B2", name="bob") as bob,
            network.connect("B1", name="paul") as paul,
            ann.subscribe(WANTED) as to_ann,
            bob.subscribe(WANTED) as to_bob,
        ):
            await to_ann.in_effect()
            await to_bob.in_effect()
            await paul.advertise("x is a number and name is present")
            connection = network.nodes["B1"].ports[LocalClient("paul")].connection
            assert connection is not None
            read = connection.data_received

            def read_and_follow(data: bytes) -> None:
                if any(step.function == "receive_run" for step in follower.steps):
                    return read(data)
                follower.steps.clear()
                sys.setprofile(follower)
                try:
                    read(data)
                finally:
                    sys.setprofile(None)

            connection.data_received = read_and_follow  # type: ignore[method-assign]
            await paul.publish({"x": 1, "name": "abc"})
            assert (await anext(to_ann)).content == (await anext(to_bob)).content

    run(scenario())
    writes = [n for n, step in enumerate(follower.steps) if _is_last(step)]
    assert len(writes) == 2, "two copies leave"
    return [
        step
        for step in follower.steps[: writes[-1]]
        if step.callee not in MEASURING and step.function != CLOCK and not _is_last(step)
    ]


def _is_last(step: Step) -> bool:
    return (step.callee, step.function) == ("protocol/connection.py", "write")


def test_a_publication_goes_through_a_broker_in_one_direction() -> None:
    way, steps = way_of_a_publication(), followed()
    called = {step.callee for step in steps}
    inside = {name for name in called if name.startswith(LIBRARIES) and name not in way}
    assert called - inside == set(way) - NOT_CALLED
    for step in steps:
        if step.callee in inside:
            assert step.caller.startswith(LIBRARIES), f"{step.caller} needs {step.callee}"
        elif step.caller in way and not step.is_generator:
            assert way.index(step.caller) <= way.index(step.callee), f"{step} goes back"
