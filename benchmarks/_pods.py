"""Pods as an API server sends them, for the questions about reading many of them."""

from typing import Any

import msgspec


def pod(number: int, size: int) -> dict[str, Any]:
    """With two containers, and filled up to about so many bytes with what a pod carries that nobody here looks at."""
    made: dict[str, Any] = {
        "metadata": {
            "name": f"pod-{number}",
            "namespace": f"team-{number % 50}",
            "uid": f"00000000-0000-4000-8000-{number:012}",
            "resourceVersion": str(number + 1),
            "creationTimestamp": "2026-11-16T00:00:00Z",
            "labels": {"app": f"app-{number % 200}", "pod-template-hash": f"{number % 200:010x}"},
            "ownerReferences": [_owner(f"app-{number % 200}")],
        },
        "spec": {
            "nodeName": f"node-{number % 5000}",
            "containers": [_container("main", number), _container("proxy", number)],
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{what}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for what in ("not-ready", "unreachable")
            ],
        },
        "status": {
            "phase": "Running",
            "qosClass": "Guaranteed",
            "conditions": [
                {"type": kind, "status": "True", "lastTransitionTime": "2026-11-16T00:00:01Z"}
                for kind in ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
            ],
            "containerStatuses": [_status("main"), _status("proxy")],
        },
    }
    missing = size - len(msgspec.json.encode(made))
    fields: dict[str, Any] = {f"f:field-{index}": {".": {}, "f:inner": {}} for index in range(missing // 36)}
    made["metadata"]["managedFields"] = [{"manager": "kubelet", "fieldsV1": fields}]
    return made


def _owner(name: str) -> dict[str, Any]:
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": "u", "controller": True}


def _container(name: str, number: int) -> dict[str, Any]:
    amounts = {"cpu": str(1 + number % 8), "memory": f"{1 + number % 16}Gi"}
    env = [{"name": f"SETTING_{index}", "value": f"value-{index}"} for index in range(20)]
    return {
        "name": name,
        "image": f"registry.example/{name}:v1",
        "env": env,
        "resources": {"requests": amounts, "limits": amounts},
    }


def _status(name: str) -> dict[str, Any]:
    return {
        "name": name,
        "ready": True,
        "started": True,
        "restartCount": 0,
        "state": {"running": {"startedAt": "2026-11-16T00:00:01Z"}},
        "image": f"registry.example/{name}:v1",
        "imageID": f"registry.example/{name}@sha256:0",
    }
