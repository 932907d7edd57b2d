"""A fragmented cluster, and plans for it, measured in a process of its own."""

import gc
import time
from random import Random

from msgspec import Struct, structs

from benchmarks import _child
from numalign.api.nrt import normalise
from numalign.api.objects.meta import ObjectMeta, OwnerReference
from numalign.api.objects.pod import Pod
from numalign.plan import machines
from numalign.plan.defrag import planner
from numalign.plan.defrag.planner import Wanted
from numalign.plan.trace import WHOLE, TraceNode
from numalign.plan.workload import Shape
from numalign.scheduler.snapshot import restore
from numalign.scheduler.snapshot.restore import Restored
from numalign.scheduler.snapshot.snapshot import Snapshot

SEED = 7
ENDED = 0.62
GPUS = 8
RUNS = 3


class Task(Struct, frozen=True, kw_only=True):
    nodes: int
    pods: int
    """Of the jobs, each with the GPUs of a zone."""
    verdict: str
    movable: bool = True
    """Whether the pods that run have a controller."""


def seconds(task: Task) -> float:
    """Of the processor, for the quickest of some plans."""
    return _child.asked(__spec__.name, task)["seconds"]


def _measured(task: Task) -> dict[str, float]:
    job = structs.replace(_pod("job", GPUS // 2, movable=True), metadata=ObjectMeta(name="job", uid="job"))
    wanted = Wanted(text="jobs", pod=job, pods=task.pods)
    found = []
    for _ in range(RUNS):
        cluster = _cluster(task)
        gc.collect()
        started = time.process_time()
        plan = planner.plan(lambda cluster=cluster: cluster, wanted)  # type: ignore[misc]
        found.append(time.process_time() - started)
        if plan.verdict != task.verdict:
            raise RuntimeError(f"the plan is {plan.verdict}: {plan.why}")
    return {"seconds": min(found)}


def _cluster(task: Task) -> Restored:
    random, made = Random(SEED), restore.restored(Snapshot())
    if not made.engine.warm():
        raise RuntimeError("numba is not there; `make install` brings it")
    listed = [TraceNode(f"node-{number:03}", 96_000, 393_216, GPUS, "G2") for number in range(task.nodes)]
    ended = []
    for place in machines.nodes(listed, 2, "restricted"):
        name = place.node.metadata.name
        made.cluster.node(place.node)
        made.cluster.report(normalise.encode(place.topology), 0.0)
        for number in range(GPUS):
            pod = _pod(f"{name}-{number}", 1, movable=task.movable)
            shape = made.engine.shape(pod)
            made.engine.survey(shape)
            if made.engine.place(pod, shape, made.engine.rows[name], 0.0) is None:
                raise RuntimeError("a node takes fewer pods than it has GPUs")
            spec, status = structs.replace(pod.spec, node_name=name), structs.replace(pod.status, phase="Running")
            made.cluster.pod(structs.replace(pod, spec=spec, status=status), 0.0)
            if random.random() < ENDED:
                ended.append(pod.metadata.uid)
    for uid in ended:
        restore.end(made, made.world.pods[uid].pod)
    return made


def _pod(name: str, gpus: int, *, movable: bool) -> Pod:
    made = machines.pod(Shape(10_000 * gpus, WHOLE, gpus, (), 8_192 * gpus), pinned=True)
    owner = OwnerReference(kind="ReplicaSet", name="workers", uid="workers", controller=True)
    metadata = ObjectMeta(name=name, namespace="default", uid=name, owner_references=(owner,) if movable else ())
    return structs.replace(made, metadata=metadata)


if __name__ == "__main__":
    _child.answer(Task, _measured)
