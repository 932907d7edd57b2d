"""Explains a pod of a cluster, or pods that do not exist yet: JSON and YAML output, field by field.

`numalign explain` and the demo call `about_pod` and `about_shapes` with a snapshot of the cluster. A pod with a node
is looked up; a pending one is checked on every node by the scheduler's own code, and placed where it fits. Pods that do
not exist are placed one after the other, each charged for the next, on the snapshot only. Amounts are CPUs (thousandths
possible), bytes, or numbers of devices. docs/use/explain.md documents the fields; `explaindraw` makes the text."""

from __future__ import annotations

import difflib
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.api.objects import qos, requests, resourcenames
from numalign.api.objects.pod import Pod
from numalign.api.objects.qos import QoS
from numalign.cli.display import values
from numalign.cli.display.values import Amount, Held, Lacking, Reported, Zones
from numalign.kube.resources import PODS
from numalign.kubelet import refusals
from numalign.placement.columns.holdings import Source
from numalign.placement.explain import wording
from numalign.placement.explain.nodeview import ContainerDecision
from numalign.placement.explain.reasons import AnySuggestion
from numalign.scheduler.explain import advise, explanations, serving
from numalign.scheduler.explain.arrivals import Arrivals
from numalign.scheduler.explain.explanations import Cause, Explained, PodProgress, RejectedNodes, Stage
from numalign.scheduler.explain.serving import SchedulerSigns, Unattended
from numalign.scheduler.preempt.preemption import Nomination
from numalign.scheduler.snapshot import restore, snapshot
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot

EXAMPLES: Final = 3
"""Nodes of a cause that are named."""


class NodeOutput(Reported, frozen=True, kw_only=True):
    """One node's answer; a node that fits has nothing but its name."""

    node: str
    fits: bool
    why: str = ""
    plugin: str = ""
    says: tuple[str, ...] = ()
    """In the stock scheduler's words."""
    cause: str = ""
    policy: str = ""
    scope: str = ""
    container: str = ""
    never: bool = False
    """Whether the empty node would refuse the pod, too."""
    lacks: tuple[Lacking, ...] = ()


class CauseOutput(Reported, frozen=True, kw_only=True):
    """Nodes that refuse for one kind of reason."""

    nodes: int
    why: str
    plugin: str
    cause: str
    examples: tuple[str, ...]


class PlacementOutput(Reported, frozen=True, kw_only=True):
    """Where a pod is or would be. By container the zones, or all sets of zones that are possible."""

    node: str
    source: Source | None = None
    """How its zones are known; None: nothing of it is aligned, or the node has no report."""
    containers: Mapping[str, tuple[Zones, ...]] = {}
    possible: Zones = ()
    """All zones in which it may be, where no report says in which it is."""
    unreported: bool = False
    """Whether a kubelet may have aligned the pod, and the node has no report."""
    placed_blindly: bool = False
    """Whether numalign placed the pod without topology data."""
    holds: tuple[Held, ...] = ()
    decisions: tuple[ContainerDecision, ...] = ()
    """On a node in direct mode: what the scheduler decided, and what the agent did with it."""


class PodOutput(Reported, frozen=True, kw_only=True):
    namespace: str
    name: str
    scheduler: str
    qos_class: QoS
    requests: dict[str, Amount]
    stage: Stage | None = None
    """None: the pod does not exist."""
    leaving: bool = False
    gates: tuple[str, ...] = ()
    reason: str = ""
    message: str = ""
    unattended: str = ""
    """Of a pending pod that no scheduler has looked at: since when, and which schedulers there seem to be."""
    final: str = ""
    """Of a pod that its kubelet rejected: what becomes of it, and what to do."""
    taken_by: tuple[str, ...] = ()
    """Of a rejected pod: pods of other schedulers that were bound to its node at the same time."""
    nominated: str = ""
    """The node on which pods of lower priority are evicted for it."""
    evicted: tuple[str, ...] = ()
    """Those that have not ended yet."""
    preempted: bool = False
    """Whether it is evicted itself, for a pod of higher priority."""
    placed: PlacementOutput | None = None

    @property
    def full_name(self) -> str:
        return f"{self.namespace}/{self.name}"


class PreemptionOutput(Reported, frozen=True, kw_only=True):
    """The pods of lower priority that the scheduler would evict for a pod, and the node that the pod would get."""

    node: str
    victims: tuple[str, ...]
    priorities: tuple[int, int]
    """The lowest and the highest among the victims."""
    violations: int
    """Victims that a disruption budget protects."""
    text: str


