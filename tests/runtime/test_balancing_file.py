"""The table [balancing] of a network file: what it needs, what it excludes, what it sets up."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from godwit.cli import app
from godwit.errors import UsageError
from godwit.overlay.topology import peer, star
from godwit.policies.offload.offload_module import Offload
from godwit.policies.offload.settings import BalancingSettings
from godwit.runtime.server import make_node
from godwit.runtime.settings import (
    BrokerSettings,
    NetworkSettings,
    dump_network,
    load_network,
    network_of,
)

STAR = """
[[broker]]
id = "B0"
listen = "127.0.0.1:7400"

[[broker]]
id = "B1"
links = ["B0"]

[[broker]]
id = "B2"
links = ["B0"]
"""
#: Values other than the default, where a type does not say how to make one.
OTHERS: dict[str, object] = {
    "algorithm": "random",
    "pie": "adaptive",
    "dry_run": True,
    "local_detection_min_s": 10.0,
    "global_detection_min_s": 10.0,
    "local_pie_period_s": 10.0,
    "lower_overload_threshold": 0.5,
}


def load(folder: Path, text: str) -> NetworkSettings:
    path = folder / "network.toml"
    path.write_text(text)
    return load_network(path)


def test_balancing_is_off_without_the_table(tmp_path: Path) -> None:
    network = load(tmp_path, STAR)
    assert network.balancing is None
    assert not make_node(network, network.of("B1")).broker.modules


def test_an_empty_table_switches_it_on_at_every_broker(tmp_path: Path) -> None:
    network = load(tmp_path, f"[balancing]\n{STAR}")
    assert network.balancing == BalancingSettings()
    for broker in network.broker:
        assert list(make_node(network, broker).broker.modules) == [Offload.name]


@pytest.mark.parametrize("key", BalancingSettings.__struct_fields__)
def test_every_setting_survives_being_written(key: str, tmp_path: Path) -> None:
    value = OTHERS.get(key)
    if value is None:
        value = getattr(BalancingSettings(), key) * 2
    settings = msgspec.structs.replace(BalancingSettings(), **{key: value})
    network = msgspec.structs.replace(network_of(star(2)), balancing=settings)
    assert settings != BalancingSettings()
    assert load(tmp_path, dump_network(network)).balancing == settings


def test_a_table_with_defaults_survives_being_written(tmp_path: Path) -> None:
    network = msgspec.structs.replace(network_of(star(2)), balancing=BalancingSettings())
    assert load(tmp_path, dump_network(network)) == network


WRONG = {
    "together with [placement]": (
        f'[balancing]\n[placement]\npolicy = "grape"\n{STAR}',
        r"grape may send a publisher to an edge broker, .* remove one of the two tables",
    ),
    "an unknown key": (f"[balancing]\nthreshold = 1\n{STAR}", "unknown field `threshold`"),
    "a wrong value": (f"[balancing]\nstabilize_s = 0\n{STAR}", "stabilize_s is 0.* above 0"),
    "subscribers that cannot reach a broker": (
        f'[balancing]\n{STAR}\n[[broker]]\nid = "B9"\nlinks = ["B0"]\nlisten = "0.0.0.0:7409"',
        r"'B9' listens on 0.0.0.0:7409, and subscribers that are sent there need its `address`",
    ),
}


@pytest.mark.parametrize(("text", "error"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_named_with_the_file(text: str, error: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"network\.toml: ") as raised:
        load(tmp_path, text)
    assert raised.match(error)


NO_HEAD = '[balancing]\n[[broker]]\nid = "B1"\n[[broker]]\nid = "B2"\nlinks = ["B1"]\n'


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (NO_HEAD, r"needs a cluster-head, .* there are only B1, B2"),
        (f'[balancing]\n{STAR}\n[[broker]]\nid = "B9"\n', "linked as one tree"),
    ],
    ids=["no head", "parts that are not linked"],
)
def test_a_whole_network_that_cannot_be_balanced_is_not_started(
    text: str, error: str, tmp_path: Path
) -> None:
    file = tmp_path / "network.toml"
    file.write_text(text)
    refused = CliRunner().invoke(app, ["up", str(file)])
    assert isinstance(refused.exception, UsageError)
    assert re.search(rf"network\.toml: \[balancing\]: .*{error}", str(refused.exception))


@pytest.mark.parametrize(
    "text",
    [NO_HEAD, '[balancing]\n[[broker]]\nid = "B9"\nlinks = ["godwit://127.0.0.1:7400"]'],
    ids=["with its neighbour", "with an address"],
)
def test_the_file_of_a_broker_that_joins_is_not_judged_by_itself(text: str, tmp_path: Path) -> None:
    network = load(tmp_path, text)
    assert Offload.name in make_node(network, network.broker[-1]).broker.modules


def test_two_brokers_draw_different_numbers() -> None:
    network = msgspec.structs.replace(network_of(star(2)), balancing=BalancingSettings())

    def drawn(broker: BrokerSettings) -> float:
        module = make_node(network, broker).broker.modules[Offload.name]
        assert isinstance(module, Offload)
        return module._random.random()

    assert len({drawn(broker) for broker in [*network.broker, *network.broker]}) == 6


def test_a_network_of_clusters_is_printed(tmp_path: Path) -> None:
    asked = ["topology", "peer", "--clusters", "3", "--edges", "2", "--http-port", "8400"]
    printed = CliRunner().invoke(app, [*asked, "--balancing"])
    network = load(tmp_path, printed.output)
    assert network.topology == peer(clusters=3, edges=2)
    assert network.balancing == BalancingSettings()
    assert load(tmp_path, CliRunner().invoke(app, asked).output).balancing is None


def test_a_shape_that_cannot_be_balanced_is_refused() -> None:
    refused = CliRunner().invoke(app, ["topology", "chain", "--brokers", "2", "--balancing"])
    assert isinstance(refused.exception, UsageError)
    assert "needs a cluster-head" in str(refused.exception)
