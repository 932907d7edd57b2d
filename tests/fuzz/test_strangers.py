"""Whatever others send is read or refused: no other error, no second of work for one input, no memory that stays.

Others are authors of objects and annotations, publishers of topology reports, files of a node, answers of a kubelet,
and files that users hand over. Every input is a valid one that was truncated, overwritten, nested or repeated in
places. The campaign has about 1.4 million inputs."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from numalign.agent.sources import checkpoints, kubeletconfig, podresources
from numalign.api.attributes import attributes, directresult, directspec, intent
from numalign.api.decode import cpuset, decode, protobuf, quantity, structs, yamltext
from numalign.api.nrt import normalise, wire
from numalign.api.objects.meta import ObjectMeta
from numalign.api.objects.node import Node
from numalign.api.objects.pod import Container, Pod, PodSpec
from numalign.api.schedulerconfig import configuration
from numalign.kube import lists, resources
from numalign.kubelet import configuration as kubeletconfiguration
from numalign.kubelet.machine import machinefile, presets
from numalign.kubelet.report import report
from numalign.placement.engine import Engine
from numalign.placement.facts import NodeSeen, ReportSeen
from numalign.scheduler import placementannotation
from tests.fuzz import campaign
from tests.fuzz.campaign import COUNTS, Target, text
from tests.strategies import hostile
from tests.unit.kubelet import made, runs

DATA = Path(__file__).parents[1] / "unit/agent/data"
MACHINE = presets.machine("2x16")
KUBELET = made.kubelet(made.machine(devices={made.NIC: [0, 0, 1, (0, 1)]}), policy="restricted")
REPORT = normalise.encode(
    report.of("n", KUBELET, runs.admitted(KUBELET, made.pod("a", made.container(nic=1)), made.pod("b")))
)
"""As our agent writes it."""
SCHEDULER = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, leaseDuration: 15s}
profiles:
- schedulerName: numalign
  plugins: {multiPoint: {enabled: [{name: NodeResourceTopologyMatch, weight: 3}]}}
  pluginConfig:
  - name: NodeResourceTopologyMatch
    args: {scoringStrategy: {type: LeastAllocated, resources: [{name: cpu, weight: 1}]}}
"""
MACHINE_FILE = """name: my-box                     # default: the name of the file
zones:
  - id: 0                        # 0 to 63; default: its place in the list
    cpus: 0-15,32-47
    threadsPerCore: 2
    memory: 64Gi
    hugepages: {2Mi: 1024, 1Gi: "4Gi"}
    distances: [10, 21]
  - id: 1
    cpus: 16-31,48-63
    threadsPerCore: 2
    memory: 64Gi
    distances: [21, 10]
devices:
  nvidia.com/gpu: {0: 2, 1: 2, preferredAllocation: true}
  example.com/nic: {0: [eth0, eth1], "0,1": [eth2], unhealthy: [eth1]}
"""
ANNOTATION = placementannotation.encode({"c": [(0,), (1,)], "d": [(0, 1)]}).encode()


def recorded(call: str) -> bytes:
    return base64.b64decode(json.loads(gzip.decompress((DATA / "kubelet_answers.json.gz").read_bytes()))[call])


def reported(raw: bytes) -> None:
    """As the scheduler takes a report in; the engine raises for none."""
    written = wire.decode(raw)
    engine = Engine()
    engine.apply(NodeSeen(Node(metadata=ObjectMeta(name=written.metadata.name))))
    engine.apply(ReportSeen(normalise.normalise(written), 0.0))
    engine.view(written.metadata.name)


def attribute(name: str, raw: bytes) -> object:
    return attributes.decode("n", name, text(raw))


def annotated(name: str, read: Callable[[Pod], object]) -> Callable[[bytes], object]:
    """A pod with this annotation, and with two containers that the annotation may name."""
    return lambda raw: read(
        Pod(
            metadata=ObjectMeta(name="p", namespace="d", uid="u", annotations={name: text(raw)}),
            spec=PodSpec(containers=(Container(name="main"), Container(name="sidecar"))),
        )
    )


def parsed(read: Callable[[object, str], object]) -> Callable[[bytes], object]:
    """A YAML file, as the command line reads one."""
    return lambda raw: [read(each.value, each.place) for each in yamltext.documents(raw, "file")]


def _json(*trees: Any) -> tuple[bytes, ...]:
    return tuple(map(msgspec.json.encode, trees))


