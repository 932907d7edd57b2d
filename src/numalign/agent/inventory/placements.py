"""What pods hold, kept from look to look: on a busy node one pod changes and a hundred do not.

`inventory` asks here. An answer is used again as long as everything that it was made of is the same: the kubelet, the
pod, and what the managers have written down for it. Nothing is told differently for it."""

from __future__ import annotations

from numalign.api.attributes.podplacements import PodPlacement
from numalign.api.objects.pod import Pod
from numalign.kubelet import holdings, start
from numalign.kubelet.machine import Machine
from numalign.kubelet.report import Pods
from numalign.kubelet.settings import Settings
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState

Books = tuple[object, ...]
"""All that is written down for one pod."""


class Placing:
    """For one node."""

    def __init__(self) -> None:
        self._kubelet: Kubelet | None = None
        self._kept: dict[str, tuple[Books, PodPlacement, PodPlacement]] = {}

    def started(self, machine: Machine, settings: Settings) -> Kubelet:
        """StartRefusal where none would start."""
        last = self._kubelet
        if last is not None and last.machine == machine and last.settings == settings:
            return last
        self._kubelet, self._kept = start.start(machine, settings), {}
        return self._kubelet

    def pods(self, kubelet: Kubelet, state: KubeletState) -> Pods:
        kept = self._kept if kubelet is self._kubelet else {}
        found = {}
        for uid, pod in state.active.items():
            books = _books(state, uid, pod)
            before = kept.get(uid)
            if before is None or before[0] != books:
                before = books, holdings.listed_of(kubelet, state, pod), holdings.of(kubelet, state, pod)
            found[uid] = before
        self._kept = found
        return Pods(tuple(each[1] for each in found.values()), tuple(each[2] for each in found.values()))


def _books(state: KubeletState, uid: str, pod: Pod) -> Books:
    cpu, memory = state.cpu, state.memory
    return (
        pod,
        cpu and (cpu.assignments.get(uid), cpu.pods.get(uid)),
        memory and (memory.blocks.get(uid), memory.pods.get(uid)),
        state.devices.pods.get(uid),
    )
