"""A leader dies after it has bound pods and before any node has reported them: the next one knows where they are, by
the model and by the note on each pod, and goes on without a pod being turned away."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from msgspec import structs

from numalign.kubelet.machine import presets
from numalign.placement.exact import ExactFlavour
from numalign.placement.ledger import reconcile
from numalign.scheduler import placementannotation
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from tests import nodes
from tests.embedded import schedulerstories as stories
from tests.embedded.schedulerstories import Stage, Told

MACHINE = presets.machine("2x16")
SILENT = Publishing(period=400.0, reactive=False)
NODES = [
    NodeSpec(name=f"w-{n}", machine=MACHINE, settings=nodes.settings(MACHINE, "single-numa-node"), publishing=SILENT)
    for n in range(3)
]
SIZES = (3, 4, 5)
LARGE = presets.machine("gpu-8")
LARGE_NODE = NodeSpec(
    name="large", machine=LARGE, settings=nodes.settings(LARGE, "single-numa-node"), publishing=SILENT
)
SIGNED = structs.replace(LARGE_NODE, publishing=structs.replace(SILENT, publisher="rte"))
GPU = "nvidia.com/gpu"


class Play:
    """Pods of several sizes; half-way the leader is killed. `known`: what the next one makes of its pods at once."""

    def __init__(self) -> None:
        self.known: Counter[str] = Counter()

    async def __call__(self, stage: Stage) -> None:
        for number in range(8):
            stage.create(f"old-{number}", stage.draw.choice(SIZES))
            await stage.clock.sleep(1.0)
        for name in stage.draw.sample(range(8), k=2):
            stage.delete(f"old-{name}", grace=0)
        await stage.clock.sleep(60.0)
        for number in range(4):
            stage.create(f"older-{number}", stage.draw.choice(SIZES))
        await stage.clock.sleep(5.0)
        stage.replicas[0].kill()
        await stage.clock.sleep(40.0)
        self.known = sources(stage)
        for number in range(6):
            stage.create(f"new-{number}", stage.draw.choice(SIZES))
            await stage.clock.sleep(1.0)


def sources(stage: Stage) -> Counter[str]:
    now = stage.replicas[0].now
    assert now is not None
    flavour = now.cluster.engine.flavour
    assert isinstance(flavour, ExactFlavour)
    uids = [pod.metadata.uid for node in NODES for pod in now.cluster.pods_on(node.name)]
    holdings = [flavour.mirror.ledger.holding(uid) for uid in uids]
    return Counter(str(each.source) for each in holdings if each is not None)


def played(seed: int) -> tuple[Told, Play]:
    play = Play()
    return stories.told(play, NODES, seed=seed, rest=900.0), play


@pytest.mark.parametrize("seed", range(4))
def test_the_next_leader_goes_on_and_nobody_is_turned_away(seed: int) -> None:
    told, play = played(seed)
    assert (told.broken, told.count("rejected"), told.waiting) == ([], 0, [])
    assert sum(play.known.values()) == 10


def test_without_the_notes_the_model_alone_has_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: Any) -> None:
        return None

    monkeypatch.setattr(placementannotation, "decode", nothing)
    told, _ = played(1)
    assert (told.broken, told.count("rejected")) == ([], 0)


async def unheard_end(stage: Stage) -> None:
    """Zone 0 has CPUs and no GPU but those of `ends`, zone 1 has GPUs and few CPUs. `ends` goes when nobody looks, and
    `second` takes its GPUs instead of those of zone 1: then zone 0 has no room for `third`."""
    for name, cpus, gpus in (("first", 94, 0), ("beside", 56, 0), ("ends", 1, 4)):
        create(stage, name, cpus, gpus)
        await stage.clock.sleep(5.0)
    stage.delete("first", grace=0)
    await stage.clock.sleep(SILENT.period + 10.0)
    stage.replicas[0].kill()
    stage.delete("ends", grace=0)
    await stage.clock.sleep(30.0)
    for name, cpus, gpus in (("second", 20, 4), ("third", 90, 0)):
        create(stage, name, cpus, gpus)
        await stage.clock.sleep(5.0)


def create(stage: Stage, name: str, cpus: int, gpus: int) -> None:
    tree = stories.pod(name, cpus)
    if gpus:
        tree["spec"]["containers"][0]["resources"]["limits"][GPU] = str(gpus)
    stage.api.create(PODS, tree)


@pytest.mark.parametrize("node", [LARGE_NODE, SIGNED], ids=["listed", "fingerprint"])
def test_a_pod_that_ended_while_nobody_led_does_not_cost_another_one_its_place(node: NodeSpec) -> None:
    told = stories.told(unheard_end, [node], rest=30.0)
    assert (told.count("rejected"), told.waiting) == (0, ["third"])


def test_without_a_doubt_about_pods_that_nobody_knows_it_would(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reconcile, "_has_strangers", lambda *_: False)
    assert stories.told(unheard_end, [LARGE_NODE], rest=30.0).count("rejected") == 1
