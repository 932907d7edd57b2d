"""Searches for nodes that would take a pod if the pod or the node were different.

Every suggestion is checked here before it is made. `first` and `nodes` search all nodes as they are, for a changed pod
or without a filter plugin; `fits_without` tries one node without some of its pods. The number of trials is limited,
because the kubelet model is slow. Nothing is charged."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Final

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, Pod
from numalign.placement.explain.whatif import Supposition, WhatIf
from numalign.placement.rules.clusterstate import AssignedPod
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.choose import AttemptContext
from numalign.scheduler.choose.filtering import Refused
from numalign.scheduler.preempt.dryrun import Trial, TrialPod
from numalign.scheduler.profiles import Profile

MOST_TRIALS: Final = 1_000
"""Trials of single nodes; after that, nothing counts as fitting."""
NO_RULES: Final[Collection[str]] = frozenset()


class FitSearch:
    def __init__(self, around: AttemptContext, profile: Profile, pod: Pod) -> None:
        """`pod`: the pod that the trials are about."""
        self.cluster, self._profile = around.cluster, profile
        self._promised = around.attempt(pod, filtering.shape(profile, around.cluster.engine, pod), 0.0, 0).promised
        self._left = MOST_TRIALS
        self._last: tuple[Pod, TrialPod | None] | None = None
        """The prepared trial of the last pod."""

    def first(self, pod: Pod, leave_out: Collection[str] = NO_RULES) -> str | None:
        """A node that would take the pod, rules of these names left out."""
        return next(self._fitting(pod, leave_out), None)

    def nodes(self, pod: Pod, leave_out: Collection[str] = NO_RULES) -> tuple[str, ...]:
        return tuple(sorted(self._fitting(pod, leave_out)))

    def fits_without(self, pod: Pod, node: str, gone: Collection[str]) -> bool:
        """Whether the node would take the pod if these pods (by uid) were gone."""
        row, trial_pod = self.cluster.world.rows[node], self._trial_pod(pod)
        if trial_pod is None or not self._spend():
            return False
        # Pending pods may get other zones once pods are gone, so the answer would not be certain.
        if not trial_pod.whatif.pending(row) <= set(gone):
            return False
        if any(step.prepared.only is not None and node not in step.prepared.only for step in trial_pod.steps):
            return False
        return not Trial(trial_pod, row, self._promised.get(row, ())).refused(gone)

    def is_settled(self, pod: Pod, node: str) -> bool:
        """Whether no pod is pending on the node."""
        return not self._zones(pod).pending(self.cluster.world.rows[node])

    def fits_empty(self, pod: Pod, node: str) -> bool:
        """Whether the node would take the pod if there were no other."""
        row = self.cluster.world.rows[node]
        return self.fits_without(pod, node, {*self.cluster.world.on_row[row], *self._zones(pod).known(row)})

    def fits_under(self, pod: Pod, node: str, policy: Policy) -> bool:
        """Whether its kubelet would admit the pod with another policy, and no other pod on it."""
        row, zones = self.cluster.world.rows[node], self._zones(pod)
        if not self._spend() or self.cluster.engine.lacks_report(node):
            return False
        others = frozenset((*self.cluster.world.on_row[row], *zones.known(row)))
        return zones.has_totals(row, others) and zones.reason(row, Supposition(without=others, policy=policy)) is None

    def pods_on(self, node: str) -> tuple[AssignedPod, ...]:
        return tuple(self.cluster.world.on_row[self.cluster.world.rows[node]].values())

    def _fitting(self, pod: Pod, leave_out: Collection[str]) -> Iterator[str]:
        engine = self.cluster.engine
        try:
            shape = filtering.shape(self._profile, engine, pod)
        except BadObject:
            return
        rules = tuple(rule for rule in self._profile.filters if rule.name not in leave_out)
        found = filtering.filtered(pod, rules, self.cluster.world)
        if isinstance(found, Refused):
            return
        rows = found.fitting
        codes = filtering.survey(self._profile, engine, shape, rows)
        zones = filtering.whatif(self._profile, engine, pod, shape)
        for row in rows[codes[rows] >= 0].tolist():
            if row not in self._promised and (zones.is_final(row) or (self._spend() and zones.admits(row, ()))):
                yield self.cluster.world.names[row]

    def _zones(self, pod: Pod) -> WhatIf:
        engine, profile = self.cluster.engine, self._profile
        return filtering.whatif(profile, engine, pod, filtering.shape(profile, engine, pod))

    def _trial_pod(self, pod: Pod) -> TrialPod | None:
        """None: a filter plugin refuses the pod on every node."""
        if self._last is None or self._last[0] is not pod:
            world = self.cluster.world
            steps = filtering.prepared(pod, self._profile.filters, world)
            if isinstance(steps, Refused):
                self._last = pod, None
            else:
                self._last = pod, TrialPod(pod=pod, steps=steps, whatif=self._zones(pod), world=world)
        return self._last[1]

    def _spend(self) -> bool:
        self._left -= 1
        return self._left >= 0


def resized(pod: Pod, container: str, resource: str, amount: int) -> Pod:
    """The pod with that much of a resource in its container, as request and as limit where it has them."""
    asked = quantity.of_milli(amount) if resource == resourcenames.CPU else quantity.of(amount)

    def resize(each: Container) -> Container:
        if each.name != container:
            return each
        wants = each.resources
        parts = {
            name: {**amounts, resource: asked} if resource in amounts else amounts
            for name, amounts in (("requests", wants.requests), ("limits", wants.limits))
        }
        return structs.replace(each, resources=structs.replace(wants, **parts))

    spec = pod.spec
    inits, apps = tuple(map(resize, spec.init_containers)), tuple(map(resize, spec.containers))
    return structs.replace(pod, spec=structs.replace(spec, init_containers=inits, containers=apps))
