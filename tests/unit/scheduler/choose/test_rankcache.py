"""Ranks that are kept from pod to pod say what the long way over all nodes says, down to the draw among equals."""

from __future__ import annotations

from importlib.util import find_spec
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.api.decode import decode
from numalign.api.nrt import normalise
from numalign.api.nrt.nodetopology import Amounts, NodeTopology, Zone
from numalign.api.nrt.topologymanager import TopologyManager
from numalign.api.nrt.wire import NodeResourceTopology
from numalign.api.objects.node import ContainerImage, Node, Taint
from numalign.api.objects.pod import Pod
from numalign.api.objects.workloads import Service
from numalign.placement.engine import Engine
from numalign.placement.rules.clusterstate import ClusterState
from numalign.scheduler import main
from numalign.scheduler.choose import choose
from numalign.scheduler.choose.choose import Attempt, Chosen
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.plugins import Plugins
from tests.conftest import require
from tests.unit.placement.rules import neighbourhoods, neighbours
from tests.unit.scheduler import servers

NODES = [f"n{number}" for number in range(5)]
GUARANTEED = [{"cpu": "4", "memory": "1Gi"}, {"cpu": "20", "memory": "4Gi"}, {"cpu": "3", servers.GPU: "2"}]


class Twin:
    """A cluster with reports from most of its nodes; `quickly`: pods may go by standings, `compiled`: with machine
    code."""

    def __init__(self, *, quickly: bool, compiled: bool = False) -> None:
        world = ClusterState()
        self.cluster, stock = Cluster(Engine(), world), Plugins(world)
        assert not compiled or self.cluster.engine.warm()
        for name, labels in neighbourhoods.NAMESPACES.items():
            stock.namespaces.put(name, labels)
        self.stock, self.profile = stock, stock.profile(main.defaults().profiles[0])
        self.choose = choose.choose if quickly else choose._among_all
        for name in NODES:
            self.cluster.node(node(name, "", False, f"r{NODES.index(name) % 3}", []))
            if name != NODES[-1]:
                self.cluster.report(servers.reported(name), 0.0)

    def place(self, pod: Pod, seed: int) -> tuple[str, int]:
        """Its node, on which it is assumed, and how many would have done."""
        attempt = Attempt(pod=pod, shape=self.cluster.engine.shape(pod), now=0.0)
        found = self.choose(attempt, self.profile, self.cluster, Random(seed))
        if not isinstance(found, Chosen):
            return "", 0
        return self.cluster.assume(pod, found.decision).spec.node_name, found.fitting

    def do(self, what: tuple[str, Any]) -> None:
        match what:
            case "node", node:
                self.cluster.node(node)
            case "node_gone", name:
                self.cluster.node_gone(name)
            case "report", name:
                self.cluster.report(servers.reported(name), 1.0)
            case "other report", (name, seed):
                self.cluster.report(unlike(name, Random(seed)), 1.0)
            case "service", labels:
                spec = {"metadata": {"name": "web", "namespace": "default"}, "spec": {"selector": labels}}
                self.stock.owners.put_service(decode.decode(Service, spec))
            case "forget", number:
                uids = list(self.cluster.assumed)
                if uids:
                    self.cluster.forget(uids[number % len(uids)])


def twins(*, compiled: bool) -> tuple[Twin, Twin]:
    """One that goes quickly, and one that goes the long way without machine code of its own."""
    return Twin(quickly=True, compiled=compiled), Twin(quickly=False)


def labels_of(name: str) -> dict[str, str]:
    number = NODES.index(name)
    return {neighbours.HOST: name, neighbours.ZONE: f"z{number % 2}"}


def node(name: str, taint: str, cordoned: bool, rack: str, images: list[str]) -> Node:
    taints = (Taint(key="a", effect=taint),) if taint else ()
    made = servers.node(name, cordoned=cordoned, taints=taints)
    meta = structs.replace(made.metadata, labels=labels_of(name) | {"rack": rack})
    listed = tuple(ContainerImage(names=(image,), size_bytes=900 << 20) for image in images)
    return structs.replace(made, metadata=meta, status=structs.replace(made.status, images=listed))


