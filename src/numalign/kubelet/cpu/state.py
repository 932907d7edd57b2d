"""The state of the CPU Manager: the shared pool, exclusive CPUs by container, and CPUs that init containers leave.

An immutable value. `assignments` and `pods` are checkpointed; `reuse` lives as long as the kubelet process (kubelet
spec 9)."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field, structs

Assignments = Mapping[str, Mapping[str, int]]
"""Pod uid to container name to CPU set."""


class ReusableCpus(Struct, frozen=True):
    """CPUs that one pod's init containers held and its next container may reuse. Only the last pod's are kept."""

    uid: str = ""
    cpus: int = 0


class CPUState(Struct, frozen=True):
    """`default` is the shared pool: all CPUs that no container holds exclusively."""

    default: int
    assignments: Assignments = field(default_factory=dict)
    pods: Mapping[str, int] = field(default_factory=dict)
    """CPUs of pods that are served as a whole (pod-level resources)."""
    reuse: ReusableCpus = ReusableCpus()

    def assigned(self, uid: str, container: str) -> int | None:
        return self.assignments.get(uid, {}).get(container)

    def reusable(self, uid: str) -> int:
        return self.reuse.cpus if self.reuse.uid == uid else 0

    def with_assignments(self, uid: str, cpus: Mapping[str, int]) -> CPUState:
        return structs.replace(self, assignments={**self.assignments, uid: {**self.assignments.get(uid, {}), **cpus}})

    def without_container(self, uid: str, container: str) -> CPUState:
        remaining = {name: cpus for name, cpus in self.assignments.get(uid, {}).items() if name != container}
        others = {other: held for other, held in self.assignments.items() if other != uid}
        return structs.replace(self, assignments={**others, uid: remaining} if remaining else others)
