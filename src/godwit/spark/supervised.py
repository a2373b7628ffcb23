"""Spark, started again when its Java process has died.

    session    the present one; SparkDownError while there is none
    prepare    settings and data sources: for this session, and for every later one

A thread looks after Java: a process that has ended, or does not answer for STUCK_S, is replaced.
Whatever uses Spark must be able to repeat what it was doing; all state is on disk.

W1  Each start has a number, its generation.  Frames, queries and caches of an earlier one are gone.
W2  Java ends if it runs out of memory, instead of going on without some of its threads.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from pyspark.sql import SparkSession

from godwit.errors import GodwitError
from godwit.protocol.backoff import backoff_s
from godwit.spark.session import forget_session, java_process

log = logging.getLogger("godwit.spark")

LOOK_EVERY_S = 0.5
#: A Java process that does not answer for this time is killed.  A full garbage collection is
#: shorter.
STUCK_S = 60.0
RETRY_S_MAX = 30.0


class SparkDownError(GodwitError):
    """Spark's Java process has died, and is being started again."""


class SupervisedSpark:
    """The Spark session of this process.  May be used from several threads."""

    def __init__(self, start: Callable[[], SparkSession]) -> None:
        self._start = start
        self._prepare: list[Callable[[SparkSession], None]] = []
        self._lock = threading.RLock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._session: SparkSession | None = start()
        self._java = java_process(self._session)
        self._down_since_s: float | None = None
        self.generation = 1
        self.deaths = 0
        """How often Java has died since the start of this process."""

    @property
    def session(self) -> SparkSession:
        with self._lock:
            if self._session is None or not self._is_alive():
                raise SparkDownError("Spark's Java process has died; it is being started again")
            return self._session

    @property
    def trouble(self) -> str | None:
        """Why there is no session; None if there is one."""
        since_s = self._down_since_s
        if since_s is None:
            return None if self._is_alive() else "Java has died"
        return f"Java died {time.monotonic() - since_s:.0f} s ago, and is being started again"

    def is_current(self, generation: int) -> bool:
        """Whether what was made in this generation can still be used (W1)."""
        return self.generation == generation and self._session is not None and self._is_alive()

    def prepare(self, step: Callable[[SparkSession], None]) -> None:
        """Do this now, and after every later start before anything else."""
        with self._lock:
            self._prepare.append(step)
            step(self.session)

    def supervise(self) -> None:
        """Look after Java until `stop`."""
        self._thread = threading.Thread(target=self._watch, name="spark", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()
        with self._lock:
            if self._session is not None and self._is_alive():
                self._session.stop()

    def _is_alive(self) -> bool:
        return self._java is None or self._java.poll() is None

    def _watch(self) -> None:
        failures = 0
        with ThreadPoolExecutor(1, thread_name_prefix="spark-probe") as probes:
            while not self._stopping.wait(_pause_s(failures)):
                if self._session is not None and self._is_alive():
                    self._end_if_stuck(probes)
                    continue
                try:
                    self._restart()
                except Exception:
                    failures += 1
                    log.exception("cannot start Spark")
                    forget_session()
                else:
                    failures = 0

    def _end_if_stuck(self, probes: ThreadPoolExecutor) -> None:
        session, java = self._session, self._java
        if session is None or java is None:
            return
        try:
            probes.submit(_probe, session).result(STUCK_S)
        except TimeoutError:
            log.warning("Java does not answer", extra={"for_s": STUCK_S})
            java.kill()
            java.wait()
        except Exception:  # noqa: BLE001  It has died; the next look will see it.
            log.info("Java does not answer")

    def _restart(self) -> None:
        with self._lock:
            if self._session is not None:
                self.deaths += 1
                self._down_since_s = time.monotonic()
                code = None if self._java is None else self._java.poll()
                log.error("Java has died", extra={"code": code, "deaths": self.deaths})
                self._session = None
                forget_session()
            session = self._start()
            for step in self._prepare:
                step(session)
            self._session, self._java = session, java_process(session)
            self.generation += 1
            self._down_since_s = None
            log.warning("Spark is back", extra={"generation": self.generation})


def _pause_s(failures: int) -> float:
    return backoff_s(failures, first_s=1.0, max_s=RETRY_S_MAX) if failures else LOOK_EVERY_S


def _probe(session: SparkSession) -> None:
    assert session._jvm is not None  # noqa: SLF001  There is no public call as cheap.
    session._jvm.java.lang.System.nanoTime()  # noqa: SLF001
