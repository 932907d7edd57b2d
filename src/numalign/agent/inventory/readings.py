"""Reads everything that the kubelet, its files and the kernel say at about the same time.

`snapshot` calls `read`. If the kubelet changes something in between, it reads again, so that checkpoints and
podresources agree. A missing or malformed source becomes a problem in words beside an absent value; `read` never raises
for the content of a node. Hardware and configuration are cached for a while, a checkpoint as long as its bytes are the
same. `LostDevices` drops devices from the checkpoint that the kubelet no longer offers (exporter spec 2.4)."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Generic, Protocol, TypeVar

from msgspec import Struct, structs

from numalign.agent.inventory import startview
from numalign.agent.inventory.startview import Evidence
from numalign.agent.sources import checkpoints, filewatch, hostfiles, kubeletconfig, sysfs
from numalign.agent.sources.checkpoints import CPUCheckpoint, DeviceCheckpoint, MemoryCheckpoint
from numalign.agent.sources.kubeletconfig import Configuration
from numalign.agent.sources.podresources import SOCKET, Allocatable, PodResources, PodResourcesError
from numalign.agent.sources.sysfs import Survey
from numalign.api import errors
from numalign.kube.clock import Clock, SystemClock
from numalign.kubelet import start, versions
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings

T = TypeVar("T")
BROKEN_FOR: Final = 60.0
"""Seconds after which an unreadable checkpoint is ignored: a newer kubelet may write another format."""


class TimedCache(Generic[T]):
    """A value that is valid for some seconds; `last` is the value, valid or not."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._until = 0.0
        self.last: T | None = None

    def get(self, now: float) -> T | None:
        return self.last if now < self._until else None

    def keep(self, value: T, now: float) -> T:
        self.last, self._until = value, now + self._seconds
        return value

    def forget(self) -> None:
        """Invalidates the value."""
        self._until = 0.0


class _CachedFile(Generic[T]):
    """One checkpoint: its last bytes and their decoded value."""

    def __init__(self, path: Path, parse: Callable[[bytes], T]) -> None:
        self._path = path
        self._parse = parse
        self.seen: bytes | str | None = None
        self._good_until: float | None = None
        self.value: T | None = None
        self.problem = ""

    def look(self, now: float) -> bool:
        """True if the file changed."""
        if self.value is not None:
            self._good_until = now
        seen = self._content()
        if seen == self.seen:
            return False
        self.seen, self.value = seen, None
        self.problem = seen if isinstance(seen, str) else ""
        if isinstance(seen, bytes):
            self._read(seen)
        return True

    def is_lost(self, now: float) -> bool:
        """Whether the file is unreadable now and was readable a short while ago."""
        return bool(self.problem) and self._good_until is not None and now - self._good_until < BROKEN_FOR

    def _content(self) -> bytes | str | None:
        """The bytes, the reason why they cannot be read, or None without a file."""
        try:
            return hostfiles.content(self._path, checkpoints.LARGEST)
        except hostfiles.Unreadable as problem:
            return str(problem)

    def _read(self, raw: bytes) -> None:
        try:
            self.value = self._parse(raw)
        except errors.BadObject as problem:
            self.problem = str(problem)


class CheckpointSet(Struct, frozen=True):
    cpu: CPUCheckpoint | None
    memory: MemoryCheckpoint | None
    devices: DeviceCheckpoint | None


