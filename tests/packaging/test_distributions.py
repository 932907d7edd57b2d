"""The two distributions: the product's wheel works alone, and the development kit adds `oracle` and `lab` to it."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT, KIT = ROOT, ROOT / "devkit"
BUILD = "import sys; from hatchling.build import build_wheel; print(build_wheel(sys.argv[1]))"
KIT_ROOMS = ("numalign/oracle/", "numalign/lab/")
RUN = "from numalign.cli.main import app; app(prog_name='numalign')"


def build(project: Path, into: Path) -> Path:
    """Build the wheel of `project` without network and without an isolated environment."""
    into.mkdir(exist_ok=True)
    ran = subprocess.run(
        [sys.executable, "-c", BUILD, into], cwd=project, capture_output=True, text=True, check=True, timeout=120
    )
    return into / ran.stdout.split()[-1]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("wheels")


@pytest.fixture(scope="module")
def product(folder: Path) -> Path:
    return build(PRODUCT, folder)


@pytest.fixture(scope="module")
def kit(folder: Path) -> Path:
    return build(KIT, folder)


def files(wheel: Path) -> set[str]:
    """The files of the package, without the metadata of the distribution."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if name.startswith("numalign/")}


def metadata(wheel: Path) -> str:
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("dist-info/METADATA"))).decode()


def installed(folder: Path, *wheels: Path) -> Path:
    """A folder to import from, with these wheels unpacked into it as pip does."""
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            archive.extractall(folder)
    return folder


def numalign(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the command from `folder`; only dependencies come from this environment."""
    line = [sys.executable, "-c", RUN, *words]
    environment = {**os.environ, "PYTHONPATH": str(folder), "TERM": "dumb", "COLUMNS": "120"}
    return subprocess.run(line, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=60)


def test_the_product_contains_nothing_of_the_kit(product: Path) -> None:
    assert {name for name in files(product) if name.startswith(KIT_ROOMS)} == set()


def test_both_wheels_together_are_the_source_tree_and_share_no_file(product: Path, kit: Path) -> None:
    tree = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src/numalign").rglob("*") if path.is_file()}
    assert files(product) & files(kit) == set()
    assert files(product) | files(kit) == {name for name in tree if "__pycache__" not in name}


def test_the_kit_brings_the_go_modules(kit: Path) -> None:
    assert "numalign/lab/go/kubelet/v1.37/go.sum" in files(kit)


def test_the_kit_requires_its_own_version_of_numalign(product: Path, kit: Path) -> None:
    version = product.name.split("-")[1]
    assert f"Requires-Dist: numalign[tls]=={version}\n" in metadata(kit)
    assert f"Version: {version}\n" in metadata(kit)


@pytest.mark.parametrize("project", [PRODUCT, KIT], ids=["product", "kit"])
def test_building_again_gives_the_same_bytes(project: Path, product: Path, kit: Path, tmp_path: Path) -> None:
    before = product if project is PRODUCT else kit
    assert build(project, tmp_path).read_bytes() == before.read_bytes()


@pytest.fixture(scope="module")
def alone(product: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("alone"), product)


@pytest.fixture(scope="module")
def together(product: Path, kit: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return installed(tmp_path_factory.mktemp("together"), product, kit)


@pytest.mark.parametrize("words", [(), ("demo",), ("scheduler", "run"), ("agent", "run")], ids=" ".join)
def test_the_product_shows_its_help_without_the_kit(alone: Path, words: tuple[str, ...]) -> None:
    ran = numalign(alone, *words, "--help")
    assert (ran.returncode, "Usage: numalign" in ran.stdout) == (0, True), ran.stderr


@pytest.mark.parametrize("name", ["oracle", "lab"])
@pytest.mark.parametrize("words", [(), ("replay", "--show", "3", "x.json")], ids=["alone", "with a line"])
def test_without_the_kit_its_commands_say_what_to_install(alone: Path, name: str, words: tuple[str, ...]) -> None:
    ran = numalign(alone, name, *words)
    asks = f"numalign: `numalign {name}` is part of the development kit: install numalign-devkit\n"
    assert (ran.returncode, ran.stdout, ran.stderr) == (2, "", asks)


def test_with_the_kit_recorded_cases_are_replayed(together: Path) -> None:
    cases = next((ROOT / "tests/oracle/found/1.37").glob("*.json"))
    ran = numalign(together, "oracle", "replay", str(cases))
    assert (ran.returncode, "1 cases, 0 mismatches" in ran.stdout) == (0, True), ran.stderr


def test_with_the_kit_the_lab_lists_its_commands(together: Path) -> None:
    ran = numalign(together, "lab", "--help")
    assert (ran.returncode, "campaign" in ran.stdout) == (0, True), ran.stderr
