"""Our device plugin and our podresources client with a real kubelet between them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import structs

from numalign.agent import main
from numalign.agent.main import Places
from numalign.agent.sources.checkpoints import DeviceCheckpoint
from numalign.agent.sources.podresources import DeviceEntry, PodResources, PodResourcesClient, PodResourcesError
from numalign.api.objects.pod import Pod
from numalign.kube.resources import NODES
from numalign.lab import node as nodes
from numalign.lab.node import LabNode
from tests.lab.fleet import GPU, GPUS, KEY, LINK, OFFER
from tests.lab.fleet import OFFERING as NODE
from tests.lab.live import Live


@pytest.fixture(scope="module")
def registered(apart: Live) -> None:
    until_offered(apart, GPU, 8)


@pytest.fixture
def offering(registered: None, single: Live) -> Live:
    return single


def until_offered(live: Live, resource: str, count: int) -> None:
    async def offered() -> bool:
        found = await live.client.get(NODES.at(NODE))
        return resource in found.allocatable and found.allocatable[resource].value == count

    live.awaited(offered, f"{count} of {resource} are not offered")


def listed(live: Live) -> dict[str, PodResources]:
    async def ask() -> dict[str, PodResources]:
        client = PodResourcesClient(live.node(NODE).podresources)
        try:
            return {pod.name: pod for pod in await client.list()}
        finally:
            await client.close()

    return live.run(ask())


async def offered_now(live: Live, resource: str) -> list[DeviceEntry]:
    client = PodResourcesClient(live.node(NODE).podresources)
    try:
        found = await client.allocatable()
    finally:
        await client.close()
    return [entry for entry in found.devices if entry.resource == resource] if found else []


def allocatable(live: Live, resource: str) -> list[DeviceEntry]:
    return live.run(offered_now(live, resource))


def until_healthy(live: Live, resource: str, count: int) -> None:
    """Podresources knows at once what the Node object tells ten seconds later."""

    async def healthy() -> bool:
        with contextlib.suppress(PodResourcesError):
            return len(await offered_now(live, resource)) == count
        return False

    live.awaited(healthy, f"{count} of {resource} are not healthy")


def offer(node: LabNode, sick: Iterable[str]) -> None:
    """All that the node has, with these GPUs unhealthy."""
    file = node.place.root / Path(nodes.DEVICES).name
    gpus = {**GPUS, "unhealthy": sorted(sick)}
    file.write_bytes(msgspec.json.encode({**OFFER, "devices": {**OFFER["devices"], GPU: gpus}}))


def pod(name: str, **limits: str) -> Mapping[str, Any]:
    wanted = {"cpu": "2", "memory": "1Gi"} | {f"example.com/{key}": value for key, value in limits.items()}
    container = {"name": "main", "image": "none", "resources": {"limits": wanted}}
    about = {"containers": [container], "nodeName": NODE, "automountServiceAccountToken": False}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": about}


def settled(live: Live, name: str, **limits: str) -> Pod:
    live.create(pod(name, **limits))
    return live.settled(name)


def test_a_device_on_two_zones_comes_twice_and_one_without_comes_once(offering: Live) -> None:
    assert allocatable(offering, LINK) == [
        DeviceEntry(LINK, (identity,), (zone,)) for identity in ("link-0", "link-1") for zone in (0, 1)
    ]
    assert [entry.zones for entry in allocatable(offering, KEY)] == [None, None]


def test_a_device_with_an_empty_topology_is_offered_but_not_told_of(offering: Live) -> None:
    """The kubelet's own oddity (exporter spec 2.4)."""
    until_offered(offering, KEY, 3)
    assert "odd" not in {identity for entry in allocatable(offering, KEY) for identity in entry.ids}


def test_a_pod_gets_devices_of_the_zone_of_its_cpus(offering: Live) -> None:
    assert settled(offering, "train", gpu="3").status.phase == "Running"
    (container,) = listed(offering)["train"].containers
    zones = {zone for entry in container.devices for zone in entry.zones or ()}
    assert len(container.devices) == 3
    assert zones == {zone for block in container.memory for zone in block.zones}
    assert zones == {0 if max(container.cpus) < 16 else 1}


def test_the_kubelet_writes_down_which_devices_a_pod_has(offering: Live) -> None:
    uid = settled(offering, "kept", gpu="1").metadata.uid
    written = msgspec.json.decode(offering.node(NODE).device_state.read_bytes())["Data"]["PodDeviceEntries"]
    (entry,) = (each for each in written if each["PodUID"] == uid)
    held = [identity for ids in entry["DeviceIDs"].values() for identity in ids]
    assert held == [identity for each in listed(offering)["kept"].containers[0].devices for identity in each.ids]


def test_a_pod_that_wants_more_gpus_than_a_zone_has_is_turned_away(offering: Live) -> None:
    assert settled(offering, "wide", gpu="5").status.reason == "TopologyAffinityError"


def test_a_sick_device_is_not_offered_until_it_is_well(offering: Live) -> None:
    offer(offering.node(NODE), {"gpu-7"})
    until_healthy(offering, GPU, 7)
    assert "gpu-7" not in {identity for entry in allocatable(offering, GPU) for identity in entry.ids}
    offer(offering.node(NODE), set())
    until_healthy(offering, GPU, 8)


def test_a_kubelet_that_is_started_again_has_the_devices_again(offering: Live) -> None:
    settled(offering, "stays", gpu="2")
    before = listed(offering)["stays"]
    offering.node(NODE).kubelet.restart()
    until_healthy(offering, GPU, 8)
    assert settled(offering, "after", gpu="2").status.phase == "Running"
    found = listed(offering)
    assert found["stays"] == before
    assert not set(before.containers[0].devices) & set(found["after"].containers[0].devices)


OTHER_ROOT = f"{nodes.KUBELET_ROOT}/other"


@pytest.fixture
def rooted_elsewhere(offering: Live) -> Iterator[Live]:
    """Its kubelet has another root folder, as that of k0s has."""
    kubelet = offering.node(NODE).kubelet
    usual = kubelet.program
    kubelet.program = structs.replace(usual, command=(*usual.command, f"--root-dir={OTHER_ROOT}"))
    kubelet.restart()
    yield offering
    offering.clear()
    kubelet.program = usual
    kubelet.restart()
    until_healthy(offering, GPU, 8)


def test_the_agent_finds_the_device_checkpoint_of_a_kubelet_with_another_root_folder(rooted_elsewhere: Live) -> None:
    live = rooted_elsewhere
    places = Places(host=Path("/proc", str(live.node(NODE).parts["runtime"].pid), "root"), kubelet=OTHER_ROOT)

    async def checkpoint() -> DeviceCheckpoint | None:
        async with main.snapshot_reader(places) as (reader, _):
            readings = (await reader.look(fresh=True)).readings
        healthy = [each for each in (readings.allocatable.devices if readings.allocatable else ()) if each.zones]
        return readings.device_checkpoint if any(each.resource == GPU for each in healthy) else None

    live.awaited(checkpoint, "the kubelet with another root folder offers no GPU")
    uid = settled(live, "rooted", gpu="2").metadata.uid
    found = live.run(checkpoint())
    assert found is not None
    assert len(found.state.held_by_pod(uid, GPU)) == 2
