"""Shrinks histories of the scheduler plugin: steps, pods, nodes, zones, containers, amounts, settings.

Every step of a history contains its own objects, so a history with parts removed is still valid."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any

from numalign.oracle.shrinking import generic
from numalign.oracle.shrinking.generic import Case

LISTS = ("steps", "nrts", "pods", "nodes", "zones", "initContainers", "containers", "attributes", "costs")
ENTRIES = ("args", "cache", "scoringStrategy")


def smaller(history: Case) -> Iterator[Case]:
    """Smaller histories, larger cuts first."""
    for cut in sorted(_cuts(history), key=lambda cut: len(cut[0])):
        candidate = deepcopy(history)
        _apply(candidate, *cut)
        yield candidate


def _cuts(history: Case) -> Iterator[tuple[generic.Place, Any]]:
    """Places, each with the items or the key to remove there."""
    for place, thing in generic.objects(history):
        for key, child in thing.items():
            if key in LISTS and isinstance(child, list):
                fewest = 1 if key in ("containers", "zones") else 0
                blocks = (each for each in generic.blocks(len(child)) if _leaves(child, each, fewest))
                yield from (((*place, key), slice(*each)) for each in blocks)
            if key in ENTRIES and isinstance(child, dict):
                yield from (((*place, key), name) for name in child)
            if key == "requests" and isinstance(child, dict):
                yield from ((place, name) for name in child)


def _leaves(items: list[Any], block: tuple[int, int], fewest: int) -> bool:
    return len(items) - (block[1] - block[0]) >= fewest


def _apply(history: Case, place: generic.Place, gone: Any) -> None:
    found = generic.at(history, place)
    if isinstance(gone, str) and "requests" in found:
        for amounts in found.values():
            amounts.pop(gone, None)
    else:
        del found[gone]
