"""The life of a node: a drawn history played on a drawn kubelet, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from numalign.api.decode import structs
from numalign.api.objects.pod import Pod
from numalign.kubelet import admission, start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from tests.strategies.kubelet import End, Restart, Start, Step, histories, kubelets, machines


class Moment(NamedTuple):
    """The state after something happened and, if a pod was admitted, the answer it got."""

    state: KubeletState
    outcomes: Mapping[str, Outcome]

    @property
    def tidy(self) -> bool:
        """Whether every two blocks of memory are in the same zones or have none in common."""
        blocks = self.state.memory.blocks.values() if self.state.memory else ()
        groups = {block.zones for pod in blocks for held in pod.values() for block in held}
        return not any(one & other for one in groups for other in groups - {one})


class Life(NamedTuple):
    """A kubelet and what will happen to it."""

    kubelet: Kubelet
    steps: list[Step]

    def __repr__(self) -> str:
        machine, chosen = self.kubelet.machine, self.kubelet.settings
        steps = [_json(step) if isinstance(step, Pod) else step for step in self.steps]
        return f"Life(zones={machine.zones}, devices={machine.devices}, settings={chosen}, steps={steps})"

    def moments(self) -> Iterator[Moment]:
        """From the empty node on; they end early where the kubelet would not come up again."""
        return played(self.kubelet, self.steps)

    def tidy_moments(self) -> list[Moment]:
        """As long as memory is accounted for exactly, which ends where a block reaches into a part of another's group.

        A best-effort merge may place a single zone inside a group (kubelet spec 6.4, step 4), and so may pod scope
        after a container whose memory was widened; from then on releases may hit the wrong zone (6.6)."""
        return list(takewhile(lambda moment: moment.tidy, self.moments()))

    @property
    def end(self) -> KubeletState:
        """What all the steps lead to."""
        *_, last = self.moments()
        return last.state


@st.composite
def lives(
    draw: st.DrawFn,
    /,
    on: st.SearchStrategy[Machine] | None = None,
    settings: Mapping[str, Any] | None = None,
    **how: Any,
) -> Life:
    machine = draw(machines() if on is None else on)
    kubelet = draw(kubelets(machine, **settings or {}))
    return Life(kubelet, draw(histories(machine, **how)))


def played(kubelet: Kubelet, steps: Iterable[Step]) -> Iterator[Moment]:
    state = kubelet.initial()
    yield Moment(state, {})
    for step in steps:
        try:
            for moment in _after(kubelet, state, step):
                state = moment.state
                yield moment
        except StartRefusal:
            return


def _after(kubelet: Kubelet, state: KubeletState, step: Step) -> Iterator[Moment]:
    match step:
        case Pod():
            state, outcome = admission.admit(kubelet, state, step)
            yield Moment(state, {step.metadata.uid: outcome})
        case Restart():
            yield from restarted(kubelet, state)
        case End(which) | Start(which) if state.active:
            uid = list(state.active)[which % len(state.active)]
            ended = isinstance(step, End)
            yield Moment(state.without_pod(uid) if ended else admission.started(kubelet, state, uid), {})


def restarted(kubelet: Kubelet, state: KubeletState) -> Iterator[Moment]:
    """The new process, and every active pod admitted once more, in order."""
    state = start.restart(kubelet, state)
    yield Moment(state, {})
    for uid, pod in state.active.items():
        state, outcome = admission.admit(kubelet, state, pod)
        yield Moment(state, {uid: outcome})


def _json(pod: Pod) -> str:
    return msgspec.json.encode(pod, enc_hook=structs.encodable).decode()
