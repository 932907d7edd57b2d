"""Our scheduler on real kubelets: pods until nothing fits, none turned away, and everything where the model says.

The whole matrix of kinds, policies and scopes is in the slow tier; the shared lab has a part of each."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from numalign.api.decode import cpuset
from numalign.kubelet.cpu import topology
from numalign.kubelet.cpu.state import CPUState
from numalign.kubelet.device import DeviceState
from numalign.kubelet.memory.state import MemoryState
from numalign.kubelet.report import report
from numalign.kubelet.state import KubeletState
from numalign.kubelet.topologymanager import mask as masks
from numalign.lab.spec import NodeSpec
from numalign.scheduler import placementannotation
from tests.lab import books, fleet
from tests.lab.loads import Chapter
from tests.lab.tales import SHARED_LAB, Tales

EVERY = [node.name for kind in fleet.KINDS for node in fleet.of_kind(kind)]
LABS = [SHARED_LAB, *(pytest.param(kind, marks=pytest.mark.slow) for kind in fleet.KINDS)]


def matrix(wanted: Callable[[str], bool] = bool) -> pytest.MarkDecorator:
    """Those of the shared lab at once, the others among slow tests."""
    chosen = [name for name in EVERY if wanted(name)]
    marks = {name: () if name in fleet.SHARED else pytest.mark.slow for name in chosen}
    return pytest.mark.parametrize("name", [pytest.param(name, marks=marks[name]) for name in chosen])


def has_devices(name: str) -> bool:
    return bool(fleet.KINDS[fleet.kind_of(name)].machine.devices)


def aligns(name: str) -> bool:
    """Without a policy that aligns, a kubelet takes devices in no order at all."""
    return "-none-" not in name


def is_reported_by_us(name: str) -> bool:
    return fleet.KINDS[fleet.kind_of(name)].reporter == "own"


def has_inits(name: str) -> bool:
    return fleet.KINDS[fleet.kind_of(name)].inits


def cpus_of(state: CPUState | None) -> object:
    """Without what lives only as long as the process; so it is for memory."""
    assert state is not None
    return state.default, state.assignments


def memory_of(state: MemoryState | None) -> object:
    """A container's blocks are in no order: the kubelet walks a map of types."""
    if state is None:
        return None
    blocks = {uid: {name: set(held) for name, held in held.items()} for uid, held in state.blocks.items()}
    return state.zones, blocks


def device_zones(node: NodeSpec, state: DeviceState) -> dict[tuple[str, str, str], list[str]]:
    """By pod, container and resource, the zones of the devices: which of them in a zone is up to the plugin."""
    plugins = node.machine.devices
    known = {name: {each.id: str(each.zones) for each in plugin.devices} for name, plugin in plugins.items()}
    return {
        (uid, container, name): sorted(known[name][each] for each in ids)
        for uid, containers in state.pods.items()
        for container, held in containers.items()
        for name, ids in held.items()
    }


