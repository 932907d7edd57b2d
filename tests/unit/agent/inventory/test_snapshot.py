"""What older kubelets list too much is taken out, and newer ones are taken at their word."""

from __future__ import annotations

import pytest
from msgspec import structs

from numalign.agent.inventory import snapshot
from numalign.agent.inventory.readings import Readings
from numalign.agent.sources.checkpoints import CPUCheckpoint
from numalign.agent.sources.podresources import ContainerResources, PodResources
from numalign.api.errors import BadObject
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kubelet.cpu.state import CPUState
from tests.unit.agent import kubelet_looks as looks
from tests.unit.agent.clusters import PLAIN

SHARED = (0, 1, 4, 5)
REFERENCE = ContainerRef("tools", "agent", "pool")
PODS = (
    PodResources("tools", "agent", (ContainerResources("pool", (), SHARED),)),
    PodResources("default", "web", (ContainerResources("main", (), (2, 3)),)),
    PodResources("default", "job", (ContainerResources("main", (), SHARED),)),
)
FINISHED = frozenset({("default", "job")})


def read(version: str) -> Readings:
    empty = looks.at(PLAIN, PLAIN.initial())
    return structs.replace(empty, pods=PODS, kubelet_version=version, cpu_checkpoint=None)


def cpus(found: Readings) -> dict[str, tuple[int, ...]]:
    return {pod.name: pod.containers[0].cpus for pod in found.pods or ()}


@pytest.mark.parametrize(
    "version, expected",
    [
        ("v1.37.1", {"agent": SHARED, "web": (2, 3), "job": SHARED}),
        ("", {"agent": SHARED, "web": (2, 3), "job": SHARED}),
        ("v1.33.4", {"agent": SHARED, "web": (2, 3)}),
        ("v1.22.9", {"agent": (), "web": (2, 3)}),
    ],
)
def test_how_much_is_taken_out_depends_on_the_kubelet(version: str, expected: dict[str, tuple[int, ...]]) -> None:
    assert cpus(snapshot.corrected(read(version), FINISHED, REFERENCE)) == expected


def test_the_checkpoint_knows_the_shared_cpus_without_anybodys_help() -> None:
    written = CPUCheckpoint("static", CPUState(0b110011, {}))
    found = snapshot.corrected(structs.replace(read("v1.22.9"), cpu_checkpoint=written), frozenset())
    assert cpus(found) == {"agent": (), "web": (2, 3), "job": ()}


def test_a_kubelet_that_did_not_answer_stays_silent() -> None:
    silent = structs.replace(read("v1.22.9"), pods=None)
    assert snapshot.corrected(silent, FINISHED) == silent


def test_a_reference_that_is_no_container_is_refused() -> None:
    with pytest.raises(BadObject, match="namespace/pod/container"):
        snapshot.reference("agent/pool")
