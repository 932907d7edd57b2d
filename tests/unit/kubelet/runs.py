"""Short ways to say what a test's kubelet went through: pods admitted one after the other, and what was answered."""

from collections.abc import Collection

from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from tests.unit.kubelet import made


def admitted(kubelet: Kubelet, *pods: Pod, after: KubeletState | None = None) -> KubeletState:
    """The state with all of these pods; fails where one is refused."""
    state = after or kubelet.initial()
    for pod in pods:
        state, outcome = admission.admit(kubelet, state, pod)
        assert outcome.admitted, outcome.message
    return state


def answer(kubelet: Kubelet, pod: Pod, after: KubeletState | None = None) -> Outcome:
    return admission.admit(kubelet, after or kubelet.initial(), pod)[1]


def refusal(kubelet: Kubelet, pod: Pod, after: KubeletState | None = None) -> tuple[str, str]:
    """Reason and message; empty where the pod is admitted."""
    outcome = answer(kubelet, pod, after)
    return outcome.reason, outcome.message


def refused(kubelet: Kubelet, pod: Pod, after: KubeletState | None = None) -> KubeletState:
    """The state that a refused pod leaves behind."""
    state, outcome = admission.admit(kubelet, after or kubelet.initial(), pod)
    assert outcome.verdict == "rejected"
    return state


def plugin(on: Machine, *, unhealthy: Collection[str] = (), asks: bool = False) -> Machine:
    """The machine with some NICs gone bad, or with a NIC plugin that wants to be asked for its preference."""
    nics = on.devices[made.NIC]
    devices = tuple(structs.replace(each, healthy=each.id not in unhealthy) for each in nics.devices)
    changed = structs.replace(nics, devices=devices, preferred_allocation=asks)
    return structs.replace(on, devices={**on.devices, made.NIC: changed})
