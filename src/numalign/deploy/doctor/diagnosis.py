"""Judges an observed cluster: runs every check and joins what is equal into findings.

`numalign doctor`, `numalign deploy validate` and tests call `diagnose`. It is pure: the same observation gives the same
findings, most severe first, in the order in which the checks are declared."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final

from msgspec import Struct

from numalign.api.objects.node import Node
from numalign.deploy.doctor import access, cluster, kubelets, programs, reports
from numalign.deploy.doctor.checks import Check, Severity, Sighting
from numalign.deploy.doctor.observed import NODES, Observed
from numalign.deploy.doctor.repairs import Repair
from numalign.deploy.doctor.view import View

CHECKS: Final[dict[str, Check]] = {
    each.id: each for each in (*cluster.CHECKS, *kubelets.CHECKS, *reports.CHECKS, *programs.CHECKS, *access.CHECKS)
}
UNREAD: Final = "{} could not be read"
NODES_UNREAD: Final = UNREAD.format(NODES.plural)
RANK: Final = {Severity.ERROR: 0, Severity.WARNING: 1, Severity.INFO: 2}


class Finding(Struct, frozen=True, kw_only=True):
    """A fault that was seen on one object or more."""

    check: str
    severity: Severity
    title: str
    seen: str
    where: tuple[str, ...]
    """The objects, in the order of the API server's list."""
    why: str
    fix: str
    nodes: tuple[str, ...] = ()
    repairs: tuple[Repair, ...] = ()


class Diagnosis(Struct, frozen=True, kw_only=True):
    findings: tuple[Finding, ...]
    judged: tuple[str, ...]
    """Ids of the checks that ran."""
    skipped: dict[str, str]
    """By id, why a check did not run."""
    nodes: int
    """Number of nodes in scope."""

    @property
    def is_void(self) -> bool:
        """Whether nothing can be said about the cluster: what is not found may be there."""
        return bool(self.skipped) and (not self.judged or NODES_UNREAD in self.skipped.values())

    def has(self, severity: Severity) -> bool:
        return any(RANK[each.severity] <= RANK[severity] for each in self.findings)


def diagnose(
    observed: Observed,
    *,
    only: Collection[str] = (),
    node: str = "",
    selects: Callable[[Node], bool] | None = None,
) -> Diagnosis:
    """`only`: ids of checks, all where it is empty. `node`: findings about this node alone. `selects`: which nodes are
    judged; by default all that pods are meant for."""
    view = View(observed, selects)
    findings: list[Finding] = []
    judged, skipped = list[str](), dict[str, str]()
    for check in CHECKS.values():
        if only and check.id not in only:
            continue
        lacking = [each for each in check.needs if each in observed.unread]
        if lacking:
            skipped[check.id] = UNREAD.format(", ".join(lacking))
            continue
        judged.append(check.id)
        sightings = (each for each in check.find(view) if node in ("", each.node))
        findings += _joined(check, sightings)
    findings.sort(key=lambda each: RANK[each.severity])
    return Diagnosis(findings=tuple(findings), judged=tuple(judged), skipped=skipped, nodes=len(view.nodes))


def _joined(check: Check, sightings: Iterable[Sighting]) -> list[Finding]:
    found: dict[tuple[str, str, Severity], list[Sighting]] = {}
    for each in sightings:
        severity = each.severity or check.severity
        found.setdefault((each.seen, each.fix or check.fix, severity), []).append(each)
    return [
        Finding(
            check=check.id,
            severity=severity,
            title=check.title,
            seen=seen,
            where=tuple(dict.fromkeys(each.where or f"Node {each.node}" for each in joined)),
            why=check.why,
            fix=fix,
            nodes=tuple(dict.fromkeys(each.node for each in joined if each.node)),
            repairs=tuple(each.repair for each in joined if each.repair is not None),
        )
        for (seen, fix, severity), joined in found.items()
    ]
