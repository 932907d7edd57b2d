"""Lets pods arrive in a restored cluster one after the other, and places each as the scheduler would.

`numalign explain` and the planner call `Arrivals.place`. A pod that finds no node preempts what the scheduler would
evict for it. Everything happens in the restored cluster only."""

from __future__ import annotations

from msgspec import Struct, structs

from numalign.api.errors import BadObject
from numalign.api.objects.pod import Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.decisions import Decision, Randomness
from numalign.scheduler.choose import choose, filtering
from numalign.scheduler.choose.choose import AttemptContext, Chosen, NoNode
from numalign.scheduler.preempt.preemption import Nomination, NotPreempted, Preemption, PreemptionRequest
from numalign.scheduler.profiles import Profile
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored


class Arrival(Struct, frozen=True):
    """Where a pod went."""

    decision: Decision
    preempted: Nomination | None = None
    """With the pods that were evicted for it; None: there was room."""


class Arrivals:
    def __init__(self, made: Restored, rng: Randomness) -> None:
        """`rng` decides among equally good nodes."""
        self._made, self._rng = made, rng
        self.around = AttemptContext(made.cluster, made.nominations, made.rejections)

    def profile(self, pod: Pod) -> Profile:
        """The pod's own, else the first."""
        profiles = self._made.profiles
        return profiles.get(pod.spec.scheduler_name) or next(iter(profiles.values()))

    def place(self, pod: Pod) -> Arrival | None:
        """Places the pod, if need be in the room of pods that it preempts. None: no node would take it."""
        profile = self.profile(pod)
        try:
            shape = filtering.shape(profile, self._made.engine, pod)
        except BadObject:
            return None
        found = self.chosen(pod, shape, profile)
        if isinstance(found, Chosen):
            return Arrival(self._assume(pod, found))
        nomination = self._preempted(pod, shape, profile, found)
        again = self.chosen(pod, shape, profile) if nomination is not None else None
        if not isinstance(again, Chosen):
            return None
        placed = Arrival(self._assume(pod, again), nomination)
        self._start(pod, placed.decision.node)
        return placed

    def chosen(self, pod: Pod, shape: Shape, profile: Profile) -> Chosen | NoNode:
        """The scheduler's choice; the engine has charged the pod to the node, and nothing else has happened."""
        attempt = self.around.attempt(pod, shape, self._made.now, 0)
        return choose.choose(attempt, profile, self._made.cluster, self._rng)

    def _assume(self, pod: Pod, found: Chosen) -> Decision:
        self._made.cluster.assume(pod, found.decision)
        self._made.nominations.remove(pod.metadata.uid)
        return found.decision

    def _start(self, pod: Pod, node: str) -> None:
        """The kubelet has admitted a pod before the next one preempts what is beside it."""
        cluster, uid = self._made.cluster, pod.metadata.uid
        spec, status = structs.replace(pod.spec, node_name=node), structs.replace(pod.status, phase="Running")
        assumed = cluster.assumed[uid]
        cluster.bound(uid)
        cluster.pod(structs.replace(pod, spec=spec, status=status), self._made.now)
        # It does not exist, so no suggestion may be to remove it.
        cluster.assumed[uid] = assumed

    def _preempted(self, pod: Pod, shape: Shape, profile: Profile, found: NoNode) -> Nomination | None:
        """Evicts what the scheduler would evict."""
        if profile.preemption is None or not found.nodes:
            return None
        made = self._made
        asked = PreemptionRequest(
            pod=pod, shape=shape, found=found, now=made.now, args=profile.preemption, profile=profile
        )
        decided = Preemption(made.cluster, made.nominations, made.stock.budgets).decide(asked, self._rng)
        if isinstance(decided, NotPreempted):
            return None
        for victim in decided.victims.pods:
            restore.end(made, victim)
        made.nominations.put(pod, decided.node)
        return decided
