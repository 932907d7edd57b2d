"""What a family of recorded cases is to the rest of this room: a name, the inputs of a case, and a way to answer it.

A family's module holds the recorded schema twice: `Case` has the inputs alone, which is all that the model gets to
see, and `Answer` adds what the model has to say. An answer repeats the inputs, so whatever a recording holds beyond the
schema has nothing beside it and counts as a difference."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from numalign.kubelet.versions import Minor
from numalign.oracle.hardware import Topologies

RECORDED_FROM = Minor(1, 38)
"""The kubelet that all cases were recorded from."""

OPTION_GATES = {"CPUManagerPolicyAlphaOptions": True, "CPUManagerPolicyBetaOptions": True}
"""Gates that were on while CPU manager options were recorded."""


class Family(Struct, frozen=True, dict=True):
    """One kind of recorded case."""

    name: str
    case: type[Struct]
    answer: Callable[[Any, Topologies], Struct]
    prefix: str = ""
    """How ids begin, where two families share a schema."""

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The fields without which there is no such case."""
        return frozenset(field.name for field in structs.fields(self.case) if field.required)

    @property
    def needs_topologies(self) -> bool:
        return "topology" in self.inputs
