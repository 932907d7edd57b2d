"""Pod placements as text: exact, and small enough for a full node."""

import weakref

import pytest
from hypothesis import given, settings
from msgspec import structs

from numalign.api.attributes import podplacements
from numalign.api.attributes.grammar import AttributeTextError
from numalign.api.attributes.podplacements import HeldDevices, Holding, MemoryBlock, PodPlacement
from tests import topology_strategies as some

UID = "00f4a1b2-c3d4-4e5f-8a9b-0c1d2e3f4a5b"
WEB = PodPlacement(
    namespace="shop",
    name="web-0",
    uid=UID,
    holdings=(
        Holding(container="", cpus=0b1100),
        Holding(
            container="app",
            cpus=0b1100,
            memory=(MemoryBlock(type="memory", zones=0b11, size=3 << 30),),
            devices=(
                HeldDevices(resource="example.com/nic", zones=None, count=2),
                HeldDevices(resource="example.com/nic", zones=0b1, count=1, ids=("0000:3b:00.2",)),
            ),
        ),
    ),
)
DB = PodPlacement(namespace="shop", name="db-0", holdings=(Holding(container="app", cpus=0b11),))
REFUSED = {
    "no key": "app;|0:1",
    "name without a namespace": "app;/web|0:1",
    "word that is not there": "app;~~u|1:1",
    "uid of 21 signs": "app;~AAAAAAAAAAAAAAAAAAAAA",
    "five fields": "app;~~u|0:1::::",
    "block without zones": "app,memory;~~u|0::1=1Gi@",
    "devices without an amount": "app,nic;~~u|0:::1@0",
    "container twice": "app;~~u|0:1|0:2",
    "pod twice": "app;~~u;~~u",
    "CPU too high": "app;~~u|0:99999999",
    "words with a gap": "app,,memory;~~u",
}


def test_words_come_first_and_pods_of_one_namespace_share_it() -> None:
    assert podplacements.encode_placements([WEB, DB]) == (
        "app,example.com/nic,memory;shop/db-0|0:0-1;"
        "/web-0~APShssPUTl-KmwwdLj9KWw|:2-3|0:2-3:2=3Gi@0-1:1*2@none,1=0000%3A3b%3A00.2@0"
    )


@given(some.PLACEMENTS)
@settings(max_examples=50)
def test_placements_are_read_back(pods: tuple[PodPlacement, ...]) -> None:
    assert podplacements.decode_placements(podplacements.encode_placements(pods)) == pods


def test_a_pod_of_the_last_report_is_the_same_object_in_the_next_one() -> None:
    late = structs.replace(DB, name="late", namespace="shop")
    before = {pod.name: pod for pod in podplacements.decode_placements(podplacements.encode_placements([DB, WEB]))}
    after = {pod.name: pod for pod in podplacements.decode_placements(podplacements.encode_placements([DB, WEB, late]))}
    assert [after[name] is pod for name, pod in before.items()] == [True, True]


def test_a_pod_is_cached_as_long_as_it_is_referenced() -> None:
    read = weakref.ref(podplacements.decode_placements(podplacements.encode_placements([WEB]))[0])
    assert read() is None


def test_words_and_namespace_are_part_of_the_cache_key() -> None:
    texts = ("app;shop/db-0|0:0-1", "web;shop/db-0|0:0-1", "app;shop/a;/db-0|0:0-1", "app;bank/a;/db-0|0:0-1")
    pods = [podplacements.decode_placements(text)[-1] for text in texts]
    assert [(pod.namespace, pod.holdings[0].container) for pod in pods] == [
        ("shop", "app"),
        ("shop", "web"),
        ("shop", "app"),
        ("bank", "app"),
    ]


def test_the_order_of_pods_does_not_change_the_text() -> None:
    assert podplacements.encode_placements([DB, WEB]) == podplacements.encode_placements([WEB, DB])


def test_a_full_node_of_256_cpus_takes_six_kilobytes() -> None:
    pods = [
        PodPlacement(
            uid=f"{pod:08x}-c3d4-4e5f-8a9b-0c1d2e3f4a5b",
            holdings=(
                Holding(
                    container="app",
                    cpus=1 << pod + 2 | 1 << pod + 130,
                    memory=(MemoryBlock(type="memory", zones=1 << pod // 16, size=2 << 30),),
                ),
                Holding(
                    container="istio-proxy",
                    memory=(MemoryBlock(type="memory", zones=1 << pod // 16, size=256 << 20),),
                ),
            ),
        )
        for pod in range(110)
    ]
    assert len(podplacements.encode_placements(pods)) < 6144


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED)
def test_texts_that_make_no_sense_are_refused(body: str) -> None:
    with pytest.raises(AttributeTextError):
        podplacements.decode_placements(body)


@pytest.mark.parametrize(
    "pod",
    [PodPlacement(), PodPlacement(name="web"), PodPlacement(namespace="shop", uid=UID)],
    ids=["nobody", "no namespace", "no name"],
)
def test_a_placement_without_a_pod_is_not_written(pod: PodPlacement) -> None:
    with pytest.raises(AttributeTextError, match="needs namespace and name"):
        podplacements.encode_placements([pod])


def test_ids_and_their_number_must_agree() -> None:
    held = HeldDevices(resource="a/b", zones=1, count=2, ids=("one",))
    with pytest.raises(AttributeTextError, match="2 devices and 1 ids"):
        podplacements.encode_placements([PodPlacement(uid=UID, holdings=(Holding(container="c", devices=(held,)),))])
