"""The families of recorded kubelet cases.

`vectors` calls `recognised` for every case. Each module holds one family: its schema, and how the model answers its
cases."""

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
    """The family whose inputs the case has most of. A case that lacks a field is still recognised, so that the error
    can name the field."""
    likeliest = max(FAMILIES, key=lambda family: _likeness(family, case))
    present, _, _ = _likeness(likeliest, case)
    return likeliest if present > 0.5 else None


def _likeness(family: Family, case: Mapping[str, object]) -> tuple[float, int, bool]:
    """The share of the family's inputs that are present, the number of inputs, and whether the id has the family's
    prefix."""
    present = len(family.inputs & case.keys()) / len(family.inputs)
    named = bool(family.prefix) and str(case.get("id", "")).startswith(family.prefix)
    return present, len(family.inputs), named
