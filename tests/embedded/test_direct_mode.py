"""Direct mode on an embedded cluster: the scheduler decides, the simulated runtime applies and acknowledges.

The cases CS-1 to CS-12 are those of the Koordinator spec (20.5): two zones of eight CPUs, everything free unless stated
otherwise."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from functools import reduce
from operator import or_
from typing import Any

import pytest
from msgspec import Struct

from numalign.api.attributes import attributes, devicespec, directresult, directspec
from numalign.api.attributes.devicetable import DeviceTable
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.attributes.directresult import DirectResult
from numalign.api.decode import cpuset, decode
from numalign.api.objects.pod import Pod
from numalign.kubelet.settings import Settings
from numalign.placement.exact import ExactFlavour
from numalign.scheduler import placementannotation
from numalign.scheduler import settings as schedulers
from numalign.scheduler.main import Scheduler, Setup
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage.resources import CUSTOMRESOURCEDEFINITIONS, EVENTS, PODS
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.publisher.crd import RESOURCE
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests.embedded import definitions
from tests.unit.kubelet import made
from tests.unit.placement.direct import devices

VERSION = "kubescheduler.config.k8s.io/v1"
MACHINE = made.machine(zones=2, cores=8, memory="64Gi", devices={"example.com/gpu": [0, 0, 1, 1]})
SINGLE, BOTH = "SingleNUMANode", (0, 1)
KOORDINATOR = {"koordinatorAnnotations": True}


def container(name: str, cpu: int | str, **more: Any) -> Tree:
    amounts = {"cpu": str(cpu), "memory": "1Gi", **more}
    return {"name": name, "image": "a", "resources": {"requests": amounts, "limits": amounts}}


def pod(name: str, *cpus: int | str, spec: Any = None, init: Any = (), cpu_spec: Any = None, **more: Any) -> Tree:
    said = {directspec.TOPOLOGY_SPEC: spec, directspec.CPU_SPEC: cpu_spec}
    annotations = {key: value if isinstance(value, str) else json.dumps(value) for key, value in said.items() if value}
    containers = [container(f"c{place}", cpu, **more) for place, cpu in enumerate(cpus)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "annotations": annotations},
        "spec": {"schedulerName": "numalign", "initContainers": list(init), "containers": containers},
    }


class Site:
    """A cluster with our scheduler, in virtual time."""

    def __init__(self, embedded: Cluster, stack: AsyncExitStack) -> None:
        self.embedded, self._stack, self._scheduler = embedded, stack, AsyncExitStack()
        self.scheduler: Scheduler | None = None

    async def begin(self, **args: Any) -> None:
        """The scheduler starts anew."""
        await self._scheduler.aclose()
        plugin = [{"name": "Numalign", "args": args}] if args else []
        written = {"apiVersion": VERSION, "kind": "KubeSchedulerConfiguration", "profiles": [{"pluginConfig": plugin}]}
        setup = Setup(config=schedulers.read(written, "test"), rng=random.Random(1))
        self._scheduler = AsyncExitStack()
        self.scheduler = await self._scheduler.enter_async_context(self.embedded.scheduled_by(setup))
        await self.wait(3)

    async def end(self) -> None:
        await self._scheduler.aclose()

    async def wait(self, seconds: float = 8.0) -> None:
        await self.embedded.clock.sleep(seconds)

    async def create(self, *trees: Tree) -> None:
        for tree in trees:
            self.embedded.api.create(PODS, tree, manager="test")
        await self.wait()

    def pod(self, name: str) -> Tree:
        return next(each for each in self.embedded.api.list(PODS).items if each["metadata"]["name"] == name)

    def result(self, name: str = "p") -> DirectResult | None:
        return directresult.of_pod(decode.decode(Pod, self.pod(name)))

    def zones(self, name: str = "p") -> list[tuple[int, ...]] | None:
        """By container; None: the pod has no node."""
        found = self.result(name)
        return [each.zones for each in found.containers] if found is not None else None

    def applied(self, name: str = "p", node: str = "n") -> dict[str, AppliedContainer]:
        """By container of the pod, what the node's report acknowledges."""
        uid = self.pod(name)["metadata"]["uid"]
        listed = self.embedded.api.get(RESOURCE, node)["attributes"]
        texts = {each["name"]: each["value"] for each in listed}
        found = attributes.decode(node, "numalign.io/applied", texts["numalign.io/applied"])
        return {each.container: each for each in found if each.uid == uid}

    def charged(self, node: str = "n") -> int:
        """The CPUs that the scheduler counts as containers' own."""
        assert self.scheduler is not None
        engine = self.scheduler.cluster.engine
        assert isinstance(engine.flavour, ExactFlavour)
        return reduce(or_, (held.cpus for held in engine.flavour.direct.ledger.pods(node).values()), 0)

    def says(self, name: str = "p") -> str:
        """The last refusal of the pod."""
        conditions = self.pod(name)["status"].get("conditions") or ()
        return next((str(each["message"]) for each in conditions if each.get("reason") == "Unschedulable"), "")

    def events(self, name: str = "p") -> list[str]:
        found = self.embedded.api.list(EVENTS).items
        about = [each for each in found if (each.get("regarding") or each["involvedObject"])["name"] == name]
        return [str(each.get("note") or each.get("message")) for each in about]

    def phase(self, name: str = "p") -> str:
        return str(self.pod(name)["status"].get("phase"))