class CheckpointCache:
    """The three checkpoints of one kubelet."""

    def __init__(self, root: Path, device_plugins: Path) -> None:
        self._cpu = _CachedFile(root / checkpoints.CPU, checkpoints.cpu)
        self._memory = _CachedFile(root / checkpoints.MEMORY, checkpoints.memory)
        self._devices = _CachedFile(device_plugins / checkpoints.DEVICES, checkpoints.devices)
        self._files: Final = (self._cpu, self._memory, self._devices)

    def look(self, now: float) -> bool:
        """True if any of them changed."""
        changed = [file.look(now) for file in self._files]
        return any(changed)

    def lost(self, now: float) -> bool:
        return any(file.is_lost(now) for file in self._files)

    @property
    def devices(self) -> bytes | None:
        """The bytes of the device checkpoint, for comparison; None: missing or unreadable."""
        seen = self._devices.seen
        return seen if isinstance(seen, bytes) and self._devices.value is not None else None

    @property
    def found(self) -> CheckpointSet:
        return CheckpointSet(self._cpu.value, self._memory.value, self._devices.value)

    @property
    def problems(self) -> tuple[str, ...]:
        return tuple(file.problem for file in self._files if file.problem)


Ids = dict[str, frozenset[str]]
"""By resource."""


class LostDevices:
    """Remembers the devices of one node across snapshots."""

    def __init__(self) -> None:
        self._seen: Ids = {}

    def left_out(
        self, written: DeviceCheckpoint | None, offered: Allocatable | None, *, registering: bool = False
    ) -> DeviceCheckpoint | None:
        """The checkpoint without devices that are no longer offered. `registering`: the kubelet has just started, and
        offers no device of a plugin that has not registered again."""
        if written is None or offered is None:
            return written
        now = _ids(offered)
        there = {
            name: frozenset() if registering and name not in now else ids - self._gone(name, now)
            for name, ids in written.registered.items()
        }
        self._seen = {name: self._seen.get(name, frozenset()) | now.get(name, frozenset()) for name in self._seen | now}
        return written if there == written.registered else structs.replace(written, registered=there)

    def _gone(self, resource: str, now: Mapping[str, frozenset[str]]) -> frozenset[str]:
        return self._seen.get(resource, frozenset()) - now.get(resource, frozenset())


def _ids(offered: Allocatable) -> Ids:
    found: Ids = {}
    for entry in offered.devices:
        found[entry.resource] = found.get(entry.resource, frozenset()).union(entry.ids)
    return found


TRIES: Final = 3
PAUSE: Final = 0.05
"""Seconds before reading again what changed in between; the kubelet writes its files one after the other."""
STEADY: Final = 60.0
"""Seconds for which hardware and configuration are cached."""
OFFERED: Final = 10.0
"""Seconds for which allocatable resources are cached while the device checkpoint is unchanged: a plugin's end does not
change it."""
REGISTERING: Final = 10.0
"""Seconds in which device plugins register with a kubelet that has started."""
ASKING: Final = 15.0
"""Seconds for both calls to the kubelet."""


class PodResourcesSource(Protocol):
    """What a reading needs of `podresources.PodResourcesClient`."""

    async def list(self) -> tuple[PodResources, ...]: ...

    async def allocatable(self) -> Allocatable | None: ...


class Readings(Struct, frozen=True, kw_only=True):
    machine: Machine | None
    """Without devices; None: /sys has no usable data."""
    offline: int = 0
    settings: Settings
    settings_source: str
    settings_assumed: bool
    settings_unread: bool = False
    """Whether the configuration file changed after the kubelet started, so that the kubelet has not read it."""
    kubelet_version: str = ""
    pods: tuple[PodResources, ...] | None = None
    """None: podresources did not answer."""
    allocatable: Allocatable | None = None
    podresources_error: str = ""
    """The kind of `PodResourcesError`, for metrics."""
    cpu_checkpoint: CPUCheckpoint | None = None
    memory_checkpoint: MemoryCheckpoint | None = None
    device_checkpoint: DeviceCheckpoint | None = None
    consistent: bool = True
    """Whether the checkpoints did not change during the calls."""
    checkpoint_lost: bool = False
    """Whether a checkpoint is unreadable that was readable a short while ago."""
    problems: tuple[str, ...] = ()
    hardware_problems: tuple[str, ...] = ()
    """The problems that concern the kernel's files."""


