"""Explains what every node says to one pod, without deciding anything, and where a pod is now.

`numalign explain` calls it for pending pods and for pods that do not exist. Plugins and zones are asked as in an
attempt: each node reports the first reason. A node counts as fitting only if the pod would be placed there. Equal
reasons are grouped into one cause with the best numbers of its nodes. `PodProgress` says where a pod is, with its
zones from the ledger. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from typing import Final

from msgspec import Struct, field, structs

from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests
from numalign.api.objects.pod import Pod
from numalign.kubelet import refusals
from numalign.placement.columns.intent import Unkept
from numalign.placement.columns.nodefacts import Assumption
from numalign.placement.decisions import Code
from numalign.placement.explain import answers, nodeview, obstacles, reasons, whatif, wording
from numalign.placement.explain.nodeview import Tenant
from numalign.placement.explain.reasons import Group, Obstacle, Reason
from numalign.placement.facts import Forecast
from numalign.placement.rules.resources.resourcesfit import NodeResourcesFit
from numalign.placement.rules.rule import Refusal, Rows
from numalign.scheduler import placementannotation
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.choose import Attempt, AttemptContext
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import Filtered, Refused
from numalign.scheduler.preempt import preemption
from numalign.scheduler.profiles import ZONES, Profile

MOST_TRIALS: Final = 256
"""Uncertain nodes for which the kubelet model is run; any further ones are reported as nodes that may fit."""


class RejectedNodes(Struct, frozen=True, kw_only=True, dict=True):
    """Why one node, or a group of nodes, refuses the pod."""

    plugin: str
    texts: tuple[str, ...]
    """The messages of kube-scheduler's plugins."""
    reason: Reason | None = None
    """The reason with amounts; None: the plugin's refusal is not about amounts."""
    obstacle: Obstacle | None = None
    """What on the node the plugin refuses for, where it can be named."""
    unresolvable: bool = False
    """Whether the plugin would refuse the pod on the empty node, too."""

    @property
    def sentence(self) -> str:
        if self.reason is not None:
            return wording.sentence(self.reason)
        return wording.obstacle(self.obstacle) if self.obstacle is not None else ", ".join(self.texts)

    @property
    def is_never(self) -> bool:
        """Whether the node is too small, whatever runs there."""
        return self.reason is not None and self.reason.structural and not isinstance(self.reason.cause, Unkept)

    @cached_property
    def distance(self) -> tuple[int, float]:
        """The distance of the node from fitting: first the kind of obstacle, then its size."""
        if self.reason is None:
            return (3 if self.unresolvable else 1), 0.0
        short = [1 - (lack.most or 0) / lack.need for lack in self.reason.named_lacks if lack.is_short]
        return (2 if self.reason.structural else 0), max(short, default=0.0)

    @cached_property
    def kind(self) -> tuple[object, ...]:
        return self.plugin, self.obstacle, *(self.texts if self.reason is None else self.reason.kind)


Cause = Group[RejectedNodes]
"""Nodes that refuse for one kind of reason."""


class Explained(Struct, frozen=True, kw_only=True, dict=True):
    pod: Pod
    profile: str
    nodes: int
    fitting: tuple[str, ...] = ()
    """Nodes on which the pod would be placed now."""
    untried: tuple[str, ...] = ()
    """Nodes that may fit but were not tried, because there are too many."""
    refused: Mapping[str, RejectedNodes] = field(default_factory=dict)
    """Refusals by node."""
    warned: Mapping[str, Reason] = field(default_factory=dict)
    """Fitting nodes that do not keep the pod's intent."""
    assumptions: Mapping[Assumption, int] = field(default_factory=dict)
    """Assumptions about nodes whose reports are incomplete, with the number of nodes."""
    zones: bool = True
    """Whether the profile checks zones."""
    problem: RejectedNodes | None = None
    """Why the pod is refused before any node is checked."""

    @property
    def fits(self) -> bool:
        return bool(self.fitting or self.untried)

    @cached_property
    def causes(self) -> tuple[Cause, ...]:
        """Refusals grouped by kind, the most frequent first."""
        return reasons.grouped(self.refused, _merged, lambda answer: id(answer.reason))

    @cached_property
    def closest(self) -> tuple[str, ...]:
        """Refusing nodes, ordered by how little they lack."""
        return tuple(sorted(self.refused, key=lambda node: (*self.refused[node].distance, node)))

    @cached_property
    def never(self) -> Reason | None:
        """The reason of most nodes, if every node would refuse the pod even when empty."""
        if self.fits or not self.refused or not all(each.is_never for each in self.refused.values()):
            return None
        return self.causes[0].answer.reason

    @property
    def headline(self) -> str:
        if self.problem is not None:
            return self.problem.sentence
        if not self.nodes:
            return wording.NO_NODES
        if self.never is not None:
            return wording.headline_never(self.nodes)
        return wording.headline(len(self.fitting) + len(self.untried), self.nodes)

    @property
    def notes(self) -> list[str]:
        """Intents that fitting nodes do not keep, and assumptions about nodes."""
        said = [wording.warning(group) for group in reasons.grouped(self.warned, reasons.merged)]
        assumed = sorted(self.assumptions.items(), key=lambda each: (-each[1], each[0]))
        unasked = [] if self.zones else [wording.zones_ignored(self.profile, ZONES)]
        return [*unasked, *said, *(wording.assumption(what, nodes) for what, nodes in assumed)]


