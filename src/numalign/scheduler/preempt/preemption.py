"""Decides which pods to evict from which node for a pod that fits nowhere, or why preemption does not help.

`preemptor` calls `Preemption.decide`; the extender calls `on_rows` for nodes that kube-scheduler names. Both follow
kube-scheduler's DefaultPreemption (kube-scheduler spec 1.20), with the zones of nodes among the filters: victims are
selected so that the kubelet admits the pod once they are gone. If admission is not certain, no pod is evicted.
`Reservations` makes a pod wait for its earlier victims: until they are gone from the node, and until the node's next
report shows their zones as free. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import DefaultPreemptionArgs
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Randomness
from numalign.placement.explain import wording
from numalign.placement.rules.resources.resourcesfit import NO_VICTIMS, FreedRows, ResourceRequests
from numalign.placement.rules.rule import FITS, Rows
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.choose import NoNode
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import PreparedFilter, Refused
from numalign.scheduler.choose.plugins import Budgets
from numalign.scheduler.preempt import dryrun
from numalign.scheduler.preempt.dryrun import DryRun, DryRunCache
from numalign.scheduler.preempt.victims import Victims
from numalign.scheduler.profiles import Profile
from numalign.scheduler.queue.nominations import Nominations

DISRUPTED: Final = "DisruptionTarget"
BY_SCHEDULER: Final = "PreemptionByScheduler"
PATIENCE: Final = 60.0
"""Seconds after the victims' end within which a report without them is expected."""
SMALL: Final = 64


class Reservations:
    def __init__(self, cluster: Cluster, nominations: Nominations) -> None:
        self._cluster, self._nominations = cluster, nominations
        self._kept: dict[str, float] = {}
        """By uid: when all victims were first found to be gone."""

    def is_pending(self, pod: Pod, found: NoNode, now: float) -> bool:
        uid = pod.metadata.uid
        node = self._nominations.node_of(uid) or pod.status.nominated_node_name
        row = self._cluster.world.rows.get(node)
        if row is None or row in found.unresolvable:
            return False
        if self._has_terminating(pod, row):
            return True
        victims = self._nominations.victims_of(uid)
        if any(each in self._cluster.world.pods or self._cluster.engine.charges(each) for each in victims):
            return True
        return bool(victims) and self._is_report_due(uid, found.code(row), now)

    def _has_terminating(self, pod: Pod, row: int) -> bool:
        there = (each.pod for each in self._cluster.world.on_row[row].values())
        return any(each.spec.priority < pod.spec.priority and is_preempted(each) for each in there)

    def _is_report_due(self, uid: str, code: int, now: float) -> bool:
        since = self._kept.setdefault(uid, now)
        if len(self._kept) > SMALL + 2 * len(self._nominations):
            self._kept = {each: at for each, at in self._kept.items() if self._nominations.victims_of(each)}
        return self._cluster.engine.waits_for_report(code) and now < since + PATIENCE


def is_preempted(pod: Pod) -> bool:
    """Whether the pod is terminating because a scheduler preempted it."""
    if pod.metadata.deletion_timestamp is None:
        return False
    condition = next((each for each in pod.status.conditions if each.type == DISRUPTED), None)
    return condition is not None and condition.status == "True" and condition.reason == BY_SCHEDULER


NEVER: Final = "Never"
NOT_ELIGIBLE: Final = "not eligible due to preemptionPolicy=Never."
TERMINATING: Final = "not eligible due to a terminating pod on the nominated node."


class Nomination(Struct, frozen=True):
    """The pod is nominated to a node and gets it once the victims are gone."""

    node: str
    victims: Victims

    @property
    def message(self) -> str:
        count = len(self.victims.pods)
        return f"found a potential placement for pod on node {self.node}, preempting {count} victims"


class NotPreempted(Struct, frozen=True):
    message: str
    is_final: bool = False
    """Preemption does not help, so an earlier nomination of the pod is cleared."""


class PreemptionRequest(Struct, frozen=True, kw_only=True):
    pod: Pod
    shape: Shape
    found: NoNode
    now: float
    args: DefaultPreemptionArgs
    profile: Profile


