"""Memory over a pod's life: handed on by init containers, given back, collected (kubelet spec 6.5, 6.6, 9)."""

from typing import Any

import pytest
from msgspec import structs

from numalign.api.decode import cpuset, quantity
from numalign.kubelet import demand as demands
from numalign.kubelet.demand import PodDemand, Reading
from numalign.kubelet.memory.state import MemoryState, ReusableMemory, Table
from numalign.kubelet.memory.static import StaticMemory
from numalign.kubelet.topologymanager.hints import Hint
from tests.unit.kubelet import made

Containers = dict[str, tuple[str, str]]
"""Container name to role and memory."""

GIB = 1 << 30
ZONE_0, ZONE_1, BOTH = 0b01, 0b10, 0b11

# (containers, all of them in zone 1 of 8Gi, their blocks in the end, what is left free)
HANDED_ON: dict[str, tuple[Containers, dict[str, str], str]] = {
    "apps add up": ({"c": ("app", "2Gi"), "d": ("app", "3Gi")}, {"c": "2Gi", "d": "3Gi"}, "3Gi"),
    "an app takes part of what an init container had": (
        {"a": ("init", "4Gi"), "c": ("app", "3Gi")},
        {"a": "1Gi", "c": "3Gi"},
        "4Gi",
    ),
    "an app takes all of it": ({"a": ("init", "4Gi"), "c": ("app", "4Gi")}, {"a": "0", "c": "4Gi"}, "4Gi"),
    "an app needs more": ({"a": ("init", "4Gi"), "c": ("app", "6Gi")}, {"a": "0", "c": "6Gi"}, "2Gi"),
    "two apps share it out": (
        {"a": ("init", "4Gi"), "c": ("app", "3Gi"), "d": ("app", "3Gi")},
        {"a": "0", "c": "3Gi", "d": "3Gi"},
        "2Gi",
    ),
    "a smaller init container after a larger one": (
        {"a": ("init", "4Gi"), "b": ("init", "2Gi"), "c": ("app", "1Gi")},
        {"a": "1Gi", "b": "2Gi", "c": "1Gi"},
        "4Gi",
    ),
    "a larger init container after a smaller one": (
        {"a": ("init", "2Gi"), "b": ("init", "4Gi"), "c": ("app", "1Gi")},
        {"a": "0", "b": "3Gi", "c": "1Gi"},
        "4Gi",
    ),
    "a sidecar takes and keeps": (
        {"a": ("init", "4Gi"), "s": ("sidecar", "3Gi"), "c": ("app", "3Gi")},
        {"a": "0", "s": "3Gi", "c": "3Gi"},
        "2Gi",
    ),
    "an earlier sidecar hands nothing on": (
        {"s": ("sidecar", "2Gi"), "a": ("init", "3Gi"), "c": ("app", "3Gi")},
        {"s": "2Gi", "a": "0", "c": "3Gi"},
        "3Gi",
    ),
}


def policy(**settings: Any) -> StaticMemory:
    manager = made.kubelet(made.machine(hugepages={"2Mi": 0}), cpu=False, memory=True, **settings).memory
    assert manager is not None
    return manager


def several(containers: Containers, name: str = "p") -> PodDemand:
    built = {
        each: made.container(each, memory=size, sidecar=role == "sidecar") for each, (role, size) in containers.items()
    }
    apps = [built[each] for each, (role, _) in containers.items() if role == "app"]
    return demands.of(made.pod(name, *apps, init=[each for each in built.values() if each not in apps]), Reading())


def served(manager: StaticMemory, pod: PodDemand, mask: int = ZONE_1, state: MemoryState | None = None) -> MemoryState:
    state = state or manager.initial()
    for container in pod.containers:
        state, refused = manager.allocate(state, pod, container, Hint(mask, True))
        assert refused is None, refused
    return state


def sizes(state: MemoryState, uid: str = "p") -> dict[str, str]:
    blocks = {name: held[0].size for name, held in state.blocks.get(uid, {}).items()}
    return {name: text(size) for name, size in blocks.items()}


def free(state: MemoryState, zone: int = 1) -> str:
    return text(state.zones[zone].tables["memory"].free)


def text(size: int) -> str:
    return str(quantity.of(size, quantity.Format.BINARY_SI))


@pytest.mark.parametrize("containers, expected, left", HANDED_ON.values(), ids=HANDED_ON)
def test_containers_of_a_pod(containers: Containers, expected: dict[str, str], left: str) -> None:
    state = served(policy(), several(containers))
    assert (sizes(state), free(state)) == (expected, left)
    assert state.zones[1].assignments == len(containers)


def test_memory_is_handed_on_in_exactly_the_same_zones_only() -> None:
    manager, pod = policy(), several({"a": ("init", "4Gi"), "c": ("app", "4Gi")})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_1, True))
    state, _ = manager.allocate(state, pod, pod.containers[1], Hint(ZONE_0, True))
    assert (sizes(state), free(state, 0), free(state, 1)) == ({"a": "4Gi", "c": "4Gi"}, "3Gi", "4Gi")


