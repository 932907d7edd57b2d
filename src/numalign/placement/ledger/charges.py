"""The correction that one pod applies to the free amounts of its node's report.

A report's amounts account for the pods that it covers. Pods that it does not cover are charged on top. Covered pods
that ended since are given back. Where the node may be in either state, the difference is kept as a bound (engine spec
9): a charge that is not certain lowers what is surely free, a doubtful return raises what is possibly free.
`nodeledger` adds the charges of all pods up. The same record and report always give the same charges."""

from __future__ import annotations

from enum import Enum
from typing import Final

from msgspec import Struct, structs

from numalign.api.caches import BoundedCache
from numalign.placement.columns.holdings import Entry, Holding

MOST_KNOWN: Final = 8192
HOMELESS = -1
"""The position of devices that belong to no zone."""

Entries = tuple[Entry, ...]
Amount = tuple[tuple[int, int], int]
"""(column, position), and how much is added to what is free there."""


class PodLife(Enum):
    """The phase of a pod, as far as it matters for its resources."""

    LIVE = "live"
    LINGERING = "lingering"
    """The pod's object was deleted; its containers may still run."""
    ENDED = "ended"


class Cover(Enum):
    """Whether the report's amounts account for a pod."""

    NO = "no"
    YES = "yes"
    DOUBT = "doubt"


class PodCharges(Struct, frozen=True):
    """Changes of what is free, exact ones and bounds."""

    exact: tuple[Amount, ...] = ()
    charged: tuple[Entry, ...] = ()
    """Charges whose zones are not known exactly, or that are not certain."""
    blocks: tuple[Entry, ...] = ()
    """Memory of several zones that it binds into a group, of which only the sum counts (engine spec R5)."""
    returned: tuple[Entry, ...] = ()
    """Memory blocks that became free."""
    doubtful: tuple[Entry, ...] = ()
    """Amounts that may have become free, somewhere in their zones."""
    explained: tuple[Entry, ...] = ()
    """What the report may have deducted for the pod."""

    @property
    def is_vague(self) -> bool:
        """Whether the charges have bounds or blocks besides exact amounts."""
        return bool(self.charged or self.blocks or self.returned or self.doubtful)


NONE = PodCharges()


def share(holding: Holding, hidden: tuple[Entry, ...], life: PodLife, cover: Cover) -> PodCharges:
    """The charges of one pod. `hidden`: what a report that covers the pod does not show of it."""
    if life is PodLife.LIVE and cover is Cover.NO:
        return _newcomers(holding.entries)
    shown = () if cover is Cover.NO else holding.entries
    # Publishers that read the managers' checkpoints also deduct what they do not list.
    deducted = shown + hidden
    if life is PodLife.ENDED:
        return _returned(holding.entries) if cover is Cover.YES else PodCharges(doubtful=shown, explained=deducted)
    held = hidden if cover is Cover.YES else holding.entries
    if life is PodLife.LIVE:
        return _charge(held, deducted, certain=cover is not Cover.DOUBT)
    # The pod may still run or not, whatever the report says: the Pod Resources API omits such pods.
    return _charge(held, deducted, certain=False, doubtful=shown)


def _newcomers(entries: Entries) -> PodCharges:
    """The charges of a pod that the report does not cover. Replicas hold the same entries and share one object."""
    known = _KNOWN.get(id(entries))
    if known is None:
        known = _KNOWN.keep(id(entries), (entries, _charge(entries, (), certain=True)))
    return known[1]


_KNOWN: Final[BoundedCache[int, tuple[Entries, PodCharges]]] = BoundedCache(MOST_KNOWN)
"""By the identity of the entries. The entries are kept alive, so that no other object gets the same identity."""


def is_block(entry: Entry) -> bool:
    """Whether it is memory that lies in all of its zones as one group, or in one zone."""
    return entry.certain and 0 < entry.span == entry.zones.bit_count()


def _charge(entries: Entries, explained: Entries, *, certain: bool, doubtful: Entries = ()) -> PodCharges:
    if not entries:
        return PodCharges(doubtful=doubtful, explained=explained)
    exact: list[Amount] = []
    charged: list[Entry] = []
    blocks: list[Entry] = []
    for entry in entries:
        # What has no zone counts in the node's sum alone, where the lower bound is all that is looked at.
        if not entry.zones or (certain and entry.is_exact):
            exact.append(_exact(entry, -1))
        elif certain and is_block(entry):
            blocks.append(entry)
        else:
            charged.append(entry if certain else structs.replace(entry, certain=False))
    return PodCharges(
        exact=tuple(exact),
        charged=tuple(charged),
        blocks=tuple(blocks),
        doubtful=doubtful,
        explained=explained,
    )


def _returned(entries: Entries) -> PodCharges:
    exact: list[Amount] = []
    blocks: list[Entry] = []
    doubtful: list[Entry] = []
    for entry in entries:
        if entry.is_exact:
            exact.append(_exact(entry, 1))
        else:
            (blocks if is_block(entry) else doubtful).append(entry)
    return PodCharges(exact=tuple(exact), returned=tuple(blocks), doubtful=tuple(doubtful), explained=entries)


def _exact(entry: Entry, sign: int) -> Amount:
    position = entry.zones.bit_length() - 1 if entry.zones else HOMELESS
    return (entry.column, position), sign * entry.amount