def node(
    name: str = "n",
    *,
    direct: bool = True,
    labels: Mapping[str, str] | None = None,
    shared: DeviceTable | None = None,
    **kubelet: Any,
) -> NodeSpec:
    settings = made.settings(**kubelet) if kubelet else Settings()
    return NodeSpec(
        name=name, machine=MACHINE, settings=settings, labels=labels or {}, direct=direct, shared_devices=shared
    )


def on(
    *nodes: NodeSpec, story: Callable[[Site], Coroutine[Any, Any, None]], args: Mapping[str, Any] | None = None
) -> None:
    """Runs a story on a cluster of these nodes."""

    async def played() -> None:
        chances = random.Random(1)
        async with (
            cluster.running(
                nodes or (node(),), virtualtime.clock(chances), chances, default_scheduler=False
            ) as embedded,
            AsyncExitStack() as stack,
        ):
            site = Site(embedded, stack)
            await site.begin(**(args or {}))
            try:
                await story(site)
            finally:
                await site.end()

    virtualtime.run(played())


class Case(Struct, frozen=True):
    cpus: tuple[int | str, ...]
    pod: list[tuple[int, ...]] | None
    """Zones by container under scope Pod; None: refused."""
    container: list[tuple[int, ...]] | None
    init: tuple[Tree, ...] = ()
    policy: str = SINGLE
    strategy: str = "MostAllocated"
    resident: int = 0
    """CPUs in use in zone 0."""
    charge: int = 0
    """CPUs that the pod keeps from others under scope Container; 0: the sum of its containers."""
    exclude: tuple[str, ...] = ()


SIDECAR = {**container("s", 2), "restartPolicy": "Always"}
CASES = {
    "CS-1": Case((6, 6), None, [(0,), (1,)]),
    "CS-2": Case((4, 4), [(0,), (0,)], [(0,), (0,)]),
    "CS-3": Case((4, 4), [(0,), (0,)], [(0,), (1,)], strategy="LeastAllocated"),
    "CS-4": Case((5, 3, 8), None, [(0,), (0,), (1,)]),
    "CS-5": Case((5, 3, 8), None, [(0,), (0,), (1,)], strategy="LeastAllocated"),
    "CS-6": Case((6,), [(0,), (0,)], [(0,), (0,)], init=(container("i", 8),), charge=8),
    "CS-7": Case((8,), [(1,), (1,)], [(1,), (1,)], init=(container("i", 4),), resident=2, charge=8),
    "CS-8": Case((8,), None, [(0,), (1,)], init=(SIDECAR,)),
    "CS-9": Case((8, "500m"), [(0,), ()], [(0,), ()], exclude=("c1",), charge=8),
    "CS-10": Case((10, 4), [BOTH, BOTH], [BOTH, (1,)], policy="Restricted"),
}