class NodesOutput(Reported, frozen=True, kw_only=True):
    """The answers of the nodes."""

    profile: str
    """The profile whose plugins decided."""
    nodes: int
    fits: bool
    headline: str
    never: str = ""
    """Why no node would take the pod even when empty; empty: some would."""
    fitting: tuple[str, ...]
    untried: tuple[str, ...]
    causes: tuple[CauseOutput, ...]
    closest: tuple[NodeOutput, ...]
    answers: tuple[NodeOutput, ...]
    """Every node's answer, where the command asked for it."""
    help: str
    """One line of what would make it fit; empty: it fits, or nothing is known."""
    suggestions: tuple[Any, ...]
    notes: tuple[str, ...]


class ExplainOutput(Reported, frozen=True, kw_only=True):
    pod: PodOutput
    fits: bool
    """Whether it has a node, or would find one; of several, whether all would."""
    asked: NodesOutput | None = None
    """None: the pod has a node, so no node was asked."""
    chosen: PlacementOutput | None = None
    """Where it would go now; among equal nodes the choice is random."""
    preemptions: tuple[PreemptionOutput, ...] = ()
    """What the pods would preempt, one entry for each that does."""
    copies: int = 1
    """Number of pods that were placed one after the other."""
    placed: Mapping[str, int] = {}
    """Nodes that took them, with how many."""
    problems: tuple[str, ...] = ()
    """What could not be read of the cluster."""


def pod_output(thing: Pod, state: PodProgress | None = None) -> PodOutput:
    meta = thing.metadata
    known = state or PodProgress(stage=Stage.WAITING)
    return PodOutput(
        namespace=meta.namespace,
        name=meta.name,
        scheduler=thing.spec.scheduler_name,
        qos_class=qos.of(thing),
        requests=values.requested(requests.effective(thing)),
        stage=state.stage if state is not None else None,
        leaving=known.is_leaving,
        gates=known.gates,
        reason=known.reason,
        message=known.message,
        final=wording.final(meta.controller) if known.stage is Stage.REJECTED else "",
        taken_by=tuple(f"{each.metadata.full_name} ({each.spec.scheduler_name})" for each in known.taken_by),
        nominated=known.nominated,
        evicted=tuple(each.metadata.full_name for each in known.evicted),
        preempted=known.is_preempted,
        placed=placement_output(known) if known.node else None,
    )


def placement_output(known: PodProgress) -> PlacementOutput:
    node, tenant = known.node, known.tenant
    if known.lacks_report:
        foreseen = known.forecast or {}
        source = Source.PREDICTED if foreseen else None
        containers = {name: tuple(sets) for name, sets in foreseen.items()}
        blindly = known.placed_blindly
        return PlacementOutput(node=node, source=source, containers=containers, unreported=True, placed_blindly=blindly)
    if tenant is None or not tenant.charges:
        return PlacementOutput(node=node)
    held = tuple(
        Held(resource=each.resource, amount=each.amount, zones=each.zones, certain=each.certain)
        for each in sorted(tenant.charges, key=lambda each: (each.zones, each.resource))
    )
    possible = tenant.zones if tenant.source is Source.UNKNOWN else ()
    return PlacementOutput(
        node=node,
        source=tenant.source,
        containers=tenant.containers,
        possible=possible,
        holds=held,
        decisions=tenant.decisions,
    )


def nodes_output(found: Explained, suggested: tuple[AnySuggestion, ...], *, closest: int, every: bool) -> NodesOutput:
    """`closest`: how many nodes are described in full; `every`: whether all nodes are listed."""
    nodes = [*(fitting_node(node) for node in found.fitting), *map(untried_node, found.untried)]
    answers = [node_output(node, found.refused[node]) for node in sorted(found.refused)] if every else []
    return NodesOutput(
        profile=found.profile,
        nodes=found.nodes,
        fits=found.fits,
        headline=found.headline,
        never=wording.sentence(found.never) if found.never is not None else "",
        fitting=found.fitting,
        untried=found.untried,
        causes=tuple(map(cause_output, found.causes)),
        closest=tuple(node_output(node, found.refused[node]) for node in found.closest[:closest]),
        answers=tuple(sorted([*nodes, *answers], key=lambda each: each.node)) if every else (),
        help=advise.line(suggested),
        suggestions=tuple(map(suggestion_output, suggested)),
        notes=tuple(found.notes),
    )


