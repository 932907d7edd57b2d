"""Deployments: one ReplicaSet per pod template, and rollouts from old ReplicaSets to the new one.

Each reconciliation takes one step (pause, revision, scaling, rollout, cleanup) and updates the status; the step's
changes trigger the next reconciliation. In this order, the module has: the status with its conditions, which `kubectl
rollout status` reads; the sizes that a rollout step may set; the revision annotations, which `kubectl rollout history`
reads; the creation, scaling and deletion of ReplicaSets; and the controller."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import DEPLOYMENTS, PODS, REPLICASETS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, conditions, owners, pods
from numalign.simulator.controllers.framework.actions import (
    Action,
    Create,
    Delete,
    MergePatch,
    RecordEvent,
    Requeue,
    Update,
)
from numalign.simulator.controllers.framework.conditions import Conditions
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.controllers.workloads import replicasets
from numalign.simulator.trees import Tree

AVAILABLE: Final = "Available"
PROGRESSING: Final = "Progressing"
NO_DEADLINE: Final = 2**31 - 1
UPDATED: Final = "lastUpdateTime"
DONE: Final = "NewReplicaSetAvailable"
TIMED_OUT: Final = "ProgressDeadlineExceeded"
PAUSED: Final = "DeploymentPaused"


def deadline(deployment: Tree) -> int | None:
    seconds = deployment["spec"].get("progressDeadlineSeconds")
    return None if seconds in (None, NO_DEADLINE) else seconds


def new_status(deployment: Tree, sets: Sequence[Tree], new: Tree | None, least: int, now: datetime) -> Tree:
    """`least` is the number of replicas that must be available for the condition Available."""
    counts = _counts(deployment, sets, new)
    listed = _available(conditions.listed(deployment), counts.get("availableReplicas", 0) >= least, now)
    listed = _failures(_progress(deployment, counts, new, listed, now), new, sets, now)
    return counts | {"conditions": listed}


def is_complete(deployment: Tree, counts: Tree) -> bool:
    wanted = replicasets.replicas(deployment)
    return all(counts.get(name, 0) == wanted for name in ("updatedReplicas", "replicas", "availableReplicas")) and (
        counts.get("observedGeneration", 0) >= deployment["metadata"].get("generation", 0)
    )


def recheck(deployment: Tree, status: Tree, now: datetime) -> float | None:
    """Seconds until ProgressDeadlineExceeded is due; None if it never is."""
    seconds, progressing = deadline(deployment), conditions.find(status["conditions"], PROGRESSING)
    if seconds is None or progressing is None or deployment["spec"].get("paused"):
        return None
    if is_complete(deployment, status) or progressing["reason"] == TIMED_OUT:
        return None
    # One second more, because timestamps have whole seconds.
    return max(0.0, seconds - (clock.seconds_since(progressing.get(UPDATED), now) or 0.0)) + 1


def paused(deployment: Tree, now: datetime) -> Conditions | None:
    """The conditions of a Deployment that was just paused or resumed; None if neither."""
    listed = conditions.listed(deployment)
    found = conditions.find(listed, PROGRESSING)
    reason = found["reason"] if found else ""
    is_paused = bool(deployment["spec"].get("paused"))
    if deadline(deployment) is None or reason == TIMED_OUT or is_paused == (reason == PAUSED):
        return None
    reason, message = (PAUSED, "Deployment is paused") if is_paused else ("DeploymentResumed", "Deployment is resumed")
    return conditions.put(listed, conditions.made(PROGRESSING, "Unknown", reason, message), now, UPDATED)


def begun(listed: Conditions, created: Tree, now: datetime) -> Conditions:
    """The progress deadline starts with this new ReplicaSet."""
    return _put(listed, "True", "NewReplicaSetCreated", f'Created new replica set "{created["metadata"]["name"]}"', now)


def _counts(deployment: Tree, sets: Sequence[Tree], new: Tree | None) -> Tree:
    def total(name: str, of: Sequence[Tree]) -> int:
        return sum((each.get("status") or {}).get(name, 0) for each in of)

    available = total("availableReplicas", sets)
    counts = {
        "observedGeneration": deployment["metadata"].get("generation", 0),
        "replicas": total("replicas", sets),
        "updatedReplicas": total("replicas", [new] if new is not None else []),
        "readyReplicas": total("readyReplicas", sets),
        "availableReplicas": available,
        "unavailableReplicas": max(0, sum(map(replicasets.replicas, sets)) - available),
        "terminatingReplicas": total("terminatingReplicas", sets),
        "collisionCount": (deployment.get("status") or {}).get("collisionCount", 0),
    }
    return {name: count for name, count in counts.items() if count or name in ("terminatingReplicas",)}


def _available(listed: Conditions, enough: bool, now: datetime) -> Conditions:
    if enough:
        condition = (AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        condition = (AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return conditions.put(listed, conditions.made(*condition), now, UPDATED)


def _progress(deployment: Tree, counts: Tree, new: Tree | None, listed: Conditions, now: datetime) -> Conditions:
    if deadline(deployment) is None:
        return conditions.without(listed, PROGRESSING)
    found = conditions.find(listed, PROGRESSING)
    settled = counts.get("replicas", 0) == counts.get("updatedReplicas", 0) and (found or {}).get("reason") == DONE
    if settled or deployment["spec"].get("paused"):
        return listed
    who = f'ReplicaSet "{new["metadata"]["name"]}"' if new else f'Deployment "{deployment["metadata"]["name"]}"'
    if is_complete(deployment, counts):
        return _put(listed, "True", DONE, f"{who} has successfully progressed.", now)
    if _has_progressed(deployment, counts):
        # An equal condition is written again, because the progress deadline counts from its lastUpdateTime.
        return _put(_touched(listed, now), "True", "ReplicaSetUpdated", f"{who} is progressing.", now)
    if _is_late(deployment, found, now):
        return _put(listed, "False", TIMED_OUT, f"{who} has timed out progressing.", now)
    return listed


def _put(listed: Conditions, status: str, reason: str, message: str, now: datetime) -> Conditions:
    return conditions.put(listed, conditions.made(PROGRESSING, status, reason, message), now, UPDATED)


def _touched(listed: Conditions, now: datetime) -> Conditions:
    return [each | {UPDATED: clock.text(now)} if each["type"] == PROGRESSING else each for each in listed]


def _has_progressed(deployment: Tree, counts: Tree) -> bool:
    before = deployment.get("status") or {}

    def old(of: Tree) -> int:
        left: int = of.get("replicas", 0) - of.get("updatedReplicas", 0)
        return left

    growing = ("updatedReplicas", "readyReplicas", "availableReplicas")
    return old(counts) < old(before) or any(counts.get(name, 0) > before.get(name, 0) for name in growing)


def _is_late(deployment: Tree, found: Tree | None, now: datetime) -> bool:
    if found is None or found["reason"] == DONE:
        return False
    elapsed, seconds = clock.seconds_since(found.get(UPDATED), now), deadline(deployment)
    return found["reason"] == TIMED_OUT or (elapsed is not None and seconds is not None and elapsed > seconds)


def _failures(listed: Conditions, new: Tree | None, sets: Sequence[Tree], now: datetime) -> Conditions:
    """ReplicaFailure of a ReplicaSet, that of the newest one first."""
    ordered = [*([new] if new is not None else []), *sets]
    failures = (conditions.find(conditions.listed(each), replicasets.FAILURE) for each in ordered)
    failure = next((each for each in failures if each is not None), None)
    if failure is None:
        return conditions.without(listed, replicasets.FAILURE)
    kept = {key: failure.get(key, "") for key in ("type", "status", "reason", "message")}
    return conditions.put(listed, kept, now, UPDATED)


@dataclass(frozen=True)
class ReplicaSetSize:
    """The desired and the available pods of one ReplicaSet."""

    name: str
    wanted: int
    available: int
    limit_before: int = 0
    """Replicas plus surge of the Deployment when it was last scaled; 0 if unknown."""


@dataclass(frozen=True)
class RolloutLimits:
    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def least(self) -> int:
        return self.replicas - self.unavailable


Scales = Mapping[str, int]
"""New sizes of ReplicaSets, by name."""


def limits(replicas: int, max_surge: int | str, max_unavailable: int | str) -> RolloutLimits:
    """Resolves percentages of the replicas: surge is rounded up, unavailable down, and they are never both zero."""
    surge, unavailable = share(max_surge, replicas, up=True), share(max_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(replicas, surge, min(unavailable, replicas))


def share(amount: int | str, of: int, *, up: bool) -> int:
    """The number itself, or the percentage of `of`."""
    if isinstance(amount, int):
        return amount
    percent = int(amount.removesuffix("%"))
    return math.ceil(percent * of / 100) if up else percent * of // 100


def grown(new: int, total: int, bounds: RolloutLimits) -> int:
    """The new ReplicaSet's next size, given its size and the total of all ReplicaSets."""
    if new >= bounds.replicas:
        return bounds.replicas
    return new + max(0, min(bounds.most - total, bounds.replicas - new))


