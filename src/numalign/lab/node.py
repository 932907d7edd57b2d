"""One node of a lab: a real kubelet on a simulated machine, with a container runtime that runs nothing, or containerd.

`members` starts what `programs` and `publishers` return. Programs of a node see the machine's files in place of /sys
and /proc, and the node's folders as /var/lib/kubelet and /var/log. So kubelet, agent and device plugins use their usual
paths, which are also short enough for sockets. The device plugin reads its devices from a file. With containerd, all
programs of a node share their namespaces, because containers see what the kubelet mounts; the first program, which does
nothing else, keeps them. Tests use `LabNode`."""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

import numalign
from numalign.agent.deviceplugin import config
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import Machine
from numalign.lab import build, launching, machinetree, state
from numalign.lab.containers import images, runtime
from numalign.lab.containers.images import NodeRuntime
from numalign.lab.containers.network import NodeNetwork
from numalign.lab.containers.runtime import SystemPrograms
from numalign.lab.processes import Part, ProgramSpec
from numalign.lab.spec import LabSpec, NodeSpec
from numalign.lab.state import FIRST
from numalign.process import interpreter, privatefile
from numalign.process.certificates import KeyPair


def of(spec: NodeSpec) -> Mapping[str, Any]:
    """The devices of the spec or else of the machine; empty if there are none."""
    if spec.devices is not None:
        return spec.devices
    plugins = spec.machine.devices
    if not plugins:
        return {}
    return {"devices": {name: machinefile.write_devices(name, plugin) for name, plugin in plugins.items()}}


def known(machine: Machine, file: Mapping[str, Any], source: str) -> Machine:
    """The machine with the devices of this file only."""
    offers = config.read(file, source, machine.zone_ids)
    return structs.replace(machine, devices={resource: offer.plugin for resource, offer in offers.items()})


KUBELET_ROOT: Final = "/var/lib/kubelet"
RUNTIME_SOCKET: Final = f"{KUBELET_ROOT}/runtime.sock"
CONFIG: Final = f"{KUBELET_ROOT}/config.yaml"
KUBECONFIG: Final = f"{KUBELET_ROOT}/kubeconfig"
AGENT_KUBECONFIG: Final = f"{KUBELET_ROOT}/agent.kubeconfig"
DEVICES: Final = f"{KUBELET_ROOT}/devices.yaml"
AUTHORITY: Final = f"{KUBELET_ROOT}/ca.crt"
PORT: Final = 10250

# No cgroups, no iptables, no sysctls: kubelets of a lab must not change the real machine (lab spec, "One kubelet").
LAB_DECIDES: Final[dict[str, Any]] = {
    "address": "127.0.0.1",
    "healthzPort": 0,
    "readOnlyPort": 0,
    "cgroupsPerQOS": False,
    "enforceNodeAllocatable": [],
    "cgroupDriver": "cgroupfs",
    "failCgroupV1": False,
    "failSwapOn": False,
    "makeIPTablesUtilChains": False,
    "oomScoreAdj": 0,
    # Every user of the machine can reach the port, and the kubelet is root: the API server decides who may ask.
    "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": True}, "x509": {}},
    "authorization": {"mode": "Webhook"},
    # Pods come from the API server only.
    "staticPodPath": "",
    "staticPodURL": "",
    "containerRuntimeEndpoint": f"unix://{RUNTIME_SOCKET}",
    "imageServiceEndpoint": f"unix://{RUNTIME_SOCKET}",
    "volumePluginDir": f"{KUBELET_ROOT}/volumeplugins",
    "resolvConf": "",
}