class Sources:
    """The sources of one node and their cached values; for one task. The caller sets `kubelet_version`."""

    def __init__(
        self,
        *,
        host: Path = Path("/"),
        kubelet_root: Path = Path(kubeletconfig.DEFAULT_ROOT),
        device_plugins: Path = Path(checkpoints.DEVICE_PLUGINS),
        podresources: PodResourcesSource | None = None,
        socket: Path | None = None,
        configuration: kubeletconfig.ConfigSources | None = None,
        clock: Clock | None = None,
    ) -> None:
        self.host = host
        self.podresources = podresources
        self.configuration = configuration or kubeletconfig.ConfigSources(host=host)
        self.checkpoints = CheckpointCache(kubelet_root, device_plugins)
        self._socket = socket or kubelet_root / SOCKET
        self._seen = filewatch.signature(self._socket)
        self.clock = clock or SystemClock()
        self.kubelet_since = self.clock.now()
        """The earliest start of the current kubelet."""
        self.kubelet_version = ""
        self.vanished = LostDevices()
        self.hardware = TimedCache[Survey](STEADY)
        # A kubelet reads its files at start, which its socket's time shows: later changes count from its next start.
        self._own = self._socket == kubelet_root / SOCKET
        self._fixed = self.configuration.configz is None and self._own
        self.configured = TimedCache[Configuration](math.inf if self._fixed else STEADY)
        self._offered = TimedCache[tuple[bytes | None, Allocatable | None]](OFFERED)

    def notice_restart(self) -> None:
        """A restarted kubelet may have another configuration, and has read the hardware again."""
        now = filewatch.signature(self._socket)
        if now != self._seen:
            self._seen, self.kubelet_since = now, self.clock.now()
            self.configured.forget()
            self.forget()

    @property
    def registering(self) -> bool:
        """Whether the kubelet has just started, perhaps before this process."""
        if self._seen is None:
            return False
        return 0 <= self.clock.wall().timestamp() - self._seen.written / 1e9 < REGISTERING

    def started_before(self, written: int) -> bool:
        """Whether the kubelet started before that time; it creates its socket at start, after reading its files."""
        return self._own and self._seen is not None and written > self._seen.written

    def forget(self) -> None:
        """Drops the caches, except for files that a kubelet reads only at start."""
        self.hardware.forget()
        self.offer_changed()
        if not self._fixed:
            self.configured.forget()

    def offer_changed(self) -> None:
        """The allocatable devices changed, whatever the checkpoint says."""
        self._offered.forget()

    async def allocatable(self, kubelet: PodResourcesSource) -> Allocatable | None:
        """Cached: allocatable resources change only with the device checkpoint and with the kubelet."""
        written, now = self.checkpoints.devices, self.clock.now()
        kept = self._offered.get(now)
        if written is not None and kept is not None and kept[0] == written:
            return kept[1]
        offered = await kubelet.allocatable()
        self._offered.keep((written, offered), now)
        return offered

    @property
    def minor(self) -> versions.Minor:
        return versions.parse(self.kubelet_version) or versions.NEWEST


class _Answers(Struct, frozen=True):
    pods: tuple[PodResources, ...] | None = None
    allocatable: Allocatable | None = None
    error: str = ""
    problems: tuple[str, ...] = ()


async def read(sources: Sources) -> Readings:
    sources.notice_restart()
    survey, missing = await _survey(sources)
    configuration = await _configuration(sources, survey)
    answers, steady = await _steadily(sources)
    found = sources.checkpoints.found
    restless = () if steady else ("the kubelet's checkpoints changed during every attempt to read them",)
    hardware = (*missing, *(survey.problems if survey else ()))
    return Readings(
        machine=survey.machine if survey else None,
        offline=survey.offline if survey else 0,
        settings=configuration.settings,
        settings_source=configuration.source,
        settings_assumed=configuration.assumed,
        settings_unread=sources.started_before(configuration.written),
        kubelet_version=sources.kubelet_version,
        pods=answers.pods,
        allocatable=answers.allocatable,
        podresources_error=answers.error,
        cpu_checkpoint=found.cpu,
        memory_checkpoint=found.memory,
        device_checkpoint=sources.vanished.left_out(
            found.devices, answers.allocatable, registering=sources.registering
        ),
        consistent=steady,
        checkpoint_lost=sources.checkpoints.lost(sources.clock.now()),
        problems=(
            *hardware,
            *configuration.problems,
            *_known_to_end(configuration.settings, survey),
            *_changed_since(configuration.settings, survey, Evidence(found.cpu, found.memory, answers.allocatable)),
            *answers.problems,
            *sources.checkpoints.problems,
            *restless,
        ),
        hardware_problems=hardware,
    )


