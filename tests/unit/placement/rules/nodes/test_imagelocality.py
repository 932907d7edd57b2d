"""Nodes that have a pod's images score higher."""

from typing import Any

import pytest

from numalign.api.objects.node import Node
from numalign.placement.rules.nodes import imagelocality
from numalign.placement.rules.nodes.imagelocality import ImageLocality
from tests.unit.placement.rules import worlds

MIB = 1 << 20
RULE = ImageLocality()


def having(name: str, **sizes: int) -> Node:
    images = [{"names": [f"{image}:latest"], "sizeBytes": size * MIB} for image, size in sizes.items()]
    return worlds.node(name, images=images)


def pod_of(*images: str, **spec: Any) -> Any:
    return worlds.pod(containers=[{"name": f"c{place}", "image": image} for place, image in enumerate(images)], **spec)


@pytest.mark.parametrize(
    "sizes, having_it, nodes, references, score",
    [
        ((250,), (1,), 2, 2, 5),
        ((40, 300), (1, 1), 2, 2, 7),
        ((4000,), (1,), 2, 2, 100),
        ((4000,), (1,), 3, 2, 66),
        ((600, 900), (2, 2), 3, 3, 32),
        ((300, 600, 900), (1, 2, 2), 3, 3, 36),
        ((300,), (1,), 2, 2, 6),
        ((500,), (10,), 100, 1, 2),
        ((500,), (100,), 100, 1, 48),
        ((23,), (1,), 1, 1, 0),
        ((1000,), (1,), 1, 1, 100),
        ((100, 700), (50, 100), 100, 2, 36),
    ],
)
def test_vectors_of_sizes_and_spreads(
    sizes: tuple[int, ...], having_it: tuple[int, ...], nodes: int, references: int, score: int
) -> None:
    """Kube-scheduler spec A.8, on the node that has all the images."""
    held = [
        {f"image{place}": size for place, size in enumerate(sizes) if row < having_it[place]} for row in range(nodes)
    ]
    world = worlds.world([having(f"n{row}", **images) for row, images in enumerate(held)])
    scores = worlds.scores(RULE, pod_of(*(f"image{place}" for place in range(references))), world)
    assert scores is not None
    assert scores[0] == score


@pytest.mark.parametrize(
    "reference, name",
    [
        ("app", "app:latest"),
        ("app:v1", "app:v1"),
        ("host:5000/app", "host:5000/app:latest"),
        ("host:5000/app:v1", "host:5000/app:v1"),
        ("host/app@sha256:0", "host/app@sha256:0"),
    ],
)
def test_a_reference_without_a_tag_means_the_latest(reference: str, name: str) -> None:
    assert imagelocality.tagged(reference) == name


def test_init_containers_and_image_volumes_count_too() -> None:
    world = worlds.world([having("n", init=500, volume=500)])
    spec = {"initContainers": [{"name": "i", "image": "init"}], "volumes": [{"image": {"reference": "volume"}}]}
    assert worlds.scores(RULE, pod_of("other", **spec), world) == [100 * (1000 - 23) // (3000 - 23)]


def test_the_first_node_determines_an_images_size_until_no_node_has_it() -> None:
    world = worlds.world([having("a", app=1000), having("b", app=500)])
    assert worlds.scores(RULE, pod_of("app"), world) == [100, 100]
    world.put_node(0, having("a"))
    assert worlds.scores(RULE, pod_of("app"), world) == [0, 100 * (500 - 23) // (1000 - 23)]
    world.put_node(1, having("b"))
    world.put_node(1, having("b", app=100))
    assert worlds.scores(RULE, pod_of("app"), world) == [0, 100 * (50 - 23) // (1000 - 23)]


def test_a_node_that_is_gone_takes_its_images_along() -> None:
    world = worlds.world([having("a", app=1000), having("b", app=1000)])
    world.drop_node(1)
    assert worlds.scores(RULE, pod_of("app"), world) == [100]
    assert world.images.by_name["app:latest"].rows == {0}


def test_a_pod_without_images_scores_nothing() -> None:
    assert worlds.scores(RULE, worlds.pod(containers=[]), worlds.world([having("a", app=1)])) == [0]
