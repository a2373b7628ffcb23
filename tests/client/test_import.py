"""`import godwit` is for applications: it brings the client, and no server, web or data library."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import godwit
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""
FOREIGN = ("httpx", "pandas", "prometheus_client", "pyarrow", "pyspark", "rich", "starlette",
           "typer", "uvicorn", "uvloop")  # fmt: skip


def test_import_godwit_is_light() -> None:
    command = [sys.executable, "-c", PROGRAM, *FOREIGN]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert done.stdout.split() == []
