"""The bytes of a real kubelet are decoded; damaged ones are decoded or refused, and never crash the agent."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator
from typing import Any

import pytest

from numalign.agent.deviceplugin import plugin as devicepluginmessages
from numalign.agent.sources import podresources as messages
from numalign.agent.sources import pods as podsapi
from numalign.agent.sources.podresources import ContainerResources, DeviceEntry, MemoryEntry, PodResources
from numalign.api.decode import protobuf
from numalign.api.decode.protobuf import BadProtobuf
from tests.campaigns import campaign
from tests.unit.agent import recorded

GIB = 1 << 30
TRAIN = PodResources(
    "default",
    "train",
    (
        ContainerResources(
            "app",
            (
                DeviceEntry("example.com/gpu", ("gpu-0",), (0,)),
                DeviceEntry("example.com/gpu", ("gpu-1",), (0,)),
                DeviceEntry("example.com/gpu", ("gpu-2",), (0,)),
                DeviceEntry("example.com/licence", ("licence-4",), None),
            ),
            (1, 2, 3, 4),
            (MemoryEntry("memory", GIB, (0,)),),
        ),
    ),
)


def test_pods_of_a_real_kubelet() -> None:
    both, train = messages.Reader().pods(recorded.answer("List"))
    assert train == TRAIN
    assert both.containers[0].devices[:2] == (
        DeviceEntry("example.com/fabric", ("fabric-0",), (0,)),
        DeviceEntry("example.com/fabric", ("fabric-0",), (1,)),
    )


def test_what_a_real_kubelet_could_hand_out() -> None:
    found = messages.Reader().allocatable(recorded.answer("GetAllocatableResources"))
    assert found.cpus == (*range(1, 16), *range(17, 32))
    assert [block.zones for block in found.memory] == [(0,), (1,)]
    assert len(found.devices) == 8 + 2 * 2 + 16


def test_an_answer_that_comes_again_reads_the_same() -> None:
    reader, answer = messages.Reader(), recorded.answer("List")
    assert reader.pods(answer) == reader.pods(answer)


def test_pods_with_what_podresources_does_not_tell() -> None:
    raw = protobuf.decode_message(recorded.answer("ListPods"), podsapi.LIST)["pods"]
    pods = [protobuf.decode_message(each, podsapi.POD) for each in raw]
    assert [(pod["metadata"]["name"], pod["status"]) for pod in pods] == [
        ("both", {"phase": "Running", "qos": "Guaranteed"}),
        ("train", {"phase": "Running", "qos": "Guaranteed"}),
    ]


def damaged(bodies: list[bytes], count: int) -> Iterator[bytes]:
    """Real answers with bytes changed, cut, doubled or moved, and a few of nothing but noise."""
    draw = random.Random(20261116)
    for _ in range(count):
        body = bytearray(draw.choice(bodies) if draw.random() < 0.9 else draw.randbytes(draw.randrange(64)))
        for _ in range(draw.randrange(1, 6)):
            at, to = sorted((draw.randrange(len(body) + 1), draw.randrange(len(body) + 1)))
            match draw.randrange(4):
                case 0:
                    body[at : at + 1] = draw.randbytes(1)
                case 1:
                    del body[at : min(to, at + 40)]
                case 2:
                    body[at:at] = body[at : min(to, at + 40)]
                case _:
                    body[at:at] = b"\xff" * draw.randrange(12)
        yield bytes(body)


def read_all(body: bytes) -> None:
    """Each reader on its own: what one refuses, another may take."""
    reader = messages.Reader()
    tables: tuple[Any, ...] = (podsapi.LIST, podsapi.EVENT, devicepluginmessages.PREFERENCES, messages.GET_REQUEST)
    for read in (reader.pods, reader.allocatable, messages.got):
        with contextlib.suppress(BadProtobuf):
            read(body)
    for table in tables:
        with contextlib.suppress(BadProtobuf):
            protobuf.decode_message(body, table)
    with contextlib.suppress(BadProtobuf):
        assert sum(1 for _ in protobuf.fields(body)) <= len(body)


@pytest.mark.parametrize("count", [pytest.param(5000, id="quick"), campaign(5000)])
def test_damaged_answers_are_read_or_refused(count: int) -> None:
    bodies = [recorded.answer("List"), recorded.answer("GetAllocatableResources"), recorded.answer("ListPods")[:600]]
    for body in damaged(bodies, count):
        read_all(body)