def explained(pod: Pod, profile: Profile, around: AttemptContext, now: float = 0.0, rejected_by: str = "") -> Explained:
    """The answer of every node to the pod at this moment. `rejected_by`: the node that rejected this very pod."""
    cluster = around.cluster
    empty = Explained(pod=pod, profile=profile.name, nodes=cluster.nodes, zones=profile.zones)
    try:
        attempt = around.attempt(filtering.read(profile, pod), filtering.shape(profile, cluster.engine, pod), now, 0)
    except BadObject as problem:
        return _refused(empty, ZONES, Refusal((str(problem),)))
    found = filtering.filtered(pod, profile.filters, cluster.world)
    if isinstance(found, Refused):
        return _refused(empty, found.plugins[0], found.refusal)
    found = filtering.respecting(
        found, attempt.promised, filtering.survey(profile, cluster.engine, attempt.shape, found.fitting)
    )
    zones = _Zones(attempt, cluster)
    if profile.zones:
        zones.ask(found)
    else:
        zones.ignore(found)
    if rejected_by in zones.fitting and cluster.engine.lacks_report(rejected_by) and _may_be_aligned(pod):
        zones.fitting.remove(rejected_by)
        zones.refused[rejected_by] = RejectedNodes(plugin=ZONES, texts=(wording.CANNOT_SAY,), unresolvable=True)
    return structs.replace(
        empty,
        fitting=tuple(sorted(zones.fitting)),
        untried=tuple(sorted(zones.untried)),
        refused=zones.refused,
        warned=zones.warned,
        assumptions=zones.assumptions(found.rows) if profile.zones else {},
    )


PROMISED: Final = RejectedNodes(plugin=ZONES, texts=(wording.PROMISED,))


