"""Small clusters as files, the way `kubectl get ... -o json` prints them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
from typer.testing import CliRunner, Result

from numalign.api.decode import structs
from numalign.api.nrt import normalise
from numalign.api.objects.pod import Pod
from numalign.cli.main import app
from numalign.kubelet import admission
from numalign.kubelet.report import report
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import KUBELET, on, trainer

NRT = "topology.node.k8s.io/v1alpha2"


def item(kind: str, version: str, thing: object) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(thing, enc_hook=structs.encodable)
    return {"apiVersion": version, "kind": kind} | plain


def node(name: str, *running: Pod, reported: bool = True, **more: Any) -> list[dict[str, Any]]:
    """A server, the pods that run on it, and its report about them."""
    items, state = [item("Node", "v1", servers.node(name, **more))], KUBELET.initial()
    for pod in running:
        state, outcome = admission.admit(KUBELET, state, pod)
        assert outcome.admitted, outcome
        state = admission.started(KUBELET, state, pod.metadata.uid)
        items.append(item("Pod", "v1", on(pod, name, phase="Running")))
    if reported:
        items.append(item("NodeResourceTopology", NRT, normalise.encode(report.of(name, KUBELET, state))))
    return items


def pod(thing: Pod) -> dict[str, Any]:
    return item("Pod", "v1", thing)


def busy() -> list[dict[str, Any]]:
    """Two nodes with a GPU or two left in each zone."""
    first = node("gpu-a", trainer("train-0", gpus=3), trainer("train-1", gpus=3))
    return first + node("gpu-b", trainer("train-2", gpus=3), trainer("train-3", gpus=3))


def written(folder: Path, items: list[dict[str, Any]]) -> str:
    file = folder / "cluster.json"
    file.write_bytes(msgspec.json.encode({"apiVersion": "v1", "kind": "List", "items": items}))
    return str(file)


def run(*arguments: str, **env: str) -> Result:
    return CliRunner().invoke(app, list(arguments), env=env)