class Preemption:
    def __init__(self, cluster: Cluster, nominations: Nominations, budgets: Budgets) -> None:
        self._cluster, self._nominations, self._budgets = cluster, nominations, budgets
        self._promises = Reservations(cluster, nominations)
        self._answers = DryRunCache(cluster.world, cluster.engine.changes, nominations, budgets)

    def decide(self, asked: PreemptionRequest, rng: Randomness) -> Nomination | NotPreempted:
        if asked.pod.spec.preemption_policy == NEVER:
            return NotPreempted(NOT_ELIGIBLE)
        if self._promises.is_pending(asked.pod, asked.found, asked.now):
            return NotPreempted(TERMINATING)
        rows, counts = self._potential(asked), Counter[str]()
        best = self._best(asked, rows, rng, counts) if len(rows) else None
        if best is not None:
            return best
        if asked.found.nodes > len(rows):
            counts[wording.NOT_HELPFUL] += asked.found.nodes - len(rows)
        return NotPreempted(wording.unavailable(asked.found.nodes, counts), is_final=True)

    def on_rows(
        self, pod: Pod, shape: Shape, profile: Profile, supposed: Mapping[int, Collection[str]]
    ) -> dict[int, Victims | None]:
        """By row, the pods whose end lets the kubelet admit the pod; None: those supposed, by uid, suffice. Rows on
        which no evictions help are missing, and after enough rows the others are, too."""
        steps = filtering.prepared(pod, profile.filters, self._cluster.world)
        if isinstance(steps, Refused):
            return {}
        dry_run = self._dry_run(pod, shape, profile, steps)
        found: dict[int, Victims | None] = {}
        for row, uids in supposed.items():
            if uids and dry_run.suffices(row, uids, self._nominations.above(self._cluster.world.names[row], pod)):
                found[row] = None
        rest: Rows = np.fromiter((row for row in supposed if row not in found), np.intp)
        table = self._answers.table(dry_run)
        args = profile.preemption or DefaultPreemptionArgs()
        for row in self._answers.candidates(dry_run, table, rest, _enough(args, len(rest))).tolist():
            found[row] = table.victims[row]
        return found

    def _potential(self, asked: PreemptionRequest) -> Rows:
        """Nodes on which preemption may help."""
        filtered, found = asked.found.filtered, asked.found
        if filtered is None:
            return np.zeros(0, np.intp)
        hopeful = np.ones(self._cluster.world.capacity, np.bool_)
        hopeful[found.unresolvable] = hopeful[np.fromiter(found.kept_off, np.intp)] = False
        rows: Rows = filtered.rows[hopeful[filtered.rows]]
        return rows

    def _best(self, asked: PreemptionRequest, rows: Rows, rng: Randomness, counts: Counter[str]) -> Nomination | None:
        steps = asked.found.filtered.steps if asked.found.filtered is not None else ()
        turned = np.roll(rows, -int(rng.random() * len(rows)))
        hopeful = self._with_room(asked.pod, steps, turned, counts)
        if not len(hopeful):
            return None
        dry_run = self._dry_run(asked.pod, asked.shape, asked.profile, steps)
        table = self._answers.table(dry_run)
        candidates = self._answers.candidates(dry_run, table, hopeful, _enough(asked.args, len(rows)))
        if not len(candidates):
            counts.update(table.reasons(hopeful))
            return None
        row = table.best(candidates)
        return Nomination(self._cluster.world.names[row], table.victims[row])

    def _with_room(self, pod: Pod, steps: Sequence[PreparedFilter], rows: Rows, counts: Counter[str]) -> Rows:
        """The rows whose node totals suffice without pods of lower priority; counts the reasons of the others."""
        fit = next((step.prepared for step in steps if isinstance(step.prepared, ResourceRequests)), None)
        wants = fit.refusals.wants if fit is not None else ()
        codes = FreedRows(wants, pod.spec.priority, self._cluster.world).codes()[rows]
        for code in np.unique(codes[codes != FITS]).tolist():
            if code == NO_VICTIMS or fit is not None:
                reasons = (wording.NO_VICTIMS,) if code == NO_VICTIMS or fit is None else fit.refusals[code].reasons
                counts.update(dict.fromkeys(reasons, int(np.count_nonzero(codes == code))))
        hopeful: Rows = rows[codes == FITS if fit is not None else codes != NO_VICTIMS]
        return hopeful

    def _dry_run(self, pod: Pod, shape: Shape, profile: Profile, steps: Sequence[PreparedFilter]) -> DryRun:
        return DryRun(
            pod=pod,
            shape=shape,
            steps=dryrun.moving(steps),
            whatif=filtering.whatif(profile, self._cluster.engine, pod, shape),
            world=self._cluster.world,
            budgets=self._budgets,
        )


def _enough(args: DefaultPreemptionArgs, nodes: int) -> int:
    """The number of candidate nodes after which the search ends."""
    share = nodes * args.min_candidate_nodes_percentage // 100
    return min(nodes, max(share, args.min_candidate_nodes_absolute))
