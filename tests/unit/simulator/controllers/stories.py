"""A small cluster in virtual time for stories about controllers: the API, the controllers, a scheduler, and a fake
kubelet that runs what is bound to its nodes, or rejects it."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence

from numalign.kube.clock import microtime
from numalign.simulator import cluster, schedulers, virtualtime
from numalign.simulator import cluster as embedded
from numalign.simulator.apiserver import admission
from numalign.simulator.apiserver.storage.resources import (
    DEPLOYMENTS,
    EVENTS,
    LEASES,
    NODES,
    PODS,
    REPLICASETS,
    Resource,
)
from numalign.simulator.apiserver.verbs.api import Api, Change, Patch
from numalign.simulator.controllers import manager
from numalign.simulator.controllers.framework.runner import Controller
from numalign.simulator.controllers.framework.views import Key, Views
from numalign.simulator.controllers.workloads import deployments
from numalign.simulator.trees import Tree

Story = Callable[["Cluster"], Awaitable[None]]

RUNNING = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
REJECTED = {"phase": "Failed", "reason": "TopologyAffinityError"}


class Cluster:
    def __init__(self, controllers: Sequence[Controller] | None = None, start_delay: float = 1.0) -> None:
        chance = random.Random(7)
        self.clock = virtualtime.clock(chance)
        self.api = Api(self.clock, chance, admission=admission)
        self.views = Views(self.api)
        self.start_delay = start_delay
        self.rejects: Callable[[Tree], bool] = lambda pod: False
        self.silent: set[str] = set()
        self._tasks = asyncio.TaskGroup()
        self._starting: list[asyncio.Task[None]] = []
        self._started: set[str] = set()
        cluster.create_first_objects(self.api)
        self.manager = manager.ControllerManager(self.api, self.views, controllers or manager.every("certificate"))
        self.scheduler = schedulers.node_totals(chance)
        self.api.subscribe(PODS, self._kubelet)

    async def play(self, story: Story) -> None:
        async with self._tasks:
            lasting = [self._start(part) for part in (self.manager.run(), self._heartbeats())]
            # Nobody can create a pod before the namespace has its service account.
            await asyncio.sleep(0.1)
            access = embedded.access(self.api, self.clock, embedded.LATENCY)
            async with schedulers.running(self.scheduler, access, self.clock):
                await story(self)
            for task in (*lasting, *self._starting):
                task.cancel()

    def _start(self, work: Coroutine[object, object, None]) -> asyncio.Task[None]:
        return self._tasks.create_task(work)

    async def _heartbeats(self) -> None:
        while True:
            for node in self.views[NODES]:
                if node["metadata"]["name"] not in self.silent:
                    metadata = {"name": node["metadata"]["name"], "namespace": "kube-node-lease"}
                    self.api.update(LEASES, {"metadata": metadata, "spec": {"renewTime": self.moment()}})
            await asyncio.sleep(10)

    def moment(self) -> str:
        return microtime(self.clock.wall())

    def _kubelet(self, change: Change) -> None:
        pod = change.tree
        uid, node = pod["metadata"]["uid"], pod["spec"].get("nodeName")
        if change.kind == "DELETED" or not node or node in self.silent:
            return
        if pod["metadata"].get("deletionTimestamp") and f"-{uid}" not in self._started:
            self._started.add(f"-{uid}")
            self._starting.append(self._start(self._ends(change.key)))
        elif uid not in self._started:
            self._started.add(uid)
            self._starting.append(self._start(self._begins(change.key, pod)))

    async def _begins(self, key: Key, pod: Tree) -> None:
        await asyncio.sleep(self.start_delay)
        stamped = {"type": "Ready", "status": "True", "lastTransitionTime": self.clock.rfc3339()}
        self.report(key, REJECTED if self.rejects(pod) else RUNNING | {"conditions": [stamped]})

    async def _ends(self, key: Key) -> None:
        await asyncio.sleep(1)
        if self.views[PODS].get(key) is not None:
            self.api.delete(PODS, key[1], key[0], grace=0)

    def report(self, key: Key, status: Tree) -> None:
        if self.views[PODS].get(key) is not None:
            self.api.patch(PODS, key[1], key[0], Patch("merge", {"status": status}), subresource="status")

    def node(self, name: str, cpu: str = "8") -> None:
        offered = {"cpu": cpu, "memory": "32Gi", "pods": "110"}
        conditions = [{"type": "Ready", "status": "True", "lastHeartbeatTime": self.clock.rfc3339()}]
        status = {"capacity": offered, "allocatable": offered, "conditions": conditions}
        self.api.create(NODES, {"metadata": {"name": name}, "status": status})

    def pods(self, namespace: str = "default") -> list[Tree]:
        return [pod for pod in self.views[PODS] if pod["metadata"]["namespace"] == namespace]

    def phases(self) -> dict[str, int]:
        phases = [(pod.get("status") or {}).get("phase", "Pending") for pod in self.pods()]
        return {phase: phases.count(phase) for phase in sorted(set(phases))}

    def get(self, resource: Resource, name: str, namespace: str = "default") -> Tree:
        return self.api.get(resource, name, namespace if resource.namespaced else "")

    def exists(self, resource: Resource, name: str, namespace: str = "default") -> bool:
        return self.views[resource].get((namespace if resource.namespaced else "", name)) is not None

    def change(self, resource: Resource, name: str, body: Tree) -> None:
        self.api.patch(resource, name, "default" if resource.namespaced else "", Patch("merge", body))

    def events(self, kind: str) -> list[str]:
        found = [event for event in self.api.list(EVENTS).items if event["involvedObject"]["kind"] == kind]
        found.sort(key=lambda event: int(event["metadata"]["resourceVersion"]))
        return [f"{event['reason']}: {event['message']}" for event in found]

    def sizes(self) -> list[int]:
        """Of the replica sets, by revision."""
        sets = sorted(self.views[REPLICASETS], key=deployments.revision)
        return [each["spec"]["replicas"] for each in sets]


def played(story: Story, controllers: Sequence[Controller] | None = None, start_delay: float = 1.0) -> None:
    async def main() -> None:
        await Cluster(controllers, start_delay).play(story)

    virtualtime.run(main())


def template(image: str = "app:1", cpu: str = "1", **spec: object) -> Tree:
    container = {"name": "app", "image": image, "resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    return {
        "metadata": {"labels": {"app": "web"}},
        "spec": {"containers": [container], "terminationGracePeriodSeconds": 30} | spec,
    }


def deployment(replicas: int = 3, **spec: object) -> Tree:
    selector = {"matchLabels": {"app": "web"}}
    body = {"replicas": replicas, "selector": selector, "template": template(), "progressDeadlineSeconds": 600}
    return {"metadata": {"name": "web"}, "spec": body | spec}


def condition(tree: Tree, kind: str) -> tuple[str, str]:
    """Status and reason."""
    found = next(each for each in tree["status"]["conditions"] if each["type"] == kind)
    return found["status"], found["reason"]


__all__ = ["DEPLOYMENTS", "Cluster", "condition", "deployment", "played", "template"]
