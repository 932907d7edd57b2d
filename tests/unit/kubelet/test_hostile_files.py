"""Machine files and kubelet configurations that are wrong anywhere end in a BadObject that names the field, or are
read; nothing else comes out, and it never takes long."""

import copy
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from numalign.api import errors
from numalign.kubelet import configuration
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.settings import Settings
from tests import machinefiles

MACHINE = presets.machine("2x16")

MACHINE_FILES = [
    machinefiles.write(presets.machine("epyc-nps4")),
    machinefiles.write(presets.machine("gpu-8")),
    yaml.safe_load("""
        name: odd
        extends: gpu-8
        zones:
          - {id: 0, cores: [[0, 96], [1, 97]], socket: {0: "0,96", 1: "1,97"}, l3: {4: "0,96"}}
          - {id: 1, cpus: "40-43", threadsPerCore: 2, numbering: consecutive, coresPerL3: 1, memory: 2Gi,
             hugepages: {2Mi: 3, 1Gi: "1Gi"}, distances: [10, 20, 30]}
          - {id: 2, memory: 1Gi, socket: 1, distances: [30, 20, 10]}
        devices:
          example.com/nic: {0: 2, "0,1": [a, b], noTopology: [c], each: [{id: d, zones: [1]}, {id: e}], unhealthy: [d]}
          nvidia.com/gpu: null
    """),
]
CONFIGURATIONS = [
    yaml.safe_load("""
        apiVersion: kubelet.config.k8s.io/v1beta1
        kind: KubeletConfiguration
        topologyManagerPolicy: restricted
        topologyManagerScope: pod
        topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
        cpuManagerPolicy: static
        cpuManagerPolicyOptions: {full-pcpus-only: "true"}
        reservedSystemCPUs: "0,16"
        kubeReserved: {memory: 1Gi, cpu: 500m}
        systemReserved: {memory: 1Gi, pid: "100"}
        evictionHard: {memory.available: 5%, nodefs.available: 10%}
        mergeDefaultEvictionSettings: false
        memoryManagerPolicy: Static
        reservedMemory: [{numaNode: 0, limits: {memory: 1Gi, hugepages-2Mi: 2Mi}}, {numaNode: 1, limits: {memory: 2Gi}}]
        featureGates: {PodLevelResources: true, InPlacePodVerticalScaling: true}
        maxPods: 250
        systemReservedCgroup: ""
    """),
]

LOOP: list[object] = []
LOOP.append(LOOP)
DEEP: object = 0
for _ in range(5_000):
    DEEP = [DEEP]

VALUES: list[Any] = [
    *(None, True, False, 0, 1, -1, 63, 64, 65_536, 2**31, 2**63, -(2**63), 10**40, 1 << 20_000, 0.5, 1e300),
    *(float("nan"), float("inf"), "", " ", "0", "-1", "1e99", "9" * 5_000, "0-65535", "0-65536", "3-1", "1Gi", "1.5Gi"),
    *("64Pi", "0.1", "100%", "nan%", "1e9%", "%", "true", "none", "\x00", "\ud800", "é" * 300, "line\nbreak", b"bytes"),
    *([], {}, [[]], [{}], {"": ""}, {0: 0}, {None: None}, {True: 1}, {(1, 2): 3}, {1.5: 2}, set(), LOOP, DEEP),
    *({"0": "0-65535"}, {"0,1": 1}, {1 << 20_000: 1}, list(range(70)), [None] * 70, [{"id": 1}, {"id": 1}], object()),
]
KEYS: list[Any] = ["id", "cpus", "memory", "zones", "limits", "", "0", 0, 1, -1, None, True, 1.5, "x" * 500, (1, 2)]


