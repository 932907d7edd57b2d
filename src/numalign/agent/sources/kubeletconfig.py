"""How this node's kubelet is configured: what it says itself, else its file with drop-ins and flags over it.

`readings` calls `read` now and then. /configz comes first, because it alone has everything in it (exporter spec 10);
files are merged by the kubelet's own rules and given its defaults (D-08). Where nothing can be read the kubelet's
defaults are assumed, and that is said: `assumed` keeps a guess from passing for a fact."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct

from numalign.agent.sources import hostfiles, kubeletflags
from numalign.agent.sources.kubeletflags import CommandLine
from numalign.api import errors
from numalign.api.decode import fields, mergepatch, yamltext
from numalign.kubelet import configuration, settings, versions
from numalign.kubelet.machine import Machine

LARGEST: Final = 1 << 20
ASKING: Final = 10.0
"""Seconds for /configz to answer."""
DROP_IN: Final = ".conf"
MOST_DROP_INS: Final = 1000
HEAD: Final = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
DEFAULT_EVICTIONS: Final = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

Object = dict[str, Any]
Fetch = Callable[[], Awaitable[bytes]]
"""Asks /configz; whatever keeps an answer from coming is raised as BadObject."""


class Sources(Struct, frozen=True, kw_only=True):
    """Where to look. Paths are the host's own; `host` is where its root is for us."""

    host: Path = Path("/")
    kubelet_root: str = kubeletflags.DEFAULT_ROOT
    config: str = ""
    """Named by the user; empty: what the kubelet's command line says, else config.yaml in its root folder."""
    config_dir: str = ""
    configz: Fetch | None = None

    def at(self, path: str) -> Path:
        return self.host / path.lstrip("/")


class Configuration(Struct, frozen=True):
    settings: settings.Settings
    source: str
    assumed: bool = False
    written: int = 0
    """When the youngest of its files was, in nanoseconds since 1970; 0: the kubelet itself said it."""
    problems: tuple[str, ...] = ()


async def read(sources: Sources, machine: Machine, minor: versions.Minor = versions.NEWEST) -> Configuration:
    """The first source that makes a configuration; never raises for what they hold."""
    problems: list[str] = []
    if sources.configz is not None:
        try:
            told = from_configz(await _answer(sources.configz))
            return Configuration(configuration.read(told, "/configz", machine, minor), "/configz")
        except errors.BadObject as problem:
            problems.append(str(problem))
    try:
        told, source, written = await asyncio.to_thread(_from_files, sources)
        read = configuration.read(told, source, machine, minor)
        return Configuration(read, source, written=written, problems=tuple(problems))
    except (errors.BadObject, hostfiles.Unreadable) as problem:
        return assumed(machine, minor, *problems, str(problem))


async def _answer(configz: Fetch) -> bytes:
    try:
        async with asyncio.timeout(ASKING):
            return await configz()
    except TimeoutError:
        raise errors.BadObject(configuration.KIND, "/configz", "", f"no answer in {ASKING:g} s") from None


def assumed(machine: Machine, minor: versions.Minor, *problems: str) -> Configuration:
    """A kubelet's defaults, where its configuration cannot be known."""
    defaults = configuration.read(HEAD, "defaults", machine, minor)
    return Configuration(defaults, "defaults", True, problems=(*problems, "the kubelet's defaults are assumed"))


def from_configz(raw: bytes) -> Object:
    """The answer of /configz, which names neither kind nor version in older kubelets."""
    try:
        told = msgspec.json.decode(raw[:LARGEST])
    except (ValueError, RecursionError) as problem:
        raise errors.BadObject(configuration.KIND, "/configz", "", errors.clipped(str(problem))) from None
    inside = fields.root(told, configuration.KIND, "/configz").at("kubeletconfig")
    if not inside.given:
        raise inside.bad("missing; is this a kubelet's /configz?")
    return HEAD | fields.named(inside)


def _from_files(sources: Sources) -> tuple[Object, str, int]:
    line = kubeletflags.found(sources.at("/proc"), sources.kubelet_root)
    seen = line or CommandLine()
    # A kubelet that is seen to run without a file has none, whatever lies around.
    default = "" if line else f"{sources.kubelet_root}/config.yaml"
    file, folder = sources.config or seen.config or default, sources.config_dir or seen.config_dir
    told = _loaded(sources.at(file)) if file else HEAD | {"evictionHard": {}}
    drop_ins = list(_drop_ins(sources.at(folder))) if folder else []
    for path in drop_ins:
        told = mergepatch.applied(told, _parsed(path))
    source = ", ".join(
        filter(None, (file, f"{len(drop_ins)} drop-ins" * bool(drop_ins), "flags" * bool(seen.overrules)))
    )
    # Folders too: one is written when a file in it comes or goes.
    places = {*(sources.at(each) for each in (file, folder) if each), *drop_ins, *(each.parent for each in drop_ins)}
    return overruled(told, seen.overrules), source or "the command line", max(map(hostfiles.written, places), default=0)


def _loaded(path: Path) -> Object:
    """The main file. What it does not say of evictions is filled in before drop-ins are merged over it."""
    told = _parsed(path)
    evictions = fields.root(told, configuration.KIND, str(path)).at("evictionHard")
    if not evictions.given:
        return told | {"evictionHard": DEFAULT_EVICTIONS}
    merge = told.get("mergeDefaultEvictionSettings") is True
    return told | {"evictionHard": DEFAULT_EVICTIONS | fields.named(evictions)} if merge else told


def _parsed(path: Path) -> Object:
    raw = hostfiles.content(path, LARGEST)
    if raw is None:
        raise hostfiles.Unreadable(f"{path} is not there")
    documents = yamltext.documents(raw.decode("utf-8", "replace"), str(path))
    file = fields.root(documents[0].value if documents else {}, configuration.KIND, str(path))
    fields.of_kind(file, configuration.API_VERSION, configuration.KIND)
    return fields.named(file)


def _drop_ins(folder: Path) -> Iterator[Path]:
    """In the order of their names, folders walked in place; links to folders are not followed, as in the kubelet."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as problem:
        raise hostfiles.Unreadable(f"{folder} cannot be read: {problem.strerror}") from None
    for entry in entries[:MOST_DROP_INS]:
        if entry.is_dir(follow_symlinks=False):
            yield from _drop_ins(Path(entry.path))
        elif entry.name.endswith(DROP_IN):
            yield Path(entry.path)


def overruled(told: Object, flags: Mapping[str, Any]) -> Object:
    """With flags over it, which replace whole fields; gates that no flag names stay."""
    # Defaults of evictions belong to the main file alone; a drop-in that takes them away leaves none.
    told = {"evictionHard": {}} | told
    gates: object = told.get("featureGates")
    if "featureGates" in flags and isinstance(gates, Mapping):
        return told | dict(flags) | {"featureGates": {**gates, **flags["featureGates"]}}
    return told | dict(flags)
