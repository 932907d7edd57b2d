"""Promises about the repository as a whole: it names no machine, its requirements are pinned, its modules introduce
themselves."""

import ast
import importlib
import os
import re
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from numalign.lab import build
from numalign.placement.engine import Engine

ROOT = Path(__file__).parents[2]
REQUIREMENTS = sorted(ROOT.glob("requirements/*.txt"))
MODULES = sorted(ROOT.glob("src/numalign/**/*.py"))

GENERATED = {".git", ".venv", ".hypothesis", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "dist"}
GENERATED |= {".import_linter_cache"}
MACHINE_PATH = re.compile(rb"(?<![\w.~-])/(?:work|root)\b|(?<![\w.~-])/(?:home|Users)/(?!kubernetes\b)\w|\.\./shared")
REGISTRY = re.compile(rb"pypi\.org|pythonhosted\.org|proxy\.golang\.org|sum\.golang\.org|registry\.npmjs\.org")

PIN = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>(?:\d+!)?[\w.]+)(?: ; [^\\]+?)?(?: --hash=sha256:[0-9a-f]{64})+")


def sources() -> Iterator[Path]:
    for folder, below, names in os.walk(ROOT):
        below[:] = [name for name in below if name not in GENERATED]
        yield from (Path(folder, name) for name in names if name not in GENERATED)


def entries(requirements: Path) -> list[str]:
    """One string per requirement: comments dropped, continued lines joined."""
    lines = [line for line in requirements.read_text().splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\s*\\\n\s*", " ", "\n".join(lines))
    return joined.splitlines()


def pins(requirements: Path) -> set[tuple[str, ...]]:
    return {match.group("name", "version") for match in map(PIN.fullmatch, entries(requirements)) if match}


@pytest.mark.parametrize("named", [MACHINE_PATH, REGISTRY], ids=["machine path", "registry"])
def test_no_file_names_a_machine_path_or_a_registry(named: re.Pattern[bytes]) -> None:
    found = {str(path.relative_to(ROOT)): match[0] for path in sources() if (match := named.search(path.read_bytes()))}
    assert found == {}


# The slash arrives late, so that this file keeps the promise too.
@pytest.mark.parametrize("text", ["cd {}root", "'{}home/me/x'", "in ..{}shared"])
def test_machine_paths_are_recognised(text: str) -> None:
    assert MACHINE_PATH.search(text.format("/").encode())


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda path: path.name)
def test_every_requirement_is_pinned_with_hashes(requirements: Path) -> None:
    assert entries(requirements)
    assert [entry for entry in entries(requirements) if not PIN.fullmatch(entry)] == []


@pytest.mark.parametrize("requirements", REQUIREMENTS, ids=lambda path: path.name)
def test_requirement_files_name_no_host(requirements: Path) -> None:
    assert re.findall(r"://|--(?:extra-)?index-url|--find-links|--trusted-host", requirements.read_text()) == []


def test_development_runs_on_the_versions_that_are_shipped() -> None:
    shipped = pins(ROOT / "requirements/runtime.txt") | pins(ROOT / "requirements/build.txt")
    assert shipped <= pins(ROOT / "requirements/dev.txt")


def test_the_go_that_is_recommended_is_the_pinned_one() -> None:
    assert {tuple(build.PACKAGE.split("=="))} == pins(ROOT / "requirements/go.txt")


def test_every_declared_dependency_is_pinned() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    names = {re.split("[<>=]", dependency)[0] for dependency in declared}
    assert names <= {name for name, _ in pins(ROOT / "requirements/runtime.txt")}


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_every_module_introduces_itself(module: Path) -> None:
    assert ast.get_docstring(ast.parse(module.read_text()))


MOST_MODULES = 15


def test_no_folder_has_more_than_fifteen_modules() -> None:
    counted = Counter(path.parent for path in MODULES if path.name != "__init__.py")
    assert [str(folder.relative_to(ROOT)) for folder, count in counted.items() if count > MOST_MODULES] == []


