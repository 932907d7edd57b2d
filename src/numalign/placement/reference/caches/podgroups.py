"""Which pods of a node a report may speak of.

A resync sorts the cluster's pods with `by_node`. Which of them are relevant depends on the informer mode (scheduler
plugin spec 13.9); the reference expects exactly these in a fingerprint. Publishers differ, though: a kubelet before
1.34 lists pods that have ended, later ones do not; all list pods whose init containers run or whose image cannot be
pulled, which are Pending for as long. `expected` gives every set that a current report can have signed."""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from msgspec import Struct, field

from numalign.api.objects.pod import Pod
from numalign.placement.reference.caches.repairs import Repair
from numalign.placement.referenceargs import InformerMode

RUNNING: Final = "Running"
PENDING: Final = "Pending"
ENDED: Final = frozenset({"Succeeded", "Failed"})

Relevance = Callable[[Pod], bool]
PodKey = tuple[str, str]
"""Namespace and name."""


class NodePods(Struct):
    """The pods of one node: the relevant ones, and those that are bound to it but not relevant yet."""

    relevant: list[Pod] = field(default_factory=list)
    starting: list[Pod] = field(default_factory=list)


def relevance(mode: InformerMode) -> Relevance:
    return _has_left_pending if mode is InformerMode.DEDICATED else _is_running


def by_node(pods: Iterable[Pod], relevant: Relevance) -> dict[str, NodePods]:
    found: dict[str, NodePods] = {}
    for pod in pods:
        node = pod.spec.node_name
        if relevant(pod):
            found.setdefault(node, NodePods()).relevant.append(pod)
        elif node and not has_ended(pod):
            found.setdefault(node, NodePods()).starting.append(pod)
    return found


def expected(pods: NodePods, repairs: frozenset[Repair]) -> Iterator[list[Pod]]:
    """The sets of pods that confirm a report, the reference's first."""
    if pods.relevant or Repair.EMPTY_NODE in repairs:
        yield pods.relevant
    lasting = [pod for pod in pods.relevant if not has_ended(pod)]
    has_less = len(lasting) < len(pods.relevant)
    if has_less and Repair.ENDED_PODS in repairs:
        yield lasting
    if pods.starting and Repair.STARTING_PODS in repairs:
        yield pods.relevant + pods.starting
        if has_less and Repair.ENDED_PODS in repairs:
            yield lasting + pods.starting


def may_run_on(pod: Pod, node: str) -> bool:
    """Whether the pod is bound to the node or to none yet."""
    return pod.spec.node_name in ("", node) and not has_ended(pod)


def has_ended(pod: Pod) -> bool:
    return pod.status.phase in ENDED


def key_of(pod: Pod) -> PodKey:
    return pod.metadata.namespace, pod.metadata.name


def _is_running(pod: Pod) -> bool:
    return pod.status.phase == RUNNING


def _has_left_pending(pod: Pod) -> bool:
    return pod.status.phase != PENDING and pod.spec.node_name != ""