def shrunk(old: Sequence[ReplicaSetSize], new: ReplicaSetSize, bounds: RolloutLimits) -> Scales:
    """Next sizes of old ReplicaSets: unavailable pods go first, then as many as the new one has replaced."""
    total = sum(each.wanted for each in old) + new.wanted
    spare = total - bounds.least - (new.wanted - new.available)
    if spare <= 0:
        return {}
    sizes = {each.name: each.wanted for each in old}
    for each in old:
        gone = min(spare, max(0, each.wanted - each.available))
        sizes[each.name] -= gone
        spare -= gone
    spare = sum(each.available for each in old) + new.available - bounds.least
    for each in old:
        gone = min(max(0, spare), sizes[each.name])
        sizes[each.name] -= gone
        spare -= gone
    return {each.name: sizes[each.name] for each in old if sizes[each.name] != each.wanted}


def spread(sizes: Sequence[ReplicaSetSize], bounds: RolloutLimits) -> Scales:
    """Distributes a change of the Deployment's replicas during a rollout in proportion; the rest goes to the largest.

    `sizes` are sorted by size, largest first."""
    allowed = bounds.most if bounds.replicas else 0
    missing = allowed - sum(each.wanted for each in sizes)
    if not missing or not sizes:
        return {}
    scaled, added = {}, 0
    for each in sizes:
        part = _part(each, bounds, missing, added)
        scaled[each.name] = each.wanted + part
        added += part
    largest = sizes[0].name
    scaled[largest] = max(0, scaled[largest] + missing - added)
    return scaled


