"""Amounts as a report gives them: CPUs, bytes, or numbers of devices.

The model counts node totals of cpu in milli-CPUs and everything else in whole units; people and scripts want one unit
per resource."""

from __future__ import annotations

from numalign.api.objects import resourcenames
from numalign.api.objects.pod import ResourceList

Amount = int | float


def requested(written: ResourceList) -> dict[str, Amount]:
    counted = {name: each.milli if name == resourcenames.CPU else each.value for name, each in written.items()}
    return {name: total(name, amount) for name, amount in counted.items()}


def total(resource: str, counted: int) -> Amount:
    """A node total as the model counts it; only a fraction of a CPU makes it other than a whole number."""
    if resource != resourcenames.CPU:
        return counted
    return counted / 1000 if counted % 1000 else counted // 1000
