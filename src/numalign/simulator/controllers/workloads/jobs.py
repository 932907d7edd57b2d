"""Jobs: runs pods to completion, with parallelism, indexes, deadlines and a back-off limit.

Each finished pod is counted once: it carries a finalizer, which the reconciliation that counts it removes. The back-off
after failures is 10 s, doubled for each consecutive failure up to 10 min. The module has the indexes of Indexed jobs,
the tally of a job's pods, and the controller. Pod failure policies, success policies and back-off limits per index are
not implemented."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from numalign.kube.backoff import Exponential
from numalign.simulator import clock
from numalign.simulator.apiserver.storage.resources import JOBS, PODS
from numalign.simulator.controllers.framework import actions, conditions, owners, pods
from numalign.simulator.controllers.framework.actions import Action, Create, Delete, MergePatch, RecordEvent, Requeue
from numalign.simulator.controllers.framework.runner import ControllerContext
from numalign.simulator.controllers.framework.views import Key
from numalign.simulator.trees import Tree

INDEX: Final = "batch.kubernetes.io/job-completion-index"
VARIABLE: Final = "JOB_COMPLETION_INDEX"


def is_indexed(job: Tree) -> bool:
    return bool(job["spec"].get("completionMode") == "Indexed")


def index(pod: Tree) -> int | None:
    written = (pod["metadata"].get("annotations") or {}).get(INDEX, "")
    return int(written) if written.isdecimal() else None


def succeeded_indexes(job: Tree, done: Iterable[Tree]) -> frozenset[int]:
    if not is_indexed(job):
        return frozenset()
    earlier = read((job.get("status") or {}).get("completedIndexes", ""))
    found = earlier | {index(pod) for pod in done}
    return frozenset(each for each in found if each is not None and each < job["spec"]["completions"])


def repeated(job: Tree, active: Sequence[Tree], done: frozenset[int]) -> list[Tree]:
    if not is_indexed(job):
        return []
    seen: set[int | None] = {None, *done}
    extra = []
    for pod in pods.oldest_first(active):
        if index(pod) in seen:
            extra.append(pod)
        seen.add(index(pod))
    return extra


def missing(job: Tree, counted: JobTally, count: int) -> list[int]:
    """The lowest indexes that neither run nor have succeeded."""
    taken = counted.indexes | {index(pod) for pod in counted.active}
    return [each for each in range(job["spec"]["completions"]) if each not in taken][:count]


def pod(job: Tree, template: Tree, index: int) -> Tree:
    metadata, spec, name = template["metadata"], template["spec"], job["metadata"]["name"]
    marked = {INDEX: str(index)}
    variable = {"name": VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.annotations['{INDEX}']"}}}
    numbered = template | {
        "metadata": metadata
        | {
            "annotations": (metadata.get("annotations") or {}) | marked,
            "labels": (metadata.get("labels") or {}) | marked,
        },
        "spec": spec
        | {
            "hostname": f"{name}-{index}",
            "containers": [each | {"env": [*(each.get("env") or ()), variable]} for each in spec["containers"]],
        },
    }
    return pods.made(JOBS, job, numbered, f"{name}-{index}-")


def completed(job: Tree, counted: JobTally) -> Tree:
    """The status field with the completed indexes."""
    return {"completedIndexes": written(counted.indexes)} if is_indexed(job) and counted.indexes else {}


def written(indexes: Iterable[int]) -> str:
    """For example `0-2,5`. Two neighbours are separated by a comma, as in kube-controller-manager."""
    parts: list[list[int]] = []
    for each in sorted(indexes):
        if parts and parts[-1][-1] == each - 1:
            parts[-1].append(each)
        else:
            parts.append([each])
    return ",".join(_interval(part) for part in parts)


def read(text: str) -> set[int]:
    found: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        found |= set(range(int(first), int(last or first) + 1))
    return found


def _interval(part: Sequence[int]) -> str:
    return f"{part[0]}-{part[-1]}" if len(part) > 2 else ",".join(map(str, part))


TRACKING: Final = "batch.kubernetes.io/job-tracking"


@dataclass(frozen=True)
class JobTally:
    active: list[Tree]
    succeeded: int
    """Succeeded pods, or succeeded indexes of an Indexed job, including those counted earlier."""
    failed: int
    terminating: int
    failures_in_row: int
    """Failed pods that finished after the last success."""
    since_failure: float
    restarts_exceeded: bool = False
    indexes: frozenset[int] = frozenset()
    repeated: list[Tree] = field(default_factory=list)
    """Active pods whose index is taken, completed or invalid."""

    @property
    def unrepeated(self) -> list[Tree]:
        extra = {id(pod) for pod in self.repeated}
        return [pod for pod in self.active if id(pod) not in extra]


def is_tracked(pod: Tree) -> bool:
    """Whether the pod still has the finalizer, so it is not counted yet."""
    return TRACKING in (pod["metadata"].get("finalizers") or ())


def is_failed(pod: Tree) -> bool:
    """Whether the pod failed, or is being deleted while it runs; such a pod is replaced at once."""
    return pods.phase(pod) == "Failed" or (pods.is_terminating(pod) and pods.phase(pod) != "Succeeded")


def tally(job: Tree, owned: Sequence[Tree], now: datetime) -> JobTally:
    before = job.get("status") or {}
    active = [pod for pod in owned if pods.is_active(pod)]
    succeeded = [pod for pod in owned if pods.phase(pod) == "Succeeded"]
    failed = [pod for pod in owned if is_failed(pod)]
    row = _in_row(succeeded, failed)
    indexes = succeeded_indexes(job, succeeded)
    total = before.get("succeeded", 0) + sum(map(is_tracked, succeeded))
    return JobTally(
        active=active,
        succeeded=len(indexes) if is_indexed(job) else total,
        failed=before.get("failed", 0) + sum(map(is_tracked, failed)),
        terminating=sum(pods.is_terminating(pod) and not pods.is_finished(pod) for pod in owned),
        failures_in_row=len(row),
        since_failure=(now - row[-1]).total_seconds() if row else 0.0,
        restarts_exceeded=_restarts_exceeded(job, active),
        indexes=indexes,
        repeated=repeated(job, active, indexes),
    )


def _in_row(succeeded: Sequence[Tree], failed: Sequence[Tree]) -> list[datetime]:
    """Times of the failures after the last success, in order."""
    last = max(filter(None, map(_finish_time, succeeded)), default=None)
    times = sorted(filter(None, map(_finish_time, failed)))
    return [time for time in times if last is None or time > last]


def _finish_time(pod: Tree) -> datetime | None:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    states = [(each.get("state") or {}).get("terminated") or {} for each in statuses]
    if states and all("finishedAt" in state for state in states):
        return clock.parsed(max(state["finishedAt"] for state in states))
    ready = conditions.find(conditions.listed(pod), "Ready") or {}
    return clock.parsed(ready.get("lastTransitionTime") or pod["metadata"].get("creationTimestamp"))


def _restarts_exceeded(job: Tree, active: Sequence[Tree]) -> bool:
    """Container restarts count against the back-off limit too."""
    spec = job["spec"]
    if ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy") != "OnFailure":
        return False
    restarts = sum(map(pods.restarts, active))
    limit: int = spec.get("backoffLimit", 6)
    return restarts > 0 if limit == 0 else restarts >= limit


BACKOFF: Final = Exponential(first=10.0, longest=600.0)
ENDS: Final = {"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"}


class Jobs:
    name = "job-controller"

    def setup(self, context: ControllerContext) -> None:
        self._context = context
        context.views.watch(JOBS, lambda change: context.enqueue(change.key))
        context.views.watch(PODS, lambda change: context.enqueue_controller(change, JOBS))

    def reconcile(self, key: Key) -> Iterable[Action]:
        views = self._context.views
        job = views[JOBS].get(key)
        if job is None:
            return [_released(pod) for pod in views[PODS].within(key[0]) if _is_left_by(pod, key[1])]
        return reconcile(job, views[PODS].owned_by(job), self._context.api.clock.wall())


def reconcile(job: Tree, owned: Sequence[Tree], now: datetime) -> list[Action]:
    if _finished(job) is not None:
        return [*_expired(job, now), *(_released(pod) for pod in owned if is_tracked(pod))]
    counted = tally(job, owned, now)
    end = _end(job, counted, now)
    adjusted = _ended(job, counted) if end else _adjusted(job, counted, now)
    status, events = _status(job, counted, adjusted, end, now)
    done = [pod for pod in owned if is_tracked(pod) and (end or not pods.is_active(pod))]
    # The status is written before the finalizers are removed, so no pod is lost. Both happen in one reconciliation, so
    # no pod is counted twice.
    return [*actions.status(JOBS, job, status), *events, *map(_released, done), *_deadline(job, status, now), *adjusted]


def _finished(job: Tree) -> Tree | None:
    listed = conditions.listed(job)
    return next((each for each in listed if each["type"] in ENDS.values() and each["status"] == "True"), None)


def _expired(job: Tree, now: datetime) -> list[Action]:
    """Deletes the job after ttlSecondsAfterFinished."""
    seconds, end = job["spec"].get("ttlSecondsAfterFinished"), _finished(job) or {}
    passed = clock.seconds_since(end.get("lastTransitionTime"), now)
    if seconds is None or passed is None or job["metadata"].get("deletionTimestamp"):
        return []
    return [Delete(JOBS, job, propagation="Foreground")] if passed >= seconds else [Requeue(seconds - passed)]


def _is_suspended(job: Tree) -> bool:
    return bool(job["spec"].get("suspend"))


def _end(job: Tree, counted: JobTally, now: datetime) -> tuple[str, str, str] | None:
    """Type, reason and message of the condition that ends the job now."""
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
    """Seconds until activeDeadlineSeconds; None without a deadline."""
    seconds = job["spec"].get("activeDeadlineSeconds")
    passed = clock.seconds_since((job.get("status") or {}).get("startTime"), now)
    if seconds is None or passed is None or _is_suspended(job):
        return None
    return max(0.0, float(seconds) - passed)


def _deadline(job: Tree, status: Tree, now: datetime) -> list[Action]:
    left = _overdue(job | {"status": status}, now)
    return [Requeue(left)] if left else []


def _ended(job: Tree, counted: JobTally) -> list[Action]:
    return [Delete(PODS, pod, job) for pod in counted.active]


def _adjusted(job: Tree, counted: JobTally, now: datetime) -> list[Action]:
    if job["metadata"].get("deletionTimestamp"):
        return []
    wanted = 0 if _is_suspended(job) else _wanted_active(job, counted)
    surplus = [*counted.repeated, *pods.victims(counted.unrepeated, max(0, len(counted.unrepeated) - wanted), now)]
    if surplus:
        # A pod without the finalizer does not count as failed.
        return [act for pod in surplus[: pods.MOST_AT_ONCE] for act in (_released(pod), Delete(PODS, pod, job))]
    missing = wanted - len(counted.active)
    if missing <= 0:
        return []
    wait = backoff(counted.failures_in_row, counted.since_failure)
    if wait > 0:
        return [Requeue(wait)]
    return [Create(PODS, pod, job) for pod in _new_pods(job, counted, min(missing, pods.MOST_AT_ONCE))]


def _wanted_active(job: Tree, counted: JobTally) -> int:
    parallelism: int = job["spec"].get("parallelism", 1)
    completions: int | None = job["spec"].get("completions")
    if completions is None:
        return len(counted.active) if counted.succeeded else parallelism
    return max(0, min(parallelism, completions - counted.succeeded))


def backoff(failures: int, since: float) -> float:
    """Seconds left before the next pod is created, after this many consecutive failures."""
    return max(0.0, BACKOFF.pause(failures) - since)


def _new_pods(job: Tree, counted: JobTally, count: int) -> list[Tree]:
    template = job["spec"]["template"]
    metadata = template.get("metadata") or {}
    tracked = template | {"metadata": metadata | {"finalizers": [*(metadata.get("finalizers") or []), TRACKING]}}
    if not is_indexed(job):
        return [pods.made(JOBS, job, tracked)] * count
    return [pod(job, tracked, index) for index in missing(job, counted, count)]


def _status(
    job: Tree, counted: JobTally, adjusted: Sequence[Action], end: tuple[str, str, str] | None, now: datetime
) -> tuple[Tree, list[Action]]:
    """The new status, and the events for it."""
    created = sum(isinstance(each, Create) for each in adjusted)
    removed = sum(isinstance(each, Delete) for each in adjusted)
    removing = {id(each.target) for each in adjusted if isinstance(each, Delete)}
    listed, events, start = _suspension(job, end is not None, now)
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
    status |= completed(job, counted)
    if end is not None:
        listed, more, times = _closed(job, listed, end, now)
        events, status = [*events, *more], status | times
    return status | ({"conditions": listed} if listed else {}), events


def _suspension(job: Tree, ending: bool, now: datetime) -> tuple[conditions.Conditions, list[Action], str]:
    listed, start = conditions.listed(job), (job.get("status") or {}).get("startTime", "")
    was = conditions.find(listed, "Suspended")
    suspended, before = _is_suspended(job), was is not None and was["status"] == "True"
    if ending or suspended == before:
        return listed, [], start or ("" if suspended else clock.text(now))
    text = "Job suspended" if suspended else "Job resumed"
    condition = conditions.made("Suspended", str(suspended), text.title().replace(" ", ""), text)
    event = RecordEvent(job, "Suspended" if suspended else "Resumed", text)
    # activeDeadlineSeconds starts again when the job is resumed.
    return (conditions.put(listed, condition, now, "lastProbeTime"), [event], "" if suspended else clock.text(now))


def _closed(
    job: Tree, listed: conditions.Conditions, end: tuple[str, str, str], now: datetime
) -> tuple[conditions.Conditions, list[Action], Tree]:
    kind, reason, message = end
    for name in (kind, ENDS[kind]):
        listed = conditions.put(listed, conditions.made(name, "True", reason, message), now, "lastProbeTime")
    if kind == "SuccessCriteriaMet":
        return listed, [RecordEvent(job, "Completed", "Job completed")], {"completionTime": clock.text(now)}
    return listed, [RecordEvent(job, reason, message, "Warning")], {}


def _is_left_by(pod: Tree, job: str) -> bool:
    held = owners.controller(pod)
    return is_tracked(pod) and held is not None and held["kind"] == JOBS.kind and held["name"] == job


def _released(pod: Tree) -> Action:
    kept = [each for each in pod["metadata"].get("finalizers") or () if each != TRACKING]
    return MergePatch(PODS, pod, {"metadata": {"uid": pod["metadata"]["uid"], "finalizers": kept or None}})
