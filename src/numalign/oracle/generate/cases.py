"""Generates kubelet cases of every family from a seed and a number."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import Any, Final

import msgspec

from numalign.kubelet.versions import Minor
from numalign.oracle.families.hardware import Topology
from numalign.oracle.generate import cpus, devices, memory, merges, sequences, topologies

Case = dict[str, Any]

WEIGHTS: Final[Mapping[str, float]] = {
    "tm_merge": 45,
    "cpu_static": 33,
    "cpu_distribute": 5,
    "mem_static": 5,
    "device_hints": 7,
    "sequence": 5,
    "sequence_podlevel": 1,
}
"""How often each family is drawn. Most are cheap; sequences of whole nodes are slower."""

POD_LEVEL_SINCE: Final = Minor(1, 36)


def families(minor: Minor) -> Mapping[str, float]:
    """The families that a kubelet of this minor can answer."""
    if minor >= POD_LEVEL_SINCE:
        return WEIGHTS
    return {name: weight for name, weight in WEIGHTS.items() if name != "sequence_podlevel"}


def draw(seed: int, number: int, minor: Minor) -> tuple[str, Case]:
    """The family and the case with this number."""
    rng = Random(f"{seed}/{number}")
    weights = families(minor)
    family = rng.choices(list(weights), list(weights.values()))[0]
    return family, make(rng, family, f"{PREFIXES[family]}{seed}-{number}")


def make(rng: Random, family: str, name: str) -> Case:
    match family:
        case "tm_merge":
            return merges.case(rng, name)
        case "mem_static":
            return memory.case(rng, name)
        case "device_hints":
            return devices.case(rng, name)
        case "cpu_static":
            return _on_a_machine(rng, lambda machine: cpus.case(rng, name, machine))
        case "cpu_distribute":
            return _on_a_machine(rng, lambda machine: cpus.distributing(rng, name, machine))
        case _:
            pod_level = family == "sequence_podlevel"
            return _on_a_machine(rng, lambda machine: sequences.case(rng, name, machine, pod_level=pod_level), most=6)


# Id prefixes tell families with the same schema apart.
PREFIXES: Final[Mapping[str, str]] = {
    "tm_merge": "merge-",
    "cpu_static": "cpu-",
    "cpu_distribute": "cpud-",
    "mem_static": "mem-",
    "device_hints": "dev-",
    "sequence": "seq-",
    "sequence_podlevel": "seqpl-",
}


def _on_a_machine(rng: Random, made_for: Any, most: int = topologies.MAX_ZONES) -> Case:
    described = topologies.topology(rng, "made-up", most_zones=most)
    case: Case = made_for(msgspec.convert(described, Topology))
    return {**case, "topology": described}
