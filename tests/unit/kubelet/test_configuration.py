"""A KubeletConfiguration is read as the kubelet reads it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from numalign.api.decode import cpuset
from numalign.kubelet import configuration, versions
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import MemoryReservation, Settings

DOCS = Path(__file__).parents[3] / "docs/use/kubelet-configuration.md"
MACHINE = presets.machine("2x16")
MIB = 1 << 20
HEADER = {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"}


def parsed(text: str) -> Any:
    return yaml.safe_load(text)


def read(text: str, minor: versions.Minor = versions.NEWEST) -> Settings:
    return configuration.read(HEADER | (parsed(text) or {}), "kubelet.yaml", MACHINE, minor)


# Shortened from what kubeadm writes, with the managers turned on.
REAL = """
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {cacheTTL: 0s, enabled: true}, x509: {clientCAFile: /etc/ca.crt}}
authorization: {mode: Webhook, webhook: {cacheAuthorizedTTL: 0s, cacheUnauthorizedTTL: 0s}}
cgroupDriver: systemd
clusterDNS: [10.96.0.10]
containerRuntimeEndpoint: ""
cpuManagerPolicy: static
cpuManagerPolicyOptions: {full-pcpus-only: "true"}
cpuManagerReconcilePeriod: 0s
evictionHard: {memory.available: 500Mi, nodefs.available: 10%, imagefs.inodesFree: 5%}
featureGates: {CPUManagerPolicyAlphaOptions: true, SomethingElse: false}
kubeReserved: {cpu: 500m, memory: 1Gi, ephemeral-storage: 1Gi}
logging: {flushFrequency: 0, options: {json: {infoBufferSize: "0"}}, verbosity: 0}
maxPods: 250
memoryManagerPolicy: Static
reservedMemory:
  - {numaNode: 0, limits: {memory: 2Gi, hugepages-1Gi: 1Gi}}
  - {numaNode: 1, limits: {memory: 548Mi}}
