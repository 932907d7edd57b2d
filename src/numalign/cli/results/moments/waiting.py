"""Asks the engine about waiting pods for the dashboard: every shape on every node, and one pod under a change.

Sources call `matrix` and `asked` with a cluster as a scheduler knows it; the answers are those of `numalign explain`.
Pods that one controller made alike are asked about once, and nodes that give the same answers are shown as one."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from numalign.api.decode import structs as wire
from numalign.api.errors import BadObject
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Pod, Volume
from numalign.cli.results.moments import nodesheet, stranded
from numalign.cli.results.moments.scene import Scene
from numalign.dashboard.details import (
    Answer,
    Ask,
    Cause,
    Change,
    Container,
    Lack,
    NodeAnswer,
    NodeGroup,
    PodAnswer,
    Suggestion,
    WaitingMatrix,
    WaitingShape,
    ZoneShort,
)
from numalign.kubelet import refusals
from numalign.placement.columns.intent import Unkept
from numalign.placement.decisions import Code
from numalign.placement.explain import reasons, wording
from numalign.placement.explain.nodeview import Tenant
from numalign.placement.explain.reasons import AnySuggestion, Freeing, Oversized, Shrinking
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.choose.cluster import Cluster
from numalign.scheduler.explain import advise, counterfactual, explanations
from numalign.scheduler.explain.counterfactual import Resizing
from numalign.scheduler.explain.explanations import Explained, RejectedNodes, Stage
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot.restore import Restored

MOST_SHAPES: Final = 40
MOST_GROUPS: Final = 60
CLOSEST: Final = 12
"""Different answers of nodes that a pod's page describes in full."""
MOST_HOLDERS: Final = 4
"""Of the closest nodes, those whose pods can be left out on a click."""
NO_VOLUME: Final = Volume()
ORDER: Final = list(Answer)


class Asked(Struct, frozen=True):
    """A copy of the cluster, to be asked."""

    scene: Scene

    @property
    def made(self) -> Restored:
        assert self.scene.restored is not None, "the scene of a live scheduler is for reading only"
        return self.scene.restored

    @property
    def around(self) -> AttemptContext:
        return AttemptContext(self.made.cluster, self.made.nominations, self.made.rejections)

    def message(self, pod: Pod) -> str:
        """Of the Event of its latest attempt."""
        uid = pod.metadata.uid
        return next((each.message for each in reversed(self.scene.records) if each.uid == uid), "")


def matrix(known: Asked) -> WaitingMatrix:
    pods = _longest_first(known.scene)
    profiles = known.made.profiles
    served = [pod for pod in pods if pod.spec.scheduler_name in profiles]
    others = tuple(pod.metadata.full_name for pod in pods if pod.spec.scheduler_name not in profiles)
    alike: dict[Hashable, list[Pod]] = {}
    for pod in served:
        if not pod.spec.scheduling_gates:
            alike.setdefault(_likeness(pod), []).append(pod)
    shapes, answers = list[WaitingShape](), list[dict[str, NodeAnswer]]()
    for same in list(alike.values())[:MOST_SHAPES]:
        profile = profiles[same[0].spec.scheduler_name]
        found = explanations.explained(same[0], profile, known.around, known.made.now)
        suggested = advise.found(found, profile, known.around)
        shapes.append(_shape(same, found, suggested))
        answers.append(_answers(found))
    groups = _groups(answers)
    return WaitingMatrix(
        shapes=tuple(shapes),
        groups=tuple(groups),
        answers=tuple(tuple(each[group.nodes[0]] for group in groups) for each in answers),
        left_out=max(0, len(alike) - MOST_SHAPES),
        unserved=others,
        gated=tuple(pod.metadata.full_name for pod in served if pod.spec.scheduling_gates),
    )


def _longest_first(scene: Scene) -> list[Pod]:
    def waits(pod: Pod) -> float:
        known = scene.queue.get(pod.metadata.uid)
        return known.waits if known is not None else 0.0

    return sorted(
        scene.waiting.values(),
        key=lambda pod: (-waits(pod), pod.metadata.creation_timestamp or "", pod.metadata.full_name),
    )


