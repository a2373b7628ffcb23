"""The layering and the limits of this code base, checked.  A failure message is the lesson."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from statistics import median

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "godwit"
SOURCES = sorted(PACKAGE.rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))

FILE_LINES_MAX = 500
FILE_LINES_MEDIAN_MAX = 200
FUNCTION_LINES_MAX = 60
#: Files on the way of a publication through one broker.
WAY_FILES_MAX = 14

#: From the ground up: a package imports only from those that stand before it, and itself.
#: Each storey begins with its name.  A module outside any package stands here as one, too.
STOREYS = {
    "language": ("distribution", "errors", "config", "content", "matching", "profile"),
    "pure": ("workloads", "broker", "overlay", "migration", "policies"),
    "protocol": ("protocol", "http", "api", "client"),
    "drivers": (
        "spark", "trace", "simulation", "sharing", "runtime",
        "datacluster.model", "datacluster.ddl", "datacluster.sql",
        "datacluster.disk", "datacluster.steady_clock", "datacluster.catalog", "datacluster.log",
        "datacluster.datasets", "datacluster.channels", "datacluster",
        "coordinator",
    ),
    "laboratory": ("rehearsal", "lab", "testing", "demos", "experiments"),
    "front": ("web", "cli", "__init__", "__main__"),
}  # fmt: skip
ORDER = [package for packages in STOREYS.values() for package in packages]
#: `godwit` itself is what applications import: it stands on the client.
FACE = {"errors", "content", "client"}
#: Drivers of the same broker, which do not know each other.
APART = {("runtime", "simulation"), ("sharing", "simulation")}
#: Modules of other packages that are pure as well.
PURE_MODULES = {
    "api/coordinator_api.py",
    "api/network_api.py",
    "api/network_views.py",
    "client/client_requests.py",
    "client/client_session.py",
    "client/deliveries.py",
    "client/held_publications.py",
    "client/holdings.py",
    "client/stream_endpoint.py",
    "coordinator/broker_records.py",
    "coordinator/change_rules.py",
    "coordinator/change_targets.py",
    "coordinator/changes.py",
    "coordinator/coordinator_core.py",
    "coordinator/deciding.py",
    "coordinator/paced_moves.py",
    "coordinator/registry.py",
    "coordinator/rounds.py",
    "coordinator/situation.py",
    "http/operations.py",
    "protocol/frames.py",
    "protocol/stream.py",
    "rehearsal/calibration.py",
    "rehearsal/changes_to_try.py",
    "rehearsal/network_figures.py",
    "rehearsal/network_snapshot.py",
    "rehearsal/traffic_sample.py",
    "sharing/rates.py",
    "sharing/shared_subscriptions.py",
}
#: Packages without I/O, clock or chance: everything they do follows from their arguments.
PURE = {
    "content", "matching", "profile", "broker", "overlay", "migration", "policies", "workloads",
}  # fmt: skip
#: ... except these, which read what the others work on.
READERS = {"workloads/quotes.py", "workloads/road_files.py"}
IMPURE_MODULES = {
    "asyncio", "datetime", "os", "pathlib", "pyspark", "secrets", "select", "socket", "subprocess",
    "threading", "time",
}  # fmt: skip
#: Names that a reader expects in more than one package.
COMMON_FILES = {"__init__.py", "settings.py", "server.py", "errors.py"}


def imports(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def place(name: str) -> int:
    """Where a module stands in ORDER: the entry that is most of its name."""
    words = name.split(".")
    for length in range(len(words), 0, -1):
        if ".".join(words[:length]) in ORDER:
            return ORDER.index(".".join(words[:length]))
    raise AssertionError(f"{words[0]} is new: say in STOREYS where it stands")


def wrong_imports(path: Path) -> Iterator[str]:
    module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
    here = place(module)
    for name in imports(tree_of(path)):
        if not name.startswith("godwit."):
            continue
        used = name.removeprefix("godwit.")
        if place(used) > here:
            yield f"{of(path)}: {ORDER[here]} imports {ORDER[place(used)]}, which is above it"
        first, second = module.split(".")[0], used.split(".")[0]
        if (first, second) in APART:
            yield f"{of(path)}: {first}/ and {second}/ do not know each other"
        if module == "__init__" and second not in FACE:
            yield f"{of(path)}: godwit imports {second}/"


def test_a_package_imports_only_from_those_before_it() -> None:
    assert not [breach for path in SOURCES for breach in wrong_imports(path)]


def test_architecture_md_has_the_same_packages_in_the_same_order() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text.split("## The packages", 1)[1].split("\n## ", 1)[0]
    rows = re.findall(r"^\| (\w*) ?\| `(\w+)` \|", table, flags=re.MULTILINE)
    storeys: dict[str, list[str]] = {}
    for storey, package in rows:
        name = storey or next(reversed(storeys))
        storeys.setdefault(name, []).append(package)
    expected = {
        storey: [name for name in names if "." not in name and not name.startswith("__")]
        for storey, names in STOREYS.items()
    }
    assert storeys == expected
    for package in (name for names in storeys.values() for name in names):
        assert (PACKAGE / package).exists() or (PACKAGE / f"{package}.py").exists(), package


def test_architecture_md_fits_three_pages() -> None:
    words = (ROOT / "ARCHITECTURE.md").read_text().split()
    assert len(words) <= 600 * 3, "three pages: point to decision records instead"


def test_no_file_name_stands_in_two_packages() -> None:
    """A reader who hears `rates.py` knows which one is meant."""
    packages: dict[str, set[str]] = {}
    for path in SOURCES:
        module = path.relative_to(PACKAGE)
        if path.name not in COMMON_FILES:
            packages.setdefault(path.name, set()).add(module.parts[0])
    assert not {name: found for name, found in packages.items() if len(found) > 1}


def test_no_public_class_name_stands_in_two_packages() -> None:
    packages: dict[str, set[str]] = {}
    for path in SOURCES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                top = path.relative_to(PACKAGE).parts[0]
                packages.setdefault(node.name, set()).add(top)
    assert not {name: found for name, found in packages.items() if len(found) > 1}


def test_every_package_says_what_its_files_are() -> None:
    for init in PACKAGE.rglob("__init__.py"):
        if init.parent == PACKAGE:
            continue
        header = ast.get_docstring(tree_of(init)) or ""
        for path in init.parent.iterdir():
            name = f"{path.name}/" if path.is_dir() else path.name
            if name != "__init__.py" and not name.startswith("__pycache__"):
                assert name in header, f"{of(init)} does not say what {name} is"


def impure_imports(path: Path) -> Iterator[str]:
    for name in imports(tree_of(path)):
        if name.split(".")[0] in IMPURE_MODULES:
            yield f"{of(path)} imports {name}"
        if name == "random":
            yield f"{of(path)}: take a Random as an argument; `from random import Random` names it"
        if name.startswith("random.") and name != "random.Random":
            yield f"{of(path)} draws from the global generator"


def is_pure(path: Path) -> bool:
    module = path.relative_to(PACKAGE)
    if module.as_posix() in READERS:
        return False
    return module.parts[0] in PURE or module.as_posix() in PURE_MODULES


def test_the_core_does_no_io_and_knows_no_clock() -> None:
    assert not [breach for path in SOURCES if is_pure(path) for breach in impure_imports(path)]


def test_a_module_starts_by_saying_what_it_is_for() -> None:
    assert not [of(path) for path in SOURCES if not ast.get_docstring(tree_of(path))]


def texts(source: str) -> Iterator[str]:
    """Docstrings and comments."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            yield str(node.value.value)


