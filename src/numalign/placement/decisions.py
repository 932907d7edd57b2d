"""What the engine answers: decisions about pods, and wake-ups that follow from facts.

`scheduler.cycle` acts on a `Decision`, `scheduler.wakeups` on a `Wake`. Both are plain data; sentences are made of them
by `wording`."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Final, Protocol

from msgspec import Struct, field

from numalign.placement.entries import Entry


class Randomness(Protocol):
    """Whatever breaks ties: `random.Random` and NumPy's generators both do."""

    def random(self) -> float:
        """A number from 0 up to, but not including, 1."""
        ...


class Code(IntEnum):
    """Why a row is not a candidate. Whatever is not negative is a score; 0 means that the node has no report."""

    DOES_NOT_FIT = -1
    NOT_CERTAIN = -2
    NOT_DECIDED = -3
    TOTALS = -4
    INTENT = -5
    VACANT = -6


LAST_RESORT: Final = 1
"""Score of a row that amounts do not decide, or where it takes a search whether the pod is admitted in every order. If
no other is left, the kubelet's own managers are asked there, or the search is made."""


class Aligned(Struct, frozen=True, gc=False):
    """A container and the sets of zones (real ids) of which the kubelet will choose one; none: it is not aligned."""

    container: str
    zones: tuple[tuple[int, ...], ...]


class Decision(Struct, frozen=True, kw_only=True, gc=False):
    """Where a pod goes. `node` None: nowhere now, and `refused` counts the nodes by cause."""

    uid: str
    node: str | None = None
    score: int = 0
    placement: tuple[Aligned, ...] = ()
    entries: tuple[Entry, ...] = ()
    warning: str = ""
    """Cause code of a wish that the node does not keep; empty: none."""
    refused: Mapping[Code, int] = field(default_factory=dict)
    problem: str = ""
    """Why the pod itself cannot be used, as a sentence that names the field."""


class WakeCause(StrEnum):
    """What got better."""

    NODE = "node"
    REPORT = "report"
    FREED = "freed"


class Wake(Struct, frozen=True):
    """Pods that did not fit may fit on this node now."""

    node: str
    cause: WakeCause
