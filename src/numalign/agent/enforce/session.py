"""One connection to the container runtime, as an NRI plugin: registers, and turns requests into changes of the state.

`enforcer` opens one after the other. Every request is answered at once from the state; nothing waits, because the
runtime stops the world for a plugin and drops one that takes longer than two seconds. `flush` sends what the state
still has to change, in small batches beside the requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from numalign.agent.enforce import messages
from numalign.agent.enforce.devices import NOTHING, Devices
from numalign.agent.enforce.messages import Update
from numalign.agent.enforce.state import Change, NodeState, Refusal
from numalign.agent.enforce.wire import Trunk
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import Tree
from numalign.process.log import about
from numalign.process.rpc import CallFailed

LOG: Final = logging.getLogger(__name__)
NAME: Final = "numalign"
INDEX: Final = "50"
"""Orders the plugins of a runtime."""
REGISTERING: Final = 5.0
SYNCHRONIZING: Final = 30.0
"""Seconds until the runtime has sent its pods and containers."""
UPDATING: Final = 30.0
AT_ONCE: Final = 32
"""Containers that one request changes: the runtime does nothing else meanwhile."""

Open = Callable[[Callable[[], Trunk]], Awaitable[Trunk]]


class Session:
    """`changed` is called after every request that may have changed what is applied."""

    def __init__(
        self, state: NodeState, devices: Devices | None, now: Callable[[], float], changed: Callable[[], None]
    ) -> None:
        self._state, self._devices, self._now, self._changed = state, devices, now, changed
        self._trunk: Trunk | None = None
        self._synchronized = asyncio.Event()
        self._dirty = asyncio.Event()
        self._pods: list[bytes] = []
        self._containers: list[bytes] = []
        self.runtime = ""
        """Name and version of the runtime."""
        self.answers: dict[str, Callable[[Tree, bytes], bytes]] = {
            "Configure": self._configure,
            "Synchronize": self._synchronize,
            "Shutdown": lambda tree, raw: b"",
            "RunPodSandbox": self._run_pod,
            "StopPodSandbox": self._stop_pod,
            "RemovePodSandbox": self._stop_pod,
            "CreateContainer": self._create,
            "PostStartContainer": self._started,
            "UpdateContainer": self._resized,
            "StopContainer": self._stopped,
            "RemoveContainer": self._removed,
        }

    async def open(self, opening: Open) -> None:
        """Registers, and returns once the runtime has sent its pods and containers. CallFailed or OSError where it
        does not."""
        self._trunk = trunk = await opening(self._made)
        request = protobuf.encode_message({"name": NAME, "index": INDEX}, messages.REGISTER)
        await trunk.call(messages.RUNTIME, "RegisterPlugin", request, REGISTERING)
        synchronized = asyncio.ensure_future(self._synchronized.wait())
        try:
            async with asyncio.timeout(SYNCHRONIZING):
                await asyncio.wait((synchronized, trunk.lost), return_when=asyncio.FIRST_COMPLETED)
        except TimeoutError:
            raise CallFailed("DEADLINE_EXCEEDED", "the runtime did not send its pods and containers") from None
        finally:
            synchronized.cancel()
        if trunk.lost.done():
            raise CallFailed("UNAVAILABLE", trunk.lost.result())

    async def run(self) -> str:
        """Sends changes until the connection ends; why it did."""
        assert self._trunk is not None
        lost = self._trunk.lost
        flushing = asyncio.ensure_future(self._flush())
        try:
            await asyncio.wait((lost, flushing), return_when=asyncio.FIRST_COMPLETED)
        finally:
            flushing.cancel()
        if lost.done():
            return lost.result()
        # The next session starts from what the runtime really has.
        return f"changes could not be sent: {flushing.exception()}"

    def wake(self) -> None:
        """The state may have changes to send."""
        self._dirty.set()

    def close(self) -> None:
        if self._trunk is not None:
            self._trunk.close()

    def _made(self) -> Trunk:
        return Trunk(serves=messages.PLUGIN_CONNECTION, calls=messages.RUNTIME_CONNECTION, answer=self.answer)

    async def _flush(self) -> None:
        while True:
            await self._dirty.wait()
            self._dirty.clear()
            changes = self._state.changes()
            for at in range(0, len(changes), AT_ONCE):
                await self._update(changes[at : at + AT_ONCE])
            if changes:
                self._changed()

    async def _update(self, changes: list[Change]) -> None:
        assert self._trunk is not None
        request = protobuf.encode_message(_updated(changes), messages.UPDATED)
        failed: set[str] = set()
        why = "the container runtime could not apply it"
        try:
            answer = await self._trunk.call(messages.RUNTIME, "UpdateContainers", request, UPDATING)
            listed = protobuf.decode_message(answer, messages.FAILED).get("updates", ())
            failed = {each.get("container", "") for each in listed}
        except CallFailed as failure:
            if failure.code == "UNAVAILABLE":
                # The next session starts from what the runtime has.
                return
            # With an error, the response that names the containers is lost.
            failed, why = {each.update.container for each in changes}, failure.text
            if len(changes) > 1 and failure.code != "DEADLINE_EXCEEDED":
                for each in changes:
                    await self._update([each])
                return
        for each in changes:
            if each.update.container in failed:
                LOG.warning("Failed to change a container: %s", why, extra=about(container=each.update.container))
                self._state.rejected(each, why)
            else:
                self._state.accepted(each)

    def answer(self, method: str, request: bytes) -> bytes:
        """The response to one request."""
        service, _, name = method.partition("/")
        answer = self.answers.get(name) if service == messages.PLUGIN else None
        if answer is None:
            raise CallFailed("UNIMPLEMENTED", f"{method} is not served")
        try:
            return answer(protobuf.decode_message(request, messages.SUBJECT), request)
        finally:
            if self._synchronized.is_set():
                self._dirty.set()
                self._changed()

    def _configure(self, _: Tree, request: bytes) -> bytes:
        tree = protobuf.decode_message(request, messages.CONFIGURE)
        self.runtime = f"{tree.get('runtime', '')} {tree.get('version', '')}".strip()
        return protobuf.encode_message({"events": messages.SUBSCRIBED}, messages.CONFIGURED)

    def _synchronize(self, _: Tree, request: bytes) -> bytes:
        """The runtime may send its pods and containers in several parts."""
        tree = protobuf.decode_message(request, messages.SYNCHRONIZE)
        self._pods += tree.get("pods", ())
        self._containers += tree.get("containers", ())
        if tree.get("more", False):
            return protobuf.encode_message({"more": True}, messages.SYNCHRONIZED)
        self._state.synchronize(*messages.subjects(self._pods, self._containers))
        self._pods, self._containers = [], []
        self._synchronized.set()
        # Changes follow by `flush`, in batches, and with a response that says what failed.
        return b""

    def _run_pod(self, subject: Tree, _: bytes) -> bytes:
        self._state.pod_started(messages.sandbox(subject.get("pod", b"")))
        return b""

    def _stop_pod(self, subject: Tree, _: bytes) -> bytes:
        self._state.pod_stopped(messages.sandbox(subject.get("pod", b"")).id)
        return b""

    def _create(self, subject: Tree, _: bytes) -> bytes:
        pod = messages.sandbox(subject.get("pod", b""))
        made = messages.container(subject.get("container", b""))
        injected, lacking = NOTHING, ""
        own = self._state.own(pod, made.name)
        if own is not None and own.devices:
            injected, lacking = (
                self._devices.injection(own)
                if self._devices is not None
                else (NOTHING, "no devices are configured here")
            )
        settings = self._state.create(pod, made, self._now(), lacking)
        if isinstance(settings, Refusal):
            raise CallFailed("FAILED_PRECONDITION", f"numalign: the decision cannot be applied yet: {settings.why}")
        changes = self._state.changes(before=made.id)
        for each in changes:
            self._state.accepted(each)
        tree = {"adjust": messages.adjustment(settings, injected), **_updated(changes)}
        return protobuf.encode_message(tree, messages.CREATED)

    def _started(self, subject: Tree, _: bytes) -> bytes:
        made = messages.container(subject.get("container", b""))
        self._state.started(made.id, made.pid)
        return b""

    def _resized(self, subject: Tree, _: bytes) -> bytes:
        made = messages.container(subject.get("container", b""))
        settings = self._state.resized(made.id)
        if settings is None:
            return b""
        return protobuf.encode_message({"updates": messages.updates([Update(made.id, settings)])}, messages.UPDATED)

    def _stopped(self, subject: Tree, _: bytes) -> bytes:
        self._state.ended(messages.container(subject.get("container", b"")).id)
        return b""

    def _removed(self, subject: Tree, _: bytes) -> bytes:
        self._state.removed(messages.container(subject.get("container", b"")).id)
        return b""


def _updated(changes: Iterable[Change]) -> Tree:
    return {"updates": messages.updates(each.update for each in changes)}