def fitting_node(node: str) -> NodeOutput:
    return NodeOutput(node=node, fits=True)


def untried_node(node: str) -> NodeOutput:
    return NodeOutput(node=node, fits=True, why=wording.UNTRIED)


def node_output(node: str, rejected: RejectedNodes) -> NodeOutput:
    reason = rejected.reason
    known = NodeOutput(node=node, fits=False, why=rejected.sentence, plugin=rejected.plugin, says=rejected.texts)
    if reason is None:
        return known
    return msgspec.structs.replace(
        known,
        cause=reason.cause,
        policy=reason.policy or "",
        scope=reason.scope or "",
        container=reason.container,
        never=reason.structural,
        lacks=tuple(map(values.lacking, reason.lacks)),
    )


def cause_output(found: Cause) -> CauseOutput:
    reason = found.answer.reason
    return CauseOutput(
        nodes=len(found.nodes),
        why=found.answer.sentence,
        plugin=found.answer.plugin,
        cause=reason.cause if reason is not None else "",
        examples=found.nodes[:EXAMPLES],
    )


def suggestion_output(found: AnySuggestion) -> Any:
    """As plain values, with CPUs instead of thousandths."""
    return _in_cpus(msgspec.to_builtins(found))


def _in_cpus(plain: dict[str, Any]) -> dict[str, Any]:
    inner: dict[str, Any] = {name: _in_cpus(value) for name, value in plain.items() if isinstance(value, dict)}
    if plain.get("resource") == resourcenames.CPU:
        counted = ("amount", "insteadOf")
        inner |= {name: values.total(resourcenames.CPU, plain[name]) for name in counted if name in plain}
    return plain | inner


def preemption_output(found: Nomination) -> PreemptionOutput:
    victims = found.victims
    names = tuple(each.metadata.full_name for each in victims.pods)
    ranked = sorted(each.spec.priority for each in victims.pods)
    priorities = ranked[0], ranked[-1]
    return PreemptionOutput(
        node=found.node,
        victims=names,
        priorities=priorities,
        violations=victims.violations,
        text=wording.preempts(found.node, names, priorities, victims.violations),
    )


def counted(nodes: Sequence[str]) -> dict[str, int]:
    return {node: nodes.count(node) for node in dict.fromkeys(nodes)}


NO_SIGNS: Final = SchedulerSigns()
SEED: Final = 1
"""Fixed, so that the same question gets the same answer."""


PLACED: Final = frozenset({Stage.DECIDED, Stage.BOUND, Stage.RUNNING, Stage.SUCCEEDED, Stage.FAILED})


class ExplainDetail(Struct, frozen=True):
    """How much of the answer is wanted."""

    every: bool = False
    """Each node's answer."""
    closest: int = 1


class NotFound(BadObject):
    """There is no such pod."""


def found(taken: Snapshot, name: str) -> Pod:
    """The pod of this namespace/name; NotFound with a similar one."""
    pod = taken.pod(name)
    if pod is None:
        raise NotFound("Pod", name, "", f"is not there; {_similar(taken, name)}")
    return pod


def about_pod(taken: Snapshot, pod: Pod, wanted: ExplainDetail, signs: SchedulerSigns = NO_SIGNS) -> ExplainOutput:
    """`signs`: what the API server has about schedulers, for a pending pod."""
    node = pod.spec.node_name
    view = ClusterView(snapshot.narrowed(taken, node) if node and not refusals.is_rejection(pod) else taken)
    return view.explained(pod, wanted, signs)


def about_shapes(taken: Snapshot, pods: Sequence[Pod], wanted: ExplainDetail) -> ExplainOutput:
    """Explains pods that do not exist, placed one after the other."""
    view, nodes, preemptions = ClusterView(taken), list[str](), list[PreemptionOutput]()
    first = view.asked(pods[0], wanted)
    answer = ExplainOutput(pod=pod_output(pods[0]), fits=True, asked=first, copies=len(pods), problems=view.problems)
    for pod in pods:
        asked = view.asked(pod, wanted) if preemptions else None
        chosen, preempted = view.placed(pod)
        if chosen is None:
            answer = structs.replace(answer, pod=pod_output(pod), fits=False, asked=asked or view.asked(pod, wanted))
            break
        nodes.append(chosen.node)
        preemptions += [preempted] if preempted is not None else []
        answer = answer if answer.chosen else structs.replace(answer, chosen=chosen)
    return structs.replace(answer, placed=counted(nodes), preemptions=tuple(preemptions))