# Its network namespace and its cgroups are the node's own, so the kubelet can use both.
WITH_CONTAINERS: Final[dict[str, Any]] = {
    "address": "0.0.0.0",
    "port": PORT,
    "cgroupsPerQOS": True,
    "enforceNodeAllocatable": ["pods"],
    # Images are loaded by hand and cannot be pulled again, so they stay also where the machine's disk is nearly full.
    "imageGCHighThresholdPercent": 100,
    "containerRuntimeEndpoint": f"unix://{images.SOCKET}",
    "imageServiceEndpoint": f"unix://{images.SOCKET}",
    "authentication": {
        "anonymous": {"enabled": False},
        "webhook": {"enabled": True},
        "x509": {"clientCAFile": AUTHORITY},
    },
}


# Without a CPU manager a kubelet writes all CPUs into the cgroup of all pods, and simulated ones do not exist.
WITHOUT_CPU_MANAGER: Final[dict[str, Any]] = {"cgroupsPerQOS": False, "enforceNodeAllocatable": []}


class ContainerPlan(Struct, frozen=True, kw_only=True):
    """What a node with real containers has beside others."""

    network: NodeNetwork
    cgroups: dict[str, str]
    """The folder of the node's cgroup by mount point."""
    system: SystemPrograms
    serving: KeyPair
    """The certificate of the kubelet's server."""
    authority: str
    """The certificate of the authority that issued it, and that of the API server as a client."""

    @property
    def members(self) -> tuple[str, ...]:
        """The cgroups of the node's programs."""
        return tuple(f"{folder}/{launching.LEAF}" for folder in self.cgroups.values())


class NodePaths(Struct, frozen=True):
    """The paths of a node's files, as seen from outside."""

    folder: Path
    tree: Path
    real: bool = False
    """The node shows the real machine; only sysctls are replaced."""

    @property
    def root(self) -> Path:
        return self.folder / "kubelet"

    @property
    def logs(self) -> Path:
        return self.folder / state.LOGS

    @property
    def mounts(self) -> tuple[tuple[str, str], ...]:
        machine = ("sys/devices/system", machinetree.HUGEPAGES, "proc/cpuinfo", "proc/meminfo")
        paths = (*(() if self.real else machine), *machinetree.TUNABLES)
        shown = [(str(self.tree / path), f"/{path}") for path in paths]
        return (*shown, (str(self.root), KUBELET_ROOT), (str(self.folder / "var-log"), "/var/log"))

    @property
    def kubeconfig(self) -> Path:
        """The lab's, for `numalign lab shell NODE kubectl`."""
        return self.folder.parents[1] / state.KUBECONFIG

    @property
    def store(self) -> Path:
        """Images and containers."""
        return self.folder / "containerd"

    @property
    def settings(self) -> Path:
        return self.folder / "settings"

    @property
    def container_mounts(self) -> tuple[tuple[str, str], ...]:
        # At their own paths, too, which may be in a folder that is another one on the node, such as /tmp.
        own = [(str(path), str(path)) for path in (self.folder, self.kubeconfig, *hidden(program_folders()))]
        return (*own, *self.mounts, (str(self.store), runtime.STORE), (str(self.settings), runtime.SETTINGS))


def program_folders() -> tuple[Path, ...]:
    """Where numalign, its interpreter and the programs that it built are."""
    packages = Path(numalign.__file__).parents[1]
    return Path(sys.base_prefix), Path(sys.prefix), packages, build.cache_folder()


def hidden(folders: Iterable[Path]) -> list[Path]:
    """Those that a node does not see, outer ones first; a mount of an outer one shows the inner ones, too."""
    found = [each for each in folders if any(each.is_relative_to(own) for own in launching.OF_NODE) and each.exists()]
    return [each for each in sorted(set(found)) if not any(other in each.parents for other in found)]


class NodeAccess(Struct, frozen=True):
    """How a node's kubelet and agent reach the API server, and the kubelet's port."""

    kubelet: dict[str, object]
    agent: dict[str, object]
    port: int
    """The port that the kubelet serves on, on loopback; with real containers it is the usual one."""


