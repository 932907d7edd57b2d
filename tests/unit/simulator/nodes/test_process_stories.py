"""What may happen to a node: kubelets that stop and start, machines that reboot, devices that fall ill."""

import pytest
from msgspec import structs

from numalign.api import errors
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import MemoryReservation, Settings
from numalign.simulator.apiserver.storage.resources import NODES, PODS
from numalign.simulator.nodes.specs import NodeSpec
from numalign.simulator.trees import Tree
from tests.unit.simulator.nodes import stage
from tests.unit.simulator.nodes.stage import NODE, Stage, played

GPU_NODE = NodeSpec(name="n1", machine=stage.GPUS, settings=structs.replace(stage.STATIC, reserved={"cpu": 2000}))


def test_a_restarted_kubelet_keeps_its_pods_where_they_were() -> None:
    async def story(on: Stage) -> tuple[bool, dict[str, str], list[int]]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("a", "6"), stage.pod("b", "6"))
        await on.passes(5.0)
        before = node.node_state.state.cpu
        node.restart()
        await on.passes(5.0)
        after = node.node_state.state.cpu
        assert before
        assert after
        pods = on.api.list(PODS).items
        restarts = [each["status"]["containerStatuses"][0]["restartCount"] for each in pods]
        return before.assignments == after.assignments, on.phases(), restarts

    assert played(story) == (True, {"a": "Running", "b": "Running"}, [0, 0])


def test_a_stopped_kubelet_misses_its_heartbeats_and_its_containers_run_on() -> None:
    async def story(on: Stage) -> tuple[bool, dict[str, str], bool]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("web"))
        await on.passes(30.0)
        node.stop()
        last = on.lease()["spec"]["renewTime"]
        on.create(stage.pod("unseen"))
        await on.passes(100.0)
        silent = on.lease()["spec"]["renewTime"] == last
        phases = {name: on.pod(name).get("status", {}).get("phase", "") for name in ("web", "unseen")}
        node.start()
        await on.passes(5.0)
        return silent, phases, on.phases() == {"web": "Running", "unseen": "Running"}

    silent, phases, recovered = played(story)
    assert (silent, phases["web"], recovered) == (True, "Running", True)


def test_what_ended_while_nobody_looked_is_told_when_the_kubelet_is_back() -> None:
    async def story(on: Stage) -> tuple[str, str, str]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("job", annotations={"numalign.io/run-seconds": "10"}, restartPolicy="Never"))
        await on.passes(5.0)
        node.stop()
        await on.passes(60.0)
        before = on.phases()["job"]
        node.start()
        await on.passes(1.0)
        terminated = on.pod("job")["status"]["containerStatuses"][0]["state"]["terminated"]
        return before, on.phases()["job"], terminated["finishedAt"]

    assert played(story) == ("Running", "Succeeded", "2026-01-01T00:00:11Z")


def test_a_pod_that_was_deleted_by_force_meanwhile_is_found_and_ended() -> None:
    async def story(on: Stage) -> tuple[int, int]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("web"))
        await on.passes(5.0)
        node.stop()
        on.api.delete(PODS, "web", "default", grace=0)
        await on.passes(5.0)
        held = len(stage.holders(node))
        node.start()
        await on.passes(5.0)
        return held, len(node.pods)

    assert played(story) == (1, 0)


def test_pods_bound_meanwhile_are_admitted_in_the_order_of_their_creation() -> None:
    async def story(on: Stage) -> dict[str, str]:
        node = on.fleet.add(NODE)
        node.stop()
        for name in ("z", "m", "a"):
            on.create(stage.pod(name, "12"))
            await on.passes(2.0)
        node.start()
        await on.passes(5.0)
        return on.phases()

    assert played(story) == {"z": "Running", "m": "Running", "a": "Failed"}


def test_a_reboot_starts_every_container_again_after_a_new_admission() -> None:
    async def story(on: Stage) -> tuple[Tree, Tree, list[Tree], bool]:
        node = on.fleet.add(structs.replace(NODE, boot_seconds=60.0))
        on.create(stage.pod("web"))
        await on.passes(5.0)
        before = on.node()["status"]["nodeInfo"]["bootID"]
        node.reboot()
        await on.passes(30.0)
        during = on.pod("web")["status"]
        await on.passes(45.0)
        changed = on.node()["status"]["nodeInfo"]["bootID"] != before
        return during, on.pod("web")["status"], on.events("Rebooted"), changed

    during, after, rebooted, changed = played(story)
    [container] = after["containerStatuses"]
    assert (during["phase"], after["phase"], container["restartCount"]) == ("Running", "Running", 1)
    assert container["lastState"]["terminated"]["exitCode"] == 255
    assert (len(rebooted), changed) == (1, True)


def test_a_pod_that_is_never_restarted_fails_with_the_machine() -> None:
    async def story(on: Stage) -> tuple[dict[str, str], int]:
        node = on.fleet.add(NODE)
        on.create(stage.pod("job", restartPolicy="Never"))
        await on.passes(5.0)
        node.reboot()
        await on.passes(70.0)
        return on.phases(), len(node.pods)

    assert played(story) == ({"job": "Failed"}, 0)


