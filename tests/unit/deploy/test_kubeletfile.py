"""The printed kubelet configuration starts on every machine, and a file that would not is told why beforehand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.errors import BadObject
from numalign.deploy.hosts import kubeletfile
from numalign.deploy.hosts.kubeletfile import Wish
from numalign.kubelet import configuration, start, versions
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Machine, Zone
from numalign.kubelet.report import report
from numalign.kubelet.versions import Minor
from tests.strategies import kubelet as drawn

MINORS = [Minor(1, each) for each in range(versions.OLDEST.minor, versions.NEWEST.minor + 1)]
TWO = presets.machine("2x32-smt")


def roomy(zone: Zone) -> Zone:
    """With memory for a reservation."""
    return structs.replace(zone, memory=zone.memory + (4 << 30))


def ids(document: dict[str, Any], machine: Machine = TWO) -> list[str]:
    return [each.id for each in kubeletfile.judged(document, "kubelet.yaml", machine)]


@given(drawn.machines(), st.sampled_from(MINORS), st.sampled_from(["restricted", "single-numa-node"]))
def test_a_proposal_starts_reserves_the_sum_and_has_no_findings_whatever_the_machine(
    machine: Machine, minor: Minor, policy: Any
) -> None:
    machine = structs.replace(machine, zones=tuple(map(roomy, machine.zones)))
    if all(len(zone.cores) < 2 for zone in machine.zones):
        with pytest.raises(BadObject, match="none is left for pods"):
            kubeletfile.proposed(machine, Wish(policy=policy), minor)
        return
    document = kubeletfile.proposed(machine, Wish(policy=policy), minor)
    settings = configuration.read(document, "x", machine, minor)
    reserved = sum(each.limits["memory"] for each in settings.reserved_memory)
    assert reserved == settings.withheld("memory") == (2 << 30) + (100 << 20)
    errors = [each for each in kubeletfile.judged(document, "x", machine, minor) if each.severity == "error"]
    assert errors == []


@pytest.mark.parametrize("name", presets.names())
@pytest.mark.parametrize("minor", MINORS, ids=str)
def test_every_preset_gets_one(name: str, minor: Minor) -> None:
    machine = presets.machine(name)
    found = kubeletfile.judged(kubeletfile.proposed(machine, Wish(), minor), "x", machine, minor)
    assert [each.id for each in found] == (["too-many-zones"] if name == "superchip-34" else [])


def test_options_bring_the_gates_that_their_minor_wants() -> None:
    options = {"align-by-socket": "true", "full-pcpus-only": "true"}
    document = kubeletfile.proposed(TWO, Wish(policy="restricted", cpu_options=options))
    assert document["featureGates"] == {"CPUManagerPolicyAlphaOptions": True}
    many = kubeletfile.proposed(presets.machine("superchip-34"), Wish(), versions.OLDEST)
    assert many["topologyManagerPolicyOptions"] == {"max-allowable-numa-nodes": "34"}
    assert "featureGates" not in many


def test_the_reservations_of_an_existing_file_stay_and_decide_the_sum() -> None:
    base = {
        "apiVersion": configuration.API_VERSION,
        "kind": configuration.KIND,
        "kubeReserved": {"memory": "3Gi", "cpu": "1"},
        "evictionHard": {"memory.available": "1Gi"},
        "clusterDNS": ["10.96.0.10"],
        "reservedMemory": [{"numaNode": 5, "limits": {"memory": "1Gi"}}],
        "featureGates": {"CPUManagerPolicyBetaOptions": True},
    }
    document = kubeletfile.proposed(TWO, Wish(), base=base)
    assert document["clusterDNS"] == ["10.96.0.10"]
    assert document["reservedMemory"] == [
        {"numaNode": 0, "limits": {"memory": "2Gi"}},
        {"numaNode": 1, "limits": {"memory": "2Gi"}},
    ]
    assert document["featureGates"] == {"CPUManagerPolicyBetaOptions": True}
    assert base["reservedMemory"][0]["numaNode"] == 5  # type: ignore[index]


@pytest.mark.parametrize(
    "wish, why",
    [
        (Wish(reserved_cpus="0-63"), "none is left for pods"),
        (Wish(reserved_cpus="900"), "the machine has no CPU 900"),
        (Wish(kube_reserved="lots"), "is not a quantity"),
        (Wish(kube_reserved="900Gi"), "zone 0 has 128Gi of memory, and 461362Mi would be reserved there; reserve less"),
        (Wish(cpu_options={"no-such": "true"}), "unknown CPU Manager Policy option"),
        (Wish(topology_options={"max-allowable-numa-nodes": "3"}), "should not be less than 8"),
    ],
)
def test_what_no_kubelet_would_start_with_is_not_printed(wish: Wish, why: str) -> None:
    with pytest.raises(BadObject, match=why):
        kubeletfile.proposed(TWO, wish)


def test_a_stock_configuration_has_all_the_findings() -> None:
    stock = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    assert ids(stock) == ["topology-policy-none", "cpu-manager-not-static", "memory-manager-off"]


def test_findings_name_the_amounts_that_would_be_right() -> None:
    document = kubeletfile.proposed(TWO, Wish())
    assert ids(document) == []
    (wrong,) = kubeletfile.judged(document | {"kubeReserved": {"memory": "2Gi"}}, "x", TWO)
    assert (wrong.id, wrong.field) == ("reserved-memory-wrong", "reservedMemory")
    assert wrong.remedy.endswith("1586Mi for zone 0, 1586Mi for zone 1")
    assert ids(document | {"reservedMemory": []}) == ["reserved-memory-missing"]
    assert ids(document | {"reservedSystemCPUs": "0,16"}) == ["reserved-cpus-split"]
    assert ids(document | {"topologyManagerPolicy": "best-effort"}) == ["topology-policy-best-effort"]
    whole_zone = document | {"reservedSystemCPUs": "0-15,32-47"}
    assert ids(whole_zone) == ["reserved-cpus-zone"]
    amounts = {"kubeReserved": {"memory": "2Gi", "cpu": "2"}, "systemReserved": {}}
    assert ids({**document, **amounts, "reservedSystemCPUs": ""}) == ["reserved-cpus-unset"]
    assert ids(document | {"cpuManagerPolicyOptions": {"x": "y"}}) == ["kubelet-refuses-to-start"]


@pytest.mark.parametrize("document", [None, [], "text", {"kind": "Pod"}, {"kind": 5}])
def test_what_is_no_configuration_is_refused(document: object) -> None:
    with pytest.raises(BadObject):
        kubeletfile.judged(document, "x", TWO)


@pytest.mark.parametrize("form", ["config", "drop-in", "kubeadm-patch"])
def test_the_steps_empty_the_node_and_remove_the_checkpoints_before_the_start(form: Any) -> None:
    steps = kubeletfile.steps(form, "node-1", "/var/lib/k0s/kubelet")
    assert steps[0].startswith("kubectl drain node-1")
    order = [
        next(i for i, each in enumerate(steps) if word in each) for word in ("stop", "cpu_manager_state", "start ")
    ]
    assert order == sorted(order)
    assert "/var/lib/k0s/kubelet/memory_manager_state" in steps[2]
    assert steps[-1] == "kubectl uncordon node-1"


@pytest.mark.parametrize("name", ["2x32-smt", "epyc-nps4", "superchip-34", "xeon-snc"])
def test_the_machine_of_a_report_gets_the_configuration_of_the_machine(name: str) -> None:
    machine = presets.machine(name)
    settings = configuration.read(kubeletfile.proposed(machine, Wish()), "x", machine)
    kubelet = start.start(machine, settings)
    found = kubeletfile.machine_of(report.of("node-1", kubelet, kubelet.initial()))
    assert kubeletfile.proposed(found, Wish()) == kubeletfile.proposed(machine, Wish())
