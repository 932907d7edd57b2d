"""A hundred pods of different shapes wait for room in a zone: what happens to nodes wakes only those that it may help,
from the watch to the attempt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from numalign.scheduler.main import Scheduler
from numalign.simulator import virtualtime
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.trees import Tree
from tests.embedded.barecluster import Bare

NODES = 5
SIZES = range(2, 9)
"""CPUs; a zone has 8 of them, of which 1 is free at first."""
WAITING = [(f"w-{number}", SIZES[number % len(SIZES)]) for number in range(100)]


def node(number: int, **labels: str) -> Tree:
    amounts = {"cpu": "16", "memory": "640Gi", "pods": "110"}
    status = {"capacity": amounts, "allocatable": amounts}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": f"n-{number}", "labels": labels},
        "status": status,
    }


def report(number: int, *free: int) -> Tree:
    settings = {"topologyManagerPolicy": "single-numa-node", "topologyManagerScope": "container"}
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": f"n-{number}"},
        "attributes": [{"name": name, "value": value} for name, value in settings.items()],
        "zones": [
            {
                "name": f"node-{zone}",
                "type": "Node",
                "resources": [{"name": "cpu", "capacity": "8", "allocatable": "8", "available": str(cpus)}],
            }
            for zone, cpus in enumerate(free)
        ],
    }


def pod(name: str, cpus: int, memory: int = 1, **spec: Any) -> Tree:
    """Each of another shape, by its memory."""
    amounts = {"cpu": str(cpus), "memory": f"{memory}Mi"}
    container = {"name": "main", "image": "a:1", "resources": {"requests": amounts, "limits": amounts}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"schedulerName": "numalign", "containers": [container], **spec},
    }


async def woken(happening: Callable[[Bare], object]) -> Counter[int]:
    """By size, how many of the pods were tried again, or are bound."""
    bare = Bare()
    for number in range(NODES):
        bare.create(node(number))
        bare.create(report(number, 6 if number == 3 else 1, 1))
    async with bare.scheduler({}) as scheduler:
        bare.create(pod("resident", 5))
        await bare.clock.sleep(2.0)
        assert bare.bound() == {"resident": "n-3"}
        for number, (name, cpus) in enumerate(WAITING):
            bare.create(pod(name, cpus, number + 1))
        await bare.clock.sleep(60.0)
        assert attempts(scheduler) == dict.fromkeys(dict(WAITING), 1)
        happening(bare)
        await bare.clock.sleep(60.0)
        again = attempts(scheduler)
    return Counter(cpus for name, cpus in WAITING if again.get(name) != 1)


def attempts(scheduler: Scheduler) -> dict[str, int]:
    """Of every pod that waits."""
    pools = scheduler.queue.pending().values()
    return {queued.pod.metadata.name: queued.attempts for pool in pools for queued in pool}


def all_up_to(cpus: int) -> Counter[int]:
    return Counter(size for _, size in WAITING if size <= cpus)


HAPPENINGS: dict[str, tuple[Callable[[Bare], object], Counter[int]]] = {
    "a report frees five CPUs of a zone": (lambda bare: bare.write(report(0, 5, 1)), all_up_to(5)),
    "a report frees too little for anybody": (lambda bare: bare.write(report(0, 1, 0)), Counter()),
    "a pod of five CPUs ends": (
        lambda bare: bare.set_status("default", "resident", phase="Succeeded"),
        all_up_to(6),
    ),
    "a report is deleted, and the last one stays in force": (
        lambda bare: bare.api.delete(bare.resource(report(0, 1, 1)), "n-0", ""),
        Counter(),
    ),
    "a node has another label": (lambda bare: bare.write(node(2, rack="b")), Counter()),
    "a node has another address": (
        lambda bare: bare.api.patch(
            bare.resource(node(2)),
            "n-2",
            "",
            Patch("merge", {"status": {"addresses": [{"type": "Hostname", "address": "x"}]}}),
            subresource="status",
        ),
        Counter(),
    ),
    "a pod of five CPUs is deleted": (
        lambda bare: bare.api.delete(PODS, "resident", "default", grace=0),
        all_up_to(6),
    ),
}


@pytest.mark.parametrize("happening, tried", HAPPENINGS.values(), ids=HAPPENINGS)
def test_only_pods_that_it_may_help_are_tried_again(happening: Callable[[Bare], object], tried: Counter[int]) -> None:
    assert virtualtime.run(woken(happening)) == tried


async def nodes_of(wish: Mapping[str, str], corrected: Mapping[str, str | None]) -> tuple[str, str]:
    """The node of a pod with these annotations, and of the same pod soon after they were changed."""
    bare = Bare()
    bare.create(node(0))
    bare.create(report(0, 8, 8))
    wishing = pod("wishing", 2)
    wishing["metadata"]["annotations"] = dict(wish)
    async with bare.scheduler({}):
        bare.create(wishing)
        await bare.clock.sleep(60.0)
        before = bare.bound()["wishing"]
        change = Patch("merge", {"metadata": {"annotations": dict(corrected)}})
        bare.api.patch(PODS, "wishing", "default", change)
        await bare.clock.sleep(5.0)
        return before, bare.bound()["wishing"]


@pytest.mark.parametrize(
    "wish, corrected",
    [
        ({"numalign.io/strictness": "allways"}, {"numalign.io/strictness": "require"}),
        ({"numalign.io/scope": "machine"}, {"numalign.io/scope": None}),
    ],
    ids=["a word that nobody knows", "an annotation that is removed"],
)
def test_a_pod_whose_annotations_are_corrected_is_tried_again(
    wish: Mapping[str, str], corrected: Mapping[str, str | None]
) -> None:
    assert virtualtime.run(nodes_of(wish, corrected)) == ("", "n-0")
