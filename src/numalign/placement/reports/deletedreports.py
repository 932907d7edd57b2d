"""Reports whose objects were deleted, and that stay in force: which ones, since when, and of which machine.

`ledger.sync` asks when a report is deleted, when a Node changes and when time passes. A report may be deleted by
mistake, by a garbage collector or with its agent; the node's zones and the pods in them do not change with it. The last
report ends with its Node, with a Node that is another machine now, or after the time that
`Settings.keep_deleted_reports` gives."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from numalign.api.decode.quantity import Quantity
from numalign.api.objects import resourcenames
from numalign.api.objects.node import Node


class Machine(NamedTuple):
    """What a Node says about the machine behind it. Another one, or one that was booted again, may have other zones.

    Devices are left out: what a device plugin offers comes and goes, and the zones of the machine stay."""

    uid: str
    boot_id: str
    cpus: Quantity | None


def machine(node: Node) -> Machine:
    return Machine(node.metadata.uid, node.status.node_info.boot_id, node.status.capacity.get(resourcenames.CPU))


class KeptReport(Struct, frozen=True):
    machine: Machine
    since: float


class DeletedReports:
    def __init__(self, longest: float | None = None) -> None:
        """`longest`: seconds; None: as long as the Node is there."""
        self._longest = longest
        self._kept: dict[str, KeptReport] = {}

    def keep(self, node: str, machine: Machine, now: float) -> bool:
        """The node's report was deleted; whether it stays in force."""
        if self._longest == 0:
            return False
        self._kept.setdefault(node, KeptReport(machine, now))
        return True

    def contradicted_by(self, node: str, machine: Machine) -> bool:
        """Whether the deleted report is about another machine than this one."""
        kept = self._kept.get(node)
        return kept is not None and kept.machine != machine

    def expired(self, now: float) -> list[str]:
        if self._longest is None:
            return []
        return [node for node, kept in self._kept.items() if now - kept.since >= self._longest]

    def forget(self, node: str) -> None:
        """The node has a report again, or none that counts."""
        self._kept.pop(node, None)

    def __contains__(self, node: str) -> bool:
        return node in self._kept
