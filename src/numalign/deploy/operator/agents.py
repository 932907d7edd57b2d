"""NUMAResourcesOperator: node groups to DaemonSets of the agent. Pure.

`controller` calls `plan` with what it sees of the cluster. The spec becomes values of the chart, and the objects are
what `deploy render` makes of them. Groups that share nodes are refused: what they have stays as it is, while the other
groups go on. When a group goes, or changes its nodes, first the agents go, and then the reports that no agent
updates any more; the status remembers which these are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.api.nrt import wire
from numalign.api.objects import selectors
from numalign.api.objects.selectors import LabelSelector, LabelSelectorRequirement
from numalign.deploy import model, render
from numalign.deploy.model import Values
from numalign.deploy.operator import groups, kinds, objects, plan
from numalign.deploy.operator.conditions import Extra, Outcome
from numalign.deploy.operator.groups import Group
from numalign.deploy.operator.kinds import NUMAResourcesOperator, OperatorSpec, RemovedGroup, Status
from numalign.deploy.operator.objects import Key, Tree
from numalign.deploy.operator.plan import BadImage, ObservedCluster, Owner, Plan, PlanOptions, Rollout

UPDATING: Final = "DaemonSetIsUpdating"
NOT_READY: Final = "AgentsNotReady"
BAD_GROUPS: Final = "ValidationErrorUnderNodeGroups"
OVERLAP: Final = "OverlappingNodeGroups"
BAD_IMAGE: Final = "CustomUserImage"
NO_FINGERPRINT: Final = "--no-fingerprint"
NO_PUBLISH: Final = "--no-publish"


class _Split(Struct, frozen=True):
    """The groups, and what of them is deployed."""

    deployed: list[Group]
    refused: list[Group]
    """Share nodes with another group."""
    members: dict[str, list[str]]
    overlaps: list[str]


def plan_for(resource: NUMAResourcesOperator, observed: ObservedCluster, options: PlanOptions) -> Plan:
    meta, spec = resource.metadata, resource.spec
    paused = plan.paused(meta)
    if paused.holds:
        return Plan(extras=(paused,), status=_frozen(resource.status))
    if (misnamed := plan.misnamed(kinds.OPERATOR, meta.name)) is not None:
        return Plan(outcome=misnamed, extras=(paused,))
    found, problems = groups.read(spec.node_groups)
    if problems:
        refused = Outcome("Degraded", BAD_GROUPS, "; ".join(map(str, problems)))
        return Plan(outcome=refused, extras=(paused,), status=_frozen(resource.status))
    try:
        image = plan.image(spec.image_spec, options.values.agent.image, options)
    except BadImage as problem:
        refused = Outcome("Degraded", BAD_IMAGE, str(problem))
        return Plan(outcome=refused, extras=(paused,), status=_frozen(resource.status))
    split = _split(found, observed)
    values = values_of(spec, split.deployed, image, options.values)
    if meta.annotations.get(kinds.REPORT_DEFINITION) == kinds.BY_CLUSTER:
        values = structs.replace(values, crds=structs.replace(values.crds, install=False))
    return _Agents(resource, observed, options, split).planned(values, paused)


def _frozen(status: Status) -> Status:
    """What was known before; a resource that is not obeyed keeps its operands."""
    return {key: value for key, value in status.items() if key not in ("conditions", "observedGeneration", "reason")}


def _split(found: list[Group], observed: ObservedCluster) -> _Split:
    members = groups.members(found, observed.nodes)
    names = [
        name for name in members if any(set(members[name]) & set(members[other]) for other in members if other != name)
    ]
    return _Split(
        [group for group in found if group.name not in names],
        [group for group in found if group.name in names],
        members,
        groups.overlaps(members),
    )


def values_of(spec: OperatorSpec, deployed: Sequence[Group], image: model.Image, base: Values) -> Values:
    """The values of the chart that make the same objects: agents alone."""
    agent = structs.replace(
        base.agent,
        enabled=bool(deployed),
        image=image,
        verbosity=kinds.LOG_LEVELS.get(spec.log_level, 2),
        node_groups=[_group_values(group, base.agent.extra_args) for group in deployed],
    )
    # An image that the resource names is meant as it is written.
    world = structs.replace(base.global_, image_registry="") if image != base.agent.image else base.global_
    return structs.replace(base, agent=agent, global_=world)


def _group_values(group: Group, extra_args: Sequence[str]) -> model.NodeGroup:
    settings = group.settings
    own = [NO_FINGERPRINT] if settings.fingerprinting == "Disabled" else []
    own += [NO_PUBLISH] if settings.paused else []
    return model.NodeGroup(
        name=group.name,
        node_selector=group.selector.match_labels,
        affinity=_affinity(group.selector) if group.selector.match_expressions else msgspec.UNSET,
        tolerations=[dict(each) for each in settings.tolerations],
        period=round(settings.agent_period),
        extra_args=[*extra_args, *own] if own else msgspec.UNSET,
    )


def _affinity(selector: LabelSelector) -> Tree:
    written = [
        {"key": each.key, "operator": each.operator} | ({"values": list(each.values)} if each.values else {})
        for each in selector.match_expressions
    ]
    terms = [{"matchExpressions": written}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def objects_of(values: Values, options: PlanOptions) -> list[Tree]:
    return render.render(values, options.release, components=("crds", "agent"))


class _Agents:
    """One reconciliation of a resource whose groups are valid."""

    def __init__(
        self, resource: NUMAResourcesOperator, observed: ObservedCluster, options: PlanOptions, split: _Split
    ) -> None:
        self._resource, self._observed, self._options, self._split = resource, observed, options, split
        self._owner = Owner(kinds.OPERATOR.kind, resource.metadata)

    def planned(self, values: Values, paused: Extra) -> Plan:
        wanted = objects_of(values, self._options)
        refused = {self._daemonset(group) for group in self._split.refused}
        found = plan.compared(wanted, self._observed, self._owner, keep=refused.__contains__)
        removed, ready = self._removed(wanted, found), self._departed
        waiting = [each for each in removed if each not in self._resource.removed]
        # What is deleted is written down first, so that a crash in between leaves no report behind.
        names = {each.name for each in waiting}
        found = structs.replace(found, delete=tuple(each for each in found.delete if each.key.name not in names))
        gone = [each for each in removed if each not in waiting and ready(each, wanted)]
        rollouts = [plan.rollout(self._daemonset(group), self._observed) for group in self._split.deployed]
        outcome, again = plan.judged(
            rollouts, found, self._resource.status, (UPDATING, NOT_READY), self._observed.now, self._notes()
        )
        if self._split.overlaps:
            why = "; ".join(self._split.overlaps)
            outcome = Outcome(
                "Degraded", OVERLAP, f"{why}; relabel the nodes, or change the groups. They stay as they are"
            )
        return Plan(
            outcome=outcome,
            extras=(paused,),
            status=self._status(rollouts, [each for each in removed if each not in gone]),
            apply=found.apply,
            remove=found.remove,
            delete=found.delete,
            forget=self._orphans(gone),
            again=again,
        )

    def _daemonset(self, group: Group) -> Key:
        return Key("DaemonSet", f"{self._options.fullname}-agent-{group.name}", self._options.namespace)

    def _notes(self) -> list[str]:
        empty = [group.name for group in self._split.deployed if not self._split.members[group.name]]
        notes = [f"node group {name} selects no node" for name in empty]
        if self._resource.spec.image_spec and self._options.image_policy == "own":
            notes.append("spec.imageSpec has no effect: this operator runs its own image")
        if self._resource.spec.pod_excludes:
            notes.append("spec.podExcludes has no effect: numalign's agent accounts for every pod")
        return notes

    # Reports of nodes that have no agent any more

    def _removed(self, wanted: Sequence[Tree], found: plan.Compared) -> list[RemovedGroup]:
        """DaemonSets that go, or leave nodes: those that the status names, and new ones."""
        if self._resource.metadata.annotations.get(kinds.KEEP_REPORTS) == kinds.ENABLED:
            return []
        known = list(self._resource.removed)
        changed = {objects.key_of(tree): tree for tree in wanted if tree["kind"] == "DaemonSet"}
        gone = {each.key for each in found.delete}
        for key, live in sorted(self._observed.objects.items()):
            if key.kind != "DaemonSet" or not self._owner.has(live):
                continue
            now, then = selector_of(live.spec), selector_of(changed[key]["spec"]) if key in changed else None
            if key in gone or (then is not None and then != now):
                record = RemovedGroup(key.name, now)
                known += [record] if record not in known else []
        return known

    def _departed(self, record: RemovedGroup, wanted: Sequence[Tree]) -> bool:
        """Whether the agents of the former nodes are gone."""
        live = self._observed.objects.get(Key("DaemonSet", record.name, self._options.namespace))
        if live is None:
            return True
        status = live.status if isinstance(live.status, dict) else {}
        seen = int(status.get("observedGeneration", 0)) >= live.metadata.generation
        is_wanted = any(tree["metadata"]["name"] == record.name for tree in wanted if tree["kind"] == "DaemonSet")
        return (
            is_wanted and seen and selector_of(live.spec) != record.selector and not status.get("numberMisscheduled", 0)
        )

    def _orphans(self, gone: Sequence[RemovedGroup]) -> tuple[str, ...]:
        kept = {name for names in self._split.members.values() for name in names}
        return tuple(
            sorted(
                node.metadata.name
                for node in self._observed.nodes
                if node.metadata.name not in kept
                and any(selectors.matches(each.selector, node.metadata.labels) for each in gone)
            )
        )

    # Status

    def _status(self, rollouts: Sequence[Rollout], removed: Sequence[RemovedGroup]) -> Status:
        deployed, namespace = self._split.deployed, self._options.namespace
        ready = [{"namespace": namespace, "name": each.key.name} for each in rollouts if each.state.ready]
        related = [{"group": "", "resource": "namespaces", "name": namespace}]
        related += [{"group": wire.GROUP, "resource": "noderesourcetopologies", "name": ""}]
        related += [{"group": "apps", "resource": "daemonsets", **each} for each in ready]
        pools = [{"name": group.name, "config": group.settings.status()} for group in deployed if group.is_pool]
        shown: list[dict[str, Any]] = [
            {
                "daemonsets": {"namespace": namespace, "name": each.key.name},
                "config": group.settings.status(),
                "selector": group.name,
                "nodes": len(self._split.members[group.name]),
                "ready": each.ready,
            }
            for group, each in zip(deployed, rollouts, strict=True)
        ]
        status: Status = {
            "nodes": f"{sum(each.ready for each in rollouts)}/{sum(each.wanted for each in rollouts)}",
            "daemonsets": ready,
            "machineconfigpools": pools,
            "nodeGroups": shown,
            "relatedObjects": related,
        }
        kept: list[Any] = msgspec.json.decode(msgspec.json.encode(removed))
        return status | ({"removedNodeGroups": kept} if kept else {})


def selector_of(spec: Any) -> LabelSelector:
    """The nodes that a DaemonSet of this spec asks for, by labels."""
    pod = spec["template"]["spec"]
    required = (
        (pod.get("affinity") or {}).get("nodeAffinity", {}).get("requiredDuringSchedulingIgnoredDuringExecution", {})
    )
    terms = required.get("nodeSelectorTerms") or [{}]
    written = terms[0].get("matchExpressions") or ()
    return LabelSelector(
        match_labels=dict(pod.get("nodeSelector") or {}),
        match_expressions=msgspec.convert(list(written), tuple[LabelSelectorRequirement, ...]),
    )