def _likeness(pod: Pod) -> Hashable:
    """Equal for pods that get the same answers: of one controller, with the same spec."""
    meta, spec = pod.metadata, pod.spec
    volumes = tuple(named for each in spec.volumes if (named := structs.replace(each, name="")) != NO_VOLUME)
    owner = meta.controller.uid if meta.controller is not None else tuple(sorted(meta.labels.items()))
    return meta.namespace, owner, wire.encode(structs.replace(spec, volumes=volumes))


def _shape(pods: Sequence[Pod], found: Explained, suggested: tuple[AnySuggestion, ...]) -> WaitingShape:
    return WaitingShape(
        pods=tuple(pod.metadata.full_name for pod in pods),
        requests={resource: amount for resource, amount in stranded.asked(pods[0]).items() if amount},
        headline=found.headline,
        help=advise.line(suggested),
        fitting=len(found.fitting) + len(found.untried),
        never=found.never is not None,
    )


def _answers(found: Explained) -> dict[str, NodeAnswer]:
    """By node. Nodes whose reasons are one object share one answer, but for the name."""
    answers = {node: NodeAnswer(node=node, answer=Answer.FITS) for node in found.fitting}
    answers |= {node: NodeAnswer(node=node, answer=Answer.MAYBE, why=wording.UNTRIED) for node in found.untried}
    answers |= {node: node_answer(node, each) for node, each in found.refused.items()}
    return answers


def node_answer(node: str, rejected: RejectedNodes) -> NodeAnswer:
    reason = rejected.reason
    found = NodeAnswer(
        node=node, answer=_answer(rejected), why=rejected.sentence, plugin=rejected.plugin, says=rejected.texts
    )
    if reason is None:
        return found
    return structs.replace(
        found,
        why=wording.sentence_with_zones(reason),
        policy=reason.policy or "",
        scope=reason.scope or "",
        container=reason.container,
        lacks=tuple(map(_lack, reason.lacks)),
    )


def _answer(rejected: RejectedNodes) -> Answer:
    reason = rejected.reason
    if reason is None or isinstance(reason.cause, Unkept):
        return Answer.RULE
    if reason.structural:
        return Answer.NEVER
    return Answer.MAYBE if reason.code in (Code.NOT_CERTAIN, Code.NOT_DECIDED) else Answer.SHORT


def _lack(lack: reasons.Lack) -> Lack:
    return Lack(
        resource=lack.resource,
        need=lack.need,
        in_zones=lack.zones,
        most=lack.most,
        zones=tuple(ZoneShort(each.zone, each.free, each.short) for each in lack.by_zone),
    )


def _groups(answers: Sequence[Mapping[str, NodeAnswer]]) -> list[NodeGroup]:
    """Nodes by their answers, the closest first."""
    alike: dict[Hashable, list[str]] = {}
    distance: dict[Hashable, tuple[float, ...]] = {}
    nodes = sorted(set.intersection(*(set(each) for each in answers))) if answers else []
    for node in nodes:
        column = [each[node] for each in answers]
        key = tuple((each.answer, each.why, each.lacks) for each in column)
        alike.setdefault(key, []).append(node)
        distance[key] = min(_distance(each) for each in column)
    ordered = sorted(alike, key=lambda key: (distance[key], alike[key]))
    return [NodeGroup(nodes=tuple(alike[key])) for key in ordered[:MOST_GROUPS]]


def _distance(found: NodeAnswer) -> tuple[float, ...]:
    worst = found.worst
    return float(ORDER.index(found.answer)), worst.short / worst.need if worst is not None else 0.0


def asked(known: Asked, name: str, change: Change) -> PodAnswer | None:
    """None: there is no such pod."""
    cluster = known.made.cluster
    pod = known.scene.waiting.get(name) or _bound(cluster, name)
    if pod is None:
        return None
    state = explanations.of(pod, cluster)
    profile = known.made.profiles.get(pod.spec.scheduler_name)
    found = PodAnswer(
        pod=name,
        scheduler=pod.spec.scheduler_name,
        profile=profile.name if profile is not None else "",
        stage=state.stage,
        node=state.node,
        message=known.message(pod) or state.message,
        asks=tuple(_asks(pod)),
    )
    if state.node and state.stage is not Stage.REJECTED:
        return structs.replace(found, containers=tuple(_containers(state.tenant)))
    if profile is None:
        served = ", ".join(known.made.profiles)
        return structs.replace(found, unattended=f"no scheduler {pod.spec.scheduler_name} is known here, but {served}")
    if refusals.is_rejection(pod):
        pod = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
    return _nodes_asked(found, pod, change, profile, known)


