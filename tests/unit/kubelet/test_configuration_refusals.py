"""A KubeletConfiguration that the kubelet would not start with is refused, and the refusal names the field."""

import pytest
import yaml

from numalign.api import errors
from numalign.kubelet import configuration
from numalign.kubelet.machine import presets

MACHINE = presets.machine("2x16")
HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}

REFUSED = {
    "policy unknown": (
        "topologyManagerPolicy: strict",
        "topologyManagerPolicy",
        '"strict" is not one of none, best-ef',
    ),
    "policy of a wrong type": ("topologyManagerPolicy: [none]", "topologyManagerPolicy", "a list is not text"),
    "scope unknown": ("topologyManagerScope: node", "topologyManagerScope", '"node" is not one of container, pod'),
    "CPU policy unknown": ("cpuManagerPolicy: Static", "cpuManagerPolicy", '"Static" is not one of none, static'),
    "memory policy of Windows": (
        "memoryManagerPolicy: BestEffort",
        "memoryManagerPolicy",
        "is not one of None, Static",
    ),
    "option that is no text": (
        "cpuManagerPolicyOptions: {full-pcpus-only: true}",
        "cpuManagerPolicyOptions[full-pcpus-only]",
        "true is not text; put it in quotes",
    ),
    "options not a mapping": ("topologyManagerPolicyOptions: [x]", "topologyManagerPolicyOptions", "not a mapping"),
    "reserved CPUs as a number": ("reservedSystemCPUs: 0", "reservedSystemCPUs", "0 is not text; put it in quotes"),
    "reserved CPUs unreadable": ("reservedSystemCPUs: 0-", "reservedSystemCPUs", "not a CPU id or a range"),
    "reserved CPUs the machine has not": (
        "reservedSystemCPUs: 30-33",
        "reservedSystemCPUs",
        "no CPU 32-33; its CPUs are 0",
    ),
    "reserved CPUs with a cgroup": (
        "{reservedSystemCPUs: '0', systemReservedCgroup: /system}",
        "reservedSystemCPUs",
        "cannot be combined with systemReservedCgroup",
    ),
    "reserved CPUs with the other cgroup": (
        "{reservedSystemCPUs: '0', kubeReservedCgroup: /kube}",
        "reservedSystemCPUs",
        "cannot be combined with kubeReservedCgroup",
    ),
    "cgroup of a wrong type": ("kubeReservedCgroup: 5", "kubeReservedCgroup", "5 is not text"),
    "reservation as a number": ("kubeReserved: {cpu: 1}", "kubeReserved[cpu]", "1 is not text; put it in quotes"),
    "reservation no quantity": ("systemReserved: {memory: 1GB}", "systemReserved[memory]", '"1GB" is not a quantity'),
    "reservation negative": ("kubeReserved: {memory: '-1'}", "kubeReserved[memory]", '"-1" is negative'),
    "reservation of a device": (
        "kubeReserved: {nvidia.com/gpu: '1'}",
        "kubeReserved[nvidia.com/gpu]",
        "only cpu, memory",
    ),
    "reservation of hugepages": (
        "kubeReserved: {hugepages-1Gi: 1Gi}",
        "kubeReserved[hugepages-1Gi]",
        "cannot be reserved",
    ),
    "threshold unknown": (
        "evictionHard: {memory.avail: 1Gi}",
        "evictionHard[memory.avail]",
        "did you mean memory.available?",
    ),
    "threshold zero": (
        "evictionHard: {memory.available: '0'}",
        "evictionHard[memory.available]",
        '"0" is not positive',
    ),
    "threshold of a wrong type": (
        "evictionHard: {memory.available: 5}",
        "evictionHard[memory.available]",
        "5 is not text",
    ),
    "threshold of another signal": (
        "evictionHard: {nodefs.available: x%}",
        "evictionHard[nodefs.available]",
        "not a percentage",
    ),
    "percentage too large": (
        "evictionHard: {memory.available: 101%}",
        "evictionHard[memory.available]",
        "not between 0%",
    ),
    "percentage negative": (
        "evictionHard: {memory.available: -1%}",
        "evictionHard[memory.available]",
        "not between 0%",
    ),
    "percentage that is no number": (
        "evictionHard: {memory.available: nan%}",
        "evictionHard[memory.available]",
        "not a perc",
    ),
    "merge in words": ("mergeDefaultEvictionSettings: 'yes'", "mergeDefaultEvictionSettings", "neither true nor false"),
    "memory of another type": (
        "reservedMemory: [{numaNode: 0, limits: {cpu: 1}}]",
        "reservedMemory[0].limits[cpu]",
        "only memory and hugepages-<size>",
    ),
    "memory of zero": (
        "reservedMemory: [{limits: {memory: 1}}, {numaNode: 1, limits: {hugepages-2Mi: 0}}]",
        "reservedMemory[1].limits[hugepages-2Mi]",
        "zero reserves nothing",
    ),
    "memory twice": (
        "reservedMemory: [{numaNode: 0, limits: {memory: 1Gi}}, {limits: {memory: 1Gi}}]",
        "reservedMemory[1].limits[memory]",
        "reserved twice for NUMA node 0",
    ),
    "memory negative": (
        "reservedMemory: [{limits: {memory: -5}}]",
        "reservedMemory[0].limits[memory]",
        "number of bytes",
    ),
    "memory in a fraction of a binary unit": (
        "{memoryManagerPolicy: Static, reservedMemory: [{limits: {memory: 1.5Gi}}]}",
        "reservedMemory[0].limits[memory]",
        "write 1536Mi for 1.5Gi",
    ),
    "memory beyond int64": ("reservedMemory: [{limits: {memory: 1e20}}]", "reservedMemory[0].limits[memory]", "bytes"),
    "zone of a wrong type": ("reservedMemory: [{numaNode: '0'}]", "reservedMemory[0].numaNode", "not a whole number"),
    "zone beyond int32": ("reservedMemory: [{numaNode: 2147483648}]", "reservedMemory[0].numaNode", "not between"),
    "memory not a list": ("reservedMemory: {numaNode: 0}", "reservedMemory", "an object is not a list"),
    "memory entry not a mapping": ("reservedMemory: [0]", "reservedMemory[0]", "0 is not a mapping"),
    "gate in words": ("featureGates: {AllAlpha: 'true'}", "featureGates[AllAlpha]", "neither true nor false"),
    "negative number of pods": ("maxPods: -1", "maxPods", "-1 is not between 0"),
    "number of pods in words": ("maxPods: many", "maxPods", '"many" is not a whole number'),
    "another kind": ("kind: KubeProxyConfiguration", "kind", '"KubeProxyConfiguration" is not KubeletConfiguration'),
    "another version": ("apiVersion: kubelet.config.k8s.io/v1", "apiVersion", "is not kubelet.config.k8s.io/v1beta1"),
    "no kind": ("kind: null", "kind", 'missing; add "kind: KubeletConfiguration"'),
}


@pytest.mark.parametrize("text, field, why", REFUSED.values(), ids=REFUSED)
def test_what_the_kubelet_would_not_start_with_is_refused_by_name(text: str, field: str, why: str) -> None:
    with pytest.raises(errors.BadObject) as refusal:
        configuration.read(HEADER | yaml.safe_load(text), "kubelet.yaml", MACHINE)
    assert (refusal.value.kind, refusal.value.name) == ("KubeletConfiguration", "kubelet.yaml")
    assert (refusal.value.field, why in refusal.value.why) == (field, True), refusal.value


@pytest.mark.parametrize("thing", [None, [], "kind: KubeletConfiguration", 5])
def test_a_file_that_is_no_mapping_is_refused(thing: object) -> None:
    with pytest.raises(errors.BadObject, match=r"KubeletConfiguration kubelet.yaml: .* is not a mapping"):
        configuration.read(thing, "kubelet.yaml", MACHINE)
