"""Nodes as the engine's property tests want them: a kubelet that has a past, its row, and pods that come next.

Machines have 1 to 8 zones with gaps, zones without CPUs and uneven ones, up to six device resources (three with more
than four zones) in one, several or no zones. A topology that names no zone is the one thing left out: reports cannot
tell it from none at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.machine.machine import Device, Machine
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.placement.columns.holdings import Entry
from numalign.placement.columns.resources import CPU
from numalign.placement.rowmodel.state import RowState
from tests.rows import View
from tests.strategies import kubelet as drawn
from tests.strategies.kubelet import Step
from tests.strategies.lives import played

POD_LEVEL = {"minor": st.sampled_from(drawn.MINORS[2:]), "feature_gates": {"PodLevelResourceManagers": True}}


class Lived(NamedTuple):
    """A kubelet and what has happened to it, with pods that are still to come."""

    view: View
    steps: list[Step]
    coming: list[Pod]

    @property
    def kubelet(self) -> Kubelet:
        return self.view.kubelet

    @property
    def state(self) -> KubeletState:
        """After everything that has happened, leftovers of refused pods collected."""
        *_, last = played(self.kubelet, self.steps)
        return admission.collect(self.kubelet, last.state)


@st.composite
def reportable_machines(draw: st.DrawFn, max_zones: int = 8, *, uneven: bool = True) -> Machine:
    even = drawn.machines(max_zones)
    machine = draw(st.one_of(even, even, drawn.uneven_machines(min(4, max_zones))) if uneven else even)
    devices = {
        resource: structs.replace(plugin, devices=tuple(map(_told, plugin.devices)))
        for resource, plugin in machine.devices.items()
    }
    return structs.replace(machine, devices=devices)


def _told(device: Device) -> Device:
    return structs.replace(device, zones=device.zones or None)


@st.composite
def lived(draw: st.DrawFn, /, max_zones: int = 8, coming: int = 3, *, uneven: bool = True, **settings: Any) -> Lived:
    """`coming`: how many pods are still to come at most; often several of one kind."""
    machine = draw(reportable_machines(max_zones, uneven=uneven))
    pod_level = draw(st.booleans())
    kubelet = draw(drawn.kubelets(machine, **{**(POD_LEVEL if pod_level else {}), **settings}))
    steps = draw(drawn.histories(machine, restarts=False, pod_level=pod_level))
    kinds = [draw(drawn.plain_pods()), *(draw(drawn.pods(machine, pod_level=pod_level)) for _ in range(2))]
    chosen = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=coming))
    return Lived(View(kubelet), steps, [drawn.named(pod, f"new-{number}") for number, pod in enumerate(chosen)])


@st.composite
def loosened(draw: st.DrawFn, life: Lived) -> RowState:
    """The row with some of its pods known only vaguely: their amounts lie somewhere in more zones than they do."""
    state, view = life.state, life.view
    vague = draw(st.lists(st.sampled_from(sorted(state.active)), unique=True, max_size=2)) if state.active else []
    entries = [entry for uid in vague for entry in draw(_widened(view, state, uid))]
    for uid in vague:
        state = state.without_pod(uid)
    return structs.replace(view.row(state), entries=tuple(entries))


@st.composite
def _widened(draw: st.DrawFn, view: View, state: KubeletState, uid: str) -> Sequence[Entry]:
    found = []
    for (column, zones), amount in view.held(state, uid).items():
        more = draw(st.integers(0, view.rules.every_zone)) | (zones or 0)
        # Nobody vouches for devices in a zone that may lie in none.
        # Where cores are of different kinds, a pod may hold CPUs that others hold, too (kubelet spec 4).
        shared = column == CPU and bool(view.rules.sockets) and not view.rules.regular
        certain = bool(zones) and not shared and draw(st.booleans())
        found.append(Entry(column, amount, more, certain=certain))
    return found
