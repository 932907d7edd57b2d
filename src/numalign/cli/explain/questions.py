"""The questions that `numalign explain` puts to a cluster, answered from a snapshot of it.

A pod that has a node is looked up; one that waits is held against every node as the scheduler would do it, and then,
where it fits, chosen for. Pods that are only thought of are placed one after the other, each charged for the next, and
the first that finds no node is explained. The snapshot is ours alone, so that charging it harms nobody."""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence
from typing import Final

from msgspec import Struct, structs

from numalign.api import errors
from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.cli import narrowing
from numalign.cli.explain import answer
from numalign.cli.explain.answer import Asked, Placed, Told
from numalign.kube.resources import PODS
from numalign.placement.ledger.holdings import Source
from numalign.scheduler.choose import choose, filtering, stormguard
from numalign.scheduler.choose.choose import AttemptContext, Chosen
from numalign.scheduler.explain import advise, explanations
from numalign.scheduler.explain.explanations import Stage
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot

SEED: Final = 1
"""Equal nodes are drawn from; the same question gets the same answer."""


PLACED: Final = frozenset({Stage.DECIDED, Stage.BOUND, Stage.RUNNING, Stage.SUCCEEDED, Stage.FAILED})


class Wanted(Struct, frozen=True):
    """How much is to be told."""

    every: bool = False
    """Each node's answer."""
    closest: int = 1


class NotFound(BadObject):
    """There is no such pod."""


def about_pod(taken: Snapshot, name: str, wanted: Wanted) -> Told:
    """`name`: namespace/name."""
    pod = taken.pod(name)
    if pod is None:
        raise NotFound("Pod", name, "", f"is not there; {_similar(taken, name)}")
    node = pod.spec.node_name
    view = _View(narrowing.narrowed(taken, node) if node and not stormguard.is_rejection(pod) else taken)
    state = explanations.of(pod, view.restored.cluster)
    told = Told(pod=answer.pod(pod, state), fits=state.stage is not Stage.REJECTED, problems=view.restored.problems)
    if state.stage in PLACED:
        return told
    if state.stage is Stage.REJECTED:
        pod = structs.replace(pod, spec=structs.replace(pod.spec, node_name=""))
    asked = view.asked(pod, wanted)
    chosen = view.chosen(pod) if asked.fits and state.stage is not Stage.REJECTED else None
    return structs.replace(told, fits=told.fits and asked.fits, asked=asked, chosen=chosen)


def about_shapes(taken: Snapshot, pods: Sequence[Pod], wanted: Wanted) -> Told:
    """Pods that do not exist; all of one kind, or several that come together."""
    view, nodes = _View(taken), list[str]()
    first = view.asked(pods[0], wanted)
    problems = view.restored.problems
    told = Told(pod=answer.pod(pods[0]), fits=True, asked=first, copies=len(pods), problems=problems)
    for pod in pods:
        chosen = view.chosen(pod)
        if chosen is None:
            told = structs.replace(told, pod=answer.pod(pod), fits=False, asked=view.asked(pod, wanted))
            break
        nodes.append(chosen.node)
        told = told if told.chosen else structs.replace(told, chosen=chosen)
    return structs.replace(told, placed=answer.counted(nodes))


class _View:
    """The cluster of a snapshot, and its profiles."""

    def __init__(self, taken: Snapshot) -> None:
        self.restored: Restored = restore.restored(taken)
        self._around = AttemptContext(self.restored.cluster, self.restored.nominations, self.restored.rejections)
        self._rng = random.Random(SEED)

    def asked(self, pod: Pod, wanted: Wanted) -> Asked:
        profile = self._profile(pod)
        found = explanations.explained(pod, profile, self._around, self.restored.now)
        suggested = advise.found(found, profile, self._around)
        return answer.asked(found, suggested, closest=wanted.closest, every=wanted.every)

    def chosen(self, pod: Pod) -> Placed | None:
        """Where it goes; from now on it counts there."""
        cluster, profile = self.restored.cluster, self._profile(pod)
        try:
            shape = filtering.shape(profile, cluster.engine, pod)
        except BadObject:
            return None
        attempt = self._around.attempt(pod, shape, self.restored.now, 0)
        found = choose.choose(attempt, profile, cluster, self._rng)
        if not isinstance(found, Chosen):
            return None
        cluster.assume(pod, found.decision)
        zones = {each.container: each.zones for each in found.decision.placement if each.zones}
        return Placed(node=found.decision.node or "", source=Source.PREDICTED if zones else None, containers=zones)

    def _profile(self, pod: Pod) -> Profile:
        """The pod's own, else the first."""
        profiles = self.restored.profiles
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))


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
