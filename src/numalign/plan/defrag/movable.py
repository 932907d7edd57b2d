"""Which pods a plan may move, and which of them move together.

`planner` calls `read` once. A pod moves only if a controller creates another one in its place. Pods of a DaemonSet or
of a static manifest stay, and so do pods that an annotation protects, that a PodDisruptionBudget does not release, that
matter more than what the plan is for, or that do not run yet. Members of a group move together or not at all."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Final

from msgspec import Struct, structs

from numalign.api.attributes import directresult
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.plan.defrag.messages import Kept
from numalign.scheduler import placementannotation
from numalign.scheduler.snapshot.restore import Restored

HIGHEST_USER_PRIORITY: Final = 1_000_000_000
"""Pods above it are critical for the system."""
PROTECTED: Final[Mapping[str, str | None]] = {
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
    "karpenter.sh/do-not-disrupt": "true",
    "karpenter.sh/do-not-evict": "true",
    "descheduler.alpha.kubernetes.io/prefer-no-eviction": None,
    "numalign.io/do-not-evict": "true",
}
"""Annotations that keep a pod where it is, with the value that does; None: any."""
WRITTEN: Final = frozenset({placementannotation.NAME, directresult.RESULT, directresult.KOORDINATOR_RESULT})
"""Annotations that schedulers write on a pod that they place."""
MIRROR: Final = "kubernetes.io/config.mirror"
GROUP_LABELS: Final = (
    "scheduling.x-k8s.io/pod-group",
    "pod-group.scheduling.sigs.k8s.io",
    "leaderworkerset.sigs.k8s.io/group-key",
    "jobset.sigs.k8s.io/jobset-name",
    "training.kubeflow.org/job-name",
    "ray.io/cluster",
)
GROUP_ANNOTATIONS: Final = ("scheduling.k8s.io/group-name",)
INDEXED: Final = "batch.kubernetes.io/job-completion-index"
SINGLY: Final = frozenset({"ReplicaSet", "ReplicationController", "StatefulSet", "Job", "CloneSet"})
"""Controllers whose pods are replaced one by one. Of any other kind, all pods count as one group."""


class Member(Struct, frozen=True):
    """A pod that moves, as it is and as its controller creates it again."""

    uid: str
    row: int
    pod: Pod
    kind: int
    """Pods with equal numbers are alike for all filters: they have one controller and one shape."""


class Unit(Struct, frozen=True):
    """A pod, or a group that moves as a whole."""

    number: int
    group: str
    members: tuple[Member, ...]

    @property
    def pods(self) -> int:
        return len(self.members)

    @property
    def cost(self) -> int:
        """Evictions first, then priorities: fewer pods are better whatever they are."""
        return (len(self.members) << 44) + sum(each.pod.spec.priority + (1 << 31) for each in self.members)


class Movable(Struct, frozen=True):
    units: tuple[Unit, ...]
    kinds: tuple[Pod, ...]
    """By number, a pod of this kind as it is created again."""
    kept: tuple[Kept, ...]
    why_kept: Mapping[str, str]
    """By uid, of pods that stay."""

    def on_row(self) -> dict[int, list[Unit]]:
        """By row, the units that have a pod there."""
        found: dict[int, list[Unit]] = defaultdict(list)
        for unit in self.units:
            for row in {each.row for each in unit.members}:
                found[row].append(unit)
        return found


def read(made: Restored, most_priority: int) -> Movable:
    """`most_priority`: pods above it stay."""
    groups: dict[str, list[tuple[str, int, Pod]]] = defaultdict(list)
    why: dict[str, str] = {}
    names: dict[str, str] = {}
    for uid, assigned in made.world.pods.items():
        pod = assigned.pod
        key, name = _group(pod)
        groups[key].append((uid, assigned.row, pod))
        names[key] = name
        reason = _stays(pod, most_priority) or _not_created_again(made, pod)
        if reason:
            why[uid] = reason
    kinds: dict[tuple[str, int], int] = {}
    made_again: list[Pod] = []
    units: list[Unit] = []
    for key, pods in groups.items():
        unmoved = next((why[uid] for uid, _, _ in pods if uid in why), "")
        if not unmoved and made.stock.budgets.violated_by(pod for _, _, pod in pods):
            unmoved = "a PodDisruptionBudget does not allow its eviction now"
        if unmoved:
            for uid, _, _ in pods:
                why.setdefault(uid, unmoved if len(pods) == 1 else f"its group stays: {unmoved}")
            continue
        members = []
        for uid, row, pod in pods:
            again = created_again(pod)
            owner = pod.metadata.controller
            assert owner is not None, "a pod without a controller stays"
            shape = made.engine.shape(again).number
            kind = kinds.setdefault((owner.uid or f"{pod.metadata.namespace}/{owner.name}", shape), len(made_again))
            if kind == len(made_again):
                made_again.append(again)
            members.append(Member(uid, row, pod, kind))
        units.append(Unit(len(units), names[key] if len(pods) > 1 else "", tuple(members)))
    return Movable(tuple(units), tuple(made_again), _kept(made, why), why)


def created_again(pod: Pod) -> Pod:
    """The pod as its controller creates it after the eviction: without a node, a status or what schedulers wrote."""
    meta = pod.metadata
    metadata = structs.replace(
        meta,
        name=f"{meta.name}-again",
        uid=f"{meta.uid}-again",
        annotations={key: value for key, value in meta.annotations.items() if key not in WRITTEN},
        deletion_timestamp=None,
    )
    return Pod(metadata=metadata, spec=structs.replace(pod.spec, node_name=""))


def is_daemon(pod: Pod) -> bool:
    """Whether the pod belongs to its node, and goes when the node does."""
    owner = pod.metadata.controller
    return MIRROR in pod.metadata.annotations or (owner is not None and owner.kind in ("DaemonSet", "Node"))


def _stays(pod: Pod, most_priority: int) -> str:
    """Why the pod stays; empty: it may move."""
    meta = pod.metadata
    if is_daemon(pod):
        return "belongs to its node (a DaemonSet or a static pod)"
    if meta.controller is None:
        return "has no controller that would create it again"
    if meta.deletion_timestamp is not None:
        return "is terminating"
    if not pod.has_started:
        return "does not run yet"
    if pod.spec.priority > HIGHEST_USER_PRIORITY:
        return "is critical for the system"
    if pod.spec.priority > most_priority:
        return f"has a priority above {most_priority:,}"
    for name, value in PROTECTED.items():
        if name in meta.annotations and value in (None, meta.annotations[name]):
            return f"is protected by the annotation {name}"
    return ""


def _not_created_again(made: Restored, pod: Pod) -> str:
    """Annotations may be edited while the pod runs."""
    try:
        made.engine.shape(created_again(pod))
    except BadObject:
        return "has annotations for which no node takes it again"
    return ""


def _group(pod: Pod) -> tuple[str, str]:
    """Equal for pods that move together; and the name of the group."""
    meta = pod.metadata
    owner = meta.controller
    if is_daemon(pod):
        return f"pod {meta.uid}", ""
    upstream = (pod.spec.scheduling_group or {}).get("podGroupName")
    named = [upstream] if isinstance(upstream, str) and upstream else []
    named += [meta.labels[label] for label in GROUP_LABELS if label in meta.labels]
    named += [meta.annotations[name] for name in GROUP_ANNOTATIONS if name in meta.annotations]
    if named:
        return f"group {meta.namespace}/{named[0]}", f"{meta.namespace}/{named[0]}"
    is_indexed = owner is not None and owner.kind == "Job" and INDEXED in meta.annotations
    if owner is not None and (owner.kind not in SINGLY or is_indexed):
        name = f"{owner.kind} {meta.namespace}/{owner.name}"
        return f"owner {meta.namespace} {owner.kind} {owner.name}", name
    return f"pod {meta.uid}", ""


def _kept(made: Restored, why: Mapping[str, str]) -> tuple[Kept, ...]:
    counts = Counter(why.values())
    examples = {reason: made.world.pods[uid].pod.metadata.full_name for uid, reason in reversed(list(why.items()))}
    return tuple(Kept(reason, number, examples[reason]) for reason, number in counts.most_common())