POD_LINE = b'{"type":"MODIFIED","object":%s}' % msgspec.json.encode(hostile.POD | {"kind": "Pod", "apiVersion": "v1"})
TARGETS: Mapping[str, Target] = {
    "quantity": Target(
        lambda raw: quantity.parse(text(raw)), [each.encode() for each in hostile.QUANTITIES], (quantity.QuantityError,)
    ),
    "cpuset": Target(
        lambda raw: cpuset.parse(text(raw)), [each.encode() for each in hostile.CPUSETS[1:]], (cpuset.CPUSetError,)
    ),
    "pod": Target(lambda raw: decode.decode(Pod, raw), _json(hostile.POD)),
    "node": Target(lambda raw: decode.decode(Node, raw), _json(hostile.NODE)),
    "watch event": Target(lambda raw: lists.watch_event(resources.PODS, raw), [POD_LINE]),
    "list": Target(lambda raw: lists.page(resources.PODS, raw), [b'{"metadata":{},"items":[%s]}' % _json(hostile.POD)]),
    "report": Target(reported, [structs.encode(REPORT)], share=0.4),
    **{
        each.name: Target(partial(attribute, each.name), [each.value.encode()], share=0.2)
        for each in REPORT.attributes
        if each.name in attributes.CODECS
    },
    "placement annotation": Target(
        annotated(placementannotation.NAME, lambda pod: placementannotation.decode(pod.metadata)), [ANNOTATION]
    ),
    "intent annotations": Target(annotated(intent.STRICTNESS, intent.intent), [b"require", b"prefer"]),
    "numa-topology-spec annotation": Target(
        annotated(directspec.TOPOLOGY_SPEC, directspec.read),
        [b'{"policy":"SingleNUMANode","scope":"Container","containers":{"exclude":["sidecar"]}}'],
    ),
    "cpu-spec annotation": Target(
        annotated(directspec.CPU_SPEC, directspec.read), [b'{"required":"FullPCPUs","exclusive":"PCPULevel"}']
    ),
    "resource-status annotation": Target(
        annotated(directresult.RESULT, directresult.of_pod),
        [b'{"version":1,"uid":"u","node":"","containers":[{"name":"main","zones":[0],"cpuset":"0-3"}]}'],
    ),
    "cpu_manager_state": Target(checkpoints.cpu, [(DATA / "checkpoints/cpu.json").read_bytes()]),
    "memory_manager_state": Target(checkpoints.memory, [(DATA / "checkpoints/memory.json").read_bytes()]),
    "kubelet_internal_checkpoint": Target(checkpoints.devices, [(DATA / "checkpoints/devices.json").read_bytes()]),
    "protobuf": Target(
        lambda raw: list(protobuf.fields(raw)), [recorded("GetAllocatableResources")[:400]], (protobuf.BadProtobuf,)
    ),
    "podresources List": Target(
        lambda raw: podresources.Reader().pods(raw), [recorded("List")], (protobuf.BadProtobuf,), 0.3
    ),
    "podresources GetAllocatableResources": Target(
        lambda raw: podresources.Reader().allocatable(raw),
        [recorded("GetAllocatableResources")],
        (protobuf.BadProtobuf,),
        0.1,
    ),
    "configz": Target(
        lambda raw: kubeletconfiguration.read(kubeletconfiguration.from_configz(raw), "configz", MACHINE),
        [b'{"kubeletconfig":{"topologyManagerPolicy":"restricted","reservedSystemCPUs":"0-1","maxPods":110}}'],
    ),
    "kubelet flags": Target(
        lambda raw: kubeletconfig.read_flags(text(raw).split("\0")),
        [b"--config=/etc/x\0--max-pods=7\0--kube-reserved=cpu=1\0--reserved-memory=0:memory=1Gi;1:memory=2Gi"],
    ),
    "YAML": Target(lambda raw: yamltext.documents(raw, "file"), [SCHEDULER.encode(), b"a: &x [1, 2]\nb: [*x, *x]\n"]),
    "scheduler configuration": Target(parsed(configuration.read), [SCHEDULER.encode()], share=0.4),
    "machine file": Target(parsed(machinefile.read), [MACHINE_FILE.encode()], share=0.4),
}


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", TARGETS)
def test_what_others_send_is_read_or_refused(name: str, count: int) -> None:
    campaign.read_or_refused(name, TARGETS[name], count)
