"""Deployments: one replica set per pod template, and the way from the old ones to the new one.

Every look takes one step (pause, revision, scale, roll, tidy up) and tells the status; what the step changes brings the
next look. How far a step goes is in `rollouts`, how it is written in `deploymentsets`, the history in `revisions`, the
words in `deploymentstatus`."""

from collections.abc import Iterable, Sequence
from datetime import datetime

from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, PODS, REPLICASETS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, owners
from numalign.simulator.controllers.framework.actions import Action, Again, Create, Merge, Update
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.controllers.workloads import (
    deploymentsets,
    deploymentstatus,
    pods,
    replicasets,
    revisions,
    rollouts,
)
from numalign.simulator.controllers.workloads.rollouts import Limits
from numalign.simulator.trees import Tree


class Deployments:
    name = "deployment-controller"

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        desk.views.watch(DEPLOYMENTS, lambda change: desk.note(change.key))
        desk.views.watch(REPLICASETS, self._replicaset_changed)
        desk.views.watch(PODS, self._pod_changed)

    def _replicaset_changed(self, change: Change) -> None:
        held = owners.controller(change.tree)
        if held is not None and held["kind"] == DEPLOYMENTS.kind:
            self._desk.note((change.key[0], held["name"]))

    def _pod_changed(self, change: Change) -> None:
        # Only a pod that is gone matters: Recreate waits for the last one of the old template.
        if change.kind != "DELETED":
            return
        held = owners.controller(change.tree)
        replicaset = self._desk.views[REPLICASETS].get((change.key[0], held["name"])) if held else None
        if replicaset is not None and (owner := owners.controller(replicaset)) is not None:
            self._desk.note((change.key[0], owner["name"]))

    def look(self, key: Key) -> Iterable[Action]:
        views = self._desk.views
        deployment = views[DEPLOYMENTS].get(key)
        if deployment is None:
            return []
        claims = owners.claimed(DEPLOYMENTS, deployment, REPLICASETS, views[REPLICASETS].candidates_of(deployment))
        if claims:
            return claims
        sets = views[REPLICASETS].owned_by(deployment)
        running = {
            each["metadata"]["name"]
            for each in sets
            if deploymentsets.is_recreated(deployment) and self._has_pods(each)
        }
        return reconcile(deployment, sets, running, self._desk.api.clock.wall())

    def _has_pods(self, replicaset: Tree) -> bool:
        return not all(map(pods.is_finished, self._desk.views[PODS].owned_by(replicaset)))


def reconcile(deployment: Tree, sets: Sequence[Tree], running: set[str], now: datetime) -> list[Action]:
    """`running` names the replica sets of which any pod is left; Recreate waits for those."""
    ordered = pods.oldest_first(sets)
    if deployment["metadata"].get("deletionTimestamp"):
        return _told(deployment, ordered, None, now)
    if (listed := deploymentstatus.paused(deployment, now)) is not None:
        return actions.status(DEPLOYMENTS, deployment, (deployment.get("status") or {}) | {"conditions": listed})
    new = deploymentsets.newest(deployment, ordered)
    old = [each for each in ordered if each is not new]
    steps = _step(deployment, new, old, running)
    if any(isinstance(step, Merge) for step in steps):
        # The deployment itself changes, which brings the next look.
        return steps
    created = next((step.tree for step in steps if isinstance(step, Create)), None)
    return [*steps, *_told(deployment, ordered, new, now, created)]


def _step(deployment: Tree, new: Tree | None, old: Sequence[Tree], running: set[str]) -> list[Action]:
    within = deploymentsets.bounds(deployment)
    if new is not None and (update := _renumbered(deployment, new, old)):
        return update
    if deployment["spec"].get("paused"):
        return _scaled(deployment, new, old, within) or deploymentsets.tidied(deployment, old)
    if _was_scaled(deployment, new, old):
        return _scaled(deployment, new, old, within)
    if deploymentsets.is_recreated(deployment):
        return _recreated(deployment, new, old, running) or _tidied_when_done(deployment, old)
    return _rolled(deployment, new, old, within) or _tidied_when_done(deployment, old)


