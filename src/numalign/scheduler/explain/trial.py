"""Rules and engine asked again, about a pod that is a little different or a node with pods gone.

Everything in this package that claims something asked here first. `first` and `nodes` look at all nodes as they are,
`fits_without` at one node as it would be. What was asked is counted: the model takes its time where it has to think."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator
from typing import Final

from msgspec import structs

from numalign.api.decode import quantity
from numalign.api.errors import BadObject
from numalign.api.nrt.topologymanager import Policy
from numalign.api.objects import resourcenames
from numalign.api.objects.pod import Container, Pod
from numalign.placement.columns.shapes import Shape
from numalign.placement.explain import trials
from numalign.placement.explain import whatif as placement
from numalign.placement.rules.clusterstate import Assigned
from numalign.placement.rules.rule import FITS
from numalign.scheduler.choose import filtering
from numalign.scheduler.choose.attempt import Surroundings
from numalign.scheduler.choose.filtering import Refused, Step
from numalign.scheduler.choose.profiles import Profile

MOST_TRIALS: Final = 1_000
"""Of single nodes; beyond, nothing fits any more."""
NO_RULES: Final[Collection[str]] = frozenset()


class WhatIf:
    def __init__(self, around: Surroundings, profile: Profile, pod: Pod) -> None:
        """`pod`: whose shape and place in the queue the questions are about."""
        self.cluster, self._profile = around.cluster, profile
        self._promised = around.attempt(pod, around.cluster.engine.shape(pod), 0.0, 0).promised
        self._left = MOST_TRIALS
        self._last: tuple[Pod, tuple[Step, ...] | None] | None = None
        """What was prepared for the pod that was asked about last."""

    def first(self, pod: Pod, leave_out: Collection[str] = NO_RULES) -> str | None:
        """A node that would take the pod, rules of these names left out."""
        return next(self._fitting(pod, leave_out), None)

    def nodes(self, pod: Pod, leave_out: Collection[str] = NO_RULES) -> tuple[str, ...]:
        return tuple(sorted(self._fitting(pod, leave_out)))

    def fits_without(self, pod: Pod, node: str, gone: Collection[str]) -> bool:
        """Whether the node would take the pod if these pods (by uid) were gone."""
        row, steps = self.cluster.world.rows[node], self._steps(pod)
        others = self._promised.get(row, ())
        if steps is None or not self._spend():
            return False
        # Pods on their way may settle elsewhere once others are gone: what comes of it is not for us to promise.
        if not trials.pending(self.cluster.engine, row) <= set(gone):
            return False
        if any(step.prepared.only is not None and node not in step.prepared.only for step in steps):
            return False
        if any(step.rule.filter_row(step.prepared, row, gone, others) != FITS for step in steps):
            return False
        return self._zones(pod).admits(row, gone, others)

    def is_settled(self, node: str) -> bool:
        """Whether no pod is on its way there."""
        return not trials.pending(self.cluster.engine, self.cluster.world.rows[node])

    def fits_empty(self, pod: Pod, node: str) -> bool:
        """Whether it would take the pod if there were no other."""
        row = self.cluster.world.rows[node]
        return self.fits_without(
            pod, node, {*self.cluster.world.on_row[row], *trials.tenants(self.cluster.engine, row)}
        )

    def fits_under(self, pod: Pod, node: str, policy: Policy) -> bool:
        """Whether its kubelet would admit the pod with another policy, and nothing on it."""
        engine = self.cluster.engine
        return self._spend() and trials.admits_under(
            engine, pod, engine.shape(pod), self.cluster.world.rows[node], policy
        )

    def pods_on(self, node: str) -> tuple[Assigned, ...]:
        return tuple(self.cluster.world.on_row[self.cluster.world.rows[node]].values())

    def hardware(self, node: str) -> Hashable:
        """Equal for nodes that differ in nothing but in what runs on them."""
        columns, row = self.cluster.engine.columns, self.cluster.world.rows[node]
        arrays = (columns.offered, columns.allocatable, columns.size, columns.homeless_size)
        return int(columns.kind[row]), *(array[row].tobytes() for array in arrays)

    def rules(self, node: str) -> int:
        """Equal for nodes of one make and configuration."""
        return int(self.cluster.engine.columns.kind[self.cluster.world.rows[node]])

    def most_in_a_zone(self, node: str, resource: str) -> int:
        """What the best zone of the node would have if it were empty."""
        columns = self.cluster.engine.columns
        column = columns.resources.known(resource)
        return 0 if column is None else int(columns.allocatable[self.cluster.world.rows[node], :, column].max())

    def _fitting(self, pod: Pod, leave_out: Collection[str]) -> Iterator[str]:
        engine = self.cluster.engine
        try:
            shape = engine.shape(pod)
        except BadObject:
            return
        rules = tuple(rule for rule in self._profile.filters if rule.name not in leave_out)
        found = filtering.filtered(pod, rules, self.cluster.world)
        if isinstance(found, Refused):
            return
        rows = found.fitting
        codes = engine.survey(shape, rows)
        for row in rows[codes[rows] >= 0].tolist():
            if self._is_certain(pod, shape, row):
                yield engine.columns.names[row]

    def _is_certain(self, pod: Pod, shape: Shape, row: int) -> bool:
        if row in self._promised:
            return False
        if trials.is_final(self.cluster.engine, shape, row):
            return True
        return self._spend() and self._zones(pod).admits(row, ())

    def _zones(self, pod: Pod) -> placement.WhatIf:
        engine = self.cluster.engine
        return placement.of(engine, pod, engine.shape(pod))

    def _steps(self, pod: Pod) -> tuple[Step, ...] | None:
        if self._last is None or self._last[0] is not pod:
            found = filtering.prepared(pod, self._profile.filters, self.cluster.world)
            self._last = pod, None if isinstance(found, Refused) else found
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
