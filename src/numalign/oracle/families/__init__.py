"""The families of recorded cases, and how to tell which one a case belongs to.

`vectors` asks `recognised` for every case it reads. One module per family; each knows its schema and how to put its
cases to the model."""

from __future__ import annotations

from collections.abc import Mapping

from numalign.oracle.families import (
    cpu_distribute,
    cpu_livelock,
    cpu_static,
    device_hints,
    mem_static,
    sequence,
    tm_merge,
)
from numalign.oracle.families.family import Family

FAMILIES: tuple[Family, ...] = (
    tm_merge.FAMILY,
    cpu_static.FAMILY,
    cpu_distribute.FAMILY,
    cpu_livelock.FAMILY,
    mem_static.FAMILY,
    device_hints.FAMILY,
    sequence.FAMILY,
    sequence.POD_LEVEL,
)


def recognised(case: Mapping[str, object]) -> Family | None:
    """The family by the inputs that the case has, so that one that lacks a field is still told what it lacks."""
    likeliest = max(FAMILIES, key=lambda family: _likeness(family, case))
    present, _, _ = _likeness(likeliest, case)
    return likeliest if present > 0.5 else None


def _likeness(family: Family, case: Mapping[str, object]) -> tuple[float, int, bool]:
    """How much of the family's inputs there is, how much that says, and what the id says between equals."""
    present = len(family.inputs & case.keys()) / len(family.inputs)
    named = bool(family.prefix) and str(case.get("id", "")).startswith(family.prefix)
    return present, len(family.inputs), named