def _part(size: ReplicaSetSize, bounds: RolloutLimits, missing: int, added: int) -> int:
    if not size.wanted or missing == added:
        return 0
    fair = _fair(size, bounds)
    return min(fair, missing - added) if missing > 0 else max(fair, missing - added)


def _fair(size: ReplicaSetSize, bounds: RolloutLimits) -> int:
    if not bounds.replicas:
        return -size.wanted
    if not size.limit_before:
        return 0
    # Rounds half away from zero, as Go does; sizes are never negative.
    return math.floor(size.wanted * bounds.most / size.limit_before + 0.5) - size.wanted


REVISION: Final = "deployment.kubernetes.io/revision"
HISTORY: Final = "deployment.kubernetes.io/revision-history"
DESIRED: Final = "deployment.kubernetes.io/desired-replicas"
MOST: Final = "deployment.kubernetes.io/max-replicas"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
NOT_COPIED: Final = frozenset({REVISION, HISTORY, DESIRED, MOST, LAST_APPLIED, "deprecated.deployment.rollback.to"})
LONGEST_HISTORY: Final = 2000


def annotations(tree: Tree) -> dict[str, str]:
    return tree["metadata"].get("annotations") or {}


def number(tree: Tree, annotation: str) -> int | None:
    written = annotations(tree).get(annotation, "")
    return int(written) if written.isdecimal() else None


def revision(tree: Tree) -> int:
    return number(tree, REVISION) or 0


def following(old: Iterable[Tree]) -> int:
    """The revision of the newest ReplicaSet, given all others."""
    return max(map(revision, old), default=0) + 1


def inherited(deployment: Tree, replicaset: Tree, following: int) -> dict[str, str]:
    """Annotations of the newest ReplicaSet: those of the Deployment, and its revision."""
    mine = annotations(replicaset)
    copied = {key: value for key, value in annotations(deployment).items() if key not in NOT_COPIED}
    before = revision(replicaset)
    if before >= following:
        return mine | copied
    history = {HISTORY: _history(mine.get(HISTORY, ""), str(before))} if before else {}
    return mine | copied | history | {REVISION: str(following)}


