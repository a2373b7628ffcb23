"""For all tests, and the processes that they start."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

#: Tests do not fail because the machine is slow.
settings.register_profile("godwit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("godwit")

#: What Spark does here takes seconds: Java should not spend them on compiling it well, nor on
#: verifying what compilers wrote.
JAVA_IN_HASTE = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
os.environ.setdefault("JDK_JAVA_OPTIONS", " ".join(JAVA_IN_HASTE))
#: Each of hundreds of processes would compile Godwit anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
#: A shell that runs the tests in the background lets them ignore Ctrl-C, and so would the processes
#: that they start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a Spark session come first.

    A worker of xdist begins with the first tests of its part, and others steal from the end.  So
    one worker runs nearly all of these, and Java has to become warm only once.
    """
    items.sort(key=lambda item: "spark" not in getattr(item, "fixturenames", ()))
