"""What differs between two states of an object, field by field, without what the server fills in.

`applying` compares the live object with the answer of a dry run, so defaults are the same on both sides. Lists of
objects with a name (containers, ports, rules with `name`) are compared by name: a container that moved is no change."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from numalign.deploy.apply.objects import Tree

SERVER_SIDE: Final = frozenset(
    {"managedFields", "resourceVersion", "uid", "creationTimestamp", "generation", "selfLink", "deletionTimestamp"}
)
"""Fields of the metadata that the server writes."""
CONTROLLERS: Final = frozenset({"deprecated.daemonset.template.generation", "deployment.kubernetes.io/revision"})
"""Annotations that controllers and the server write."""


class FieldChange(Struct, frozen=True):
    """`old` and `new` are values as in the object; one is missing where the field comes or goes."""

    field: str
    old: Any = None
    new: Any = None
    kind: str = "changed"
    """changed, added or removed"""


def clean(tree: Mapping[str, Any]) -> Tree:
    """The part of an object that people write."""
    meta = {key: value for key, value in (tree.get("metadata") or {}).items() if key not in SERVER_SIDE}
    notes = {key: value for key, value in (meta.pop("annotations", None) or {}).items() if key not in CONTROLLERS}
    meta |= {"annotations": notes} if notes else {}
    return {key: value for key, value in tree.items() if key != "status"} | {"metadata": meta}


def between(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[FieldChange]:
    return list(_compared(clean(old), clean(new), ""))


def _compared(old: Any, new: Any, path: str) -> Iterator[FieldChange]:
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in [*old, *(key for key in new if key not in old)]:
            yield from _member(old, new, key, _step(path, key))
    elif (named := _by_name(old, new)) is not None:
        before, after = named
        for key in [*before, *(key for key in after if key not in before)]:
            yield from _member(before, after, key, f"{path}[{key}]")
    elif old != new or isinstance(old, bool) != isinstance(new, bool):
        yield FieldChange(path, old, new)


def _member(old: Mapping[str, Any], new: Mapping[str, Any], key: str, path: str) -> Iterator[FieldChange]:
    if key not in new:
        yield FieldChange(path, old=old[key], kind="removed")
    elif key not in old:
        yield FieldChange(path, new=new[key], kind="added")
    else:
        yield from _compared(old[key], new[key], path)


def _step(path: str, key: str) -> str:
    if not key.replace("-", "").replace("_", "").isalnum():
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def _by_name(old: Any, new: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Both lists by the names of their items; None where an item has none, or two have the same."""
    if not (isinstance(old, list) and isinstance(new, list)) or not (old or new):
        return None
    before, after = _names(old), _names(new)
    return None if before is None or after is None else (before, after)


def _names(items: Sequence[Any]) -> dict[str, Any] | None:
    named = {each["name"]: each for each in items if isinstance(each, Mapping) and isinstance(each.get("name"), str)}
    return named if len(named) == len(items) else None


def is_within(wanted: Any, live: Any) -> bool:
    """Whether every field of `wanted` has its value in `live`: what can be said without the server's defaults."""
    if isinstance(wanted, Mapping):
        return isinstance(live, Mapping) and all(
            is_within(value, live[key]) if key in live else _is_nothing(value) for key, value in wanted.items()
        )
    if isinstance(wanted, list):
        named = _by_name(wanted, live)
        if named is not None:
            return is_within(named[0], named[1])
        same = isinstance(live, list) and len(wanted) == len(live)
        return same and all(is_within(one, other) for one, other in zip(wanted, live, strict=True))
    return bool(wanted == live)


def _is_nothing(value: Any) -> bool:
    return value is None or value == {} or value == []