def files_named(text: str) -> list[str]:
    return re.findall(r"(?<![\w./-])[\w/]+\.py\b", text)


def missing_files(path: Path) -> Iterator[str]:
    """By their name within a package, with a folder from elsewhere."""
    own = PACKAGE / path.relative_to(PACKAGE).parts[0]
    for name in (name for text in texts(path.read_text()) for name in files_named(text)):
        is_path = any((base / name).exists() for base in (ROOT, PACKAGE, own, path.parent))
        if not is_path and next(own.rglob(name), None) is None:
            yield f"{of(path)} mentions {name}"


def test_files_that_are_mentioned_exist() -> None:
    assert not [breach for path in SOURCES for breach in missing_files(path)]


def test_mentions_of_files_are_found() -> None:
    text = '"""See one.py and a/two.py (three.py)."""\n# four.py, not five.pyc or x.y.py'
    found = [name for each in texts(text) for name in files_named(each)]
    assert sorted(found) == ["a/two.py", "four.py", "one.py", "three.py"]


def too_long(path: Path) -> Iterator[str]:
    if path.read_text().count("\n") > FILE_LINES_MAX:
        yield f"{of(path)}: split it by idea"
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            if lines > FUNCTION_LINES_MAX:
                yield f"{of(path)}: {node.name} has {lines} lines; split it"


