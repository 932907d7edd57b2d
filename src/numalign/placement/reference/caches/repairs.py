"""Deliberate differences from the reference's over-reserve cache: each stall or loss that is fixed here, by name.

Every cache that is built for use fixes all of them. The oracle takes some away, to show that what is left is just what
the reference does, and that a difference is the one that docs/compatibility/plugin-caches.md describes under that
name."""

from enum import StrEnum
from typing import Final


class Repair(StrEnum):
    LATE_REPORT = "late-report"
    """A report that appears after the start is taken in, as a restart would."""
    REPORT_GONE = "report-gone"
    """A node whose report was deleted is forgotten, instead of being judged by the old one for good."""
    MISSED_SETTINGS = "missed-settings"
    """A round finds changed Topology Manager settings by itself, should the watch have missed them."""
    EMPTY_NODE = "empty-node"
    """A node without pods can be confirmed by the fingerprint of no pods."""
    ENDED_PODS = "ended-pods"
    """A report that leaves out pods that have ended is accepted like one that still signs them."""
    STARTING_PODS = "starting-pods"
    """A report that already signs pods that are bound and Pending is accepted, too."""
    PINNED_PODS = "pinned-pods"
    """A report that signs as exclusive only pods that hold what its own node can pin is accepted, too."""
    UNREPORTED_POD = "unreported-pod"
    """A refresh keeps the reservation of a pod that the report cannot know of yet."""
    RESYNC_WINDOW = "resync-window"
    """A refresh keeps what happened after the round had read the cluster."""


ALL: Final = frozenset(Repair)
NONE: Final[frozenset[Repair]] = frozenset()
