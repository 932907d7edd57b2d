"""Whatever happens to a node: what the model holds is what the pods that run there were given."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from numalign.kubelet import admission
from numalign.kubelet.machine import presets
from numalign.kubelet.settings import MemoryReservation
from numalign.simulator.apiserver.storage.resources import PODS
from numalign.simulator.nodes.node import SimulatedNode
from numalign.simulator.nodes.specs import NodeSpec
from tests.unit.simulator.nodes import stage
from tests.unit.simulator.nodes.stage import Stage, played

SPEC = NodeSpec(name="n1", machine=stage.GPUS, settings=stage.STATIC, stop_seconds=3.0, boot_seconds=20.0)
PINNED = structs.replace(
    stage.STATIC,
    topology_policy="restricted",
    topology_scope="pod",
    reserved={"cpu": 2000, "memory": 1 << 30},
    memory_policy="Static",
    reserved_memory=(MemoryReservation(0, {"memory": 1 << 30}),),
)
FULL_CORES = structs.replace(stage.STATIC, topology_policy="best-effort", cpu_options={"full-pcpus-only": "true"})
SPECS = [SPEC, structs.replace(SPEC, settings=PINNED), structs.replace(SPEC, settings=FULL_CORES)]
SETTLED = 120.0

Step = tuple[Any, ...]


def pods() -> st.SearchStrategy[Step]:
    return st.tuples(
        st.just("create"),
        st.sampled_from(["1", "7", "20", "500m"]),
        st.integers(min_value=0, max_value=3),
        st.sampled_from(["", "4", "30"]),
        st.sampled_from(["Always", "OnFailure", "Never"]),
        st.sampled_from(["", "init", "sidecar"]),
    )


STEPS = st.lists(
    pods()
    | st.tuples(st.just("delete"), st.integers(min_value=0, max_value=9), st.sampled_from([None, 0, 5]))
    | st.tuples(st.just("health"), st.integers(min_value=0, max_value=7), st.booleans())
    | st.tuples(st.sampled_from(["restart", "reboot", "stop", "start"]))
    | st.tuples(st.just("pass"), st.sampled_from([0.4, 2.0, 15.0])),
    max_size=20,
)


def made(number: int, cpu: str, gpus: int, seconds: str, policy: str, init: str) -> dict[str, Any]:
    more: dict[str, Any] = {"restartPolicy": policy}
    if init:
        sidecar: dict[str, Any] = {"restartPolicy": "Always"} if init == "sidecar" else {}
        more["initContainers"] = [stage.container("before", "2", **sidecar)]
    if seconds:
        more["annotations"] = {"numalign.io/run-seconds": seconds}
    return stage.pod(f"p{number}", cpu, gpus=gpus, **more)


async def happens(on: Stage, node: SimulatedNode, number: int, step: Step) -> None:
    match step:
        case ("create", *how):
            on.create(made(number, *how))
        case ("delete", which, grace):
            names = sorted(on.phases())
            if names:
                on.api.delete(PODS, names[which % len(names)], "default", grace=grace)
        case ("health", device, healthy):
            node.set_health(presets.GPU, f"gpu-{device}", healthy=healthy)
        case ("pass", seconds):
            await on.passes(seconds)
        case (verb,):
            getattr(node, verb)()


def is_honest(on: Stage, node: SimulatedNode) -> None:
    state = admission.collect(node.node_state.kubelet, node.node_state.state)
    running = {
        tree["metadata"]["uid"]: tree for tree in on.api.list(PODS).items if tree["metadata"]["uid"] in node.pods
    }
    assert set(state.active) == node.pods == set(running)
    assert state.cpu is not None
    assert set(state.cpu.assignments) <= node.pods
    assert set(state.devices.pods) <= node.pods
    assert state.memory is None or set(state.memory.blocks) <= node.pods
    given = [cpus for held in state.cpu.assignments.values() for name, cpus in held.items() if name == "main"]
    asked = [each["spec"]["containers"][0]["resources"]["requests"]["cpu"] for each in running.values()]
    assert sum(cpus.bit_count() for cpus in given) == sum(int(cpu) for cpu in asked if cpu.isdigit())
    phases = {each["status"]["phase"] for each in running.values()}
    assert phases <= {"Running", "Pending"}


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(SPECS), STEPS)
def test_the_model_holds_what_the_running_pods_were_given(spec: NodeSpec, steps: list[Step]) -> None:
    async def story(on: Stage) -> None:
        node = on.fleet.add(spec)
        for number, step in enumerate(steps):
            await happens(on, node, number, step)
        await on.passes(30.0)
        if not node.node_state.up:
            node.start()
        await on.passes(SETTLED)
        is_honest(on, node)
        unfinished = {name for name, phase in on.phases().items() if phase not in ("Succeeded", "Failed")}
        assert len(unfinished) == len(node.pods)

    played(story)


@settings(max_examples=15, deadline=None)
@given(STEPS, st.sampled_from(["agent", "rte", "nfd"]))
def test_any_history_can_be_told_twice(steps: list[Step], publisher: str) -> None:
    spec = structs.replace(SPEC, publishing=structs.replace(SPEC.publishing, publisher=publisher, jitter=3.0))

    async def story(on: Stage) -> list[tuple[float, str, Any]]:
        node = on.fleet.add(spec)
        for number, step in enumerate(steps):
            await happens(on, node, number, step)
        await on.passes(30.0)
        return on.api.reported

    assert played(story) == played(story)
