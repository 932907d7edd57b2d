"""Jobs: pods that run to their end, so many at a time, until enough have succeeded or too many failed.

A finished pod is counted once: it carries a finalizer, which goes away in the same look that adds it to the status.
Backoff after failures is the job's: 10 s, doubled for each failure in a row up to 10 min. Left out: pod failure
policies, success policies, backoff limits per index."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from numalign.kube.backoff import Exponential
from numalign.simulator.apiserver.storage.resources import JOBS, PODS
from numalign.simulator.apiserver.verbs.api import Change
from numalign.simulator.controllers.framework import actions, conditions, moments, owners
from numalign.simulator.controllers.framework.actions import Action, Again, Create, Merge, Note, Remove
from numalign.simulator.controllers.framework.runner import Desk
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.controllers.workloads import jobindexes, pods
from numalign.simulator.controllers.workloads.jobtally import TRACKING, Tally, is_tracked, tally
from numalign.simulator.trees import Tree

BACKOFF: Final = Exponential(first=10.0, longest=600.0)
ENDS: Final = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


class Jobs:
    name = "job-controller"

    def sit(self, desk: Desk) -> None:
        self._desk = desk
        desk.views.watch(JOBS, lambda change: desk.note(change.key))
        desk.views.watch(PODS, self._pod_changed)

    def _pod_changed(self, change: Change) -> None:
        held = owners.controller(change.tree)
        if held is not None and held["kind"] == JOBS.kind:
            self._desk.note((change.key[0], held["name"]))

    def look(self, key: Key) -> Iterable[Action]:
        views = self._desk.views
        job = views[JOBS].get(key)
        if job is None:
            return [_released(pod) for pod in views[PODS].within(key[0]) if _is_left_by(pod, key[1])]
        return reconcile(job, views[PODS].owned_by(job), self._desk.api.clock.wall())


def reconcile(job: Tree, owned: Sequence[Tree], now: datetime) -> list[Action]:
    if _finished(job) is not None:
        return [*_expired(job, now), *(_released(pod) for pod in owned if is_tracked(pod))]
    counted = tally(job, owned, now)
    end = _end(job, counted, now)
    adjusted = _ended(job, counted) if end else _adjusted(job, counted, now)
    status, told = _status(job, counted, adjusted, end, now)
    done = [pod for pod in owned if is_tracked(pod) and (end or not pods.is_active(pod))]
    # The count is written before the finalizers go, so that no pod is lost; it is one look, so none is counted twice.
    return [
        *actions.status(JOBS, job, status),
        *told,
        *map(_released, done),
        *_deadline(job, status, now),
        *adjusted,
    ]


def _finished(job: Tree) -> Tree | None:
    listed = conditions.listed(job)
    return next((each for each in listed if each["type"] in ENDS.values() and each["status"] == "True"), None)


def _expired(job: Tree, now: datetime) -> list[Action]:
    """ttlSecondsAfterFinished."""
    seconds, end = job["spec"].get("ttlSecondsAfterFinished"), _finished(job) or {}
    passed = moments.since(end.get("lastTransitionTime"), now)
    if seconds is None or passed is None or job["metadata"].get("deletionTimestamp"):
        return []
    return [Remove(JOBS, job, propagation="Foreground")] if passed >= seconds else [Again(seconds - passed)]


def _is_suspended(job: Tree) -> bool:
    return bool(job["spec"].get("suspend"))


def _end(job: Tree, counted: Tally, now: datetime) -> tuple[str, str, str] | None:
    """How the job ends now: the condition's type, reason and message."""
    if counted.failed > job["spec"].get("backoffLimit", 6) or counted.restarts_exceeded:
        return "FailureTarget", "BackoffLimitExceeded", "Job has reached the specified backoff limit"
    if _overdue(job, now) == 0:
        return "FailureTarget", "DeadlineExceeded", "Job was active longer than specified deadline"
    completions = job["spec"].get("completions")
    enough = counted.succeeded > 0 if completions is None else counted.succeeded >= completions
    if enough and not counted.active:
        return "SuccessCriteriaMet", "CompletionsReached", "Reached expected number of succeeded pods"
    return None


