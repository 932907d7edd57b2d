"""Scenes of made-up machines with pods on them, as sources of the dashboard read them from files."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

import msgspec
from msgspec import structs

from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.decode import quantity
from numalign.api.decode import structs as wire
from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.cli.results.moments import scene
from numalign.cli.results.moments.scene import Scene
from numalign.kubelet import admission, predicates, start
from numalign.kubelet.machine import presets
from numalign.kubelet.report import plainreport, report
from numalign.kubelet.settings import Settings
from numalign.scheduler.snapshot import files
from tests.unit.placement import choices
from tests.unit.placement.direct import clusters as directnodes
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import on, trainer

NRT = "topology.node.k8s.io/v1alpha2"
Item = dict[str, Any]


def item(kind: str, version: str, thing: object) -> Item:
    plain: Item = msgspec.to_builtins(thing, enc_hook=wire.encodable)
    return {"apiVersion": version, "kind": kind} | plain


def node(
    name: str,
    machine: str = "gpu-8",
    policy: Any = "single-numa-node",
    running: Sequence[Pod] = (),
    coming: Sequence[Pod] = (),
    publisher: str = "agent",
    **settings: Any,
) -> list[Item]:
    """A machine, the pods that its kubelet admitted and those that are on their way there, and its report."""
    given: dict[str, Any] = {"cpu_policy": "static", "reserved_cpus": 0b11, "reserved": {"cpu": 2000}} | settings
    kubelet = start.start(presets.machine(machine), Settings(topology_policy=policy, **given))
    state = kubelet.initial()
    offered = predicates.allocatable(kubelet, state)
    amounts = {resource: quantity.of(amount) for resource, amount in offered.items()}
    amounts |= {"cpu": quantity.of_milli(offered["cpu"]), "pods": quantity.of(110)}
    made = servers.node(name)
    status = structs.replace(made.status, allocatable=amounts, capacity=amounts)
    items = [item("Node", "v1", structs.replace(made, status=status))]
    for pod in running:
        state, outcome = admission.admit(kubelet, state, pod)
        assert outcome.admitted, outcome
        state = admission.started(kubelet, state, pod.metadata.uid)
        items.append(item("Pod", "v1", on(pod, name, phase="Running")))
    items += [item("Pod", "v1", on(pod, name, phase="Pending")) for pod in coming]
    if publisher:
        topology = (
            report.of(name, kubelet, state)
            if publisher == "agent"
            else plainreport.of(name, kubelet, state, "nfd" if publisher == "nfd" else "rte")
        )
        items.append(item("NodeResourceTopology", NRT, normalise.encode(topology)))
    return items


def direct(name: str, *pods: Pod, applied: Sequence[AppliedContainer] = ()) -> list[Item]:
    """A node in direct mode with two zones of eight CPUs, and pods for which a scheduler has decided."""
    on = directnodes.engine(name)
    items = [item("Node", "v1", directnodes.node(name))]
    for pod in pods:
        decision = choices.chosen(on, pod, Random(1)).decision
        assert decision is not None
        placed = directnodes.bound(pod, decision)
        directnodes.see(on, placed)
        items.append(item("Pod", "v1", structs.replace(placed, status=structs.replace(placed.status, phase="Running"))))
    plain = directnodes.topology(name)
    written = structs.replace(plain, facts=structs.replace(plain.facts, applied=tuple(sorted(applied))))
    return [*items, item("NodeResourceTopology", NRT, normalise.encode(written))]


def read(*items: Item) -> Scene:
    text = msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items})
    return scene.of_snapshot(files.read(text, "cluster.json"), "file cluster.json")


def busy() -> Scene:
    """Two servers with GPUs left in each zone, a third one with a stock report, and pods that wait."""
    return read(
        *node("gpu-a", running=(trainer("train-0", gpus=3, cpu="16"), trainer("train-1", gpus=2, cpu="24"))),
        *node(
            "gpu-b",
            running=(trainer("train-2", gpus=3), trainer("train-3", gpus=2)),
            coming=(trainer("new-0", gpus=0, cpu="4"),),
        ),
        *node(
            "plain", policy="restricted", running=(trainer("rte-0", gpus=3), trainer("rte-1", gpus=3)), publisher="rte"
        ),
        *(item("Pod", "v1", servers.owned(trainer(f"late-{number}", gpus=3, cpu="8"), "set-1")) for number in range(3)),
        item("Pod", "v1", trainer("huge", gpus=16)),
        item("Pod", "v1", trainer("other", schedulerName="somebody-else")),
    )