class LabNode:
    """A running node."""

    def __init__(
        self, spec: NodeSpec, place: NodePaths, parts: dict[str, Part], containers: ContainerPlan | None = None
    ) -> None:
        self.spec, self.place, self.parts, self.containers = spec, place, parts, containers
        self.name = spec.name

    @property
    def home(self) -> Part | None:
        """The program whose namespaces the others share; None where each has its own."""
        return self.parts.get(FIRST)

    @property
    def runtime(self) -> NodeRuntime:
        """Of a node with real containers."""
        assert self.containers is not None
        assert self.home is not None
        return NodeRuntime(self.name, self.home.until_settled(), self.containers.members)

    @property
    def kubelet(self) -> Part:
        return self.parts["kubelet"]

    @property
    def cpu_state(self) -> Path:
        return self.place.root / "cpu_manager_state"

    @property
    def memory_state(self) -> Path:
        return self.place.root / "memory_manager_state"

    @property
    def device_state(self) -> Path:
        return self.place.root / "device-plugins" / "kubelet_internal_checkpoint"

    @property
    def podresources(self) -> Path:
        """Through a process of the node, because a socket's path has at most 107 characters."""
        inside = Path(KUBELET_ROOT, "pod-resources", "kubelet.sock").relative_to("/")
        return Path("/proc", str((self.home or self.parts["runtime"]).pid), "root", inside)


class MachineTrees:
    """One tree per machine. Nodes share it, because no program writes into it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Machine] = []

    def of(self, machine: Machine) -> Path:
        if machine not in self._made:
            self._made.append(machine)
            machinetree.write(machine, self._folder / str(len(self._made) - 1))
        return self._folder / str(self._made.index(machine))


def prepare(
    spec: NodeSpec, place: NodePaths, access: NodeAccess, containers: ContainerPlan | None, found: Mapping[str, Path]
) -> None:
    """Write everything that the node's programs read at start."""
    # The device plugin needs its folder and may start before the kubelet.
    for folder in (place.root / "device-plugins", place.logs, place.folder / "var-log"):
        folder.mkdir(parents=True, exist_ok=True)
    config = {**spec.kubelet, **LAB_DECIDES, "port": access.port}
    if containers is not None:
        config |= WITH_CONTAINERS | (WITHOUT_CPU_MANAGER if spec.direct and not spec.real else {})
        _prepare_containers(spec, place, containers, found)
    # JSON is YAML.
    written: dict[str, object] = {CONFIG: config, KUBECONFIG: access.kubelet, AGENT_KUBECONFIG: access.agent}
    if devices := of(spec):
        written[DEVICES] = devices
    for path, content in written.items():
        privatefile.write(place.root / Path(path).name, msgspec.json.format(msgspec.json.encode(content), indent=2))


def _prepare_containers(spec: NodeSpec, place: NodePaths, plan: ContainerPlan, found: Mapping[str, Path]) -> None:
    pki = place.root / "pki"
    for folder in (pki, place.store, place.settings):
        folder.mkdir(parents=True, exist_ok=True)
    # Where the kubelet would put a certificate of its own making; that of the authority follows, so that clients which
    # trust this file verify the server.
    (pki / "kubelet.crt").write_text(plan.serving.certificate + plan.authority)
    privatefile.write(pki / "kubelet.key", plan.serving.key)
    (place.root / Path(AUTHORITY).name).write_text(plan.authority)
    runc = plan.system.runc if spec.real else str(found["labrunc"])
    for name, text in runtime.files(plan.network, runc, plan.system.plugins).items():
        (place.settings / name).write_text(text)


def programs(
    spec: NodeSpec, place: NodePaths, found: Mapping[str, Path], containers: ContainerPlan | None = None
) -> list[ProgramSpec]:
    """The programs of a node, in start order."""
    if containers is None:
        made = [
            _program(spec, place, "runtime", str(found["fakecri"]), f"unix://{RUNTIME_SOCKET}"),
            _kubelet(spec, place, str(found["kubelet"])),
        ]
    else:
        made = list(_container_programs(spec, place, found, containers))
    if of(spec):
        command = (*interpreter.NUMALIGN, "device-plugin", "run", "--config", DEVICES)
        made.append(_program(spec, place, "device-plugin", *command, containers=containers))
    return made


