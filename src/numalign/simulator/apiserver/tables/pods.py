"""The columns of pods: ready containers, status, restarts.

The status is decided in this order: the phase or reason of the pod, the first init container that has not finished, the
containers from the last to the first; deletion overrides all of them. The row shows what kubelets and controllers
wrote; nothing is inferred."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import NONE, items, part
from numalign.simulator.trees import Tree

LOST_NODE: Final = "NodeLost"
FINISHED: Final = frozenset({"Succeeded", "Failed"})

COLUMNS: Final = columns.named(
    "Ready", "Status", "Restarts", "Age", *columns.wide("IP", "Node", "Nominated Node", "Readiness Gates")
)
ENDED: Final = {
    "Succeeded": [
        {
            "type": "Completed",
            "status": "True",
            "reason": "Succeeded",
            "message": "The pod has completed successfully.",
        }
    ],
    "Failed": [{"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}],
}


@dataclass
class ContainerCounts:
    """What has been counted while walking over the containers."""

    reason: str
    ready: int = 0
    restarts: int = 0
    restarted: str = ""

    def count(self, status: Tree) -> None:
        self.restarts += status.get("restartCount", 0)
        stopped = part(part(status, "lastState"), "terminated").get("finishedAt") or ""
        self.restarted = max(self.restarted, stopped)


def row(pod: Tree, now: datetime) -> list[Any]:
    spec, status = part(pod, "spec"), part(pod, "status")
    tally = _walked(spec, status)
    lasting = len(items(spec, "containers")) + sum(map(_is_sidecar, items(spec, "initContainers")))
    addresses = items(status, "podIPs")
    return [
        columns.name(pod),
        f"{tally.ready}/{lasting}",
        _deleted(pod, status) or tally.reason,
        _restarts(tally, now),
        columns.age(pod, now),
        (addresses[0].get("ip") if addresses else "") or NONE,
        spec.get("nodeName") or NONE,
        status.get("nominatedNodeName") or NONE,
        _gates(spec, items(status, "conditions")),
    ]


def conditions(pod: Tree) -> list[Tree]:
    """The conditions of the row: kubectl uses them to hide completed pods on request."""
    return ENDED.get(part(pod, "status").get("phase", ""), [])


LAYOUT: Final = columns.TableLayout(COLUMNS, row)


def _walked(spec: Tree, status: Tree) -> ContainerCounts:
    reason = status.get("reason") or status.get("phase", "")
    for condition in items(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    tally, sidecars = ContainerCounts(reason), ContainerCounts(reason)
    initializing = _walk_init_containers(spec, status, tally, sidecars)
    if initializing and not columns.is_true(items(status, "conditions"), "Initialized"):
        return tally
    # Once the app containers run, only the restarts of sidecars count among the init containers.
    tally.restarts, tally.restarted = sidecars.restarts, sidecars.restarted
    _walk_containers(status, tally)
    return tally


def _walk_init_containers(spec: Tree, status: Tree, tally: ContainerCounts, sidecars: ContainerCounts) -> bool:
    """Stops at the first init container that is not done, and returns whether there is one."""
    declared = {each.get("name"): each for each in items(spec, "initContainers")}
    for index, container in enumerate(items(status, "initContainerStatuses")):
        is_sidecar = _is_sidecar(declared.get(container.get("name"), {}))
        tally.count(container)
        if is_sidecar:
            sidecars.count(container)
        state = part(container, "state")
        if "terminated" in state and not state["terminated"].get("exitCode"):
            continue
        if is_sidecar and container.get("started"):
            tally.ready += bool(container.get("ready"))
            continue
        tally.reason = f"Init:{_holdup(state) or f'{index}/{len(declared)}'}"
        return True
    return False


def _holdup(state: Tree) -> str:
    if "terminated" in state:
        return _end(state["terminated"])
    waiting = str(part(state, "waiting").get("reason", ""))
    return "" if waiting == "PodInitializing" else waiting


def _walk_containers(status: Tree, tally: ContainerCounts) -> None:
    running, failure = False, ""
    for container in reversed(items(status, "containerStatuses")):
        tally.count(container)
        state = part(container, "state")
        if part(state, "waiting").get("reason"):
            tally.reason = state["waiting"]["reason"]
        elif "terminated" in state:
            tally.reason = _end(state["terminated"])
            failure = tally.reason if state["terminated"].get("exitCode") else failure
        elif container.get("ready") and "running" in state:
            running = True
            tally.ready += 1
    if tally.reason == "Completed":
        tally.reason = _partly_completed(status, running=running, failure=failure)


def _partly_completed(status: Tree, *, running: bool, failure: str) -> str:
    if running and columns.is_true(items(status, "conditions"), "Ready"):
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _end(terminated: Tree) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _deleted(pod: Tree, status: Tree) -> str:
    if "deletionTimestamp" not in pod["metadata"]:
        return ""
    if status.get("reason") == LOST_NODE:
        return "Unknown"
    return "" if status.get("phase") in FINISHED else "Terminating"


def _restarts(tally: ContainerCounts, now: datetime) -> str:
    if tally.restarts and tally.restarted:
        return f"{tally.restarts} ({columns.age_since(tally.restarted, now)} ago)"
    return str(tally.restarts)


def _gates(spec: Tree, conditions: list[Tree]) -> str:
    gates = items(spec, "readinessGates")
    if not gates:
        return NONE
    met = sum(columns.is_true(conditions, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


def _is_sidecar(container: Tree) -> bool:
    return container.get("restartPolicy") == "Always"