def _overdue(job: Tree, now: datetime) -> float | None:
    """Seconds that the job may still take; None without an end."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    passed = moments.since((job.get("status") or {}).get("startTime"), now)
    if seconds is None or passed is None or _is_suspended(job):
        return None
    return max(0.0, float(seconds) - passed)


def _deadline(job: Tree, status: Tree, now: datetime) -> list[Action]:
    left = _overdue(job | {"status": status}, now)
    return [Again(left)] if left else []


def _ended(job: Tree, counted: Tally) -> list[Action]:
    return [Remove(PODS, pod, job) for pod in counted.active]


def _adjusted(job: Tree, counted: Tally, now: datetime) -> list[Action]:
    if job["metadata"].get("deletionTimestamp"):
        return []
    wanted = 0 if _is_suspended(job) else _wanted_active(job, counted)
    surplus = [*counted.repeated, *pods.victims(counted.unrepeated, max(0, len(counted.unrepeated) - wanted), now)]
    if surplus:
        # Without its finalizer a pod that is taken back does not count as failed.
        return [act for pod in surplus[: pods.MOST_AT_ONCE] for act in (_released(pod), Remove(PODS, pod, job))]
    missing = wanted - len(counted.active)
    if missing <= 0:
        return []
    wait = backoff(counted.failures_in_row, counted.since_failure)
    if wait > 0:
        return [Again(wait)]
    return [Create(PODS, pod, job) for pod in _new_pods(job, counted, min(missing, pods.MOST_AT_ONCE))]


def _wanted_active(job: Tree, counted: Tally) -> int:
    parallelism: int = job["spec"].get("parallelism", 1)
    completions: int | None = job["spec"].get("completions")
    if completions is None:
        return len(counted.active) if counted.succeeded else parallelism
    return max(0, min(parallelism, completions - counted.succeeded))


def backoff(failures: int, since: float) -> float:
    """Seconds left before another pod is tried, after so many failures in a row."""
    return max(0.0, BACKOFF.pause(failures) - since)


def _new_pods(job: Tree, counted: Tally, count: int) -> list[Tree]:
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    tracked = template | {"metadata": metadata | {"finalizers": [*(metadata.get("finalizers") or []), TRACKING]}}
    if not jobindexes.is_indexed(job):
        return [pods.made(JOBS, job, tracked)] * count
    return [jobindexes.pod(job, tracked, index) for index in jobindexes.missing(job, counted, count)]


def _status(
    job: Tree, counted: Tally, adjusted: Sequence[Action], end: tuple[str, str, str] | None, now: datetime
) -> tuple[Tree, list[Action]]:
    """The new status, and what people are told about it."""
    created = sum(isinstance(each, Create) for each in adjusted)
    removed = sum(isinstance(each, Remove) for each in adjusted)
    removing = {id(each.target) for each in adjusted if isinstance(each, Remove)}
    listed, told, start = _suspension(job, end is not None, now)
    counts = {
        "active": len(counted.active) + created - removed,
        "succeeded": counted.succeeded,
        "failed": counted.failed + (removed if end else 0),
    }
    status: Tree = {name: count for name, count in counts.items() if count}
    status |= {
        "ready": sum(pods.is_ready(pod) for pod in counted.active if id(pod) not in removing),
        "terminating": counted.terminating + removed,
        "uncountedTerminatedPods": {},
    }
    if start:
        status["startTime"] = start
    status |= jobindexes.completed(job, counted)
    if end is not None:
        listed, more, times = _closed(job, listed, end, now)
        told, status = [*told, *more], status | times
    return status | ({"conditions": listed} if listed else {}), told


def _suspension(job: Tree, ending: bool, now: datetime) -> tuple[conditions.Conditions, list[Action], str]:
    listed, start = conditions.listed(job), (job.get("status") or {}).get("startTime", "")
    was = conditions.find(listed, "Suspended")
    suspended, before = _is_suspended(job), was is not None and was["status"] == "True"
    if ending or suspended == before:
        return listed, [], start or ("" if suspended else moments.written(now))
    text = "Job suspended" if suspended else "Job resumed"
    condition = conditions.made("Suspended", str(suspended), text.title().replace(" ", ""), text)
    event = Note(job, "Suspended" if suspended else "Resumed", text)
    # The clock of activeDeadlineSeconds starts anew when the job is resumed.
    return (
        conditions.put(listed, condition, now, "lastProbeTime"),
        [event],
        "" if suspended else moments.written(now),
    )


def _closed(
    job: Tree, listed: conditions.Conditions, end: tuple[str, str, str], now: datetime
) -> tuple[conditions.Conditions, list[Action], Tree]:
    kind, reason, message = end
    for name in (kind, ENDS[kind]):
        listed = conditions.put(listed, conditions.made(name, "True", reason, message), now, "lastProbeTime")
    if kind == "SuccessCriteriaMet":
        return listed, [Note(job, "Completed", "Job completed")], {"completionTime": moments.written(now)}
    return listed, [Note(job, reason, message, "Warning")], {}


def _is_left_by(pod: Tree, job: str) -> bool:
    held = owners.controller(pod)
    return is_tracked(pod) and held is not None and held["kind"] == JOBS.kind and held["name"] == job


def _released(pod: Tree) -> Action:
    kept = [each for each in pod["metadata"].get("finalizers") or () if each != TRACKING]
    return Merge(PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"], "finalizers": kept or None}})