def size_annotations(replicas: int, most: int) -> dict[str, str]:
    return {DESIRED: str(replicas), MOST: str(most)}


def _history(written: str, revision: str) -> str:
    entries = [*filter(None, written.split(",")), revision]
    while len(",".join(entries)) > LONGEST_HISTORY:
        entries.pop(0)
    return ",".join(entries)


LONGEST_NAME: Final = 253
KEEPS_ALL: Final = 2**31 - 1


def is_recreated(deployment: Tree) -> bool:
    return (deployment["spec"].get("strategy") or {}).get("type") == "Recreate"


def bounds(deployment: Tree) -> RolloutLimits:
    replicas = replicasets.replicas(deployment)
    if is_recreated(deployment):
        return RolloutLimits(replicas, 0, 0)
    rolling = (deployment["spec"].get("strategy") or {}).get("rollingUpdate") or {}
    return limits(replicas, rolling.get("maxSurge", "25%"), rolling.get("maxUnavailable", "25%"))


def newest(deployment: Tree, sets: Sequence[Tree]) -> Tree | None:
    """The ReplicaSet of the current template; the oldest one if there are several."""
    template = deployment["spec"]["template"]
    return next((each for each in sets if pods.same(each["spec"]["template"], template)), None)


def is_saturated(deployment: Tree, new: Tree) -> bool:
    wanted = replicasets.replicas(deployment)
    available = (new.get("status") or {}).get("availableReplicas", 0)
    return bool(replicasets.replicas(new) == wanted == number(new, DESIRED) == available)


def set_size(replicaset: Tree) -> ReplicaSetSize:
    available = (replicaset.get("status") or {}).get("availableReplicas", 0)
    limit = number(replicaset, MOST) or 0
    return ReplicaSetSize(replicaset["metadata"]["name"], replicasets.replicas(replicaset), available, limit)


def first(deployment: Tree, old: Sequence[Tree], replicas: int) -> Tree:
    """A new ReplicaSet of the current template."""
    spec, metadata = deployment["spec"], deployment["metadata"]
    digest = pods.digest(spec["template"], _collisions(deployment, old))
    template = pods.hashed(spec["template"], digest)
    selector = dict(spec.get("selector") or {})
    selector["matchLabels"] = (selector.get("matchLabels") or {}) | {pods.HASH_LABEL: digest}
    bare: Tree = {"metadata": {"annotations": {}}}
    sizes = size_annotations(replicasets.replicas(deployment), bounds(deployment).most)
    return {
        "apiVersion": REPLICASETS.api_version,
        "kind": REPLICASETS.kind,
        "metadata": {
            "name": f"{metadata['name'][: LONGEST_NAME - len(digest) - 1]}-{digest}",
            "namespace": metadata["namespace"],
            "labels": template["metadata"]["labels"],
            "annotations": inherited(deployment, bare, following(old)) | sizes,
            "ownerReferences": [owners.reference(DEPLOYMENTS, deployment)],
        },
        "spec": {
            "replicas": replicas,
            "minReadySeconds": replicasets.min_ready(deployment),
            "selector": selector,
            "template": template,
        },
    }


def _collisions(deployment: Tree, old: Sequence[Tree]) -> int:
    """The collision count that gives a name which no other ReplicaSet of the Deployment has."""
    taken = {(each["metadata"].get("labels") or {}).get(pods.HASH_LABEL) for each in old}
    collisions = 0
    while pods.digest(deployment["spec"]["template"], collisions) in taken:
        collisions += 1
    return collisions


def made(deployment: Tree, old: Sequence[Tree], replicas: int) -> list[Action]:
    replicaset = first(deployment, old, replicas)
    name = replicaset["metadata"]["name"]
    event = RecordEvent(deployment, "ScalingReplicaSet", f"Scaled up replica set {name} from 0 to {replicas}")
    return [Create(REPLICASETS, replicaset), *([event] if replicas else [])]