rotateCertificates: true
systemReserved: {cpu: 1500m, memory: 1Gi, pid: "1000"}
topologyManagerPolicy: single-numa-node
topologyManagerPolicyOptions: {prefer-closest-numa-nodes: "true"}
topologyManagerScope: pod
"""


def test_a_real_file_loads_as_it_is() -> None:
    assert configuration.read(parsed(REAL), "kubelet.yaml", MACHINE) == Settings(
        topology_policy="single-numa-node",
        topology_scope="pod",
        topology_options={"prefer-closest-numa-nodes": "true"},
        cpu_policy="static",
        cpu_options={"full-pcpus-only": "true"},
        memory_policy="Static",
        reserved_memory=(
            MemoryReservation(0, {"memory": 2048 * MIB, "hugepages-1Gi": 1024 * MIB}),
            MemoryReservation(1, {"memory": 548 * MIB}),
        ),
        reserved={"cpu": 2000, "memory": 2048 * MIB, "ephemeral-storage": 1024 * MIB, "pid": 1000},
        eviction_hard={"memory": 500 * MIB},
        max_pods=250,
        feature_gates={"CPUManagerPolicyAlphaOptions": True, "SomethingElse": False},
    )


@pytest.mark.parametrize("text", ["", "{topologyManagerPolicy: '', maxPods: 0}", "{kubeReserved: null, maxPods: null}"])
def test_what_is_left_out_empty_or_null_has_the_kubelets_default(text: str) -> None:
    assert read(text) == Settings(eviction_hard={"memory": 100 * MIB})


def test_the_example_of_the_documentation_can_be_read() -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert configuration.read(parsed(example), "kubelet.yaml", MACHINE).withheld("memory") == 2148 * MIB


RESERVED = {
    "both reservations add up": ("{kubeReserved: {cpu: 1}, systemReserved: {cpu: 250m}}", {"cpu": 1250}),
    "parts of bytes add up before they are rounded": (
        "{kubeReserved: {memory: 0.5}, systemReserved: {memory: 0.5}}",
        {"memory": 1},
    ),
    "CPUs are rounded to the nearest thousandth": ("{kubeReserved: {cpu: 1.4u}}", {"cpu": 0}),
    "from half a thousandth up": ("{kubeReserved: {cpu: 0.4999001m}}", {"cpu": 1}),
    "beyond int64": ("{kubeReserved: {memory: 1e30}}", {"memory": 2**63 - 1}),
}


@pytest.mark.parametrize("text, reserved", RESERVED.values(), ids=RESERVED)
def test_reservations(text: str, reserved: dict[str, int]) -> None:
    quoted = re.sub(r"(cpu|memory): ([0-9][^,}]*)", r'\1: "\2"', text)
    assert read(quoted).reserved == reserved


def test_a_list_of_reserved_cpus_takes_the_place_of_reserved_cpu_amounts() -> None:
    amounts = "kubeReserved: {cpu: '7', memory: 1Gi}, systemReserved: {cpu: '9'}"
    settings = read(f"{{reservedSystemCPUs: '0-1,16', {amounts}}}")
    assert settings.reserved_cpus == cpuset.parse("0-1,16")
    assert settings.reserved == {"cpu": 3000, "memory": 1024 * MIB}


def test_with_a_list_of_reserved_cpus_an_amount_that_is_no_quantity_is_never_looked_at() -> None:
    assert read("{reservedSystemCPUs: '3', kubeReserved: {cpu: lots}}").reserved == {"cpu": 1000}


# The bytes of the percentages were computed by Go, with the types that the kubelet uses.
THRESHOLDS = {
    "an amount": ("{memory.available: 1Gi}", {"memory": 1024 * MIB}),
    "a percentage of the machine's memory, in single precision": ("{memory.available: 5%}", {"memory": 6871947776}),
    "part of a percent": ("{memory.available: 0.1%}", {"memory": 137438960}),
    "nearly everything": ("{memory.available: 99.9%}", {"memory": 137301516288}),
    "0% stands for no threshold": ("{memory.available: 0%}", {}),
    "100% too": ("{memory.available: 100%}", {}),
    "0.0% is a threshold of nothing": ("{memory.available: 0.0%}", {"memory": 0}),
    "thresholds without memory": ("{nodefs.available: 10%, imagefs.available: 1Gi}", {}),
    "no thresholds at all": ("{}", {}),
}


@pytest.mark.parametrize("text, held_back", THRESHOLDS.values(), ids=THRESHOLDS)
def test_eviction_thresholds(text: str, held_back: dict[str, int]) -> None:
    assert read(f"evictionHard: {text}").eviction_hard == held_back


MERGED = {"nodefs.available: 10%": 100 * MIB, "memory.available: 1Gi": 1024 * MIB, "memory.available: 0%": None}


@pytest.mark.parametrize("text, held_back", MERGED.items())
def test_default_thresholds_are_merged_in_where_the_file_asks_for_it(text: str, held_back: int | None) -> None:
    settings = read(f"{{mergeDefaultEvictionSettings: true, evictionHard: {{{text}}}}}")
    assert settings.eviction_hard.get("memory") == held_back


def test_reserved_memory_may_be_spread_over_entries_of_one_zone() -> None:
    settings = read(
        "reservedMemory: [{numaNode: 1, limits: {memory: 5}}, {numaNode: 1, limits: {hugepages-2Mi: 2Mi}}, {}]"
    )
    assert settings.reserved_memory == (
        MemoryReservation(1, {"memory": 5}),
        MemoryReservation(1, {"hugepages-2Mi": 2 * MIB}),
        MemoryReservation(0, {}),
    )


def test_a_fraction_of_a_binary_unit_disturbs_the_static_memory_manager_only() -> None:
    [reservation] = read("reservedMemory: [{limits: {memory: 1.5Gi}}]").reserved_memory
    assert reservation.limits == {"memory": 1536 * MIB}


def test_what_the_managers_check_at_start_is_let_through() -> None:
    settings = read(
        "{cpuManagerPolicyOptions: {no-such-option: x}, reservedMemory: [{numaNode: 99, limits: {memory: 1}}]}"
    )
    assert settings.cpu_options == {"no-such-option": "x"}
    assert settings.reserved_memory[0].zone == 99


def test_the_minor_is_kept_and_decides_gates_that_the_file_does_not_set() -> None:
    settings = read("featureGates: {PodLevelResourceManagers: true}", versions.Minor(1, 36))
    assert settings.minor == (1, 36)
    assert settings.gate("PodLevelResourceManagers")
    assert not settings.gate("PodLevelResourcesFixDefaulting")
