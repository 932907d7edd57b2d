"""The order of a list after a strategic merge: that of the patch where it speaks, that of the live list elsewhere.

`strategic` calls these. Items of the patch keep the patch's order, items only the server has keep the server's, and
the two are woven together by where they stood on the server."""

from __future__ import annotations

from typing import Any, Final

from numalign.simulator.apiserver.patches import gotext
from numalign.simulator.apiserver.patches.refused import BadPatch
from numalign.simulator.trees import Tree

BROKEN: Final = 500


def interleaved(merged: list[Any], order: list[Any], server: list[Any], key: str) -> list[Any]:
    """`merged` by the wanted order and the server's; `key` is empty for lists of plain values."""
    wanted = {_identity(item, key): place for place, item in reversed(list(enumerate(order)))}
    there = {_identity(item, key): place for place, item in reversed(list(enumerate(server)))}
    ours = sorted((item for item in merged if _identity(item, key) in wanted), key=lambda i: wanted[_identity(i, key)])
    theirs = [item for item in merged if _identity(item, key) not in wanted]
    theirs.sort(key=lambda item: there.get(_identity(item, key), len(server)))
    out: list[Any] = []
    for item in ours:
        at = there.get(_identity(item, key), -1)
        while theirs and there.get(_identity(theirs[0], key), len(server)) < at:
            out.append(theirs.pop(0))
        out.append(item)
    return out + theirs


def _identity(item: Any, key: str) -> Any:
    return key_of(item, key) if key else item


def key_of(item: Tree, key: str) -> Any:
    if key not in item:
        raise BadPatch(f"map: {gotext.value(item)} does not contain declared merge key: {key}", BROKEN)
    return item[key]


def has_maps(old: list[Any], patch: list[Any]) -> bool:
    """Whether the items are maps; a list holds one type of items."""
    types = {type(item) for item in old + patch}
    if list in types:
        raise BadPatch("lists of lists are not supported", 422)
    if len(types) > 1:
        raise BadPatch(f"list element types are not identical: {gotext.value([old, patch])}", BROKEN)
    return dict in types


def refuse_contradiction(patch: list[Any], order: list[Any], key: str) -> None:
    """The items of the patch have to appear in the order list, one after the other."""
    plain = [item for item in patch if not (isinstance(item, dict) and "$patch" in item)]
    if not plain or not order:
        return
    rest = iter([_identity(item, key) for item in order])
    if not all(_identity(item, key) in rest for item in plain):
        lists = f"{gotext.value(patch)}\n doesn't match $setElementOrder list:\n{gotext.value(order)}\n"
        raise BadPatch(f"The order in patch list:\n{lists}", BROKEN)
