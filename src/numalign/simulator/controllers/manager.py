"""All controllers of a cluster, started and stopped together: its kube-controller-manager.

`cluster` makes one over its API; tests give it only the controllers that they are about. The views are shared, so each
object is kept once however many controllers look at it."""

import asyncio
from collections.abc import Iterable, Sequence

from numalign.simulator.apiserver.verbs.api import Api
from numalign.simulator.controllers.cluster.claims import Claims
from numalign.simulator.controllers.cluster.garbage import Garbage, PodGarbage
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
    """`certificate` is the cluster's authority, for pods to check the API server by."""
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
        PodGarbage(),
        Garbage(),
    ]


class ControllerManager:
    def __init__(self, api: Api, views: Views, controllers: Iterable[Controller]) -> None:
        self._runners = [Runner(controller, api, views) for controller in controllers]

    async def run(self) -> None:
        """Until it is cancelled."""
        async with asyncio.TaskGroup() as group:
            for runner in self._runners:
                group.create_task(runner.run(), name=runner.controller.name)
