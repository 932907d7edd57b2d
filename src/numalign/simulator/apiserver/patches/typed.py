"""Typed values: the fields of an object, the differences between two, and the merge of server-side apply.

`apply` and `managedfields` call these functions. Each walks a value along its TypeDef and does not change its
arguments. The rules are those of structured-merge-diff, the library that Kubernetes uses: a leaf is a scalar or an
atomic value; an empty container counts as a leaf, so that empty and null differ.

`merged` takes a leaf from the applied side if that side has one, and merges associative lists item by item, in an order
that respects both sides as far as they agree."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from numalign.simulator.apiserver.patches import fieldsets
from numalign.simulator.apiserver.patches.fieldsets import FieldPath, FieldSet, FieldTrie
from numalign.simulator.apiserver.schemas import typedefs
from numalign.simulator.apiserver.schemas.typedefs import TypeDef

MISSING: Final = object()
"""A value that is absent, as opposed to null."""

SCALAR: Final = "scalar"
LIST: Final = "list"
STRUCT: Final = "struct"
DECLARED: Final = {"object": STRUCT, "array": LIST, "": ""}
NOT_IN_SETS: Final = {
    dict: "associative list without keys has an element that's a map type",
    list: "not supported: associative list with lists as elements",
    type(None): "associative list without keys has an element that's an explicit null",
}


@dataclass
class FieldChanges:
    added: FieldSet = field(default_factory=set)
    removed: FieldSet = field(default_factory=set)
    modified: FieldSet = field(default_factory=set)

    def without(self, excluded: list[FieldPath]) -> FieldChanges:
        parts = (self.added, self.removed, self.modified)
        return FieldChanges(*(fieldsets.without(part, excluded) for part in parts)) if excluded else self


def form(value: Any, typedef: TypeDef) -> str:
    """How to walk a value. If the type allows anything, the value decides, and null counts as a struct."""
    declared = DECLARED.get(typedef.type, SCALAR)
    if declared:
        return declared
    if isinstance(value, list):
        return LIST
    return STRUCT if value is None or isinstance(value, dict) else SCALAR


def is_leaf(walk: str, typedef: TypeDef) -> bool:
    if walk == LIST:
        return typedef.type != "array" or typedef.relation == typedefs.ATOMIC
    return walk == SCALAR or typedef.relation == typedefs.ATOMIC


def container(value: Any, walk: str) -> Any:
    """The value if it is of the walked form, else None: one side may be absent, null or of another form."""
    return value if isinstance(value, dict if walk == STRUCT else list) else None


def below(typedef: TypeDef, key: str) -> TypeDef:
    return typedef.child(key) or typedefs.ANYTHING


def items_of(typedef: TypeDef) -> TypeDef:
    return typedef.items or typedefs.ANYTHING


def step_to(item: Any, typedef: TypeDef) -> str:
    """The step to an item of an associative list. Raises ValueError for an item without any key."""
    if typedef.relation != typedefs.MAP:
        if item is None or isinstance(item, dict | list):
            raise ValueError(NOT_IN_SETS[type(item)])
        return fieldsets.by_value(item)
    if item is None:
        raise ValueError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise ValueError("associative list with keys may not have non-map elements")
    values = {}
    for key in typedef.keys:
        value = item.get(key, below(items_of(typedef), key).default)
        if value is not None:
            values[key] = value
    if not values:
        named = " ".join(f'"{key}"' for key in typedef.keys)
        without = f"omits all key fields [{named}] (and doesn't have default values for any key fields)"
        raise ValueError(f"associative list with keys has an element that {without}")
    return fieldsets.by_keys(values)


def same(one: Any, other: Any) -> bool:
    """Equal as JSON: true is not 1, and the order of keys does not matter."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other) and isinstance(one, bool) == isinstance(other, bool)


def fields_of(value: Any, typedef: TypeDef) -> FieldSet:
    """The fields that a manager who wrote this value owns."""
    found: FieldSet = set()
    _collect(value, typedef, (), found)
    return found


def _collect(value: Any, typedef: TypeDef, path: FieldPath, found: FieldSet) -> None:
    walk = form(value, typedef)
    if is_leaf(walk, typedef):
        found.add(path)
    elif walk == STRUCT and isinstance(value, dict):
        for key, child in value.items():
            where = (*path, f"f:{key}")
            _collect(child, below(typedef, key), where, found)
            if child is None or child == {} or key not in typedef.fields:
                found.add(where)
    elif walk == LIST and isinstance(value, list):
        for step, items in grouped(value, typedef).items():
            found.add((*path, step))
            if len(items) == 1:
                _collect(items[0], items_of(typedef), (*path, step), found)


def grouped(items: list[Any], typedef: TypeDef) -> dict[str, list[Any]]:
    """Items by their step; live objects may contain a key twice."""
    found: dict[str, list[Any]] = {}
    for item in items:
        found.setdefault(step_to(item, typedef), []).append(item)
    return found


def compare(before: Any, after: Any, typedef: TypeDef) -> FieldChanges:
    comparison = FieldChanges()
    _compare(before, after, typedef, (), comparison)
    return comparison


def _compare(before: Any, after: Any, typedef: TypeDef, path: FieldPath, into: FieldChanges) -> None:
    sides = [value for value in (before, after) if value is not MISSING]
    leaf = False
    for walk in dict.fromkeys(form(value, typedef) for value in sides):
        leaf = _compare_as(walk, (before, after), typedef, path, into)
    if leaf or not path:
        return
    if before is MISSING:
        into.added.add(path)
    elif after is MISSING:
        into.removed.add(path)


