"""The images of a rendered set, as tools that mirror registries want them.

`numalign deploy images` calls it with the set as it is and with the set for another registry: the pairs are what has to
be copied."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from numalign.deploy.apply import objects
from numalign.deploy.apply.objects import Tree

COMPONENT: Final = "app.kubernetes.io/component"


class ImageReference(Struct, frozen=True, order=True, omit_defaults=True):
    """`mirror` is where the set expects it, where that is another registry."""

    component: str
    reference: str
    mirror: str = ""


def used(trees: Iterable[Tree]) -> list[ImageReference]:
    """Each image of each component once, in the order of the components' names."""
    return sorted({ImageReference(_component(tree), image) for tree in trees for image in _images(tree)})


def mirrored(original: Iterable[Tree], rewritten: Iterable[Tree]) -> list[ImageReference]:
    """`rewritten` is the same set for another registry."""
    there = {objects.ref(tree).identity: list(_images(tree)) for tree in rewritten}
    pairs = {
        ImageReference(_component(tree), one, other)
        for tree in original
        for one, other in zip(_images(tree), there[objects.ref(tree).identity], strict=True)
    }
    return sorted(pairs)


def _component(tree: Tree) -> str:
    return str(objects.at(tree, "metadata", "labels", COMPONENT) or tree["kind"].lower())


def _images(tree: Tree) -> Iterator[str]:
    pod = objects.at(tree, "spec", "template", "spec") or {}
    for kind in ("initContainers", "containers"):
        yield from (each["image"] for each in pod.get(kind) or () if each.get("image"))
