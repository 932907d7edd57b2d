"""How a node tells that it is there."""

from collections import Counter

import pytest
from msgspec import structs

from numalign.api.decode import decode, quantity
from numalign.api.objects.node import Node, Taint
from numalign.kubelet.machine import presets
from numalign.simulator.apiserver.storage.resources import LEASES, NODES
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage
from tests.unit.simulator.nodes.stage import NODE, Stage, played


async def registered(on: Stage) -> Tree:
    on.fleet.add(
        structs.replace(
            NODE,
            machine=presets.machine("edge-1"),
            labels={"disk": "ssd"},
            taints=(Taint(key="k", value="v", effect="NoSchedule"),),
        )
    )
    return on.node()


def test_a_node_registers_with_what_it_has() -> None:
    status = decode.decode(Node, played(registered)).status
    assert status.capacity["cpu"] == quantity.parse("16")
    assert status.allocatable["cpu"] == quantity.parse("14")
    assert status.allocatable["hugepages-2Mi"] == quantity.parse("4Gi")
    assert status.allocatable["memory"] == quantity.parse("28Gi")
    assert status.capacity["intel.com/sriov_netdevice"] == quantity.parse("8")
    assert status.capacity["pods"] == quantity.parse("110")


def test_a_node_has_every_string_that_typed_clients_insist_on() -> None:
    tree = played(registered)
    info = tree["status"]["nodeInfo"]
    assert set(info) == {
        "machineID",
        "systemUUID",
        "bootID",
        "kernelVersion",
        "osImage",
        "containerRuntimeVersion",
        "kubeletVersion",
        "kubeProxyVersion",
        "operatingSystem",
        "architecture",
    }
    assert all(info.values())
    assert info["kubeletVersion"] == "v1.38.0"


def test_a_node_is_ready_labelled_and_tainted_from_the_first_moment() -> None:
    tree = played(registered)
    assert stage.conditions(tree) == {
        "MemoryPressure": "False",
        "DiskPressure": "False",
        "PIDPressure": "False",
        "Ready": "True",
    }
    assert (tree["metadata"]["labels"]["disk"], tree["metadata"]["labels"]["kubernetes.io/hostname"]) == ("ssd", "n1")
    assert tree["spec"]["taints"] == [{"key": "k", "value": "v", "effect": "NoSchedule"}]


def test_a_lease_is_renewed_every_ten_seconds_and_the_status_every_five_minutes() -> None:
    async def story(on: Stage) -> Counter[str]:
        on.fleet.add(NODE)
        await on.passes(60.0)
        counts: Counter[str] = Counter()

        def count(change: Change) -> None:
            counts[change.resource.plural] += 1

        on.api.subscribe(LEASES, count, since_now=True)
        on.api.subscribe(NODES, count, since_now=True)
        await on.passes(3600.0)
        return counts

    counts = played(story)
    assert counts["leases"] == pytest.approx(3600 / 10.2, abs=3)
    assert counts["nodes"] in (11, 12)


def test_the_lease_belongs_to_its_node() -> None:
    async def story(on: Stage) -> tuple[Tree, str]:
        on.fleet.add(NODE)
        return on.lease(), on.node()["metadata"]["uid"]

    lease, uid = played(story)
    assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("n1", 40)
    assert lease["metadata"]["ownerReferences"][0]["uid"] == uid


def test_nodes_do_not_beat_together() -> None:
    async def story(on: Stage) -> set[str]:
        for number in range(20):
            on.fleet.add(structs.replace(NODE, name=f"n{number}"))
        await on.passes(30.0)
        return {each["spec"]["renewTime"] for each in on.api.list(LEASES).items}

    assert len(played(story)) == 20


def test_conditions_that_others_wrote_stay() -> None:
    async def story(on: Stage) -> dict[str, str]:
        on.fleet.add(NODE)
        node = on.node()
        node["status"]["conditions"].append({"type": "NetworkUnavailable", "status": "False"})
        on.api.update(NODES, node, subresource="status")
        await on.passes(400.0)
        return stage.conditions(on.node())

    assert played(story)["NetworkUnavailable"] == "False"


def test_a_node_that_was_deleted_is_not_registered_again_until_its_kubelet_restarts() -> None:
    async def story(on: Stage) -> tuple[int, int]:
        node = on.fleet.add(NODE)
        await on.passes(5.0)
        on.api.delete(NODES, "n1")
        await on.passes(600.0)
        before = len(on.api.list(NODES).items)
        node.restart()
        await on.passes(1.0)
        return before, len(on.api.list(NODES).items)

    assert played(story) == (0, 1)


def test_starting_what_runs_changes_nothing() -> None:
    async def story(on: Stage) -> int:
        node = on.fleet.add(NODE)
        node.start()
        renewals: list[Change] = []
        on.api.subscribe(LEASES, renewals.append, since_now=True)
        await on.passes(100.0)
        return len(renewals)

    assert played(story) in (9, 10)


def test_a_machine_that_boots_comes_up_once() -> None:
    async def story(on: Stage) -> int:
        node = on.fleet.add(NODE)
        node.reboot()
        node.start()
        node.reboot()
        await on.passes(70.0)
        return len(on.events("Rebooted"))

    assert played(story) == 1
