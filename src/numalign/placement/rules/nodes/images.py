"""Which nodes have which container image, under every name it goes by.

`world` keeps it from the nodes' own lists, the ImageLocality rule reads it. An image's size is the one told by the
node that brought the name first, as in the stock scheduler's cache."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from numalign.api.caches import StampedCache
from numalign.api.objects.node import ContainerImage

MOST_SCORES: Final = 256


class ImageState(Struct):
    size: int
    rows: set[int] = field(default_factory=set)
    _listed: NDArray[np.intp] | None = None

    def listed(self) -> NDArray[np.intp]:
        """The rows as an array, kept until one comes or goes."""
        if self._listed is None:
            self._listed = np.fromiter(self.rows, np.intp, len(self.rows))
        return self._listed

    def add(self, row: int) -> None:
        self.rows.add(row)
        self._listed = None

    def discard(self, row: int) -> None:
        self.rows.discard(row)
        self._listed = None


class Images:
    def __init__(self) -> None:
        self.by_name: dict[str, ImageState] = {}
        self.generation = 0
        """Raised whenever a node has other images."""
        self.scores: StampedCache[Hashable, NDArray[np.int64]] = StampedCache(MOST_SCORES)
        """What the rule makes of them, by the images that a pod asks for."""
        self._of_row: dict[int, tuple[ContainerImage, ...]] = {}

    def put(self, row: int, images: tuple[ContainerImage, ...]) -> None:
        if self._of_row.get(row, ()) == images:
            return
        self.generation += 1
        for name, _ in _names(self._of_row.pop(row, ())):
            self._forget(name, row)
        for name, size in _names(images):
            self.by_name.setdefault(name, ImageState(size)).add(row)
        if images:
            self._of_row[row] = images

    def _forget(self, name: str, row: int) -> None:
        state = self.by_name.get(name)
        if state is None:
            return
        state.discard(row)
        if not state.rows:
            del self.by_name[name]


def _names(images: Iterable[ContainerImage]) -> Iterable[tuple[str, int]]:
    return ((name, image.size_bytes) for image in images for name in image.names)