class ClusterView:
    """The cluster of a snapshot, and its profiles."""

    def __init__(self, taken: Snapshot) -> None:
        self.restored: Restored = restore.restored(taken)
        self._arrivals = Arrivals(self.restored, random.Random(SEED))
        self._taken = taken

    @property
    def problems(self) -> tuple[str, ...]:
        """What could not be read, and what a running scheduler may know beyond the objects of the cluster."""
        unreported = len(self.restored.cluster.world.unreported)
        if self._taken.state is not None or not unreported:
            return self.restored.problems
        return (*self.restored.problems, wording.last_reports_unknown(unreported))

    def explained(self, pod: Pod, wanted: ExplainDetail, signs: SchedulerSigns) -> ExplainOutput:
        """One pod of the cluster. What it would preempt is evicted in the restored cluster."""
        state = explanations.of(pod, self.restored.cluster)
        is_rejected = state.stage is Stage.REJECTED
        answer = ExplainOutput(pod=pod_output(pod, state), fits=not is_rejected, problems=self.problems)
        if state.stage in PLACED:
            return answer
        if is_rejected:
            pod = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
            asked = self.asked(pod, wanted, state.node)
            return structs.replace(answer, fits=False, asked=asked)
        asked = self.asked(pod, wanted)
        # A pod that is nominated already has preempted what it can.
        chosen, preempted = self.placed(pod) if asked.fits or not state.nominated else (None, None)
        unattended = self._unattended(pod, signs)
        is_served = unattended is None or unattended.is_served
        return structs.replace(
            answer,
            pod=structs.replace(answer.pod, unattended=unattended.sentence if unattended is not None else ""),
            fits=is_served and (asked.fits or chosen is not None),
            asked=asked,
            chosen=chosen,
            preemptions=(preempted,) if preempted is not None else (),
        )

    def progress(self, pod: Pod, known: ExplainOutput | None) -> ExplainOutput:
        """Where the pod is, with the answer that a replica of it got, if any; no node is asked."""
        state = explanations.of(pod, self.restored.cluster)
        if known is None:
            return ExplainOutput(pod=pod_output(pod, state), fits=False)
        shown = structs.replace(pod_output(pod, state), unattended=known.pod.unattended)
        return structs.replace(known, pod=shown)

    def _unattended(self, pod: Pod, signs: SchedulerSigns) -> Unattended | None:
        """A live scheduler has every pod of its names in its queue."""
        if self._taken.state is not None and pod.spec.scheduler_name in self.restored.profiles:
            return None
        return serving.unattended(pod, self._taken.every(PODS), signs, self._taken.wall)

    def asked(self, pod: Pod, wanted: ExplainDetail, rejected_by: str = "") -> NodesOutput:
        profile, around = self._arrivals.profile(pod), self._arrivals.around
        found = explanations.explained(pod, profile, around, self.restored.now, rejected_by)
        suggested = advise.found(found, profile, around)
        return nodes_output(found, suggested, closest=wanted.closest, every=wanted.every)

    def placed(self, pod: Pod) -> tuple[PlacementOutput | None, PreemptionOutput | None]:
        """Places the pod in the restored cluster, if need be in the room of pods that it preempts; returns where."""
        found = self._arrivals.place(pod)
        if found is None:
            return None, None
        zones = {each.container: each.zones for each in found.decision.placement if each.zones}
        placed = PlacementOutput(node=found.decision.node, source=Source.PREDICTED if zones else None, containers=zones)
        return placed, preemption_output(found.preempted) if found.preempted is not None else None


def _similar(taken: Snapshot, name: str) -> str:
    known = [pod.metadata.full_name for pod in taken.every(PODS)]
    # By the bare name: namespaces that are equal make any two names look alike.
    space, _, wanted = name[: errors.ECHO_LIMIT].partition("/")
    by_name = {each.partition("/")[2]: each for each in sorted(known, key=lambda each: each.startswith(f"{space}/"))}
    copies = [each for each in by_name if each.startswith(f"{wanted}-")]
    close = [wanted] if wanted in by_name else copies or difflib.get_close_matches(wanted, by_name, n=1)
    if close:
        return f"did you mean {by_name[close[0]]}?"
    others = "1 other" if len(known) == 1 else f"{len(known)} others"
    return f"the cluster has {others}" if known else "the cluster has no pods"
