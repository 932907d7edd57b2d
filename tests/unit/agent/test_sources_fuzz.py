"""Whatever a node's files hold, what reads them answers, or refuses in words: nothing else ever happens."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import checkpoints, filewatch, kubeletconfig, sysfs
from numalign.agent.sources.hostfiles import Files
from numalign.agent.sources.kubeletconfig import ConfigSources, Configuration
from numalign.api import errors
from numalign.kubelet import configuration
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Core, HugePages, Machine, Zone
from tests.strategies import hostile
from tests.unit.agent.machine_trees import written

DATA = Path(__file__).with_name("data") / "checkpoints"
READERS = {"cpu": checkpoints.cpu, "memory": checkpoints.memory, "devices": checkpoints.devices}
MACHINE = presets.machine("2x16")
CORES = (Core(0, (0, 2), 0), Core(0, (1, 3), 1))
SMALL = Machine("small", (Zone(0, CORES, 1 << 30, (HugePages(2048, 5),), (10, 20)), Zone(1, (), 1 << 30, (), (20, 10))))
CONFIG: dict[str, Any] = {
    "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration", "maxPods": 110,
    "topologyManagerPolicy": "restricted", "topologyManagerScope": "pod", "cpuManagerPolicy": "static",
    "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"}, "reservedSystemCPUs": "0-1",
    "memoryManagerPolicy": "Static", "reservedMemory": [{"numaNode": 0, "limits": {"memory": "1100Mi"}}],
    "kubeReserved": {"memory": "1Gi"}, "evictionHard": {"memory.available": "100Mi", "nodefs.available": "5%"},
    "mergeDefaultEvictionSettings": True, "featureGates": {"PodLevelResources": True},
}  # fmt: skip
FLAGS = [
    "--kube-reserved=cpu=1,memory=1Gi", "--reserved-memory=0:memory=1Gi;1:memory=2Gi", "--eviction-hard=memory<1Gi",
    "--feature-gates=A=true,B=false", "--max-pods=7", "--config=/etc/x", "--cpu-manager-policy-options=a=b",
]  # fmt: skip

sizes = pytest.mark.parametrize(
    "count", [pytest.param(300, id="quick"), pytest.param(20_000, id="campaign", marks=pytest.mark.slow)]
)


def tolerates(read: Callable[[Any], object], inputs: Iterator[Any]) -> tuple[list[object], int]:
    """What was read, and how many were refused; anything but a BadObject fails the test by itself."""
    answers, refusals = [], []
    for each in inputs:
        try:
            answers.append(read(each))
        except errors.BadObject as problem:
            refusals.append(str(problem))
    assert max(map(len, refusals), default=0) < 1000
    return answers, len(refusals)


def resealed(tree: Any) -> bytes:
    """A checkpoint with broken content and a right checksum, so that the content is what gets read."""
    data = json.dumps(tree)
    return json.dumps({"data": data, "dataChecksum": checkpoints.of_text(data)}).encode()


@sizes
@pytest.mark.parametrize("name", READERS)
def test_damaged_checkpoints(name: str, count: int) -> None:
    """One that is read all the same says what it said: the damage was where nobody looks."""
    raw = (DATA / f"{name}.json").read_bytes()
    answers, refused = tolerates(READERS[name], hostile.garbled(raw, count, seed=1))
    assert refused > count // 2
    assert [answer for answer in answers if answer != READERS[name](raw)] == []


@sizes
@pytest.mark.parametrize("name", ["cpu", "memory"])
def test_checkpoints_that_say_strange_things(name: str, count: int) -> None:
    content = json.loads(json.loads((DATA / f"{name}.json").read_bytes())["data"])
    trees = hostile.objects(content, count, seed=2, absurd=hostile.ABSURD)
    read, refused = tolerates(READERS[name], map(resealed, trees))
    assert read
    assert refused


@sizes
def test_older_checkpoints_that_say_strange_things(count: int) -> None:
    """Without a checksum of a text, the printed form is made of whatever passed for content."""
    content = json.loads((DATA / "memory.json").read_bytes())
    del content["data"]
    trees = hostile.objects(content, count, seed=3, absurd=hostile.ABSURD)
    tolerates(checkpoints.memory, (json.dumps(tree).encode() for tree in trees))


def devices_resealed(tree: Any) -> bytes:
    try:
        checksum = checkpoints.of_devices(tree)
    except (TypeError, ValueError, LookupError, AttributeError):
        checksum = 0
    return json.dumps({"Data": tree, "Checksum": checksum}).encode()


@sizes
def test_device_checkpoints_that_say_strange_things(count: int) -> None:
    content = json.loads((DATA / "devices.json").read_bytes())["Data"]
    trees = hostile.objects(content, count, seed=4, absurd=hostile.ABSURD)
    read, refused = tolerates(checkpoints.devices, map(devices_resealed, trees))
    assert read
    assert refused


@sizes
def test_lists_of_the_kernel(count: int, tmp_path: Path) -> None:
    path = tmp_path / "online"
    files = Files(tmp_path)
    for text in hostile.texts(hostile.CPUSETS, count, seed=5):
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        found = files.members("online")
        assert found is None or found >= 0
        files.problems.clear()


@sizes
def test_damaged_trees_of_the_kernel(count: int, tmp_path: Path) -> None:
    root = written(SMALL, tmp_path)
    files = sorted(path for path in root.rglob("sys/**/*") if path.is_file() and not path.is_symlink())
    rng = random.Random(6)
    for _ in range(count // 4):
        path = rng.choice(files)
        whole = path.read_bytes()
        path.write_bytes(next(hostile.garbled(whole + b"0-1 7", 1, seed=rng.randrange(1 << 30))))
        tolerates(sysfs.survey, iter([root]))
        path.write_bytes(whole)


def read_file(host: Path, config: bytes) -> Configuration:
    (host / "etc/k.yaml").write_bytes(config)
    return asyncio.run(kubeletconfig.read(ConfigSources(host=host, config="/etc/k.yaml"), MACHINE))


def test_damaged_configuration_files(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    for raw in hostile.garbled(json.dumps(CONFIG, indent=1).encode(), 100, seed=7):
        found = read_file(tmp_path, raw)
        assert found.assumed == bool(found.problems)


@sizes
def test_strange_answers_of_configz(count: int) -> None:
    def read(tree: Any) -> object:
        told = configuration.from_configz(json.dumps({"kubeletconfig": tree}).encode())
        return configuration.read(told, "/configz", MACHINE)

    accepted, refused = tolerates(read, hostile.objects(CONFIG, count, seed=8, absurd=hostile.ABSURD))
    assert accepted
    assert refused


@sizes
def test_damaged_answers_of_configz(count: int) -> None:
    raw = json.dumps({"kubeletconfig": CONFIG}).encode()
    tolerates(configuration.from_configz, hostile.garbled(raw, count, seed=9))


@sizes
def test_strange_command_lines(count: int) -> None:
    tolerates(lambda text: kubeletconfig.read_flags(text.split("\0")), hostile.texts(FLAGS, count, seed=10))


@sizes
def test_events_of_the_kernel(count: int) -> None:
    rng = random.Random(11)
    for _ in range(count):
        assert len(list(filewatch.parsed(rng.randbytes(rng.randrange(200))))) < 13
