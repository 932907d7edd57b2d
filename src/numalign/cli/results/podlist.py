"""Chooses pods of a cluster by name, owner or label, and draws many explanations as a table, a line per pod.

`numalign explain pod` and `numalign why` call it. Names are those of kubectl: NAME, NAMESPACE/NAME, pod/NAME or the
owner of pods, as in deployment/NAME. Many pods are explained in the order of the scheduler's queue, on one snapshot:
each pod that would find a node takes its room, so that two pods are not promised the same zone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from numalign.api.attributes import intent
from numalign.api.decode.structs import ENCODER
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.cli import output
from numalign.cli.display.formats import Page
from numalign.cli.results import explaindraw, explanation
from numalign.cli.results.explanation import NO_SIGNS, ClusterView, ExplainDetail, ExplainOutput
from numalign.kube.resources import PODS, Resource
from numalign.kubelet import refusals
from numalign.scheduler.explain.serving import SchedulerSigns
from numalign.scheduler.intake import watching
from numalign.scheduler.snapshot.snapshot import Snapshot

POD: Final = "Pod"
KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("po", "pod", "pods"), POD),
    **dict.fromkeys(("deploy", "deployment", "deployments", "deployment.apps", "deployments.apps"), "Deployment"),
    **dict.fromkeys(("rs", "replicaset", "replicasets", "replicaset.apps", "replicasets.apps"), "ReplicaSet"),
    **dict.fromkeys(("sts", "statefulset", "statefulsets", "statefulset.apps", "statefulsets.apps"), "StatefulSet"),
    **dict.fromkeys(("ds", "daemonset", "daemonsets", "daemonset.apps", "daemonsets.apps"), "DaemonSet"),
    **dict.fromkeys(("job", "jobs", "job.batch", "jobs.batch"), "Job"),
    **dict.fromkeys(("rc", "replicationcontroller", "replicationcontrollers"), "ReplicationController"),
}
"""The spellings of kubectl, by the kind of the owner."""
OWNED_OWNERS: Final[tuple[Resource[Any], ...]] = (watching.REPLICA_SETS,)
"""Owners of pods that have an owner themselves."""
MOST_EXPLAINED: Final = 50
"""Kinds of pods that find no node and are explained in full; of further ones the last message counts."""
NOT_ASKED: Final = "not explained: the list has too many kinds of pods; name the pod"

Selected = Callable[[Mapping[str, str]], bool]


class PodQuery(Struct, frozen=True, kw_only=True):
    """Which pods are asked for. Without names and selector: all that wait or were rejected."""

    names: Sequence[str] = ()
    namespace: str = "default"
    """Empty: all namespaces."""
    selected: Selected | None = None

    @property
    def is_one(self) -> bool:
        """Whether it names one pod, not an owner of pods."""
        return len(self.names) == 1 and self.selected is None


def chosen(taken: Snapshot, asked: PodQuery) -> list[Pod]:
    """The pods, in the order of the scheduler's queue; NotFound if a name is that of no pod."""
    pods = [pod for pod in taken.every(PODS) if asked.namespace in ("", pod.metadata.namespace)]
    if asked.names:
        named = dict.fromkeys(pod.metadata.full_name for name in asked.names for pod in _named(taken, asked, name))
        pods = [pod for pod in taken.every(PODS) if pod.metadata.full_name in named]
    elif asked.selected is None:
        pods = [pod for pod in pods if _is_stuck(pod)]
    if asked.selected is not None:
        pods = [pod for pod in pods if asked.selected(pod.metadata.labels)]
    return sorted(pods, key=lambda pod: (-pod.spec.priority, pod.metadata.creation_timestamp or "", pod.metadata.name))


def _is_stuck(pod: Pod) -> bool:
    return refusals.is_rejection(pod) or (not pod.spec.node_name and not pod.status.is_finished)


def _named(taken: Snapshot, asked: PodQuery, name: str) -> list[Pod]:
    before, slash, plain = name.rpartition("/")
    pod = taken.pod(name) if slash else None
    if pod is not None:
        return [pod]
    kind = KINDS.get(before.lower()) if slash else POD
    if kind is None:
        return [explanation.found(taken, name)]
    if kind == POD:
        return [explanation.found(taken, f"{asked.namespace or 'default'}/{plain}")]
    found = _owned(taken, kind, plain, asked.namespace)
    if not found:
        raise BadObject(kind, f"{asked.namespace}/{plain}" if asked.namespace else plain, "", "owns no pod here")
    return found


