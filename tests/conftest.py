"""For all tests, and the processes that they start."""

from __future__ import annotations

import os

#: What Spark does here takes seconds: Java should not spend them on compiling it well.
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
#: Each of hundreds of processes would compile Godwit anew.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
