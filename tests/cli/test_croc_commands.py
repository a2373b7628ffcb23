"""`godwit croc`: where profiles come from, what is printed, what is refused.

tests/live/test_croc.py runs it against brokers.
"""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from godwit.cli import app
from godwit.cli.croc_picture import draw
from godwit.cli.croc_report import tree_lines
from godwit.errors import UnreachableError, UsageError
from godwit.overlay.topology import star
from godwit.policies.allocation.cbc_settings import ProfilingSettings
from godwit.policies.allocation.gathered import (
    Gathered,
    GatheredBroker,
    GatheredPublisher,
    GatheredSubscription,
)
from godwit.policies.allocation.plan import AllocationPlan, PlannedBroker
from godwit.runtime.processes import free_port
from godwit.runtime.settings import dump_network, network_of

#: Three publishers, and subscriptions that fill two of five brokers.
GATHERED = Gathered(
    publishers=tuple(
        GatheredPublisher(id=f"p{n}", rate_per_s=50, bandwidth_bytes_s=50_000, last_id=99)
        for n in range(3)
    ),
    brokers=tuple(
        GatheredBroker(
            id=f"B{n}",
            output_bandwidth_bytes_s=200_000.0,
            matching_delay_base_s=1e-4,
            matching_delay_per_subscription_s=1e-6,
        )
        for n in range(1, 6)
    ),
    subscriptions=tuple(
        GatheredSubscription(
            id=f"s{n}", first_id={f"p{n % 3}": 0}, bits={f"p{n % 3}": "1" * 50 + "0" * 50}
        )
        for n in range(12)
    ),
    vector_length=100,
)


PUBLISHER = {"id": "p1", "rate_per_s": 1, "bandwidth_bytes_s": 1_000, "last_id": 19}
BROKER = {
    "id": "B1", "output_bandwidth_bytes_s": 200_000,
    "matching_delay_base_s": 1e-4, "matching_delay_per_subscription_s": 1e-6,
}  # fmt: skip


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["croc", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture
def profiles(tmp_path: Path) -> Path:
    path = tmp_path / "profiles.json"
    path.write_bytes(msgspec.json.encode(GATHERED))
    return path


def test_the_plan_as_json_and_in_a_file(profiles: Path, tmp_path: Path) -> None:
    output = tmp_path / "plan.json"
    printed = run(
        "plan", "--profiles", str(profiles), "--algorithm", "bin-packing", "--json",
        "--output", str(output),
    )  # fmt: skip
    plan = msgspec.json.decode(printed, type=AllocationPlan)
    assert plan == msgspec.json.decode(output.read_bytes(), type=AllocationPlan)
    assert plan.algorithm == "bin-packing"
    assert set(plan.assignment) == {each.id for each in GATHERED.subscriptions}
    assert {each.id for each in plan.brokers} | set(plan.released) == {
        each.id for each in GATHERED.brokers
    }
    assert plan.lower_bound_brokers <= len(plan.brokers)


def test_the_plan_as_text(profiles: Path) -> None:
    shown = run("plan", "--profiles", str(profiles), "--algorithm", "bin-packing")
    plan = msgspec.json.decode(
        run("plan", "--profiles", str(profiles), "--algorithm", "bin-packing", "--json"),
        type=AllocationPlan,
    )
    assert (
        f"brokers kept     {len(plan.brokers)} of 5; at least {plan.lower_bound_brokers}" in shown
    )
    assert f"brokers released {len(plan.released)}: {', '.join(plan.released)}" in shown
    for broker in plan.brokers:
        assert f"{broker.id}: {broker.reason}" in shown
        assert f"{broker.utilisation:.0%}" in shown
    assert "of 15 clients" in shown


def test_the_seed_and_the_other_options_reach_the_planner(profiles: Path) -> None:
    def assigned(*options: str) -> dict[str, str]:
        printed = run("plan", "--profiles", str(profiles), "--json", *options)
        return msgspec.json.decode(printed, type=AllocationPlan).assignment

    fbf = ("--algorithm", "fbf", "--seed")
    assert assigned(*fbf, "1") == assigned(*fbf, "1")
    assert len({str(assigned(*fbf, str(seed))) for seed in range(4)}) > 1


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON of the form that is needed: .*truncated"),
        ('{"publishers": []}', "missing required field `brokers`"),
        (
            '{"publishers": [{"id": 3}], "brokers": [], "subscriptions": []}',
            r"\$.publishers\[0\].id",
        ),
        ("\xff", "profiles.json"),
    ],
)
def test_files_that_cannot_be_read(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "profiles.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(UsageError, match=said) as caught:
        run("plan", "--profiles", str(path))
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"vector_length": 10**12}, "vector_length is 1000000000000; it must be 1 to 1,048,576"),
        ({"brokers": []}, "brokers: there are none"),
        ({"brokers": [{**BROKER, "output_bandwidth_bytes_s": 0}]}, "12,000 bytes/s .* can send 0"),
        (
            {"publishers": [{**PUBLISHER, "rate_per_s": 1e308, "bandwidth_bytes_s": 1e308}]},
            r"needs inf bytes/s .* can send 200,000: inf bytes/s are missing",
        ),
        ({"brokers": [{**BROKER, "matching_delay_base_s": 1e300}]}, "with 1 subscription and can"),
        ({"brokers": [{**BROKER, "output_bandwidth_bytes_s": float("nan")}]}, "is not JSON of the"),
        ({"publishers": [{**PUBLISHER, "last_id": 19.5}]}, r"`int`.*publishers\[0\].last_id"),
    ],
)  # fmt: skip
def test_numbers_that_no_plan_can_be_made_from(
    tmp_path: Path, change: dict[str, object], said: str
) -> None:
    path = tmp_path / "profiles.json"
    bits = {"first_id": {"p1": 0}, "bits": {"p1": "1" * 20}}
    document = {
        "publishers": [PUBLISHER],
        "brokers": [BROKER],
        "subscriptions": [{"id": f"s{n}", **bits} for n in range(12)],
    }
    path.write_text(json.dumps({**document, **change}))
    for algorithm in ("cram-iou", "bin-packing"):
        with pytest.raises(UsageError, match=said) as caught:
            run("plan", "--profiles", str(path), "--algorithm", algorithm, "--json")
        assert len(str(caught.value)) < 300


