"""What is free on the rows of an engine and of no use: by typical pods, by waiting pods, and by zones.

The planner calls it after a replay."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from numalign.placement.columns.shapes import Shape
from numalign.placement.engine import Engine
from numalign.placement.exact import ExactFlavour
from numalign.placement.reference.flavour import ReferenceFlavour
from numalign.placement.verdicts.fragmentation import Fragmentation, Typical


def exact(engine: Engine) -> ExactFlavour:
    """The flavour of an engine that was made with the exact one, with all that it was given entered in its columns."""

    def refuse(_: ReferenceFlavour) -> ExactFlavour:
        raise AssertionError("the engine has the exact flavour")

    found = engine.flavour.either(lambda flavour: flavour, refuse)
    found.refresh()
    return found


def fragmented(engine: Engine, typical: Typical) -> float:
    """Free devices that the next pod cannot use, as expected over typical pods, of all rows."""
    flavour = exact(engine)
    measure, kinds = Fragmentation(engine.columns, flavour.evaluation), engine.columns.kind[: engine.height]
    measure.set_typical(typical)
    return sum(
        float(measure.expected(kind, np.flatnonzero(kinds == kind).astype(np.int32)).sum())
        for kind in set(kinds.tolist())
        if kind >= 0
    )


def stranded(engine: Engine, resource: str, waiting: Iterable[tuple[Shape, NDArray[np.bool_] | None]]) -> float:
    """Free devices of nodes that have room for a waiting shape as a whole, and for none in their zones.

    `waiting`: shapes with the rows that they must not have; None: they may have any."""
    flavour = exact(engine)
    columns, height = engine.columns, engine.height
    by_node, by_zones = np.zeros(height, np.bool_), np.zeros(height, np.bool_)
    for shape, barred in waiting:
        table = flavour.follow(shape)
        mine = ~barred if barred is not None else np.ones(height, np.bool_)
        room = columns.pods[:height] < columns.most_pods[:height]
        for column, amount in table.totals.pairs:
            room &= amount <= columns.spare[:height, column]
        by_node |= mine & room
        by_zones |= mine & (table.codes[:height] > 0)
    free = np.maximum(columns.free[:height, :, columns.column(resource)], 0).sum(axis=1)
    return float(free[by_node & ~by_zones].sum())


def free_zones(engine: Engine, resource: str) -> int:
    """Zones of which every device is free, of nodes that have the device in several zones."""
    exact(engine)
    columns, height = engine.columns, engine.height
    column = columns.column(resource)
    there = columns.size[columns.stock[:height]][:, :, column]
    several = (there > 0).sum(axis=1) > 1
    return int(((there > 0) & (columns.free[:height, :, column] == there))[several].sum())
