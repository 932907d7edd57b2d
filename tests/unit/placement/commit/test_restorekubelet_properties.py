"""A kubelet brought back from its report answers as the one that wrote it, for any node and any next pod."""

from collections import Counter
from typing import Any

from hypothesis import strategies as st
from msgspec import structs

from numalign.api.objects.pod import Pod
from numalign.kubelet import admission
from numalign.kubelet.admission import Outcome
from numalign.kubelet.start import Kubelet
from numalign.kubelet.state import ContainerPlacement
from numalign.placement.commit import restorekubelet
from tests.campaigns import holds_for
from tests.strategies import reports
from tests.strategies.kubelet import named, pods
from tests.strategies.lives import Life


@st.composite
def lives_with_next_pods(draw: st.DrawFn) -> tuple[Life, list[Pod]]:
    life = draw(reports.reported_lives())
    following = draw(st.lists(pods(life.kubelet.machine, pod_level=True), min_size=1, max_size=3))
    return life, [named(pod, f"next-{number}") for number, pod in enumerate(following)]


def said(kubelet: Kubelet, outcome: Outcome) -> tuple[Any, ...]:
    """The whole answer, devices by their zones instead of their ids."""
    placed = {name: _by_zone(kubelet, each) for name, each in outcome.placement.items()}
    hints = [(each.container, each.hint, each.offered, each.permutations) for each in outcome.alignments]
    return outcome.verdict, outcome.reason, outcome.message, outcome.container, outcome.steps, hints, placed


def _by_zone(kubelet: Kubelet, placed: ContainerPlacement) -> tuple[Any, ...]:
    inventories = kubelet.devices.inventories
    devices = {
        resource: Counter(inventories[resource].zones.get(each) for each in ids)
        for resource, ids in placed.devices.items()
    }
    return structs.astuple(structs.replace(placed, devices={})), devices


@holds_for(lives_with_next_pods(), examples=60)
def test_the_next_pods_get_the_same_answer(drawn: tuple[Life, list[Pod]]) -> None:
    life, following = drawn
    original, state = life.kubelet, life.end
    model = restorekubelet.restored(reports.ours(original, state), {})
    assert model is not None
    kubelet, restored = model
    for pod in following:
        state, expected = admission.align(original, state, pod)
        restored, answer = admission.align(kubelet, restored, pod)
        assert said(kubelet, answer) == said(original, expected)


@holds_for(lives_with_next_pods(), examples=60)
def test_specs_of_the_pods_that_are_there_change_nothing(drawn: tuple[Life, list[Pod]]) -> None:
    life, following = drawn
    topology = reports.ours(life.kubelet, life.end)
    specs = {f"default/{pod.metadata.name}": pod for pod in life.end.active.values()}
    one, other = restorekubelet.restored(topology, {}), restorekubelet.restored(topology, specs)
    assert one is not None
    assert other is not None
    answers = [admission.align(*model, following[0])[1] for model in (one, other)]
    assert said(one.kubelet, answers[0]) == said(other.kubelet, answers[1])


@holds_for(lives_with_next_pods(), examples=60)
def test_pods_that_end_leave_what_they_would_leave(drawn: tuple[Life, list[Pod]]) -> None:
    """So that what-if may take pods away: memory is tidy, and no pod is served as a whole (kubelet spec 10.5)."""
    life, following = drawn
    tidy = life.tidy_moments()[-1].state
    model = restorekubelet.restored(reports.ours(life.kubelet, tidy), {})
    assert model is not None
    kubelet, restored = model
    for uid in [*tidy.active][::2]:
        tidy, restored = tidy.without_pod(uid), restored.without_pod(uid)
    _, expected = admission.align(life.kubelet, tidy, following[0])
    _, answer = admission.align(kubelet, restored, following[0])
    assert said(kubelet, answer) == said(life.kubelet, expected)
