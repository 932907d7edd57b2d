"""One look at the node, from its sources to what they amount to.

The agent's cycle and the command line call `look`. Where the kubelet's answers contradict its checkpoints the node is
looked at once more; what remains of it is counted, and `inventory` errs on the safe side. A look without an inventory
says why; one that rests on guesses says so, and is nothing to be published."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from numalign.agent.inventory import inventory, listfixes, podidentity, readings
from numalign.agent.inventory.inventory import Inventory
from numalign.agent.inventory.placements import Placing
from numalign.agent.inventory.podidentity import Told
from numalign.agent.inventory.readings import Readings, Sources
from numalign.agent.inventory.uids import Uids
from numalign.agent.sources import kubeletconfig
from numalign.api.nrt.placementcodec import ContainerRef
from numalign.kubelet.machine import Machine
from numalign.kubelet.refusals import StartRefusal, Undecided

TRIES: Final = 2
YOUNG: Final = 60.0
"""Seconds for which a kubelet counts as one that has just started."""


class Look(Struct, frozen=True):
    readings: Readings
    inventory: Inventory | None = None
    unknown: tuple[str, ...] = ()
    """What keeps this from being told to others."""
    doubt: str = ""
    """What else does, unless others were told the same of the kubelet's configuration before."""

    @property
    def contradictions(self) -> tuple[str, ...]:
        return self.inventory.contradictions if self.inventory is not None else ()


class Looker:
    def __init__(self, sources: Sources, uids: Uids | None = None, reference: ContainerRef | None = None) -> None:
        self.sources = sources
        self._uids = uids
        self._reference = reference
        self._placing = Placing()

    def tell_version(self, kubelet: str) -> None:
        """v1.37.1, as the Node says it."""
        self.sources.kubelet_version = kubelet

    async def look(self, *, fresh: bool = False) -> Look:
        """`fresh`: hardware and configuration may have changed, too."""
        if fresh:
            self.sources.forget()
        for _ in range(TRIES):
            found = await self._once()
            if found.readings.consistent and not found.contradictions:
                break
        return found

    async def _once(self) -> Look:
        read = await readings.read(self.sources)
        told = await self._told(read)
        read = listfixes.put_right(read, told.finished, self._reference)
        if read.machine is None:
            return Look(read, unknown=("no machine can be made out of what the kernel says",))
        try:
            found = inventory.of(read, read.machine, told, self._placing)
            return Look(read, found, (*_unknown(read), *self._unlisted(found)), _doubt(read))
        except (StartRefusal, Undecided) as refusal:
            why = f"no kubelet would start with what {read.settings_source} says on this machine: {refusal}"
            return Look(read, _hardware(read, read.machine), (*_unknown(read), why))

    def _unlisted(self, found: Inventory) -> tuple[str, ...]:
        """A kubelet that has just started lists its pods one after the other."""
        young = self.sources.clock.now() - self.sources.kubelet_since < YOUNG
        if not (young and found.answered and found.unlisted):
            return ()
        return ("the kubelet does not list all of the pods yet that hold something",)

    async def _told(self, read: Readings) -> Told:
        written = podidentity.uids(read)
        if self._uids is None or not (read.pods or written):
            return Told()
        return await self._uids.told(written, self.sources.clock.now())


def _hardware(read: Readings, machine: Machine) -> Inventory:
    """All there is to say of a node whose kubelet cannot be made out: what the kernel says."""
    bare = Readings(
        machine=machine,
        settings=kubeletconfig.assumed(machine, read.settings.minor).settings,
        settings_source=read.settings_source,
        settings_assumed=True,
    )
    return inventory.of(bare, machine, Told())


def _unknown(read: Readings) -> tuple[str, ...]:
    found = []
    if read.pods is None:
        found.append("the kubelet does not say what its pods hold")
    if read.checkpoint_lost:
        found.append("a checkpoint of the kubelet's is broken")
    if read.settings_assumed:
        found.append("the kubelet's configuration is not known")
    return tuple(found)


def _doubt(read: Readings) -> str:
    if not read.settings_unread:
        return ""
    return (
        f"{read.settings_source} was written after the kubelet started, which goes by what it said before;"
        " start the kubelet anew, or let --configz ask it"
    )
