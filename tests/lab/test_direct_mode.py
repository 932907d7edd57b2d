"""Direct mode with real kubelets and containerd: the scheduler decides, the agent enforces, processes have the CPUs.

CS-1, 4, 6, 7, 8 and 9 of the Koordinator spec (20.5), on a simulated machine of two zones with eight CPUs. There runc
is asked for the CPUs; on a node that shows the machine's own CPUs, processes read theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from numalign.agent.sources import sysfs
from numalign.api.attributes import directresult
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import DirectResult
from numalign.api.decode import cpuset
from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.kube import errors
from numalign.kube.resources import NODES, PODS, TOPOLOGIES
from numalign.kubelet.machine.machine import Machine
from numalign.lab import spec as specs
from numalign.lab import up
from numalign.lab.node import LabNode
from numalign.lab.spec import LabSpec, NodeSpec
from tests.lab import reals
from tests.lab.labs import Labs
from tests.lab.live import NAMESPACE, Live
from tests.unit.kubelet import made

SINGLE = {"policy": "SingleNUMANode", "scope": "Container", "memory": "Enforce"}
BUNDLES = "run/containerd/io.containerd.runtime.v2.task/k8s.io"


def direct(name: str, machine: Machine, *, real: bool = False) -> NodeSpec:
    return specs.node(name, machine, kubelet=specs.UNMANAGED, real=real, direct=True)


@pytest.fixture(scope="module")
def lab(labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    reals.need(labs, 2)
    node = direct("node-0", made.machine(zones=2, cores=8, memory="8Gi"))
    wanted = LabSpec(name="direct", nodes=(node,), runtime="containerd", agent=True, scheduler=True)
    with Live.up(wanted) as live:
        reals.load(live, reals.probe_archive(tmp_path_factory.mktemp("probe")))
        in_direct_mode(live, "node-0")
        yield live


@pytest.fixture
def clean(lab: Live) -> Iterator[Live]:
    yield lab
    lab.clear()


def container(name: str, cpu: int | str, **more: Any) -> dict[str, Any]:
    amounts = {"cpu": str(cpu), "memory": "32Mi"}
    return {
        "name": name,
        "image": reals.PROBE,
        "args": ["wait"],
        "resources": {"requests": amounts, "limits": amounts},
        **more,
    }


def pod(name: str, *containers: dict[str, Any], node: str = "node-0", **spec: Any) -> dict[str, Any]:
    asked = SINGLE | spec.pop("asked", {})
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"numalign.io/numa-topology-spec": json.dumps(asked)}},
        "spec": {
            "schedulerName": "numalign",
            "nodeSelector": {"kubernetes.io/hostname": node},
            "containers": list(containers),
            "terminationGracePeriodSeconds": 0,
            **spec,
        },
    }


def in_direct_mode(live: Live, node: str) -> None:
    async def advertised() -> bool:
        try:
            found = await live.client.get(TOPOLOGIES.at(node))
        except errors.NotFound:
            return False
        return normalise.normalise(found).facts.mode is not None

    live.awaited(advertised, f"node {node} is not in direct mode")


def running(live: Live, name: str) -> Pod:
    found = live.settled(name)
    assert found.status.phase == "Running", found.status

    async def ready() -> Pod | None:
        seen = await live.client.get(PODS.at(name, NAMESPACE))
        return seen if all(each.started for each in seen.status.container_statuses) else None

    return live.awaited(ready, f"pod {name} does not run")


def decided(live: Live, name: str) -> DirectResult:
    found = directresult.of_pod(live.pod(name))
    assert found is not None
    return found


def ids(live: Live, name: str) -> dict[str, str]:
    """Ids of a pod's containers by name, as kubectl shows them."""
    listed = json.loads(reals.kubectl(live, "get", "pod", name, "-o", "json"))["status"]
    every = (*listed.get("containerStatuses", ()), *listed.get("initContainerStatuses", ()))
    return {each["name"]: each["containerID"].partition("://")[2] for each in every if "containerID" in each}


def asked(live: Live, node: LabNode, name: str) -> dict[str, tuple[str, str]]:
    """CPUs and memory zones that runc was asked for, by container that runs."""
    assert node.home is not None
    found = {}
    for each, identity in ids(live, name).items():
        file = Path("/proc", str(node.home.pid), "root", BUNDLES, identity, "config.json.asked")
        if file.exists():
            cpu = json.loads(file.read_text())["linux"]["resources"]["cpu"]
            found[each] = cpu.get("cpus", ""), cpu.get("mems", "")
    return found


def acknowledged(live: Live, node: str, name: str, count: int) -> dict[str, AppliedContainer]:
    """Once the report has this many containers of the pod."""
    uid = live.pod(name).metadata.uid

    async def found() -> dict[str, AppliedContainer] | None:
        report = normalise.normalise(await live.client.get(TOPOLOGIES.at(node)))
        seen = {each.container: each for each in report.facts.applied or () if each.uid == uid}
        return seen if len(seen) == count else None

    return live.awaited(found, f"not all containers of {name} are acknowledged")