def _container_programs(
    spec: NodeSpec, place: NodePaths, found: Mapping[str, Path], plan: ContainerPlan
) -> Iterator[ProgramSpec]:
    """The node's first program gets every mount; the others enter its namespaces."""
    first = _program(spec, place, FIRST, str(found["pause"]))
    yield structs.replace(
        first,
        mounts=place.container_mounts,
        writable=(str(place.folder),),
        network=plan.network.path,
        view={"hostname": spec.name, "cgroups": plan.cgroups},
        cgroups=tuple(plan.cgroups.values()),
    )
    # containerd looks for its shim on the path.
    path = ":".join((str(found["containerd-shim-runc-v2"].parent), os.environ.get("PATH", os.defpath), runtime.SBIN))
    variables = {"PATH": path, "LAB_RUNC": plan.system.runc}
    command = (str(found["containerd"]), "--config", runtime.CONFIG)
    yield _program(spec, place, "containerd", *command, containers=plan, **variables)
    flags = (*_kubelet_flags(spec), f"--node-ip={plan.network.address}")
    yield _program(spec, place, "kubelet", str(found["kubelet"]), *flags, containers=plan)


def publishers(lab: LabSpec, node: LabNode, found: Mapping[str, Path], admin: Path) -> list[ProgramSpec]:
    """The publishers of a node, started once it is Ready: other publishers than ours do not wait for a kubelet."""
    made = []
    for reporter in lab.reporters(node.spec):
        command: tuple[str, ...]
        if reporter == "nfd":
            name, login = "nfd", str(admin)
            # It serves metrics on all interfaces; on a port that does not exist it serves nothing, and works on.
            flags = (f"-kubeconfig={login}", f"-kubelet-config-uri=file://{CONFIG}", "-sleep-interval=3s", "-port=-1")
            command = (str(found["nfd-topology-updater"]), *flags)
        else:
            name, login = "agent", AGENT_KUBECONFIG
            command = (*interpreter.NUMALIGN, "agent", "run", "--mode", reporter, *_direct_flags(node.spec))
        variables = {"NODE_NAME": node.name, "KUBECONFIG": login}
        made.append(_program(node.spec, node.place, name, *command, containers=node.containers, **variables))
    return made


def _direct_flags(spec: NodeSpec) -> tuple[str, ...]:
    """On a simulated machine the kernel cannot confirm CPUs."""
    if not spec.direct:
        return ()
    return ("--direct-mode", "--direct-wait=5", *(() if spec.real else ("--trust-runtime",)))


def _program(
    spec: NodeSpec,
    place: NodePaths,
    name: str,
    *command: str,
    containers: ContainerPlan | None = None,
    **environment: str,
) -> ProgramSpec:
    return ProgramSpec(
        name=name,
        command=command,
        log=place.logs / f"{name}.log",
        node=spec.name,
        mounts=() if containers is not None else place.mounts,
        environment=environment,
        cgroups=containers.members if containers is not None else (),
    )


def _kubelet(spec: NodeSpec, place: NodePaths, binary: str) -> ProgramSpec:
    """It may write into the node's folder only, because pods can ask it to create files and folders anywhere."""
    program = _program(spec, place, "kubelet", binary, *_kubelet_flags(spec))
    return structs.replace(program, writable=(str(place.folder),))


def _kubelet_flags(spec: NodeSpec) -> tuple[str, ...]:
    labels = ",".join(f"{name}={value}" for name, value in spec.labels.items())
    more = (f"--node-labels={labels}",) if labels else ()
    return (f"--kubeconfig={KUBECONFIG}", f"--config={CONFIG}", f"--hostname-override={spec.name}", "--v=2", *more)
