"""Building into a cache, with a Go command that only pretends."""

from pathlib import Path

import pytest

from numalign.api.errors import BadObject
from numalign.lab import build
from numalign.lab.build import Binary
from numalign.lab.errors import LabError

BUILDS = """#!/bin/sh
case "$1" in
  version) echo "go version go1.99.0 linux/amd64" ;;
  build) echo built >> "$GO_LOG"; while [ "$1" != "-o" ]; do shift; done; echo "#!/bin/sh" > "$2" ;;
esac
"""
FAILS = """#!/bin/sh
[ "$1" = version ] && { echo "go version go1.99.0 linux/amd64"; exit 0; }
echo "$GO_COMPLAINT" >&2; exit 1
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Binary:
    """A module with one file, an empty cache, and nothing on the path but our own Go."""
    folder = tmp_path / "lab" / "thing"
    folder.mkdir(parents=True)
    (folder / "go.mod").write_text("module example.com/thing\n")
    (folder / "main.go").write_text("package main\n")
    monkeypatch.setattr(build, "SOURCES", tmp_path / "lab")
    monkeypatch.setenv("LAB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GO_LOG", str(tmp_path / "log"))
    monkeypatch.setattr("shutil.which", lambda _: str(tmp_path / "go"))
    return Binary("thing", "thing")


def pretend(tmp_path: Path, script: str) -> None:
    (tmp_path / "go").write_text(script)
    (tmp_path / "go").chmod(0o755)


def built(binary: Binary) -> list[build.BuiltBinary]:
    return list(build.build([binary], lambda _: None))


def test_a_binary_is_built_once_and_found_again(module: Binary, tmp_path: Path) -> None:
    pretend(tmp_path, BUILDS)
    first, second = built(module)[0], built(module)[0]
    assert (first.fresh, second.fresh) == (True, False)
    assert first.path == second.path
    assert (tmp_path / "log").read_text() == "built\n"


@pytest.mark.parametrize("file", ["go.mod", "main.go", "go.sum", "inside/more.go"])
def test_a_changed_source_makes_another_binary(file: str, module: Binary, tmp_path: Path) -> None:
    pretend(tmp_path, BUILDS)
    before = built(module)[0].path
    (module.folder / file).parent.mkdir(exist_ok=True)
    (module.folder / file).write_text("// changed\n")
    assert built(module)[0].path != before


def test_a_changed_test_makes_no_other_binary(module: Binary) -> None:
    before = build.key(module, "go1.99")
    (module.folder / "main_test.go").write_text("package main\n")
    assert build.key(module, "go1.99") == before


def test_a_local_module_that_is_replaced_counts_as_source(module: Binary, tmp_path: Path) -> None:
    common = tmp_path / "lab" / "common"
    common.mkdir()
    (module.folder / "go.mod").write_text("module example.com/thing\nreplace example.com/common => ../common\n")
    before = build.key(module, "go1.99")
    (common / "common.go").write_text("package common\n")
    assert build.key(module, "go1.99") != before


def test_another_go_makes_another_binary(module: Binary) -> None:
    assert build.key(module, "go1.98") != build.key(module, "go1.99")


def test_a_download_that_fails_is_told_with_its_module(
    module: Binary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, FAILS)
    monkeypatch.setenv("GO_COMPLAINT", 'go: k8s.io/api@v0.37.1: Get "x": dial tcp: lookup proxy: no such host')
    with pytest.raises(LabError, match=r"thing: module k8s.io/api v0.37.1 could not be downloaded; check"):
        built(module)


def test_a_failed_build_leaves_nothing_in_the_cache(
    module: Binary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(tmp_path, FAILS)
    monkeypatch.setenv("GO_COMPLAINT", "main.go:1: undefined: x")
    with pytest.raises(LabError, match=r"go build failed in \S+/lab/thing: main.go:1: undefined: x"):
        built(module)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_a_missing_module_names_the_remedy(module: Binary) -> None:
    with pytest.raises(LabError, match="reinstall numalign-devkit"):
        build.key(Binary("other", "other"), "go1.99")


def test_an_old_go_is_not_used(module: Binary, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(tmp_path, "#!/bin/sh\necho go version go1.20.1 linux/amd64\n")
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert not build.found()
    with pytest.raises(LabError, match=r"no Go 1\.26 or newer found; install Go"):
        build.go()


def test_unknown_names_are_refused_with_the_known_ones() -> None:
    with pytest.raises(BadObject, match=r"Lab binary kubelte, name: unknown; known are oracle-kubelet-1\.34"):
        build.chosen(["kubelet", "kubelte"])


def test_no_name_means_everything() -> None:
    assert set(build.BINARIES) - set(build.chosen([])) == set(
        build.chosen(["e2e.test", "kube-scheduler-1.34", "kube-scheduler-1.35", "kube-scheduler-1.36"])
    )


def test_every_module_is_pinned_in_the_repository() -> None:
    for binary in build.BINARIES:
        assert (binary.folder / "go.mod").exists(), binary.name
        assert (binary.folder / "go.sum").exists(), binary.name
