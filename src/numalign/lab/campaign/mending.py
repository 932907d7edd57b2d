"""Repairs a kubelet whose memory manager state is inconsistent, as an operator would.

A kubelet that is killed between two writes refuses to start ("please drain node and remove policy state file").
`running` runs this beside the campaign; it drains the node, removes the file and records the repair as a fault."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from numalign.lab.campaign.history import History
from numalign.lab.labs import Lab
from numalign.lab.node import LabNode

LOOK: Final = 5.0
ASKS: Final = b"please drain node and remove policy state file"
MEMORY: Final = b"[memorymanager]"
BROKEN: Final = "break"


class Mending:
    """`drain` deletes the pods of a node."""

    def __init__(self, lab: Lab, history: History, drain: Callable[[str], Awaitable[None]]) -> None:
        self._lab, self._history, self._drain = lab, history, drain
        self._read: dict[str, int] = {}
        """By node, how many bytes of its kubelet's log have been read."""

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK)
            for node in self._lab.nodes.values():
                if self._asks_for_help(node):
                    await self._mend(node)

    def _asks_for_help(self, node: LabNode) -> bool:
        log = node.kubelet.program.log
        with open(log, "rb") as file:
            file.seek(self._read.get(node.name, 0))
            new = file.read()
        self._read[node.name] = self._read.get(node.name, 0) + len(new)
        return any(ASKS in line and MEMORY in line for line in new.splitlines())

    async def _mend(self, node: LabNode) -> None:
        title = node.kubelet.program.title
        words = f"{title} finds its memory state broken; node drained, file removed"
        self._history.write("away", name=title, why=BROKEN, words=words)
        await self._drain(node.name)
        await asyncio.to_thread(node.kubelet.stop)
        node.memory_state.unlink(missing_ok=True)
        # It may have logged the request again in the meantime.
        self._read[node.name] = node.kubelet.program.log.stat().st_size
        # On this thread: the program ends when this thread ends.
        node.kubelet.start()
        self._history.write("back", name=title)
