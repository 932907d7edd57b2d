"""What makes a case one that could be: every flaw is noticed by its own sentence, and nothing that is drawn has one."""

from collections.abc import Callable
from copy import deepcopy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet import validity
from numalign.oracle.kubelet.generate import cases

Case = dict[str, Any]


def fixed(family: str, wanted: Callable[[Case], object] = lambda case: True) -> Case:
    """The first case of a fixed series that is as wanted."""
    made = (cases.make(Random(f"validity/{number}"), family, "x") for number in range(500))
    return next(case for case in made if wanted(case))


def hints(case: Case) -> list[Any]:
    return [listed for provider in case["providers"] for listed in (provider or {}).values() if listed]


MERGE = fixed("tm_merge", lambda case: case["prefer_closest"] and any(hints(case)))
CPU = fixed("cpu_static", lambda case: case["assignments"] and not case["options"])
MEMORY = fixed("mem_static", lambda case: len(case["nodes"]) > 1 and case["nodes"][0]["hugepages"])
DEVICES = fixed("device_hints", lambda case: len(case["numa_nodes"]) > 1)
LIFE = fixed("sequence", lambda case: case["config"]["reserved_cpus"])


def changed(case: Case, change: Callable[[Case], object]) -> Case:
    copy = deepcopy(case)
    change(copy)
    return copy


FLAWS: dict[str, tuple[Case, Callable[[Case], object], str]] = {
    "a zone of a mask is gone": (MERGE, lambda c: c["numa_nodes"].clear(), "a mask names zones of the machine"),
    "an empty mask": (MERGE, lambda c: hints(c)[0][0].update(mask=[]), "a mask names zones of the machine"),
    "short distances": (MERGE, lambda c: c["distances"].pop(), "distances reach every zone"),
    "no distances": (MERGE, lambda c: c.update(distances=None), "distances are given where closest zones are"),
    "a core is gone": (CPU, lambda c: c["topology"]["numa"][0]["cores"].clear(), "only CPUs of the machine are held"),
    "a core is there twice": (
        CPU,
        lambda c: c["topology"]["numa"][0]["cores"].extend(c["topology"]["numa"][0]["cores"]),
        "a machine has CPUs, each of them once",
    ),
    "a wrong count of CPUs": (CPU, lambda c: c["topology"].update(num_cpus=99), "num_cpus counts the CPUs"),
    "a wrong count of sockets": (CPU, lambda c: c["topology"].update(num_sockets=9), "num_sockets counts"),
    "CPUs of nobody": (CPU, lambda c: c["assignments"].clear(), "every CPU is either shared or held"),
    "all CPUs shared": (CPU, lambda c: c.update(reserved_cpus="", num_reserved=1), "no container holds reserved CPUs"),
    "another number reserved": (CPU, lambda c: c.update(num_reserved=77), "as many CPUs are reserved as there are"),
    "a container without step": (CPU, lambda c: c["steps"].pop(), "there is a step for every container"),
    "a container that stays": (CPU, lambda c: c["removals"].pop(), "every container is removed"),
    "no containers": (CPU, lambda c: c["pod"]["containers"].clear(), "a pod has containers, each with a name"),
    "a limit without request": (
        CPU,
        lambda c: c["pod"]["containers"][0].update(requests={}, limits={"cpu": "1"}),
        "what has a limit is requested",
    ),
    "a device without limit": (
        CPU,
        lambda c: c["pod"]["containers"][0].update(requests={"cpu": "1", "a/b": "1"}, limits={"cpu": "1"}),
        "devices and pages have limits",
    ),
    "memory of an unknown zone": (MEMORY, lambda c: c["nodes"].pop(), "memory is reserved in zones of the machine"),
    "uneven page sizes": (MEMORY, lambda c: c["nodes"][0]["hugepages"].clear(), "every zone knows the same page"),
    "no reservation": (MEMORY, lambda c: c["reserved"].clear(), "some memory is reserved"),
    "an op of no pod": (MEMORY, lambda c: c["pods"].clear(), "ops name pods and containers of the case"),
    "two pods of one uid": (MEMORY, lambda c: c["pods"].append(c["pods"][0]), "every pod has a uid of its own"),
    "unsorted zones": (DEVICES, lambda c: c["numa_nodes"].reverse(), "zones are listed once, in the order"),
    "a plugin without devices": (
        DEVICES,
        lambda c: [plugin["devices"].clear() for plugin in c["resources"].values()],
        "a plugin has devices, each of them once",
    ),
    "devices of no plugin": (
        DEVICES,
        lambda c: c["pods"][0]["containers"][0].update(requests={"a/b": "1"}, limits={"a/b": "1"}),
        "pods ask for devices of a plugin",
    ),
    "devices of an unknown zone": (
        DEVICES,
        lambda c: next(iter(c["resources"].values()))["devices"][0].update(numa=[63]),
        "a device is in zones of the machine",
    ),
    "a start before the pod": (
        LIFE,
        lambda c: c["ops"].insert(0, {"op": "start", "uid": "p00"}),
        "only pods that came are started and removed",
    ),
    "zones without memory": (
        LIFE,
        lambda c: c["memory_nodes"].append({**c["memory_nodes"][0], "id": 60}),
        "every zone",
    ),
    "a reserved CPU that is not there": (
        LIFE,
        lambda c: c["config"].update(reserved_cpus="900"),
        "only CPUs of the machine are reserved",
    ),
}


@pytest.mark.parametrize("case, change, sentence", FLAWS.values(), ids=FLAWS)
def test_a_flaw_is_noticed(case: Case, change: Callable[[Case], object], sentence: str) -> None:
    assert not validity.flaws(case)
    assert any(flaw.startswith(sentence) for flaw in validity.flaws(changed(case, change)))


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_nothing_that_is_drawn_has_a_flaw(seed: int, number: int) -> None:
    _, case = cases.draw(seed, number, Minor(1, 37))
    assert validity.flaws(case) == frozenset()
