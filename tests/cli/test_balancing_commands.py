"""The commands for the load balancer: which brokers are asked, and what is printed.

tests/live/test_balancing.py runs them against brokers.
"""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from godwit.api.balancing_api import BalancingAccount, DecisionView, OwnLoad, SessionView
from godwit.cli import app
from godwit.cli.load_balancing import _decisions, _lines, _obstacles, http_url
from godwit.errors import UsageError
from godwit.overlay.topology import star
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.processes import free_port
from godwit.runtime.settings import BrokerSettings, dump_network, network_of

EDGE = BalancingAccount(
    broker="B2",
    role="edge",
    cluster="B1",
    is_paused=True,
    dry_run=False,
    status="BUSY",
    load=OwnLoad(input=0.25, match_s=0.0015, output=None, memory=0.5, subscriptions=12),
    session=SessionView(session="x", partner="B3", phase="sampling", metric="output"),
    sessions=4,
    cannot_be_balanced="no step improves the balance",
    decisions=[
        DecisionView(
            at_s=at_s,
            action=action,
            subject="s1",
            source="B2",
            target="B3",
            reason={"metric": "output", "local_before": 0.123456},
        )
        for at_s, action in ((1.0, "asked"), (3.0, "left"))
    ],
)
HEAD = BalancingAccount(broker="B1", role="head", cluster="B1", is_paused=False, dry_run=True)


def refused(*arguments: str) -> str:
    answer = CliRunner().invoke(app, ["balancing", *arguments])
    assert isinstance(answer.exception, UsageError), answer.output
    return str(answer.exception)


def file(folder: Path, *, http_port: int | None, balancing: bool = True) -> str:
    settings = BalancingSettings() if balancing else None
    network = msgspec.structs.replace(network_of(star(2), http_port=http_port), balancing=settings)
    path = folder / "net.toml"
    path.write_text(dump_network(network))
    return str(path)


@pytest.mark.parametrize("command", ["show", "pause", "resume", "abort"])
def test_a_file_without_balancing_is_refused(command: str, tmp_path: Path) -> None:
    said = refused(command, file(tmp_path, http_port=8400, balancing=False))
    assert "has no table [balancing]" in said


def test_brokers_that_cannot_be_asked_are_named(tmp_path: Path) -> None:
    said = refused("show", file(tmp_path, http_port=None))
    assert "without `http` cannot be asked: B1, B2, B3" in said
    assert "`http` of B1, B2, B3 is any free port" in refused("show", file(tmp_path, http_port=0))


def test_a_file_or_addresses_and_not_both(tmp_path: Path) -> None:
    said = refused("show", file(tmp_path, http_port=8400), "http://127.0.0.1:8400")
    assert "not both" in said
    assert "cannot read missing.toml" in refused("show", "missing.toml")


def test_a_broker_that_does_not_answer_is_named() -> None:
    url = f"http://127.0.0.1:{free_port()}"
    answer = CliRunner().invoke(app, ["balancing", "show", url])
    assert answer.exit_code == 1
    assert f"{url} has not answered as it should: GET {url}/balancing: " in answer.stderr


def test_an_address_that_is_none_is_named_as_well() -> None:
    answer = CliRunner().invoke(app, ["balancing", "pause", "ftp://nowhere"])
    assert answer.exit_code == 1
    assert "'ftp://nowhere' is not the address of a server" in answer.stderr


@pytest.mark.parametrize(
    ("http", "address", "url"),
    [
        ("127.0.0.1:8400", None, "http://127.0.0.1:8400"),
        ("[::1]:8400", None, "http://[::1]:8400"),
        ("0.0.0.0:8400", "b1.example.org:7400", "http://b1.example.org:8400"),
        ("0.0.0.0:8400", None, "http://127.0.0.1:8400"),
    ],
)
def test_where_a_broker_of_a_file_is_asked(http: str, address: str | None, url: str) -> None:
    assert http_url(BrokerSettings(id="B1", http=http, address=address)) == url


def test_what_show_prints() -> None:
    head, first, second = _lines([HEAD, EDGE])
    assert head.split() == [
        "broker", "role", "cluster", "status", "Ir", "d", "ms", "Or", "memory", "subscriptions",
        "sessions", "session",
    ]  # fmt: skip
    assert first.split() == ["B1", "head", "B1", "-,", "dry", "run", "0"]
    assert second == (
        "B2      edge  B1       BUSY, paused  0.250  1.500  unlimited   0.500             12"
        "         4  with B3: output, sampling"
    )
    assert list(_obstacles([HEAD, EDGE])) == ["B2: no step improves the balance"]
    assert list(_decisions([HEAD, EDGE], 1)) == [
        "B2: left s1 (B2 to B3): metric output, local_before 0.1235"
    ]
    assert list(_decisions([EDGE], 0)) == []