SIDECAR = {"restartPolicy": "Always"}
CASES = [
    pytest.param("cs-1", [container("a", 6), container("b", 6)], {}, [(0,), (1,)], id="CS-1"),
    pytest.param("cs-4", [container("a", 5), container("b", 3), container("c", 8)], {}, [(0,), (0,), (1,)], id="CS-4"),
    pytest.param(
        "cs-8",
        [container("app", 8)],
        {"initContainers": [container("side", 2, **SIDECAR)]},
        [(0,), (1,)],
        id="CS-8",
    ),
    pytest.param(
        "cs-9",
        [container("app", 8), container("proxy", "500m")],
        {"asked": {"containers": {"exclude": ["proxy"]}}},
        [(0,), ()],
        id="CS-9",
    ),
]


@pytest.mark.parametrize("name, containers, more, zones", CASES)
def test_runc_is_asked_for_the_cpus_and_zones_of_every_container(
    clean: Live, name: str, containers: list[dict[str, Any]], more: dict[str, Any], zones: list[tuple[int, ...]]
) -> None:
    clean.create(pod(name, *containers, **more))
    running(clean, name)
    result = decided(clean, name)
    assert [each.zones for each in result.containers] == zones
    seen, found = asked(clean, clean.node("node-0"), name), acknowledged(clean, "node-0", name, len(zones))
    shared = cpuset.text(0xFFFF & ~result.cpus) or "0-15"
    for each in result.containers:
        assert seen[each.name] == (each.cpuset or shared, each.mems)
        assert found[each.name].failure == ""
        assert cpuset.text(found[each.name].cpus) == (each.cpuset or shared)


def test_an_app_container_gets_the_cpus_of_its_init_container(clean: Live) -> None:
    """CS-6."""
    clean.create(pod("cs-6", container("app", 6), initContainers=[container("init", 8, args=["cat", "/proc/stat"])]))
    running(clean, "cs-6")
    init, app = decided(clean, "cs-6").containers
    assert (init.cpus.bit_count(), app.cpus.bit_count(), app.zones) == (8, 6, init.zones)
    assert not app.cpus & ~init.cpus
    assert asked(clean, clean.node("node-0"), "cs-6") == {"app": (app.cpuset, app.mems)}


def test_an_init_container_does_not_keep_its_app_container_out_of_a_zone(clean: Live) -> None:
    """CS-7: one zone has six CPUs free."""
    clean.create(pod("filler", container("main", 2)))
    running(clean, "filler")
    ((filled,),) = [each.zones for each in decided(clean, "filler").containers]
    init = [container("init", 4, args=["cat", "/proc/stat"])]
    clean.create(pod("cs-7", container("app", 8), initContainers=init))
    running(clean, "cs-7")
    other = 1 - filled
    assert [each.zones for each in decided(clean, "cs-7").containers] == [(other,), (other,)]
    cpus = ("0-7", "8-15")[other]
    assert asked(clean, clean.node("node-0"), "cs-7") == {"app": (cpus, str(other))}


def test_containers_wait_while_the_agent_is_away_and_start_when_it_returns(clean: Live) -> None:
    """The lab's containerd has the validator on."""
    node = clean.node("node-0")
    node.parts["agent"].stop()
    try:
        clean.create(pod("waiting", container("main", 4)))

        async def refused() -> bool:
            (seen,) = (await clean.client.get(PODS.at("waiting", NAMESPACE))).status.container_statuses or (None,)
            events = reals.tried_kubectl(clean, "get", "events", "-o", "json").stdout
            return seen is not None and 'required plugin \\"numalign\\" not present' in events

        clean.awaited(refused, "the container does not wait")
    finally:
        node.parts["agent"].start()
    running(clean, "waiting")
    (own,) = decided(clean, "waiting").containers
    assert asked(clean, node, "waiting") == {"main": (own.cpuset, own.mems)}


def test_nothing_changes_for_containers_when_agent_containerd_and_kubelet_restart(clean: Live) -> None:
    clean.create(pod("lasting", container("a", 6), container("b", 6)))
    began = running(clean, "lasting")
    node = clean.node("node-0")
    for name in ("containerd", "agent", "kubelet"):
        node.parts[name].restart()
    in_direct_mode(clean, "node-0")
    found = acknowledged(clean, "node-0", "lasting", 2)
    wanted = {each.name: each.cpuset for each in decided(clean, "lasting").containers}
    assert {each: cpuset.text(one.cpus) for each, one in found.items()} == wanted
    after = clean.pod("lasting").status.container_statuses
    assert [each.restart_count for each in after] == [each.restart_count for each in began.status.container_statuses]


def test_the_process_of_a_container_runs_on_the_cpus_of_the_decision(clean: Live) -> None:
    machine = sysfs.survey(Path("/"), "host").machine
    reals.add_node(clean, direct("own", machine, real=True))

    async def ready() -> bool:
        try:
            return up.is_ready(await clean.client.get(NODES.at("own")))
        except errors.NotFound:
            return False

    clean.awaited(ready, "the added node is not Ready")
    in_direct_mode(clean, "own")
    clean.create(pod("real", container("main", 1), node="own"))
    running(clean, "real")
    (own,) = decided(clean, "real").containers
    status = reals.kubectl(clean, "exec", "real", "--", "/probe", "cat", "/proc/self/status")
    allowed = next(line.split()[1] for line in status.splitlines() if line.startswith("Cpus_allowed_list:"))
    assert allowed == own.cpuset
    found = acknowledged(clean, "own", "real", 1)["main"]
    assert (cpuset.text(found.cpus), found.failure) == (own.cpuset, "")
    clean.clear()
    reals.remove_node(clean, "own")
