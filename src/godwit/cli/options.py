"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from godwit.runtime.logs import LogFormat

Secret: TypeAlias = Annotated[
    str, typer.Option(envvar="GODWIT_SECRET", help="Secret that the servers of a network share.")
]
Config: TypeAlias = Annotated[
    Path | None, typer.Option(help="File with settings; options on the command line override it.")
]
LogLevel: TypeAlias = Annotated[
    str, typer.Option(help="Lowest level to log: debug, info, warning or error.")
]
LogForm: TypeAlias = Annotated[LogFormat, typer.Option(help="Form of log lines: text or json.")]
Leash: TypeAlias = Annotated[bool, typer.Option(help="Stop when standard input is closed.")]
Json: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, for other programs.")]
