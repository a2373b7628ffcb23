"""The options of the commands that change a running network, written once.

    @network.command()
    @with_change_options("per_s", "to", *ORDER)
    def drain(broker: Broker, options: ChangeOptions) -> None: ...

The command line has the named options in the place of `options`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Annotated, Any, TypeAlias, get_type_hints

import typer

from godwit.api import coordinator_api
from godwit.api.network_api import ChangeKind, ChangeRequest
from godwit.cli.options import Json, Secret

LISTEN = f"http://{coordinator_api.LISTEN}"

At: TypeAlias = Annotated[
    str,
    typer.Option(envvar="GODWIT_COORDINATOR", help="Address of the coordinator, http://HOST:PORT."),
]

#: Those that every change has.
EVERY = ("dry_run", "take_over", "at", "json", "secret")
#: Those of a change that brokers may be late for.
WAITING = ("reason", "within_s", *EVERY)
#: Those of a change that moves clients.
MOVING = ("per_s", "to", "give_up_s", *WAITING)


@dataclass(frozen=True)
class ChangeOptions:
    per_s: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Clients that are asked to move per second.",
            show_default="moves_per_s of the file",
        ),
    ] = None
    to: Annotated[
        list[str] | None,
        typer.Option(help="Broker that may take the clients; repeat for more; any by default."),
    ] = None
    give_up_s: Annotated[
        float, typer.Option(min=1, help="Clients are given up if none has moved for so long.")
    ] = 15.0
    reason: Annotated[str, typer.Option(help="Why, for /healthz and the history.")] = ""
    within_s: Annotated[
        float, typer.Option(min=1, help="How long a broker may not answer, or not be back.")
    ] = 60.0
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, and do nothing.")
    ] = False
    take_over: Annotated[
        bool,
        typer.Option("--take-over", help="Brokers obey another coordinator, which is gone."),
    ] = False
    at: At = LISTEN
    json: Json = False
    secret: Secret = ""

    def request(self, kind: ChangeKind, brokers: list[str], **facts: Any) -> ChangeRequest:
        """What is asked of the coordinator."""
        return ChangeRequest(kind=kind, brokers=brokers, **self.facts, **facts)

    @property
    def facts(self) -> dict[str, Any]:
        """The fields of a request that are options."""
        return {
            "per_s": self.per_s,
            "to": self.to or [],
            "give_up_s": self.give_up_s,
            "reason": self.reason,
            "within_s": self.within_s,
            "dry_run": self.dry_run,
            "take_over": self.take_over,
        }


def with_change_options(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """The command gets these options as its argument `options`; the others have their defaults."""
    hints = get_type_hints(ChangeOptions, include_extras=True)
    added = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=getattr(ChangeOptions, name),
            annotation=hints[name],
        )
        for name in names
    ]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        own = [each for name, each in signature.parameters.items() if name != "options"]

        @wraps(command)
        def run(**given: Any) -> None:
            options = ChangeOptions(**{name: given.pop(name) for name in names})
            command(options=options, **given)

        parameters = [*own, *added]
        run.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in parameters}
        return run

    return decorated
