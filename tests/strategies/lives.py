"""The life of a node: a drawn history played on a drawn kubelet, moment by moment."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec
from hypothesis import strategies as st

from numalign.api import wire
from numalign.api.pod import Pod
from numalign.kubelet import admission, start
from numalign.kubelet.admission import Outcome
from numalign.kubelet.machine import Machine
from numalign.kubelet.refusals import StartRefusal
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from tests.strategies.kubelet import End, Restart, Start, Step, histories, kubelets, machines


class Life(NamedTuple):
    """A kubelet and what will happen to it."""

    kubelet: Kubelet
    steps: list[Step]

    def __repr__(self) -> str:
        machine, chosen = self.kubelet.machine, self.kubelet.settings
        steps = [_json(step) if isinstance(step, Pod) else step for step in self.steps]
        return f"Life(zones={machine.zones}, devices={machine.devices}, settings={chosen}, steps={steps})"

    def moments(self) -> Iterator[Moment]:
        return played(self.kubelet, self.steps)

    @property
    def end(self) -> KubeletState:
        """What all the steps lead to."""
        *_, last = self.moments()
        return last.state


class Moment(NamedTuple):
    """The state after a step, and the answers to the pods that were admitted in it."""

    state: KubeletState
    outcomes: Mapping[str, Outcome]


def _json(pod: Pod) -> str:
    return msgspec.json.encode(pod, enc_hook=wire.encodable).decode()


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
    """Every moment of a history; it ends early where the kubelet would not come up again."""
    state = kubelet.initial()
    yield Moment(state, {})
    for step in steps:
        try:
            state, outcomes = _after(kubelet, state, step)
        except StartRefusal:
            return
        yield Moment(state, outcomes)


def _after(kubelet: Kubelet, state: KubeletState, step: Step) -> tuple[KubeletState, dict[str, Outcome]]:
    match step:
        case Pod():
            state, outcome = admission.admit(kubelet, state, step)
            return state, {step.metadata.uid: outcome}
        case Restart():
            return readmitted(kubelet, start.restart(kubelet, state))
        case End(which) | Start(which) if state.active:
            uid = list(state.active)[which % len(state.active)]
            ended = isinstance(step, End)
            return state.without_pod(uid) if ended else admission.started(kubelet, state, uid), {}
    return state, {}


def readmitted(kubelet: Kubelet, state: KubeletState) -> tuple[KubeletState, dict[str, Outcome]]:
    """Every active pod passes the topology manager once more, in order."""
    outcomes = {}
    for uid, pod in state.active.items():
        state, outcomes[uid] = admission.align(kubelet, state, pod)
    return state, outcomes