@pytest.mark.parametrize("scope", ["Pod", "Container"])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_case_gets_its_zones_and_the_runtime_applies_them(case: Case, scope: str) -> None:
    expected = case.pod if scope == "Pod" else case.container
    spec: Tree = {"policy": case.policy, "scope": scope, "strategy": case.strategy, "memory": "Enforce"}
    if case.exclude:
        spec["containers"] = {"exclude": list(case.exclude)}

    async def story(site: Site) -> None:
        if case.resident:
            await site.create(pod("resident", case.resident, spec={"policy": SINGLE}))
            assert site.zones("resident") == [(0,)]
        await site.create(pod("p", *case.cpus, spec=spec, init=case.init))
        assert site.zones() == expected
        if expected is None:
            assert "needs" in site.says()
            assert "NUMA zone" in site.says()
            return
        result = site.result()
        assert result is not None
        if case.charge:
            assert result.cpus.bit_count() == case.charge
        assert any("decided in direct mode: " in event for event in site.events())
        # A scheduler that starts anew charges the same.
        held = site.charged()
        await site.begin()
        assert site.charged() == held
        assert held & result.cpus == result.cpus
        await site.wait(70)
        assert site.phase() == "Running"
        names = [f"c{place}" for place in range(len(case.cpus))]
        told = {each.name: each for each in result.containers}
        for name in names:
            if told[name].cpuset:
                assert cpuset.text(site.applied()[name].cpus) == told[name].cpuset
            if told[name].mems:
                assert cpuset.text(site.applied()[name].mems) == told[name].mems

    on(story=story)


def test_cs_9_the_excluded_container_runs_on_what_is_not_pinned() -> None:
    async def story(site: Site) -> None:
        spec = {"policy": SINGLE, "containers": {"exclude": ["c1"]}}
        await site.create(pod("p", 8, "500m", spec=spec))
        await site.wait(70)
        assert cpuset.text(site.applied()["c1"].cpus) == "8-15"

    on(story=story)


@pytest.mark.parametrize("scope", ["pod", "container"])
def test_cs_11_a_kubelet_in_scope_pod_keeps_scope_container_under_single_numa_node(scope: str) -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 3, 3, spec={"policy": SINGLE, "scope": "Container"}))
        assert site.phase() in ("Running", "Pending")
        assert site.result() is None
        assert site.pod("p")["spec"]["nodeName"] == "n"

    on(node(direct=False, policy="single-numa-node", scope=scope), story=story)


def test_cs_12_a_kubelet_in_scope_container_does_not_keep_scope_pod() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 3, 3, spec={"policy": SINGLE, "scope": "Pod"}))
        assert not site.pod("p")["spec"].get("nodeName")
        assert "the node has scope container with policy single-numa-node" in site.says()

    on(node(direct=False, policy="single-numa-node", scope="container"), story=story)


def test_in_a_mixed_cluster_a_pod_that_needs_direct_mode_goes_to_the_node_that_has_it() -> None:
    async def story(site: Site) -> None:
        needs = {"policy": SINGLE, "memory": "Enforce"}
        await site.create(*[pod(f"p{number}", 8, spec=needs) for number in range(3)])
        placed = {name: site.pod(name)["spec"].get("nodeName") for name in ("p0", "p1", "p2")}
        assert sorted(filter(None, placed.values())) == ["direct", "direct"]
        (waiting,) = (name for name, where in placed.items() if not where)
        assert "which needs a node in direct mode" in site.says(waiting)

    predicting = node("kubelet", direct=False, policy="single-numa-node")
    on(node("direct"), predicting, story=story)


def test_devices_come_from_the_zone_of_the_container_by_minor() -> None:
    async def story(site: Site) -> None:
        more = {"example.com/gpu": "2"}
        await site.create(pod("p", 6, 6, spec={"policy": SINGLE, "scope": "Container"}, **more))
        result = site.result()
        assert result is not None
        held = [[each.minor for each in one.devices["example.com/gpu"]] for one in result.containers]
        assert held == [[0, 1], [2, 3]]

    on(story=story)


