"""Replays a decision offline: schedules the same pod on the cluster of a snapshot.

`numalign scheduler repeat` calls `repeated`. If the snapshot has the pod's last attempt, the same random numbers are
used and pods that were placed later are removed first. So the result is the same node and zones, or the same
message, unless something else has changed in between."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.decisions import Decision
from numalign.placement.explain import nodeview
from numalign.placement.explain.nodeview import Occupancy
from numalign.scheduler import placementannotation
from numalign.scheduler.choose import choose, filtering, messages
from numalign.scheduler.choose.choose import Attempt, AttemptContext, Chosen
from numalign.scheduler.choose.decisionlog import DecisionRecord, ReplayedRandomness
from numalign.scheduler.choose.scoring import NodeScore, ScoreDetails
from numalign.scheduler.explain import explanations
from numalign.scheduler.explain.explanations import Explained, RejectedNodes
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot


class NodeReplay(Struct, frozen=True, kw_only=True):
    """The answer of one node to the pod, and the node's state at that time."""

    node: str
    answer: RejectedNodes | None = None
    """Why the node refused the pod; None: it fits, as far as it was tried."""
    ranked: NodeScore | None = None
    """The node's score; None: it was not scored."""
    occupied: Occupancy | None = None
    """None: the node has no report, or the flavour keeps no ledger."""


class ReplayResult(Struct, frozen=True, kw_only=True):
    """The replayed `node` or `message`; `before` has the recorded result."""

    pod: str
    node: str = ""
    zones: str = ""
    """The predicted zones, in the form of the placement annotation."""
    message: str = ""
    best: tuple[NodeScore, ...] = ()
    on_node: NodeReplay | None = None
    """Details of the node that the caller named."""
    explained: Explained | None = None
    """What every node said before the choice, where the caller asked for it."""
    scores: tuple[NodeScore, ...] = ()
    """All nodes that were scored, the best first, where the caller asked for it."""
    before: DecisionRecord | None = None
    """The recorded result; None: the snapshot does not contain the attempt."""
    problems: tuple[str, ...] = ()

    @property
    def agrees(self) -> bool | None:
        """Whether the replay agrees with the recorded result; None: there is none."""
        if self.before is None:
            return None
        # The message of preemption follows the first sentence.
        said = self.before.message.partition(" preemption: ")[0]
        return (self.node, self.zones, self.message) == (self.before.node, self.before.zones, said)


def repeated(
    taken: Snapshot, name: str, node: str = "", attempt: int | None = None, *, every: bool = False
) -> ReplayResult:
    """Replays an attempt of the pod `name` (namespace/name), the last one unless it is named, with details of `node`.

    `every`: with what all nodes say.

    BadObject if the snapshot has no such pod or node, or no profile for the pod's scheduler name."""
    pod = taken.pod(name)
    if pod is None:
        why = "is not in the snapshot; if it was deleted, a recording of the scheduler still has it"
        raise BadObject("Pod", name, "", why)
    decisions = taken.state.decisions if taken.state is not None else ()
    before, after = _recalled(decisions, pod.metadata.uid, attempt)
    made = restore.restored(taken, without=frozenset((pod.metadata.uid, *after)))
    if node and not made.cluster.has_node(node):
        raise BadObject("Node", node, "", "is not in the snapshot")
    asked = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
    found = attempted(made, asked, before, node, with_scores=True, every=every)
    return structs.replace(found.result, problems=made.problems)


def _recalled(
    decisions: Sequence[DecisionRecord], uid: str, attempt: int | None
) -> tuple[DecisionRecord | None, list[str]]:
    """The pod's attempt of this number, or its last one, and the attempts after it."""
    places = [place for place, each in enumerate(decisions) if each.uid == uid and attempt in (None, each.attempt)]
    if not places:
        return None, []
    return decisions[places[-1]], [each.uid for each in decisions[places[-1] + 1 :]]


class ReplayedAttempt(NamedTuple):
    result: ReplayResult
    decision: Decision | None = None
    """The engine has charged the pod to this node."""


def attempted(
    made: Restored,
    pod: Pod,
    before: DecisionRecord | None,
    node: str = "",
    *,
    with_scores: bool = False,
    every: bool = False,
) -> ReplayedAttempt:
    """Schedules the pod once, as it was before if the attempt is recorded. `node`: with details of this node; `every`:
    with what all nodes say.

    BadObject if there is no profile for the pod's scheduler name."""
    name, profile = pod.metadata.full_name, _profile(made, pod)
    try:
        shape = filtering.shape(profile, made.engine, pod)
    except BadObject as problem:
        return ReplayedAttempt(ReplayResult(pod=name, message=str(problem), before=before))
    surroundings = AttemptContext(made.cluster, made.nominations, made.rejections)
    now, start = (before.at, before.start) if before is not None else (made.now, made.start)
    ranking = ScoreDetails(lambda: made.now) if with_scores or node or every else None
    attempt = surroundings.attempt(pod, shape, now, start, ranking)
    chances = ReplayedRandomness(before.chances if before is not None else ())
    # Views are taken before the choice, because the choice charges the chosen node.
    explained = explanations.explained(attempt.pod, profile, surroundings, attempt.now) if every else None
    on_node = _on_node(made, surroundings, attempt, profile, node) if node else None
    found = choose.choose(attempt, profile, made.cluster, chances)
    if on_node is not None and ranking is not None:
        on_node = structs.replace(on_node, ranked=ranking.of(made.world, node))
    scores = ranking.every(made.world) if ranking is not None and every else ()
    result = ReplayResult(pod=name, on_node=on_node, explained=explained, scores=scores, before=before)
    if isinstance(found, Chosen):
        decision = found.decision
        best = ranking.best(made.world, decision.node) if ranking is not None else ()
        zones = placementannotation.of(decision)
        return ReplayedAttempt(structs.replace(result, node=decision.node, zones=zones, best=best), decision)
    message = messages.refusal(found, pod, shape, made.engine, zones=profile.zones).message
    return ReplayedAttempt(structs.replace(result, message=message))


def _on_node(made: Restored, around: AttemptContext, attempt: Attempt, profile: Profile, node: str) -> NodeReplay:
    found = explanations.explained(attempt.pod, profile, around, attempt.now)
    return NodeReplay(
        node=node, answer=found.problem or found.refused.get(node), occupied=nodeview.of(made.engine, node)
    )


def _profile(made: Restored, pod: Pod) -> Profile:
    found = made.profiles.get(pod.spec.scheduler_name)
    if found is None:
        served = ", ".join(made.profiles)
        why = f'"{pod.spec.scheduler_name}" is not a scheduler of the snapshot, which has {served}'
        raise BadObject("Pod", pod.metadata.full_name, "spec.schedulerName", why)
    return found
