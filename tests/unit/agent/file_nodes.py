"""A node of files: a modelled kubelet whose checkpoints, configuration and machine an agent reads, in virtual time.

What the node really is at any moment is known (`truth`), and everything that it ever was (`truths`)."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import structs

from numalign.agent import main
from numalign.agent.cycle import Agent
from numalign.agent.inventory.podidentity import UidLookup
from numalign.agent.inventory.readings import Sources
from numalign.agent.inventory.snapshot import SnapshotReader
from numalign.agent.publish.publish import Manner
from numalign.agent.sources import checkpoints
from numalign.agent.sources.podresources import Allocatable, PodResources, PodResourcesError
from numalign.agent.triggers.schedule import Pace
from numalign.agent.triggers.triggers import Triggers, of_kubelet
from numalign.api.decode import cpuset
from numalign.api.decode import structs as wire
from numalign.api.nrt.nodetopology import NodeTopology
from numalign.api.objects.pod import Pod
from numalign.kube.client import Client
from numalign.kube.clock import Clock
from numalign.kubelet import admission, configuration, start
from numalign.kubelet.machine.machine import Device, DevicePlugin, Machine
from numalign.kubelet.report import report
from numalign.simulator.apiserver.storage.resources import PODS
from tests.unit.agent import kubelet_looks as looks
from tests.unit.agent.clusters import MACHINE, NODE, PERIOD, Town, running
from tests.unit.agent.machine_trees import written

GPU = "example.com/gpu"
CONFIG = {
    "apiVersion": configuration.API_VERSION,
    "kind": configuration.KIND,
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "evictionHard": {},
}
SETTINGS = configuration.read(CONFIG, "config.yaml", MACHINE)


class FileNode:
    def __init__(self, folder: Path, town: Town) -> None:
        self.town, self.host = town, written(MACHINE, folder)
        self.root = folder / "var/lib/kubelet"
        self.plugins = self.root / "device-plugins"
        self.plugins.mkdir(parents=True)
        (self.root / "pod-resources").mkdir()
        self._time = 0
        self.configure()
        self.settings = SETTINGS
        self.gpus = tuple(Device(f"gpu-{number}", (number % 2,)) for number in range(4))
        self.kubelet = self._started()
        self.state = self.kubelet.initial()
        self.silent = False
        """Whether its socket answers nobody."""
        self.forgetful = False
        """Whether it has just started, and lists no pod yet."""
        self.truths: list[NodeTopology] = []
        self.changed()

    def _started(self) -> start.Kubelet:
        plugins = {GPU: DevicePlugin(self.gpus)}
        return start.start(structs.replace(Machine("node", MACHINE.zones), devices=plugins), self.settings)

    def configure(self, **fields: object) -> None:
        """Writes its file, which counts when it starts."""
        self.config = CONFIG | fields
        (self.root / "config.yaml").write_bytes(msgspec.json.encode(self.config))
        self._stamp(self.root / "config.yaml")

    def _stamp(self, path: Path) -> None:
        """Later than anything before, however fast this goes."""
        self._time += 1
        os.utime(path, ns=(0, self._time))

    def changed(self) -> None:
        """As a kubelet writes it down."""
        self._write("cpu_manager_state", self.checkpoint())
        self.truths.append(self.truth())

    def checkpoint(self) -> bytes:
        assert self.state.cpu is not None
        entries = {
            uid: {name: cpuset.text(cpus) for name, cpus in held.items()}
            for uid, held in self.state.cpu.assignments.items()
        }
        tree: dict[str, Any] = {"policyName": "static", "defaultCpuSet": cpuset.text(self.state.cpu.default)}
        tree["entries"] = entries
        return msgspec.json.encode(tree | {"checksum": checkpoints.of_cpus(tree)})

    def _write(self, name: str, raw: bytes) -> None:
        hidden = self.root / f".{name}"
        hidden.write_bytes(raw)
        hidden.rename(self.root / name)

    def tear(self) -> None:
        """The checkpoint, in the middle of being written by somebody without care."""
        raw = self.checkpoint()
        (self.root / "cpu_manager_state").write_bytes(raw[: len(raw) // 2])

    def restart(self) -> None:
        """The socket is another one, and the file has been read."""
        socket = self.root / "pod-resources/kubelet.sock"
        socket.unlink(missing_ok=True)
        socket.touch()
        self._stamp(socket)
        self.settings = configuration.read(self.config, "config.yaml", MACHINE)
        self.kubelet = self._started()
        self.truths.append(self.truth())

    def admit(self, name: str, cpus: int, gpus: int = 0) -> None:
        amounts = {"cpu": str(cpus), "memory": "1Gi"} | ({GPU: str(gpus)} if gpus else {})
        container = {"name": "main", "image": "x", "resources": {"requests": amounts, "limits": amounts}}
        tree = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "default"}}
        made = self.town.api.create(PODS, tree | {"spec": {"nodeName": NODE, "containers": [container]}})
        pod = msgspec.convert(
            {"metadata": made["metadata"], "spec": {"containers": [container]}}, Pod, dec_hook=wire.decoded
        )
        self.state, outcome = admission.admit(self.kubelet, self.state, pod)
        assert outcome.admitted
        self.changed()

    def set_health(self, well: bool) -> None:
        self.gpus = (*self.gpus[:3], structs.replace(self.gpus[3], healthy=well))
        self.kubelet = self._started()
        self.changed()

    def truth(self) -> NodeTopology:
        return report.of(NODE, self.kubelet, self.state)

    async def list(self) -> tuple[PodResources, ...]:
        self._answer()
        return () if self.forgetful else looks.at(self.kubelet, self.state).pods or ()

    async def allocatable(self) -> Allocatable | None:
        self._answer()
        return looks.offered(self.kubelet)

    def _answer(self) -> None:
        if self.silent:
            raise PodResourcesError("unavailable", "nobody listens")

    @asynccontextmanager
    async def agent(self, clock: Clock | None = None, **manner: Any) -> AsyncIterator[Agent]:
        clock = clock or self.town.clock
        async with Client(self.town.access(), main.LIMITS, clock=clock) as client:
            sources = Sources(
                host=self.host, kubelet_root=self.root, device_plugins=self.plugins, podresources=self, clock=clock
            )
            waiting = Triggers(of_kubelet(self.root, self.plugins), Pace(period=PERIOD), clock)
            looker = SnapshotReader(sources, UidLookup(NODE, None, client))
            made = Agent(NODE, client, Manner(instance="one", period=PERIOD, **manner), looker, waiting)
            async with running(made):
                yield made