def _containers(tenant: Tenant | None) -> Iterator[Container]:
    """What was decided for the containers of a pod in direct mode."""
    for name, decided in nodesheet.decisions(tenant).items():
        yield Container(
            name=name, zones=tuple(tenant.containers.get(name, ())) if tenant is not None else (), decided=decided
        )


def _nodes_asked(found: PodAnswer, pod: Pod, change: Change, profile: Profile, known: Asked) -> PodAnswer:
    resized = tuple(Resizing(each.container, each.resource, each.amount) for each in change.asks)
    wanted = counterfactual.Change(
        resized=resized, gone=change.gone, node=change.node, policy=change.policy, scope=change.scope
    )
    try:
        explained = counterfactual.asked(pod, wanted, profile, known.around, known.made.now)
    except BadObject as problem:
        return structs.replace(found, problem=str(problem))
    # What would help the pod as it is; advice about a cluster that does not exist would be no advice.
    suggested = advise.found(explained, profile, known.around) if change.is_none else ()
    answers = _answers(explained)
    return structs.replace(
        found,
        headline=explained.headline,
        never=wording.sentence(explained.never) if explained.never is not None else "",
        nodes=explained.nodes,
        fitting=explained.fitting,
        untried=len(explained.untried),
        causes=causes(explained),
        closest=tuple(_closest(explained, answers)),
        changed=tuple(answers[node] for node in _meant(change, known.made.cluster) if node in answers),
        suggestions=tuple(_suggestion(each, found.asks) for each in suggested),
        holders=_holders(explained, known.made.cluster),
        notes=tuple(explained.notes),
    )


def _closest(explained: Explained, answers: Mapping[str, NodeAnswer]) -> Iterator[NodeAnswer]:
    """Nodes that answer the same are one answer: a fleet is mostly alike."""
    alike: dict[NodeAnswer, list[str]] = {}
    for node in explained.closest:
        alike.setdefault(structs.replace(answers[node], node=""), []).append(node)
    for answer, (first, *others) in islice(alike.items(), CLOSEST):
        yield structs.replace(answer, node=first, like=tuple(others))


def _meant(change: Change, cluster: Cluster) -> list[str]:
    """The nodes that a change names, by itself or by their pods."""
    gone, rows = set(change.gone), cluster.world.names
    on = (rows[each.row] for each in cluster.world.pods.values() if each.pod.metadata.full_name in gone)
    return list(dict.fromkeys([*([change.node] if change.node else []), *on]))


def causes(found: Explained) -> tuple[Cause, ...]:
    return tuple(
        Cause(nodes=len(each.nodes), why=each.answer.sentence, plugin=each.answer.plugin, examples=each.nodes[:3])
        for each in found.causes
    )


def _holders(found: Explained, cluster: Cluster) -> dict[str, tuple[str, ...]]:
    near = [node for node in found.closest if found.refused[node].distance[0] <= 1][:MOST_HOLDERS]
    named = {node: tuple(sorted(pod.metadata.full_name for pod in cluster.pods_on(node))) for node in near}
    return {node: pods for node, pods in named.items() if pods}


def _asks(pod: Pod) -> Iterator[Ask]:
    for container in pod.in_admission_order():
        wants = {**container.resources.limits, **container.resources.requests}
        for resource, quantity in sorted(wants.items()):
            amount = quantity.milli if resource == resourcenames.CPU else quantity.value
            if amount:
                yield Ask(container.name, resource, amount)


def _suggestion(found: AnySuggestion, asks: Iterable[Ask]) -> Suggestion:
    return Suggestion(wording.suggestion(found), _change(found, asks))


def _change(found: AnySuggestion, asks: Iterable[Ask]) -> Change | None:
    """The suggestion as a change that can be asked about; None: it is about rules or time."""
    if isinstance(found, Freeing):
        return Change(gone=found.pods)
    if isinstance(found, Shrinking | Oversized) and found.resource:
        alone = next((each.container for each in asks if each.resource == found.resource), "")
        return Change(asks=(Ask(found.container or alone, found.resource, found.amount),))
    return None


def _bound(cluster: Cluster, name: str) -> Pod | None:
    return next((each.pod for each in cluster.world.pods.values() if each.pod.metadata.full_name == name), None)