def test_a_class_name_means_one_thing_in_a_room() -> None:
    """A reader who meets the name in one module of a room need not ask which of two classes it is."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in MODULES:
        room = path.relative_to(ROOT / "src/numalign").parts[0]
        for each in ast.walk(ast.parse(path.read_text())):
            if isinstance(each, ast.ClassDef):
                places.setdefault((room, each.name), []).append(str(path.relative_to(ROOT)))
    assert {key: paths for key, paths in places.items() if len(paths) > 1} == {}


ARCHITECTURE = ROOT / "docs/develop/architecture.md"
ROOMS = "|".join(sorted(path.name for path in (ROOT / "src/numalign").iterdir() if (path / "__init__.py").exists()))


def is_in_the_source(name: str) -> bool:
    """Whether it is a package, a module, or something that a module has."""
    path = ROOT / "src/numalign" / name.replace(".", "/")
    if path.is_dir() or path.with_suffix(".py").exists():
        return True
    module, _, member = name.rpartition(".")
    return hasattr(importlib.import_module(f"numalign.{module}"), member)


def test_the_map_of_the_house_names_what_there_is() -> None:
    named = set(re.findall(rf"`((?:{ROOMS})(?:\.[A-Za-z_]\w*)+)`", ARCHITECTURE.read_text()))
    assert len(named) > 60
    assert [name for name in sorted(named) if not is_in_the_source(name)] == []


PAGES = [path for path in sources() if path.suffix == ".md" and path.name != "CHANGELOG.md"]
MOST_COLUMNS = 120


def broad_lines(page: Path) -> list[str]:
    """Lines of prose that could be broken; not tables, blocks of code, and what has no blank to break at."""
    found, is_code = [], False
    for number, line in enumerate(page.read_text().splitlines(), 1):
        is_code ^= line.lstrip().startswith("```")
        breakable = not is_code and not line.startswith(("|", "    v1;", "![")) and " " in line.strip()[:MOST_COLUMNS]
        if len(line) > MOST_COLUMNS and breakable:
            found.append(f"{page.relative_to(ROOT)}:{number}")
    return found


def test_lines_of_prose_have_at_most_120_columns() -> None:
    assert [line for page in PAGES for line in broad_lines(page)] == []


YAML_READER = "src/numalign/api/decode/yamltext.py"
WRITES_YAML = {"dump", "dump_all", "safe_dump", "SafeDumper"}
FOLDERS = ("src", "tools", "benchmarks", "docs", "devkit")
PROGRAMS = [path for folder in FOLDERS for path in ROOT.glob(f"{folder}/**/*.py")]


def yaml_readers(module: Path) -> list[str]:
    """What the module uses of a YAML library, apart from writing."""
    nodes = list(ast.walk(ast.parse(module.read_text())))
    imported = [each.module or "" for each in nodes if isinstance(each, ast.ImportFrom)]
    used = [each for each in nodes if isinstance(each, ast.Attribute) and each.attr not in WRITES_YAML]
    found = [name for name in imported if re.match(r"(yaml|ruamel|msgspec\.yaml)\b", name)]
    return found + [each.attr for each in used if ast.unparse(each.value) in ("yaml", "msgspec.yaml")]


def test_yaml_is_read_in_one_place() -> None:
    """The hardened reader limits depth, aliases, numbers and tags; a second one would have to do so as well."""
    found = {str(path.relative_to(ROOT)): names for path in PROGRAMS if (names := yaml_readers(path))}
    assert set(found) == {YAML_READER}, found


DOORS = {name for name in vars(Engine) if not name.startswith("_")} | {"settings", "problems"}
"""What other rooms may use of an engine: its methods, its settings, and the counts of what was left out."""
OUTSIDE = [path for path in MODULES if "placement" not in path.relative_to(ROOT).parts]


def reached_into(module: Path) -> list[str]:
    """What is read of something that is called `engine` and is no door."""
    read = [each for each in ast.walk(ast.parse(module.read_text())) if isinstance(each, ast.Attribute)]
    owners = ((getattr(each.value, "attr", getattr(each.value, "id", "")), each) for each in read)
    return [f"{name}.{each.attr}" for name, each in owners if name.lstrip("_") == "engine" and each.attr not in DOORS]


def test_no_other_room_reaches_into_the_engine() -> None:
    found = {str(path.relative_to(ROOT)): parts for path in OUTSIDE if (parts := reached_into(path))}
    assert found == {}


def test_the_flavour_is_not_asked_for_its_type() -> None:
    asked = [path for path in MODULES if re.search(r"isinstance\([^)]*(Exact|Reference)Flavour", path.read_text())]
    assert asked == []