def test_a_gpu_and_a_nic_on_one_root_are_decided_together_and_known_to_a_scheduler_that_starts_anew() -> None:
    gpu, nic = {"koordinator.sh/gpu": "100"}, {"koordinator.sh/rdma": "100"}
    half = {"koordinator.sh/gpu-core": "50", "koordinator.sh/gpu-memory-ratio": "50"}

    async def story(site: Site) -> None:
        joint = pod("joint", 2, spec={"policy": SINGLE}, **gpu, **nic)
        joint["metadata"]["annotations"][devicespec.DEVICE_SPEC] = devices.SAME_PCIE
        await site.create(pod("half", 2, spec={"policy": SINGLE}, **half), joint)
        await site.begin()
        await site.create(pod("other", 2, spec={"policy": SINGLE}, **half))
        held = {}
        for name in ("half", "joint", "other"):
            result = site.result(name)
            assert result is not None, site.says(name)
            held[name] = {kind: [each.minor for each in grants] for kind, grants in result.devices.items()}
        assert held["half"] == held["other"] == {"gpu": [0]}
        assert held["joint"] == {"gpu": [1], "rdma": [0]}
        assert any("c0 on CPUs 2-3 of NUMA 0 with gpu 1 and rdma 0" in event for event in site.events("joint"))
        written = json.loads(site.pod("joint")["metadata"]["annotations"]["scheduling.koordinator.sh/device-allocated"])
        assert written["gpu"][0]["id"] == "GPU-1"
        assert site.phase("joint") in ("Running", "Pending")

    on(node(shared=devices.table()), story=story, args=KOORDINATOR)


def device(number: int, **more: Any) -> Tree:
    """An entry of a Device object; devices 0 and 1 are in zone 0, others in zone 1."""
    amounts = {"koordinator.sh/gpu-core": "100", "koordinator.sh/gpu-memory-ratio": "100"}
    place = {"nodeID": number // 2, "pcieID": f"pci{number // 2}"}
    usual = {"type": "gpu", "minor": number, "id": f"GPU-{number}", "health": True, "resources": amounts}
    return {**usual, "topology": place, **more}


def about(*devices: Tree) -> Tree:
    return {"apiVersion": "scheduling.koordinator.sh/v1alpha1", "kind": "Device", "metadata": {"name": "n"}} | {
        "spec": {"devices": list(devices)}
    }


def test_koordinators_device_object_says_which_devices_there_are() -> None:
    # What the agent reports is only what the Node offers here.
    offered = DeviceTable(devices=tuple(devices.gpu(number, 0, "x") for number in range(4)))

    def minors(site: Site, name: str) -> list[int]:
        found = site.result(name)
        assert found is not None, site.says(name)
        return [each.minor for each in found.devices["gpu"]]

    async def story(site: Site) -> None:
        api = site.embedded.api
        api.create(CUSTOMRESOURCEDEFINITIONS, definitions.KOORDINATOR_DEVICES)
        resource = api.state.registry.of_kind("scheduling.koordinator.sh", "v1alpha1", "Device")
        assert resource is not None
        api.create(resource, about(device(0, health=False), device(1), device(2), device(3)))
        await site.begin(**KOORDINATOR)
        whole = {"koordinator.sh/gpu": "100"}
        await site.create(pod("first", 1, spec={"policy": SINGLE}, **whole))
        await site.create(pod("both", 1, spec={"policy": SINGLE}, **{"koordinator.sh/gpu": "200"}))
        assert (minors(site, "first"), minors(site, "both")) == ([1], [2, 3])
        await site.create(pod("late", 1, spec={"policy": SINGLE}, **whole))
        assert site.result("late") is None
        # The device is well again, and the pod that waits gets it.
        api.patch(resource, "n", "", Patch("merge", about(*map(device, range(4)))))
        await site.wait(20)
        assert minors(site, "late") == [0]
        # A scheduler that starts anew reads the same.
        await site.begin(**KOORDINATOR)
        await site.create(pod("more", 1, spec={"policy": SINGLE}, **whole))
        assert site.result("more") is None

    on(node(shared=offered), story=story, args=KOORDINATOR)


def test_a_wrong_device_request_is_named_in_the_event() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 2, spec={"policy": SINGLE}, **{"koordinator.sh/gpu": "150"}))
        wanted = "spec.containers[0].resources.limits[koordinator.sh/gpu]: 150 is neither at most 100 nor a multiple"
        assert wanted in site.says()

    on(node(shared=devices.table()), story=story)


