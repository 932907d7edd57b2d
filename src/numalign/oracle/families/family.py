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
from numalign.oracle.families.hardware import Topologies, Topology

RECORDED_FROM = Minor(1, 38)
"""The kubelet that a case was recorded from if it does not say."""

OPTION_GATES = {"CPUManagerPolicyAlphaOptions": True, "CPUManagerPolicyBetaOptions": True}
"""Gates that were on while CPU manager options were recorded."""


class Origin(Struct, frozen=True):
    """Where a case comes from: the kubelet that was asked, and the machines that cases may name."""

    topologies: Topologies = {}
    minor: Minor = RECORDED_FROM

    def topology(self, given: str | Topology) -> Topology:
        """A case names a machine of the table, or brings its own."""
        return self.topologies[given] if isinstance(given, str) else given


class Family(Struct, frozen=True, dict=True):
    """One kind of recorded case."""

    name: str
    case: type[Struct]
    answer: Callable[[Any, Origin], Struct]
    prefix: str = ""
    """How ids begin, where two families share a schema."""

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The fields without which there is no such case."""
        return frozenset(field.name for field in structs.fields(self.case) if field.required)