def _owned(taken: Snapshot, kind: str, name: str, namespace: str) -> list[Pod]:
    owners = {("", kind, name)}
    for resource in OWNED_OWNERS:
        for each in taken.every(resource):
            owner = each.metadata.controller
            if owner is not None and (owner.kind, owner.name) == (kind, name):
                owners.add((each.metadata.namespace, resource.kind, each.metadata.name))
    return [
        pod
        for pod in taken.every(PODS)
        if namespace in ("", pod.metadata.namespace)
        and (owner := pod.metadata.controller) is not None
        and {("", owner.kind, owner.name), (pod.metadata.namespace, owner.kind, owner.name)} & owners
    ]


def explained(
    taken: Snapshot, pods: Sequence[Pod], signs: Mapping[str, SchedulerSigns] | None = None
) -> tuple[ExplainOutput, ...]:
    """The answers to many pods. `signs`: by uid, what the API server has about the schedulers of a pending pod."""
    view, refused = ClusterView(taken), dict[tuple[object, ...], ExplainOutput]()
    answers = list[ExplainOutput]()
    for pod in pods:
        kind = _kind(pod)
        if kind in refused or (len(refused) >= MOST_EXPLAINED and not pod.spec.node_name):
            answers.append(view.progress(pod, refused.get(kind)))
            continue
        answer = view.explained(pod, ExplainDetail(), (signs or {}).get(pod.metadata.uid, NO_SIGNS))
        answers.append(answer)
        if not answer.fits and not pod.spec.node_name:
            refused[kind] = answer
    return tuple(answers)


def _kind(pod: Pod) -> tuple[object, ...]:
    """Equal for replicas, and for pods that are written alike: they get the same answer once one is refused."""
    meta, owner = pod.metadata, pod.metadata.controller
    replicas = owner.uid if owner is not None else (ENCODER.encode(pod.spec), tuple(sorted(meta.labels.items())))
    wishes = tuple(sorted((name, text) for name, text in meta.annotations.items() if name in intent.WISHES))
    return meta.namespace, replicas, wishes, pod.spec.scheduler_name, pod.spec.priority, bool(pod.spec.scheduling_gates)


def text(answers: Sequence[ExplainOutput], *, namespaces: bool, wide: bool = False) -> str:
    """`namespaces`: whether the namespace has a column; `wide`: the scheduler, too."""
    page = Page()
    before, after = (["NAMESPACE"] if namespaces else []), (["SCHEDULER"] if wide else [])
    table = page.table(*before, "POD", "STATE", "NODE", *after, "WHY")
    for each, more in _alike(answers):
        name = f"{each.pod.name} and {more:,} more" if more else each.pod.name
        cells = [name, each.pod.stage or "", _node(each), *([each.pod.scheduler] if wide else []), why(each)]
        table.add_row(*map(output.printable, [*([each.pod.namespace] if namespaces else []), *cells]))
    page.add(table)
    states = [str(each.pod.stage) for each in answers]
    counts = ", ".join(f"{states.count(state):,} {state}" for state in dict.fromkeys(states))
    page.add()
    page.add(f"{len(answers):,} pod{'s' * (len(answers) != 1)}: {counts}")
    return page.text()


def _alike(answers: Iterable[ExplainOutput]) -> list[tuple[ExplainOutput, int]]:
    """Replicas that are refused alike are one line, with the number of the others."""
    rows: dict[object, list[ExplainOutput]] = {}
    for number, each in enumerate(answers):
        rows.setdefault(id(each.asked) if each.asked is not None and not each.fits else number, []).append(each)
    return [(found[0], len(found) - 1) for found in rows.values()]


def _node(answer: ExplainOutput) -> str:
    if answer.pod.placed is not None:
        return answer.pod.placed.node
    return answer.pod.nominated or "-"


def why(answer: ExplainOutput) -> str:
    """The most important thing about the pod, in one line."""
    return next(filter(None, _reasons(answer)), "")


def _reasons(answer: ExplainOutput) -> Iterator[str]:
    pod, asked = answer.pod, answer.asked
    yield ": ".join(filter(None, (pod.reason, pod.final))) if pod.final else ""
    yield f"gated by {', '.join(pod.gates)}" if pod.gates else ""
    if pod.unattended and not answer.fits and (asked is None or asked.fits):
        yield pod.unattended
    if pod.placed is not None:
        yield explaindraw.placement(pod.placed) if pod.stage in ("running", "bound", "decided") else pod.reason
    if asked is not None and asked.never:
        yield f"never fits: {asked.never}"
    yield answer.preemptions[0].text if answer.preemptions else ""
    yield f"would go to {answer.chosen.node}" if answer.chosen is not None else ""
    if asked is not None:
        yield _refusal(asked.causes[0].why if asked.causes else asked.headline, asked.help)
    yield pod.message or NOT_ASKED


def _refusal(cause: str, help: str) -> str:
    return f"{cause}; {help}" if help else cause


def names(answers: Iterable[ExplainOutput]) -> str:
    """As `kubectl get -o name` prints them."""
    return "\n".join(output.printable(f"pod/{each.pod.name}") for each in answers)
