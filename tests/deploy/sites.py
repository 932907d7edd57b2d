"""A cluster to install something in, in virtual time: nodes, controllers, and the deployer's calls through a gate.

The gate sees every call before it is sent, and may refuse it, lose it or end the run there. `objects` is a small set
with one object of every sort that matters: a namespace is missing, a definition, rights, a configuration, an agent and
a scheduler are there."""

from __future__ import annotations

import copy
import random
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from typing import Any

from numalign.deploy.apply import applying, inventory, removing
from numalign.deploy.apply.applying import ApplyOptions, Change
from numalign.deploy.apply.inventory import Installation
from numalign.deploy.apply.objects import Ref, Tree
from numalign.deploy.apply.removing import Removal
from numalign.deploy.apply.server import SSAR, Server
from numalign.kube import errors
from numalign.kube.client import Client
from numalign.kube.request import Request
from numalign.kube.resources import Status
from numalign.simulator import cluster, virtualtime
from numalign.simulator.apiserver.storage import resources
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.verbs.api import Patch
from numalign.simulator.cluster import Cluster
from numalign.simulator.nodes.publisher import crd
from numalign.simulator.nodes.specs import NodeSpec, Publishing
from tests import nodes
from tests.embedded import underfaults
from tests.embedded.faultproxy import Proxy, Weather

HERE = Installation("numalign", "numalign-system")
CRD = Ref("apiextensions.k8s.io/v1", "CustomResourceDefinition", "noderesourcetopologies.topology.node.k8s.io")
RBAC = "rbac.authorization.k8s.io/v1"
CONFIG = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: true, resourceName: numalign, resourceNamespace: numalign-system}
"""


class Interrupted(BaseException):
    """The process of the deployer ends here."""


class Site:
    def __init__(self, embedded: Cluster, client: Client) -> None:
        self.embedded, self.api = embedded, embedded.api
        self.server = Server(client)
        self.calls: list[Request] = []
        self.gate: Callable[[Request], None] = lambda request: None
        self.said: list[str] = []
        send = client.sender.call

        async def call(request: Request, *args: Any) -> bytes:
            self.calls.append(request)
            self.gate(request)
            return await send(request, *args)

        client.sender.call = call  # type: ignore[method-assign, assignment]

    async def apply(self, wanted: list[Tree], installation: Installation = HERE, **options: Any) -> list[Change]:
        plan = await applying.plan_for(self.server, installation, copy.deepcopy(wanted), ApplyOptions(**options))
        expected = await applying.preview(self.server, plan)
        await applying.check(self.server, plan, expected)
        return await applying.perform(self.server, plan, expected, self.said.append)

    async def diff(self, wanted: list[Tree], *, by_server: bool = True, **options: Any) -> list[Change]:
        plan = await applying.plan_for(self.server, HERE, wanted, ApplyOptions(**options))
        return await applying.preview(self.server, plan, by_server=by_server)

    async def remove(
        self, installation: Installation = HERE, *, purge: bool = False, seconds: float = 60.0
    ) -> list[Removal]:
        plan = await removing.plan_for(self.server, installation, purge=purge)
        return await removing.perform(self.server, plan, seconds, self.said.append)

    async def inventory(self) -> list[Ref]:
        return list((await inventory.read(self.server, HERE)).refs)

    def get(self, resource: resources.Resource, name: str, namespace: str = "") -> Tree | None:
        with suppress(StatusError):
            return self.api.get(resource, name, namespace)
        return None

    def edit(self, resource: resources.Resource, name: str, namespace: str, changes: Tree) -> None:
        """As kubectl edit does it."""
        self.api.patch(resource, name, namespace, Patch("merge", changes), manager="kubectl-edit")

    def left(self) -> list[str]:
        """What the cluster has that a new one has not; nodes and what they make themselves are left out."""
        found = []
        for resource in self.api.state.registry:
            if resource.verbs == resources.CREATE_ONLY or resource.kind in ("Event", "Node", "NodeResourceTopology"):
                continue
            for each in self.api.list(resource).items:
                meta = each["metadata"]
                if (resource.kind, meta["name"]) in removing.IN_EVERY_NAMESPACE:
                    continue
                place = f"{meta['namespace']}/" if meta.get("namespace") else ""
                found.append(f"{resource.kind} {place}{meta['name']}")
        return sorted(set(found))

    async def sleep(self, seconds: float) -> None:
        await self.embedded.clock.sleep(seconds)


@asynccontextmanager
async def site(
    count: int = 2,
    *,
    publisher: Any = "agent",
    without_crd: bool = False,
    seed: int = 1,
    weather: Weather | None = None,
) -> AsyncIterator[Site]:
    """With `weather`, the deployer's calls go through bad weather."""
    chances = random.Random(seed)
    clock = virtualtime.clock(chances)
    specs = [spec(f"node-{number}", publisher) for number in range(count)]
    async with cluster.running(specs, clock, chances) as embedded:
        if without_crd:
            embedded.api.delete(resources.CUSTOMRESOURCEDEFINITIONS, CRD.name)
        await clock.sleep(5.0)
        access = embedded.access()
        if weather is None:
            async with Client(access, clock=clock) as client:
                yield Site(embedded, client)
            return
        proxy = Proxy(access.server, access.dial, chances, weather)
        access.dial = proxy.dial
        async with Client(access, clock=clock) as client:
            with underfaults.ended(proxy.storm()):
                yield Site(embedded, client)
            await proxy.close()


