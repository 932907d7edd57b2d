"""NUMAResourcesScheduler: the scheduler's Deployment and its configuration. Pure.

`controller` calls `plan_for` with what it sees of the cluster. The spec becomes values of the chart, and the objects
are what `deploy render` makes of them. Every field is read anew each time, so that a field that is taken away has its
default again."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from numalign.api import errors
from numalign.api.decode import fields
from numalign.deploy import model, render
from numalign.deploy.model import Values
from numalign.deploy.operator import conditions, groups, kinds, plan
from numalign.deploy.operator.conditions import Extra, Outcome
from numalign.deploy.operator.groups import Problem
from numalign.deploy.operator.kinds import NUMAResourcesScheduler, SchedulerSpec, Status
from numalign.deploy.operator.objects import Key, Node, Tree
from numalign.deploy.operator.plan import BadImage, ObservedCluster, Owner, Plan, PlanOptions, Rollout

UPDATING: Final = "DeploymentIsUpdating"
NOT_READY: Final = "SchedulerNotReady"
BAD_SPEC: Final = "ValidationErrorUnderSpec"
BAD_IMAGE: Final = "InvalidSchedulerImage"
INFORMER: Final = "DedicatedInformerActive"
WAITING: Final = "PodsWaitForFormerName"
RENAMED: Final = "SchedulerRenamed"
FORMER: Final = "formerSchedulerNames"
MOST_FORMER, SHOWN = 3, 3
CONTROL_PLANE: Final = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")
DEFAULT_RESYNC: Final = "5s"
STOCK: Final = "default-scheduler"
NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
LONGEST_NAME: Final = 63
FEW, MANY, ENOUGH = 1, 3, 3
"""Replicas with fewer than `ENOUGH` nodes for them, and with as many."""
DETECTIONS: Final = {"Relaxed": "OnlyExclusiveResources", "Aggressive": "All"}
STRATEGIES: Final = ("MostAllocated", "BalancedAllocation", "LeastAllocated")
SWITCH: Final = ("Enabled", "Disabled")
MODES: Final = ("Shared", "Dedicated")
MOST_WEIGHT: Final = 100
GUARANTEED: Final = {"cpu": "600m", "memory": "1200Mi"}


def plan_for(resource: NUMAResourcesScheduler, observed: ObservedCluster, options: PlanOptions) -> Plan:
    meta, spec = resource.metadata, resource.spec
    extras = (plan.paused(meta), _informer(spec), *_renamed(resource, observed))
    if extras[0].holds:
        return Plan(extras=extras, status=_frozen(resource.status))
    if (misnamed := plan.misnamed(kinds.SCHEDULER, meta.name)) is not None:
        return Plan(outcome=misnamed, extras=extras)
    problems = _problems(spec)
    if problems:
        refused = Outcome("Degraded", BAD_SPEC, "; ".join(map(str, problems)))
        return Plan(outcome=refused, extras=extras, status=_frozen(resource.status))
    try:
        image = plan.image(spec.image_spec, options.values.scheduler.image, options)
        replicas = _replicas(spec.replicas, observed.nodes)
    except BadImage as problem:
        refused = Outcome("Degraded", BAD_IMAGE, str(problem))
        return Plan(outcome=refused, extras=extras, status=_frozen(resource.status))
    except _TooFewNodes as problem:
        refused = Outcome("Degraded", conditions.INTERNAL_ERROR, str(problem))
        return Plan(outcome=refused, extras=extras, status=_frozen(resource.status))
    values = values_of(resource, replicas, image, options.values)
    found = plan.compared(objects_of(values, options), observed, Owner(kinds.SCHEDULER.kind, meta))
    key = Key("Deployment", f"{options.fullname}-scheduler", options.namespace)
    rollout = plan.rollout(key, observed)
    outcome, again = plan.judged(
        [rollout], found, resource.status, (UPDATING, NOT_READY), observed.now, _notes(spec, replicas, options)
    )
    return Plan(
        outcome=outcome,
        extras=extras,
        status=_status(resource, rollout, options),
        apply=found.apply,
        remove=found.remove,
        delete=found.delete,
        again=again,
    )


def _frozen(status: Status) -> Status:
    return {key: value for key, value in status.items() if key not in ("conditions", "observedGeneration", "reason")}


def served(spec: SchedulerSpec) -> str:
    return spec.scheduler_name or kinds.PROFILE


def former_names(resource: NUMAResourcesScheduler) -> tuple[str, ...]:
    """The names that the resource served before, the last ones first. Workloads may name them for a long time."""
    known = kinds.read_back(resource.status.get(FORMER), tuple[str, ...]) or ()
    last = kinds.read_back(resource.status.get("schedulerName"), str) or ""
    names = dict.fromkeys(name for name in (last, *known) if name and name != served(resource.spec))
    return tuple(names)[:MOST_FORMER]


def _renamed(resource: NUMAResourcesScheduler, observed: ObservedCluster) -> list[Extra]:
    """The condition about pods of a former name, where there is a former name or was one."""
    names = former_names(resource)
    before = any(each.type == WAITING for each in kinds.conditions(resource.status))
    found = [_waits(name, observed.waiting[name]) for name in names if observed.waiting.get(name)]
    if found:
        advice = f"let them name {served(resource.spec)}, or run a scheduler of that name"
        return [Extra(WAITING, True, RENAMED, f"{'; '.join(found)}; {advice}")]
    return [Extra(WAITING, False, conditions.AS_EXPECTED)] if names or before else []


def _waits(name: str, pods: Sequence[str]) -> str:
    more = f" and {len(pods) - SHOWN} more" if len(pods) > SHOWN else ""
    return f"pods wait for {name}, which this resource no longer serves: {', '.join(pods[:SHOWN])}{more}"


def _informer(spec: SchedulerSpec) -> Extra:
    shared = "schedulerInformer: Shared has no effect, " if spec.scheduler_informer == "Shared" else ""
    return Extra(
        INFORMER, True, conditions.AS_EXPECTED, f"{shared}numalign's scheduler has its own informer of all pods"
    )


def _problems(spec: SchedulerSpec) -> list[Problem]:
    found = list[Problem]()
    name = spec.scheduler_name
    if name == STOCK:
        found.append(Problem("spec.schedulerName", f"{STOCK} is kube-scheduler's; choose another name"))
    elif name and (not NAME.fullmatch(name) or len(name) > LONGEST_NAME):
        why = f"{errors.echo(name)} is not up to {LONGEST_NAME} lower-case letters, digits, inner dashes and dots"
        found.append(Problem("spec.schedulerName", why))
    if isinstance(period := _resync(spec), Problem):
        found.append(period)
    if spec.replicas is not None and spec.replicas < 0:
        found.append(Problem("spec.replicas", f"{spec.replicas} is negative"))
    elif spec.replicas is not None and spec.replicas > MOST_REPLICAS:
        found.append(
            Problem("spec.replicas", f"{spec.replicas} is more than {MOST_REPLICAS}; one leads, the others wait")
        )
    choices: dict[str, tuple[str | None, Sequence[str]]] = {
        "schedulerInformer": (spec.scheduler_informer, MODES),
        "cacheResyncDetection": (spec.cache_resync_detection, tuple(DETECTIONS)),
        "preemptionMode": (spec.preemption_mode, SWITCH),
        "scoringStrategy.type": (spec.scoring_strategy.type if spec.scoring_strategy else None, STRATEGIES),
    }
    for field, (written, allowed) in choices.items():
        if written is not None and written not in allowed:
            found.append(Problem(f"spec.{field}", f"{errors.echo(written)} is not one of {', '.join(allowed)}"))
    for number, each in enumerate(spec.scoring_strategy.resources if spec.scoring_strategy else ()):
        if not (each.name and 1 <= each.weight <= MOST_WEIGHT):
            place = f"spec.scoringStrategy.resources[{number}]"
            found.append(Problem(place, f"needs a name, and a weight from 1 to {MOST_WEIGHT}"))
    return found


MOST_REPLICAS: Final = 10


def _resync(spec: SchedulerSpec) -> float | Problem:
    return groups.duration(spec.cache_resync_period or DEFAULT_RESYNC, "spec.cacheResyncPeriod")


class _TooFewNodes(Exception):
    """More replicas are asked for than nodes can take."""


def _replicas(asked: int | None, nodes: Sequence[Node]) -> int:
    """One, or three where there are three nodes for them. Clusters whose control plane is not theirs use all nodes."""
    control = [node for node in nodes if any(label in node.metadata.labels for label in CONTROL_PLANE)]
    eligible, whose = (len(control), "control-plane nodes") if control else (len(nodes), "nodes")
    if asked is None:
        if not eligible:
            raise _TooFewNodes("the cluster has no nodes")
        return FEW if eligible < ENOUGH else MANY
    if asked > eligible:
        raise _TooFewNodes(f"spec.replicas: {asked} replicas need as many {whose}, and the cluster has {eligible}")
    return asked


def values_of(resource: NUMAResourcesScheduler, replicas: int, image: model.Image, base: Values) -> Values:
    """The values of the chart that make the same objects: the scheduler alone."""
    spec, usual = resource.spec, base.scheduler
    strategy, period = spec.scoring_strategy, _resync(spec)
    assert not isinstance(period, Problem)
    changes: dict[str, Any] = {
        "enabled": True,
        "mode": "secondary",
        "name": served(spec),
        "replicas": replicas,
        "image": image,
        "verbosity": kinds.LOG_LEVELS.get(spec.log_level, 2),
        "preemption_mode": spec.preemption_mode or usual.preemption_mode,
        "cache": structs.replace(
            usual.cache,
            resync_period_seconds=round(period),
            foreign_pods_detect=DETECTIONS[spec.cache_resync_detection or "Relaxed"],
        ),
        "affinity": usual.affinity or NEAR_THE_CONTROL_PLANE,
    }
    if strategy is not None:
        resources = [{"name": each.name, "weight": each.weight} for each in strategy.resources]
        written = {"type": strategy.type, "resources": resources}
        changes["scoring_strategy"] = msgspec.convert(written, model.ScoringStrategy)
    if resource.metadata.annotations.get(kinds.QOS) == kinds.GUARANTEED:
        changes["resources"] = {"requests": dict(GUARANTEED), "limits": dict(GUARANTEED)}
    world = structs.replace(base.global_, image_registry="") if image != usual.image else base.global_
    return structs.replace(base, scheduler=structs.replace(usual, **changes), global_=world)


NEAR_THE_CONTROL_PLANE: Final = {
    "nodeAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 100, "preference": {"matchExpressions": [{"key": CONTROL_PLANE[0], "operator": "Exists"}]}}
        ]
    }
}


def objects_of(values: Values, options: PlanOptions) -> list[Tree]:
    return render.render(values, options.release, components=("scheduler",))


def _notes(spec: SchedulerSpec, replicas: int, options: PlanOptions) -> list[str]:
    notes = ["spec.replicas is 0: no pod is scheduled"] if not replicas else []
    if spec.image_spec and options.image_policy == "own":
        notes.append("spec.imageSpec has no effect: this operator runs its own image")
    return notes


def _status(resource: NUMAResourcesScheduler, rollout: Rollout, options: PlanOptions) -> Status:
    period, former = _resync(resource.spec), former_names(resource)
    related = [
        {"group": "", "resource": "namespaces", "name": options.namespace},
        {"group": "apps", "resource": "deployments", "namespace": options.namespace, "name": rollout.key.name},
    ]
    return {
        "deployment": {"namespace": options.namespace, "name": rollout.key.name},
        "schedulerName": served(resource.spec),
        **({FORMER: list(former)} if former else {}),
        "cacheResyncPeriod": "" if isinstance(period, Problem) else fields.duration_text(round(period)),
        "replicas": f"{rollout.ready}/{rollout.wanted}",
        "relatedObjects": related,
    }
