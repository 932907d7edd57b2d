"""The kubelet's command line, as far as it decides admission: which files it reads, and what its flags overrule.

`kubeletconfig` asks `found` for the running kubelet of a root folder, where /proc shows other processes at all. Flags
win over every file (exporter spec 10); a flag with a map or a list takes the place of the whole of it, except for
feature gates, which are merged."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, field

from numalign.agent.sources import hostfiles
from numalign.agent.sources.hostfiles import Files
from numalign.api import errors

KIND: Final = "Kubelet command line"
NAME: Final = "kubelet"
DEFAULT_ROOT: Final = "/var/lib/kubelet"
PLACES: Final = ("config", "config-dir", "root-dir")


class CommandLine(Struct, frozen=True):
    config: str = ""
    config_dir: str = ""
    root_dir: str = DEFAULT_ROOT
    overrules: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a KubeletConfiguration."""


def found(proc: Path, root_dir: str) -> CommandLine | None:
    """Of the kubelet with this root folder; None where none can be seen, BadObject where its flags make no sense.

    Several on one machine, as in a lab, call different folders by the same name; then the one that sees the files that
    we see is meant."""
    files = Files(proc)
    kubelets = [pid for pid in files.processes() if files.text(f"{pid}/comm") == NAME]
    lines = {pid: read(_arguments(proc / str(pid) / "cmdline")) for pid in kubelets}
    ours = [pid for pid, line in lines.items() if Path(line.root_dir) == Path(root_dir)]
    if len(ours) > 1:
        ours = [pid for pid in ours if _mounts(proc, str(pid)) == _mounts(proc, "self")]
    return lines[ours[0]] if len(ours) == 1 else None


def _mounts(proc: Path, process: str) -> str:
    """The name of its mount namespace."""
    try:
        return os.readlink(proc / process / "ns/mnt")
    except OSError:
        return ""


def _arguments(path: Path) -> list[str]:
    try:
        raw = hostfiles.content(path) or b""
    except hostfiles.Unreadable:
        return []
    return raw.decode("utf-8", "replace").rstrip("\0").split("\0")[1:]


def read(arguments: Iterable[str]) -> CommandLine:
    given: dict[str, list[str]] = {}
    for name, value in _flags(iter(arguments)):
        given.setdefault(name, []).append(value)
    places = {name.replace("-", "_"): values[-1] for name, values in given.items() if name in PLACES}
    overrules = {FIELDS[name][0]: _value(name, values) for name, values in given.items() if name in FIELDS}
    return CommandLine(**places, overrules=overrules)


def _flags(arguments: Iterator[str]) -> Iterator[tuple[str, str]]:
    for argument in arguments:
        if argument == "--":
            return
        name, equals, value = argument.removeprefix("--").partition("=")
        name = name.replace("_", "-")
        if not argument.startswith("--") or (name not in FIELDS and name not in PLACES):
            continue
        yield name, value if equals else next(arguments, "")


def _value(name: str, values: list[str]) -> Any:
    try:
        return FIELDS[name][1](values)
    except ValueError:
        raise errors.BadObject(KIND, "", f"--{name}", f"{errors.echo(values[-1])} is nothing a kubelet reads") from None


def _last(values: list[str]) -> str:
    return values[-1]


def _number(values: list[str]) -> int:
    return int(values[-1])


def _pairs(values: list[str], separator: str = "=") -> dict[str, str]:
    parts = (part.split(separator, 1) for value in values for part in value.split(",") if part)
    return {name.strip(): value.strip() for name, value in parts}


def _thresholds(values: list[str]) -> dict[str, str]:
    return _pairs(values, "<")


def _options(values: list[str]) -> dict[str, str]:
    """One pair for each flag: commas belong to the value."""
    return {name.strip(): value.strip() for name, value in (value.split("=", 1) for value in values)}


def _gates(values: list[str]) -> dict[str, bool]:
    words = {"true": True, "1": True, "t": True, "false": False, "0": False, "f": False}
    return {name: words.get(value.lower(), False) for name, value in _pairs(values).items()}


def _reserved_memory(values: list[str]) -> list[dict[str, Any]]:
    """0:memory=1Gi,hugepages-1Gi=2Gi;1:memory=2Gi"""
    parts = (part.split(":", 1) for value in values for part in value.split(";") if part)
    return [{"numaNode": int(zone), "limits": _pairs([limits])} for zone, limits in parts]


FIELDS: Final[Mapping[str, tuple[str, Callable[[list[str]], Any]]]] = {
    "topology-manager-policy": ("topologyManagerPolicy", _last),
    "topology-manager-scope": ("topologyManagerScope", _last),
    "topology-manager-policy-options": ("topologyManagerPolicyOptions", _pairs),
    "cpu-manager-policy": ("cpuManagerPolicy", _last),
    "cpu-manager-policy-options": ("cpuManagerPolicyOptions", _options),
    "memory-manager-policy": ("memoryManagerPolicy", _last),
    "reserved-memory": ("reservedMemory", _reserved_memory),
    "reserved-cpus": ("reservedSystemCPUs", _last),
    "kube-reserved": ("kubeReserved", _pairs),
    "system-reserved": ("systemReserved", _pairs),
    "kube-reserved-cgroup": ("kubeReservedCgroup", _last),
    "system-reserved-cgroup": ("systemReservedCgroup", _last),
    "eviction-hard": ("evictionHard", _thresholds),
    "max-pods": ("maxPods", _number),
    "feature-gates": ("featureGates", _gates),
}