def test_another_pod_makes_what_was_left_unusable() -> None:
    manager, pod = policy(), several({"a": ("init", "3Gi"), "c": ("app", "3Gi")})
    state, _ = manager.allocate(manager.initial(), pod, pod.containers[0], Hint(ZONE_1, True))
    state = served(manager, several({"c": ("app", "1Gi")}, "q"), ZONE_1, state)
    state, _ = manager.allocate(state, pod, pod.containers[1], Hint(ZONE_1, True))
    assert free(state) == "1Gi"


def test_what_is_left_makes_room_where_the_affinity_has_none() -> None:
    manager = policy()
    state = served(manager, several({"a": ("init", "7Gi"), "c": ("app", "6Gi")}), ZONE_1)
    assert (sizes(state), free(state)) == ({"a": "1Gi", "c": "6Gi"}, "1Gi")


def test_an_init_container_that_is_met_again_leaves_its_memory_again() -> None:
    manager = policy()
    met = served(manager, several({"a": ("init", "4Gi"), "x": ("app", "1Gi")}))
    pod = several({"a": ("init", "4Gi"), "c": ("app", "2Gi")})
    forgotten = MemoryState(met.zones, {"p": {"a": met.blocks["p"]["a"]}})
    assert free(served(manager, pod, ZONE_1, forgotten)) == free(met)


def test_containers_give_back_what_their_blocks_say() -> None:
    manager = policy()
    state = served(manager, several({"a": ("init", "4Gi"), "c": ("app", "3Gi")}))
    without_init = manager.remove(state, "p", "a")
    assert (sizes(without_init), free(without_init)) == ({"c": "3Gi"}, "5Gi")
    without = manager.remove(without_init, "p", "c")
    assert (without.zones, without.blocks) == (manager.initial().zones, {})


@pytest.mark.parametrize("uid, name", [("p", "other"), ("q", "c")])
def test_removing_what_holds_nothing_changes_nothing(uid: str, name: str) -> None:
    manager = policy()
    state = served(manager, several({"c": ("app", "2Gi")}))
    assert manager.remove(state, uid, name) == state


LIFE: Containers = {"a": ("init", "1Gi"), "s": ("sidecar", "1Gi"), "b": ("init", "3Gi"), "c": ("app", "1Gi")}

# What is held once this container has started.
STARTED = {
    "a": {"a", "s", "b", "c"},
    "s": {"s", "b", "c"},
    "b": {"s", "b", "c"},
    "c": {"s", "c"},
}


@pytest.mark.parametrize("name, holding", STARTED.items(), ids=STARTED)
def test_a_container_that_starts_ends_the_init_containers_before_it(name: str, holding: set[str]) -> None:
    manager, pod = policy(), several(LIFE)
    state = manager.started(served(manager, pod), pod, name)
    assert set(state.blocks["p"]) == holding
    assert state.zones[1].assignments == len(holding)


def test_starting_twice_changes_nothing_more() -> None:
    manager, pod = policy(), several(LIFE)
    once = manager.started(served(manager, pod), pod, "c")
    assert manager.started(once, pod, "c") == once
    assert manager.started(once, pod, "d") == once


def test_init_containers_that_gave_back_are_charged_again_after_a_restart() -> None:
    manager, pod = policy(), several({"a": ("init", "4Gi"), "c": ("app", "1Gi")})
    running = manager.started(served(manager, pod), pod, "c")
    assert (free(running), sizes(running)) == ("7Gi", {"c": "1Gi"})
    again = served(manager, pod, ZONE_1, structs.replace(running, reuse=ReusableMemory()))
    assert (free(again), sizes(again)) == ("3Gi", {"c": "1Gi", "a": "4Gi"})


def test_collection_keeps_containers_of_active_pods_only() -> None:
    manager = policy()
    state = served(manager, several({"c": ("app", "1Gi"), "d": ("app", "2Gi")}))
    state = served(manager, several({"c": ("app", "4Gi")}, "q"), ZONE_1, state)
    left = manager.collect(state, {"p": {"c"}, "r": {"c"}})
    assert (sizes(left), sizes(left, "q"), free(left)) == ({"c": "1Gi"}, {}, "7Gi")
    assert manager.collect(state, {"p": {"c", "d"}, "q": {"c"}}) == state


def test_a_group_is_dissolved_by_its_last_container() -> None:
    manager = policy()
    state = served(manager, several({"c": ("app", "10Gi"), "d": ("app", "2Gi")}), BOTH)
    assert [cpuset.text(each.cells) for each in manager.remove(state, "p", "c").zones.values()] == ["0-1", "0-1"]
    assert manager.collect(state, {}).zones == manager.initial().zones
    assert manager.initial().zones[0].tables["memory"] == Table(7 * GIB)
