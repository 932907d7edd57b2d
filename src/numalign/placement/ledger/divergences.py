"""Where the node said otherwise than we did.

The ledger makes a `Divergence` when a report or a pod's end contradicts a prediction, corrects itself and goes on.
Metrics count them by kind, logs and `explain` show the latest; nothing here decides anything."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from msgspec import Struct

KEPT: Final = 64
"""The latest divergences, for people who look; all of them are counted."""

Zones = tuple[int, ...]
"""Real ids."""


class DivergenceKind(StrEnum):
    """What turned out different."""

    ZONES = "zones"
    """A container sits where it was not expected."""
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
    """The kubelet's word for a refusal."""


class Divergences:
    """All that were counted, and the latest of them."""

    def __init__(self) -> None:
        self.counts: Counter[DivergenceKind] = Counter()
        self.latest: deque[Divergence] = deque(maxlen=KEPT)

    def add(self, found: Iterable[Divergence]) -> None:
        for divergence in found:
            self.counts[divergence.kind] += 1
            self.latest.append(divergence)
