"""What a fact changed in the ledger, for whoever keeps rows or wakes pods."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from numalign.placement.ledger.divergences import Divergence


class Change(Struct, frozen=True):
    """Nodes whose rows are to be read again, whether something came free there, and what turned out wrong."""

    rows: tuple[str, ...] = ()
    freed: tuple[str, ...] = ()
    divergences: tuple[Divergence, ...] = ()


NOTHING: Final = Change()


class Problem(StrEnum):
    """Odd things that were survived; the ledger counts them."""

    POD_ON_TWO_NODES = "pod-on-two-nodes"
    """Never legal. Both nodes stay charged until the pod is gone."""
    ZONE_VANISHED = "zone-vanished"
    """A pod held something in a zone that the node does not report any more; it is charged no longer."""
    POD_NOT_UNDERSTOOD = "pod-not-understood"
    """An annotation of ours on the pod cannot be read; it is placed as if it had none."""
    PLACED_NOWHERE = "placed-nowhere"
    """The model has no room for a pod that is on the node; it is charged to every zone."""
    FORECAST_IMPOSSIBLE = "forecast-impossible"
    """A pod says where it was to go, and its node cannot have done that; it is placed as if it said nothing."""
