"""The results of the engine: decisions about pods, and wake-ups that follow from facts.

`scheduler.cycle` acts on a `Decision`, `scheduler.wakeups` on a `Wake`. Both are plain data;
`wording` makes sentences from them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, StrEnum
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from numalign.api.attributes.directresult import DirectResult
from numalign.api.objects.pod import Pod
from numalign.placement.columns.holdings import Aligned, Entry


class Randomness(Protocol):
    """A source of random numbers to break ties, such as `random.Random`."""

    def random(self) -> float:
        """A number from 0 up to, but not including, 1."""
        ...


class Code(IntEnum):
    """Why a row is not a candidate. Values of 0 and above are scores; 0 means that the node has no report."""

    DOES_NOT_FIT = -1
    NOT_CERTAIN = -2
    NOT_DECIDED = -3
    TOTALS = -4
    INTENT = -5
    VACANT = -6


class Certainty(IntEnum):
    """How certain it is that a node admits the pod, lowest first."""

    UNKNOWN = 0
    """The pod needs alignment, and the node has no report."""
    BY_SEARCH = 1
    """Amounts alone do not decide."""
    BY_SCORE = 2


Codes = NDArray[np.signedinteger[Any]]
"""A `Code` or a score for every row. Scores end at 100, so a byte per row is enough."""

SCORES: Final = np.arange(128)
"""All that a row may score, and more."""
HIGHEST: Final = 100
LAST_RESORT: Final = 1
"""Score of a row where amounts do not decide, or where only a search shows whether the pod is admitted in every order.
If no other row is left, the kubelet model is run there, or the search is made."""


class Holder(Protocol):
    """What a pod gets on its node: a template that pods of its shape share, or `Held`."""

    @property
    def entries(self) -> tuple[Entry, ...]: ...

    def placement(self, pod: Pod) -> tuple[Aligned, ...]:
        """The zones of its containers by real ids."""
        ...


class Held(Struct, frozen=True):
    """What a pod gets on its node without a template."""

    aligned: tuple[Aligned, ...] = ()
    entries: tuple[Entry, ...] = ()

    def placement(self, _: Pod) -> tuple[Aligned, ...]:
        return self.aligned


NOTHING: Final = Held()


class Decision(Struct, frozen=True, eq=False, gc=False):
    """Where a pod goes.

    Thousands may be made per second, so container names and zones are combined only on request."""

    uid: str
    node: str
    score: int = 0
    warning: str = ""
    """Cause code of an intent that the node does not keep; empty: none."""
    holder: Holder = NOTHING
    pod: Pod | None = None
    direct: DirectResult | None = None
    """What the node's agent has to do for the pod. None: its kubelet decides."""
    in_turn: bool = False
    """Whether pods on their way to the node may get other zones than predicted if this one is admitted before them."""

    @property
    def placement(self) -> tuple[Aligned, ...]:
        return self.holder.placement(self.pod) if self.pod is not None else ()

    @property
    def entries(self) -> tuple[Entry, ...]:
        return self.holder.entries

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Decision) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash((self.uid, self.node, self.score))

    def _fields(self) -> tuple[object, ...]:
        return self.uid, self.node, self.score, self.warning, self.placement, self.entries


class WakeCause(StrEnum):
    """What improved on the node."""

    NODE = "node"
    REPORT = "report"
    FREED = "freed"
    GRACE = "grace"
    """The time that the node has for its first report is over."""


class Wake(Struct, frozen=True):
    """Pods that did not fit may fit on this node now."""

    node: str
    cause: WakeCause


class Statistics(Struct, frozen=True, kw_only=True):
    """The counters of a flavour, for metrics; empty if it has none."""

    divergences: Mapping[Any, int] = {}
    """Contradictions between a prediction and a report, by kind."""
    model_placements: Mapping[Any, int] = {}
    """Pods that were placed by the row model or the kubelet model, by path."""
    rows_evaluated: int = 0
    problems: Mapping[Any, int] = {}
    """Parts of reports that were ignored, by name."""
    pods_by_source: Mapping[str, int] = {}
    """Pods on nodes, by how their zones are known."""


NO_STATISTICS: Final = Statistics()
