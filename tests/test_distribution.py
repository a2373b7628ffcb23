"""The wheel: its name, its metadata, its command.  Built here, without a network."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from configparser import ConfigParser
from email import message_from_string
from email.message import Message
from pathlib import Path
from zipfile import ZipFile

import pytest

from godwit.distribution import NAME, VERSION, install_hint

ROOT = Path(__file__).parent.parent


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(  # noqa: S603  Ourselves.
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT, check=True, capture_output=True, timeout=120,
    )  # fmt: skip
    (built,) = folder.glob("*.whl")
    return built


def content(wheel: Path, name: str) -> str:
    """A file of the wheel's metadata."""
    with ZipFile(wheel) as archive:
        return archive.read(f"godwit_pubsub-{VERSION}.dist-info/{name}").decode()


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    return message_from_string(content(wheel, "METADATA"))


def test_the_distribution_has_a_name_of_its_own(wheel: Path, metadata: Message) -> None:
    assert NAME == "godwit-pubsub"
    assert wheel.name == f"godwit_pubsub-{VERSION}-py3-none-any.whl"
    assert metadata["Name"] == NAME
    assert metadata["Version"] == VERSION


def test_its_import_and_its_command_are_godwit(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
        assert {"godwit/py.typed", "godwit/spark/log4j2.properties"} <= set(archive.namelist())
    assert tops == {"godwit", f"godwit_pubsub-{VERSION}.dist-info"}
    scripts = ConfigParser()
    scripts.read_string(content(wheel, "entry_points.txt"))
    assert dict(scripts["console_scripts"]) == {"godwit": "godwit.cli:main"}


def test_extras_need_nothing_of_a_strangers_package(metadata: Message) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    own = [
        each
        for needed in project["optional-dependencies"].values()
        for each in needed
        if each.startswith("godwit")
    ]
    assert own == [f"{NAME}[datacluster]", f"{NAME}[lab]"]
    needed = metadata.get_all("Requires-Dist") or []
    assert not [each for each in needed if each.startswith("godwit")], "the builder expands them"
    assert [each for each in needed if each.startswith("pyspark") and "'lab'" in each]
    extras = set(metadata.get_all("Provides-Extra") or [])
    assert extras == {"datacluster", "lab", "dev"}
    for extra in extras - {"dev"}:
        assert f"godwit[{extra}]" in install_hint(extra)


def test_the_lock_file_is_of_this_distribution() -> None:
    assert "via godwit-pubsub" in (ROOT / "requirements.lock").read_text()
    assert tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["name"] == NAME


def test_an_installed_wheel_runs(wheel: Path, tmp_path: Path) -> None:
    """Its command, from a folder of its own; what it depends on is that of this interpreter."""
    target = tmp_path / "site"
    with ZipFile(wheel) as archive:
        archive.extractall(target)
    program = (
        f"import sys; sys.path.insert(0, {str(target)!r}); sys.argv = ['godwit', '--version'];"
        "from importlib.metadata import entry_points;"
        "(command,) = {each for each in entry_points(group='console_scripts')"
        " if each.name == 'godwit' and each.dist.name == 'godwit-pubsub'};"
        "import godwit; print(godwit.__file__); command.load()()"
    )
    done = subprocess.run(  # noqa: S603  Ourselves.
        [sys.executable, "-c", program],
        cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True, env={},
    )  # fmt: skip
    file, version = done.stdout.splitlines()
    assert file == str(target / "godwit" / "__init__.py")
    assert version.startswith(f"{NAME} {VERSION}")