@matrix()
def test_no_pod_is_turned_away_and_the_node_gets_full(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    assert story.rejected == []
    assert story.full.pods
    assert story.waiting


@matrix()
def test_the_kubelet_wrote_down_what_the_model_says(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    expected, found = books.modelled(story.node, story.full.pods), story.full.books
    assert cpus_of(found.cpus) == cpus_of(expected.cpu)
    assert memory_of(found.memory) == memory_of(expected.memory)


@matrix(has_inits)
def test_once_init_containers_have_ended_their_memory_is_free_as_the_model_says(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    expected, found = books.begun(story.node, books.modelled(story.node, story.full.pods)), story.begun.books
    assert cpus_of(found.cpus) == cpus_of(expected.cpu)
    assert memory_of(found.memory) == memory_of(expected.memory)
    ended = [each for pod in story.begun.pods for each in pod.spec.init_containers if not each.is_sidecar]
    assert (memory_of(found.memory) != memory_of(story.full.books.memory)) == bool(ended)


@matrix(lambda name: has_devices(name) and aligns(name))
def test_devices_are_of_the_zones_that_the_model_says(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    expected = device_zones(story.node, books.modelled(story.node, story.full.pods).devices)
    assert expected
    assert device_zones(story.node, story.full.books.devices) == expected


@matrix(aligns)
def test_containers_are_aligned_to_the_zones_that_the_scheduler_foretold(tales: Tales, name: str) -> None:
    """Also under best-effort, where a container that is aligned to a zone may get CPUs of others besides."""
    story = tales.of_node(name)
    affinities = books.modelled(story.node, story.full.pods).affinities
    for pod in story.full.pods:
        foretold = placementannotation.decode(pod.metadata)
        assert foretold
        for container, choices in foretold.items():
            mask = affinities[pod.metadata.uid][container].mask
            assert mask in [masks.of(choice) for choice in choices], (pod.metadata.name, container)


@matrix(lambda name: any(policy in name for policy in fleet.STRICT))
def test_cpus_are_in_the_zones_that_the_scheduler_foretold(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    zones = topology.discover(story.node.machine).zones
    for pod in story.full.pods:
        for container, choices in (placementannotation.decode(pod.metadata) or {}).items():
            cpus = story.full.books.cpus.assignments[pod.metadata.uid][container]
            sits = {zone for zone, members in zones.items() if members & cpus}
            assert any(sits <= set(choice) for choice in choices), (pod.metadata.name, container)


def held(chapter: Chapter, state: KubeletState) -> Mapping[tuple[str, str], object]:
    """By pod and container, what podresources is to list: nothing of init containers that end."""
    assert state.cpu is not None
    found = {}
    for pod in chapter.pods:
        ends = {each.name for each in pod.spec.init_containers if not each.is_sidecar}
        for container in (each.name for each in pod.in_admission_order() if each.name not in ends):
            cpus = state.cpu.assigned(pod.metadata.uid, container)
            blocks = state.memory.held(pod.metadata.uid, container) if state.memory else None
            memory = {(block.kind, block.size, masks.members(block.zones)) for block in blocks or ()}
            found[pod.metadata.name, container] = tuple(cpuset.members(cpus or 0)), memory
    return found


@matrix()
def test_podresources_lists_what_the_model_says(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    state = books.begun(story.node, books.modelled(story.node, story.full.pods))
    found = {
        (pod.name, each.name): (each.cpus, {(block.type, block.size, block.zones) for block in each.memory})
        for pod in story.begun.books.listed.values()
        for each in pod.containers
    }
    assert found == held(story.begun, state)


@matrix(lambda name: aligns(name) and is_reported_by_us(name))
def test_the_agent_tells_the_cluster_what_the_model_says_is_left(tales: Tales, name: str) -> None:
    story = tales.of_node(name)
    state = books.modelled(story.node, story.full.pods)
    for chapter, then in ((story.full, state), (story.begun, books.begun(story.node, state))):
        expected = report.of(name, story.node.modelled, then)
        assert chapter.books.report.zones == expected.zones


@pytest.mark.parametrize("lab", LABS)
def test_nothing_turned_out_otherwise_than_the_scheduler_predicted(tales: Tales, lab: str) -> None:
    """But for reports of NFD's updater, which says less than what makes up its amounts."""
    tale = tales.of_lab(lab)
    assert tale.attempts["scheduled"] > 0
    assert tale.rejected == 0
    by_nfd = any(fleet.KINDS[fleet.kind_of(name)].reporter == "nfd" for name in tale.stories)
    assert tale.diverged.keys() <= ({"totals"} if by_nfd else set())


@pytest.mark.parametrize("lab", LABS)
def test_the_stock_scheduler_gets_some_of_the_same_pods_turned_away(tales: Tales, lab: str) -> None:
    """Why all this: the same pods on the same nodes, placed by a scheduler that does not know zones."""
    rejected = tales.of_lab(lab).rejected_by_stock
    assert any("opology" in each or "SMT" in each for each in rejected)
