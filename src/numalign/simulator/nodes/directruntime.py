"""The simulated runtime of a node in direct mode, with the agent's state machine: it applies everything at once.

`loop` tells it which pods come and go and which containers run, the publisher asks what was applied. What each
container has to have is `agent.enforce.state`, as on real nodes; on any other node it does nothing. A container does
not wait for a decision that cannot be applied: it runs in the shared pools."""

from __future__ import annotations

from collections.abc import Iterator

from numalign.agent.enforce import pools
from numalign.agent.enforce.messages import RuntimeContainer, Sandbox
from numalign.agent.enforce.state import NodeState
from numalign.api.attributes.directmode import AppliedContainer
from numalign.api.objects.pod import Pod
from numalign.kubelet.machine.machine import Machine


class DirectRuntime:
    """The containers of one node."""

    def __init__(self, node: str, machine: Machine, reserved: int) -> None:
        self._state = NodeState(node)
        self._state.configure(pools.of_machine(machine, reserved), {})
        self._pods: dict[str, Sandbox] = {}
        """By uid."""

    def admit(self, pod: Pod) -> None:
        """A pod is on the node. A decision that cannot be read counts as none."""
        meta = pod.metadata
        sandbox = Sandbox(
            id=meta.uid, uid=meta.uid, namespace=meta.namespace, name=meta.name, annotations=meta.annotations
        )
        self._pods[meta.uid] = sandbox
        self._state.pod_started(sandbox)
        self._apply()

    def started(self, uid: str, container: str) -> None:
        made = RuntimeContainer(id=f"{uid}/{container}", sandbox=uid, name=container)
        self._state.create(self._pods[uid], made, 0.0)
        self._state.started(made.id, 0)
        self._apply()

    def ended(self, uid: str, container: str) -> None:
        self._state.ended(f"{uid}/{container}")
        self._apply()

    def gone(self, uid: str) -> None:
        """All containers of the pod have ended."""
        self._pods.pop(uid, None)
        self._state.pod_stopped(uid)
        self._apply()

    def stopped(self) -> None:
        """The machine stopped, and all containers with it."""
        self._state.synchronize(self._pods.values(), ())

    @property
    def applied(self) -> Iterator[AppliedContainer]:
        """What became of each running container for which there is a decision."""
        return self._state.applied

    def _apply(self) -> None:
        for change in self._state.changes():
            self._state.accepted(change)