def test_functions_fit_a_screen_and_files_hold_one_idea() -> None:
    assert not [breach for path in [*SOURCES, *TESTS] for breach in too_long(path)]


def test_the_median_file_is_short() -> None:
    lengths = [path.read_text().count("\n") for path in SOURCES]
    assert median(lengths) <= FILE_LINES_MEDIAN_MAX


def test_every_decision_record_is_numbered_and_listed() -> None:
    decisions = ROOT / "docs" / "decisions"
    records = sorted(path.name for path in decisions.glob("[0-9]*.md"))
    numbers = [name[:4] for name in records]
    assert len(set(numbers)) == len(numbers), "two records have the same number"
    index = (decisions / "README.md").read_text()
    for name in records:
        assert name in index, f"docs/decisions/README.md does not list {name}"


def test_no_text_installs_a_strangers_package() -> None:
    """On Python's registry `godwit` is another project: install a path, a wheel or a git URL."""
    registry = re.compile(
        r"\b(?:pip|pipx|uv)\b[^\n#]* (?:install|add) (?:[^\n#]*[ '\"])?"
        r"['\"]?godwit(?:-pubsub)?(?![\w-]| @ git\+)"
    )
    extra = re.compile(r"(?<![\w/])godwit(?:-pubsub)?\[\w")
    assert registry.search("pip install 'godwit[lab]'")
    assert registry.search("pip install --upgrade godwit")
    assert registry.search("python -m pip install -q --pre 'godwit-pubsub>=0.1'")
    assert not registry.search("pip install 'path/to/godwit[lab]'")
    assert not registry.search("pip install 'godwit-pubsub @ git+https://HOST/OWNER/godwit'")
    for path in [*texts_of_the_project(), ROOT / "Makefile", *SOURCES]:
        text = path.read_text()
        assert not registry.search(text), f"{of(path)} installs the registry's godwit"
        assert not extra.search(text), f"{of(path)}: write path/to/godwit[...], or the extra"


def texts_of_the_project() -> list[Path]:
    return [
        *ROOT.glob("*.md"),
        *(ROOT / "docs").rglob("*.md"),
        *(path for path in (ROOT / "examples").rglob("*") if path.is_file()),
    ]


def test_papers_md_names_files_that_exist() -> None:
    text = (ROOT / "docs" / "papers.md").read_text()
    named = [word for word in text.replace("`", " ").split() if word.endswith(".py")]
    assert named
    for name in named:
        candidates = (ROOT / name, ROOT / "src" / "godwit" / name)
        assert any(path.exists() for path in candidates), f"docs/papers.md names {name}"


def way_of_a_publication() -> list[str]:
    """The files that ARCHITECTURE.md lists for a publication within one broker, in their order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    section = text.partition("## The life of a publication, live\n")[2].partition("\n## ")[0]
    return re.findall(r"^\d+\. `([\w/]+\.py)` \W \S", section, flags=re.MULTILINE)


def test_the_way_of_a_publication_is_short_and_each_file_is_opened_once() -> None:
    way = way_of_a_publication()
    assert way
    assert len(way) <= WAY_FILES_MAX
    assert len(set(way)) == len(way)
    for name in way:
        assert (PACKAGE / name).exists(), f"ARCHITECTURE.md names {name}"
