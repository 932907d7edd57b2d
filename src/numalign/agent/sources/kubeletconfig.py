"""Determines the configuration of this node's kubelet: /configz, otherwise its file with drop-ins and flags.

`readings` calls `read` periodically. /configz takes precedence, because it alone is complete (exporter spec 10); it
needs the right to get nodes/configz and a verified connection to the kubelet, so the user has to ask for it. Never does
the agent go through nodes/proxy, which would let it run commands in pods (exporter spec 5.4). Files are merged by the
kubelet's rules and completed with its defaults (D-08). Flags of the running kubelet override every file; a flag
with a map or a list replaces all of it, except for feature gates, which are merged. Where nothing can be read, the
kubelet's defaults are assumed and `assumed` says so."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct, field

from numalign.agent.sources import hostfiles, kubeletprocess
from numalign.api import errors
from numalign.api.decode import decode, fields, yamltext
from numalign.kube.clock import SystemClock
from numalign.kube.errors import KubeError
from numalign.kube.request import Repeat, Request
from numalign.kube.transport.auth import Access
from numalign.kube.transport.dial import Server
from numalign.kube.transport.sender import Sender
from numalign.kube.transport.tls import Contexts, Trust
from numalign.kube.transport.transport import Limits
from numalign.kubelet import configuration, settings, versions
from numalign.kubelet.machine.machine import Machine

COMMAND_LINE: Final = "Kubelet command line"
DEFAULT_ROOT: Final = "/var/lib/kubelet"
PLACES: Final = ("config", "config-dir", "root-dir")


class CommandLine(Struct, frozen=True):
    config: str = ""
    config_dir: str = ""
    root_dir: str = DEFAULT_ROOT
    overrides: Mapping[str, Any] = field(default_factory=dict)
    """Fields of a KubeletConfiguration."""


def find_command_line(proc: Path, root_dir: str) -> tuple[CommandLine | None, tuple[str, ...]]:
    """The kubelet with this root folder, and problems; None where none is visible, BadObject where its flags are
    invalid."""
    kubelets = kubeletprocess.find(proc)
    lines = {pid: read_flags(_arguments(proc / str(pid) / "cmdline")) for pid in kubelets.trusted}
    chosen, problem = kubeletprocess.choose(proc, (pid for pid in lines if Path(lines[pid].root_dir) == Path(root_dir)))
    if not lines and kubelets.others:
        problem = (
            f"process {kubelets.others[0]} is called kubelet and is ignored: it runs in a pod, in another namespace or "
            "not as root; if it is the kubelet, name its file with --kubelet-config"
        )
    return (None if chosen is None else lines[chosen]), (problem,) if problem else ()


def _arguments(path: Path) -> list[str]:
    try:
        raw = hostfiles.content(path) or b""
    except hostfiles.Unreadable:
        return []
    return raw.decode("utf-8", "replace").rstrip("\0").split("\0")[1:]


def read_flags(arguments: Iterable[str]) -> CommandLine:
    given: dict[str, list[str]] = {}
    for name, value in _flags(iter(arguments)):
        given.setdefault(name, []).append(value)
    places = {name.replace("-", "_"): values[-1] for name, values in given.items() if name in PLACES}
    overrides = {FIELDS[name][0]: _value(name, values) for name, values in given.items() if name in FIELDS}
    return CommandLine(**places, overrides=overrides)


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
        raise errors.BadObject(
            COMMAND_LINE, "", f"--{name}", f"{errors.echo(values[-1])} is nothing a kubelet reads"
        ) from None


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
    """One pair per flag: commas belong to the value."""
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


LARGEST: Final = 1 << 20
ASKING: Final = 10.0
"""Seconds for /configz to answer."""
DROP_IN: Final = ".conf"
MOST_DROP_INS: Final = 1000
DEFAULT_EVICTIONS: Final = {
    "memory.available": "100Mi",
    "nodefs.available": "10%",
    "nodefs.inodesFree": "5%",
    "imagefs.available": "15%",
    "imagefs.inodesFree": "5%",
}

Object = dict[str, Any]
Fetch = Callable[[], Awaitable[bytes]]
"""Reads /configz; failures are raised as BadObject."""


class ConfigSources(Struct, frozen=True, kw_only=True):
    """The sources. Paths are the host's; `host` is its root in the agent's mount namespace."""

    host: Path = Path("/")
    kubelet_root: str = DEFAULT_ROOT
    config: str = ""
    """Named by the user; empty: from the kubelet's command line, otherwise config.yaml in its root folder."""
    config_dir: str = ""
    configz: Fetch | None = None

    def at(self, path: str) -> Path:
        return self.host / path.lstrip("/")


