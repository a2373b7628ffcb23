"""Where `godwit croc` gets profiles from: a file, a running network, or a trace."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import TypeVar

import msgspec
import typer
import uvloop

from godwit.cli.extras import needs
from godwit.cli.load_balancing import http_url
from godwit.errors import UnreachableError, UsageError
from godwit.policies.allocation.cbc_pages import UNLIMITED_BYTES_S, Answers
from godwit.policies.allocation.gathered import Gathered, GatheredBroker
from godwit.protocol.addresses import address
from godwit.runtime.settings import NetworkSettings, load_network

S = TypeVar("S", bound=msgspec.Struct)


def read_profiles(path: Path) -> Gathered:
    """A file as `godwit croc gather` writes it; errors name the file and the place in it."""
    return _decoded(path, Gathered)


def _decoded(path: Path, kind: type[S]) -> S:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} is not JSON of the form that is needed: {error}") from None


def with_missing_refused(gathered: Gathered, *, is_allowed: bool) -> Gathered:
    """Nothing is planned without a broker that has not answered, unless the user wants it."""
    if gathered.missing and not is_allowed:
        raise UsageError(
            f"no answer from: {', '.join(gathered.missing)}; a plan would not know their clients."
            " Gather again when they are back, or plan --without-missing"
        )
    return gathered


def with_stopped(gathered: Gathered, where: Sequence[str]) -> Gathered:
    """Brokers of the network file that do not run may be used, too; as fast as the others."""
    files = [text for text in where if "://" not in text]
    if not files:
        raise UsageError("--with-stopped: name the network file, which has all brokers")
    known = gathered.brokers
    if not known:
        return gathered
    running = {each.id for each in known}
    stopped = [each for each in load_network(Path(files[0])).broker if each.id not in running]
    added = [
        GatheredBroker(
            id=each.id,
            output_bandwidth_bytes_s=min(each.output_bandwidth_bytes_s, UNLIMITED_BYTES_S),
            matching_delay_base_s=fmean(k.matching_delay_base_s for k in known),
            matching_delay_per_subscription_s=fmean(
                k.matching_delay_per_subscription_s for k in known
            ),
        )
        for each in stopped
    ]
    ids = {each.id for each in stopped}
    missing = tuple(name for name in gathered.missing if name not in ids)
    return msgspec.structs.replace(gathered, brokers=(*known, *added), missing=missing)


# -- a running network -------------------------------------------------------------------------


def gather_live(where: Sequence[str], *, timeout_s: float, secret: str) -> Gathered:
    """From the first broker that answers, of a network file or of addresses."""
    urls = [text for text in where if "://" in text]
    files = [text for text in where if "://" not in text]
    expected: list[str] = []
    if len(files) > 1 or (files and urls):
        raise UsageError("name one network file, or HTTP addresses of brokers, not both")
    if files:
        network = load_network(Path(files[0]))
        urls = _urls(network, files[0])
        expected = [broker.id for broker in network.broker]
        secret = secret or network.secret
    progress = _Progress()
    try:
        answers = uvloop.run(_first_answer(urls, timeout_s, secret, expected, progress))
    finally:
        progress.end()
    for broker, count in answers.dropped.items():
        typer.echo(
            f"{broker} has dropped {count} bit vectors: its load is underestimated; raise"
            " `vectors_max` in [profiling]",
            err=True,
        )
    return answers.gathered()


def _urls(network: NetworkSettings, file: str) -> list[str]:
    if network.profiling is None or not network.profiling.enabled:
        raise UsageError(
            f"{file} has no table [profiling]: its brokers do not record what they deliver"
        )
    known = [
        each for each in network.broker if each.http is not None and address(each.http)[1] != 0
    ]
    if not known:
        raise UsageError(
            f"{file}: no broker has `http` with a port; set it for one of them and restart it, or"
            " name the address that a broker has printed"
        )
    return [http_url(each) for each in known]


async def _first_answer(
    urls: Sequence[str],
    timeout_s: float,
    secret: str,
    expected: Sequence[str],
    on_progress: Callable[[Answers], None],
) -> Answers:
    from godwit.client.croc_client import gather  # noqa: PLC0415  Few commands need HTTP.

    unreachable: UnreachableError | None = None
    for url in urls:
        try:
            return await gather(
                url,
                secret=secret,
                silence_s=timeout_s,
                expected=expected,
                on_progress=on_progress,
            )
        except UnreachableError as error:
            unreachable = unreachable or error
    assert unreachable is not None
    raise unreachable


class _Progress:
    """A line that changes, on a terminal only."""

    def __init__(self) -> None:
        self._is_shown = sys.stderr.isatty()
        self._said = ""

    def __call__(self, answers: Answers) -> None:
        said = f"{len(answers.answered)} of {len(answers.asked)} brokers have answered"
        if self._is_shown and said != self._said:
            self._said = said
            typer.echo(f"\r{said}", err=True, nl=False)

    def end(self) -> None:
        if self._said:
            typer.echo("", err=True)


# -- a trace -----------------------------------------------------------------------------------


def gathered_of_trace(folder: Path, capacities: Path | None, master: str) -> Gathered:
    with needs("lab", "a trace"):
        from godwit.lab.metrics.reading import read_trace  # noqa: PLC0415  Spark.
        from godwit.lab.trace_profiles import gathered_from_trace  # noqa: PLC0415
        from godwit.spark.session import spark_session  # noqa: PLC0415
    if not folder.is_dir():
        raise UsageError(f"cannot read {folder}: no such folder")
    known = capacities_in(capacities)
    session = spark_session(master, application="godwit croc")
    return gathered_from_trace(read_trace(session, folder), known)


class _Capacities(msgspec.Struct, frozen=True):
    brokers: tuple[GatheredBroker, ...]


def capacities_in(path: Path | None) -> dict[str, GatheredBroker] | dict[str, float]:
    """What is known of brokers that a trace does not have."""
    if path is None:
        raise UsageError(
            "a trace does not have the output bandwidth of brokers: name a network file, or a JSON"
            " file with `brokers`, with --capacities"
        )
    if path.suffix == ".toml":
        network = load_network(path)
        return {each.id: each.output_bandwidth_bytes_s for each in network.broker}
    return {each.id: each for each in _decoded(path, _Capacities).brokers}
