"""Which nodes a pod may go to, and in stock kube-scheduler's words why it may not go to the others.

Filters run in stock's order and the first that refuses a node names the reason; only shortages of several resources are
all told (kube-scheduler spec 1 and 4.10). What does not depend on other pods is remembered until a node changes."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from numalign.simulator.controllers.blindscheduler.asking import Ask, Port
from numalign.simulator.controllers.blindscheduler.totals import Rows, Totals
from numalign.simulator.controllers.framework import labelling, tolerating
from numalign.simulator.trees import Tree

FITS, UNSCHEDULABLE, TAINT, AFFINITY, ELSEWHERE = range(5)
REASONS: Final = {
    UNSCHEDULABLE: "node(s) were unschedulable",
    TAINT: "node(s) had untolerated taint(s)",
    AFFINITY: "node(s) didn't match Pod's node affinity/selector",
    ELSEWHERE: "node(s) didn't satisfy plugin(s) [NodeAffinity]",
}
NO_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
CROWDED: Final = "Too many pods"
CORDON: Final = {"key": tolerating.UNSCHEDULABLE, "effect": tolerating.NO_SCHEDULE}
ANY_ADDRESS: Final = "0.0.0.0"
MOST_REMEMBERED: Final = 1024

Verdicts = NDArray[np.int8]


@dataclass(frozen=True)
class Refusals:
    counts: Mapping[str, int]
    """How many nodes say what; one may say several things."""
    useless: int
    """Nodes on which taking pods away would change nothing."""


class Nodes:
    """The nodes as the filters see them, beside their totals."""

    def __init__(self, totals: Totals) -> None:
        self._totals = totals
        self._trees: dict[str, Tree] = {}
        self._verdicts: dict[bytes, Verdicts] = {}
        self._refused: tuple[int, dict[Ask, Refusals]] = (0, {})

    def put(self, name: str, tree: Tree) -> bool:
        """Whether anything that filters look at is different."""
        before = self._trees.get(name)
        self._trees[name] = tree
        changed = before is None or decisive(before) != decisive(tree)
        if changed:
            self._verdicts.clear()
            self._refused = (0, {})
        return changed

    def drop(self, name: str) -> None:
        self._trees.pop(name, None)
        self._verdicts.clear()

    def fitting(self, ask: Ask) -> Rows:
        rows: Rows = self._totals.there & (self.verdicts(ask) == FITS) & self._totals.room(ask)
        if ask.ports:
            rows &= ~self._occupied(ask)
        return rows

    def verdicts(self, ask: Ask) -> Verdicts:
        found = self._verdicts.get(ask.where)
        if found is None or len(found) != len(self._totals.there):
            if len(self._verdicts) >= MOST_REMEMBERED:
                self._verdicts.clear()
            found = self._verdicts[ask.where] = self._judged(ask.spec)
        return found

    def _judged(self, spec: Tree) -> Verdicts:
        named = names_only(spec)
        verdicts = np.full(len(self._totals.there), ELSEWHERE, np.int8)
        for name in self._trees if named is None else [name for name in named if name in self._trees]:
            verdicts[self._totals.rows[name]] = verdict(spec, self._trees[name])
        return verdicts

    def _occupied(self, ask: Ask) -> Rows:
        taken = np.zeros(len(self._totals.there), np.bool_)
        for name, row in self._totals.rows.items():
            taken[row] = conflicts(ask.ports, self._totals.ports(name))
        return taken

    def refusals(self, ask: Ask) -> Refusals:
        """Remembered as long as nothing changes: many equal pods are refused in a row."""
        if self._refused[0] != self._totals.generation:
            self._refused = (self._totals.generation, {})
        known = self._refused[1]
        if ask not in known:
            known[ask] = self._counted(ask)
        return known[ask]

    def _counted(self, ask: Ask) -> Refusals:
        totals, verdicts = self._totals, self.verdicts(ask)
        counts = Counter({REASONS[code]: int((totals.there & (verdicts == code)).sum()) for code in REASONS})
        open_rows = totals.there & (verdicts == FITS)
        if ask.ports:
            occupied = open_rows & self._occupied(ask)
            counts[NO_PORTS] += int(occupied.sum())
            open_rows &= ~occupied
        counts[CROWDED] += int((open_rows & totals.crowded()).sum())
        hopeless = np.zeros(len(totals.there), np.bool_)
        for resource, amount in ask.amounts:
            counts[f"Insufficient {resource}"] += int((open_rows & (totals.left(resource) < amount)).sum())
            hopeless |= open_rows & (totals.offered(resource) < amount)
        useless = int((totals.there & (verdicts != FITS)).sum()) + int(hopeless.sum())
        return Refusals(+counts, useless)


def decisive(node: Tree) -> tuple[object, ...]:
    spec = node.get("spec") or {}
    return node["metadata"].get("labels"), spec.get("taints"), spec.get("unschedulable")


def verdict(spec: Tree, node: Tree) -> int:
    tolerations: Sequence[Tree] = spec.get("tolerations") or ()
    of_node = node.get("spec") or {}
    if of_node.get("unschedulable") and tolerating.untolerated([CORDON], tolerations) is not None:
        return UNSCHEDULABLE
    if tolerating.untolerated(of_node.get("taints") or (), tolerations) is not None:
        return TAINT
    return FITS if labelling.node_matches(spec, node) else AFFINITY


def names_only(spec: Tree) -> list[str] | None:
    """The only nodes a pod can go to, if every term of its affinity names some (kube-scheduler spec 1.6)."""
    terms: Sequence[Tree] = (labelling.required_affinity(spec) or {}).get("nodeSelectorTerms") or ()
    named: dict[str, None] = {}
    for term in terms:
        fields = [each for each in term.get("matchFields") or () if each.get("operator") == "In"]
        if not fields:
            return None
        common = set.intersection(*(set(each["values"]) for each in fields))
        named |= dict.fromkeys(sorted(common))
    return list(named) if terms else None


def conflicts(wanted: Iterable[Port], used: Iterable[Port]) -> bool:
    taken = set(used)
    anywhere = {port[1:] for port in taken}
    return any(
        port[1:] in anywhere if port[0] == ANY_ADDRESS else port in taken or (ANY_ADDRESS, *port[1:]) in taken
        for port in wanted
    )


def message(nodes: int, counts: Mapping[str, int]) -> str:
    """`0/3 nodes are available: 1 Insufficient memory, 3 Insufficient cpu.`"""
    if not nodes:
        return "no nodes available to schedule pods"
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return f"0/{nodes} nodes are available: {told}."


def no_victims(nodes: int, useless: int) -> str:
    """What stock adds when it has looked for pods to preempt and found none."""
    said = {"Preemption is not helpful for scheduling": useless}
    said["No preemption victims found for incoming pod"] = nodes - useless
    told = ", ".join(sorted(f"{count} {reason}" for reason, count in said.items() if count))
    return f" preemption: 0/{nodes} nodes are available: {told}."
