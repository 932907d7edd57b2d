"""The columns of workloads: deployments, replica sets, daemon sets, stateful sets, jobs, and disruption budgets."""

from datetime import datetime
from typing import Any, Final

from numalign.simulator.apiserver.storage import labelselectors
from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import (
    AGE,
    NONE,
    UNSET,
    TableLayout,
    booleans,
    integers,
    items,
    name,
    named,
    part,
    wide,
)
from numalign.simulator.trees import Tree

# The first true condition in this order names the job's state; deletion comes between the second and third.
ENDED: Final = ("Complete", "Failed")
UNDER_WAY: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")

TEMPLATE: Final = wide("Containers", "Images", "Selector")
REPLICAS: Final = named(*integers("Desired", "Current", "Ready"), AGE, *TEMPLATE)
DAEMON_COUNTS: Final = integers("Desired", "Current", "Ready", "Up-to-date", "Available")


def deployment(tree: Tree, now: datetime) -> list[Any]:
    spec, status = part(tree, "spec"), part(tree, "status")
    return [
        name(tree),
        f"{status.get('readyReplicas', 0)}/{spec.get('replicas', 0)}",
        status.get("updatedReplicas", 0),
        status.get("availableReplicas", 0),
        columns.age(tree, now),
        *columns.container_cells(tree),
        labelselectors.selector_text(spec.get("selector")),
    ]


def replica_set(tree: Tree, now: datetime) -> list[Any]:
    selector = labelselectors.selector_text(part(tree, "spec").get("selector")) or NONE
    return [*_replicas(tree, now), *columns.container_cells(tree), selector]


def replication_controller(tree: Tree, now: datetime) -> list[Any]:
    return [*_replicas(tree, now), *columns.container_cells(tree), columns.labels(part(tree, "spec").get("selector"))]


def _replicas(tree: Tree, now: datetime) -> list[Any]:
    spec, status = part(tree, "spec"), part(tree, "status")
    counts = [spec.get("replicas", 0), status.get("replicas", 0), status.get("readyReplicas", 0)]
    return [name(tree), *counts, columns.age(tree, now)]


def stateful_set(tree: Tree, now: datetime) -> list[Any]:
    ready = f"{part(tree, 'status').get('readyReplicas', 0)}/{part(tree, 'spec').get('replicas', 0)}"
    return [name(tree), ready, columns.age(tree, now), *columns.container_cells(tree)]


def daemon_set(tree: Tree, now: datetime) -> list[Any]:
    status = part(tree, "status")
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    return [
        name(tree),
        *(status.get(count, 0) for count in (*counts, "numberAvailable")),
        columns.labels(columns.template(tree).get("nodeSelector")),
        columns.age(tree, now),
        *columns.container_cells(tree),
        labelselectors.selector_text(part(tree, "spec").get("selector")) or NONE,
    ]


def job(tree: Tree, now: datetime) -> list[Any]:
    return [
        name(tree),
        _job_state(tree),
        _completions(part(tree, "spec"), part(tree, "status").get("succeeded", 0)),
        _job_duration(part(tree, "status"), now),
        columns.age(tree, now),
        *columns.container_cells(tree),
        labelselectors.selector_text(part(tree, "spec").get("selector")) or NONE,
    ]


def _job_state(tree: Tree) -> str:
    conditions = items(part(tree, "status"), "conditions")
    for kind in ENDED:
        if columns.is_true(conditions, kind):
            return kind
    if "deletionTimestamp" in tree["metadata"]:
        return "Terminating"
    return next((kind for kind in UNDER_WAY if columns.is_true(conditions, kind)), "Running")


def _completions(spec: Tree, succeeded: int) -> str:
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(status: Tree, now: datetime) -> str:
    started, completed = status.get("startTime"), status.get("completionTime")
    if not started:
        return ""
    return columns.duration_between(started, completed) if completed else columns.age_since(started, now)


def cron_job(tree: Tree, now: datetime) -> list[Any]:
    spec, status = part(tree, "spec"), part(tree, "status")
    suspended, last = spec.get("suspend"), status.get("lastScheduleTime")
    jobs = part(spec, "jobTemplate")
    return [
        name(tree),
        spec.get("schedule", ""),
        spec.get("timeZone", NONE),
        UNSET if suspended is None else str(suspended),
        len(items(status, "active")),
        columns.age_since(last, now) if last else NONE,
        columns.age(tree, now),
        *columns.container_cells(jobs),
        labelselectors.selector_text(part(jobs, "spec").get("selector")) or NONE,
    ]


def budget(tree: Tree, now: datetime) -> list[Any]:
    spec = part(tree, "spec")
    bounds = [
        str(spec[field]) if spec.get(field) is not None else "N/A" for field in ("minAvailable", "maxUnavailable")
    ]
    return [name(tree), *bounds, part(tree, "status").get("disruptionsAllowed", 0), columns.age(tree, now)]


def scale(tree: Tree, now: datetime) -> list[Any]:
    counts = [part(tree, each).get("replicas", 0) for each in ("spec", "status")]
    return [name(tree), *counts, columns.age(tree, now)]


def revision(tree: Tree, now: datetime) -> list[Any]:
    owner = next((each for each in items(tree["metadata"], "ownerReferences") if each.get("controller")), None)
    return [name(tree), _owner(owner) if owner else NONE, tree.get("revision", 0), columns.age(tree, now)]


def _owner(owner: Tree) -> str:
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"


LAYOUTS: Final = {
    ("apps", "Deployment"): TableLayout(named("Ready", "Up-to-date", "Available", AGE, *TEMPLATE), deployment),
    ("apps", "ReplicaSet"): TableLayout(REPLICAS, replica_set),
    ("", "ReplicationController"): TableLayout(REPLICAS, replication_controller),
    ("apps", "StatefulSet"): TableLayout(named("Ready", AGE, *wide("Containers", "Images")), stateful_set),
    ("apps", "DaemonSet"): TableLayout(named(*DAEMON_COUNTS, "Node Selector", AGE, *TEMPLATE), daemon_set),
    ("batch", "Job"): TableLayout(named("Status", "Completions", "Duration", AGE, *TEMPLATE), job),
    ("batch", "CronJob"): TableLayout(
        named("Schedule", "Timezone", *booleans("Suspend"), *integers("Active"), "Last Schedule", AGE, *TEMPLATE),
        cron_job,
    ),
    ("policy", "PodDisruptionBudget"): TableLayout(
        named("Min Available", "Max Unavailable", *integers("Allowed Disruptions"), AGE), budget
    ),
    ("autoscaling", "Scale"): TableLayout(named(*integers("Desired", "Available"), AGE), scale),
    ("apps", "ControllerRevision"): TableLayout(named("Controller", "Revision", AGE), revision),
}
