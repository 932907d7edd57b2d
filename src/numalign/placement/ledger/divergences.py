"""What a fact changed in the ledger, and where a node contradicted a prediction.

Every call of the ledger returns a `Change`: `sync` reads those rows again and wakes waiting pods. The ledger makes a
`Divergence` when a report or a pod's end contradicts a prediction, corrects itself and goes on. Metrics count
divergences by kind, logs and `explain` show the latest. Nothing here decides anything."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

KEPT: Final = 64
"""Number of divergences that are kept for display; all of them are counted."""

Zones = tuple[int, ...]
"""Real ids."""


class DivergenceKind(StrEnum):
    """What differs from the prediction."""

    ZONES = "zones"
    """A container has zones that were not predicted."""
    AMOUNT = "amount"
    """A pod holds more or less of something than predicted."""
    NOTHING_HELD = "nothing-held"
    """A pod runs for long, and reports that name pods never name it."""
    TOTALS = "totals"
    """Zones have less free of a resource than the pods that the report covers explain; `observed` names them."""
    REFUSED = "refused"
    """The kubelet did not admit a pod that was predicted to fit."""


class Divergence(Struct, frozen=True, kw_only=True):
    """One contradiction. Zones are real ids; amounts are in the units of `RowFacts`."""

    kind: DivergenceKind
    node: str
    pod: str = ""
    container: str = ""
    """Empty: the pod as a whole."""
    resource: str = ""
    predicted: tuple[Zones, ...] = ()
    """Every set of zones that was possible."""
    observed: Zones = ()
    modelled: int = 0
    reported: int = 0
    reason: str = ""
    """The kubelet's reason for the rejection."""


class Divergences:
    """Counts of divergences by kind, and the latest ones."""

    def __init__(self) -> None:
        self.counts: Counter[DivergenceKind] = Counter()
        self.latest: deque[Divergence] = deque(maxlen=KEPT)

    def add(self, found: Iterable[Divergence]) -> None:
        for divergence in found:
            self.counts[divergence.kind] += 1
            self.latest.append(divergence)


class Change(Struct, frozen=True):
    """Nodes whose rows must be read again, whether something became free there, and divergences."""

    rows: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    divergences: tuple[Divergence, ...] = ()


NOTHING: Final = Change()


class Problem(StrEnum):
    """Unexpected input that the ledger tolerates and counts."""

    POD_ON_TWO_NODES = "pod-on-two-nodes"
    """A bound pod changed its node, which the API forbids. Both nodes stay charged until the pod is deleted."""
    ZONE_VANISHED = "zone-vanished"
    """A pod held something in a zone that the node does not report any more; it is charged no longer."""
    PLACED_NOWHERE = "placed-nowhere"
    """The model finds no zones for a pod that is on the node; the pod is charged to every zone."""
    FORECAST_IMPOSSIBLE = "forecast-impossible"
    """The pod's placement annotation is impossible on its node, so it is ignored."""
