"""VolumeBinding's score: how well claims use the space of the volumes they would get.

`volumebinding` calls it for the rows that are left. Volumes that exist count by their size; where none does, volumes to
be made count by the space that the driver reports. Each class gives a score along the profile's line, and the node has
their mean (kube-scheduler spec 1.17)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from numalign.api.decode import quantity
from numalign.placement.rules.clusterstate import Flags
from numalign.placement.rules.resources.strategies import FULL
from numalign.placement.rules.rule import Rows, Scores
from numalign.placement.rules.volumes.volumematching import VolumeMatch
from numalign.placement.rules.volumes.volumeprovisioning import Provision
from numalign.placement.rules.volumes.volumereach import NONE


class ClassUse:
    """What is asked for of one class, and what there is, by row."""

    def __init__(self, rows: int) -> None:
        self._asked: Scores = np.zeros(rows, np.int64)
        self._there: Scores = np.zeros(rows, np.int64)
        self.counts: Flags = np.zeros(rows, np.bool_)

    def add(self, where: Flags, asked: int, there: Scores) -> None:
        self._there += np.where(where, there, 0)
        self._ask(where, asked)

    def share(self, where: Flags, asked: int, there: Scores) -> None:
        """Several volumes are to be made of the same space."""
        self._there = np.where(where, there, self._there)
        self._ask(where, asked)

    def score(self, line: Scores) -> Scores:
        over = (self._there == 0) | (self._asked > self._there)
        used: Scores = np.where(over, FULL, self._asked * FULL // np.maximum(self._there, 1))
        return np.where(self.counts, line[used], 0)

    def _ask(self, where: Flags, asked: int) -> None:
        self._asked += np.where(where, asked, 0)
        self.counts |= where


def score(line: Scores, matches: Sequence[VolumeMatch], provisions: Sequence[Provision], rows: Rows) -> Scores:
    uses: dict[str, ClassUse] = {}
    exists = np.zeros(len(rows), np.bool_)
    for match in matches:
        exists |= match.choice[rows] != NONE
        for name, where, sizes in _by_class(match, rows):
            uses.setdefault(name, ClassUse(len(rows))).add(where, _value(match.claim.size), sizes)
    for each in provisions:
        report = each.report[rows]
        # The last place is for rows without a report.
        space = np.append(each.space, 0)[report]
        where = each.wanted[rows] & (report != NONE) & ~exists
        uses.setdefault(each.claim.spec.storage_class_name, ClassUse(len(rows))).share(
            where, _value(each.claim.size), space
        )
    return _mean([use.score(line) for use in uses.values()], [use.counts for use in uses.values()], len(rows))


def _by_class(match: VolumeMatch, rows: Rows) -> Iterator[tuple[str, Flags, Scores]]:
    """Rows that get a volume, and its size, by the class that the volume says it is of."""
    numbers, places = np.unique(match.choice[rows], return_inverse=True)
    volumes = list(map(match.volume, numbers.tolist()))
    sizes = np.array([_value(volume.size) if volume else 0 for volume in volumes], np.int64)[places]
    names = [volume.spec.storage_class_name if volume else None for volume in volumes]
    for name in sorted({name for name in names if name is not None}):
        yield name, np.array([each == name for each in names], np.bool_)[places], sizes


def _value(size: quantity.Quantity | None) -> int:
    return size.value if size else 0


def _mean(scores: Sequence[Scores], counts: Sequence[Flags], rows: int) -> Scores:
    total, classes = np.zeros(rows, np.int64), np.zeros(rows, np.int64)
    for each, counted in zip(scores, counts, strict=True):
        total += each
        classes += counted
    # Rounded to the nearest, halves up.
    return np.where(classes > 0, (2 * total + classes) // np.maximum(2 * classes, 1), 0)
