"""The columns of pods: ready containers, status, restarts.

The status is decided in this order: the phase or reason of the pod, the first init container that has not finished, the
containers from the last to the first; deletion overrides all of them. The cells show what kubelets and controllers
wrote; nothing is inferred."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final

from numalign.simulator.apiserver.tables import columns
from numalign.simulator.apiserver.tables.columns import AGE, NAME, NONE, TableColumn, items, part, text, wide
from numalign.simulator.trees import Tree

LOST_NODE: Final = "NodeLost"
FINISHED: Final = frozenset({"Succeeded", "Failed"})

ENDED: Final = {
    phase: [{"type": "Completed", "status": "True", "reason": phase, "message": message}]
    for phase, message in (("Succeeded", "The pod has completed successfully."), ("Failed", "The pod failed."))
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


def _ready(pod: Tree) -> str:
    spec = part(pod, "spec")
    lasting = len(items(spec, "containers")) + sum(map(_is_sidecar, items(spec, "initContainers")))
    return f"{_walked(pod).ready}/{lasting}"


def conditions(pod: Tree) -> list[Tree]:
    """The conditions of the row: kubectl uses them to hide completed pods on request."""
    return ENDED.get(part(pod, "status").get("phase", ""), [])


def _walked(pod: Tree) -> ContainerCounts:
    spec, status = part(pod, "spec"), part(pod, "status")
    reason = status.get("reason") or status.get("phase", "")
    for condition in items(status, "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    tally, sidecars = ContainerCounts(reason), ContainerCounts(reason)
    initializing = _walk_init_containers(spec, status, tally, sidecars)
    if initializing and not columns.is_true(pod, "Initialized"):
        return tally
    # Once the app containers run, only the restarts of sidecars count among the init containers.
    tally.restarts, tally.restarted = sidecars.restarts, sidecars.restarted
    _walk_containers(pod, tally)
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


def _walk_containers(pod: Tree, tally: ContainerCounts) -> None:
    running, failure = False, ""
    for container in reversed(items(part(pod, "status"), "containerStatuses")):
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
        tally.reason = _partly_completed(pod, running=running, failure=failure)


def _partly_completed(pod: Tree, *, running: bool, failure: str) -> str:
    if running and columns.is_true(pod, "Ready"):
        return "Running"
    return failure or ("NotReady" if running else "Completed")


def _end(terminated: Tree) -> str:
    if terminated.get("reason"):
        return str(terminated["reason"])
    if terminated.get("signal"):
        return f"Signal:{terminated['signal']}"
    return f"ExitCode:{terminated.get('exitCode', 0)}"


def _deleted(pod: Tree) -> str:
    status = part(pod, "status")
    if "deletionTimestamp" not in pod["metadata"]:
        return ""
    if status.get("reason") == LOST_NODE:
        return "Unknown"
    return "" if status.get("phase") in FINISHED else "Terminating"


def _restarts(pod: Tree, now: datetime) -> str:
    tally = _walked(pod)
    if tally.restarts and tally.restarted:
        return f"{tally.restarts} ({columns.age_since(tally.restarted, now)} ago)"
    return str(tally.restarts)


def _address(pod: Tree) -> str:
    addresses = items(part(pod, "status"), "podIPs")
    return (addresses[0].get("ip") if addresses else "") or NONE


def _gates(pod: Tree) -> str:
    gates = items(part(pod, "spec"), "readinessGates")
    if not gates:
        return NONE
    met = sum(columns.is_true(pod, gate.get("conditionType", "")) for gate in gates)
    return f"{met}/{len(gates)}"


def _is_sidecar(container: Tree) -> bool:
    return container.get("restartPolicy") == "Always"


COLUMNS: Final = (
    NAME,
    text("Ready", _ready),
    text("Status", lambda pod: _deleted(pod) or _walked(pod).reason),
    TableColumn("Restarts", _restarts),
    AGE,
    wide("IP", _address),
    wide("Node", lambda pod: part(pod, "spec").get("nodeName") or NONE),
    wide("Nominated Node", lambda pod: part(pod, "status").get("nominatedNodeName") or NONE),
    wide("Readiness Gates", _gates),
)
