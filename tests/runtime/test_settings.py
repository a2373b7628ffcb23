"""Network files: what is written is read again, and what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from godwit.config import checked
from godwit.errors import UsageError
from godwit.overlay.topology import star, topology
from godwit.policies.offload.settings import BalancingSettings
from godwit.policies.placement.settings import GrapeSettings, Metric, PopSettings
from godwit.runtime.settings import (
    BrokerSettings,
    Limits,
    NetworkSettings,
    ServiceSettings,
    TraceSettings,
    dump_network,
    load_network,
    network_of,
)

MANUAL = Path(__file__).parents[2] / "docs" / "operating.md"


def load(tmp_path: Path, text: str) -> NetworkSettings:
    path = tmp_path / "network.toml"
    path.write_text(text)
    return load_network(path)


B1 = '[[broker]]\nid = "B1"\nlisten = "127.0.0.1:7401"\n'
B2 = '[[broker]]\nid = "B2"\nlisten = "127.0.0.1:7402"\nlinks = ["B1"]\n'


def test_the_file_of_the_manual(tmp_path: Path) -> None:
    network = load(
        tmp_path, f'overlay = "tree"\n[limits]\nsession_s = 5\n{B1}http = "[::1]:8401"\n{B2}'
    )

    assert network.limits == Limits(session_s=5.0)
    assert network.of("B1").http == "[::1]:8401"
    assert network.of("B2").links == ["B1"]
    assert network.link_address("B1") == ("127.0.0.1", 7401)
    assert network.link_address("godwit://example.org:99") == ("example.org", 99)
    assert network.topology == topology(["B1", "B2"], [("B1", "B2")])


@pytest.mark.parametrize(
    "network",
    [
        pytest.param(NetworkSettings(broker=[BrokerSettings(id="B1")]), id="all as usual"),
        pytest.param(
            NetworkSettings(
                broker=[
                    BrokerSettings(id="B1", listen="0.0.0.0:1", http="127.0.0.1:2"),
                    BrokerSettings(id="$B.2:x", listen="[::1]:3", links=["B1", "godwit://h:1"]),
                    BrokerSettings(id="B3", output_bandwidth_bytes_s=0.5e6),
                ],
                secret='a "quoted" \\ \n \x7f żółw',  # noqa: S106
                limits=Limits(heartbeat_s=1e-05, client_queue_bytes=1024, connections_max=1),
                trace=TraceSettings(folder='a "b" \\ ż', sample_every=7, rotate_s=0.5),
                datacluster="http://10.0.0.1:7600",
                coordinator="https://bcs.example.org",
                services=ServiceSettings(
                    datacluster={"folder": 'a "b"', "interval_s": 0.5, "keeps_history": True},
                    coordinator={},
                ),
            ),
            id="nothing as usual",
        ),
    ],
)
def test_what_is_written_is_read_again(network: NetworkSettings, tmp_path: Path) -> None:
    text = dump_network(network)
    assert load(tmp_path, text) == network
    assert "[limits]" not in dump_network(network_of(star(2)))


@pytest.mark.parametrize("key", Limits.__struct_fields__)
def test_every_limit_survives_being_written(key: str, tmp_path: Path) -> None:
    limits = msgspec.structs.replace(Limits(), **{key: 4321})
    network = NetworkSettings(broker=[BrokerSettings(id="B1")], limits=limits)
    assert load(tmp_path, dump_network(network)).limits == limits


@pytest.mark.parametrize("key", TraceSettings.__struct_fields__)
def test_every_setting_of_a_trace_survives_being_written(key: str, tmp_path: Path) -> None:
    value = "a folder" if key == "folder" else 4321
    trace = msgspec.structs.replace(TraceSettings(), **{key: value})
    network = NetworkSettings(broker=[BrokerSettings(id="B1")], trace=trace)
    assert load(tmp_path, dump_network(network)).trace == trace


#: Values that are not those without.
OTHERWISE = {"dry_run": True, "counts_zeros": False, "primary": Metric.DELAY, "weight_percent": 7.5}


@pytest.mark.parametrize(
    ("policy", "key"),
    [(kind, key) for kind in (PopSettings, GrapeSettings) for key in kind.__struct_fields__],
)
def test_every_setting_of_a_policy_survives_being_written(
    policy: type[PopSettings | GrapeSettings], key: str, tmp_path: Path
) -> None:
    value = 0.5 if key == "newest_weight" else OTHERWISE.get(key, 4321)
    placement = msgspec.structs.replace(policy(), **{key: value})
    network = NetworkSettings(broker=[BrokerSettings(id="B1")], placement=placement)
    assert placement != policy()
    assert load(tmp_path, dump_network(network)).placement == placement
    assert checked(network) == network


def test_a_policy_is_off_unless_it_is_named(tmp_path: Path) -> None:
    assert load(tmp_path, B1).placement is None
    on = load(tmp_path, f'[placement]\npolicy = "grape"\nprimary = "delay"\n{B1}')
    assert on.placement == GrapeSettings(primary=Metric.DELAY)


def test_where_publishers_are_sent_to_can_be_told(tmp_path: Path) -> None:
    everywhere = '[[broker]]\nid = "B1"\nlisten = "0.0.0.0:7401"\n'
    policy = '[placement]\npolicy = "pop"\n'
    assert load(tmp_path, everywhere).of("B1").address is None
    told = load(tmp_path, f'{policy}{everywhere}address = "b1.example.org:7401"\n')
    assert told.of("B1").address == "b1.example.org:7401"
    with pytest.raises(UsageError, match=r"'B1' listens on 0.0.0.0:7401, .* need its `address`"):
        load(tmp_path, f"{policy}{everywhere}")


@pytest.mark.parametrize(
    "settings",
    [Limits, TraceSettings, BrokerSettings, PopSettings, GrapeSettings, BalancingSettings],
    ids=lambda each: each.__name__,
)
def test_the_manual_has_every_key(settings: type[msgspec.Struct]) -> None:
    manual = MANUAL.read_text()
    for key in settings.__struct_fields__:
        assert f"`{key}` |" in manual, f"docs/operating.md does not explain {key}"


def test_the_manual_has_what_is_at_the_top() -> None:
    manual = MANUAL.read_text()
    for key in ("overlay", "secret", "datacluster", "coordinator"):
        assert f"| `{key}` |" in manual
    for table in ServiceSettings.__struct_fields__:
        assert f"| `[services.{table}]` |" in manual


def test_brokers_find_the_services_of_their_file(tmp_path: Path) -> None:
    assert load(tmp_path, B1).service_url("datacluster") is None
    usual = load(tmp_path, f"[services.datacluster]\n[services.coordinator]\n{B1}")
    assert usual.service_url("datacluster") == "http://127.0.0.1:7600"
    assert usual.service_url("coordinator") == "http://127.0.0.1:7500"
    table = '[services.coordinator]\nlisten = "0.0.0.0:7501"\n'
    told = load(tmp_path, f'coordinator = "http://10.0.0.1:7501"\n{table}{B1}')
    assert told.service_url("coordinator") == "http://10.0.0.1:7501"
    with pytest.raises(UsageError, match=r"\[services.coordinator\] .* set `coordinator` to where"):
        load(tmp_path, f"{table}{B1}").service_url("coordinator")


@pytest.mark.parametrize("key", BrokerSettings.__struct_fields__)
def test_every_setting_of_a_broker_survives_being_written(key: str, tmp_path: Path) -> None:
    other = {
        "id": "B9",
        "links": ["godwit://h:1"],
        "output_bandwidth_bytes_s": 7.0,
        "limit_output": True,
        "memory_bytes": 2**30,
        "location": {"latitude": 60.5, "longitude": -25.0},
    }
    changed = {"id": "B1", key: other.get(key, "[::1]:99")}
    network = checked(NetworkSettings(broker=[msgspec.convert(changed, BrokerSettings)]))
    assert load(tmp_path, dump_network(network)) == network


def test_where_the_services_are_survives_being_written(tmp_path: Path) -> None:
    network = NetworkSettings(
        broker=[BrokerSettings(id="B1")],
        datacluster="http://127.0.0.1:7600",
        coordinator="http://[::1]:7500",
    )
    network = checked(network)
    assert load(tmp_path, dump_network(network)) == network
    with pytest.raises(UsageError, match="'ftp://x' is not the address of a server"):
        load(tmp_path, f'datacluster = "ftp://x"\n{B1}')


WRONG = {
    "an unknown key": (f"lisetn = 1\n{B1}", "unknown field `lisetn`; the keys are .*broker"),
    "an unknown key of a broker": (f'{B1}port = "x"\n', r"unknown field `port`.*broker\[\.*0?"),
    "an unknown limit": (
        f"[limits]\nhertbeat_s = 1\n{B1}",
        "unknown field `hertbeat_s`.*limits.*did you mean `heartbeat_s`",
    ),
    "no broker": ('overlay = "tree"\n', "missing required field `broker`"),
    "an empty list of brokers": ("broker = []\n", "length >= 1.*broker"),
    "a broker without an id": ('[[broker]]\nlisten = "h:1"\n', "missing required field `id`"),
    "an id that is no name": (
        '[[broker]]\nid = "B 1"\n',
        "matching regex.*broker.*id.*; use letters, digits",
    ),
    "a limit of nothing": (f"[limits]\nsession_s = 0\n{B1}", r"> 0.*limits\.session_s"),
    "a limit of text": (f'[limits]\nsession_s = "1"\n{B1}', r"float.*limits\.session_s"),
    "a sample of none": (f"[trace]\nsample_every = 0\n{B1}", r">= 1.*trace\.sample_every"),
    "an unknown key of a trace": (f"[trace]\nfile = 1\n{B1}", "unknown field `file`.*trace"),
    "an unknown policy": (f'[placement]\npolicy = "best"\n{B1}', "'best'.*placement"),
    "a table without a policy": (f"[placement]\ndry_run = true\n{B1}", "`policy`.*placement"),
    "a key of another policy": (
        f'[placement]\npolicy = "pop"\nprimary = "load"\n{B1}',
        "unknown field `primary`.*placement",
    ),
    "too much of a weight": (
        f'[placement]\npolicy = "grape"\nweight_percent = 101\n{B1}',
        "weight_percent is 101.*; it must be 0 to 100",
    ),
    "an address without a port": (f'{B1}address = "b1.example.org"\n', "is not an address"),
    "too small a window": (f"[limits]\nwindow_bytes = 10\n{B1}", r">= 1024.*window_bytes"),
    "a cycle": (
        f'{B1}links = ["B2"]\n{B2}',
        "the links form a cycle.*: B2 - B1 - B2; remove one of these links",
    ),
    "a longer cycle": (
        f'{B1}links = ["B3"]\n{B2}[[broker]]\nid = "B3"\nlinks = ["B2"]\n',
        ": B3 - B1 - B2 - B3; remove one of these links",
    ),
    "a link with itself": (f'{B1}links = ["B1"]\n', "the links form a cycle.*: B1 - B1;"),
    "an id twice": (f"{B1}{B1}", "two brokers have the id 'B1'; give each an id of its own"),
    "an unknown link": (
        f'{B1}links = ["B7"]\n',
        "broker 'B1': links: there is no broker 'B7'; there are B1",
    ),
    "a link to nowhere": (f'{B1}links = ["http://h:1"]\n', "write godwit://HOST:PORT"),
    "a bad address": (
        '[[broker]]\nid = "B1"\nlisten = "h"\n',
        "broker 'B1': listen: 'h' is not an address: write HOST:PORT",
    ),
    "a bad address for people": (
        f'{B1}http = "8401"\n',
        "broker 'B1': http: '8401' is not an address: write HOST:PORT",
    ),
    "no such overlay": (f'overlay = "ring"\n{B1}', "no overlay 'ring'; choose from"),
    "an unknown service": (f"[services.storage]\n{B1}", "unknown field `storage`.*services"),
    "a service at no address": (
        f'[services.coordinator]\nlisten = "x"\n{B1}',
        "'x' is not an address",
    ),
    "a service with a list": (
        f"[services.datacluster]\nfolder = []\n{B1}",
        r"got `array`.*services\.datacluster",
    ),
    "a data cluster at no address": (
        f'datacluster = "here"\n{B1}',
        "is not the address of a server",
    ),
    "no TOML": ("broker = [", "network.toml: "),
}


@pytest.mark.parametrize(("text", "message"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_with_a_file_is_named(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=message) as caught:
        load(tmp_path, text)
    assert "network.toml: " in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*none\.toml: No such file"):
        load_network(tmp_path / "none.toml")


def test_a_network_of_a_topology_has_its_brokers_and_links() -> None:
    network = network_of(star(3), port=7401, http_port=8401)

    assert network.topology == star(3)
    assert [broker.listen for broker in network.broker] == [
        f"127.0.0.1:{port}" for port in range(7401, 7405)
    ]
    assert [broker.http for broker in network.broker][:2] == ["127.0.0.1:8401", "127.0.0.1:8402"]
    anywhere = network_of(star(3), http_port=0)
    assert {broker.listen for broker in anywhere.broker} == {"127.0.0.1:0"}
    assert {broker.http for broker in anywhere.broker} == {"127.0.0.1:0"}


def test_settings_made_by_hand_are_held_to_the_same_rules() -> None:
    with pytest.raises(UsageError, match=r"> 0\.0.*session_s"):
        checked(Limits(session_s=-1))
