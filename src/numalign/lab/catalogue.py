"""The binaries that can be built, each with its Go module, its package and the time of a first build.

The modules are folders under `go/` beside this file, each with its own go.mod and go.sum. Nothing here runs a
program."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Final

from msgspec import Struct

from numalign.api.errors import BadObject

SOURCES: Final = Path(__file__).resolve().parent / "go"
KUBERNETES: Final = "v1.37.1"
ORACLE_MINORS: Final = {"1.34": "v1.34.4", "1.35": "v1.35.4", "1.36": "v1.36.3", "1.37": "v1.37.1"}


class Binary(Struct, frozen=True):
    """One program: the folder of its module, the package, and minutes of a first build on two cores."""

    name: str
    module: str
    package: str = "."
    version: str = ""
    """The version that the binary reports; clients of Kubernetes components check it."""
    minutes: float = 1.0

    @property
    def folder(self) -> Path:
        return SOURCES / self.module

    def link_flags(self) -> str:
        if not self.version:
            return "-s -w"
        major, minor, _ = self.version.removeprefix("v").split(".")
        stamp = "k8s.io/component-base/version."
        return f"-s -w -X {stamp}gitVersion={self.version} -X {stamp}gitMajor={major} -X {stamp}gitMinor={minor}"


def _kubernetes(name: str, minutes: float) -> Binary:
    return Binary(name, "kubernetes", f"k8s.io/kubernetes/cmd/{name}", KUBERNETES, minutes)


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
    _kubernetes("kube-controller-manager", 1),
    _kubernetes("kubectl", 1),
    Binary("fakecri", "kubernetes", "./fakecri"),
    Binary("etcd", "etcd", "go.etcd.io/etcd/server/v3"),
    Binary("nfd-topology-updater", "nfd", "sigs.k8s.io/node-feature-discovery/cmd/nfd-topology-updater", minutes=3),
)


def chosen(names: Iterable[str]) -> tuple[Binary, ...]:
    """The binaries with these names; all if no name is given."""
    known = {binary.name: binary for binary in BINARIES}
    listed = list(names)
    for name in listed:
        if name not in known:
            raise BadObject("Lab binary", name, "name", f"unknown; known are {', '.join(known)}")
    return tuple(known[name] for name in listed) or BINARIES