class _Zones:
    """Asks the engine which of the nodes that pass the filter plugins are certain to admit the pod."""

    def __init__(self, attempt: Attempt, cluster: Cluster) -> None:
        self._names, self._cluster = cluster.engine.names, cluster
        self._attempt = attempt
        self._answers = answers.of(cluster.engine, attempt.pod)
        self._whatif = whatif.of(cluster.engine, attempt.pod, attempt.shape)
        self._trials = 0
        self._shared: dict[int, RejectedNodes] = {}
        self.fitting: list[str] = []
        self.untried: list[str] = []
        self.refused: dict[str, RejectedNodes] = {}
        self.warned: dict[str, Reason] = {}

    def ignore(self, found: Filtered) -> None:
        """Accepts the nodes that pass the filter plugins, for a profile that does not check zones."""
        self._refuse(found, zones=False)
        self.fitting += [self._names[row] for row in found.fitting.tolist()]

    def _refuse(self, found: Filtered, *, zones: bool) -> None:
        for plugin, said, rows in found.tallies():
            for row in rows.tolist():
                never = self._answers.never(row) if zones else None
                # What the plugin says does not matter of a node that could not take the pod anyway.
                self.refused[self._names[row]] = self._rejected(never) if never else self.stock(plugin, said, row)

    def ask(self, found: Filtered) -> None:
        self._refuse(found, zones=True)
        kept_off = self._attempt.kept_off
        for row in found.fitting.tolist():
            if row in kept_off:
                self.refused[self._names[row]] = RejectedNodes(plugin=ZONES, texts=(kept_off[row],))
            else:
                self._sort(row)

    def _sort(self, row: int) -> None:
        name, reason = self._names[row], self._answers.reason(row)
        if reason is None and self._is_promised(row):
            self.refused[name] = PROMISED
        elif reason is None and self._is_untried(row):
            self.untried.append(name)
        elif reason is None and self._is_certain(row):
            self.fitting.append(name)
            self._warn(row)
        else:
            self.refused[name] = self._rejected(reason or self._answers.uncertain(row))

    def stock(self, plugin: str, said: Refusal, row: int) -> RejectedNodes:
        """A rule's refusal, with amounts where the node has not enough left as a whole."""
        found = self._answers.reason(row) if plugin == NodeResourcesFit.name else None
        reason = found if found is not None and found.code is Code.TOTALS else None
        node = self._cluster.node_named(self._names[row])
        return RejectedNodes(
            plugin=plugin,
            texts=said.reasons,
            reason=reason,
            obstacle=obstacles.of(plugin, self._attempt.pod, node) if node is not None else None,
            unresolvable=said.unresolvable,
        )

    def assumptions(self, rows: Rows) -> Mapping[Assumption, int]:
        return Counter(each for row in rows.tolist() for each in self._answers.assumptions(row))

    def _warn(self, row: int) -> None:
        warning = self._answers.warning(row)
        if warning is not None:
            self.warned[self._names[row]] = warning

    def _is_promised(self, row: int) -> bool:
        others = self._attempt.promised.get(row)
        leaving = self._attempt.leaving.get(row, ())
        return bool(others) and not self._whatif.leaves_room(row, leaving, others or ())

    def _is_untried(self, row: int) -> bool:
        return self._trials >= MOST_TRIALS and not self._whatif.is_final(row)

    def _is_certain(self, row: int) -> bool:
        if self._whatif.is_final(row):
            return True
        self._trials += 1
        return self._whatif.admits(row, ())

    def _rejected(self, reason: Reason) -> RejectedNodes:
        if id(reason) not in self._shared:
            plugin = NodeResourcesFit.name if reason.code is Code.TOTALS else ZONES
            texts = (wording.reference(reason),)
            self._shared[id(reason)] = RejectedNodes(
                plugin=plugin, texts=texts, reason=reason, unresolvable=reason.structural
            )
        return self._shared[id(reason)]


def _merged(alike: Sequence[RejectedNodes]) -> RejectedNodes:
    first = alike[0]
    with_reason = [answer.reason for answer in alike if answer.reason is not None]
    if len(with_reason) < 2:
        return first
    return RejectedNodes(
        plugin=first.plugin, texts=first.texts, reason=reasons.merged(with_reason), unresolvable=first.unresolvable
    )


def _refused(empty: Explained, plugin: str, refusal: Refusal) -> Explained:
    answer = RejectedNodes(plugin=plugin, texts=refusal.reasons, unresolvable=refusal.unresolvable)
    return structs.replace(empty, problem=answer)


SCHEDULED: Final = "PodScheduled"
AT_ONCE: Final = timedelta(seconds=10)
"""Between two bindings whose schedulers may not have seen each other's pod."""


class Stage(StrEnum):
    GATED = "gated"
    WAITING = "waiting"
    DECIDED = "decided"
    """A node was chosen; the watch has not shown the binding yet."""
    BOUND = "bound"
    RUNNING = "running"
    REJECTED = "rejected"
    """The kubelet rejected the pod."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"


WITHOUT_NODE: Final = frozenset({Stage.GATED, Stage.WAITING})
OVER: Final = frozenset({Stage.REJECTED, Stage.SUCCEEDED, Stage.FAILED})


class PodProgress(Struct, frozen=True, kw_only=True):
    stage: Stage
    node: str = ""
    is_leaving: bool = False
    """The pod was deleted and is still terminating."""
    tenant: Tenant | None = None
    """What the pod holds on its node according to the ledger. None: it has no node, or the node has no report."""
    lacks_report: bool = False
    """Whether a kubelet may have aligned the pod, and its node has no report that would say where."""
    forecast: Forecast | None = None
    """The zones that the scheduler expected when it bound the pod, where no report says more."""
    placed_blindly: bool = False
    """Whether a profile of ours placed the pod without topology data, as far as is known now."""
    taken_by: tuple[Pod, ...] = ()
    """Of a rejected pod: pods on its node that other schedulers bound about when it was bound, the latest first."""
    gates: tuple[str, ...] = ()
    nominated: str = ""
    """The node that preemption makes room on for the pod."""
    evicted: tuple[Pod, ...] = ()
    """Pods of lower priority that are evicted there and have not ended yet."""
    is_preempted: bool = False
    """Whether the pod itself is evicted for one of higher priority."""
    reason: str = ""
    message: str = ""
    """The reason in the pod's status: of the PodScheduled condition while it is pending, else of the pod itself."""


