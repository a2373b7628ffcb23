"""A service beside the brokers, as a process on this machine: data cluster or coordinator.

    async with Service("datacluster", "--folder", "data") as running:
        running.url

It is on a leash, as the broker processes are: it does not outlive us.  The coordinator is forked,
as they are.  The data cluster is not: Spark starts Java and Python, and sees a process as usual.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from types import TracebackType
from typing import Self

from godwit.errors import GodwitError, UsageError
from godwit.runtime.forks import shared_forks
from godwit.runtime.processes import ANSWERS, SERVING_MODULES, AnyProcess, ended, let_go

#: Spark starts slowly, more so on a busy machine.
READY_S = 180.0
#: Services that are forked, and what they import.
FORKED = {
    "coordinator": ("godwit.cli.coordinator", "godwit.coordinator.server", *SERVING_MODULES),
}


class Service:
    def __init__(
        self,
        command: str,
        *arguments: str,
        log_level: str = "warning",
        ready_s: float = READY_S,
    ) -> None:
        """Command and arguments as on the command line of `godwit`; `ready_s` is for its start."""
        self._command = command
        self._arguments = arguments
        self._log_level = log_level
        self._ready_s = ready_s
        self._process: AnyProcess | None = None
        self._code = 0
        """How it ended, once it has."""
        self.url = ""
        """http://HOST:PORT, once it has started."""

    @property
    def is_running(self) -> bool:
        """Whether there is a process; it may not answer yet."""
        return self._process is not None

    @property
    def pid(self) -> int:
        return self._running().pid

    def _running(self) -> AnyProcess:
        if self._process is None:
            raise UsageError(f"godwit {self._command} does not run; start it first")
        return self._process

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def start(self) -> None:
        """Start it, and wait until it answers."""
        try:
            async with asyncio.timeout(self._ready_s):
                process = self._process = await self._launched()
                self.url = await self._answering(process)
        except BaseException as error:
            await self.stop()
            if isinstance(error, TimeoutError):
                late = f"godwit {self._command} has not answered within {self._ready_s:g} s"
                raise GodwitError(late) from None
            raise

    async def _launched(self) -> AnyProcess:
        options = ("--leash", "--log-level", self._log_level)
        arguments = (self._command, *self._arguments, *options)
        if self._command in FORKED:
            return await shared_forks().start(arguments, modules=FORKED[self._command])
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "godwit", *arguments),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us: we stop it in good order.
        )

    async def _answering(self, process: AnyProcess) -> str:
        assert process.stdout is not None
        async for line in process.stdout:
            if ANSWERS.encode() in line:
                return line.decode().split()[-1]
        code = await process.wait()
        raise GodwitError(f"godwit {self._command} ended with code {code}")

    async def wait(self) -> int:
        """Wait until it ends by itself; the answer is its exit code."""
        process = self._running()
        code = await process.wait()
        if self._process is process:
            self._process, self._code = None, code
            let_go(process)
        return code

    async def kill(self) -> None:
        """End it as a crash would."""
        process, self._process = self._running(), None
        process.send_signal(signal.SIGKILL)
        await process.wait()
        let_go(process)

    async def stop(self) -> int:
        """Stop it gracefully; the answer is its exit code."""
        process, self._process = self._process, None
        if process is None:
            return self._code
        with contextlib.suppress(ProcessLookupError):
            process.send_signal(signal.SIGTERM)
        return await ended(process)
