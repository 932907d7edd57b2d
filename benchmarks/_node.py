"""A node that is files and sockets: a machine, 110 pods with CPUs of their own, and a kubelet that answers about them.

What reads it is the agent's process. `change` replaces one pod by another, as a busy node does: checkpoint, list and
pods socket tell of it at once, each as kubelet 1.37 does."""

import asyncio
import itertools
import uuid
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Final

import msgspec

from numalign.agent.sources import checkpoints, podresources
from numalign.agent.sources import podresources as messages
from numalign.agent.sources import pods as podsapi
from numalign.api.decode import cpuset, protobuf
from numalign.kubelet import configuration
from numalign.kubelet.machine import presets
from numalign.lab import machinetree
from numalign.process import rpc
from numalign.process.rpc import Service

PODS: Final = 110
MACHINE: Final = presets.machine("gpu-8")
CPUS: Final = tuple(sorted(cpu for zone in MACHINE.zones for core in zone.cores for cpu in core.cpus))
CONFIG: Final = {
    "apiVersion": configuration.API_VERSION,
    "kind": configuration.KIND,
    "cpuManagerPolicy": "static",
    "reservedSystemCPUs": "0",
    "topologyManagerPolicy": "single-numa-node",
}


class Node:
    def __init__(self, host: Path) -> None:
        self.host, self.root = host, host / "var/lib/kubelet"
        machinetree.write(MACHINE, host)
        for folder in ("device-plugins", "pod-resources", "pods-api"):
            (self.root / folder).mkdir(parents=True)
        (self.root / "config.yaml").write_bytes(msgspec.json.encode(CONFIG))
        self._numbers = itertools.count()
        self.pods = [self._pod(place) for place in range(PODS)]
        self._heard: list[asyncio.Queue[bytes]] = []
        self._write()
        devices: dict[str, Any] = {"PodDeviceEntries": None, "RegisteredDevices": {}}
        written = {"Data": devices, "Checksum": checkpoints.of_devices(devices)}
        (self.root / "device-plugins/kubelet_internal_checkpoint").write_bytes(msgspec.json.encode(written))

    def _pod(self, place: int) -> dict[str, Any]:
        number = next(self._numbers)
        name = f"inference-server-{number:05}-6d4cf56db6-x{number % 1000:04}"
        return {"name": name, "uid": str(uuid.UUID(int=number * 2**90 + 7)), "cpu": CPUS[1 + place]}

    def change(self) -> None:
        place = next(self._numbers) % PODS
        old, self.pods[place] = self.pods[place], self._pod(place)
        self._write()
        for heard in self._heard:
            heard.put_nowait(_event(podsapi.PodEventType.DELETED, old))
            heard.put_nowait(_event(podsapi.PodEventType.ADDED, self.pods[place]))

    def _write(self) -> None:
        held = {pod["uid"]: {"main": str(pod["cpu"])} for pod in self.pods}
        free = cpuset.of(CPUS) & ~cpuset.of(pod["cpu"] for pod in self.pods)
        told = {"policyName": "static", "defaultCpuSet": cpuset.text(free), "entries": held}
        hidden = self.root / ".cpu_manager_state"
        text = msgspec.json.encode(told).decode()
        sums = {"checksum": 0, "data": text, "dataChecksum": checkpoints.of_text(text)}
        hidden.write_bytes(msgspec.json.encode(told | sums))
        hidden.rename(self.root / "cpu_manager_state")

    async def list(self, _: bytes) -> bytes:
        listed = [
            {"name": pod["name"], "namespace": "production", "containers": [{"name": "main", "cpus": [pod["cpu"]]}]}
            for pod in self.pods
        ]
        pods = [protobuf.encode_message(each, messages.POD) for each in listed]
        return protobuf.encode_message({"pods": pods}, messages.LIST_ANSWER)

    async def allocatable(self, _: bytes) -> bytes:
        return protobuf.encode_message({"cpus": list(CPUS[1:])}, messages.ALLOCATABLE)

    async def list_pods(self, _: bytes) -> bytes:
        pods = [protobuf.encode_message(_told(pod), podsapi.POD) for pod in self.pods]
        return protobuf.encode_message({"pods": pods}, podsapi.LIST)

    async def watch_pods(self, _: bytes) -> AsyncIterator[bytes]:
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._heard.append(heard)
        for pod in self.pods:
            yield _event(podsapi.PodEventType.ADDED, pod)
        yield protobuf.encode_message({"type": int(podsapi.PodEventType.SYNCED)}, podsapi.EVENT)
        while True:
            yield await heard.get()

    @asynccontextmanager
    async def served(self, *, pods_socket: bool) -> AsyncIterator[None]:
        answers = {"List": self.list, "GetAllocatableResources": self.allocatable}
        services = {podresources.SOCKET: Service(podresources.SERVICE, answers)}
        if pods_socket:
            calls, streams = {"ListPods": self.list_pods}, {"WatchPods": self.watch_pods}
            services[podsapi.SOCKET] = Service(podsapi.SERVICE, calls, streams)
        async with AsyncExitStack() as stack:
            for name, service in services.items():
                server = rpc.Server(self.root / name, service)
                await server.start()
                stack.push_async_callback(server.stop)
            yield


def _told(pod: dict[str, Any]) -> dict[str, Any]:
    return {
        "metadata": {"name": pod["name"], "namespace": "production", "uid": pod["uid"]},
        "spec": {"containers": [{"name": "main"}]},
        "status": {"phase": "Running", "qos": "Guaranteed"},
    }


def _event(change: podsapi.PodEventType, pod: dict[str, Any]) -> bytes:
    return protobuf.encode_message({"type": int(change), "pod": _told(pod)}, podsapi.EVENT)
