"""The kubelet's node registration, Lease and node status.

One `Heartbeat` per node renews the Lease every ten seconds and writes the status every five minutes. It also writes the
status at the next beat after a change, or after another component set the node to not ready. A stopped kubelet has no
heartbeat."""

from typing import Final

from numalign.kube.clock import microtime
from numalign.simulator.apiserver.storage.errors import StatusError
from numalign.simulator.apiserver.storage.resources import LEASES, NODES
from numalign.simulator.nodes import nodeobjects
from numalign.simulator.nodes.environment import NodeEnvironment, TimerEntry
from numalign.simulator.nodes.nodestate import NodeState
from numalign.simulator.trees import Tree

BEAT: Final = 10.0
BEAT_JITTER: Final = 0.04
"""Share of the period, as in the kubelet's lease controller."""
STATUS_PERIOD: Final = 300.0


class Heartbeat:
    __slots__ = ("_env", "_next", "_node_state", "_reported", "_stale", "uid")

    def __init__(self, node_state: NodeState, env: NodeEnvironment) -> None:
        self._node_state = node_state
        self._env = env
        self._next: TimerEntry | None = None
        self._reported = 0.0
        self._stale = False
        self.uid = ""
        """The uid of the Node object."""

    def begin(self) -> None:
        """Registers the node, or updates an existing Node to ready."""
        env, node_state, clock = self._env, self._node_state, self._env.clock
        tree = nodeobjects.node(
            node_state.spec, node_state.kubelet, node_state.state, node_state.identity, clock.rfc3339()
        )
        try:
            self.uid = env.api.create(NODES, tree)["metadata"]["uid"]
        except StatusError:
            self._write_status()
        # Spreads the beats of nodes that start together.
        self._reported = clock.now() - STATUS_PERIOD * env.chances.random()
        self._renew()
        self._again(BEAT * env.chances.random())

    def stop(self) -> None:
        if self._next is not None:
            self._next.cancel()

    def refresh(self) -> None:
        """Marks the node status as changed."""
        self._stale = True

    def _beat(self) -> None:
        self._renew()
        if self._stale or self._env.clock.now() - self._reported >= STATUS_PERIOD:
            self._write_status()
        self._again(BEAT * (1 + BEAT_JITTER * self._env.chances.random()))

    def _again(self, pause: float) -> None:
        self._next = self._env.timers.at(self._env.clock.now() + pause, self._beat)

    def _renew(self) -> None:
        lease = nodeobjects.lease(self._node_state.name, self.uid, microtime(self._env.clock.wall()))
        self._env.written(lambda: self._env.api.update(LEASES, lease))

    def _write_status(self) -> None:
        env = self._env
        tree = env.written(lambda: env.api.get(NODES, self._node_state.name))
        if tree is not None:
            self.uid = tree["metadata"]["uid"]
            env.written(lambda: env.api.update(NODES, self._status(tree), subresource="status"))
        self._stale, self._reported = False, env.clock.now()

    def _status(self, tree: Tree) -> Tree:
        node_state, before = self._node_state, tree.get("status") or {}
        now = nodeobjects.status(node_state.spec, node_state.kubelet, node_state.state, node_state.identity)
        said = nodeobjects.conditions(before.get("conditions") or [], self._env.clock.rfc3339())
        return tree | {"status": before | now | {"conditions": said}}