def _renumbered(deployment: Tree, new: Tree, old: Sequence[Tree]) -> list[Action]:
    """The newest replica set carries the highest revision, the deployment the same."""
    wanted = revisions.inherited(deployment, new, revisions.following(old))
    seconds = replicasets.min_ready(deployment)
    if wanted != revisions.annotations(new) or seconds != replicasets.min_ready(new):
        spec = new["spec"] | {"minReadySeconds": seconds}
        return [Update(REPLICASETS, new | {"metadata": new["metadata"] | {"annotations": wanted}, "spec": spec})]
    revision = wanted[revisions.REVISION]
    if revisions.annotations(deployment).get(revisions.REVISION) == revision:
        return []
    return [Merge(DEPLOYMENTS, deployment, {"metadata": {"annotations": {revisions.REVISION: revision}}})]


def _rolled(deployment: Tree, new: Tree | None, old: Sequence[Tree], within: Limits) -> list[Action]:
    total = sum(map(replicasets.replicas, old))
    if new is None:
        return deploymentsets.made(deployment, old, rollouts.grown(0, total, within))
    size = replicasets.replicas(new)
    wanted = rollouts.grown(size, total + size, within)
    if wanted != size:
        return deploymentsets.resized(deployment, [new], {new["metadata"]["name"]: wanted})
    active = [each for each in old if replicasets.replicas(each)]
    return deploymentsets.resized(
        deployment, active, rollouts.shrunk([*map(deploymentsets.size, active)], deploymentsets.size(new), within)
    )


def _recreated(deployment: Tree, new: Tree | None, old: Sequence[Tree], running: set[str]) -> list[Action]:
    active = [each for each in old if replicasets.replicas(each)]
    if active:
        return deploymentsets.resized(deployment, active, {each["metadata"]["name"]: 0 for each in active})
    if any(each["metadata"]["name"] in running for each in old):
        return []
    if new is None:
        return deploymentsets.made(deployment, old, replicasets.replicas(deployment))
    return deploymentsets.resized(deployment, [new], {new["metadata"]["name"]: replicasets.replicas(deployment)})


def _was_scaled(deployment: Tree, new: Tree | None, old: Sequence[Tree]) -> bool:
    active = [each for each in (*old, *([new] if new else [])) if replicasets.replicas(each)]
    desired = (revisions.number(each, revisions.DESIRED) for each in active)
    return any(each is not None and each != replicasets.replicas(deployment) for each in desired)


def _scaled(deployment: Tree, new: Tree | None, old: Sequence[Tree], within: Limits) -> list[Action]:
    everyone = [*old, *([new] if new is not None else [])]
    active = [each for each in everyone if replicasets.replicas(each)]
    if len(active) <= 1:
        alone = active[0] if active else new if new is not None else old[-1] if old else None
        return (
            []
            if alone is None
            else deploymentsets.resized(deployment, [alone], {alone["metadata"]["name"]: within.replicas})
        )
    if new is not None and deploymentsets.is_saturated(deployment, new):
        gone = [each for each in active if each is not new]
        return deploymentsets.resized(deployment, gone, {each["metadata"]["name"]: 0 for each in gone})
    # Of equal ones the newer comes first when there are more to give out, the older one when fewer.
    growing = within.most > sum(map(replicasets.replicas, active))
    ordered = sorted(reversed(active) if growing else active, key=lambda each: -replicasets.replicas(each))
    scales = {each["metadata"]["name"]: replicasets.replicas(each) for each in ordered}
    return deploymentsets.resized(
        deployment, ordered, scales | dict(rollouts.spread([*map(deploymentsets.size, ordered)], within))
    )


def _tidied_when_done(deployment: Tree, old: Sequence[Tree]) -> list[Action]:
    is_done = deploymentstatus.is_complete(deployment, deployment.get("status") or {})
    return deploymentsets.tidied(deployment, old) if is_done else []


def _told(
    deployment: Tree, sets: Sequence[Tree], new: Tree | None, now: datetime, created: Tree | None = None
) -> list[Action]:
    status = deploymentstatus.status(deployment, sets, new, deploymentsets.bounds(deployment).least, now)
    if created is not None and deploymentstatus.deadline(deployment) is not None:
        status = status | {"conditions": deploymentstatus.begun(status["conditions"], created, now)}
    wait = deploymentstatus.recheck(deployment, status, now)
    again = [Again(wait)] if wait is not None else []
    return [*actions.status(DEPLOYMENTS, deployment, status), *again]