class Configuration(Struct, frozen=True):
    settings: settings.Settings
    source: str
    assumed: bool = False
    written: int = 0
    """When the newest of its files changed, in nanoseconds since 1970; 0: from /configz."""
    problems: tuple[str, ...] = ()


async def read(sources: ConfigSources, machine: Machine, minor: versions.Minor = versions.NEWEST) -> Configuration:
    """The first source that yields a configuration; never raises for its content."""
    problems: list[str] = []
    if sources.configz is not None:
        try:
            loaded = configuration.from_configz(await _answer(sources.configz))
            return Configuration(configuration.read(loaded, "/configz", machine, minor), "/configz")
        except errors.BadObject as problem:
            problems.append(str(problem))
    try:
        line, odd = await asyncio.to_thread(find_command_line, sources.at("/proc"), sources.kubelet_root)
        problems += odd
        found = await asyncio.to_thread(_from_files, sources, line, machine, minor)
        return msgspec.structs.replace(found, problems=tuple(problems))
    except (errors.BadObject, hostfiles.Unreadable) as problem:
        return assumed(machine, minor, *problems, str(problem))


async def _answer(configz: Fetch) -> bytes:
    try:
        async with asyncio.timeout(ASKING):
            return await configz()
    except TimeoutError:
        raise errors.BadObject(configuration.KIND, "/configz", "", f"no answer in {ASKING:g} s") from None


def assumed(machine: Machine, minor: versions.Minor, *problems: str) -> Configuration:
    """The kubelet's defaults, where its configuration is unknown."""
    defaults = configuration.read(configuration.HEAD, "defaults", machine, minor)
    return Configuration(defaults, "defaults", True, problems=(*problems, "the kubelet's defaults are assumed"))


def _from_files(
    sources: ConfigSources, line: CommandLine | None, machine: Machine, minor: versions.Minor
) -> Configuration:
    seen = line or CommandLine()
    # A running kubelet without --config uses no file, even if one exists.
    default = "" if line else f"{sources.kubelet_root}/config.yaml"
    file, folder = sources.config or seen.config or default, sources.config_dir or seen.config_dir
    try:
        loaded, drop_ins = _merged(sources, file, folder)
        source = ", ".join(
            filter(None, (file, f"{len(drop_ins)} drop-ins" * bool(drop_ins), "flags" * bool(seen.overrides)))
        )
        source = source or "the command line"
        read = configuration.read(overridden(loaded, seen.overrides), source, machine, minor)
    except errors.BadObject as problem:
        named_by_user = file in (sources.config, default) and folder == sources.config_dir
        raise problem if named_by_user else _unquoted(problem) from None
    # Folders, too: their time changes when a file is added or removed.
    places = {*(sources.at(each) for each in (file, folder) if each), *drop_ins, *(each.parent for each in drop_ins)}
    return Configuration(read, source, written=max(map(hostfiles.written, places), default=0))


def _merged(sources: ConfigSources, file: str, folder: str) -> tuple[Object, list[Path]]:
    loaded = _loaded(sources.at(file)) if file else configuration.HEAD | {"evictionHard": {}}
    drop_ins = list(_drop_ins(sources.at(folder))) if folder else []
    for path in drop_ins:
        loaded = decode.merge_patch(loaded, _parsed(path))
    return loaded, drop_ins


