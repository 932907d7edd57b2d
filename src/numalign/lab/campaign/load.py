"""Generates the pods of a campaign: requests for every manager of the kubelet, in sizes that a node can take. Pure.

`script` asks for one pod at a time. Every pod fits on at least one empty node according to the model, so that none
waits for ever. An annotation tells the lab's runtime, which runs nothing, how long containers take."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from numalign.api.decode import decode
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.machine import Machine
from numalign.lab.campaign.fleet import GPU, NIC, PAGES
from numalign.lab.spec import NodeSpec
from numalign.scheduler import profiles

SECONDS: Final = "numalign.io/lab-seconds"
"""Annotation: how long the runtime lets each container take. Without it, until the pod is deleted."""
PINNED: Final = 0.25
"""The share of pods that are bound to one node by a selector."""
TRIES: Final = 100

Body = dict[str, Any]
Amounts = dict[str, str]


def pod(name: str, nodes: Sequence[NodeSpec], chances: random.Random) -> Body:
    """A pod that fits on one of the empty nodes."""
    for _ in range(TRIES):
        home = chances.choice(nodes)
        body = _drawn(name, home, chances)
        if fits(home, body):
            return body
    raise AssertionError("no pod fits on these nodes")


def fits(node: NodeSpec, body: Body) -> bool:
    kubelet = node.modelled
    _, outcome = admission.admit(kubelet, kubelet.initial(), decode.decode(Pod, body))
    return outcome.admitted


def _drawn(name: str, home: NodeSpec, chances: random.Random) -> Body:
    spec: Body = {
        "schedulerName": profiles.NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": chances.choice((0, 1, 30)),
        "containers": [_container("main", chances.choice(SORTS)(home.machine, chances))],
    }
    lasts: dict[str, float] = {}
    if chances.random() < 0.25:
        spec["containers"].append(_container("beside", chances.choice(SORTS)(home.machine, chances)))
    if chances.random() < 0.25:
        spec["initContainers"] = list(_before(home.machine, chances))
        lasts |= {each["name"]: chances.uniform(0.5, 4.0) for each in spec["initContainers"]}
    if chances.random() < 0.2:
        spec["initContainers"] = [*spec.get("initContainers", ()), _sidecar(home.machine, chances)]
    if chances.random() < 0.3:
        spec["restartPolicy"] = "Never"
        lasts |= {each["name"]: chances.uniform(3.0, 40.0) for each in spec["containers"]}
    if chances.random() < PINNED:
        spec["nodeSelector"] = {"kubernetes.io/hostname": home.name}
    annotations = {SECONDS: ",".join(f"{each}={seconds:.1f}" for each, seconds in lasts.items())} if lasts else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": spec,
    }


def _before(machine: Machine, chances: random.Random) -> Sequence[Body]:
    """Init containers that end; later containers reuse their resources."""
    return [_container(f"before-{n}", chances.choice(SORTS)(machine, chances)) for n in range(chances.randint(1, 2))]


def _sidecar(machine: Machine, chances: random.Random) -> Body:
    return {**_container("sidecar", _cpus(machine, chances)), "restartPolicy": "Always"}


def _container(name: str, amounts: Amounts) -> Body:
    """With requests equal to limits, except for fractional CPUs or no resources."""
    bounded = {key: value for key, value in amounts.items() if not value.endswith("m")}
    resources = {"requests": amounts, "limits": bounded} if amounts else {}
    return {"name": name, "image": "none", "resources": resources}


def _cpus(machine: Machine, chances: random.Random) -> Amounts:
    """Odd numbers as well: nodes that allocate whole cores reject them."""
    most = min(sum(len(core.cpus) for core in zone.cores) for zone in machine.zones)
    return {"cpu": str(chances.randint(1, max(1, most * 2 // 3))), "memory": f"{chances.randint(1, 6)}Gi"}


def _memory(machine: Machine, chances: random.Random) -> Amounts:
    most = min(zone.memory for zone in machine.zones) >> 30
    return {"cpu": str(chances.randint(1, 2)), "memory": f"{chances.randint(most // 4, most * 3 // 4)}Gi"}


def _gpus(machine: Machine, chances: random.Random) -> Amounts:
    wanted = {GPU: str(chances.randint(1, 2))} if GPU in machine.devices else {}
    nic = {NIC: "1"} if NIC in machine.devices and chances.random() < 0.5 else {}
    return {**_cpus(machine, chances), **wanted, **nic}


def _nics(machine: Machine, chances: random.Random) -> Amounts:
    return {**_cpus(machine, chances), **({NIC: "1"} if NIC in machine.devices else {})}


def _pages(machine: Machine, chances: random.Random) -> Amounts:
    """Huge pages."""
    there = any(page.resource == PAGES and page.pages for zone in machine.zones for page in zone.hugepages)
    return {**_cpus(machine, chances), **({PAGES: f"{128 * chances.randint(1, 8)}Mi"} if there else {})}


def _shared(machine: Machine, chances: random.Random) -> Amounts:
    """Burstable: no exclusive CPUs."""
    return {"cpu": f"{100 * chances.randint(1, 9)}m", "memory": f"{chances.randint(1, 3)}Gi"}


def _nothing(machine: Machine, chances: random.Random) -> Amounts:
    return {}


Sort = Callable[[Machine, random.Random], Amounts]
SORTS: Final[tuple[Sort, ...]] = (_cpus, _cpus, _cpus, _memory, _gpus, _gpus, _nics, _pages, _shared, _nothing)
