"""Small traces for tests of the planner."""

from __future__ import annotations

from pathlib import Path
from random import Random

from numalign.plan.trace import WHOLE, Trace, TraceNode, TracePod

KINDS = ((96_000, 393_216, 8, "G2"), (104_000, 524_288, 2, "T4"), (8_000, 32_768, 1, "V100M16"))


def small(nodes: int = 12, pods: int = 60, seed: int = 1, *, shares: bool = True) -> Trace:
    """A few machines of three kinds, and pods that ask for parts of a GPU, for whole ones, or for none."""
    random = Random(seed)
    made = tuple(TraceNode(f"node-{number:04}", *KINDS[number % len(KINDS)]) for number in range(nodes))
    return Trace("small", made, tuple(_pod(number, random, shares=shares) for number in range(pods)))


def _pod(number: int, random: Random, *, shares: bool) -> TracePod:
    gpus, milli = random.choice([(0, 0), (1, 250), (1, 600), (1, WHOLE), (1, WHOLE), (2, WHOLE), (8, WHOLE)])
    milli = milli if shares or not milli else WHOLE
    models = ("G2", "T4") if gpus == 1 and random.random() < 0.2 else ()
    cpu = random.choice((500, 4_000, 6_500, 8_000)) * max(1, gpus)
    return TracePod(f"pod-{number:04}", cpu, 1024 * max(1, gpus), gpus, milli, models)


def written(folder: Path, trace: Trace) -> Path:
    """The trace as files."""
    nodes = [f"{node.name},{node.cpu_milli},{node.memory_mib},{node.gpus},{node.model}" for node in trace.nodes]
    pods = [
        f"{pod.name},{pod.cpu_milli},{pod.memory_mib},{pod.gpus},{pod.gpu_milli},{'|'.join(pod.models)}"
        for pod in trace.pods
    ]
    lines(folder / "openb_node_list_gpu_node.csv", "sn,cpu_milli,memory_mib,gpu,model", *nodes)
    lines(folder / f"openb_pod_list_{trace.name}.csv", "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec", *pods)
    return folder


def lines(file: Path, *content: str) -> None:
    file.write_text("\n".join(content) + "\n")
