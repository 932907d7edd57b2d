"""A few servers, a queue and preemption on them, and who would be evicted for a pod."""

from __future__ import annotations

from typing import Any

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.api.schedulerconfig.pluginargs import DefaultPreemptionArgs
from numalign.placement.decisions import Randomness
from numalign.scheduler.choose.choose import NoNode
from numalign.scheduler.choose.plugins import Budgets
from numalign.scheduler.preempt.preemption import Nomination, NotPreempted, Preemption, PreemptionRequest
from numalign.scheduler.queue.nominations import Nominations
from tests.unit.scheduler import servers
from tests.unit.scheduler.servers import Servers


class Fixed:
    """No randomness at all."""

    def __init__(self, number: float) -> None:
        self._number = number

    def random(self) -> float:
        return self._number


FIRST = Fixed(0.0)


class Town(Servers):
    def __init__(self, *names: str, reports: bool = True) -> None:
        super().__init__(*names, reports=reports)
        self.nominations, self.budgets = Nominations(), Budgets()
        self.preemption = Preemption(self.cluster, self.nominations, self.budgets)
        self.now = 0.0
        self.kept_off: tuple[str, ...] = ()
        """Nodes that turned such pods away."""

    def run(self, pod: Pod, node: str = "", **status: Any) -> Pod:
        """On that node, or wherever it goes; with an own uid it is seen to run there."""
        name = node or self.place(pod)
        assert name, f"{pod.metadata.name} has no place"
        running = servers.on(pod, name, phase="Running", **status)
        self.cluster.pod(running, self.now)
        return running

    def end(self, pod: Pod) -> None:
        self.cluster.pod(structs.replace(pod, status=structs.replace(pod.status, phase="Failed")), self.now)
        self.cluster.pod_gone(structs.replace(pod, status=structs.replace(pod.status, phase="Failed")), self.now)

    def asked(self, pod: Pod, rng: Randomness = FIRST, **args: int) -> Nomination | NotPreempted:
        kept_off = {self.cluster.world.rows[node]: "why" for node in self.kept_off}
        found = self.choose(pod, kept_off=kept_off)
        assert isinstance(found, NoNode), f"{pod.metadata.name} has a place"
        shape, settings = self.cluster.engine.shape(pod), DefaultPreemptionArgs(**args)
        asked = PreemptionRequest(pod=pod, shape=shape, found=found, now=self.now, args=settings, profile=self.profile)
        return self.preemption.decide(asked, rng)

    def victims(self, pod: Pod) -> tuple[str, list[str]]:
        """The node, and who has to go."""
        found = self.asked(pod)
        assert isinstance(found, Nomination), found.message
        return found.node, sorted(each.metadata.name for each in found.victims.pods)

    def why_not(self, pod: Pod) -> str:
        found = self.asked(pod)
        assert isinstance(found, NotPreempted), f"{found} preempts"
        return found.message
