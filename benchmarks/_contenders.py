"""Who binds a burst of pods: the limit, our scheduler, the stock one, and the one with NodeResourceTopologyMatch.

A contender is a command to run beside a server, and the Lease that it waits for, if it does. Go schedulers may send as
much as they like, as in scheduler_perf: with their own limit of 50 calls a second they would be far slower."""

import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec

from benchmarks._limit import Task
from benchmarks._servers import Served
from numalign.lab import build

UNLIMITED = 5000
ZONES_PLUGIN = "NodeResourceTopologyMatch"


class Contender(msgspec.Struct, frozen=True):
    name: str
    """Also as pods name their scheduler, and as the Lease is called."""
    command: tuple[str, ...]
    waits: bool = True
    """For the Lease; else it starts with what is there."""


def limit(served: Served, namespace: str, nodes: int, *, bare: bool = False) -> Contender:
    task = Task(served.endpoint, namespace, nodes, bare)
    command = (sys.executable, "-m", "benchmarks._limit", msgspec.json.encode(task).decode())
    return Contender("bare binds" if bare else "Binding + Event", command, waits=False)


def ours(served: Served, *, recorded: bool = False) -> Contender:
    program = shutil.which("numalign", path=str(Path(sys.executable).parent)) or "numalign"
    command = (program, "scheduler", "run", "--kubeconfig", str(served.kubeconfig), "--port", "0")
    return Contender("numalign", (*command, "--record", str(served.folder / "recording")) if recorded else command)


def stock(served: Served) -> Contender:
    return _go(served, "kube-scheduler", {"schedulerName": "stock"})


def extended(served: Served, entry: dict[str, Any]) -> Contender:
    """kube-scheduler, which asks the extender of that entry."""
    return _go(served, "kube-scheduler", {"schedulerName": "extended"}, extenders=[entry])


def reference(served: Served) -> Contender:
    args = {"cacheResyncPeriodSeconds": 5, "scoringStrategy": {"type": "LeastAllocated"}}
    profile = {
        "schedulerName": "reference",
        "plugins": {"multiPoint": {"enabled": [{"name": ZONES_PLUGIN}]}},
        "pluginConfig": [{"name": ZONES_PLUGIN, "args": args}],
    }
    return _go(served, "reference-scheduler", profile)


def _go(served: Served, binary: str, profile: dict[str, Any], **more: Any) -> Contender:
    (built,) = build.build(build.chosen([binary]), lambda _: None)
    name = str(profile["schedulerName"])
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "clientConnection": {"kubeconfig": str(served.kubeconfig), "qps": UNLIMITED, "burst": UNLIMITED},
        "leaderElection": {"leaderElect": True, "resourceName": name, "resourceNamespace": "kube-system"},
        "profiles": [profile],
        **more,
    }
    file = served.folder / f"{name}.json"
    file.write_bytes(msgspec.json.encode(config))
    return Contender(name, (str(built.path), f"--config={file}", "--secure-port=0"))
