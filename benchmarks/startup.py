"""How long does a command take that only reads?  Limit: 0.4 s, as kubectl users expect.

Commands run as processes against an embedded cluster of three nodes with pods that run and pods that wait. Counted is
the processor's time of the process, all of it: these commands compute alone and wait for nothing else, and others use
the machine, too. The best of a few runs counts; the first one, which writes bytecode, does not."""

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from benchmarks import table
from numalign.kube.access import kubeconfig
from numalign.kube.client import Client
from numalign.kube.clock import event_loop_runner
from numalign.kube.resources import PODS as RESOURCE

MOST_SECONDS: Final = 0.4
RUNS: Final = 7
CLUSTER: Final = "cluster up startup --nodes 3 --machine gpu-8 --with-scheduler -o json"
PODS: Final = 16
LIMITS: Final = {"cpu": "8", "memory": "8Gi", "nvidia.com/gpu": "2"}
COMMANDS: Final = (
    "version --client",
    "completion bash",
    "cluster status",
    "scheduler state",
    "scheduler log show",
    "nodes",
    "topology",
    "why",
    "capacity --requests cpu=4",
    "doctor",
)


def rows() -> Iterator[table.Row]:
    with tempfile.TemporaryDirectory(prefix="numalign-bench-") as made:
        environment = {**os.environ, "NUMALIGN_CLUSTERS": made, "PYTHONPYCACHEPREFIX": str(Path(made) / "bytecode")}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)
        numalign(CLUSTER, environment)
        try:
            environment["KUBECONFIG"] = str(Path(made) / "startup" / "kubeconfig")
            _fill(environment)
            for line in COMMANDS:
                numalign(line, environment)
                best = min(numalign(line, environment) for _ in range(RUNS))
                yield table.Row(name=f"startup: numalign {line}", ours=best, peer=MOST_SECONDS, unit="s")
        finally:
            numalign("cluster down startup", environment)


def numalign(line: str, environment: Mapping[str, str]) -> float:
    """Seconds of the processor for one call."""
    before = _spent()
    ran = subprocess.run(
        [sys.executable, "-m", "numalign.cli", *line.split()], env=environment, capture_output=True, check=False
    )
    if ran.returncode not in (0, 1):
        raise RuntimeError(f"numalign {line}: {ran.stderr.decode().strip()}")
    return _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _fill(environment: Mapping[str, str]) -> None:
    """Pods of which some find no node."""

    async def create() -> None:
        async with Client(kubeconfig.access((environment["KUBECONFIG"],))) as client:
            for number in range(PODS):
                await client.create(RESOURCE.within("default"), _pod(number))

    with event_loop_runner() as runner:
        runner.run(create())


def _pod(number: int) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"train-{number}", "namespace": "default"},
        "spec": {
            "schedulerName": "numalign",
            "containers": [{"name": "main", "image": "train", "resources": {"limits": LIMITS}}],
        },
    }
