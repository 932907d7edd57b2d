"""One node of a lab: a real kubelet on a simulated machine, with a container runtime that runs nothing.

`up` starts what `programs` and `publishers` return. Programs of a node see the machine's files in place of /sys and
/proc, and the node's folders as /var/lib/kubelet and /var/log. So kubelet, agent and device plugins use their usual
paths, which are also short enough for sockets. The device plugin reads its devices from a file. Tests use `LabNode`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.agent.deviceplugin import config
from numalign.kubelet.machine import machinefile
from numalign.kubelet.machine.machine import Machine
from numalign.lab import machinetree, state
from numalign.lab.processes import Part, ProgramSpec
from numalign.lab.spec import LabSpec, NodeSpec
from numalign.process import interpreter, privatefile


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
    "localStorageCapacityIsolation": False,
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


class NodePaths(Struct, frozen=True):
    """The paths of a node's files, as seen from outside."""

    folder: Path
    tree: Path

    @property
    def root(self) -> Path:
        return self.folder / "kubelet"

    @property
    def logs(self) -> Path:
        return self.folder / state.LOGS

    @property
    def mounts(self) -> tuple[tuple[str, str], ...]:
        files = ("proc/cpuinfo", "proc/meminfo", *machinetree.TUNABLES)
        shown = [(str(self.tree / path), f"/{path}") for path in ("sys/devices/system", machinetree.HUGEPAGES, *files)]
        return (*shown, (str(self.root), KUBELET_ROOT), (str(self.folder / "var-log"), "/var/log"))


class NodeAccess(Struct, frozen=True):
    """How a node's kubelet and agent reach the API server, and the kubelet's port."""

    kubelet: dict[str, object]
    agent: dict[str, object]
    port: int
    """The port that the kubelet serves on."""


class LabNode:
    """A running node."""

    def __init__(self, spec: NodeSpec, place: NodePaths, parts: dict[str, Part]) -> None:
        self.spec, self.place, self.parts = spec, place, parts
        self.name = spec.name

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
        """Through the runtime's process, because a socket's path has at most 107 characters."""
        inside = Path(KUBELET_ROOT, "pod-resources", "kubelet.sock").relative_to("/")
        return Path("/proc", str(self.parts["runtime"].pid), "root", inside)


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


def prepare(spec: NodeSpec, place: NodePaths, access: NodeAccess) -> None:
    """Write everything that the node's programs read at start."""
    # The device plugin needs its folder and may start before the kubelet.
    for folder in (place.root / "device-plugins", place.logs, place.folder / "var-log"):
        folder.mkdir(parents=True, exist_ok=True)
    config = {**spec.kubelet, **LAB_DECIDES, "port": access.port}
    # JSON is YAML.
    written: dict[str, object] = {CONFIG: config, KUBECONFIG: access.kubelet, AGENT_KUBECONFIG: access.agent}
    if devices := of(spec):
        written[DEVICES] = devices
    for path, content in written.items():
        privatefile.write(place.root / Path(path).name, msgspec.json.format(msgspec.json.encode(content), indent=2))


def programs(spec: NodeSpec, place: NodePaths, found: Mapping[str, Path]) -> list[ProgramSpec]:
    """The programs of a node, in start order."""
    made = [
        _program(spec, place, "runtime", str(found["fakecri"]), f"unix://{RUNTIME_SOCKET}"),
        _kubelet(spec, place, str(found["kubelet"])),
    ]
    if of(spec):
        made.append(
            _program(spec, place, "device-plugin", *interpreter.NUMALIGN, "device-plugin", "run", "--config", DEVICES)
        )
    return made


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
            command = (*interpreter.NUMALIGN, "agent", "run", "--mode", reporter)
        made.append(_program(node.spec, node.place, name, *command, NODE_NAME=node.name, KUBECONFIG=login))
    return made


def _program(spec: NodeSpec, place: NodePaths, name: str, *command: str, **environment: str) -> ProgramSpec:
    return ProgramSpec(
        name=name,
        command=command,
        log=place.logs / f"{name}.log",
        node=spec.name,
        mounts=place.mounts,
        environment=environment,
    )


def _kubelet(spec: NodeSpec, place: NodePaths, binary: str) -> ProgramSpec:
    """It may write into the node's folder only, because pods can ask it to create files and folders anywhere."""
    flags = (f"--kubeconfig={KUBECONFIG}", f"--config={CONFIG}", f"--hostname-override={spec.name}", "--v=2")
    program = _program(spec, place, "kubelet", binary, *flags)
    return structs.replace(program, writable=(str(place.folder),))
