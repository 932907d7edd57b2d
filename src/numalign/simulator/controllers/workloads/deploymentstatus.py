"""What a deployment says of itself: counts, Available and Progressing; `kubectl rollout status` reads nothing else.

`deployments` calls `status` at the end of every look. Progress is what changed since the status that is there."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from numalign.simulator.controllers.framework import conditions, moments
from numalign.simulator.controllers.framework.conditions import Conditions
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


def status(deployment: Tree, sets: Sequence[Tree], new: Tree | None, least: int, now: datetime) -> Tree:
    """`least` is how many replicas have to be available for the deployment to count as available."""
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
    """Seconds until lack of progress is to be reported, if nothing happens; None where it never is."""
    seconds, progressing = deadline(deployment), conditions.find(status["conditions"], PROGRESSING)
    if seconds is None or progressing is None or deployment["spec"].get("paused"):
        return None
    if is_complete(deployment, status) or progressing["reason"] == TIMED_OUT:
        return None
    # A second more, since what is written is cut to whole ones.
    return max(0.0, seconds - (moments.since(progressing.get(UPDATED), now) or 0.0)) + 1


def paused(deployment: Tree, now: datetime) -> Conditions | None:
    """The conditions of a deployment that was paused or resumed just now; None if neither."""
    listed = conditions.listed(deployment)
    found = conditions.find(listed, PROGRESSING)
    reason = found["reason"] if found else ""
    is_paused = bool(deployment["spec"].get("paused"))
    if deadline(deployment) is None or reason == TIMED_OUT or is_paused == (reason == PAUSED):
        return None
    reason, message = (PAUSED, "Deployment is paused") if is_paused else ("DeploymentResumed", "Deployment is resumed")
    return conditions.put(listed, conditions.made(PROGRESSING, "Unknown", reason, message), now, UPDATED)


def begun(listed: Conditions, created: Tree, now: datetime) -> Conditions:
    """A rollout begins with this replica set: the deadline runs from here."""
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
        told = (AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    else:
        told = (AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    return conditions.put(listed, conditions.made(*told), now, UPDATED)


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
        # The same condition again counts as news: its time is what the deadline runs from.
        return _put(_touched(listed, now), "True", "ReplicaSetUpdated", f"{who} is progressing.", now)
    if _is_late(deployment, found, now):
        return _put(listed, "False", TIMED_OUT, f"{who} has timed out progressing.", now)
    return listed


def _put(listed: Conditions, status: str, reason: str, message: str, now: datetime) -> Conditions:
    return conditions.put(listed, conditions.made(PROGRESSING, status, reason, message), now, UPDATED)


def _touched(listed: Conditions, now: datetime) -> Conditions:
    return [each | {UPDATED: moments.written(now)} if each["type"] == PROGRESSING else each for each in listed]


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
    elapsed, seconds = moments.since(found.get(UPDATED), now), deadline(deployment)
    return found["reason"] == TIMED_OUT or (elapsed is not None and seconds is not None and elapsed > seconds)


def _failures(listed: Conditions, new: Tree | None, sets: Sequence[Tree], now: datetime) -> Conditions:
    """What keeps a replica set from making pods, the newest one's first."""
    ordered = [*([new] if new is not None else []), *sets]
    told = (conditions.find(conditions.listed(each), replicasets.FAILURE) for each in ordered)
    failure = next((each for each in told if each is not None), None)
    if failure is None:
        return conditions.without(listed, replicasets.FAILURE)
    kept = {key: failure.get(key, "") for key in ("type", "status", "reason", "message")}
    return conditions.put(listed, kept, now, UPDATED)
