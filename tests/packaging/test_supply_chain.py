"""What is published can be built again, lists what it brings, and names what it was made from."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from tests import conftest
from tests.unit.test_repository import GENERATED, ROOT, pins

SHIPPED = ("runtime", "tls", "dashboard", "fast")
COMMITTED = "1700000000"


def checkout(target: Path, moment: int, mode: int) -> Path:
    """The sources at another place, with other times and other modes."""
    shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(*GENERATED))
    for path in target.rglob("*"):
        os.utime(path, (moment, moment))
        path.chmod(mode | (path.stat().st_mode & 0o111))
    return target


def dist(tree: Path, target: Path) -> dict[str, bytes]:
    environment = {**os.environ, "SOURCE_DATE_EPOCH": COMMITTED}
    command = [sys.executable, str(tree / "tools/dist.py"), str(target)]
    subprocess.run(command, cwd=tree, env=environment, capture_output=True, check=True)
    return {path.name: path.read_bytes() for path in target.iterdir()}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("first")
    return dist(checkout(folder / "numalign", 1_000_000_000, 0o644), folder / "dist")


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("second")
    return dist(checkout(folder / "elsewhere", 1_200_000_000, 0o600), folder / "dist")


def kept(archives: dict[str, bytes], ending: str, folder: Path) -> Path:
    """The product's archive of this form, as a file."""
    (name,) = (name for name in archives if name.startswith("numalign-") and name.endswith(ending))
    (folder / name).write_bytes(archives[name])
    return folder / name


def test_another_checkout_builds_the_same_bytes(first: dict[str, bytes], second: dict[str, bytes]) -> None:
    assert sorted(name.partition("-")[0] for name in first) == ["SHA256SUMS", "numalign", "numalign", "numalign_devkit"]
    assert {name for name in first if first[name] != second[name]} == set()


def test_files_in_the_source_archive_have_the_time_of_the_commit(first: dict[str, bytes], tmp_path: Path) -> None:
    with tarfile.open(kept(first, ".tar.gz", tmp_path)) as archive:
        assert {member.mtime for member in archive} == {int(COMMITTED)}


def test_the_wheel_has_the_notice_and_every_table_that_it_names(first: dict[str, bytes], tmp_path: Path) -> None:
    with zipfile.ZipFile(kept(first, ".whl", tmp_path)) as wheel:
        inside = set(wheel.namelist())
    lines = map(str.strip, (ROOT / "NOTICE").read_text().splitlines())
    named = {line.removeprefix("src/") for line in lines if line.startswith("src/")}
    others = [*(ROOT / "src").rglob("data/*.json*"), *(ROOT / "src").rglob("static/*.min.js")]
    assert named == {str(path.relative_to(ROOT / "src")) for path in others}
    assert named <= inside
    assert {"LICENSE", "NOTICE"} == {Path(each).name for each in inside if "dist-info/licenses/" in each}


def test_only_wheels_with_hashes_are_installed() -> None:
    """Building a source archive runs build requirements that no file pins."""
    makefile = (ROOT / "Makefile").read_text().replace("\\\n", " ")
    (pinned,) = re.findall(r"^PINNED := \$\(PIP\) install (.+)$", makefile, re.MULTILINE)
    assert pinned.split() == ["--require-hashes", "--only-binary", ":all:"]
    assert re.findall(r"^\t\$\(PIP\) install.*-r .*$", makefile, re.MULTILINE) == []


def test_the_bill_of_materials_lists_every_pin(tmp_path: Path) -> None:
    conftest.require(find_spec("cyclonedx_py"), "cyclonedx-bom, which `make lint` installs")
    made = []
    for name in ("first", "second"):
        subprocess.run([sys.executable, ROOT / "tools/sbom.py", tmp_path / name], cwd=tmp_path, check=True)
        made.append((tmp_path / name).read_bytes())
    bill = json.loads(made[0])
    listed = {(each["name"], each["version"]) for each in bill["components"]}
    assert listed == set[tuple[str, ...]]().union(*(pins(ROOT / f"requirements/{name}.txt") for name in SHIPPED))
    assert (bill["bomFormat"], bill["metadata"]["component"]["version"]) == ("CycloneDX", "0.1.0")
    assert made[0] == made[1]


def record(name: str, **affected: Any) -> dict[str, Any]:
    return {"id": "X-1", "affected": [{"package": {"ecosystem": "PyPI", "name": name}, **affected}]}


def span(*events: tuple[str, str]) -> dict[str, Any]:
    return record("some-thing", ranges=[{"type": "ECOSYSTEM", "events": [dict([event]) for event in events]}])


RECORDS = {
    "a listed version": (record("some-thing", versions=["1.5"]), 1),
    "another spelling": (record("Some_Thing", versions=["1.5.0"]), 1),
    "another version": (record("some-thing", versions=["1.4"]), 0),
    "another package": (record("something", versions=["1.5"]), 0),
    "fixed later": (span(("introduced", "0"), ("fixed", "1.6")), 1),
    "fixed in it": (span(("introduced", "0"), ("fixed", "1.5")), 0),
    "introduced again": (span(("introduced", "0"), ("fixed", "1.1"), ("introduced", "1.5")), 1),
    "affected last": (span(("introduced", "1"), ("last_affected", "1.5")), 1),
    "affected before": (span(("introduced", "1"), ("last_affected", "1.4")), 0),
    "introduced later": (span(("introduced", "2")), 0),
    "withdrawn": (record("some-thing", versions=["1.5"]) | {"withdrawn": "2026-01-01T00:00:00Z"}, 0),
}
PINNED = "some-thing==1.5 ; python_version > '3' \\\n    --hash=sha256:00\n    # via other==9\n"


def audit(folder: Path, records: list[dict[str, Any]]) -> subprocess.CompletedProcess[str]:
    (folder / "pins.txt").write_text(PINNED)
    with zipfile.ZipFile(folder / "all.zip", "w") as archive:
        for number, each in enumerate(records):
            archive.writestr(f"{number}.json", json.dumps(each))
    command = [sys.executable, str(ROOT / "tools/audit.py"), str(folder / "all.zip"), str(folder / "pins.txt")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("known, code", RECORDS.values(), ids=RECORDS)
def test_a_pin_with_a_known_vulnerability_is_found_without_network(
    known: dict[str, Any], code: int, tmp_path: Path
) -> None:
    ran = audit(tmp_path, [known])
    assert (ran.returncode, "some-thing==1.5: X-1" in ran.stdout) == (code, bool(code)), ran.stderr


def test_an_empty_database_is_no_answer(tmp_path: Path) -> None:
    assert audit(tmp_path, []).returncode == 2
