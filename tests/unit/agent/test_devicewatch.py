"""Devices that are gone without a word: the agent looks again soon."""

from __future__ import annotations

import asyncio

import pytest

from numalign.agent import devicewatch
from numalign.agent.podresources import Allocatable, DeviceEntry, PodResourcesError
from tests.unit.kube.clocks import HandClock

GPU = Allocatable(devices=(DeviceEntry("x/gpu", ("gpu-0",), (0,)),))
NONE = Allocatable()
SILENT = PodResourcesError("unavailable", "no answer")


class Over(Exception):
    pass


class Kubelet:
    """Answers with what is next."""

    def __init__(self, *answers: Allocatable | PodResourcesError | None) -> None:
        self.answers = list(answers)

    async def allocatable(self) -> Allocatable | None:
        if not self.answers:
            raise Over
        answer = self.answers.pop(0)
        if isinstance(answer, PodResourcesError):
            raise answer
        return answer


def followed(*answers: Allocatable | PodResourcesError | None) -> tuple[int, list[float]]:
    """How many looks were asked for, and the pauses."""
    looks: list[None] = []
    clock = HandClock()
    with pytest.raises(Over):
        asyncio.run(devicewatch.follow(Kubelet(*answers), lambda: looks.append(None), clock))
    return len(looks), clock.slept


LOOKS = {
    "nothing changes": ((GPU, GPU, GPU), 0),
    "devices go": ((GPU, NONE), 1),
    "and come back": ((GPU, NONE, GPU), 2),
    "the kubelet is silent in between": ((GPU, SILENT, GPU), 0),
    "they are gone when it speaks again": ((GPU, SILENT, NONE), 1),
    "a kubelet that cannot tell": ((None, None), 0),
}


@pytest.mark.parametrize("answers, looks", LOOKS.values(), ids=LOOKS)
def test_a_look_follows_every_change(answers: tuple[Allocatable | None, ...], looks: int) -> None:
    assert followed(*answers)[0] == looks


def test_where_there_are_no_devices_it_seldom_asks() -> None:
    _, pauses = followed(NONE, GPU, GPU, NONE)
    every, seldom = devicewatch.EVERY, devicewatch.WITHOUT
    assert pauses == [every, seldom, every, every, seldom]
