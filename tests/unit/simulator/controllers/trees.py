"""Pods and their owners, short to write, for tests of the pure functions."""

from datetime import UTC, datetime, timedelta

from numalign.simulator import clock
from numalign.simulator.trees import Tree

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> str:
    return clock.text(NOW - timedelta(seconds=seconds))


def pod(name: str = "p", phase: str = "Running", *, ready: bool = True, **more: object) -> Tree:
    """`more`: node, age, ready_for, deleting, restarts, cost, labels, finalizers, spec."""
    condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": ago(_number(more.get("ready_for", 60)))}
    metadata: Tree = {
        "name": name,
        "namespace": "default",
        "uid": f"uid-{name}",
        "resourceVersion": "1",
        "creationTimestamp": ago(_number(more.get("age", 100))),
        "labels": more.get("labels", {"app": "web"}),
    }
    metadata |= {"deletionTimestamp": ago(1)} if more.get("deleting") else {}
    metadata |= {"annotations": {"controller.kubernetes.io/pod-deletion-cost": more["cost"]}} if "cost" in more else {}
    metadata |= {"finalizers": more["finalizers"]} if "finalizers" in more else {}
    restarts = [{"name": "app", "restartCount": more.get("restarts", 0)}]
    status: Tree = {"phase": phase, "conditions": [condition], "containerStatuses": restarts}
    spec: Tree = {"containers": []} | ({"nodeName": more["node"]} if more.get("node") else {})
    given = more.get("spec")
    return {"metadata": metadata, "spec": spec | (given if isinstance(given, dict) else {}), "status": status}


def owner(name: str = "web", status: Tree | None = None, **spec: object) -> Tree:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "generation": 1, "resourceVersion": "1"}
    body = {"selector": {"matchLabels": {"app": "web"}}, "template": {"metadata": {"labels": {"app": "web"}}}}
    return {"metadata": metadata, "spec": body | spec, "status": status or {}}


def _number(value: object) -> float:
    assert isinstance(value, int | float)
    return value
