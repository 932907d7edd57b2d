"""The doctor on real kubelets and a real API server: nodes that are well, and nodes with one fault or another.

All tests share one lab, and what a test creates it removes. Times are moved, not waited for: an observation is judged
as if it were made later."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from typing import Any

import pytest
from msgspec import structs

from numalign.agent.publish import startuptaint
from numalign.api.nrt import publishers, wire
from numalign.api.objects.node import Node
from numalign.deploy import rights
from numalign.deploy.doctor import collect, diagnosis, fixes
from numalign.deploy.doctor.diagnosis import Diagnosis
from numalign.deploy.doctor.observed import Observed
from numalign.deploy.rights import Holder
from numalign.kube import clock as clocks
from numalign.kube import errors, resources
from numalign.kube.access import kubeconfig
from numalign.kube.client import Client
from numalign.kube.resources import TOPOLOGIES
from numalign.kubelet.machine import machinefile, presets
from numalign.lab import accounts, spec
from numalign.lab.accounts import AnyObject
from numalign.lab.spec import LabSpec, NodeSpec
from tests.embedded import wards
from tests.lab import reals
from tests.lab.labs import Labs
from tests.lab.live import Live, guaranteed

WELL, LOOSE, MUTE, LONE = "well", "loose", "mute", "lone"
HOME = wards.HOME
PAGED = [{"id": zone, "hugepages": {"2Mi": "1Gi"}} for zone in (0, 1)]
OFF: Mapping[str, Any] = {
    "topologyManagerPolicy": "none",
    "topologyManagerPolicyOptions": {"prefer-closest-numa-nodes": "true"},
    "cpuManagerPolicy": "none",
    "memoryManagerPolicy": "None",
    "reservedMemory": [],
}
TAINTED = {"registerWithTaints": [{"key": startuptaint.KEY, "effect": "NoSchedule"}]}


def nodes() -> tuple[NodeSpec, ...]:
    loose = machinefile.read({"name": "loose", "extends": "2x16", "zones": PAGED}, "loose")
    odd = {"devices": {"example.com/key": {"noTopology": 2}}}
    return (
        structs.replace(spec.node(WELL, presets.machine("2x16")), reporter="own"),
        structs.replace(spec.node(LOOSE, loose, more=OFF), reporter="own", devices=odd),
        structs.replace(spec.node(LONE, presets.machine("edge-1"), more=TAINTED), reporter="own"),
        spec.node(MUTE, presets.machine("2x16")),
    )


@pytest.fixture(scope="module")
def lab(labs: Labs) -> Live:
    live = labs.of(LabSpec(name=f"doctor-{os.getpid()}", nodes=nodes(), controllers=False))

    async def reported() -> bool:
        names = {each.metadata.name for each in await live.client.every(TOPOLOGIES.everywhere())}
        return names == {WELL, LOOSE, LONE}

    live.awaited(reported, "reports are missing")
    return live


def observed(live: Live, later: float = 300.0) -> Observed:
    """As if it were looked at so many seconds later."""
    seen = live.run(collect.observe(live.client))
    assert seen.now is not None
    return structs.replace(seen, now=seen.now + timedelta(seconds=later), here=None)


def only(name: str) -> Callable[[Node], bool]:
    return lambda node: node.metadata.name == name


def judged(live: Live, node: str = WELL, later: float = 300.0) -> Diagnosis:
    return diagnosis.diagnose(observed(live, later), selects=only(node))


def ids(found: Diagnosis) -> set[str]:
    return {each.check for each in found.findings}


def kind(tree: Mapping[str, Any]) -> resources.Resource[Any]:
    plural = f"{tree['kind'].lower()}s"
    return resources.of(tree["apiVersion"], plural, tree["kind"], AnyObject)


@contextlib.contextmanager
def there(live: Live, *trees: Mapping[str, Any]) -> Iterator[None]:
    targets = []
    try:
        for tree in trees:
            place = kind(tree).at(tree["metadata"]["name"], tree["metadata"].get("namespace", ""))
            live.run(live.client.create(kind(tree).within(place.namespace), dict(tree)))
            targets.append(place)
        yield
    finally:
        for place in reversed(targets):
            with contextlib.suppress(errors.NotFound):
                live.run(live.client.delete(place))


NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}}


@pytest.fixture(scope="module")
def home(lab: Live) -> Live:
    """With a namespace for programs. Without controllers it does not go again."""
    lab.run(lab.client.create(kind(NAMESPACE).everywhere(), dict(NAMESPACE)))
    return lab


def test_a_node_that_is_well_has_no_finding(lab: Live) -> None:
    found = judged(lab)
    assert found.findings == ()
    assert found.nodes == 1


def test_kubelets_that_align_nothing_are_found_in_the_reports_of_their_agents(lab: Live) -> None:
    assert ids(judged(lab, LOOSE)) == {
        "topology-policy-none",
        "topology-options-ignored",
        "cpu-manager-not-static",
        "memory-manager-off",
        "hugepages-unaligned",
        "devices-without-zone",
    }


def test_a_machine_of_one_zone_and_a_taint_that_nobody_removes(lab: Live) -> None:
    assert ids(judged(lab, LONE)) == {"node-single-zone", "startup-taint-left"}


def test_a_node_without_an_agent_has_no_report(lab: Live) -> None:
    assert ids(judged(lab, MUTE)) >= {"report-missing"}


def test_nodes_with_different_settings_are_told_apart(lab: Live) -> None:
    assert "topology-settings-differ" in ids(diagnosis.diagnose(observed(lab)))


def test_agents_that_fall_silent_are_noticed(lab: Live) -> None:
    assert "report-stale" not in ids(judged(lab, later=300))
    assert "report-stale" in ids(judged(lab, later=900))


def test_a_report_without_a_node_is_found_and_deleted(lab: Live) -> None:
    report = {"apiVersion": f"{wire.GROUP}/v1alpha2", "kind": wire.KIND, "metadata": {"name": "gone"}, "zones": []}
    lab.run(lab.client.create(TOPOLOGIES.everywhere(), report))
    found = judged(lab, later=400)
    assert "report-orphaned" in ids(found)
    planned = [repair for check, repair in fixes.planned(found) if check == "report-orphaned"]
    (outcome,) = lab.run(fixes.mend(lab.client, planned))
    assert outcome.says == "deleted"
    assert "report-orphaned" not in ids(judged(lab, later=400))


def test_a_pod_that_a_kubelet_rejects_is_found_and_deleted(lab: Live) -> None:
    lab.create(guaranteed("wide", 20, nodeName=WELL))
    assert lab.settled("wide").status.reason == "TopologyAffinityError"
    found = judged(lab)
    assert ids(found) == {"rejected-pods-left"}
    (outcome,) = lab.run(fixes.mend(lab.client, [repair for _, repair in fixes.planned(found)]))
    assert outcome.done, outcome
    lab.clear()
    assert ids(judged(lab)) == set()


def test_the_taint_is_removed_if_that_is_wanted(lab: Live) -> None:
    (repair,) = [each for check, each in fixes.planned(judged(lab, LONE)) if check == "startup-taint-left"]
    assert startuptaint.KEY in repair.diff()
    (outcome,) = lab.run(fixes.mend(lab.client, [repair]))
    assert outcome.done, outcome
    assert ids(judged(lab, LONE)) == {"node-single-zone"}


def test_a_clock_is_judged_by_two_times_of_one_write(lab: Live) -> None:
    lease = resources.LEASES.at(MUTE, "kube-node-lease")

    async def seen() -> Observed:
        now = lab.client.sender.clock.wall()
        behind = {"spec": {"holderIdentity": MUTE, "renewTime": clocks.microtime(now - timedelta(seconds=90))}}
        await lab.client.apply(lease, behind | {"metadata": {"name": MUTE}}, manager="kubelet", force=True)
        return await collect.observe(lab.client)

    (said,) = [each for each in diagnosis.diagnose(lab.run(seen())).findings if each.check == "clock-skew"]
    assert said.nodes == (MUTE,)
    assert "behind the API server's" in said.seen


def test_pods_that_wait_in_vain(lab: Live) -> None:
    container = guaranteed("paged", 1)["spec"]["containers"][0]
    amounts = {"cpu": "1", "memory": "1Gi", "hugepages-1Gi": "1Gi"}
    paged = [container | {"resources": {"requests": amounts, "limits": amounts}}]
    lab.create(guaranteed("lost", 1, schedulerName="numalgin"), guaranteed("paged", 1, containers=paged))
    try:
        assert {"scheduler-unserved", "hugepages-unreserved"} <= ids(judged(lab))
    finally:
        lab.clear()


def test_programs_that_cannot_work_are_found(home: Live) -> None:
    same = wards.config_map("same", leaderElection={"resourceName": "numalign"})
    none = wards.config_map("none", profiles=[{"schedulerName": "none"}], leaderElection={"leaderElect": False})
    bad = wards.config_map("bad", profiles=[{"schedulerName": 5}])
    schedulers = [wards.deployment("first"), wards.deployment("same", "same"), wards.deployment("bad", "bad")]
    several = wards.deployment("several", "none", replicas=2)
    rte = {"name": "rte", "image": "a:1", "command": ["/bin/resource-topology-exporter"]}
    agents = [wards.workload("DaemonSet", "rte", rte), _our_agent()]
    with there(home, same, none, bad, *schedulers, several, *agents):
        found = ids(judged(home))
    assert found >= {
        "scheduler-profile-collision",
        "scheduler-lease-collision",
        "scheduler-without-election",
        "scheduler-config-invalid",
        "scheduler-unavailable",
        "publishers-overlap",
        "agent-not-ready",
        "program-versions-differ",
        "rbac-short",
    }


def _our_agent(**spec: Any) -> dict[str, Any]:
    ours = {"name": "agent", "image": "numalign:0.0.1", "command": ["numalign", "agent", "run"]}
    made = wards.workload("DaemonSet", "numalign-agent", ours, account="numalign-agent")
    made["spec"]["template"]["spec"] |= spec
    return made


def test_agents_that_are_not_meant_for_a_node_or_kept_off_it(home: Live) -> None:
    with there(home, _our_agent(nodeSelector={"no": "such"})):
        assert "agent-not-on-node" in ids(judged(home))
    taint = {"spec": {"taints": [{"key": "dedicated", "effect": "NoSchedule"}]}}
    home.run(home.client.patch(resources.NODES.at(MUTE), "merge", taint))
    with there(home, _our_agent()):
        assert "agent-not-tolerating" in ids(judged(home, MUTE))
    home.run(home.client.patch(resources.NODES.at(MUTE), "merge", {"spec": {"taints": None}}))


def test_rights_of_ours_are_mended_as_the_api_server_wants_them(home: Live) -> None:
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "numalign-agent", "namespace": HOME}}
    with there(home, account, _our_agent()):
        found = judged(home)
        planned = [repair for check, repair in fixes.planned(found) if check == "rbac-short"]
        assert planned
        outcomes = home.run(fixes.mend(home.client, planned))
        assert all(each.done for each in outcomes), outcomes
        assert "rbac-short" not in ids(judged(home))


def test_a_lease_that_nobody_renews(home: Live) -> None:
    name = {"name": "numalign", "namespace": "kube-system"}
    holds = {"holderIdentity": "a", "leaseDurationSeconds": 15, "renewTime": "2026-01-01T00:00:00.000000Z"}
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": name, "spec": holds}
    with there(home, lease):
        assert "scheduler-leaderless" in ids(judged(home))


def test_a_report_that_somebody_else_writes_too(lab: Live) -> None:
    lab.node(LOOSE).parts["agent"].stop()
    lab.run(lab.client.patch(TOPOLOGIES.at(LOOSE), "merge", {"zones": []}))
    found = judged(lab, LOOSE)
    assert {"report-two-publishers", "report-without-zones"} <= ids(found)
    (said,) = [each for each in found.findings if each.check == "report-two-publishers"]
    assert publishers.AGENT in said.seen


def test_the_rights_of_the_table_are_enough_and_with_fewer_the_doctor_says_so(lab: Live) -> None:
    login = kubeconfig.access([str(lab.node(WELL).place.root / "agent.kubeconfig")])

    async def as_agent() -> Observed:
        async with Client(login) as client:
            return await collect.observe(client)

    before = diagnosis.diagnose(lab.run(as_agent()))
    assert ids(before) == {"not-readable"}
    table = [each for each in rights.DOCTOR if not each.option]
    role, binding, *rest = rights.roles(Holder("User", accounts.agent_user(WELL)), table)
    granted = [each | {"metadata": each["metadata"] | {"name": "doctor"}} for each in (role, binding, *rest)]
    for each in granted:
        if "roleRef" in each:
            each["roleRef"] = each["roleRef"] | {"name": "doctor"}
    with there(lab, *granted):
        unread = lab.run(as_agent()).unread
    assert set(unread) <= {"nodes/proxy"}


WRONG: Mapping[str, Any] = {
    "topologyManagerPolicy": "best-effort",
    "cpuManagerReconcilePeriod": "20s",
    "reservedSystemCPUs": "",
    "kubeReserved": {"cpu": "1", "memory": "924Mi"},
    "memoryManagerPolicy": "None",
    "reservedMemory": [{"numaNode": 0, "limits": {"memory": "5Gi"}}],
}
BARE: Mapping[str, Any] = {"memoryManagerPolicy": "None", "reservedMemory": []}


@pytest.mark.slow
def test_kubelets_without_an_agent_are_asked_through_the_api_server(labs: Labs) -> None:
    """Only in labs with real containers the API server has credentials for kubelets."""
    reals.need(labs)
    machine = presets.machine("2x16")
    wanted = (spec.node("wrong", machine, more=WRONG), spec.node("bare", machine, more=BARE))
    lab = LabSpec(name=f"asked-{os.getpid()}", nodes=wanted, runtime="containerd", controllers=False)
    with Live.up(lab) as live:
        wrong, bare = judged(live, "wrong"), judged(live, "bare")
    assert ids(wrong) - {"publisher-missing"} == {
        "report-missing",
        "topology-policy-best-effort",
        "cpu-reconcile-period",
        "reserved-cpus-unset",
        "memory-manager-off",
        "reserved-memory-wrong",
    }
    assert ids(bare) - {"publisher-missing"} == {"report-missing", "memory-manager-off", "reserved-memory-missing"}
