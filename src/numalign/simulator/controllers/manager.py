"""Starts and stops all controllers together, like kube-controller-manager.

`cluster` creates one manager for its API. Tests pass only the controllers that they test. All controllers share one set
of views, so each object is cached once."""

import asyncio
from collections.abc import Iterable, Sequence

from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.controllers.cluster.claims import Claims
from numalign.simulator.controllers.cluster.garbage import GarbageCollector, PodGarbageCollector
from numalign.simulator.controllers.cluster.namespaces import Namespaces, ServiceAccounts
from numalign.simulator.controllers.cluster.nodelifecycle import NodeLifecycle, TaintEviction
from numalign.simulator.controllers.framework.runner import Controller, Runner
from numalign.simulator.controllers.framework.views import Views
from numalign.simulator.controllers.workloads.budgets import Budgets
from numalign.simulator.controllers.workloads.daemonsets import DaemonSets
from numalign.simulator.controllers.workloads.deployments import Deployments
from numalign.simulator.controllers.workloads.jobs import Jobs
from numalign.simulator.controllers.workloads.replicasets import ReplicaSets


def every(certificate: str = "") -> Sequence[Controller]:
    """`certificate` is the certificate of the cluster's CA, which pods use to verify the API server."""
    return [
        Namespaces(),
        ServiceAccounts(certificate),
        Deployments(),
        ReplicaSets(),
        Jobs(),
        DaemonSets(),
        Budgets(),
        Claims(),
        NodeLifecycle(),
        TaintEviction(),
        PodGarbageCollector(),
        GarbageCollector(),
    ]


class ControllerManager:
    def __init__(self, api: Api, views: Views, controllers: Iterable[Controller]) -> None:
        self._runners = [Runner(controller, api, views) for controller in controllers]

    async def run(self) -> None:
        """Runs until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for runner in self._runners:
                group.create_task(runner.run(), name=runner.controller.name)