def test_after_a_reboot_a_pod_whose_device_is_broken_is_refused() -> None:
    async def story(on: Stage) -> tuple[str, str]:
        node = on.fleet.add(GPU_NODE)
        on.create(stage.pod("train", gpus=1))
        await on.passes(5.0)
        node.set_health(presets.GPU, "gpu-0", healthy=False)
        node.reboot()
        await on.passes(70.0)
        status = on.pod("train")["status"]
        return status["phase"], status.get("reason", "")

    assert played(story) == ("Failed", "UnexpectedAdmissionError")


def test_a_restarted_kubelet_leaves_a_broken_device_with_the_container_that_uses_it() -> None:
    async def story(on: Stage) -> dict[str, str]:
        node = on.fleet.add(GPU_NODE)
        on.create(stage.pod("train", gpus=1))
        await on.passes(5.0)
        node.set_health(presets.GPU, "gpu-0", healthy=False)
        node.restart()
        await on.passes(5.0)
        return on.phases()

    assert played(story) == {"train": "Running"}


def test_a_broken_device_lowers_what_the_node_offers_and_a_repaired_one_restores_it() -> None:
    async def story(on: Stage) -> list[tuple[str, str]]:
        node = on.fleet.add(GPU_NODE)
        seen = []
        for healthy in (True, False, True):
            node.set_health(presets.GPU, "gpu-7", healthy=healthy)
            await on.passes(15.0)
            status = on.node()["status"]
            seen.append((status["capacity"][presets.GPU], status["allocatable"][presets.GPU]))
        return seen

    assert played(story) == [("8", "8"), ("8", "7"), ("8", "8")]


@pytest.mark.parametrize("resource, device", [("no/such", "gpu-0"), (presets.GPU, "gpu-99")])
def test_a_device_that_is_not_there_cannot_break(resource: str, device: str) -> None:
    async def story(on: Stage) -> None:
        on.fleet.add(GPU_NODE).set_health(resource, device, healthy=False)

    with pytest.raises(KeyError):
        played(story)


def test_a_node_names_its_devices() -> None:
    async def story(on: Stage) -> tuple[tuple[str, ...], tuple[str, ...]]:
        node = on.fleet.add(GPU_NODE)
        node.set_health(presets.GPU, "gpu-7", healthy=False)
        return node.devices(presets.GPU), node.devices("no/such")

    assert played(story) == (tuple(f"gpu-{number}" for number in range(8)), ())


def test_a_node_that_others_declared_lost_says_that_it_is_ready() -> None:
    async def story(on: Stage) -> str:
        on.fleet.add(NODE)
        node = on.node()
        for condition in node["status"]["conditions"]:
            condition["status"] = "Unknown"
        on.api.update(NODES, node, subresource="status")
        await on.passes(11.0)
        return stage.conditions(on.node())["Ready"]

    assert played(story) == "True"


def test_a_kubelet_that_would_not_start_is_said_to_whoever_adds_it() -> None:
    async def story(on: Stage) -> None:
        on.fleet.add(structs.replace(NODE, settings=Settings(cpu_policy="static")))

    with pytest.raises(errors.BadObject, match=r"Node n1, settings: the kubelet would not start: .*greater than zero"):
        played(story)


def test_a_name_is_given_once() -> None:
    async def story(on: Stage) -> None:
        on.fleet.add(NODE)
        on.fleet.add(NODE)

    with pytest.raises(errors.BadObject, match="a node of this name already exists"):
        played(story)


def test_a_machine_that_is_gone_says_nothing_any_more() -> None:
    async def story(on: Stage) -> bool:
        on.fleet.add(NODE)
        await on.passes(20.0)
        on.fleet.remove("n1")
        last = (on.lease(), on.node(), on.report())
        await on.passes(600.0)
        return last == (on.lease(), on.node(), on.report())

    assert played(story)


def test_static_pods_are_mirrored_and_come_back_when_deleted() -> None:
    static = {"metadata": {"name": "proxy"}, "spec": {"containers": [stage.container("main", "2")]}}

    async def story(on: Stage) -> tuple[dict[str, str], dict[str, str], bool]:
        on.fleet.add(structs.replace(NODE, static_pods=(static,)))
        await on.passes(3.0)
        first, uid = on.phases(), on.pod("proxy-n1")["metadata"]["uid"]
        on.api.delete(PODS, "proxy-n1", "default")
        await on.passes(5.0)
        return first, on.phases(), on.pod("proxy-n1")["metadata"]["uid"] != uid

    assert played(story) == ({"proxy-n1": "Running"}, {"proxy-n1": "Running"}, True)


def test_a_kubelet_that_refuses_its_checkpoint_stays_down() -> None:
    reserved = (MemoryReservation(0, {"memory": 1 << 30}),)
    settings = structs.replace(stage.STATIC, memory_policy="Static", reserved_memory=reserved)
    settings = structs.replace(settings, reserved={"cpu": 2000, "memory": 1 << 30})

    async def story(on: Stage) -> tuple[str, bool]:
        node = on.fleet.add(structs.replace(NODE, settings=settings))
        on.create(stage.pod("web"))
        await on.passes(5.0)
        memory = node.node_state.state.memory
        assert memory is not None
        node.node_state.state = structs.replace(node.node_state.state, memory=structs.replace(memory, blocks={}))
        node.restart()
        return node.why_down, node.node_state.up

    why, up = played(story)
    assert "the expected machine state is different from the real one" in why
    assert not up