def _compare_as(walk: str, sides: tuple[Any, Any], typedef: TypeDef, path: FieldPath, into: FieldChanges) -> bool:
    """Returns whether it was a leaf."""
    left, right = (container(side, walk) for side in sides)
    if walk == STRUCT and not is_leaf(walk, typedef):
        left, right = (_with_always(side, typedef) for side in (left, right))
    if is_leaf(walk, typedef) or not (left or right):
        _compare_leaf(*sides, path, into)
        return True
    if walk == STRUCT:
        for key in {**(left or {}), **(right or {})}:
            one, other = ((side or {}).get(key, MISSING) for side in (left, right))
            _compare(one, other, below(typedef, key), (*path, f"f:{key}"), into)
    else:
        _compare_lists(left or [], right or [], typedef, path, into)
    return False


def _with_always(value: Any, typedef: TypeDef) -> Any:
    return {**typedef.always, **value} if value is not None and typedef.always else value


def _compare_leaf(before: Any, after: Any, path: FieldPath, into: FieldChanges) -> None:
    if before is MISSING:
        into.added.add(path)
    elif after is MISSING:
        into.removed.add(path)
    elif not same(before, after):
        into.modified.add(path)


def _compare_lists(left: list[Any], right: list[Any], typedef: TypeDef, path: FieldPath, into: FieldChanges) -> None:
    old, new = grouped(left, typedef), grouped(right, typedef)
    for step in {**old, **new}:
        olds, news, where = old.get(step, []), new.get(step, []), (*path, step)
        if len(olds) > 1 and len(news) > 1:
            if not same(olds, news):
                into.modified.add(where)
            continue
        # A duplicate item is owned as a whole, as one that is added or removed.
        one = olds[0] if len(olds) == 1 else MISSING
        other = news[0] if len(news) == 1 else MISSING
        if one is not MISSING or other is not MISSING:
            _compare(one, other, items_of(typedef), where, into)
        if len(olds) > 1:
            into.removed.add(where)
        if len(news) > 1:
            into.added.add(where)


def removed(value: Any, gone: FieldTrie, typedef: TypeDef) -> Any:
    """The value without the paths in the trie; None if nothing is left."""
    walk = form(value, typedef)
    if walk == SCALAR:
        return value
    if not value or is_leaf(walk, typedef):
        return None
    if walk == STRUCT:
        return _removed_fields(value, gone, typedef) or None
    kept = []
    for item in value:
        node = gone.below.get(step_to(item, typedef))
        if node is None or not (node.member or node.below):
            kept.append(item)
        elif not node.member:
            kept.append(removed(item, node, items_of(typedef)))
    return kept or None


def _removed_fields(value: dict[str, Any], gone: FieldTrie, typedef: TypeDef) -> dict[str, Any]:
    kept = {}
    for key, child in value.items():
        node = gone.below.get(f"f:{key}")
        if node is None:
            kept[key] = child
        elif not node.member:
            kept[key] = removed(child, node, below(typedef, key))
    return kept


def with_named_fields(fields: FieldSet, typedef: TypeDef) -> FieldSet:
    """Adds every declared field on the way to a member, because a member requires its parents."""
    found = set(fields)
    for path in fields:
        at: TypeDef | None = typedef
        for index, step in enumerate(path):
            name = step[2:]
            if step[0] == "f" and at is not None and name in at.fields:
                found.add(path[: index + 1])
            at = None if at is None else (at.child(name) if step[0] == "f" else at.items)
    return found


def merged(live: Any, wanted: Any, typedef: TypeDef) -> Any:
    """Returns MISSING for a container that ends up empty."""
    value = live if wanted is MISSING else wanted
    walk = form(value, typedef)
    if is_leaf(walk, typedef):
        return value
    left, right = (container(side, walk) for side in (live, wanted))
    if not left and not right:
        return value
    if walk == LIST:
        return _merged_lists(left or [], right or [], typedef) or MISSING
    return _merged_fields(left or {}, right or {}, typedef) or MISSING


def _merged_fields(left: dict[str, Any], right: dict[str, Any], typedef: TypeDef) -> dict[str, Any]:
    out = {}
    for key in {**left, **right}:
        value = merged(left.get(key, MISSING), right.get(key, MISSING), below(typedef, key))
        if value is not MISSING:
            out[key] = value
    return out


def _merged_lists(left: list[Any], right: list[Any], typedef: TypeDef) -> list[Any]:
    # Duplicates of an item are not merged: the applied item replaces them.
    groups = grouped(left, typedef)
    olds = {step: items[0] if len(items) == 1 else None for step, items in groups.items()}
    news = {step_to(item, typedef): item for item in right}
    live = [(step_to(item, typedef), item) for item in left]
    values = (merged(old, new, items_of(typedef)) for old, new in _pairs(live, olds, news))
    return [value for value in values if value is not MISSING]


def _pairs(live: list[tuple[str, Any]], olds: dict[str, Any], news: dict[str, Any]) -> Iterator[tuple[Any, Any]]:
    """Old and new items in the order of the result: the applied order for items of both sides; an item that only the
    live list has stays before the shared item that it preceded."""
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