def of(pod: Pod, cluster: Cluster) -> PodProgress:
    decided = cluster.assumed.get(pod.metadata.uid)
    node = pod.spec.node_name or (decided.pod.spec.node_name if decided is not None else "")
    stage = _stage(pod, decided=decided is not None)
    reason, message = _reason_and_message(pod, stage)
    tenant = _tenant(pod, node, cluster) if node and stage not in OVER else None
    is_unreported = bool(node) and stage not in OVER and cluster.engine.lacks_report(node) and _may_be_aligned(pod)
    forecast = _forecast(pod) if is_unreported else None
    is_ours = pod.spec.scheduler_name in cluster.engine.settings.profiles
    return PodProgress(
        stage=stage,
        node=node,
        is_leaving=pod.metadata.deletion_timestamp is not None,
        tenant=tenant,
        lacks_report=is_unreported,
        forecast=forecast,
        placed_blindly=is_unreported and is_ours and forecast is None,
        taken_by=_taken_by(pod, cluster) if stage is Stage.REJECTED else (),
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
        nominated=pod.status.nominated_node_name if not node else "",
        evicted=_evicted_for(pod, cluster) if not node else (),
        is_preempted=preemption.is_preempted(pod),
        reason=reason,
        message=message,
    )


def _stage(pod: Pod, *, decided: bool) -> Stage:
    if pod.status.is_finished:
        if refusals.is_rejection(pod):
            return Stage.REJECTED
        return Stage.SUCCEEDED if pod.status.phase == "Succeeded" else Stage.FAILED
    if pod.spec.node_name:
        return Stage.RUNNING if pod.has_started else Stage.BOUND
    if decided:
        return Stage.DECIDED
    return Stage.GATED if pod.spec.scheduling_gates else Stage.WAITING


def _reason_and_message(pod: Pod, stage: Stage) -> tuple[str, str]:
    if stage not in WITHOUT_NODE:
        return pod.status.reason, pod.status.message
    scheduled = (each for each in pod.status.conditions if each.type == SCHEDULED and each.status == "False")
    said = next(scheduled, None)
    return (said.reason, said.message) if said is not None else ("", "")


def _may_be_aligned(pod: Pod) -> bool:
    return qos.may_be_aligned(qos.of(pod), requests.effective(pod))


def _forecast(pod: Pod) -> Forecast | None:
    try:
        return placementannotation.decode(pod.metadata)
    except BadObject:
        return None


def _taken_by(pod: Pod, cluster: Cluster) -> tuple[Pod, ...]:
    bound = _bound_at(pod)
    if bound is None:
        return ()
    others = [
        (at, each)
        for each in cluster.pods_on(pod.spec.node_name)
        if each.spec.scheduler_name != pod.spec.scheduler_name
        and (at := _bound_at(each)) is not None
        and abs(at - bound) <= AT_ONCE
    ]
    return tuple(each for _, each in sorted(others, key=lambda pair: pair[0], reverse=True))


def _evicted_for(pod: Pod, cluster: Cluster) -> tuple[Pod, ...]:
    there = cluster.pods_on(pod.status.nominated_node_name)
    found = (each for each in there if each.spec.priority < pod.spec.priority and preemption.is_preempted(each))
    return tuple(sorted(found, key=lambda each: each.metadata.full_name))


def _bound_at(pod: Pod) -> datetime | None:
    found = (each for each in pod.status.conditions if each.type == SCHEDULED and each.status == "True")
    written = next((each.last_transition_time for each in found), None)
    try:
        return datetime.fromisoformat(written) if written else None
    except ValueError:
        return None


def _tenant(pod: Pod, node: str, cluster: Cluster) -> Tenant | None:
    held = nodeview.of(cluster.engine, node)
    tenants = held.tenants if held is not None else ()
    return next((each for each in tenants if each.uid == pod.metadata.uid), None)
