"""Every check of the doctor: a healthy cluster has no finding, and the fault that it is for is found."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any, Final

import msgspec
import pytest
from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt import publishers, wire
from numalign.deploy.doctor import diagnosis, files, fixes, walk
from numalign.deploy.doctor.checks import Severity
from numalign.deploy.doctor.diagnosis import CHECKS, Diagnosis
from numalign.kube import clock as clocks
from numalign.kube.errors import Unauthorized
from numalign.kubelet.machine import presets
from numalign.kubelet.machine.machine import Device, DevicePlugin, HugePages, Machine
from numalign.kubelet.versions import Minor
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec, PublisherFaults, Publishing
from tests.embedded import wards
from tests.embedded.wards import HOME, Ward, node, pod, tainted
from tests.strategies import hostile

REPORT: Final = {"apiVersion": "topology.node.k8s.io/v1alpha2", "kind": "NodeResourceTopology"}
DEFINITION: Final = crd.crd()
CRD_NAME: Final = DEFINITION["metadata"]["name"]
RTE: Final = {"name": "rte", "image": "a:1", "command": ["/bin/resource-topology-exporter"]}


async def nothing(ward: Ward) -> None:
    """The fault is in the nodes."""


class Fault(Struct, frozen=True, kw_only=True):
    happens: Callable[[Ward], Awaitable[None]] = nothing
    nodes: tuple[NodeSpec, ...] | None = None
    bare: bool = False
    seen: str = ""
    """A part of what is said."""


def ids(found: Diagnosis) -> set[str]:
    return {each.check for each in found.findings}


def publishing(spec: NodeSpec, **how: Any) -> NodeSpec:
    return structs.replace(spec, publishing=Publishing(**how))


def with_pages(machine: Machine) -> Machine:
    zones = tuple(structs.replace(zone, hugepages=(HugePages(2048, 512),)) for zone in machine.zones)
    return structs.replace(machine, zones=zones)


def with_loose_device(machine: Machine) -> Machine:
    return structs.replace(machine, devices={"example.com/nic": DevicePlugin((Device("nic-0"),))})


# Of the cluster


async def forbidden(ward: Ward) -> None:
    ward.forbids("/apis/apps/v1/deployments")


async def odd(ward: Ward) -> None:
    strange = {"metadata": {"name": "strange", "namespace": "default"}, "spec": 5}
    ward.answers("/api/v1/pods", {"kind": "PodList", "apiVersion": "v1", "items": [strange]})


def versioned(text: str) -> Callable[[Ward], Awaitable[None]]:
    async def answered(ward: Ward) -> None:
        ward.answers("/version", {"gitVersion": text})

    return answered


async def node_stops(ward: Ward) -> None:
    ward.embedded.fleet.nodes["n0"].stop()
    await ward.clock.sleep(120)


async def clock_is_wrong(ward: Ward) -> None:
    ahead = clocks.microtime(ward.clock.wall() + timedelta(seconds=30))
    metadata = {"name": "n0", "namespace": "kube-node-lease"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
    ward.write({**lease, "spec": {"renewTime": ahead}}, manager="kubelet")


async def pod_is_rejected(ward: Ward) -> None:
    """More CPUs than a zone has, put on the node by hand."""
    ward.create(pod("wide", {"cpu": "100", "memory": "1Gi"}, nodeName="n0"))
    await ward.clock.sleep(10)


# Of kubelets


def asked_kubelet(**changes: Any) -> Callable[[Ward], Awaitable[None]]:
    async def answered(ward: Ward) -> None:
        ward.configz("n0", **changes)

    return answered


BY_RTE: Final = (node(publisher="rte"),)


async def wants_pages(ward: Ward) -> None:
    ward.create(pod("paged", {"cpu": "1", "memory": "1Gi", "hugepages-1Gi": "1Gi"}))


# Of reports


async def no_definition(ward: Ward) -> None:
    ward.delete(DEFINITION)


def defined(change: Callable[[dict[str, Any]], None]) -> Callable[[Ward], Awaitable[None]]:
    async def replaced(ward: Ward) -> None:
        ward.delete(DEFINITION)
        changed = msgspec.json.decode(msgspec.json.encode(DEFINITION))
        change(changed)
        ward.create(changed)

    return replaced


def only_old(tree: dict[str, Any]) -> None:
    tree["spec"]["versions"] = [each | {"storage": True} for each in tree["spec"]["versions"][:1]]


def namespaced(tree: dict[str, Any]) -> None:
    tree["spec"]["scope"] = "Namespaced"


async def not_accepted(ward: Ward) -> None:
    false = {"type": "NamesAccepted", "status": "False", "reason": "ShortNamesConflict", "message": "taken"}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z"}
    ward.write({**DEFINITION, "status": {"conditions": [false | times]}}, subresource="status")


async def of_a_release(ward: Ward) -> None:
    ward.write({**DEFINITION, "metadata": {"name": CRD_NAME, "annotations": {"meta.helm.sh/release-name": "nfd"}}})


async def agent_falls_silent(ward: Ward) -> None:
    beat = ward.clock.wall().strftime("%Y-%m-%dT%H:%M:%SZ")
    ward.embedded.fleet.nodes["n0"].stop_exporter()
    ward.write({**REPORT, "metadata": {"name": "n0", "annotations": {publishers.HEARTBEAT: beat}}})
    await ward.clock.sleep(700)


async def node_goes(ward: Ward) -> None:
    ward.create({**REPORT, "metadata": {"name": "gone"}, "zones": []})
    await ward.clock.sleep(310)


async def newer_attribute(ward: Ward) -> None:
    there = ward.api.get(crd.RESOURCE, "n0")
    newer = {"name": "numalign.io/managers", "value": "v2;something"}
    kept = [each for each in there["attributes"] if each["name"] != newer["name"]]
    ward.write({**REPORT, "metadata": {"name": "n0"}, "attributes": [*kept, newer]}, manager=publishers.AGENT)


async def empty_report(ward: Ward) -> None:
    ward.create({**REPORT, "metadata": {"name": "n0"}, "zones": []})


async def overwritten(ward: Ward) -> None:
    ward.write({**REPORT, "metadata": {"name": "n0"}, "zones": []}, manager="another")


async def two_daemon_sets(ward: Ward) -> None:
    ward.create(wards.workload("DaemonSet", "rte", RTE))


# Of programs


def changed_agent(**spec: Any) -> Callable[[Ward], Awaitable[None]]:
    async def changed(ward: Ward) -> None:
        name = {"name": "numalign-agent", "namespace": HOME}
        template = {"template": {"spec": spec}}
        ward.write({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": name, "spec": template})

    return changed


async def agent_is_not_ready(ward: Ward) -> None:
    ours = [each for each in ward.api.list(_pods(ward)).items if each["metadata"]["name"].startswith("numalign-agent")]
    false = [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-01-01T00:00:00Z"}]
    ended = {"terminated": {"exitCode": 1, "message": "it starts\nno such folder"}}
    crashed = [{"name": "agent", "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": ended}]
    status = {"conditions": false, "containerStatuses": crashed}
    ward.write(
        {"apiVersion": "v1", "kind": "Pod", "metadata": ours[0]["metadata"], "status": status}, subresource="status"
    )


def _pods(ward: Ward) -> Any:
    return ward.resource({"apiVersion": "v1", "kind": "Pod"})


async def wrong_name(ward: Ward) -> None:
    ward.create(pod("lost", schedulerName="numalgin"), pod("found", schedulerName="default-scheduler"))
    await ward.clock.sleep(70)


async def same_profile(ward: Ward) -> None:
    other = wards.config_map("other", leaderElection={"resourceName": "other"})
    ward.create(other, wards.deployment("other", "other"))


async def same_lease(ward: Ward) -> None:
    place = {"resourceName": "numalign-scheduler", "resourceNamespace": HOME}
    other = wards.config_map("other", profiles=[{"schedulerName": "other"}], leaderElection=place)
    ward.create(other, wards.deployment("other", "other"))


async def no_election(ward: Ward) -> None:
    other = wards.config_map("other", profiles=[{"schedulerName": "other"}], leaderElection={"leaderElect": False})
    ward.create(other, wards.deployment("other", "other", replicas=2))


async def bad_configuration(ward: Ward) -> None:
    other = wards.config_map("other", profiles=[{"schedulerName": 5}])
    ward.create(other, wards.deployment("other", "other"))


async def missing_configuration(ward: Ward) -> None:
    ward.create(wards.deployment("other", "other"))


async def scheduler_without_room(ward: Ward) -> None:
    tree = wards.deployment("other")
    tree["spec"]["template"]["spec"]["nodeSelector"] = {"no": "such"}
    ward.create(tree)
    await ward.clock.sleep(130)


async def abandoned_lease(ward: Ward) -> None:
    spec = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": clocks.microtime(ward.clock.wall())}
    metadata = {"name": "numalign-scheduler", "namespace": HOME}
    ward.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata, "spec": spec})
    await ward.clock.sleep(100)


async def two_schedulers(ward: Ward) -> None:
    wanted = {"cpu": "1", "memory": "1Gi"}
    ward.create(pod("one", wanted, nodeName="n0"), pod("other", wanted, nodeName="n0", schedulerName="numalign"))
    await ward.clock.sleep(10)


async def claims(ward: Ward) -> None:
    wanted = {"cpu": "1", "memory": "1Gi"}
    needs = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
    ward.create(pod("one", wanted, schedulerName="numalign", resourceClaims=needs), pod("other", wanted))
    await ward.clock.sleep(10)


async def old_agents(ward: Ward) -> None:
    name = {"name": "numalign-agent", "namespace": HOME}
    template = {"template": {"metadata": {"labels": {"app.kubernetes.io/version": "0.0.1"}}}}
    ward.write({"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": name, "spec": template})


async def fewer_rights(ward: Ward) -> None:
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
    there = ward.api.get(ward.resource(role), "numalign-scheduler")
    kept = [rule for rule in there["rules"] if "pods/binding" not in rule["resources"]]
    ward.write({**role, "metadata": {"name": "numalign-scheduler"}, "rules": kept})


FAULTS: Final[dict[str, Fault]] = {
    "not-readable": Fault(happens=forbidden, seen="no right to /apis/apps/v1/deployments"),
    "object-unreadable": Fault(happens=odd, seen="Pod default/strange"),
    "api-server-version-unknown": Fault(happens=versioned("banana")),
    "api-server-old": Fault(happens=versioned("v1.20.3"), seen="1.20; the oldest supported is 1.30"),
    "no-nodes": Fault(nodes=()),
    "node-not-ready": Fault(happens=node_stops),
    "clock-skew": Fault(happens=clock_is_wrong, seen="the clock of its kubelet is 30 s ahead"),
    "rejected-pods-left": Fault(happens=pod_is_rejected, seen="1 pods of no controller were rejected with Topology"),
    "kubelet-config-unknown": Fault(nodes=(node(publisher="rte"),), seen="no report holds the kubelet's"),
    "topology-policy-none": Fault(nodes=(node(topology_policy="none"),)),
    "topology-policy-best-effort": Fault(nodes=(node(topology_policy="best-effort"),)),
    "topology-settings-differ": Fault(
        nodes=(node(), node("n1", topology_scope="pod")), seen="1 nodes with single-numa-node and scope pod"
    ),
    "topology-options-ignored": Fault(
        nodes=(node(topology_policy="none", topology_options={"prefer-closest-numa-nodes": "true"}),)
    ),
    "cpu-manager-not-static": Fault(nodes=(node(cpu_policy="none"),)),
    "cpu-reconcile-period": Fault(
        nodes=BY_RTE, happens=asked_kubelet(cpuManagerReconcilePeriod="0s"), seen="cpuManagerReconcilePeriod is 0 s"
    ),
    "reserved-cpus-unset": Fault(nodes=BY_RTE, happens=asked_kubelet(reservedSystemCPUs="")),
    "memory-manager-off": Fault(nodes=(node(memory_policy="None"),)),
    "reserved-memory-missing": Fault(
        nodes=BY_RTE, happens=asked_kubelet(memoryManagerPolicy="None", reservedMemory=[])
    ),
    "reserved-memory-wrong": Fault(
        nodes=BY_RTE,
        happens=asked_kubelet(reservedMemory=[{"numaNode": 0, "limits": {"memory": "5Gi"}}]),
        seen=f"sums up to {5 << 30} bytes, not {1 << 30}",
    ),
    "hugepages-unaligned": Fault(nodes=(node(machine=with_pages(wards.MACHINE), memory_policy="None"),), seen="2Gi"),
    "hugepages-unreserved": Fault(happens=wants_pages, seen="requests hugepages-1Gi, of which no node has any"),
    "kubelet-minor-unknown": Fault(nodes=(node(minor=Minor(1, 33)),), seen="the rules of 1.34 stand in for it"),
    "kubelet-version-skew": Fault(nodes=(node(minor=Minor(1, 38)),), seen="newer than the API server"),
    "kubelet-pod-lists-differ": Fault(nodes=(node(), node("n1", minor=Minor(1, 33)))),
    "crd-missing": Fault(happens=no_definition),
    "crd-old": Fault(happens=defined(only_old), seen="serves v1alpha1, not v1alpha2"),
    "crd-foreign": Fault(happens=defined(namespaced), seen="with scope Namespaced"),
    "crd-not-established": Fault(happens=not_accepted, seen="NamesAccepted is False: taken"),
    "crd-goes-with-release": Fault(happens=of_a_release, seen="Helm release nfd"),
    "report-missing": Fault(nodes=(node(), node("n1", publisher="none"))),
    "report-stale": Fault(happens=agent_falls_silent, seen="11 minutes ago"),
    "report-orphaned": Fault(happens=node_goes),
    "report-unreadable": Fault(
        nodes=(publishing(node(), faults=PublisherFaults(garbage=1.0)),), seen="were repaired or skipped"
    ),
    "report-from-newer-agent": Fault(happens=newer_attribute, seen="attributes[numalign.io/managers]"),
    "report-without-zones": Fault(nodes=(node(publisher="none"),), happens=empty_report),
    "report-without-fingerprint": Fault(
        nodes=(publishing(node(), publisher="nfd", faults=PublisherFaults(without=("nodeTopologyPodsFingerprint",))),)
    ),
    "report-without-placements": Fault(
        nodes=(publishing(node(), faults=PublisherFaults(without=("numalign.io/placements",))),)
    ),
    "report-two-publishers": Fault(happens=overwritten, seen="another and numalign-agent"),
    "publishers-overlap": Fault(happens=two_daemon_sets, seen=f"numalign-agent and DaemonSet {HOME}/rte both"),
    "report-contradicts-kubelet": Fault(
        nodes=BY_RTE,
        happens=asked_kubelet(topologyManagerScope="pod"),
        seen="container, its kubelet runs with pod",
    ),
    "node-single-zone": Fault(nodes=(node(machine=presets.machine("edge-1")),)),
    "devices-without-zone": Fault(nodes=(node(machine=with_loose_device(wards.MACHINE)),), seen="example.com/nic"),
    "publisher-missing": Fault(nodes=(node(publisher="none"),), bare=True),
    "agent-not-on-node": Fault(happens=changed_agent(nodeSelector={"no": "such"})),
    "agent-not-tolerating": Fault(
        nodes=(node(), tainted(node("n1"), "dedicated")), happens=changed_agent(tolerations=None), seen="dedicated"
    ),
    "agent-not-ready": Fault(happens=agent_is_not_ready, seen="not ready: container agent ended with code 1: no such"),
    "startup-taint-left": Fault(nodes=(node(), tainted(node("n1"), publishers.STARTUP_TAINT))),
    "scheduler-unserved": Fault(happens=wrong_name, seen="has looked at pods that wait for it: default/lost"),
    "scheduler-profile-collision": Fault(happens=same_profile, seen=f"Deployment {HOME}/other"),
    "scheduler-lease-collision": Fault(happens=same_lease, seen=f"Deployment {HOME}/other"),
    "scheduler-without-election": Fault(happens=no_election, seen="2 replicas without leader election"),
    "scheduler-config-invalid": Fault(happens=bad_configuration, seen="profiles[0].schedulerName"),
    "scheduler-unavailable": Fault(happens=scheduler_without_room, seen="is on no node: Unschedulable: 0/"),
    "scheduler-leaderless": Fault(happens=abandoned_lease, seen="a renewed it 100 s ago"),
    "pods-need-kube-scheduler": Fault(happens=claims, seen="pods use resource claims"),
    "schedulers-mixed": Fault(happens=two_schedulers, seen="default-scheduler and numalign"),
    "program-versions-differ": Fault(happens=old_agents, seen="0.0.1 (DaemonSet"),
    "rbac-short": Fault(happens=fewer_rights, seen="may not create pods/binding"),
}


def test_a_healthy_cluster_has_no_finding() -> None:
    found = wards.examined(nothing)
    assert found.findings == ()
    assert set(found.judged) == set(CHECKS)
    assert found.nodes == 2
    assert not found.is_void


SECRETS: Final = {"tls": {"secretName": "cert"}, "extender": {"clientCaSecret": "ca"}}
INSTALLATIONS: Final = {
    "instead of kube-scheduler": {"scheduler": {"mode": "only"}},
    "an extender": {"scheduler": {"mode": "extender", **SECRETS}},
    "several replicas": {"scheduler": {"replicas": 2}},
    "groups of nodes": {
        "agent": {
            "nodeGroups": [
                {"name": "first", "nodeSelector": {"kubernetes.io/hostname": "n0"}},
                {"name": "second", "nodeSelector": {"kubernetes.io/hostname": "n1"}},
            ]
        }
    },
    "options": {"agent": {"removeStartupTaint": True}},
}


@pytest.mark.parametrize("values", INSTALLATIONS.values(), ids=list(INSTALLATIONS))
def test_no_kind_of_installation_is_a_fault(values: dict[str, Any]) -> None:
    async def otherwise_installed(ward: Ward) -> None:
        ward.create(*wards.installed(values))
        await ward.clock.sleep(130)

    assert wards.examined(otherwise_installed, bare=True).findings == ()


def test_every_check_has_a_fault_here() -> None:
    assert set(FAULTS) == set(CHECKS)


@pytest.mark.parametrize("check", FAULTS)
def test_the_fault_is_found(check: str) -> None:
    fault = FAULTS[check]
    found = wards.examined(fault.happens, fault.nodes, bare=fault.bare)
    said = [each for each in found.findings if each.check == check]
    assert said, ids(found)
    assert any(fault.seen in each.seen for each in said), said
    assert all(each.where and each.fix and each.why for each in said)


def test_a_configuration_that_does_not_exist_is_a_finding() -> None:
    assert "scheduler-config-invalid" in ids(wards.examined(missing_configuration))


# What one fault does not hide, and what it does not spread to


def test_what_may_not_be_read_skips_its_checks_and_no_others() -> None:
    found = wards.examined(forbidden, (node(topology_policy="none"),))
    assert {"not-readable", "topology-policy-none"} <= ids(found)
    assert "rbac-short" in found.skipped
    assert not found.is_void
    assert found.skipped["rbac-short"] == "deployments could not be read"
    assert not set(found.skipped) & set(found.judged)


PATHS: Final = (
    "/version",
    "/api/v1/nodes",
    "/api/v1/pods",
    "/apis/apps/v1/daemonsets",
    "/apis/apps/v1/deployments",
    "/apis/topology.node.k8s.io/v1alpha2/noderesourcetopologies",
    f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{CRD_NAME}",
    "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
    "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    f"/api/v1/namespaces/{HOME}/configmaps/numalign-scheduler",
)


@pytest.mark.parametrize("path", PATHS)
def test_no_single_refusal_stops_the_doctor(path: str) -> None:
    async def refused(ward: Ward) -> None:
        ward.forbids(path)

    found = wards.examined(refused)
    assert ids(found) == {"not-readable"}
    assert found.judged


def test_with_no_rights_at_all_the_doctor_says_so() -> None:
    async def refused(ward: Ward) -> None:
        for path in PATHS:
            ward.forbids(path)
        for plural in ("clusterrolebindings", "roles", "rolebindings"):
            ward.forbids(f"/apis/rbac.authorization.k8s.io/v1/{plural}")

    found = wards.examined(refused)
    assert ids(found) == {"not-readable"}
    assert found.is_void
    assert set(found.judged) == {"not-readable", "object-unreadable", "scheduler-leaderless"}


def test_a_user_that_the_api_server_does_not_know_judges_nothing() -> None:
    async def unknown(ward: Ward) -> None:
        ward.answers("/api/v1/pods", {"kind": "Status", "status": "Failure", "reason": "Unauthorized"}, 401)
        with pytest.raises(Unauthorized):
            await ward.observed()
        ward.replaced.clear()

    assert not wards.examined(unknown).is_void


def test_garbage_in_every_list_is_reported_object_by_object() -> None:
    async def garbled(ward: Ward) -> None:
        strange = [{"metadata": {"name": "odd"}, "spec": [], "status": 7, "zones": 3, "rules": 1, "subjects": 1}, {}]
        for path in PATHS[1:6]:
            ward.answers(path, {"kind": "List", "items": strange})
        ward.answers("/version", ["no", "version"])

    found = wards.examined(garbled)
    assert {"object-unreadable", "not-readable"} <= ids(found)
    assert any("Node odd" in each.where for each in found.findings)


def test_a_node_without_status_is_judged_by_what_it_has() -> None:
    async def bare_node(ward: Ward) -> None:
        ward.answers("/api/v1/nodes", {"kind": "NodeList", "items": [{"metadata": {"name": "n0"}}]})

    found = wards.examined(bare_node)
    assert "kubelet-minor-unknown" in ids(found)


def test_an_answer_of_a_kubelet_that_makes_no_sense_is_reported() -> None:
    async def senseless(ward: Ward) -> None:
        ward.configz("n0", topologyManagerPolicy=7, reservedMemory="much", cpuManagerReconcilePeriod="soon")

    (said,) = [each for each in wards.examined(senseless, BY_RTE).findings if each.check == "kubelet-config-unknown"]
    assert "topologyManagerPolicy" in said.seen
    assert "reservedMemory" in said.seen


def test_kubelets_that_are_asked_are_judged_by_all_rules() -> None:
    runs = {"cpuManagerPolicy": "none", "memoryManagerPolicy": "None", "reservedMemory": []}
    found = wards.examined(asked_kubelet(**runs, topologyManagerPolicy="none"), BY_RTE)
    wanted = {"topology-policy-none", "cpu-manager-not-static", "memory-manager-off", "reserved-memory-missing"}
    assert wanted <= ids(found)


def test_one_refusal_of_the_proxy_stands_for_all_kubelets() -> None:
    async def refused(ward: Ward) -> None:
        for name in ("n0", "n1"):
            ward.forbids(f"/api/v1/nodes/{name}/proxy/configz")

    found = wards.examined(refused, (node(publisher="rte"), node("n1", publisher="rte")))
    said = {each.check: each for each in found.findings}
    assert said["not-readable"].where == ("nodes/proxy",)
    assert said["kubelet-config-unknown"].nodes == ("n0", "n1")


# Which nodes are meant


@pytest.mark.parametrize("seconds, state", [(20, "not known yet"), (70, "NO")])
def test_a_young_pod_that_no_scheduler_has_looked_at_is_no_proof_of_a_scheduler(seconds: float, state: str) -> None:
    texts = []

    async def asked(ward: Ward) -> None:
        ward.create(pod("lost", schedulerName="no-such-scheduler"))
        await ward.clock.sleep(seconds)
        observed = await ward.observed()
        lost = next(each for each in observed.pods if each.metadata.name == "lost")
        texts.append(walk.steps(observed, diagnosis.diagnose(observed), lost)[1])

    wards.examined(asked)
    assert (texts[0].is_open, bool(texts[0].findings)) == (state != "NO", state == "NO")


def test_equal_faults_of_many_nodes_are_one_finding() -> None:
    found = wards.examined(nothing, [node(f"n{number}", topology_policy="none") for number in range(4)])
    (said,) = [each for each in found.findings if each.check == "topology-policy-none"]
    assert said.nodes == ("n0", "n1", "n2", "n3")


def test_findings_about_one_node_alone() -> None:
    mixed = (node(topology_policy="none"), node("n1", cpu_policy="none"))
    assert ids(wards.examined(nothing, mixed, node="n1")) == {"cpu-manager-not-static"}


def test_one_check_alone() -> None:
    mixed = (node(topology_policy="none", cpu_policy="none"),)
    found = wards.examined(nothing, mixed, only=("topology-policy-none",))
    assert ids(found) == {"topology-policy-none"}
    assert found.judged == ("topology-policy-none",)


def test_nodes_of_another_operating_system_are_left_out() -> None:
    async def windows(ward: Ward) -> None:
        there = {"metadata": {"name": "w0"}, "status": {"nodeInfo": {"operatingSystem": "windows"}}}
        ward.answers("/api/v1/nodes", {"kind": "NodeList", "items": [there]})

    assert wards.examined(windows).nodes == 0


def test_nodes_of_the_control_plane_are_left_out_unless_they_report() -> None:
    plane = tainted(node("plane", publisher="none", topology_policy="none"), "node-role.kubernetes.io/control-plane")
    assert wards.examined(nothing, (node(), plane)).findings == ()
    reports = tainted(node("plane", topology_policy="none"), "node-role.kubernetes.io/control-plane")
    assert "topology-policy-none" in ids(wards.examined(nothing, (node(), reports)))


def test_the_selection_of_the_user_counts() -> None:
    mixed = (node(), node("n1", topology_policy="none"))
    found = wards.examined(nothing, mixed, selects=lambda each: each.metadata.name == "n0")
    assert found.findings == ()


def test_errors_come_first() -> None:
    found = wards.examined(nothing, (node(topology_policy="none", memory_policy="None"),))
    ranks = [diagnosis.RANK[each.severity] for each in found.findings]
    assert ranks == sorted(ranks)
    assert found.has(Severity.ERROR)


# Mending


def mended(happens: Callable[[Ward], Awaitable[None]], nodes: tuple[NodeSpec, ...] | None = None) -> Any:
    """What the doctor finds, what becomes of its repairs, and what it finds then."""

    async def told(ward: Ward) -> Any:
        await happens(ward)
        before = diagnosis.diagnose(await ward.observed())
        planned = fixes.planned(before)
        async with ward.client() as client:
            outcomes = await fixes.mend(client, [repair for _, repair in planned])
        await ward.clock.sleep(1)
        return planned, outcomes, diagnosis.diagnose(await ward.observed())

    return wards.played(told, nodes)


@pytest.mark.parametrize("check", ["rejected-pods-left", "report-orphaned", "startup-taint-left", "rbac-short"])
def test_what_can_be_mended_is(check: str) -> None:
    planned, outcomes, after = mended(FAULTS[check].happens, FAULTS[check].nodes)
    assert {name for name, _ in planned} == {check}
    assert all(repair.diff() for _, repair in planned)
    assert all(each.done for each in outcomes), outcomes
    assert check not in ids(after)


def test_mending_keeps_what_somebody_added_to_a_role() -> None:
    extra = {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"], "resourceNames": ["mine"]}

    async def told(ward: Ward) -> Any:
        await fewer_rights(ward)
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole"}
        there = ward.api.get(ward.resource(role), "numalign-scheduler")
        ward.write({**role, "metadata": {"name": "numalign-scheduler"}, "rules": [*there["rules"], extra]})
        planned = fixes.planned(diagnosis.diagnose(await ward.observed()))
        async with ward.client() as client:
            await fixes.mend(client, [repair for _, repair in planned])
        return planned, ward.api.get(ward.resource(role), "numalign-scheduler")["rules"]

    planned, rules = wards.played(told)
    assert extra in rules
    assert "+rules: " in planned[0][1].diff()


def test_an_object_that_changed_meanwhile_is_left_alone() -> None:
    async def told(ward: Ward) -> Any:
        await node_goes(ward)
        planned = fixes.planned(diagnosis.diagnose(await ward.observed()))
        ward.write({**REPORT, "metadata": {"name": "gone", "labels": {"a": "b"}}})
        async with ward.client() as client:
            (outcome,) = await fixes.mend(client, [repair for _, repair in planned])
        return outcome, ward.api.get(crd.RESOURCE, "gone")

    outcome, there = wards.played(told)
    assert not outcome.done
    assert "changed meanwhile" in outcome.says
    assert there


def test_the_report_of_a_node_that_came_back_is_left_alone() -> None:
    async def told(ward: Ward) -> Any:
        await node_goes(ward)
        planned = fixes.planned(diagnosis.diagnose(await ward.observed()))
        ward.create({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "gone"}})
        async with ward.client() as client:
            return await fixes.mend(client, [repair for _, repair in planned])

    (outcome,) = wards.played(told)
    assert outcome.says == "not done: Node gone exists again"


def test_a_repair_that_is_refused_says_why() -> None:
    async def told(ward: Ward) -> Any:
        await node_goes(ward)
        planned = fixes.planned(diagnosis.diagnose(await ward.observed()))
        ward.forbids(f"/apis/{wire.GROUP}/v1alpha2/noderesourcetopologies/gone")
        async with ward.client() as client:
            return await fixes.mend(client, [repair for _, repair in planned])

    (outcome,) = wards.played(told)
    assert not outcome.done
    assert "403 Forbidden" in outcome.says


# Hostile objects

KINDS: Final = (
    ("v1", "Node"),
    ("v1", "Pod"),
    ("topology.node.k8s.io/v1alpha2", "NodeResourceTopology"),
    ("apps/v1", "DaemonSet"),
    ("apps/v1", "Deployment"),
    ("coordination.k8s.io/v1", "Lease"),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
    ("v1", "ConfigMap"),
    ("rbac.authorization.k8s.io/v1", "ClusterRole"),
    ("rbac.authorization.k8s.io/v1", "ClusterRoleBinding"),
    ("rbac.authorization.k8s.io/v1", "Role"),
    ("rbac.authorization.k8s.io/v1", "RoleBinding"),
)


async def dumped(ward: Ward) -> dict[str, Any]:
    """Everything that the doctor looks at, as kubectl prints it."""
    listed = (ward.api.list(ward.resource({"apiVersion": version, "kind": kind})).items for version, kind in KINDS)
    heads = ({"apiVersion": version, "kind": kind} for version, kind in KINDS)
    items = [{**head, **each} for head, things in zip(heads, listed, strict=True) for each in things]
    return {"apiVersion": "v1", "kind": "List", "items": items}


def test_a_dump_is_judged_as_the_cluster_is() -> None:
    dump = wards.played(dumped)
    seen = files.read([(msgspec.json.encode(dump), "dump")])
    assert set(seen.unread) == {"version", "nodes/proxy"}
    assert ids(diagnosis.diagnose(seen)) == {"not-readable"}


def test_no_broken_object_breaks_the_judgement() -> None:
    dump = wards.played(dumped)
    judged = 0
    for broken in hostile.objects(dump, 150, seed=20, absurd=hostile.ABSURD):
        try:
            found = diagnosis.diagnose(files.read([(msgspec.json.encode(broken), "dump")]))
        except BadObject:
            continue
        judged += bool(found.judged)
    assert judged > 100
