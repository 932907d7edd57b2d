"""An admission answers and never raises, whatever the pod; what went in is still what it was."""

import copy

from hypothesis import strategies as st

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.start import Kubelet
from tests.campaigns import holds_for
from tests.strategies import api
from tests.strategies.kubelet import kubelets, machines, named, pods, uneven_machines
from tests.strategies.lives import Life, lives

KUBELETS = st.one_of(machines(max_zones=3), uneven_machines()).flatmap(kubelets)


@holds_for(KUBELETS, api.pods(), examples=40)
def test_any_pod_gets_an_answer(kubelet: Kubelet, pod: Pod) -> None:
    state, outcome = admission.admit(kubelet, kubelet.initial(), pod)
    assert outcome.admitted == bool(state.active)
    assert outcome.admitted or outcome.message


@holds_for(lives(on=uneven_machines(), pod_level=True), examples=50)
def test_uneven_machines_are_no_reason_to_fail(life: Life) -> None:
    """Although the kubelet's averages make it hand out CPUs twice there."""
    for outcome in (each for moment in life.moments() for each in moment.outcomes.values()):
        assert outcome.admitted or outcome.message


@holds_for(lives(pod_level=True), st.data(), examples=50)
def test_an_admission_leaves_the_old_state_as_it_was(life: Life, data: st.DataObject) -> None:
    state = life.end
    before = copy.deepcopy(state)
    admission.admit(life.kubelet, state, named(data.draw(pods(life.kubelet.machine, pod_level=True)), "last"))
    assert state == before


@holds_for(lives(), examples=50)
def test_no_step_of_a_life_changes_what_was_before(life: Life) -> None:
    moments = list(life.moments())
    assert [copy.deepcopy(moment.state) for moment in life.moments()] == [moment.state for moment in moments]


@holds_for(lives(), examples=50)
def test_a_rejected_pod_is_not_active_and_an_admitted_one_is(life: Life) -> None:
    for moment in life.moments():
        for uid, outcome in moment.outcomes.items():
            assert (uid in moment.state.active) == outcome.admitted or outcome.verdict == "undecided"
