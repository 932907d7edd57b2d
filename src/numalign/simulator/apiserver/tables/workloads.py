"""The columns of workloads: deployments, replica sets, daemon sets, stateful sets, jobs, and disruption budgets."""

from dataclasses import replace
from datetime import datetime
from typing import Final

from numalign.simulator.apiserver.storage import labelselectors
from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    UNSET,
    TableColumn,
    boolean,
    field,
    integer,
    items,
    part,
    text,
    wide,
)
from numalign.simulator.trees import Tree

# The first true condition in this order names the job's state; deletion comes between the second and third.
ENDED: Final = ("Complete", "Failed")
UNDER_WAY: Final = ("Suspended", "FailureTarget", "SuccessCriteriaMet")


def _of_containers(workload: Tree, wanted: str) -> str:
    containers = items(part(part(part(workload, "spec"), "template"), "spec"), "containers")
    return ",".join(str(each.get(wanted, "")) for each in containers)


def _selector(workload: Tree) -> str:
    return labelselectors.selector_text(part(workload, "spec").get("selector")) or NONE


def _ready_replicas(tree: Tree) -> str:
    return f"{part(tree, 'status').get('readyReplicas', 0)}/{part(tree, 'spec').get('replicas', 0)}"


def _job_state(tree: Tree) -> str:
    for kind in ENDED:
        if columns.is_true(tree, kind):
            return kind
    if "deletionTimestamp" in tree["metadata"]:
        return "Terminating"
    return next((kind for kind in UNDER_WAY if columns.is_true(tree, kind)), "Running")


def _completions(tree: Tree) -> str:
    spec, succeeded = part(tree, "spec"), part(tree, "status").get("succeeded", 0)
    if spec.get("completions") is not None:
        return f"{succeeded}/{spec['completions']}"
    parallelism = spec.get("parallelism") or 0
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(tree: Tree, now: datetime) -> str:
    started, completed = (part(tree, "status").get(each) for each in ("startTime", "completionTime"))
    if not started:
        return ""
    return columns.duration_between(started, completed) if completed else columns.age_since(started, now)


def _is_suspended(tree: Tree) -> str:
    suspended = part(tree, "spec").get("suspend")
    return UNSET if suspended is None else str(suspended)


def _last_schedule(tree: Tree, now: datetime) -> str:
    last = part(tree, "status").get("lastScheduleTime")
    return columns.age_since(last, now) if last else NONE


def _bound(tree: Tree, name: str) -> str:
    bound = part(tree, "spec").get(name)
    return "N/A" if bound is None else str(bound)


def _controller(tree: Tree) -> str:
    owner = next((each for each in items(tree["metadata"], "ownerReferences") if each.get("controller")), None)
    if owner is None:
        return NONE
    group = owner.get("apiVersion", "").rpartition("/")[0]
    kind = owner.get("kind", "").lower()
    return f"{kind}.{group}/{owner.get('name')}" if group else f"{kind}/{owner.get('name')}"


def _of_jobs(column: TableColumn) -> TableColumn:
    """The column of a cron job that shows its job template."""
    return replace(column, cell=lambda tree, now: column.cell(part(part(tree, "spec"), "jobTemplate"), now))


def _count(name: str, *path: str) -> TableColumn:
    return integer(name, field(*path, default=0))


CONTAINERS: Final = (
    wide("Containers", lambda tree: _of_containers(tree, "name")),
    wide("Images", lambda tree: _of_containers(tree, "image")),
)
TEMPLATE: Final = (*CONTAINERS, wide("Selector", _selector))
DESIRED: Final = _count("Desired", "spec", "replicas")
REVISION: Final = field("revision", default=0)
REPLICAS: Final = (
    NAME,
    DESIRED,
    _count("Current", "status", "replicas"),
    _count("Ready", "status", "readyReplicas"),
    AGE,
    *CONTAINERS,
)

LAYOUTS: Final = {
    ("apps", "Deployment"): (
        NAME,
        text("Ready", _ready_replicas),
        text("Up-to-date", field("status", "updatedReplicas", default=0)),
        text("Available", field("status", "availableReplicas", default=0)),
        AGE,
        *CONTAINERS,
        wide("Selector", lambda tree: labelselectors.selector_text(part(tree, "spec").get("selector"))),
    ),
    ("apps", "ReplicaSet"): (*REPLICAS, wide("Selector", _selector)),
    ("", "ReplicationController"): (
        *REPLICAS,
        wide("Selector", lambda tree: columns.labels(part(tree, "spec").get("selector"))),
    ),
    ("apps", "StatefulSet"): (NAME, text("Ready", _ready_replicas), AGE, *CONTAINERS),
    ("apps", "DaemonSet"): (
        NAME,
        _count("Desired", "status", "desiredNumberScheduled"),
        _count("Current", "status", "currentNumberScheduled"),
        _count("Ready", "status", "numberReady"),
        _count("Up-to-date", "status", "updatedNumberScheduled"),
        _count("Available", "status", "numberAvailable"),
        text("Node Selector", lambda tree: columns.labels(field("spec", "template", "spec", "nodeSelector")(tree))),
        AGE,
        *TEMPLATE,
    ),
    ("batch", "Job"): (
        NAME,
        text("Status", _job_state),
        text("Completions", _completions),
        TableColumn("Duration", _job_duration),
        AGE,
        *TEMPLATE,
    ),
    ("batch", "CronJob"): (
        NAME,
        text("Schedule", field("spec", "schedule")),
        text("Timezone", field("spec", "timeZone", default=NONE)),
        boolean("Suspend", _is_suspended),
        integer("Active", lambda tree: len(items(part(tree, "status"), "active"))),
        TableColumn("Last Schedule", _last_schedule),
        AGE,
        *map(_of_jobs, TEMPLATE),
    ),
    ("policy", "PodDisruptionBudget"): (
        NAME,
        text("Min Available", lambda tree: _bound(tree, "minAvailable")),
        text("Max Unavailable", lambda tree: _bound(tree, "maxUnavailable")),
        _count("Allowed Disruptions", "status", "disruptionsAllowed"),
        AGE,
    ),
    ("autoscaling", "Scale"): (NAME, DESIRED, _count("Available", "status", "replicas"), AGE),
    ("apps", "ControllerRevision"): (NAME, text("Controller", _controller), text("Revision", REVISION), AGE),
}