def spec(name: str, publisher: Any) -> NodeSpec:
    machine = nodes.machine(zones=2, cores=4)
    publishing = Publishing(publisher=publisher)
    return NodeSpec(
        name=name, machine=machine, settings=nodes.settings(machine, "single-numa-node"), publishing=publishing
    )


def played(story: Callable[[], Coroutine[Any, Any, None]]) -> None:
    virtualtime.run(story())


def labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "numalign",
        "app.kubernetes.io/instance": "numalign",
        "app.kubernetes.io/component": component,
        "app.kubernetes.io/version": "1.2.0",
    }


def meta(name: str, component: str, **more: Any) -> Tree:
    return {"name": name, "labels": labels(component), **more}


def definition() -> Tree:
    tree = crd.crd()
    return tree | {"metadata": tree["metadata"] | {"labels": labels("crd")}}


def workload(kind: str, name: str, component: str, **more: Any) -> Tree:
    pod = {"serviceAccountName": name, "containers": [{"name": component, "image": f"numalign/{component}:1.2.0"}]}
    if component == "agent":
        pod["volumes"] = [{"name": "sys", "hostPath": {"path": "/sys"}}]
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": meta(name, component, namespace=HERE.namespace),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/component": component}},
            "template": {"metadata": {"labels": labels(component)}, "spec": pod},
            **more,
        },
    }


def account(name: str, component: str) -> Tree:
    return {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": meta(name, component, namespace=HERE.namespace)}


def role(name: str, component: str) -> list[Tree]:
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["list", "watch"]}
    subject = {"kind": "ServiceAccount", "name": name, "namespace": HERE.namespace}
    return [
        {"apiVersion": RBAC, "kind": "ClusterRole", "metadata": meta(name, component), "rules": [rule]},
        {
            "apiVersion": RBAC,
            "kind": "ClusterRoleBinding",
            "metadata": meta(name, component),
            "roleRef": {"apiGroup": RBAC[:-3], "kind": "ClusterRole", "name": name},
            "subjects": [subject],
        },
    ]


def configmap(text: str = CONFIG) -> Tree:
    where = meta("numalign-scheduler", "scheduler", namespace=HERE.namespace)
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": where, "data": {"scheduler.yaml": text}}


def objects() -> list[Tree]:
    """In no useful order."""
    return [
        workload("Deployment", "numalign-scheduler", "scheduler", replicas=2),
        workload("DaemonSet", "numalign-agent", "agent"),
        *role("numalign-scheduler", "scheduler"),
        *role("numalign-agent", "agent"),
        configmap(),
        account("numalign-scheduler", "scheduler"),
        account("numalign-agent", "agent"),
        definition(),
    ]


def actions(changes: list[Change]) -> dict[str, str]:
    return {f"{each.object.kind}/{each.object.name}": each.action for each in changes}


def forbidden(request: Request) -> errors.Refusal:
    return errors.Forbidden(request.verb, request.words, 403, Status(reason="Forbidden", message="not for you"))


def writes(request: Request) -> bool:
    return request.method != "GET" and request.path != SSAR and ("dryRun", "All") not in request.query