def test_a_scheduler_that_starts_anew_knows_what_is_in_use() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("first", 5, spec={"policy": SINGLE}), pod("second", 5, spec={"policy": SINGLE}))
        await site.begin()
        await site.create(pod("third", 2, spec={"policy": SINGLE}), pod("fourth", 4, spec={"policy": SINGLE}))
        results = [site.result(name) for name in ("first", "second", "third")]
        held = [found.cpuset for found in results if found is not None]
        assert held == ["0-4", "8-12", "5-6"]
        assert site.result("fourth") is None
        assert "needs 4 CPUs in one NUMA zone, best zone has 3" in site.says("fourth")

    on(story=story)


def test_a_pod_that_ends_makes_room_for_one_that_waits() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("first", 8, spec={"policy": SINGLE}), pod("second", 8, spec={"policy": SINGLE}))
        await site.create(pod("third", 8, spec={"policy": SINGLE}))
        assert site.result("third") is None
        site.embedded.api.delete(PODS, "first", "default", grace=1)
        await site.wait(30)
        assert site.zones("third") == [(0,)]

    on(story=story)


def test_a_wrong_annotation_is_named_in_the_event() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 4, spec={"policy": "Single"}))
        wanted = (
            'metadata.annotations[numalign.io/numa-topology-spec].policy: "Single" is not one of None, BestEffort, '
            "Restricted, SingleNUMANode"
        )
        assert wanted in site.says()
        assert any(wanted in event for event in site.events())

    on(story=story)


def test_koordinators_annotations_count_and_its_agent_gets_the_result_where_the_switch_is_on() -> None:
    tree = pod("p", 4)
    tree["metadata"]["annotations"] = {
        directspec.KOORDINATOR_TOPOLOGY_SPEC: '{"numaTopologyPolicy": "SingleNUMANode"}',
        directspec.KOORDINATOR_RESOURCE_SPEC: '{"preferredCPUBindPolicy": "FullPCPUs"}',
    }

    async def story(site: Site) -> None:
        await site.create(tree)
        written = json.loads(site.pod("p")["metadata"]["annotations"][directresult.KOORDINATOR_RESULT])
        assert written["cpuset"] == "0-3"
        assert written["numaNodeResources"][0]["node"] == 0

    async def without(site: Site) -> None:
        await site.create(tree)
        found = site.result()
        assert found is not None
        assert [each.cpuset for each in found.containers] == [""]
        assert directresult.KOORDINATOR_RESULT not in site.pod("p")["metadata"]["annotations"]

    on(story=story, args={"koordinatorAnnotations": True})
    on(story=without)


def test_labels_of_the_node_are_defaults_for_pods_without_annotations() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 6, 6))
        assert site.zones() == [(0,), (1,)]

    on(node(labels={"numalign.io/numa-topology-policy": "SingleNUMANode"}), story=story)


def test_a_pod_with_a_decision_waits_for_the_agent_where_the_runtime_has_a_validator() -> None:
    async def story(site: Site) -> None:
        own = pod("own", 1)
        own["metadata"]["annotations"] = {placementannotation.WAITS: '["another"]'}
        await site.create(own)
        await site.create(pod("p", 1))
        found = [site.pod(name)["metadata"]["annotations"][placementannotation.WAITS] for name in ("own", "p")]
        assert found == ['["another"]', '["numalign"]']

    on(story=story)


def test_a_decision_is_written_once_and_an_edit_changes_nothing() -> None:
    async def story(site: Site) -> None:
        await site.create(pod("p", 4, spec={"policy": SINGLE}))
        forged = {"metadata": {"annotations": {directresult.RESULT: "{}"}}}
        site.embedded.api.patch(PODS, "p", "default", Patch("merge", forged))
        await site.create(pod("q", 4, spec={"policy": SINGLE}))
        found = site.result("q")
        assert found is not None
        assert found.cpuset == "4-7"

    on(story=story)