def _known_to_end(settings: Settings, survey: Survey | None) -> tuple[str, ...]:
    """Settings that crash the kubelet: it indexes a list of the existing zones by zone id."""
    ids = survey.machine.zone_ids if survey else ()
    closest = settings.topology_options.get(start.PREFER_CLOSEST, "").lower() == "true"
    if not closest or ids == tuple(range(len(ids))) or settings.topology_policy in ("none", "single-numa-node"):
        return ()
    return (f"{start.PREFER_CLOSEST} panics the kubelet on machines whose zone ids have gaps",)


def _changed_since(settings: Settings, survey: Survey | None, evidence: Evidence) -> tuple[str, ...]:
    """Hardware that changed since the kubelet started."""
    return tuple(startview.changes(survey.machine, settings, evidence)) if survey is not None else ()


async def _survey(sources: Sources) -> tuple[Survey | None, tuple[str, ...]]:
    kept = sources.hardware.get(sources.clock.now())
    if kept is not None:
        return kept, ()
    try:
        # A thousand small files on a large machine: read in a thread, so that other tasks run.
        survey = await asyncio.to_thread(sysfs.survey, sources.host)
    except errors.BadObject as problem:
        return sources.hardware.last, (str(problem),)
    return sources.hardware.keep(survey, sources.clock.now()), ()


async def _configuration(sources: Sources, survey: Survey | None) -> Configuration:
    kept = sources.configured.get(sources.clock.now())
    if kept is not None and kept.settings.minor == sources.minor:
        return kept
    machine = survey.machine if survey else Machine("unknown", ())
    return _settled(sources, await kubeletconfig.read(sources.configuration, machine, sources.minor))


def _settled(sources: Sources, fresh: Configuration) -> Configuration:
    """An assumption never replaces a configuration that was read (exporter spec 5.4), and is soon replaced itself."""
    if not fresh.assumed:
        return sources.configured.keep(fresh, sources.clock.now())
    last = sources.configured.last
    if last is None:
        return fresh
    kept = (*fresh.problems, "using the configuration that was read earlier")
    return Configuration(last.settings, last.source, written=last.written, problems=kept)


async def _steadily(sources: Sources) -> tuple[_Answers, bool]:
    """Calls the kubelet between two reads of the checkpoints, until both are equal and none is newly broken."""
    before = sources.checkpoints.problems
    for _ in range(TRIES):
        sources.checkpoints.look(sources.clock.now())
        answers = await _answers(sources)
        changed = sources.checkpoints.look(sources.clock.now())
        broken = sources.checkpoints.problems
        if not changed and (not broken or broken == before):
            return answers, True
        await sources.clock.sleep(PAUSE)
    return answers, not changed


async def _answers(sources: Sources) -> _Answers:
    if sources.podresources is None:
        return _Answers()
    try:
        async with asyncio.timeout(ASKING):
            allocatable = await sources.allocatable(sources.podresources)
            return _Answers(await sources.podresources.list(), allocatable)
    except PodResourcesError as failure:
        return _Answers(error=failure.kind, problems=(failure.text,))
    except TimeoutError:
        return _Answers(error="timeout", problems=(f"no answer from the kubelet's podresources in {ASKING:g} s",))