def _unquoted(problem: errors.BadObject) -> errors.BadObject:
    """Without anything that the file holds: the path came from a process, and the agent may read every file."""
    # The first part of a field is a field of KubeletConfiguration, what follows may be a key of the file.
    position = problem.field if isinstance(problem, yamltext.BadYAML) else re.split(r"[.\[]", problem.field)[0]
    why = "cannot be used; its content is not shown, because the kubelet's command line named the file"
    return errors.BadObject(configuration.KIND, problem.name, position, why)


def _loaded(path: Path) -> Object:
    """The main file. Defaults of evictions are filled in before drop-ins are merged."""
    loaded = _parsed(path)
    evictions = fields.root(loaded, configuration.KIND, str(path)).at("evictionHard")
    if not evictions.given:
        return loaded | {"evictionHard": DEFAULT_EVICTIONS}
    merge = loaded.get("mergeDefaultEvictionSettings") is True
    return loaded | {"evictionHard": DEFAULT_EVICTIONS | fields.named(evictions)} if merge else loaded


def _parsed(path: Path) -> Object:
    raw = hostfiles.content(path, LARGEST)
    if raw is None:
        raise hostfiles.Unreadable(f"{path} is not there")
    documents = yamltext.documents(raw.decode("utf-8", "replace"), str(path))
    file = fields.root(documents[0].value if documents else {}, configuration.KIND, str(path))
    fields.of_kind(file, configuration.API_VERSION, configuration.KIND)
    return fields.named(file)


def _drop_ins(folder: Path) -> Iterator[Path]:
    """Sorted by name, including subfolders; links to folders are not followed, as in the kubelet."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: os.fsencode(entry.name))
    except OSError as problem:
        raise hostfiles.Unreadable(f"{folder} cannot be read: {problem.strerror}") from None
    for entry in entries[:MOST_DROP_INS]:
        if entry.is_dir(follow_symlinks=False):
            yield from _drop_ins(Path(entry.path))
        elif entry.name.endswith(DROP_IN):
            yield Path(entry.path)


def overridden(loaded: Object, flags: Mapping[str, Any]) -> Object:
    """Applies flags, which replace whole fields; feature gates are merged."""
    # Defaults of evictions apply to the main file only; a drop-in can remove them.
    loaded = {"evictionHard": {}} | loaded
    gates: object = loaded.get("featureGates")
    if "featureGates" in flags and isinstance(gates, Mapping):
        return loaded | dict(flags) | {"featureGates": {**gates, **flags["featureGates"]}}
    return loaded | dict(flags)


PORT: Final = 10250
SECONDS: Final = Limits(connections=1, connect_seconds=3.0, call_seconds=5.0)
CERTIFICATE: Final = "pki/kubelet.crt"
"""Below the kubelet's root folder: its self-signed certificate, where no authority signs one."""


def kubelet_access(agent: Access, address: str, node: str, authority: Path) -> Access:
    """The kubelet's own server, with the agent's identity. The certificate must be the node's: a token is sent."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port or PORT
        if not host or parts.path or parts.username is not None:
            raise ValueError
    except ValueError:
        why = f"{errors.echo(address)} is not HOST or HOST:PORT"
        raise errors.BadObject("Agent", "", "--kubelet-address", why) from None
    contexts = Contexts(Trust(file=str(authority)), "--kubelet-certificate-authority", "Agent")
    return Access(server=Server(host, port, tls_name=node), login=agent.login, contexts=contexts)


class KubeletClient:
    """Asks the kubelet for /configz, which needs the right to get nodes/configz."""

    def __init__(self, access: Access) -> None:
        self._sender = Sender(access, SystemClock(), SECONDS)
        words = f"configuration of the kubelet at {access.server.authority}"
        # Sent once: the next snapshot retries, and files serve until then.
        self._request = Request(verb="get", method="GET", path="/configz", words=words, repeat=Repeat.REFUSED)

    async def configz(self) -> bytes:
        try:
            return await self._sender.call(self._request)
        except KubeError as problem:
            raise errors.BadObject(configuration.KIND, "/configz", "", f"no answer: {problem}") from None

    def close(self) -> None:
        self._sender.close()