def spots(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container in the document together with each of its keys or indices."""
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in inside:
        yield value, key
        yield from spots(child)


def spoil(holder: Any, key: Any, rng: random.Random) -> None:
    """One change of structure, type or value at this place."""
    match rng.randrange(6):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, dict):
            holder[rng.choice(KEYS)] = rng.choice(VALUES)
        case 2 if isinstance(holder, dict) and isinstance(key, str):
            holder[key[:-1] + rng.choice("xyz0,")] = holder.pop(key)
        case 3 if isinstance(holder[key], str):
            text, place = holder[key], rng.randrange(len(holder[key]) + 1)
            holder[key] = text[:place] + rng.choice("0159-,%.eEmGi x") + text[place:]
        case 4 if isinstance(holder, list):
            holder.append(rng.choice(holder))
        case _:
            holder[key] = rng.choice(VALUES)


def spoilt(documents: list[Any], seed: int) -> Any:
    rng = random.Random(seed)
    document = copy.deepcopy(rng.choice(documents))
    # Places are found before anything changes, so that the shared values are put in but never changed themselves.
    for holder, key in rng.sample(list(spots(document)), rng.choice((1, 1, 1, 2, 4))):
        if key in (holder if isinstance(holder, dict) else range(len(holder))):
            spoil(holder, key, rng)
    return document


def read_configuration(document: object) -> Settings:
    return configuration.read(document, "hostile", MACHINE)


def read_machine(document: object) -> Machine:
    return machinefile.read(document, "hostile")


def refusal_of(read: Callable[[object], object], document: object) -> errors.BadObject | None:
    try:
        read(document)
    except errors.BadObject as refusal:
        return refusal
    return None


def refused(read: Callable[[object], object], document: object) -> bool:
    """Whether it was refused, once the refusal is known to be one that a person can use."""
    refusal = refusal_of(read, document)
    if refusal is not None:
        assert refusal.field, refusal
        assert 0 < len(str(refusal)) < 600, refusal
    return refusal is not None


READERS = {"machine": (read_machine, MACHINE_FILES), "configuration": (read_configuration, CONFIGURATIONS)}


@pytest.mark.parametrize("read, documents", READERS.values(), ids=READERS)
@pytest.mark.parametrize("start", [0, 100])
def test_spoilt_files_are_read_or_refused_by_field(
    read: Callable[[object], object], documents: list[Any], start: int
) -> None:
    outcomes = [refused(read, spoilt(documents, seed)) for seed in range(start, start + 100)]
    assert 30 <= sum(outcomes) <= 99


@pytest.mark.slow
@pytest.mark.parametrize("read, documents", READERS.values(), ids=READERS)
def test_a_great_many_spoilt_files_are_read_or_refused_by_field(
    read: Callable[[object], object], documents: list[Any]
) -> None:
    outcomes = [refused(read, spoilt(documents, seed)) for seed in range(1_000, 16_000)]
    assert sum(outcomes) > 5_000


@pytest.mark.slow
def test_a_spoilt_machine_that_is_read_can_be_written_and_read_again() -> None:
    documents = [spoilt(MACHINE_FILES, seed) for seed in range(20_000, 25_000)]
    machines = [read_machine(document) for document in documents if not refused(read_machine, document)]
    assert len(machines) > 100
    assert [read_machine(machinefiles.write(machine)) for machine in machines] == machines


@pytest.mark.parametrize("value", VALUES, ids=lambda value: f"a {type(value).__name__}")
@pytest.mark.parametrize("read", [read_machine, read_configuration])
def test_a_file_that_is_something_else_altogether_is_refused(read: Callable[[object], object], value: object) -> None:
    with pytest.raises(errors.BadObject):
        read(value)


BOMBS = {
    "every CPU in every zone": {"zones": [{"cpus": "0-65535"}] * 64},
    "a great many devices": {"zones": [{}], "devices": {f"a.io/b{number}": {0: 60_000} for number in range(2_000)}},
    "every CPU under every cache": {"zones": [{"cpus": 0, "l3": dict.fromkeys(range(5_000), "0-65535")}]},
    "a great many zones": {"zones": [{}] * 100_000},
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_small_file_cannot_ask_for_a_huge_machine(bomb: object) -> None:
    assert refused(read_machine, bomb)


@pytest.mark.slow
def test_the_largest_machine_that_may_be_described_can_be_read() -> None:
    whole = read_machine({"zones": [{"cpus": "0-65535", "threadsPerCore": 2, "coresPerL3": 8}]})
    assert whole.capacity["cpu"] == 65_536_000
