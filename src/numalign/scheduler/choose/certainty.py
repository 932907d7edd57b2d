"""What comes before scores: how sure it is that a node takes the pod, by what the engine says about its zones.

`choosing` and `standings` rank nodes by tier first. Pure."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from numalign.api.objects import resourcenames
from numalign.api.objects.qos import QoS
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import LAST_RESORT, Codes

NOMINATED: Final = 3
BY_SCORE: Final = 2
BY_SEARCH: Final = 1
"""Amounts alone do not decide."""
UNKNOWN: Final = 0
"""A pod that kubelets align, on a node without a report: nobody knows what happens to it there."""
NOT_REPORTED: Final = 0


def of_rows(codes: Codes, *, aligned: bool) -> NDArray[np.int64]:
    tiers = np.full(len(codes), BY_SCORE, np.int64)
    tiers[codes == LAST_RESORT] = BY_SEARCH
    if aligned:
        tiers[codes == NOT_REPORTED] = UNKNOWN
    return tiers


def of_row(code: int, *, aligned: bool) -> int:
    """Twin of `of_rows` for one row."""
    if code == LAST_RESORT:
        return BY_SEARCH
    return UNKNOWN if aligned and code == NOT_REPORTED else BY_SCORE


def is_aligned(shape: Shape) -> bool:
    """Whether kubelets may pin something of it: CPUs and memory of guaranteed pods, anybody's devices."""
    return shape.qos is QoS.GUARANTEED or any(map(resourcenames.is_extended, shape.totals))
