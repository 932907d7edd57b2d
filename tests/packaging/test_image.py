"""The container images do what a pod needs: every module imports, every command answers, a pod is scheduled, nothing is
compiled or written, and a second build gives the same digest."""

import json
import os
import re
import shutil
import tarfile
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import conftest, images
from tests.containers import Image, configuration
from tests.unit.test_repository import ROOT, pins
from tools import image, imagebase, precompile

pytestmark = pytest.mark.built
LARGEST = {"agent": 60e6, "scheduler": 130e6}
TARGETS = tuple(LARGEST)
NEED_EXTRAS = (
    "numalign.placement.kernels.compiled",
    "numalign.placement.kernels.machinecode",
    "numalign.process.kernelcache",
    "numalign.plan.machinecode",
    "numalign.dashboard.",
    "numalign.cli.results.moments.files",
    "numalign.cli.results.moments.past",
)
"""Modules that need numba or the packages of the dashboard, which the image of the agent has not."""

IMPORTS = """
import importlib, pkgutil, numalign
names = [each.name for each in pkgutil.walk_packages(numalign.__path__, "numalign.")]
for name in names:
    if not name.endswith("__main__") and not name.startswith({skipped}):
        importlib.import_module(name)
print(" ".join(names))
"""
HELP = """
from typer.main import get_command
from typer.testing import CliRunner
from numalign.cli.main import app
def walk(command, words):
    yield words
    for name, below in getattr(command, "commands", {}).items():
        yield from walk(below, [*words, name])
for words in walk(get_command(app), []):
    if words[:1] not in (["lab"], ["oracle"]):
        ran = CliRunner().invoke(app, [*words, "--help"])
        assert (ran.exit_code, "Usage:" in ran.output) == (0, True), (words, ran.output)
        print(*words)
"""
LOADED = """
import asyncio, logging
logging.basicConfig(level=logging.INFO)
from numalign.placement.engine import Engine
from numalign.scheduler.compile import warmed
assert asyncio.run(warmed(Engine()))
"""


@pytest.fixture(scope="module")
def archives() -> dict[str, Path]:
    return images.archives()


@pytest.fixture(scope="module")
def unpacked(archives: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Image]:
    conftest.require(os.geteuid() == 0, "root, to start a container")
    conftest.require(shutil.which("runc"), "runc, which `make system PURPOSES=image` installs")
    return {target: Image(archive, tmp_path_factory.mktemp(target)) for target, archive in archives.items()}


