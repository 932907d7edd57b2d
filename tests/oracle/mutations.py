"""Recorded cases made wrong in every place: one change at a time, to a value that the model is expected to give.

A pattern names a place in all cases of a family: `steps[].cpus`, and `*` for any key. `INPUTS` lists what the model is
given; there, only keys that no schema knows are wrong. Everything else is an expectation, known to this module or not.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any, NamedTuple

from tests.oracle import recordings

CPU_NODE = {"id", "topology", "options", "tm_policy", "num_reserved", "reserved_cpus", "default", "assignments", "pod"}
OPS = {"ops[].op", "ops[].pod", "ops[].container", "ops[].affinity"}
LIFE = {"id", "topology", "config", "memory_nodes", "devices", "ops[].op", "ops[].uid"}
LIFE |= {f"ops[].pod.{field}" for field in ("uid", "pod_resources", "init", "containers")}

INPUTS: dict[str, set[str]] = {
    "tm_merge": {"id", "policy", "prefer_closest", "numa_nodes", "distances", "providers"},
    "cpu_static": {*CPU_NODE, "steps[].affinity"},
    "cpu_distribute": {*CPU_NODE, "steps[].affinity"},
    "cpu_livelock": {*CPU_NODE, "container", "affinity"},
    "mem_static": {*OPS, "id", "nodes", "reserved", "pods"},
    "device_hints": {*OPS, "id", "numa_nodes", "resources", "pods"},
    "sequence": LIFE,
    "sequence_podlevel": LIFE,
}

SCRIPT = "ops"
"""What happens to a node is the recorder's choice; what came of each op is not."""

MAPS = {"hints", "pod_hints", "pod_hints_after", "initial_state", "memory", "free", "machine_state", "pod_blocks"}
MAPS |= {"devices", "class_counts", "devices_in_use", "containers", "options", "assignments", "requests", "limits"}
MAPS |= {"reserved", "resources", "cpu_options", "tm_options", "providers[]", "assignments.*", "reserved.*"}
"""Objects whose keys are names of things, not of fields."""

UNKNOWN = "no_such_field"


class Mutation(NamedTuple):
    place: str
    what: str
    case: Any


class Mutator:
    """Makes the cases of one family wrong."""

    def __init__(self, family: str) -> None:
        self.inputs = INPUTS[family]
        self.vocabulary = _vocabulary(family)

    def of(self, value: Any, place: str = "", pattern: str = "", *, given: bool = False) -> Iterator[Mutation]:
        """The value with one thing wrong, for every thing that can be wrong."""
        given = given or pattern in self.inputs
        if isinstance(value, dict):
            yield from self._keys(value, place, pattern, given=given)
            for key, item in value.items():
                for changed in self.of(item, f"{place}.{key}", _inside(pattern, key), given=given):
                    yield changed._replace(case={**value, key: changed.case})
        elif isinstance(value, list):
            if not given and pattern != SCRIPT:
                yield from _items(value, place)
            for index, item in enumerate(value):
                for changed in self.of(item, f"{place}[{index}]", f"{pattern}[]", given=given):
                    yield changed._replace(case=[*value[:index], changed.case, *value[index + 1 :]])
        elif not given:
            yield from (Mutation(place, f"is {other!r}", other) for other in _others(value))

    def _keys(self, value: dict[str, Any], place: str, pattern: str, *, given: bool) -> Iterator[Mutation]:
        if not given or not _is_map(pattern):
            yield Mutation(place, "has an unknown key", {**value, UNKNOWN: None})
        if given:
            return
        for key in value:
            if _inside(pattern, key) not in self.inputs:
                yield Mutation(f"{place}.{key}", "is gone", {name: value[name] for name in value if name != key})
        for key, sample in self.vocabulary.get(pattern, {}).items():
            if key not in value and _inside(pattern, key) not in self.inputs:
                yield Mutation(f"{place}.{key}", "is there", {**value, key: sample})


def _items(value: list[Any], place: str) -> Iterator[Mutation]:
    yield Mutation(place, "has one more", [*value, value[-1] if value else None])
    if value != value[::-1]:
        yield Mutation(place, "is reversed", value[::-1])
    for index in range(len(value)):
        yield Mutation(f"{place}[{index}]", "is gone", value[:index] + value[index + 1 :])


def _others(value: Any) -> list[Any]:
    match value:
        case bool():
            return [not value, int(value), None]
        case int():
            return [value + 1, value - 1, float(value), str(value), None]
        case str():
            return [f"{value}x", value[:-1] if value else " ", None]
    return [0, False, "", [], {}]


@cache
def _is_map(pattern: str) -> bool:
    return any(pattern == name or pattern.endswith(f".{name}") for name in MAPS)


@cache
def _inside(pattern: str, key: str) -> str:
    step = "*" if _is_map(pattern) else key
    return f"{pattern}.{step}" if pattern else step


@cache
def _vocabulary(family: str) -> dict[str, dict[str, Any]]:
    """Which fields some case of the family has at a place, with a value from there."""
    known: dict[str, dict[str, Any]] = {}
    for case in recordings.cases(family).values():
        _learn(case, "", known)
    return known


def _learn(value: Any, pattern: str, known: dict[str, dict[str, Any]]) -> None:
    if isinstance(value, list):
        for item in value:
            if isinstance(item, dict):
                _learn(item, f"{pattern}[]", known)
    elif isinstance(value, dict):
        seen = known.setdefault(pattern, {})
        if not value.keys() <= seen.keys() and not _is_map(pattern):
            known[pattern] = {**value, **seen}
        for key, item in value.items():
            _learn(item, _inside(pattern, key), known)
