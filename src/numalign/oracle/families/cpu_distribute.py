"""Recorded single-container pods under `distribute-cpus-across-numa`, on machines with five to eight zones.

The schema is that of `cpu_static` without hints and removals, which were not recorded. A case that has them differs."""

from __future__ import annotations

from msgspec import UNSET, structs

from numalign.oracle.families import cpu_static
from numalign.oracle.families.cpu_static import Answer, Case
from numalign.oracle.families.family import Family, Origin


def answer(case: Case, origin: Origin) -> Answer:
    full = cpu_static.answer(case, origin)
    steps = tuple(structs.replace(step, hints=None) for step in full.steps or ())
    return structs.replace(
        full,
        steps=UNSET if full.steps is UNSET else steps,
        pod_hints=None,
        pod_hints_after=None,
        removals=UNSET,
    )


FAMILY = Family("cpu_distribute", Case, answer, prefix="cpud-")
