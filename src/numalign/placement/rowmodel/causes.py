"""Why a pod does not fit on a row, or why that is not known: causes as data.

The pools of the row model raise one of these two exceptions and `evaluate` turns it into a verdict; `explain.reasons`
makes it readable. Numbers are columns, positions and amounts; there are no names and no sentences here."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct


class Cause(StrEnum):
    """Why the row refuses the pod, or why that is not known."""

    # The kubelet refuses the pod.
    NO_COMMON_ZONES = "no-common-zones"
    DIFFERENT_ZONE_COUNTS = "different-zone-counts"
    TOO_FEW_CPUS = "too-few-cpus"
    TOO_FEW_DEVICES = "too-few-devices"
    TOO_LITTLE_MEMORY = "too-little-memory"
    MEMORY_GROUP = "memory-group"
    NO_HEALTHY_DEVICE = "no-healthy-device"
    PARTIAL_CORES = "partial-cores"
    TOO_FEW_FULL_CORES = "too-few-full-cores"
    BUDGET_USED_UP = "budget-used-up"
    NOT_WHOLE_BYTES = "not-whole-bytes"
    UNEVEN_SHARES = "uneven-shares"
    KEPT_APART = "kept-apart"
    NOT_CONNECTED = "not-connected"
    # The kubelet may refuse the pod or not: the state of the row is not known exactly.
    UNSETTLED_PODS = "unsettled-pods"
    TERMINATING_PODS = "terminating-pods"
    SIZE_UNKNOWN = "size-unknown"
    GROUPS_UNKNOWN = "groups-unknown"
    CORES_UNKNOWN = "cores-unknown"
    DEVICE_CHOICE = "device-choice"
    # Amounts do not decide it; the kubelet's managers may be asked.
    CPU_IDS = "cpu-ids"
    MANY_ZONES = "many-zones"
    MEMORY_TYPE_UNKNOWN = "memory-type-unknown"
    NEVER_ENDS = "never-ends"


BY_IDS = frozenset({Cause.CPU_IDS, Cause.MANY_ZONES, Cause.MEMORY_TYPE_UNKNOWN, Cause.NEVER_ENDS})


class Want(Struct, frozen=True):
    """One requested resource: the amount, the number of zones by size, and what is free."""

    column: int
    need: int
    zones: int
    """The number of zones that it needs by size, whatever is free; 0: any zones will do."""
    free: tuple[int, ...]
    """Free amounts by position, as lower bounds."""


class Shortfall(Struct, frozen=True, kw_only=True):
    """The first cause of a refusal."""

    cause: Cause
    step: int = -1
    """The container's place in admission order; -1: the pod as a whole."""
    wants: tuple[Want, ...] = ()
    best: int = 0
    """The zones that came closest."""


class Stopped(Exception):
    """Ends an evaluation."""

    def __init__(self, cause: Cause, wants: tuple[Want, ...] = (), best: int = 0) -> None:
        super().__init__(cause)
        self.cause = cause
        self.wants = wants
        self.best = best


class Refuses(Stopped):
    """The kubelet refuses the pod, whatever is unknown about the row."""


class Unsure(Stopped):
    """The kubelet may admit the pod or not."""