nodes = st.builds(
    node,
    st.sampled_from(NODES),
    st.sampled_from(["", "", "NoSchedule", "PreferNoSchedule"]),
    st.booleans(),
    st.sampled_from(["r0", "r1"]),
    st.lists(st.sampled_from(["app:latest", "other:1"]), max_size=1),
)
events = st.one_of(
    st.tuples(st.just("node"), nodes),
    st.tuples(st.just("node_gone"), st.sampled_from(NODES[:2])),
    st.tuples(st.just("report"), st.sampled_from(NODES)),
    st.tuples(st.just("service"), st.just({"app": "web"})),
    st.tuples(st.just("forget"), st.integers(0, 50)),
)


def kind(asked: dict[str, str], limits: bool, labels: dict[str, str], spec: dict[str, Any]) -> dict[str, Any]:
    resources = {"requests": asked} | ({"limits": asked} if limits else {})
    containers = [{"name": "main", "image": "app", "resources": resources}]
    return {"labels": labels, "spec": {"containers": containers, "schedulerName": "numalign"} | spec}


in_racks = {"key": "rack", "operator": "In", "values": ["r0"]}
specs = st.fixed_dictionaries(
    {},
    optional={
        "affinity": neighbourhoods.affinities,
        "topologySpreadConstraints": st.lists(neighbourhoods.constraints, max_size=1),
        "tolerations": st.just([{"key": "a", "operator": "Exists"}]),
        "nodeSelector": st.just({"rack": "r0"}),
    },
)
preferring = st.just(
    {
        "affinity": {
            "nodeAffinity": {
                neighbours.PREFERRED: [{"weight": 7, "preference": {"matchExpressions": [in_racks]}}],
            }
        }
    }
)
kinds = st.builds(kind, st.sampled_from(GUARANTEED), st.booleans(), neighbourhoods.pod_labels, specs | preferring)


def pod(number: int, made: dict[str, Any]) -> Pod:
    meta = {"name": f"p{number}", "uid": f"uid-{number}", "namespace": "default", "labels": made["labels"]}
    return decode.decode(Pod, {"metadata": meta, "spec": made["spec"]})


@pytest.fixture(params=[False, True], ids=["numpy", "compiled"], scope="module")
def compiled(request: pytest.FixtureRequest) -> bool:
    """Whether the quick one has machine code, which is made here, once: it may take a minute."""
    if request.param:
        require(find_spec("numba"), "numba, as `make install` brings it")
        assert Engine().warm()
    return bool(request.param)


@settings(max_examples=40)
@given(st.lists(kinds, min_size=1, max_size=3), st.lists(st.tuples(st.integers(0, 2), st.none() | events), max_size=25))
def test_pods_go_where_the_long_way_sends_them(
    compiled: bool, some: list[dict[str, Any]], steps: list[tuple[int, Any]]
) -> None:
    quick, slow = twins(compiled=compiled)
    for number, (which, event) in enumerate(steps):
        if event is not None:
            quick.do(event)
            slow.do(event)
        made = some[which % len(some)]
        assert quick.place(pod(number, made), number) == slow.place(pod(number, made), number)


SIZES = [
    {"cpu": str(1 + number % 4), "memory": f"{1 + number // 4}Gi"} | ({servers.GPU: "1"} if number % 3 == 0 else {})
    for number in range(11)
]
"""More than rows are looked at one by one."""


def unlike(name: str, rng: Random) -> NodeResourceTopology:
    """Plain, with any part of everything in use."""

    def drawn(most: int, unit: int) -> Amounts:
        return Amounts(most * unit, most * unit, rng.randint(0, most) * unit)

    zones = tuple(
        Zone(id=zone, resources={"cpu": drawn(30, 1000), "memory": drawn(64, 1 << 30), servers.GPU: drawn(4, 1)})
        for zone in range(2)
    )
    manager = TopologyManager(policy="single-numa-node", scope="container")
    return normalise.encode(NodeTopology(node=name, manager=manager, zones=zones))


@pytest.mark.parametrize("seed", range(3))
def test_so_do_pods_of_many_sizes_that_take_turns_on_nodes_that_are_all_unlike(compiled: bool, seed: int) -> None:
    both, rng = twins(compiled=compiled), Random(seed)
    for name in NODES:
        for twin in both:
            twin.do(("other report", (name, f"{seed} {name}")))
    for number in range(90):
        made = pod(number, kind(SIZES[number % len(SIZES)], True, {}, {}))
        happens: list[tuple[str, Any]] = [("other report", (rng.choice(NODES), number)), ("forget", number)]
        for event in rng.sample(happens, rng.randint(0, 1)):
            for twin in both:
                twin.do(event)
        quick, slow = (twin.place(made, number) for twin in both)
        assert quick == slow
