"""A restart of the kubelet changes nothing, for pods that have no plain init containers (kubelet spec 9).

Those are left out because their memory is given back when the next container starts and charged once more
when they are admitted again, and because the reuse of what they held is not remembered. Pod-level resources with the
managers' gate are left out because they are allocated a second time (10.5)."""

from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from numalign.kubelet import admission, start, versions
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import KubeletState
from numalign.kubelet.versions import Minor
from tests.campaigns import holds_for
from tests.strategies.lives import Life, lives, restarted

HISTORY: dict[str, Any] = {"init": ("Always",), "restarts": False, "pod_level": True}

CONTAINER_BY_CONTAINER = {
    "topology_policy": st.sampled_from(("restricted", "single-numa-node")),
    "topology_scope": "container",
    "minor": versions.NEWEST,
}


def shares_a_cpu(state: KubeletState) -> bool:
    """A checkpoint with assignments and nothing to share is not accepted (5.9)."""
    return state.cpu is None or state.cpu.default != 0 or not state.cpu.assignments


def asks_again(kubelet: Kubelet) -> bool:
    """Before 1.37 a container with CPUs must pass full-pcpus-only again, by what is free beside them."""
    return "full-pcpus-only" in kubelet.settings.cpu_options and kubelet.settings.minor < Minor(1, 37)


def strays(kubelet: Kubelet) -> bool:
    """Whether an admitted pod may sit outside its hint: align-by-socket hands out CPUs of the whole socket; on a
    machine of one zone single-numa-node stores no mask, so that devices without a zone are handed out too."""
    one_zone = kubelet.settings.topology_policy == "single-numa-node" and len(kubelet.machine.zones) == 1
    return one_zone or "align-by-socket" in kubelet.settings.cpu_options


def refuses(kubelet: Kubelet) -> bool:
    return kubelet.settings.topology_policy in ("restricted", "single-numa-node")


def held(state: KubeletState) -> tuple[object, ...]:
    """What is written down in checkpoints, less what only the process remembers."""
    cpus = (state.cpu.default, state.cpu.assignments) if state.cpu else ()
    memory = (state.memory.zones, state.memory.blocks) if state.memory else ()
    return cpus, memory, state.devices.pods


@holds_for(lives(pod_level=True), examples=60)
def test_a_kubelet_comes_up_with_what_it_wrote_down(life: Life) -> None:
    """With init containers too: what is recorded for them is what was charged for them (6.5)."""
    for state in (moment.state for moment in life.tidy_moments() if shares_a_cpu(moment.state)):
        assert start.restart(life.kubelet, state).active == state.active


@holds_for(lives(**HISTORY), examples=60)
def test_every_pod_is_admitted_again_with_what_it_has(life: Life) -> None:
    kubelet = life.kubelet
    before = admission.collect(kubelet, life.tidy_moments()[-1].state)
    assume(before.active and shares_a_cpu(before) and not asks_again(kubelet))
    assume(not (refuses(kubelet) and strays(kubelet)))
    moments = list(restarted(kubelet, before))
    assert all(outcome.admitted for moment in moments for outcome in moment.outcomes.values())
    assert held(moments[-1].state) == held(before)


@holds_for(lives(settings=CONTAINER_BY_CONTAINER, **HISTORY), examples=60)
def test_a_preferred_hint_is_found_again(life: Life) -> None:
    """Container by container. For the pod as a whole, memory is compared with the wrong total and has no say (6.3)."""
    before = admission.collect(life.kubelet, life.tidy_moments()[-1].state)
    assume(before.active and shares_a_cpu(before) and not strays(life.kubelet))
    *_, after = restarted(life.kubelet, before)
    assert after.state.affinities == {uid: before.affinities[uid] for uid in before.active}