def resized(deployment: Tree, sets: Sequence[Tree], scales: Scales) -> list[Action]:
    sizes = size_annotations(replicasets.replicas(deployment), bounds(deployment).most)
    changes: list[Action] = []
    for each in sets:
        name, before = each["metadata"]["name"], replicasets.replicas(each)
        after = scales.get(name, before)
        if name not in scales or (after == before and sizes.items() <= annotations(each).items()):
            continue
        metadata = each["metadata"] | {"annotations": annotations(each) | sizes}
        changes.append(Update(REPLICASETS, each | {"metadata": metadata, "spec": each["spec"] | {"replicas": after}}))
        if after != before:
            text = f"Scaled {'up' if after > before else 'down'} replica set {name} from {before} to {after}"
            changes.append(RecordEvent(deployment, "ScalingReplicaSet", text))
    return changes


def tidied(deployment: Tree, old: Sequence[Tree]) -> list[Action]:
    """Deletes the oldest empty ReplicaSets above revisionHistoryLimit."""
    limit = deployment["spec"].get("revisionHistoryLimit", 10)
    kept = [each for each in old if not each["metadata"].get("deletionTimestamp")]
    spare = len(kept) - limit
    if limit == KEEPS_ALL or spare <= 0:
        return []
    oldest = sorted(kept, key=revision)[:spare]
    return [Delete(REPLICASETS, each) for each in oldest if _is_empty(each)]


def _is_empty(replicaset: Tree) -> bool:
    status = replicaset.get("status") or {}
    seen = status.get("observedGeneration", 0) >= replicaset["metadata"].get("generation", 0)
    return seen and not status.get("replicas", 0) and not replicasets.replicas(replicaset)


