"""Asks the nodes again about a pod, as if something were different.

The dashboard calls `asked` when a user wants to know whether a pending pod would fit if it asked for less, if other
pods were not there, or if a kubelet had another Topology Manager policy or scope. The filter plugins and the engine
answer as in `explanations`; only nodes that would be different are asked again. Nothing is charged. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy, Scope
from numalign.api.objects.pod import Pod
from numalign.placement.explain import obstacles, whatif, wording
from numalign.placement.explain.reasons import Reason
from numalign.placement.explain.whatif import Supposition
from numalign.placement.rules.rule import FITS
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.choose import Attempt, AttemptContext
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.choose.filtering import PreparedFilter, Refused
from numalign.scheduler.explain import explanations, trial
from numalign.scheduler.explain.explanations import Explained, RejectedNodes
from numalign.scheduler.profiles import ZONES, Profile

MOST_NODES: Final = 1_000
"""Nodes that are asked again; any further ones are reported as nodes that may fit."""


class Resizing(Struct, frozen=True):
    """Another amount of a resource in a container: thousandths of a CPU, bytes or devices."""

    container: str
    resource: str
    amount: int


class Change(Struct, frozen=True, kw_only=True):
    """What would be different."""

    resized: tuple[Resizing, ...] = ()
    gone: tuple[str, ...] = ()
    """Pods by namespace/name."""
    node: str = ""
    """The node whose kubelet has another policy or scope; empty: all nodes."""
    policy: Policy | None = None
    scope: Scope | None = None

    @property
    def is_configuration(self) -> bool:
        return self.policy is not None or self.scope is not None


def asked(pod: Pod, change: Change, profile: Profile, around: AttemptContext, now: float = 0.0) -> Explained:
    """The answer of every node then. BadObject if the change names something that is not there."""
    for each in change.resized:
        pod = _resized(pod, each)
    found = explanations.explained(pod, profile, around, now)
    if found.problem is not None or not (change.gone or change.is_configuration):
        return found
    gone = _gone(change.gone, around.cluster)
    nodes = _configured(change, around.cluster) if change.is_configuration else []
    asked_again = dict.fromkeys([*gone, *nodes])
    question = _Question(pod, profile, around, now)
    answers = dict(found.refused)
    fitting, untried = set(found.fitting), set(found.untried)
    for place, node in enumerate(asked_again):
        known = answers.get(node)
        if known is not None and known.plugin != ZONES and node not in gone:
            # A filter plugin does not look at policy and scope.
            continue
        answers.pop(node, None)
        fitting.discard(node)
        untried.discard(node)
        if place >= MOST_NODES:
            untried.add(node)
            continue
        is_changed = change.is_configuration and change.node in ("", node)
        supposed = Supposition(
            without=gone.get(node, whatif.NO_PODS),
            policy=change.policy if is_changed else None,
            scope=change.scope if is_changed else None,
        )
        refusal = question.refusal(node, supposed)
        if refusal is None:
            fitting.add(node)
        else:
            answers[node] = refusal
    warned = {node: why for node, why in found.warned.items() if node in fitting}
    return structs.replace(
        found, fitting=tuple(sorted(fitting)), untried=tuple(sorted(untried)), refused=answers, warned=warned
    )


def _resized(pod: Pod, change: Resizing) -> Pod:
    wanted = next((each for each in pod.in_admission_order() if each.name == change.container), None)
    if wanted is None:
        raise BadObject("Pod", pod.metadata.full_name, "spec.containers", f"has no container {change.container!r}")
    if change.resource not in {**wanted.resources.limits, **wanted.resources.requests}:
        why = f"container {change.container!r} does not ask for {change.resource!r}"
        raise BadObject("Pod", pod.metadata.full_name, "resources.requests", why)
    return trial.resized(pod, change.container, change.resource, change.amount)


def _gone(names: Iterable[str], cluster: Cluster) -> dict[str, frozenset[str]]:
    """By node the uids of the pods of these names."""
    wanted, seen = set(names), set[str]()
    found: dict[str, set[str]] = defaultdict(set)
    for uid, assigned in cluster.world.pods.items() if wanted else ():
        name = assigned.pod.metadata.full_name
        if name in wanted:
            found[cluster.world.names[assigned.row]].add(uid)
            seen.add(name)
    if wanted - seen:
        raise BadObject("Pod", min(wanted - seen), "", "is on no node")
    return {node: frozenset(uids) for node, uids in found.items()}


def _configured(change: Change, cluster: Cluster) -> list[str]:
    if not change.node:
        return [node for node in sorted(cluster.world.rows) if not cluster.engine.lacks_report(node)]
    if not cluster.has_node(change.node):
        raise BadObject("Node", change.node, "", "is not there")
    if cluster.engine.lacks_report(change.node):
        raise BadObject("Node", change.node, "", "has no topology report, so its policy and scope are not known")
    return [change.node]


class _Question:
    """One pod, asked of nodes that are different."""

    def __init__(self, pod: Pod, profile: Profile, around: AttemptContext, now: float) -> None:
        cluster = around.cluster
        shape = filtering.shape(profile, cluster.engine, pod)
        self._pod, self._cluster = pod, cluster
        self._attempt: Attempt = around.attempt(filtering.read(profile, pod), shape, now, 0)
        self._whatif = filtering.whatif(profile, cluster.engine, self._attempt.pod, shape)
        self._zones = profile.zones
        steps = filtering.prepared(pod, profile.filters, cluster.world)
        # `explained` has answered already where a plugin refuses the pod as a whole.
        self._steps: tuple[PreparedFilter, ...] = () if isinstance(steps, Refused) else steps

    def refusal(self, node: str, supposed: Supposition) -> RejectedNodes | None:
        row = self._cluster.world.rows[node]
        found = self._by_plugin(node, row, supposed.without)
        if found is not None:
            return found
        if self._zones and row in self._attempt.kept_off:
            return RejectedNodes(plugin=ZONES, texts=(self._attempt.kept_off[row],))
        others = self._attempt.promised.get(row, ())
        leaving = {*supposed.without, *self._attempt.leaving.get(row, ())}
        if others and not self._whatif.leaves_room(row, leaving, others):
            return explanations.PROMISED
        if self._cluster.engine.lacks_report(node):
            return None if self._whatif.admits(row, supposed.without) else _of_totals()
        if not self._whatif.has_totals(row, supposed.without):
            return _of_totals()
        reason = self._whatif.reason(row, supposed)
        return _of(reason) if reason is not None else None

    def _by_plugin(self, node: str, row: int, gone: frozenset[str]) -> RejectedNodes | None:
        for step in self._steps:
            only = step.prepared.only
            if only is not None and node not in only:
                return RejectedNodes(plugin=step.rule.name, texts=(wording.FOR_OTHERS,), unresolvable=True)
            code = step.rule.filter_row(step.prepared, row, gone, ())
            if code != FITS:
                said, there = step.prepared.refusals[code], self._cluster.node_named(node)
                found = obstacles.of(step.rule.name, self._pod, there) if there is not None else None
                return RejectedNodes(
                    plugin=step.rule.name, texts=said.reasons, obstacle=found, unresolvable=said.unresolvable
                )
        return None


def _of_totals() -> RejectedNodes:
    return RejectedNodes(plugin=ZONES, texts=(wording.NOT_ENOUGH_LEFT,))


def _of(reason: Reason) -> RejectedNodes:
    texts = (wording.reference(reason),)
    return RejectedNodes(plugin=ZONES, texts=texts, reason=reason, unresolvable=reason.structural)
