"""A family of recorded kubelet cases: its name, the schema of its inputs, and the model's answer.

A family's module defines the schema twice. `Case` has the inputs, which is all that the model sees. `Answer` repeats
them and adds the model's results, so a recorded field outside the schema counts as a difference."""

from collections.abc import Callable
from functools import cached_property
from typing import Any

from msgspec import Struct, structs

from numalign.kubelet.versions import Minor
from numalign.oracle.kubelet.forms import Topologies, Topology

RECORDED_FROM = Minor(1, 37)
"""The kubelet version of a recording that does not name one. The recordings are from the development branch of 1.38,
when no rule of the kubelet differed from 1.37."""

OPTION_GATES = {"CPUManagerPolicyAlphaOptions": True, "CPUManagerPolicyBetaOptions": True}
"""Feature gates that were on while CPU manager options were recorded."""


class CaseOrigin(Struct, frozen=True):
    """The kubelet version of a case, and the machines that it may name."""

    topologies: Topologies = {}
    minor: Minor = RECORDED_FROM

    def topology(self, given: str | Topology) -> Topology:
        """The machine of a case: named in the table, or part of the case."""
        return self.topologies[given] if isinstance(given, str) else given


class Family(Struct, frozen=True, dict=True):
    """One kind of recorded case."""

    name: str
    case: type[Struct]
    answer: Callable[[Any, CaseOrigin], Struct]
    prefix: str = ""
    """The prefix of ids, where two families share a schema."""

    @cached_property
    def inputs(self) -> frozenset[str]:
        """The required fields of a case."""
        return frozenset(field.name for field in structs.fields(self.case) if field.required)