class Deployments:
    name = "deployment-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(DEPLOYMENTS, lambda change: context.enqueue(change.key))
        context.views.watch(REPLICASETS, lambda change: context.enqueue_controller(change, DEPLOYMENTS))
        context.views.watch(PODS, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        # Only deleted pods matter: Recreate waits for the last pod of the old template.
        if change.kind != "DELETED":
            return
        held = owners.controller(change.tree)
        replicaset = self._context.views[REPLICASETS].get((change.key[0], held["name"])) if held else None
        if replicaset is not None and (owner := owners.controller(replicaset)) is not None:
            self._context.enqueue((change.key[0], owner["name"]))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        deployment = views[DEPLOYMENTS].get(key)
        if deployment is None:
            return []
        claims = owners.claimed(DEPLOYMENTS, deployment, REPLICASETS, views[REPLICASETS].candidates_of(deployment))
        if claims:
            return claims
        sets = views[REPLICASETS].owned_by(deployment)
        running = {each["metadata"]["name"] for each in sets if is_recreated(deployment) and self._has_pods(each)}
        return reconcile(deployment, sets, running, self._context.api.clock.wall())

    def _has_pods(self, replicaset: Tree) -> bool:
        return not all(map(pods.is_finished, self._context.views[PODS].owned_by(replicaset)))


def reconcile(deployment: Tree, sets: Sequence[Tree], running: set[str], now: datetime) -> list[Action]:
    """`running` holds the uids of ReplicaSets that still have pods; Recreate waits for them."""
    ordered = pods.oldest_first(sets)
    if deployment["metadata"].get("deletionTimestamp"):
        return _status_update(deployment, ordered, None, now)
    if (listed := paused(deployment, now)) is not None:
        return actions.status(DEPLOYMENTS, deployment, (deployment.get("status") or {}) | {"conditions": listed})
    new = newest(deployment, ordered)
    old = [each for each in ordered if each is not new]
    steps = _step(deployment, new, old, running)
    if any(isinstance(step, MergePatch) for step in steps):
        # This changes the Deployment itself, which triggers the next reconciliation.
        return steps
    created = next((step.tree for step in steps if isinstance(step, Create)), None)
    return [*steps, *_status_update(deployment, ordered, new, now, created)]


def _step(deployment: Tree, new: Tree | None, old: Sequence[Tree], running: set[str]) -> list[Action]:
    within = bounds(deployment)
    if new is not None and (update := _renumbered(deployment, new, old)):
        return update
    if deployment["spec"].get("paused"):
        return _scaled(deployment, new, old, within) or tidied(deployment, old)
    if _was_scaled(deployment, new, old):
        return _scaled(deployment, new, old, within)
    if is_recreated(deployment):
        return _recreated(deployment, new, old, running) or _tidied_when_done(deployment, old)
    return _rolled(deployment, new, old, within) or _tidied_when_done(deployment, old)


def _renumbered(deployment: Tree, new: Tree, old: Sequence[Tree]) -> list[Action]:
    """Gives the newest ReplicaSet the highest revision, and the Deployment the same."""
    wanted = inherited(deployment, new, following(old))
    seconds = replicasets.min_ready(deployment)
    if wanted != annotations(new) or seconds != replicasets.min_ready(new):
        spec = new["spec"] | {"minReadySeconds": seconds}
        return [Update(REPLICASETS, new | {"metadata": new["metadata"] | {"annotations": wanted}, "spec": spec})]
    revision = wanted[REVISION]
    if annotations(deployment).get(REVISION) == revision:
        return []
    return [MergePatch(DEPLOYMENTS, deployment, {"metadata": {"annotations": {REVISION: revision}}})]


def _rolled(deployment: Tree, new: Tree | None, old: Sequence[Tree], within: RolloutLimits) -> list[Action]:
    total = sum(map(replicasets.replicas, old))
    if new is None:
        return made(deployment, old, grown(0, total, within))
    size = replicasets.replicas(new)
    wanted = grown(size, total + size, within)
    if wanted != size:
        return resized(deployment, [new], {new["metadata"]["name"]: wanted})
    active = [each for each in old if replicasets.replicas(each)]
    return resized(deployment, active, shrunk([*map(set_size, active)], set_size(new), within))


def _recreated(deployment: Tree, new: Tree | None, old: Sequence[Tree], running: set[str]) -> list[Action]:
    active = [each for each in old if replicasets.replicas(each)]
    if active:
        return resized(deployment, active, {each["metadata"]["name"]: 0 for each in active})
    if any(each["metadata"]["name"] in running for each in old):
        return []
    if new is None:
        return made(deployment, old, replicasets.replicas(deployment))
    return resized(deployment, [new], {new["metadata"]["name"]: replicasets.replicas(deployment)})


def _was_scaled(deployment: Tree, new: Tree | None, old: Sequence[Tree]) -> bool:
    active = [each for each in (*old, *([new] if new else [])) if replicasets.replicas(each)]
    desired = (number(each, DESIRED) for each in active)
    return any(each is not None and each != replicasets.replicas(deployment) for each in desired)


def _scaled(deployment: Tree, new: Tree | None, old: Sequence[Tree], within: RolloutLimits) -> list[Action]:
    every = [*old, *([new] if new is not None else [])]
    active = [each for each in every if replicasets.replicas(each)]
    if len(active) <= 1:
        alone = active[0] if active else new if new is not None else old[-1] if old else None
        return [] if alone is None else resized(deployment, [alone], {alone["metadata"]["name"]: within.replicas})
    if new is not None and is_saturated(deployment, new):
        gone = [each for each in active if each is not new]
        return resized(deployment, gone, {each["metadata"]["name"]: 0 for each in gone})
    # Among equal sizes, the newer ReplicaSet is scaled up first and the older one down first.
    growing = within.most > sum(map(replicasets.replicas, active))
    ordered = sorted(reversed(active) if growing else active, key=lambda each: -replicasets.replicas(each))
    scales = {each["metadata"]["name"]: replicasets.replicas(each) for each in ordered}
    return resized(deployment, ordered, scales | dict(spread([*map(set_size, ordered)], within)))


def _tidied_when_done(deployment: Tree, old: Sequence[Tree]) -> list[Action]:
    is_done = is_complete(deployment, deployment.get("status") or {})
    return tidied(deployment, old) if is_done else []


def _status_update(
    deployment: Tree, sets: Sequence[Tree], new: Tree | None, now: datetime, created: Tree | None = None
) -> list[Action]:
    status = new_status(deployment, sets, new, bounds(deployment).least, now)
    if created is not None and deadline(deployment) is not None:
        status = status | {"conditions": begun(status["conditions"], created, now)}
    wait = recheck(deployment, status, now)
    again = [Requeue(wait)] if wait is not None else []
    return [*actions.status(DEPLOYMENTS, deployment, status), *again]
