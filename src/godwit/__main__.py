"""`python -m godwit` is `godwit`."""

from __future__ import annotations

from godwit.cli import main

main()