@pytest.fixture(params=TARGETS)
def target(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


@pytest.fixture
def archive(archives: dict[str, Path], target: str) -> Path:
    return archives[target]


@pytest.fixture
def container(unpacked: dict[str, Image], target: str) -> Image:
    return unpacked[target]


def test_an_archive_is_small(archive: Path, target: str) -> None:
    assert archive.stat().st_size <= LARGEST[target]


def test_the_image_names_what_it_is_and_runs_as_nobody_in_particular(archive: Path, target: str) -> None:
    config = configuration(archive)["config"]
    assert (config["User"], config["Entrypoint"]) == ("65532:65532", ["numalign"])
    labels = {key.rpartition(".")[2]: value for key, value in config["Labels"].items() if "opencontainers" in key}
    made = {"created": "2023-11-14T22:13:20Z", "revision": "tests", "version": "0.1.0", "licenses": "Apache-2.0"}
    assert made.items() <= labels.items()
    assert labels["title"] == f"numalign-{target}"


def test_containerd_finds_the_full_name_of_the_image(archives: dict[str, Path], target: str) -> None:
    index = json.loads(member(archives[target], "index.json"))
    assert index["manifests"][0]["annotations"]["io.containerd.image.name"] == f"localhost/numalign/{target}:0.1.0"


def member(archive: Path, name: str) -> bytes:
    with tarfile.open(archive) as opened:
        found = opened.extractfile(name)
        assert found is not None
        return found.read()


def test_the_scheduler_stands_on_the_layers_of_the_agent(archives: dict[str, Path]) -> None:
    agent, scheduler = (configuration(archives[target])["rootfs"]["diff_ids"] for target in TARGETS)
    assert scheduler[: len(agent)] == agent
    assert len(scheduler) == len(agent) + 1


def test_the_image_does_not_tell_where_its_packages_came_from(archive: Path, container: Image) -> None:
    hosts = {re.split("[/:]+", line.split()[2])[1] for line in imagebase.sources()}
    config = json.dumps(configuration(archive))
    assert [host for host in hosts if host in config] == []
    root = container.root
    left = ["etc/apt", "etc/pip.conf", "etc/pip.pem", "run/secrets", "var/cache", "var/log", "var/lib/apt"]
    assert [name for name in left if (root / name).exists()] == []
    texts = {path: path.read_text(errors="replace") for path in (root / "etc").rglob("*") if path.is_file()}
    assert [path for path, text in texts.items() if any(host in text for host in hosts)] == []
    # The builder mounts its own over these; what stays is empty.
    assert [texts.get(root / "etc" / name, "") for name in ("hostname", "hosts", "resolv.conf")] == ["", "", ""]


def test_every_module_of_the_product_imports(container: Image, target: str) -> None:
    ran = container.python(IMPORTS.format(skipped=NEED_EXTRAS if target == "agent" else ()))
    assert ran.returncode == 0, ran.stderr
    found = set(ran.stdout.split())
    assert {"numalign.cli.main", "numalign.agent.main", "numalign.scheduler.main"} <= found
    assert not any(name.startswith(("numalign.lab", "numalign.oracle", "numalign.cli.devkit")) for name in found)


def test_bytecode_is_valid_whatever_the_times_of_files(container: Image) -> None:
    """The second word of its header says how it is invalidated; 1: by a hash of the source that is not checked."""
    files = list(container.root.rglob("*.pyc"))
    assert len(files) > 1000
    assert [path for path in files if path.read_bytes()[4:8] != b"\1\0\0\0"] == []


def test_every_command_shows_its_help(container: Image) -> None:
    ran = container.python(HELP)
    assert ran.returncode == 0, ran.stderr + ran.stdout
    assert {"scheduler run", "agent run", "cluster up"} <= set(ran.stdout.splitlines())


def test_only_the_scheduler_has_a_compiler(container: Image, target: str) -> None:
    ran = container.python("from importlib.util import find_spec; print(find_spec('numba') is not None)")
    assert ran.stdout == f"{target == 'scheduler'}\n"


def test_pods_are_scheduled_in_a_container_without_rights(unpacked: dict[str, Image]) -> None:
    """As user 65532, without capabilities, on a read-only root, without a home."""
    ran = unpacked["scheduler"].numalign("demo", timeout=300)
    assert ran.returncode == 0, ran.stderr
    (line,) = re.findall(r"^numalign +(\d+) +(\d+) +(\d+) +(\d+)", ran.stdout, re.MULTILINE)
    assert (int(line[1]) > 0, line[2]) == (True, "0")


def test_the_root_file_system_can_be_read_only(container: Image) -> None:
    ran = container.python(
        "import os; print(os.getuid(), os.access('/', os.W_OK), os.access('/opt/numalign', os.W_OK))"
    )
    assert ran.stdout == "65532 False False\n"


def test_the_kernel_is_loaded_and_not_compiled(unpacked: dict[str, Image]) -> None:
    """In a container where nothing at all can be written, not even to /tmp."""
    ran = unpacked["scheduler"].python(LOADED, tmp=False, timeout=300)
    assert ran.returncode == 0, ran.stderr
    assert "the kernel is machine code: loaded from /opt/numalign/kernels/" in ran.stderr


def test_a_kernel_for_another_cpu_is_not_loaded(unpacked: dict[str, Image]) -> None:
    """What makes the one before able to fail: the cache is looked up by the CPU's name."""
    code = "from numalign.placement.kernels import compiled as kernel; print(kernel._compiled_rows._cache._index_key"
    code += "(None, kernel._compiled_rows.targetctx.codegen())[1])"
    ran = unpacked["scheduler"].python(code, tmp=False)
    assert ran.returncode == 0, ran.stderr
    assert "'generic', ''" in ran.stdout


def test_the_bill_of_materials_lists_what_is_in_the_image(archive: Path, target: str) -> None:
    bill = json.loads(archive.with_suffix(".cdx.json").read_text())
    kinds: dict[str, dict[str, str]] = {"pypi": {}, "deb": {}}
    for each in bill["components"]:
        kinds[re.split("[:/]", each["purl"])[1]][each["name"].lower().replace("_", "-")] = each["version"]
    wanted = ("runtime", "tls", *(["fast", "dashboard"] if target == "scheduler" else []))
    pinned = set[tuple[str, ...]]().union(*(pins(ROOT / f"requirements/{name}.txt") for name in wanted))
    assert set(kinds["pypi"].items()) - {("numalign", "0.1.0")} <= pinned
    assert {name for name, _ in pinned} - set(kinds["pypi"]) == {"colorama"}, "which only Windows needs"
    assert {"libc6", "python3.13-minimal", "ca-certificates"} <= set(kinds["deb"])
    assert valid(bill) is None


def valid(bill: dict[str, Any]) -> object | None:
    """What the schema of CycloneDX says against it."""
    conftest.require(find_spec("cyclonedx"), "cyclonedx-bom, which `make lint` installs")
    schema: Any = import_module("cyclonedx.schema")
    validation: Any = import_module("cyclonedx.validation.json")
    found: object | None = validation.JsonStrictValidator(schema.SchemaVersion.V1_6).validate_str(json.dumps(bill))
    return found


def test_addresses_in_memory_are_overwritten_in_place() -> None:
    assert precompile.without_addresses(b"\x8c\x20<function f at 0x7fdfdd2aba60>.") == (
        b"\x8c\x20<function f at 0x000000000000>."
    )


def test_files_of_the_kit_do_not_make_another_image() -> None:
    used = {str(path.relative_to(ROOT)) for path in image._input()}
    assert {"Dockerfile", "src/numalign/__init__.py", "requirements/fast.txt", "tools/precompile.py"} <= used
    assert not any(name.startswith(("src/numalign/lab", "src/numalign/oracle", "tests")) for name in used)
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    named = {word for line in copied for word in line.split()} - {"src"}
    assert named <= used


def test_another_architecture_needs_an_emulator_that_is_registered(tmp_path: Path) -> None:
    other = next(each for each in image.ARCHITECTURES.values() if each != image.here())
    (machine,) = [name for name, called in image.ARCHITECTURES.items() if called == other]
    assert image.runs(image.here(), tmp_path)
    assert not image.runs(other, tmp_path / "none")
    assert not image.runs(other, tmp_path)
    (tmp_path / f"qemu-{machine}").write_text("disabled\ninterpreter /usr/bin/qemu\n")
    assert not image.runs(other, tmp_path)
    (tmp_path / f"qemu-{machine}").write_text("enabled\ninterpreter /usr/bin/qemu\n")
    assert image.runs(other, tmp_path)


def test_how_pip_reaches_an_index_is_handed_over_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    settings = {"INDEX_URL": "https://mirror.example/simple", "CERT": "/some/ca.pem", "FIND_LINKS": "/wheels"}
    for name, value in settings.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    made = image._secrets(tmp_path)
    assert made == {"pip": tmp_path / "pip.conf", "certificates": Path("/some/ca.pem")}
    lines = (tmp_path / "pip.conf").read_text().splitlines()
    assert {"index-url = https://mirror.example/simple", f"cert = {image.PIP_PEM}"} <= set(lines)
    assert not any("find-links" in line for line in lines)


@pytest.mark.slow
def test_building_again_gives_the_same_digest(archives: dict[str, Path], tmp_path: Path) -> None:
    """And the same bytes of archives and bills."""
    with tempfile.TemporaryDirectory(dir=image.cache_folder()) as scratch:
        image._build(images.PLAN, Path(scratch), tmp_path, False)
    for archive in archives.values():
        assert image.digest(tmp_path / archive.name) == image.digest(archive)
        for file in (archive, archive.with_suffix(".cdx.json")):
            assert (tmp_path / file.name).read_bytes() == file.read_bytes()
