"""The distribution: its name, its version, and how to install what is optional.

The import is `godwit`; on Python's registry that name belongs to another project.  Until this one
is published, a checkout or a wheel is what can be installed, and messages say so.
"""

from __future__ import annotations

NAME = "godwit-pubsub"
VERSION = "0.1.0"


def install_hint(extra: str) -> str:
    """What to type to get the packages of an extra."""
    return f"pip install 'path/to/godwit[{extra}]', from a checkout, or the same with a wheel"
