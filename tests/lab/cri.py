"""A containerd alone: no kubelet, no API server. Tests start pods and containers on it as a kubelet would, over CRI.

It runs in namespaces of its own and in a cgroup of its own, and everything ends with the block. Pods share its network
namespace, which has no way out. Two runtime handlers: `simulated` leaves CPUs that do not exist out in the last step
before runc, and keeps what it was asked for; `real` is runc itself."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import TEXTS, Message, MessageField, Tree
from numalign.lab import build
from numalign.lab.containers import cgroups, images, runtime
from numalign.lab.containers.images import Contents
from numalign.process import rpc
from tests.conftest import require
from tests.lab import reals

PATIENCE = 60.0
BINARIES = ("containerd", "containerd-shim-runc-v2", "ctr", "pause", "labrunc")
SERVICE = "/runtime.v1.RuntimeService"

SANDBOX_NAME: Message = {
    1: MessageField("name", "string"),
    2: MessageField("uid", "string"),
    3: MessageField("namespace", "string"),
}
NAMESPACES: Message = {1: MessageField("network", "int")}
SANDBOX: Message = {
    1: MessageField("metadata", SANDBOX_NAME),
    3: MessageField("logs", "string"),
    7: MessageField("annotations", TEXTS, many=True),
    8: MessageField(
        "linux",
        {
            1: MessageField("cgroup", "string"),
            2: MessageField("security", {1: MessageField("namespaces", NAMESPACES)}),
        },
    ),
}
RUN_POD: Message = {1: MessageField("config", SANDBOX), 2: MessageField("handler", "string")}
LIMITS: Message = {1: MessageField("period", "int"), 2: MessageField("quota", "int"), 3: MessageField("shares", "int")}
CONTAINER: Message = {
    1: MessageField("metadata", {1: MessageField("name", "string"), 2: MessageField("attempt", "uint")}),
    2: MessageField("image", {1: MessageField("image", "string")}),
    4: MessageField("args", "string", many=True),
    15: MessageField("linux", {1: MessageField("resources", LIMITS)}),
}
CREATE: Message = {
    1: MessageField("sandbox", "string"),
    2: MessageField("config", CONTAINER),
    3: MessageField("pod", SANDBOX),
}
ID: Message = {1: MessageField("id", "string")}
UPDATE: Message = {1: MessageField("id", "string"), 2: MessageField("linux", LIMITS)}
NODE_NETWORK = 2


class PodHandle(Struct, frozen=True):
    id: str
    tree: Tree


class Containerd:
    def __init__(self, folder: Path) -> None:
        require(os.geteuid() == 0, "root, to run containerd")
        require(not runtime.missing(), runtime.missing())
        require(build.found(), "Go, to build containerd")
        self.folder = folder
        self.found = {made.binary.name: made.path for made in build.build(build.chosen(BINARIES), lambda _: None)}
        self.cgroup = f"numalign-cri-{os.getpid()}"
        self.socket, self.nri = folder / "c.sock", folder / "nri.sock"
        self.cdi = folder / "cdi"
        self._process: subprocess.Popen[bytes] | None = None
        self._attempt = 0

    def start(self) -> None:
        config = self.folder / "containerd.toml"
        config.write_text(self._config())
        path = ":".join((str(self.found["containerd-shim-runc-v2"].parent), os.environ["PATH"], runtime.SBIN))
        command = ["unshare", "--mount", "--pid", "--net", "--fork", "--kill-child", "--mount-proc"]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [*command, str(self.found["containerd"]), "--config", str(config)],
                env={**os.environ, "PATH": path, "LAB_RUNC": runtime.system().runc},
                stdout=log,
                stderr=log,
            )
        until = time.monotonic() + PATIENCE
        while not (self.nri.exists() and self._serves()):
            assert self._process.poll() is None, (self.folder / "log").read_text()[-2000:]
            assert time.monotonic() < until, "containerd does not start"
            time.sleep(0.1)

    def kill(self) -> None:
        """Ends containerd and, with its process namespace, every container."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        self.nri.unlink(missing_ok=True)

    def load(self, archive: bytes, name: str) -> None:
        flags = ("--address", str(self.socket), "--namespace", images.NAMESPACE)
        command = [str(self.found["ctr"]), *flags, "images", "import", "--local", "--index-name", name, "-"]
        subprocess.run(command, input=archive, check=True, capture_output=True)

    @property
    def host(self) -> Path:
        """The root folder as processes beside containerd see it."""
        assert self._process is not None
        pid = self._process.pid
        (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return Path("/proc", child, "root")

    def asked(self, container: str) -> dict[str, Any]:
        """What runc was asked to create."""
        (found,) = self.folder.glob(f"state/io.containerd.runtime.v2.task/k8s.io/{container}/config.json.asked")
        document: dict[str, Any] = json.loads(found.read_text())
        return document

    def record(self, container: str) -> dict[str, Any]:
        """CPU settings on containerd's record, changes after the creation included."""
        flags = ("--address", str(self.socket), "--namespace", images.NAMESPACE)
        command = [str(self.found["ctr"]), *flags, "containers", "info", container]
        ran = subprocess.run(command, check=True, capture_output=True, text=True)
        cpu: dict[str, Any] = json.loads(ran.stdout)["Spec"]["linux"]["resources"].get("cpu", {})
        return cpu

    @contextlib.asynccontextmanager
    async def kubelet(self) -> AsyncIterator[Kubelet]:
        channel = rpc.Channel(self.socket)
        try:
            yield Kubelet(channel, self)
        finally:
            await channel.close()

    def _serves(self) -> bool:
        flags = ("--address", str(self.socket), "version")
        return subprocess.run([str(self.found["ctr"]), *flags], capture_output=True, check=False).returncode == 0

    def _config(self) -> str:
        def handler(name: str, program: str) -> str:
            section = f'plugins."io.containerd.cri.v1.runtime".containerd.runtimes.{name}'
            return (
                f'[{section}]\nruntime_type = "io.containerd.runc.v2"\n'
                f'[{section}.options]\nBinaryName = "{program}"\nSystemdCgroup = false\n'
            )

        return f"""\
version = 3
root = "{self.folder}/store"
state = "{self.folder}/state"
[grpc]
address = "{self.socket}"
[plugins."io.containerd.cri.v1.images"]
snapshotter = "native"
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "{images.PAUSE}"
[plugins."io.containerd.cri.v1.runtime"]
disable_apparmor = true
restrict_oom_score_adj = true
cdi_spec_dirs = ["{self.cdi}"]
[plugins."io.containerd.cri.v1.runtime".containerd]
default_runtime_name = "simulated"
{handler("simulated", str(self.found["labrunc"]))}{handler("real", runtime.system().runc)}
[plugins."io.containerd.nri.v1.nri"]
socket_path = "{self.nri}"
plugin_path = "{self.folder}/plugins"
plugin_config_path = "{self.folder}/conf.d"
[plugins."io.containerd.nri.v1.nri".default_validator]
enable = true
[plugins."io.containerd.internal.v1.opt"]
path = "{self.folder}/opt"
"""

    def end(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()
        cgroups.sweep(self.cgroup)


class Kubelet:
    """What a kubelet asks of a runtime."""

    def __init__(self, channel: rpc.Channel, containerd: Containerd) -> None:
        self._channel, self._containerd = channel, containerd
        self._attempt = 0

    async def run_pod(self, name: str, annotations: Mapping[str, str], handler: str = "simulated") -> PodHandle:
        tree = {
            "metadata": {"name": name, "uid": f"uid-{name}", "namespace": "default"},
            "annotations": protobuf.entries(annotations),
            "linux": {
                "cgroup": f"/{self._containerd.cgroup}/{name}",
                "security": {"namespaces": {"network": NODE_NETWORK}},
            },
        }
        answer = await self._call("RunPodSandbox", {"config": tree, "handler": handler}, RUN_POD)
        return PodHandle(answer["id"], tree)

    async def create(self, pod: PodHandle, name: str, *args: str) -> str:
        """Creates and starts."""
        self._attempt += 1
        config = {
            "metadata": {"name": name, "attempt": self._attempt},
            "image": {"image": reals.PROBE},
            "args": args or ("wait",),
            "linux": {"resources": {"period": 100_000, "quota": 100_000, "shares": 1024}},
        }
        made = await self._call("CreateContainer", {"sandbox": pod.id, "config": config, "pod": pod.tree}, CREATE)
        await self._call("StartContainer", {"id": made["id"]}, ID)
        return str(made["id"])

    async def resize(self, container: str, quota: int) -> None:
        await self._call("UpdateContainerResources", {"id": container, "linux": {"quota": quota}}, UPDATE)

    async def stop(self, container: str) -> None:
        await self._call("StopContainer", {"id": container}, ID)
        await self._call("RemoveContainer", {"id": container}, ID)

    async def stop_pod(self, pod: PodHandle) -> None:
        await self._call("StopPodSandbox", {"id": pod.id}, ID)
        await self._call("RemovePodSandbox", {"id": pod.id}, ID)

    async def _call(self, method: str, tree: Tree, message: Message) -> Tree:
        answer = await self._channel.call(f"{SERVICE}/{method}", protobuf.encode_message(tree, message), PATIENCE)
        return protobuf.decode_message(answer, ID)


@contextlib.contextmanager
def containerd(folder: Path) -> Iterator[Containerd]:
    made = Containerd(folder)
    cgroups.make(made.cgroup, "pods")
    try:
        made.start()
        pause = {"pause": made.found["pause"].read_bytes()}
        contents = Contents(name=images.PAUSE, entrypoint=("/pause",), programs=pause)
        made.load(images.archive(contents), contents.name)
        yield made
    finally:
        made.end()