def test_brokers_above_their_capacity_are_named(tmp_path: Path) -> None:
    """A baseline uses all brokers, whatever they can carry."""
    path = tmp_path / "profiles.json"
    none = msgspec.structs.replace(GATHERED.brokers[0], id="none", output_bandwidth_bytes_s=0)
    document = msgspec.structs.replace(GATHERED, brokers=(none,))
    path.write_bytes(msgspec.json.encode(document))
    shown = run("plan", "--profiles", str(path), "--algorithm", "manual")
    assert "above capacity   1: none" in shown
    path.write_bytes(msgspec.json.encode(GATHERED))
    assert "above capacity" not in run("plan", "--profiles", str(path))


def test_what_is_refused(profiles: Path, tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere.json")
    cases = {
        "cannot read .*nowhere.json: No such file": ("plan", "--profiles", nowhere),
        "algorithm is 'fast'; it must be one of": (
            "plan", "--profiles", str(profiles), "--algorithm", "fast",
        ),
        "name one source of profiles": ("plan",),
        "name one source": ("plan", "http://127.0.0.1:1", "--profiles", str(profiles)),
        "must end in .svg or .png": ("plan", "--profiles", str(profiles), "--picture", "x.gif"),
        "--capacities is for --trace": (
            "plan", "--profiles", str(profiles), "--capacities", "x.toml",
        ),
        "no such folder": ("plan", "--trace", nowhere, "--capacities", str(profiles)),
        "name a network file, or the HTTP address": ("gather",),
        "cannot write .*no/such": (
            "plan", "--profiles", str(profiles), "--algorithm", "fbf", "--output",
            str(tmp_path / "no" / "such"),
        ),
    }  # fmt: skip
    for said, arguments in cases.items():
        with pytest.raises(UsageError, match=said):
            run(*arguments)
    with pytest.raises(UsageError, match=r"name a network file, or a JSON file .* --capacities"):
        run("plan", "--trace", str(tmp_path))


def test_nothing_is_planned_without_a_missing_broker_unless_asked(tmp_path: Path) -> None:
    path = tmp_path / "partly.json"
    path.write_bytes(msgspec.json.encode(msgspec.structs.replace(GATHERED, missing=("B7", "B9"))))
    plan = ("plan", "--profiles", str(path), "--algorithm", "bin-packing")
    with pytest.raises(UsageError, match=r"no answer from: B7, B9; .* plan --without-missing"):
        run(*plan)
    assert "planned without  2: B7, B9" in run(*plan, "--without-missing")


def test_network_files_that_cannot_be_asked(tmp_path: Path) -> None:
    file = tmp_path / "network.toml"
    network = network_of(star(2), port=7_400)
    file.write_text(dump_network(network))
    with pytest.raises(UsageError, match=r"no table \[profiling\]"):
        run("gather", str(file))
    profiling = msgspec.structs.replace(network, profiling=ProfilingSettings())
    file.write_text(dump_network(profiling))
    with pytest.raises(UsageError, match="no broker has `http` with a port"):
        run("gather", str(file))
    with pytest.raises(UsageError, match="one network file, or HTTP addresses"):
        run("gather", str(file), "http://127.0.0.1:1")


def test_no_broker_answers() -> None:
    ports = free_port(), free_port()
    urls = [f"http://127.0.0.1:{port}" for port in ports]
    with pytest.raises(UnreachableError, match=urls[0]):
        run("gather", *urls)


def planned(id: str, utilisation: float = 0.5) -> PlannedBroker:
    return PlannedBroker(
        id=id, input_per_s=1.0, output_bytes_s=1.0, utilisation=utilisation, messages_per_s=1.0,
        matching_utilisation=0.1, subscriptions=1, reason="because",
    )  # fmt: skip


def tree(*links: tuple[str, str], root: str, brokers: tuple[PlannedBroker, ...]) -> AllocationPlan:
    return AllocationPlan(
        algorithm="fbf", assignment={}, links=links, root=root, publishers={}, brokers=brokers,
        released=(), lower_bound_brokers=1, lower_bound_traffic_per_s=0.0, closeness_evaluations=0,
        clusters=0, moves=0, mean_hops=0.0, seconds=0.0,
    )  # fmt: skip


def test_the_tree() -> None:
    brokers = (planned("A", 0.25), planned("B"), planned("C", 1.2), planned("D"), planned("E", 0))
    plan = tree(("B", "A"), ("C", "A"), ("D", "B"), ("E", "B"), root="A", brokers=brokers)
    assert [line.rstrip() for line in tree_lines(plan)] == [
        "A        █████░░░░░░░░░░░░░░░  25%",
        "├─ B     ██████████░░░░░░░░░░  50%",
        "│  ├─ D  ██████████░░░░░░░░░░  50%",
        "│  └─ E  ░░░░░░░░░░░░░░░░░░░░   0%",
        "└─ C     ████████████████████ 120%",
    ]


def test_a_long_chain_and_an_empty_plan_can_be_shown() -> None:
    names = [f"B{n}" for n in range(2_000)]
    links = tuple(zip(names[1:], names[:-1], strict=True))
    plan = tree(*links, root="B0", brokers=tuple(map(planned, names)))
    assert sum(1 for _ in tree_lines(plan)) == len(names)
    assert list(tree_lines(tree(root="", brokers=()))) == []


@pytest.mark.parametrize("suffix", ["svg", "png"])
def test_the_picture(suffix: str, tmp_path: Path) -> None:
    brokers = (planned("A", 0.25), planned("B"), planned("C", 1.2))
    plan = tree(("B", "A"), ("C", "A"), root="A", brokers=brokers)
    first, second = tmp_path / f"one.{suffix}", tmp_path / f"two.{suffix}"
    draw(plan, first)
    draw(plan, second)
    drawn = first.read_bytes()
    assert drawn == second.read_bytes()
    if suffix == "svg":
        assert all(name.encode() in drawn for name in ("A", "B", "C", "120%"))
    with pytest.raises(UsageError, match="cannot write"):
        draw(plan, tmp_path / "no" / f"such.{suffix}")
