"""Devices or kubelets that are gone without a word: the agent looks again soon."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from numalign.agent.sources.podresources import Allocatable, DeviceEntry, PodResources, PodResourcesError
from numalign.agent.triggers.triggers import EVERY, KubeletWatch
from tests.unit.kube.clocks import HandClock

GPU = Allocatable(devices=(DeviceEntry("x/gpu", ("gpu-0",), (0,)),))
NONE = Allocatable()
SILENT = PodResourcesError("unavailable", "no answer")
ODD = PodResourcesError("unreadable", "no protobuf")

Answer = Allocatable | PodResourcesError | None


class Over(Exception):
    pass


class Kubelet:
    """Answers with what is next."""

    def __init__(self, answers: Sequence[Answer]) -> None:
        self.answers = list(answers)

    async def list(self) -> tuple[PodResources, ...]:
        return (PodResources("default", "a"),)

    async def allocatable(self) -> Allocatable | None:
        if not self.answers:
            raise Over
        answer = self.answers.pop(0)
        if isinstance(answer, PodResourcesError):
            raise answer
        return answer


class Clock(HandClock):
    async def sleep(self, seconds: float) -> None:
        await super().sleep(seconds)
        if len(self.slept) > 10:
            raise Over


async def followed(looked: Answer, *answers: Answer) -> tuple[int, list[float]]:
    """How many looks were asked for after one that found this, and the pauses; a look is made at once."""
    watch, looks, clock = KubeletWatch(Kubelet([looked, *answers])), list[None](), Clock()
    await watch.allocatable()
    with pytest.raises(Over):
        await watch.follow(lambda: looks.append(None), clock)
    return len(looks), clock.slept


LOOKS = {
    "nothing changes": (GPU, (GPU, GPU), 0),
    "devices are gone": (GPU, (GPU, NONE), 1),
    "gone, and no look was made yet": (GPU, (NONE, NONE), 2),
    "the kubelet answers with an error in between": (GPU, (ODD, GPU), 0),
    "they are gone when it answers again": (GPU, (ODD, NONE), 1),
    "the kubelet is away": (GPU, (SILENT, SILENT, SILENT), 1),
    "it is away and comes back": (GPU, (SILENT, GPU, GPU), 2),
    "it is away, and has no devices": (NONE, (NONE, SILENT), 1),
    "it cannot tell, and is away": (None, (None, SILENT), 1),
}


@pytest.mark.parametrize("looked, answers, looks", LOOKS.values(), ids=LOOKS)
def test_a_look_is_asked_for_while_the_last_one_saw_other_devices(
    looked: Answer, answers: tuple[Answer, ...], looks: int
) -> None:
    assert asyncio.run(followed(looked, *answers))[0] == looks


def test_the_kubelet_is_asked_every_second() -> None:
    assert set(asyncio.run(followed(GPU, GPU))[1]) == {EVERY} == {1.0}


def test_a_kubelet_that_answered_a_look_is_not_asked_in_the_same_second() -> None:
    async def story() -> int:
        kubelet, looks = Kubelet([GPU, NONE]), list[None]()
        watch = KubeletWatch(kubelet)
        await watch.allocatable()
        await watch.list()
        with pytest.raises(Over):
            await watch.follow(lambda: looks.append(None), Clock())
        return len(looks)

    assert asyncio.run(story()) == 1


def test_looks_get_their_answers_through_it() -> None:
    watch = KubeletWatch(Kubelet([GPU]))
    assert asyncio.run(watch.allocatable()) == GPU
    assert [pod.name for pod in asyncio.run(watch.list())] == ["a"]
