"""Laying what a manager wants over what is there, along the shape: the first step of server-side apply.

`apply` calls `merged`. A leaf is taken from the wanted side where that side has one; lists with identity are merged
item by item, in an order that respects both sides as far as they agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from typing import Any

from numalign.simulator.apiserver.patches import typed
from numalign.simulator.apiserver.patches.typed import LIST, MISSING
from numalign.simulator.apiserver.schemas.shapes import TypeDef


def merged(live: Any, wanted: Any, shape: TypeDef) -> Any:
    """MISSING where a container has nothing left in it."""
    value = live if wanted is MISSING else wanted
    walk = typed.form(value, shape)
    if typed.is_leaf(walk, shape):
        return value
    left, right = (typed.container(side, walk) for side in (live, wanted))
    if not left and not right:
        return value
    if walk == LIST:
        return _merged_lists(left or [], right or [], shape) or MISSING
    return _merged_fields(left or {}, right or {}, shape) or MISSING


def _merged_fields(left: dict[str, Any], right: dict[str, Any], shape: TypeDef) -> dict[str, Any]:
    out = {}
    for key in {**left, **right}:
        value = merged(left.get(key, MISSING), right.get(key, MISSING), typed.below(shape, key))
        if value is not MISSING:
            out[key] = value
    return out


def _merged_lists(left: list[Any], right: list[Any], shape: TypeDef) -> list[Any]:
    # Of an item that is there twice neither copy is merged: the wanted one replaces both.
    groups = typed.grouped(left, shape)
    olds = {step: items[0] if len(items) == 1 else None for step, items in groups.items()}
    news = {typed.step_to(item, shape): item for item in right}
    live = [(typed.step_to(item, shape), item) for item in left]
    values = (merged(old, new, typed.items_of(shape)) for old, new in _pairs(live, olds, news))
    return [value for value in values if value is not MISSING]


def _pairs(live: list[tuple[str, Any]], olds: dict[str, Any], news: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Old and new items in the order of the result: the wanted order rules over items that both sides have, and
    what only the live list has stays before the next of those that it stood before."""
    shared = deque(step for step in news if step in olds)
    rest = deque(live)
    for step, new in news.items():
        while rest and not (shared and rest[0][0] == shared[0]):
            passed, item = rest.popleft()
            if passed not in news:
                yield item, MISSING
        yield olds.get(step, MISSING), new
        if shared and step == shared[0]:
            shared.popleft()
    for step, item in rest:
        if step not in news:
            yield item, MISSING
